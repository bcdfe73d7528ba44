"""Law: volumes composited together are what the formulas say in NumPy, with gradients of each; halves make a whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import cases
import numpy as np
import pytest
import reference

from raymarch.geometry.clip import Clip
from raymarch.geometry.rays import Rays
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import marches_for
from raymarch.rendering.renderer import Renderer
from raymarch.volumes.activation import Activation
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

RNG = np.random.default_rng(0)
FIT, SCAN = cases.volume("rotated", 1), cases.volume("upright", 0, "identity", seed=3)
NOTHING = [(0, 4), (0, 0), (0, 0)]  # samples beside the fit's, in a brick that is missing: no direction moves them
FIT = replace(
    FIT,
    density=np.pad(FIT.density, NOTHING, constant_values=FIT.activation.empty),
    features=np.pad(FIT.features, [*NOTHING, (0, 0)]),
)
TABLE = TransferFunction([-1.5, -0.3, 0.4, 1.2], RNG.uniform(0, 1, (4, 3)), [0.1, 0.6, 0.3, 0.8], 0.4)
CUT = Clip(planes=[((1, 0.5, 0.2), -0.6)])
EXACT = March(step=0.47, min_transmittance=0, min_weight=0, batch=cases.FEW)
CLASSIFY = replace(EXACT, mode="transfer", transfer=TABLE)
CAMERA = cases.cameras(FIT)[0]
ROUGH = {"jitter": 0.6, "step_jitter": 0.3, "seed": 5}
MARCHES = [replace(EXACT, clip=CUT, **ROUGH), replace(CLASSIFY, **ROUGH)]


def optics(volume, march, place, direction):
    """(sigma, colour) of a volume at a place of the world, from their definitions."""
    index_from_world = np.linalg.inv(volume.world_from_index)
    p = (index_from_world @ [*place, 1])[:3].clip(0, np.array(volume.shape) - 1.0)
    value = reference.density(volume.activation, reference.gather(volume.density, p) + volume.activation.shift)[0]
    if march.transfer is not None:
        table = march.transfer
        opacity = np.interp(value, table.values, table.opacities)
        colour = [np.interp(value, table.values, channel) for channel in table.colours.T]
        return -np.log(1 - opacity) / table.unit_length, np.array(colour)
    total = reference.harmonics(volume.degree, direction) @ reference.gather(volume.features, p).reshape(-1, 3)
    return value, reference.colour(volume.activation, total)[0]


def seen_together(volumes, marches, rays, step, background, jitter):
    """Colour and transmittance (ray, 4), and depth (ray,): one medium of all, between each two faces."""
    image, depth = [], []
    for r, (origin, direction) in enumerate(zip(rays.origin, rays.direction, strict=True)):
        spans = []
        for volume, march in zip(volumes, marches, strict=True):
            near, far = reference.clip(origin, direction, volume)
            cut = (march.clip or Clip()).cut(Rays(origin[None], direction[None]))
            spans.append((max(near, cut[0][0]), min(far, cut[1][0])))
        faces = sorted({t for near, far in spans if far > near for t in (near, far)})
        colour, T, met = np.zeros(3), 1.0, np.zeros(2)
        phase, dt = jitter[r][0], jitter[r][1] * step
        for begin, end in pairwise(faces):
            there = [i for i, (near, far) in enumerate(spans) if near <= begin and end <= far]
            count = int((end - begin) / dt + phase) + 1
            edges = [begin, *(begin + (k - phase) * dt for k in range(1, count) if k > phase), end]
            for first, last in pairwise(edges):
                t, width = (first + last) / 2, last - first
                found = [optics(volumes[i], marches[i], origin + t * direction, direction) for i in there]
                sigma = sum(s for s, _ in found)
                alpha = 1 - np.exp(-sigma * width)
                if sigma > 0:
                    colour = colour + T * alpha * sum(s * c for s, c in found) / sigma
                met, T = met + T * alpha * np.array([1, t]), T * (1 - alpha)
        image.append([*(colour + T * np.array(background)), T])
        depth.append(met[1] / met[0] if 1 - T >= 0.01 else np.inf)
    return np.array(image), np.array(depth)


@pytest.fixture
def seen():
    """A fit in bricks, clipped, and a scan through a table; jittered rays."""
    volumes = [FIT.sparse(), SCAN]
    assert volumes[0].bricks.count == 1 < volumes[0].bricks.table.size
    with Linearised(volumes, CAMERA, march=MARCHES, background=cases.BACKGROUND) as seen:
        yield seen


def test_the_picture_is_that_of_the_formula(seen):
    jitter = seen.buffer.fields.jitter.to_numpy()[: len(seen.rays)]
    step = 0.47 * min(FIT.voxel, SCAN.voxel)
    wanted, depth = seen_together([FIT, SCAN], MARCHES, seen.rays, step, cases.BACKGROUND, jitter)
    assert 0.05 < wanted[:, 3].mean() < 0.9 and np.ptp(jitter[:, 0]) > 0.3
    np.testing.assert_allclose(seen.image(), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen.buffer.depth(len(seen.rays)), depth, rtol=1e-12)


DOTS = [
    Parameters(RNG.normal(size=FIT.shape), RNG.normal(size=(*FIT.shape, 12)), background=RNG.normal(size=3)),
    Parameters(RNG.normal(size=SCAN.shape), table=RNG.normal(size=(4, 4))),
]


@pytest.mark.parametrize(
    ("i", "group"), [(0, "density"), (0, "colour"), (0, "background"), (1, "density"), (1, "table")]
)
def test_every_gradient_is_the_transpose_of_its_tangent(seen, i, group):
    d_image = np.random.default_rng(1).normal(size=(len(seen.rays), 4))
    dots = [Parameters(), Parameters()]
    dots[i] = Parameters(**{group: getattr(DOTS[i], group)})
    forward = seen.tangent(dots)
    back = seen.adjoint(d_image)[i]
    scale = np.linalg.norm(forward) * np.linalg.norm(d_image)
    assert scale > 1e-3 and abs((forward * d_image).sum() - dots[i].dot(back)) < 1e-12 * scale


def test_the_tangent_is_what_differences_give(seen):
    h = 1e-5
    differences = (seen.shifted(DOTS, h) - seen.shifted(DOTS, -h)) / (2 * h)
    assert np.abs(differences - seen.tangent(DOTS)).max() < 1e-7 * np.abs(differences).max()
    np.testing.assert_array_equal(seen.shifted(DOTS, 0), seen.image())


@pytest.mark.parametrize("group", ["colour", "table"])
def test_a_gradient_of_one_volume_wrong_by_one_in_ten_thousand_is_found(seen, group, monkeypatch):
    whole = Linearised.adjoint

    def off(seen, d_image):
        by = whole(seen, d_image)
        own = {one: getattr(by[one == "table"], one) for one in ("colour", "table")}
        own[group] = 1.0001 * own[group]
        return [replace(by[0], colour=own["colour"]), replace(by[1], table=own["table"])]

    monkeypatch.setattr(Linearised, "adjoint", off)
    verdicts = {row.parameter: row.verdict for row in check_rows(seen, ["colour", "table"])}
    good, wrong = ("volumes[0].colour", "volumes[1].table")[:: -1 if group == "colour" else 1]
    assert verdicts == {good: "good", wrong: "wrong"}


def fog(x0, x1, y0=0.0):
    """A box of one value from x0 to x1, 1 wide and high."""
    place = np.diag([(x1 - x0) / 2, 1, 1, 1])
    place[:2, 3] = x0, y0
    return ScalarVolume(np.full((3, 2, 2), 0.7), place)


THROUGH = Rays(
    [[-1, 0.5, 0.5], [-1, 0.2, 0.3], [0.5, 0.4, -2], [3, 0.1, 0.1]],
    [[1, 0, 0], [2, 0.3, 0.1], [0.1, 0, 1], [-3, 0.5, 0.7]],
)


def traced(volumes, marches=CLASSIFY, rays=THROUGH):
    with Renderer(volumes, marches) as renderer:
        return np.column_stack(renderer.trace(rays, cases.BACKGROUND, depth=True))


@pytest.mark.parametrize("step", [0.2, 0.9])
def test_two_halves_of_a_fog_are_the_whole_fog(step):
    march = replace(CLASSIFY, step=step)
    whole = traced([fog(0, 2), fog(0, 2, 8)], march)
    halves = traced([fog(0, 0.7), fog(0.7, 2)], march)
    np.testing.assert_allclose(halves[:, :4], whole[:, :4], rtol=2e-7)
    np.testing.assert_allclose(halves[:, 4], whole[:, 4], atol=0.15 * step)  # the mean of other midpoints
    length = 2 * np.hypot(1, np.hypot(0.15, 0.05))
    np.testing.assert_allclose(halves[1, 3], np.exp(-TABLE.sigma(0.7) * length), rtol=1e-6)


def ball(shape, centre=(0.8, 0.5, 0.5), size=1.6):
    """Values from 1 in the middle down, on a grid of its own over a cube about the centre."""
    axes = [np.linspace(-1, 1, n) for n in shape]
    values = 1.3 - 1.6 * np.sqrt(sum(x**2 for x in np.meshgrid(*axes, indexing="ij")))
    place = np.diag([*(size / (np.array(shape) - 1)), 1])
    place[:3, 3] = np.array(centre) - size / 2
    return ScalarVolume(values, place)


OTHER = TransferFunction([0.2, 0.5, 0.9], [(1, 0, 0), (0, 1, 0), (0, 0, 1)], [0, 0.9, 0.2], 0.3)
BALLS = [ball((26, 19, 20)), ball((17, 21, 18), (1.2, 0.3, 0.6), 2.1)]


def test_the_order_of_the_list_does_not_matter():
    marches = [CLASSIFY, replace(CLASSIFY, transfer=OTHER)]
    one, other = traced(BALLS, marches), traced(BALLS[::-1], marches[::-1])
    assert one[:, 3].max() < 0.9
    np.testing.assert_allclose(one, other, rtol=3e-7)


def test_without_marches_gradients_are_of_what_is_rendered_without_any():
    """A scan is seen through the table of its range; all along single rays, and to their ends."""
    volumes = [replace(FIT, provenance={"supersample": 2}), ball((7, 6, 5), FIT.corners.mean(0), 1.2)]
    rendered = marches_for([volumes[0], volumes[1].as_volume()], None)
    with Linearised(volumes, CAMERA) as seen:
        for march, wanted in zip(seen.medium.marches, rendered, strict=True):
            assert march.mode == wanted.mode and march.step == wanted.step
            assert (march.transfer and march.transfer.record()) == (wanted.transfer and wanted.transfer.record())
            assert (march.min_transmittance, march.min_weight, march.supersample) == (0, 0, 1)
    assert [march.mode for march in rendered] == ["emission-absorption", "transfer"]


def test_a_volume_and_an_empty_one_are_the_volume_alone():
    """Though the empty one's box would cut its rays."""
    march = replace(CLASSIFY, transfer=OTHER)
    with Renderer(BALLS[0], march) as renderer:
        alone = np.column_stack(renderer.trace(THROUGH, cases.BACKGROUND, depth=True)[:2])
    nothing = ScalarVolume(np.zeros((4, 4, 4)), ball((4, 4, 4), (1.43, 0.3, 0.6), 2.1).world_from_index)
    np.testing.assert_allclose(traced([BALLS[0], nothing], march), alone, rtol=3e-7)


def test_half_the_step_brings_a_quarter_of_the_error():
    """Second order, though volumes begin and end within each other."""
    smooth = TransferFunction([-3, 3], [(0.9, 0.5, 0), (0, 0.5, 1)], [0.05, 0.8], 0.2)  # no knot within
    values = np.random.default_rng(2).uniform(-2, 2, (2, 2, 2, 2))
    places = (np.eye(4), np.diag([1.3, 1.1, 0.9, 1]) + 0.2 * np.eye(4, k=3))
    cubes = [ScalarVolume(*each) for each in zip(values, places, strict=True)]  # smooth within
    fine, *coarse = (
        traced(cubes, replace(CLASSIFY, transfer=smooth, step=step))[:, :4] for step in (2e-3, 0.25, 0.125)
    )
    first, second = (np.abs(image - fine).max() for image in coarse)
    assert 1e-4 < first < 1e-1 and 3 < first / second < 5, (first, second)


def test_space_that_is_clear_in_all_is_leapt_over_and_changes_nothing():
    marches = [replace(CLASSIFY, transfer=OTHER), replace(CLASSIFY, transfer=replace(OTHER, values=OTHER.values + 0.6))]
    rays = cases.rays(BALLS[0].as_volume())
    with Renderer([BALLS[0], ball((26, 19, 20), (1.9, 0.5, 0.5), 3.6)], marches) as renderer:
        skipped, _ = renderer.trace(rays, cases.BACKGROUND)
        assert all(0.01 < grid.occupied_cells().mean() < 0.8 for grid in renderer.medium.grids)
        for grid in renderer.medium.grids:
            grid.occupy(np.ones(grid.cells, bool))
            grid.measure_occupancy()
        whole, _ = renderer.trace(rays, cases.BACKGROUND)
    np.testing.assert_array_equal(skipped, whole)


def test_signed_extinctions_that_cancel_are_a_limit_not_a_division():
    """sigma 0.5 of one and -0.5 of another: T is 1, and what is emitted is its integral."""
    one, other = (
        Volume(np.full((2, 2, 2), s), np.full((2, 2, 2, 3), c), np.eye(4), Activation("identity", colour="identity"))
        for s, c in ((0.5, 0.2), (-0.5, 0.6))
    )
    ray = Rays([[-1, 0.5, 0.5]], [[1, 0, 0]])
    image = traced([one, other], EXACT, ray)[0]
    shade = 0.28209479177387814  # of the first harmonic
    np.testing.assert_allclose(image[3], 1, rtol=1e-7)
    np.testing.assert_allclose(image[:3], (0.5 * 0.2 - 0.5 * 0.6) * shade + np.array(cases.BACKGROUND), rtol=1e-6)
