"""Law: nested boxes are marched as plain loops over each box of its own are, and their gradients are their slopes."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
import reference
from whole import whole

from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting import differentiable_passes
from raymarch.fitting.settings.objective import Regulariser
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import look_at
from raymarch.geometry.rays import Rays
from raymarch.gradients.check import check_rows
from raymarch.gradients.check_sample import crop_met
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import GROUPS
from raymarch.kernels.field.copies import fill
from raymarch.kernels.fit.regularise import EPS_DENSITY, TILE_EDGE
from raymarch.plot.volumes import slices
from raymarch.rendering.march_settings import March, require_seen
from raymarch.rendering.renderer import Renderer, render
from raymarch.rendering.shading import Shading
from raymarch.volumes.activation import Activation
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

EXACT = March(step=0.47, min_transmittance=0.0, min_weight=0.0, batch=cases.FEW)
JITTERED = replace(EXACT, jitter=1.0, step_jitter=0.4, seed=5)  # samples go one by one, which compiles in half the time
BOXES = 3
SIZE = 3, 2  # of each camera's image: the reference is loops of Python


def scene(degree=1, seed=0) -> Volume:
    """Random values in three boxes, turned in the world."""
    rng = np.random.default_rng(seed)
    _, affine = cases.placed("rotated")
    x, y, z = 6, 5, 4
    density = rng.normal(size=(BOXES * x, y, z))
    features = rng.normal(0, 0.7, (BOXES * x, y, z, 3 * (degree + 1) ** 2))
    return Volume(density, features, affine, replace(cases.volume().activation, scale=1.5), boxes=BOXES)


def cameras(v) -> list[Camera]:
    """In the innermost box, in the first shell, in the outermost, and outside all."""
    centre, reach = v.corners.mean(0), np.linalg.norm(v.corners[-1] - v.corners[0])
    ways = [(0.1, 0.05, 0.08), (0.9, 0.1, 0.2), (-0.5, 1.9, 0.4), (2.0, -2.5, 4.0)]
    poses = [look_at(centre + reach * np.array(way) / 2, centre + (0.02, 0.1, 0)) for way in ways]
    return [Camera.from_fov(pose, 1.3, *SIZE) for pose in poses]


def rays(v) -> Rays:
    several = [camera.rays() for camera in cameras(v)]
    return Rays(np.concatenate([r.origin for r in several]), np.concatenate([r.direction for r in several]))


def jitter_of(seen: Linearised) -> np.ndarray | None:
    """The jitter (ray, 2) of what is seen, None for none."""
    return seen.buffer.fields.jitter.to_numpy()[: len(seen.rays)] if seen.march.jittered else None


def test_the_nth_box_is_twice_as_large_as_the_one_within():
    v = scene()
    for n in range(1, BOXES):
        box, within = v.nested(n), v.nested(n - 1)
        np.testing.assert_allclose(box.corners.mean(0), v.corners.mean(0), atol=1e-12)
        np.testing.assert_allclose(np.ptp(box.corners, axis=0), 2 * np.ptp(within.corners, axis=0))
        np.testing.assert_array_equal(box.density, v.density[6 * n : 6 * (n + 1)])
        np.testing.assert_array_equal(box.features, v.features[6 * n : 6 * (n + 1)])
        assert box.activation.scale == 2 * within.activation.scale
        assert box.boxes == 1


@pytest.mark.parametrize(
    ("degree", "mode", "march"),
    [
        pytest.param(0, "emission-absorption", JITTERED, id="0-emission-absorption"),
        whole(0, "emission-absorption", EXACT, id="0-emission-absorption-in pairs"),
        whole(0, "x-ray", EXACT, id="0-x-ray"),
        whole(1, "additive", EXACT, id="1-additive"),
    ],
)
def test_image_and_gradient_are_the_reference(degree, mode, march):
    v = scene(degree)
    rng, step = np.random.default_rng(1), march.step * v.voxel
    for camera in cameras(v):
        with Linearised(v, camera, background=cases.BACKGROUND, march=replace(march, mode=mode)) as seen:
            d_image = rng.normal(size=(len(seen.rays), 4))
            how = {"mode": mode, "jitter": jitter_of(seen)}
            image, gradient = seen.image(), seen.adjoint(d_image)
        wanted = reference.march(v, seen.rays, step, cases.BACKGROUND, **how)
        d_density, d_features = reference.march_gradient(v, seen.rays, step, cases.BACKGROUND, d_image, **how)
        np.testing.assert_allclose(image, wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(gradient.density, d_density, rtol=0, atol=1e-12)
        if mode != "x-ray":
            np.testing.assert_allclose(gradient.colour, d_features, rtol=0, atol=1e-12)


def test_picture_and_depth_are_the_references():
    """Of samples that go in pairs, which the picture is as good as."""
    v, step = scene(0), EXACT.step * scene(0).voxel
    with Renderer(v, EXACT) as renderer:
        image, depth = renderer.trace(rays(v), cases.BACKGROUND, depth=True)
    np.testing.assert_allclose(image, reference.march(v, rays(v), step, cases.BACKGROUND), rtol=0, atol=1e-6)
    np.testing.assert_allclose(depth, reference.depth(v, rays(v), step), rtol=1e-6)


def test_normals_are_the_mean_slope_of_the_value_in_the_world():
    """That of each box by itself, whose sigma counts per world unit, by its differences along the world's axes."""
    v, wanted, through = scene(0), [], []
    for o, d in zip(rays(v).origin, rays(v).direction, strict=True):
        kept, T = reference.samples(v, o, d, EXACT.step * v.voxel, 0, 0)
        slope, met = np.zeros(3), set()
        for s in kept:
            n = int(s.p[0] // v.box_shape[0])
            box, index_from_world = reference.nested(v)[n]
            p, ways = s.p - [n * v.box_shape[0], 0, 0], 1e-6 * index_from_world[:3, :3].T
            ahead, back = (
                [box.activation.sigma(reference.gather(box.density, p + h * way)) for way in ways] for h in (1, -1)
            )
            slope, met = slope + s.weight * np.subtract(ahead, back), met | {n}
        wanted.append(-slope / np.linalg.norm(slope) * np.sign(slope @ d) if 1 - T > 0.01 else np.zeros(3))
        through.append(len(met))
    with Renderer(v, EXACT) as renderer:
        normals = [renderer.render(camera, normals=True).normals.reshape(-1, 3) for camera in cameras(v)]
    assert through.count(BOXES) > 5 and np.any(wanted, axis=1).mean() > 0.5
    np.testing.assert_allclose(np.concatenate(normals), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("how", [{}, {"shading": Shading()}, {"preintegrated": True}], ids=["plain", "lit", "exact"])
def test_a_table_reads_one_box_alone(how):
    table = TransferFunction([0, 1], np.eye(2, 3), [0.1, 0.5])
    march = replace(EXACT, mode="transfer", transfer=table, **how)
    with pytest.raises(RaymarchError, match=r"does not go through nested boxes; take volume.nested\(0\)") as said:
        Renderer(scene(0), march)
    assert "\n" not in str(said.value)
    require_seen(scene(0).nested(0), march)


@pytest.mark.parametrize(
    ("density", "colour", "mode"), [("identity", 0.0, "maximum"), ("softplus", 0.3, "emission-absorption")]
)
def test_what_boxes_are_not_seen_through_is_said_with_a_mode_that_they_are_seen_in(density, colour, mode):
    """Values alone are seen through a table where no mode is asked for; others by default as they are."""
    v = scene(0)
    v = replace(v, features=0 * v.features + colour, activation=Activation(density))
    asked = None if density == "identity" else March(mode="isosurface", iso=0.5, batch=cases.FEW)
    with pytest.raises(RaymarchError, match=rf"boxes; take volume.nested\(0\), the innermost, or mode {mode}$"):
        render(v, cameras(v)[3], march=asked)
    assert np.ptp(render(v, cameras(v)[3], march=March(mode=mode, batch=cases.FEW))) > 0.01


@pytest.mark.parametrize(
    ("which", "degree"),
    [*(pytest.param(which, 0, id=str(which)) for which in range(4)), whole(0, 1, id="of degree 1")],
)
def test_every_parameter_passes_the_dot_test_and_the_difference(which, degree):
    v = scene(degree)
    with Linearised(v, cameras(v)[which], background=cases.BACKGROUND, march=JITTERED) as seen:
        rows = check_rows(seen, pairs=2)
    assert [row.parameter for row in rows] == list(GROUPS)
    for row in rows:
        assert row.dot < 1e-12, row
        assert row.difference < 1e-7, row


def test_a_finer_level_has_the_values_of_the_coarser_in_each_box():
    coarse, fine = (BOXES * 4, 4, 4), (BOXES * 7, 7, 7)
    with Grid(fine, 0, slots=1, moments=True, boxes=BOXES) as grid:
        grid.set_level(coarse, np.eye(4))
        fill(grid.fields, *coarse, 0.0, 0.0)
        ramp = np.arange(4.0)[:, None, None] + np.zeros((4, 4, 4))
        density = np.concatenate([ramp + 10 * n for n in range(BOXES)])
        affine = np.eye(4)
        v = Volume(density, np.zeros((*coarse, 3)), affine, boxes=BOXES)
        grid.upload(v)
        grid.refine(fine)
        found, _ = grid.download()
        np.testing.assert_allclose(grid.world_from_index[:3, :3], 0.5 * np.eye(3))
    for n in range(BOXES):
        np.testing.assert_allclose(found[7 * n : 7 * (n + 1), 3, 2], 10 * n + np.arange(7) / 2)


@pytest.mark.parametrize("step", range(3))
def test_no_variation_counts_from_one_box_to_the_next(step):
    x, y, z = 6, 3, 4
    density = np.random.default_rng(step).normal(size=(BOXES, x, y, z))
    steady = np.zeros_like(density) + [[[[0]]], [[[7]]], [[[3]]]]
    losses, gradients = [], []
    with Grid((BOXES * x, y, z), 0, slots=1, boxes=BOXES) as grid, RayBuffer(1) as buffer:
        for each in (density, steady):
            grid.upload(Volume(each.reshape(-1, y, z), np.zeros((BOXES * x, y, z, 3)), np.eye(4), boxes=BOXES))
            grid.fields.density.grad.fill(0)
            with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
                differentiable_passes.regularise(
                    grid, buffer, Regulariser.named("tv_density", density.size), 5, step, 1.0
                )
            losses.append(buffer.fields.loss[None])
            gradients.append(grid.download_gradient()[0])
        shift = differentiable_passes._blocks(grid, 5, step)[2].to_list()
    wanted = 0.0
    for n in range(BOXES):
        for axis, first in enumerate((n * x, 0, 0)):
            edges = np.diff(density[n], axis=axis)
            within = (first + np.arange(edges.shape[axis]) + shift[axis]) % TILE_EDGE < TILE_EDGE - 1
            wanted += np.compress(within, np.hypot(edges, EPS_DENSITY) - EPS_DENSITY, axis=axis).sum()
    assert losses == pytest.approx([wanted * TILE_EDGE / (TILE_EDGE - 1), 0], rel=1e-12)
    assert gradients[0].any()
    assert not gradients[1].any()


def test_a_check_takes_every_so_many_samples_of_each_box():
    x, y, z = 70, 50, 66
    density = np.arange(2.0 * x * y * z).reshape(2 * x, y, z)
    v = Volume(density, np.zeros((2 * x, y, z, 3)), np.eye(4), boxes=2)
    part = crop_met(v, cameras(v)[0], 0)
    assert (part.boxes, part.box_shape) == (2, (24, 17, 22))
    for n in range(2):
        np.testing.assert_array_equal(part.nested(n).density, v.nested(n).density[::3, ::3, ::3])
    np.testing.assert_allclose(part.box, [(0, 0, 0), (69, 48, 63)])


def test_a_plot_is_of_the_innermost_box():
    v = scene()
    titles = [[ax.get_title() for ax in slices(each)] for each in (v, v.nested(0))]
    assert titles[0] == titles[1]


@pytest.mark.parametrize("boxes", [0, 4, 17, "2"])
def test_boxes_share_the_samples_evenly(boxes):
    v = scene()
    with pytest.raises(RaymarchError, match="boxes"):
        replace(v, boxes=boxes)
