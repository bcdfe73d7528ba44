"""Law: a volume in normalised device coordinates is marched as loops along straight lines there are, and its gradients
are their slopes."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
import reference
from whole import whole

from raymarch.geometry.boxes import affine_of_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.geometry.rays import Rays
from raymarch.gradients.check import check_rows
from raymarch.gradients.check_sample import crop_met
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import GROUPS
from raymarch.plot.volumes import slices
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer
from raymarch.volumes.volume import Volume

EXACT = March(step=0.47, min_transmittance=0.0, min_weight=0.0, batch=cases.FEW)
JITTERED = replace(EXACT, jitter=1.0, step_jitter=0.4, seed=5)  # samples go one by one, which compiles in half the time
NEAR = 0.8
HALF = np.array([1.6, 1.2, 1.0])  # of the box in NDC
REFERENCE = cases.motion((1, 2, -1), 0.7, (0.3, -0.2, 0.5))  # pose of the reference camera


def scene(degree=1, seed=0) -> Volume:
    """Random values in a frustum that is turned in the world."""
    rng = np.random.default_rng(seed)
    shape = 7, 6, 5
    density, features = rng.normal(size=shape), rng.normal(0, 0.7, (*shape, 3 * (degree + 1) ** 2))
    activation = replace(cases.volume().activation, scale=1.5)
    place = affine_of_box([-HALF, HALF], shape)
    return Volume(density, features, place, activation, ndc_from_world=ndc_of_frustum(REFERENCE, NEAR, 1.9))


def seen_from(place, angle, fov=1.0) -> Camera:
    """Camera by its place before the reference camera, turned about that one's up."""
    own = cases.motion((0.1, 1, 0.05), angle, place)
    return Camera.from_fov(REFERENCE @ own, fov, 3, 2)


CAMERAS = {
    "before the near plane": seen_from((0.1, 0.05, -0.1), 0.1),
    "behind the reference camera": seen_from((-0.3, 0.2, 0.7), -0.2),
    "within": seen_from((0.1, 0.1, -1.7), 0.3),
    "within, looking back": seen_from((0.1, 0.1, -2.3), 2.8),
    "some rays away": seen_from((0.1, 0.1, -0.2), 1.5, 2.0),
}
RAYS = [camera.rays() for camera in CAMERAS.values()]
EVERY = Rays(np.concatenate([r.origin for r in RAYS]), np.concatenate([r.direction for r in RAYS]))


@pytest.mark.parametrize(("degree", "march"), [(0, JITTERED), whole(1, EXACT)], ids=["0", "1"])
def test_image_and_gradient_are_the_reference(degree, march):
    v, rng, met = scene(degree), np.random.default_rng(1), []
    for camera in CAMERAS.values():
        with Linearised(v, camera, background=cases.BACKGROUND, march=march) as seen:
            d_image = rng.normal(size=(len(seen.rays), 4))
            own = seen.buffer.fields.jitter.to_numpy()[: len(seen.rays)] if march.jittered else None
            image, gradient = seen.image(), seen.adjoint(d_image)
        call = v, seen.rays, march.step * v.voxel, cases.BACKGROUND
        wanted, (d_density, d_features) = (
            reference.march(*call, jitter=own),
            reference.march_gradient(*call, d_image, jitter=own),
        )
        np.testing.assert_allclose(image, wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(gradient.density, d_density, rtol=0, atol=1e-12)
        np.testing.assert_allclose(gradient.colour, d_features, rtol=0, atol=1e-12)
        met.append(wanted[:, 3] < 1)
    assert all(some.any() for some in met) and not np.all(met)


def test_depth_is_the_distance_in_the_world():
    v = scene(0)
    with Renderer(v, JITTERED) as renderer:
        _, depth = renderer.trace(EVERY, depth=True)
        own = renderer.buffer.fields.jitter.to_numpy()[: len(EVERY)]
    np.testing.assert_allclose(depth, reference.depth(v, EVERY, JITTERED.step * v.voxel, jitter=own), rtol=1e-6)


@pytest.mark.parametrize(
    ("where", "degree"),
    [*(pytest.param(where, 0, id=where) for where in CAMERAS), whole("within", 1, id="of degree 1")],
)
def test_every_parameter_passes_the_dot_test_and_the_difference(where, degree):
    with Linearised(scene(degree), CAMERAS[where], background=cases.BACKGROUND, march=JITTERED) as seen:
        rows = check_rows(seen, pairs=2)
    assert [row.parameter for row in rows] == list(GROUPS)
    for row in rows:
        assert row.dot < 1e-12, row
        assert row.difference < 1e-7, row


def test_a_volume_that_is_moved_and_grown_looks_the_same():
    v, motion = scene(0), cases.motion((0, 1, 2), 0.4, (1, 0, 2), scale=3.0)
    origin, direction = EVERY.origin @ motion[:3, :3].T + motion[:3, 3], EVERY.direction @ motion[:3, :3].T
    with Renderer(v, JITTERED) as renderer:
        image, depth = renderer.trace(EVERY, depth=True)
    with Renderer(v.moved(motion), JITTERED) as renderer:
        again, farther = renderer.trace(Rays(origin, direction), depth=True)
    np.testing.assert_allclose(again, image, atol=1e-6)
    np.testing.assert_allclose(farther, 3 * depth, rtol=1e-6)


def test_a_check_takes_the_part_that_rays_meet_most():
    shape = 70, 20, 66
    density = np.full(shape, -9.0)
    density[60:64, 8:12, 2:6] = 9.0
    v = replace(
        scene(0), density=density, features=np.zeros((*shape, 3)), world_from_index=affine_of_box([-HALF, HALF], shape)
    )
    part = crop_met(v, seen_from((0.5, 0.0, 0.0), 0.0), 0)
    assert part.shape == (64, 20, 64)
    assert (part.density > 0).sum() == 64
    np.testing.assert_array_equal(part.ndc_from_world, v.ndc_from_world)
    np.testing.assert_allclose(part.world_from_index @ (63, 0, 0, 1), v.world_from_index @ (69, 0, 0, 1))


def test_a_plot_is_in_the_frustums_own_coordinates():
    first, *_ = slices(scene())
    assert (first.get_xlabel(), first.get_title()) == ("x [NDC]", "z = 0")
    np.testing.assert_allclose(first.get_xlim(), (-1.83, 1.83), atol=0.01)
