"""Law: a camera is found from its image, and cameras of a set are moved towards what they were."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from drive import BALL_BOX, ball_views
from whole import whole

import raymarch as rm
from raymarch.device.ray_buffer import size_of as bytes_of_buffer
from raymarch.errors import RaymarchError
from raymarch.fitting import clock
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.alignment import _pixels, align_cameras, similarity, transform_camera
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.geometry.orbit import orbit
from raymarch.geometry.pose import exp_rigid, twist_about
from raymarch.gradients.parameters import Parameters
from raymarch.gradients.projection import Projection, out_of_sight, start_at_near
from raymarch.gradients.tangents import bytes_of_tangents
from raymarch.registration import refine as refining
from raymarch.registration import register as levels
from raymarch.registration import register as module
from raymarch.registration.intrinsics import move_intrinsics, require_common_lens
from raymarch.registration.normal_equations import DAMPING, fit_exposures, move_of
from raymarch.registration.pyramid import MIN_PIXELS_A_SAMPLE, Pyramid, remove_exposure, shrink_camera
from raymarch.registration.refine import memory_of_moves, rays_a_view, refine
from raymarch.registration.register import register
from raymarch.rendering.renderer import render
from raymarch.views.exposure import normalise_exposures
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume


def thing() -> Volume:
    """Three soft blobs of three colours."""
    centres = np.array([[0.4, 0, 0.1], [-0.3, 0.4, -0.2], [-0.1, -0.4, 0.5]])

    def near(p):
        return np.exp(-8 * ((p[..., None, :] - centres) ** 2).sum(-1))

    colour = np.array([[0.9, 0.2, 0.2], [0.2, 0.9, 0.2], [0.2, 0.3, 0.9]])
    return Volume.from_function(
        lambda p: 12 * near(p).sum(-1), lambda p: near(p) @ colour / near(p).sum(-1)[..., None], shape=(20, 20, 20)
    )


TRUE = Camera.look_at((0.5, -4, 1), width=32, height=28)


def disturbed(camera: Camera, seed: int, degrees=10.0, share=0.1) -> Camera:
    """Turned about the origin, moved by a share of the distance."""
    axis, way = np.random.default_rng(seed).normal(size=(2, 3))
    unit = np.concatenate([share * way / np.linalg.norm(way), np.deg2rad(degrees) * axis / np.linalg.norm(axis)])
    return replace(
        camera,
        world_from_camera=camera.world_from_camera @ exp_rigid(twist_about(camera.world_from_camera, (0, 0, 0)) @ unit),
    )


def off(a: Camera, b: Camera) -> float:
    return float(np.abs(a.world_from_camera - b.world_from_camera).max())


@pytest.mark.parametrize("seed", range(3))
def test_a_pose_is_found_from_ten_degrees_and_a_tenth_of_the_distance(seed):
    start = disturbed(TRUE, seed)
    found = register(thing(), render(thing(), TRUE), start)
    assert found.converged
    assert found.error < 1e-5
    assert off(found.camera, TRUE) < 1e-4 < 0.1 < off(start, TRUE)


def test_what_a_mask_takes_out_does_not_count():
    """Somebody stands before the object: with a mask, at blurred levels and the sharp one, the pose is what it was."""
    image = render(thing(), TRUE)
    mask = np.ones((28, 32), bool)
    mask[8:22, 4:13] = False
    image[~mask] = [1.0, 0.0, 0.9]
    start = disturbed(TRUE, 1, 5, 0.05)
    masked, spoilt = (register(thing(), image, start, mask=each) for each in (mask, None))
    assert off(masked.camera, TRUE) < 2e-4 < 1e-2 < off(spoilt.camera, TRUE)
    assert masked.converged and masked.error < 1e-4 < spoilt.error


@pytest.mark.parametrize("blur", [*module.BLURS])
def test_a_level_s_residual_is_blind_to_what_the_mask_takes_out(blur):
    """Where a mask is False neither the image nor the rendering changes it, whatever the blur."""
    mask = np.ones((28, 32), bool)
    mask[4:24, 10:28] = False
    image = np.random.default_rng(0).uniform(size=(28, 32, 3))
    spoilt = np.where(mask[..., None], image, 9.0)
    one, other = (levels.BlurLevel(each, mask, TRUE, blur, ("pose",), thing().corners, 0) for each in (image, spoilt))
    np.testing.assert_array_equal(one.target, other.target)
    if blur:
        seen = levels.BlurLevel(image, mask, TRUE, blur, ("pose",), thing().corners, 0)._blurred(image.reshape(-1, 3))
        np.testing.assert_allclose(seen, one.target, atol=1e-12)


def test_a_mask_that_takes_nothing_out_changes_nothing():
    image, start = render(thing(), TRUE), disturbed(TRUE, 2, 3, 0.03)
    with_mask, without = (register(thing(), image, start, mask=each) for each in (np.ones((28, 32), bool), None))
    np.testing.assert_allclose(with_mask.camera.world_from_camera, without.camera.world_from_camera, atol=1e-6)


def test_a_large_image_is_compared_at_some_of_the_pixels_that_count(monkeypatch):
    mask = np.zeros((28, 32), bool)
    mask[:, 16:] = True
    monkeypatch.setattr(levels, "MAX_FINE_PIXELS", 100)
    sharp = levels.BlurLevel(np.zeros((28, 32, 3)), mask, TRUE, 0.0, ("pose",), thing().corners, 0)
    assert len(np.unique(sharp.pixels)) == 100 and mask.reshape(-1)[sharp.pixels].all()


def test_lens_and_exposure_are_found_with_the_pose():
    v = thing()
    lens = replace(TRUE, focal=(TRUE.focal[0] * 1.03, TRUE.focal[1] * 0.98), principal=(16.6, 13.3))
    image = render(v, lens) * [0.9, 1.1, 1.0] + [0.05, 0.0, -0.02]
    groups = ("pose", "focal", "principal_point", "exposure")
    found = register(v, image, disturbed(TRUE, 0, 3, 0.03), groups, steps=60)
    assert found.error < 1e-5
    np.testing.assert_allclose(found.exposure, [0.9, 1.1, 1.0, 0.05, 0, -0.02], atol=1e-3)
    np.testing.assert_allclose(found.camera.focal, lens.focal, rtol=3e-3)


def test_a_lens_is_found_with_the_pose_and_the_focal_length():
    v = thing()
    true = replace(TRUE, focal=(TRUE.focal[0] * 1.02, TRUE.focal[1] * 0.99), lens=Lens("radial", (-0.3, 0.2)))
    start = replace(disturbed(TRUE, 0, 3, 0.03), lens=Lens("radial", (0.0, 0.0)))
    found = register(v, render(v, true), start, ("pose", "focal", "lens"), steps=60)
    assert found.error < 1e-5
    np.testing.assert_allclose(found.camera.lens.coefficients, (-0.3, 0.2), atol=0.02)


def test_a_move_of_the_lens_stops_before_it_folds_over():
    camera = replace(TRUE, lens=Lens("simple_radial", (-0.1,)))
    folds = np.array([-30.0])
    assert move_intrinsics(camera, lens=folds) is camera
    assert -5 < move_intrinsics(camera, lens=folds / 4).lens.coefficients[0] < -0.1
    assert move_intrinsics(camera, lens=-folds).lens.coefficients == pytest.approx((29.9,))
    for cameras, said in (([TRUE], "the camera is a pinhole"), ([TRUE, camera], "models pinhole, simple_radial, want")):
        with pytest.raises(RaymarchError, match=said):
            require_common_lens(cameras)


@pytest.mark.parametrize(
    ("image", "groups", "said"),
    [
        (np.zeros((28, 32, 3)), ("pose", "lens"), "the camera is a pinhole, whose lens has no numbers"),
        (np.zeros((3, 3, 3)), ("pose",), r"image has shape \(3, 3, 3\), want \(28, 32, 3 or 4\)"),
        (np.full((28, 32, 3), np.nan), ("pose",), r"image is nan at \(0, 0, 0\), want numbers in 0..1"),
        (
            np.full((28, 32, 3), 255.0),
            ("pose",),
            "image has 255 at its brightest, want numbers in 0..1",
        ),
        (np.zeros((28, 32, 3)), ("pose", "box"), "parameters have 'box', want some of pose"),
    ],
)
def test_what_cannot_be_registered_is_said(image, groups, said):
    with pytest.raises(RaymarchError, match=said):
        register(thing(), image, TRUE, groups)


AWAY = [
    Camera.look_at((0.5, -4, 1), (0.5, -8, 1), width=32, height=28),  # turned round
    Camera.look_at((0.5, -4, 1), (4, -2, 1), width=32, height=28),  # the box is left of the image
    Camera.look_at((0.5, -4, 1), (0.5, -4, 3), up=(0, 1, 0), width=32, height=28),  # and below it
    replace(TRUE, principal=(1e6, 14.0)),
]


class Empty:
    """Stands for `Linearised`: images in which the volume is nothing, or a half with slopes that lead nowhere."""

    def __init__(self, *_, transmittance=1.0, slope=0.0, dtype=np.float64, **__):
        self.transmittance, self.slope, self.looks, self.count, self.dtype = transmittance, slope, 0, 0, dtype

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def set_camera(self, camera, exposure, pixels):
        self.looks, self.count = self.looks + 1, camera.width * camera.height

    def image(self):
        return np.full((self.count, 4), self.transmittance)

    def jacobian(self, parameters):
        return self.slope * np.random.default_rng(0).normal(size=(self.count, 4, 6))


@pytest.mark.parametrize("groups", [("pose",), ("pose", "exposure"), ("exposure",)])
@pytest.mark.parametrize("start", AWAY, ids=["back", "left", "below", "principal"])
def test_a_start_that_looks_away_is_said_before_anything_is_made(start, groups, monkeypatch):
    monkeypatch.setattr(module, "Linearised", None)
    said = r"sees nothing of the volume: its box lies outside the image; turn it to the box's centre, \(0, 0, 0\)$"
    with pytest.raises(RaymarchError, match=said):
        register(thing(), np.zeros((28, 32, 3)), start, groups)


def test_a_start_that_sees_only_what_is_transparent_is_said_after_one_image(monkeypatch):
    empty = Empty()
    monkeypatch.setattr(module, "Linearised", lambda *_, **__: empty)
    with pytest.raises(RaymarchError, match="what of its box is in the image is transparent; turn it to"):
        register(thing(), np.zeros((28, 32, 3)), TRUE)
    assert empty.looks == 1


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("blur", [*module.BLURS])
def test_a_residual_says_in_what_precision_its_image_was_made(blur, precision):
    """The solver takes it to be rounded so: else noise is searched for a way down until there are no steps left."""
    level = levels.BlurLevel(np.full((28, 32, 3), 0.4), None, TRUE, blur, ("pose",), thing().corners, 0)
    residual, _ = level.linearise(Empty(transmittance=0.5, dtype=precision), (TRUE, np.zeros(6)))
    assert residual.dtype == precision
    np.testing.assert_allclose(residual, 0.1, rtol=1e-6)


@pytest.mark.parametrize("slope", [1e-12, 1e-6, 1e-3, 1.0])
def test_a_search_that_leads_nowhere_ends_within_its_steps_and_says_so(slope, monkeypatch):
    half = Empty(transmittance=0.5, slope=slope)
    monkeypatch.setattr(module, "Linearised", lambda *_, **__: half)
    found = register(thing(), np.zeros((28, 32, 3)), TRUE, steps=7)
    assert not found.converged
    assert found.error > 0.1
    assert found.steps <= 7 * len(module.BLURS)
    assert half.looks <= 9 * len(module.BLURS)
    assert np.linalg.norm(found.camera.position) <= levels.MAX_DISTANCE_RATIO * np.linalg.norm(TRUE.position)


def test_a_step_out_of_sight_is_none_and_none_is_endless():
    level = levels.BlurLevel(np.zeros((28, 32, 3)), None, TRUE, 0.0, ("pose",), thing().corners, 0)
    gone = [*AWAY, replace(TRUE, world_from_camera=TRUE.world_from_camera @ exp_rigid([0, 0, 1e9, 0, 0, 0]))]
    for camera in gone:
        r, _ = level.linearise(None, (camera, np.array(module.NEUTRAL_EXPOSURE)))
        assert np.isinf(r).all()
    for size in (1e-3, 1.0, 1e3, 1e150):
        camera, _ = level.retract((TRUE, None), np.array([size, 0, 0, 0, 0, 0]))
        moved = min(size, levels.MAX_STEP) * np.linalg.norm(TRUE.position)
        np.testing.assert_allclose(np.linalg.norm(camera.position - TRUE.position), moved)


def test_what_an_image_with_alpha_is_held_to():
    """Its colour over the background, and the transmittance that straight alpha leaves."""
    image = np.random.default_rng(0).uniform(0, 1, (28, 32, 4))
    colour, alpha = image[..., :3], image[..., 3:]
    target = module._target(image, TRUE, (0.2, 0.5, 0.9))
    np.testing.assert_allclose(target[..., :3], alpha * colour + (1 - alpha) * [0.2, 0.5, 0.9], atol=1e-12)
    np.testing.assert_allclose(target[..., 3:], 1 - alpha, atol=1e-12)
    np.testing.assert_array_equal(module._target(colour, TRUE, "white"), colour)


@pytest.mark.parametrize(("count", "of"), [(28, 28), (7, 28), (5, 28)])
def test_a_blur_leaves_what_is_even_as_it_is(count, of):
    """And a ramp in its middle, where nothing is cut off: its weights' means are the parts' middles."""
    weights = levels._gaussian(count, of, 1.5)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-12)
    middle = (np.arange(count) + 0.5) * of / count
    inside = (middle > 9) & (middle < of - 9)
    np.testing.assert_allclose((weights @ (np.arange(of) + 0.5))[inside], middle[inside], rtol=1e-3)


def test_what_is_out_of_sight_meets_no_ray():
    """A box of points is out of sight only if no pixel's ray comes near it; in the middle of the image it never is."""
    rng = np.random.default_rng(0)
    hidden = 0
    for _ in range(300):
        camera = Camera.look_at(rng.normal(0, 3, 3), rng.normal(0, 3, 3), fov=0.9, width=16, height=12)
        corners = thing().corners * 0.3
        rays = camera.rays()
        with np.errstate(divide="ignore"):
            ends = (np.array([[[-0.3]], [[0.3]]]) - rays.origin) / rays.direction
        near, far = ends.min(0).max(1), ends.max(0).min(1)
        met = bool(((near < far) & (far > 0)).any())
        assert not (met and out_of_sight(camera, corners))
        hidden += out_of_sight(camera, corners)
    assert 30 < hidden < 300
    assert not out_of_sight(TRUE, thing().corners)


def test_a_similarity_of_cameras_is_found_and_taken_back():
    cameras = ball_views().cameras
    moved = np.eye(4)
    moved[:3, :3] = 1.7 * exp_rigid([0, 0, 0, 0.3, -1.0, 0.5])[:3, :3]
    moved[:3, 3] = 1.0, -2.0, 3.0
    others = [transform_camera(camera, moved) for camera in cameras]
    np.testing.assert_allclose(similarity(cameras, others), moved, atol=1e-12)
    for a, b in zip(align_cameras(others, cameras), cameras, strict=True):
        assert off(a, b) < 1e-12


POINTS = np.random.default_rng(0).uniform(-0.6, 0.6, (40, 3))


def test_cameras_that_err_together_are_aligned_by_what_they_see():
    """Distances that err alike and elevations that err alike move cameras' positions, and not what is in the box."""
    cameras = [Camera.look_at(4 * np.array([np.cos(a), np.sin(a), 0.8])) for a in np.linspace(0, 6, 12)]
    moved = np.eye(4)
    moved[:3, :3] = 1.2 * exp_rigid([0, 0, 0, 0.1, -0.2, 0.3])[:3, :3]
    moved[:3, 3] = 0.3, 0.1, -0.2
    box = np.array([[-1.0, -1, -1], [1, 1, 1]])

    def apart(transform):
        seen = [(_pixels(transform_camera(a, transform), POINTS)[0], _pixels(b, POINTS)[0]) for a, b in pairs]
        return np.sqrt(np.mean([(a - b) ** 2 for a, b in seen]))

    others = [transform_camera(camera, moved) for camera in cameras]
    np.testing.assert_allclose(similarity(others, cameras, box), np.linalg.inv(moved), atol=1e-9)
    up = [replace(c, world_from_camera=c.world_from_camera @ exp_rigid([0, 0.02, 0, -0.005, 0, 0])) for c in others]
    pairs = list(zip(up, cameras, strict=True))
    assert apart(similarity(up, cameras, box)) < 0.5 * apart(similarity(up, cameras))
    np.testing.assert_allclose(similarity(cameras[:1], cameras[:1], box), np.eye(4), atol=1e-12)  # tells no scale


def test_where_points_are_seen_and_how_that_moves():
    camera = Camera.look_at((3, -2, 1), width=40, height=30)
    points = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    _at, slope, depth = _pixels(camera, points)
    rays = camera.rays(np.zeros(1, int))
    corner, _, _ = _pixels(camera, rays.origin + 2 * rays.direction)
    np.testing.assert_allclose(corner, [[0.5, 0.5]], atol=1e-9)
    assert (depth > 0).all()
    for a in range(3):
        h = 1e-6 * np.eye(3)[a]
        difference = (_pixels(camera, points + h)[0] - _pixels(camera, points - h)[0]) / 2e-6
        np.testing.assert_allclose(slope[:, :, a], difference, rtol=1e-6, atol=1e-6)


def test_the_normal_equations_of_a_bundle_are_those_of_its_least_squares():
    """Against one dense matrix of all cameras' numbers and the shared one, small residuals weighing alike."""
    rng = np.random.default_rng(0)
    slopes, residual = rng.normal(size=(3, 40, 7, 4)), rng.uniform(-0.1, 0.1, (3, 40, 4))
    dense = np.zeros((3, 40, 4, 3 * 6 + 1))
    for v in range(3):
        dense[v, ..., 6 * v : 6 * v + 6] = slopes[v, :, :6].transpose(0, 2, 1)
        dense[v, ..., 18] = slopes[v, :, 6]
    J, r = dense.reshape(-1, 19), residual.ravel()
    H = J.T @ J
    H += np.diag(DAMPING * np.diag(H) + 1e-9 * np.diag(H).max())
    np.testing.assert_allclose(move_of(residual, slopes), -np.linalg.solve(H, J.T @ r), rtol=0, atol=1e-12)


def test_rays_that_do_not_count_leave_the_others_moves_as_they_are():
    """As of a view whose mask leaves no pixel of a smaller image whole: it stays, and spoils nothing."""
    rng = np.random.default_rng(2)
    slopes, residual = rng.normal(size=(3, 40, 7, 4)), rng.uniform(-0.1, 0.1, (3, 40, 4))
    residual[1] = np.nan
    move = move_of(residual, slopes)
    np.testing.assert_array_equal(move[6:12], 0.0)
    others = move_of(residual[[0, 2]], slopes[[0, 2]])
    np.testing.assert_allclose(move[[*range(6), *range(12, 19)]], others, rtol=1e-9)


def test_a_ray_far_off_counts_less_in_the_normal_equations():
    rng = np.random.default_rng(1)
    slopes, residual = rng.normal(size=(1, 60, 6, 4)), rng.uniform(-0.01, 0.01, (1, 60, 4))
    spoilt = residual.copy()
    spoilt[0, 0] = 10.0
    robust = np.abs(move_of(spoilt, slopes) - move_of(residual, slopes)).max()
    plain = np.linalg.lstsq(slopes[0].transpose(0, 2, 1).reshape(-1, 6), (residual - spoilt).ravel(), rcond=None)[0]
    assert robust < 0.1 * np.abs(plain).max()


def test_a_pyramid_is_the_mean_of_its_pixels_and_shows_no_less_than_the_volume():
    views = ball_views()
    pyramid, (_, height, width, _) = Pyramid(views), views.images.shape
    whole = np.stack(pyramid.images(1))
    assert whole.shape == (len(views), height * width, 4)
    np.testing.assert_allclose(whole[2, :, :3].reshape(height, width, 3), views.rgb(2), atol=1e-6)
    half = np.stack(pyramid.images(2)).reshape(len(views), height // 2, width // 2, 4)
    np.testing.assert_allclose(half[1, 3, 4], whole[1].reshape(height, width, 4)[6:8, 8:10].mean((0, 1)), atol=1e-6)
    assert pyramid.factor_for(2 * width) == 1
    assert pyramid.factor_for(2) > 1
    for samples in range(2, 3 * width):
        factor = pyramid.factor_for(samples)
        assert factor == 1 or min(height, width) // factor >= MIN_PIXELS_A_SAMPLE * samples
    camera = views.cameras[0]
    small = shrink_camera(camera, 2)
    assert (small.width, small.height) == (width // 2, height // 2)
    assert small.focal[0] == camera.focal[0] / 2
    assert small.principal[1] == camera.principal[1] / 2


@pytest.mark.parametrize("samples", [24, 60, 300])
def test_images_that_cameras_are_moved_by_take_no_more_than_is_told(samples):
    """Those that are kept, a quarter as large, half and as they are, and the one that is made smaller."""
    cameras = orbit((0, 0, 0), 4.0, 3, like=Camera.look_at((4, 0, 0), width=320, height=240))
    views = Views(cameras, np.full((3, 240, 320, 4), 9, np.uint8))
    pyramid = Pyramid(views)
    tracemalloc.start()
    pyramid.images(pyramid.factor_for(samples))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.8 < peak / memory_of_moves(views, samples)["images of the moves"] < 1.1


@pytest.mark.parametrize("shared", [whole(()), ("focal", "principal_point")])
def test_a_move_of_the_cameras_takes_no_more_than_is_told(shared):
    """On the host; the device's part is what its owners say that they take."""
    views = ball_views()
    with Fitter(views, SETTINGS, box=BALL_BOX) as fitter, refining._Movement(fitter, ("pose", *shared)) as movement:
        movement.move()  # all is compiled
        tracemalloc.start()
        movement.move()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        rays, columns = movement.buffer.capacity, len(movement.dots)
    assert rays == rays_a_view(len(views)) * len(views)
    told = memory_of_moves(views, 24, shared)["moves"] - bytes_of_buffer((rays,)) - bytes_of_tangents(rays, columns)
    assert 0.8 < peak / told < 1.1


def test_exposures_taken_out_leave_what_was_there():
    rng = np.random.default_rng(2)
    true = np.concatenate([rng.uniform(0.2, 0.8, (2, 30, 3)), rng.uniform(0, 1, (2, 30, 1))], -1)
    exposures = np.array([[0.9, 1.1, 1.0, 0.05, 0.0, -0.02], [1.1, 0.9, 1.0, -0.05, 0.0, 0.02]])
    behind = true[..., 3:] * np.array([1.0, 0.5, 0.0])
    taken = true.copy()
    taken[..., :3] = (true[..., :3] - behind) * exposures[:, None, :3]
    taken[..., :3] += (1 - true[..., 3:]) * exposures[:, None, 3:] + behind
    np.testing.assert_allclose(remove_exposure(taken, exposures, (1.0, 0.5, 0.0)), true, atol=1e-12)


def test_a_movement_that_fails_to_begin_leaves_nothing_on_the_device(monkeypatch):
    """Its second owner is refused: the first is given back."""
    taken = []

    class Noted(refining.RayBuffer):
        def __init__(self, capacity):
            super().__init__(capacity)
            taken.append(self)

    def refused(*_):
        raise RaymarchError("planted")

    monkeypatch.setattr(refining, "RayBuffer", Noted)
    monkeypatch.setattr(refining, "RayTangents", refused)
    with pytest.raises(RaymarchError, match="planted"):
        refine(ball_views(), settings=SETTINGS, box=BALL_BOX)
    assert len(taken) == 1
    assert taken[0]._fields is None


SETTINGS = preset(
    "quick", resolution=24, steps=400, rays=1024, sh_degree=0, hull=False, levels=((0.0, 0.5), (0.3, 1.0))
)


def test_disturbed_cameras_are_moved_towards_the_true_ones():
    views = ball_views()
    wrong = replace(views, cameras=[disturbed(c, i, 1.5, 0.015) for i, c in enumerate(views.cameras)])
    seen = []
    found = refine(wrong, settings=SETTINGS, box=BALL_BOX, show=lambda *report: seen.append(report))

    def errors(cameras):
        pairs = zip(align_cameras(cameras, views.cameras, BALL_BOX), views.cameras, strict=True)
        seen = [_pixels(a, POINTS)[0] - _pixels(b, POINTS)[0] for a, b in pairs]
        return np.sqrt(np.mean(np.square(seen)))

    assert errors(found.views.cameras) < 0.25 * errors(wrong.cameras)
    assert found.errors[-1] < 0.6 * found.errors[0]
    assert [error for _, error in seen] == list(found.errors)
    assert seen[-1][0] <= 1
    assert found.degrees.shape == found.share.shape == (len(views),)
    assert (found.exposures == [1, 1, 1, 0, 0, 0]).all()


def test_what_passes_before_the_first_step_is_not_of_the_time_of_a_refinement(monkeypatch):
    """Cameras move where that alone was longer, and as often; what a step takes is of it."""
    now = [1000.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0]))

    class Slow(refining._Movement):
        def __init__(self, *of):
            super().__init__(*of)
            now[0] += 60

    monkeypatch.setattr(refining, "_Movement", Slow)
    settings = replace(SETTINGS, steps=refining.FIRST_MOVE_STEP)
    settings = replace(settings, seconds=50.0)
    assert len(refine(ball_views(), settings=settings, box=BALL_BOX).errors) == 1
    step = refining.Fitter.step

    def slow(fitter):
        now[0] += 60
        return step(fitter)

    monkeypatch.setattr(refining.Fitter, "step", slow)
    assert len(refine(ball_views(), settings=settings, box=BALL_BOX).errors) == 0


def test_settings_that_a_refinement_does_not_ask_for_are_named():
    assert [name for name in refining.REFINEMENT_SETTINGS if f"`{name}`" not in refine.__doc__] == []


def test_a_lens_left_out_is_found_before_the_true_volume():
    """One change for all views, poses moving as they like."""
    v, lens = thing(), Lens("simple_radial", (-0.12,))
    like = Camera.look_at((1, 0, 0), fov=1.2, width=24, height=24)
    true = [replace(c, lens=lens) for up in (30, -25) for c in orbit((0, 0, 0), 2.2, 4, elevation=up, like=like)]
    images = np.stack([np.round(255 * render(v, camera)).astype(np.uint8) for camera in true])
    without = Views([replace(c, lens=Lens("simple_radial", (0.0,))) for c in true], images)
    settings = replace(SETTINGS, resolution=20, levels=((0.0, 1.0),))
    with Fitter(without, settings, box=v.box) as fitter, refining._Movement(fitter, ("pose", "lens")) as movement:
        fitter.grid.upload(v)
        for _ in range(20):
            movement.move()
    (found,) = {camera.lens.coefficients for camera in movement.cameras}
    assert abs(found[0] + 0.12) < 0.01
    assert movement.errors[-1] < 0.2 * movement.errors[0]


@pytest.mark.parametrize("bright", [1.2, 1.5, 2.0])
def test_what_is_clipped_tells_no_exposure(bright):
    """Half of the pixels or fewer of the brighter of two views are, and none of its gain is lost by them."""
    given = np.tile(np.linspace(0.02, 0.98, 400)[:, None], (2, 1, 4)) * np.ones(4)
    given[..., 3] = 0.0
    taken = np.stack([np.clip(given[0] * bright, 0, 1), given[1] / bright])
    taken[..., 3] = 0.0
    found = np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], (2, 1))
    for _ in range(40):
        gain, offset = found[:, None, :3], found[:, None, 3:]
        seen = np.concatenate([(taken[..., :3] - offset) / gain, taken[..., 3:]], axis=-1)
        found = fit_exposures(given, seen, found)
    np.testing.assert_allclose(found[0, :3] / found[1, :3], bright**2, rtol=0.01)


def test_exposures_beside_a_volume_are_those_of_the_gauge():
    """From any exposures so far, which the target comes without; views of few opaque pixels keep their own."""
    rng = np.random.default_rng(5)
    planted = normalise_exposures(
        np.concatenate([rng.uniform(0.6, 1.4, (4, 3)), rng.uniform(-0.1, 0.1, (4, 3))], axis=1)
    )
    image = np.concatenate([rng.uniform(0.1, 0.9, (4, 200, 3)), np.zeros((4, 200, 1))], axis=2)
    seen = image[..., :3] * planted[:, None, :3] + planted[:, None, 3:]
    sofar = np.concatenate([rng.uniform(0.8, 1.2, (4, 3)), rng.uniform(-0.05, 0.05, (4, 3))], axis=1)
    target = image.copy()
    target[..., :3] = (seen - sofar[:, None, 3:]) / sofar[:, None, :3]
    found = fit_exposures(image, target, sofar)
    for _ in range(2):  # the ridge leaves a hundredth of what is lacking
        target[..., :3] = (seen - found[:, None, 3:]) / found[:, None, :3]
        found = fit_exposures(image, target, found)
    np.testing.assert_allclose(found, planted, atol=1e-4)
    target[:, 10:, 3] = 1.0
    np.testing.assert_array_equal(fit_exposures(image, target, sofar), normalise_exposures(sofar))


def test_exposures_are_found_up_to_what_all_share():
    views = ball_views()
    rng = np.random.default_rng(0)
    gains = rng.uniform(0.7, 1.0, (len(views), 3))
    images = views.images.copy()
    images[..., :3] = np.round(images[..., :3] * gains[:, None, None])
    found = refine(replace(views, images=images), "exposure", SETTINGS, box=BALL_BOX)
    wanted = gains / np.exp(np.log(gains).mean(0))
    assert np.abs(found.exposures[:, :3] - wanted).mean() < 0.3 * np.abs(wanted - 1).mean()
    np.testing.assert_allclose(normalise_exposures(found.exposures), found.exposures, atol=1e-6)
    assert all(off(a, b) < 1e-9 for a, b in zip(found.views.cameras, views.cameras, strict=True))


def test_what_cannot_be_refined_is_said():
    with pytest.raises(RaymarchError, match="parameters have 'box', want some of pose, focal, principal_point, lens"):
        refine(ball_views(), ["pose", "box"])
    with pytest.raises(RaymarchError, match="settings have 30 steps, want 80 or more"):
        refine(ball_views(), settings=preset("quick", steps=30))
    table = rm.TransferFunction([0.0, 1.0], [(0, 0, 0), (1, 1, 1)], [0.0, 0.5])
    with pytest.raises(RaymarchError, match="settings have a table .* no camera is refined; leave it out"):
        refine(ball_views(), settings=replace(SETTINGS, mode="transfer", transfer=table, sh_degree=0))


@pytest.mark.parametrize("name", ["pose", "focal"])
def test_rays_from_a_near_plane_on_move_as_differences_say(name):
    """Where a fit's rays begin its refinement's do too: a turn of the camera moves their beginnings as well."""
    grid = np.linalg.inv(thing().world_from_index)[:3, :3]
    dot, h, some = np.random.default_rng(3).normal(size=6 if name == "pose" else 2), 1e-6, np.arange(0, 896, 50)

    def begun(by):
        camera = replace(TRUE, focal=tuple(np.array(TRUE.focal) + by * dot)) if name == "focal" else TRUE
        if name == "pose":
            camera = replace(TRUE, world_from_camera=TRUE.world_from_camera @ exp_rigid(by * dot))
        return start_at_near(0.7, camera.rays(some), [])[0]

    lies = Projection(TRUE, thing().world_from_index, 1.0)
    moves = [list(lies.tangent(TRUE.rays(some), Parameters(**{name: dot}))[:3])]
    _, ((origin, way, _),) = start_at_near(0.7, TRUE.rays(some), moves)
    there, back = begun(h), begun(-h)
    np.testing.assert_allclose(origin, (there.origin - back.origin) / (2 * h) @ grid.T, atol=1e-7)
    np.testing.assert_allclose(way, (there.direction - back.direction) / (2 * h) @ grid.T, atol=1e-7)


@pytest.mark.parametrize("start", [(0.0, 0.0, 0.0), (1e-3, 0.0, 0.0)])
def test_a_camera_that_begins_in_the_volumes_middle_is_found(start):
    """As in a room: its distance from there is no measure of how far it may move."""

    def shell(p):
        r = np.linalg.norm(p * (1, 1.2, 0.9), axis=-1)
        return 20.0 / (1 + np.exp(-40 * (r - 0.7)))

    room = Volume.from_function(shell, lambda p: np.clip(0.5 + 0.4 * np.sin(6 * p), 0, 1), shape=(20, 20, 20))
    true, begun = (
        Camera.look_at(at, np.array(at) + (0.5, -1, 0.2), fov=1.0, width=24, height=24)
        for at in ((0.1, 0.05, 0), start)
    )
    true = replace(
        true, world_from_camera=np.block([[begun.world_from_camera[:3, :3], np.c_[[0.1, 0.05, 0]]], [0, 0, 0, 1]])
    )
    found = register(room, render(room, true), begun)
    assert found.converged and off(found.camera, true) < 1e-4
