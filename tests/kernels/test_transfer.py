"""Law: a transfer function's picture is that of the formulas in NumPy, whatever is skipped, with slopes of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import cases
import numpy as np
import pytest
import reference

from raymarch.device import grid
from raymarch.errors import RaymarchError
from raymarch.geometry.rays import Rays
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.integrator.passes import passes_of
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer, render
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import MAX_OPACITY, TransferFunction
from raymarch.volumes.volume import Volume

VOLUME = cases.volume("rotated", 0, "identity")
VOLUME = replace(VOLUME, activation=replace(VOLUME.activation, scale=1.0))
CAMERA = cases.cameras(VOLUME)[0]


def table_of(knots, seed=1, unit_length=0.3, clear=()):
    """Random knots over the values of the volume, unevenly spaced, some of them clear."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(0, 1.5, knots))
    opacities = rng.uniform(0.05, 0.95, knots)
    opacities[list(clear)] = 0
    return TransferFunction(values, rng.uniform(0, 1, (knots, 3)), opacities, unit_length)


TABLE = table_of(7)
EXACT = March(step=0.47, min_transmittance=0, min_weight=0, mode="transfer", transfer=TABLE, batch=cases.FEW)


def classified(table, value):
    """(colour, opacity) of a value, straight from the definition."""
    v, rgba = table.values, np.column_stack([table.colours, table.opacities])
    if value <= v[0] or value >= v[-1]:
        return rgba[0 if value <= v[0] else -1]
    i = max(k for k in range(len(v)) if v[k] <= value)
    share = (value - v[i]) / (v[i + 1] - v[i])
    return (1 - share) * rgba[i] + share * rgba[i + 1]


def seen_by(volume, table, rays, step, background):
    """Colour and transmittance (ray, 4): opacity of a step is 1 - (1 - opacity)^(width / unit_length)."""
    image = []
    for origin, direction in zip(rays.origin, rays.direction, strict=True):
        colour, T = np.zeros(3), 1.0
        for sample in reference.samples(volume, origin, direction, step, 0, 0)[0]:
            shade = classified(table, reference.gather(volume.density, sample.p) + volume.activation.shift)
            alpha = 1 - (1 - min(shade[3], MAX_OPACITY)) ** (sample.width / table.unit_length)
            colour, T = colour + T * alpha * shade[:3], T * (1 - alpha)
        image.append([*(colour + T * np.array(background)), T])
    return np.array(image)


@pytest.fixture
def seen():
    with Linearised(VOLUME, CAMERA, background=cases.BACKGROUND, march=EXACT, columns=2) as seen:
        yield seen


def test_the_picture_is_that_of_the_formula(seen):
    wanted = seen_by(VOLUME, TABLE, CAMERA.rays(), 0.47 * VOLUME.voxel, cases.BACKGROUND)
    assert 0.05 < wanted[:, 3].mean() < 0.9
    np.testing.assert_allclose(seen.image(), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("knots", [2, 40])
def test_another_table_compiles_nothing_and_is_its_own_picture(knots):
    """Many knots in one bin, and one beyond all values; opacity 1 is bounded."""
    table = table_of(knots, knots)
    table = replace(table, opacities=np.where(np.arange(knots) % 3 == 1, 1.0, table.opacities))
    with Renderer(VOLUME, replace(EXACT, transfer=table)) as renderer:
        image, _ = renderer.trace(CAMERA.rays(), cases.BACKGROUND)
    wanted = seen_by(VOLUME, table, CAMERA.rays(), 0.47 * VOLUME.voxel, cases.BACKGROUND)
    np.testing.assert_allclose(image, wanted, rtol=0, atol=3e-7)  # pictures are float32


def test_what_a_clear_table_skips_changes_no_picture():
    """A ball in a fog of values that are clear: most cells are skipped, and the same numbers come out."""
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, 29)] * 3, indexing="ij"), -1)
    values = 1 - np.linalg.norm(x, axis=-1)
    table = TransferFunction([0.3, 0.5, 0.55, 0.9], np.eye(4)[:, :3], [0, 0.6, 0, 0], 0.2)
    activation = replace(VOLUME.activation, shift=0.0)
    volume = Volume(values, np.zeros((29, 29, 29, 3)), VOLUME.world_from_index, activation)
    rays = cases.rays(volume)
    march = replace(EXACT, transfer=table)
    with Renderer(volume, march) as renderer:
        occupied = renderer.grid.occupied_cells()
        skipped, _ = renderer.trace(rays, cases.BACKGROUND)
        renderer.grid.occupy(np.ones_like(occupied))
        renderer.grid.measure_occupancy()
        whole, _ = renderer.trace(rays, cases.BACKGROUND)
    assert 0.02 < occupied.mean() < 0.7 and skipped[:, 3].min() < 0.9
    np.testing.assert_array_equal(skipped, whole)


@pytest.mark.parametrize("slab", [1, 20, grid.SLAB_CELLS])
@pytest.mark.parametrize("margin", [0, 1])
def test_slabs_of_any_size_mark_the_cells_that_show_something(slab, margin, monkeypatch):
    """Those alone that the hull allows; a cell reads five samples a side, and one beyond for rounding."""
    monkeypatch.setattr(grid, "SLAB_CELLS", slab)
    shape, counts, rng = (29, 21, 13), (7, 5, 3), np.random.default_rng(0)
    values = 1.5 * np.round(rng.uniform(-0.6, 0.502, shape))  # one in two hundred is not 0 or less
    table, allowed = TransferFunction([0.5, 2], np.zeros((2, 3)), [0, 0.4], 0.2), rng.random(counts) < 0.8
    activation = replace(VOLUME.activation, shift=0.0)
    volume = Volume(values, np.zeros((*shape, 3)), VOLUME.world_from_index, activation)
    with Renderer(volume, replace(EXACT, transfer=table)) as renderer:
        renderer.grid.allow(allowed)
        fraction = renderer.grid.refresh_through(table, 0.1, margin)
        occupied = renderer.grid.occupied_cells()
    wanted = np.zeros(counts, bool)
    for cell in np.ndindex(counts):
        read = tuple(slice(max(4 * c - 1 - margin, 0), 4 * c + 6 + margin) for c in cell)
        wanted[cell] = allowed[cell] and table(values[read].max())[3] > 0.1
    assert fraction == wanted.mean() and 0.3 < fraction < 0.7
    np.testing.assert_array_equal(occupied, wanted)


def test_a_range_is_clear_if_every_value_in_it_is():
    table = table_of(9, 3, clear=(0, 1, 2, 5, 6, 8))
    rng = np.random.default_rng(0)
    ends = np.sort(rng.uniform(table.values[0] - 1, table.values[-1] + 1, (200, 2)), axis=1)
    ends[:20, 1] = ends[:20, 0] + 0.05
    among = [table(np.linspace(low, high, 2001))[:, 3].max() == 0 for low, high in ends]
    assert 10 < sum(among) < 190
    np.testing.assert_array_equal(table.is_clear(*ends.T), among)


def test_a_slab_lets_through_what_its_opacity_says():
    """Of one length, in steps of any size: (1 - opacity)^(length / unit_length)."""
    volume = cases.constant(0.4, degree=0, size=(1, 1, 1), activation=replace(VOLUME.activation, shift=0))
    ray = Rays([[-1, 0.5, 0.5]], [[1, 0, 0]])
    for step in (0.01, 0.3, 2.0):
        with Renderer(volume, replace(EXACT, step=step, transfer=TABLE)) as renderer:
            image, _ = renderer.trace(ray)
        np.testing.assert_allclose(image[0, 3], (1 - TABLE(0.4)[3]) ** (1 / 0.3), rtol=1e-6)


def test_a_mode_and_its_table_come_together(seen):
    with pytest.raises(RaymarchError, match="mode transfer has no table"):
        March(mode="transfer")
    with pytest.raises(RaymarchError, match="shading is given beside preintegrated, which has none"):
        replace(EXACT, shading=Shading(), preintegrated=True)
    with pytest.raises(RaymarchError, match="mode x-ray takes no transfer function"):
        March(mode="x-ray", transfer=TABLE)
    with pytest.raises(RaymarchError, match="mode transfer has no gradient by colour"):
        seen.tangent(Parameters(colour=np.zeros((*VOLUME.shape, 3))))


def occluded(volume, reach):
    """Picture (row, column, 3) over black, each sample's colour times what passes `reach` of eight ways on the mean."""
    image, m = [], np.linalg.inv(volume.world_from_index)[:3, :3]
    ways = [m @ np.array(corner) / np.sqrt(3) for corner in product((-1, 1), repeat=3)]
    top = np.array(volume.shape) - 1

    def sigma(p):
        if (p < 0).any() or (p > top).any():
            return 0.0
        value = volume.activation.sigma(reference.gather(volume.density, p))
        return -np.log1p(-min(classified(TABLE, value)[3], MAX_OPACITY)) / TABLE.unit_length

    rays = CAMERA.rays()
    for origin, direction in zip(rays.origin, rays.direction, strict=True):
        colour, T = np.zeros(3), 1.0
        for s in reference.samples(volume, origin, direction, 0.47 * volume.voxel, 0, 0)[0]:
            shade = classified(TABLE, volume.activation.sigma(reference.gather(volume.density, s.p)))
            open_ways = np.mean(
                [np.exp(-sum(sigma(s.p + (q + 0.5) / 4 * reach * way) * reach / 4 for q in range(4))) for way in ways]
            )
            alpha = 1 - np.exp(-sigma(s.p) * s.width)
            colour, T = colour + T * alpha * open_ways * shade[:3], T * (1 - alpha)
        image.append(colour)
    return np.array(image).reshape(CAMERA.height, CAMERA.width, 3)


def test_samples_are_lit_by_the_slope_of_their_value():
    """Of a linear field the normal is one everywhere: a lamp across it dims all colours alike, one beside it leaves the
    ambient light; light without a direction leaves the plain picture."""
    towards = CAMERA.world_from_camera[:3, 2]  # the eye
    across = towards @ VOLUME.world_from_index[:3, :3]
    field = np.stack(np.meshgrid(*map(np.arange, VOLUME.shape), indexing="ij"), -1) @ across
    field = 3 * (field - field.min()) / np.ptp(field) - 1.5
    volume = Volume(field, VOLUME.features, VOLUME.world_from_index, VOLUME.activation)
    aside = CAMERA.world_from_camera[:3, 0]

    def picture(**light):
        shading = Shading(**{"ambient": 0.0, "diffuse": 0.0, "specular": 0.0} | light) if light else None
        return render(volume, CAMERA, background="black", march=replace(EXACT, shading=shading))

    plain = picture()
    assert plain.max() > 0.1
    np.testing.assert_allclose(picture(ambient=1.0), plain, atol=1e-6)
    np.testing.assert_allclose(picture(diffuse=0.6, lamp=towards), 0.6 * plain, atol=1e-6)
    np.testing.assert_allclose(picture(ambient=0.3, diffuse=0.7, lamp=aside), 0.3 * plain, atol=1e-6)
    np.testing.assert_allclose(picture(ambient=1.0, occlusion=0.5), occluded(volume, 0.5), atol=1e-6)


def test_normals_are_the_mean_slope_of_the_value_by_weight(seen):
    """Of the trilinear field between samples, by its differences along the axes; unit vectors that face the camera."""
    volume, rays = seen.volume, seen.rays
    call, wanted = seen.march.call(seen.grid, len(rays), cases.BACKGROUND), np.zeros((len(rays), 3))
    passes_of(seen.march.rule).normals(seen.grid.fields, seen.buffer.fields, *call[:4])
    for r, (o, d) in enumerate(zip(rays.origin, rays.direction, strict=True)):
        slope, T = np.zeros(3), 1.0
        for s in reference.samples(volume, o, d, 0.47 * volume.voxel, 0, 0)[0]:
            ahead, behind = ([reference.gather(volume.density, s.p + h * e) for e in np.eye(3)] for h in (1e-7, -1e-7))
            opacity = classified(TABLE, reference.gather(volume.density, s.p) + volume.activation.shift)[3]
            alpha = 1 - (1 - opacity) ** (s.width / TABLE.unit_length)
            slope, T = slope + T * alpha * np.subtract(ahead, behind), T * (1 - alpha)
        slope = slope @ np.linalg.inv(volume.world_from_index)[:3, :3]
        if 1 - T > 0.01:
            wanted[r] = -slope / np.linalg.norm(slope) * np.sign(slope @ d)
    assert 0.3 < wanted.any(1).mean() < 1
    np.testing.assert_allclose(seen.buffer.fields.sum_even.to_numpy()[: len(rays), :3], wanted, rtol=0, atol=1e-6)
