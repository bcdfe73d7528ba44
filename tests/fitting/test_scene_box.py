"""Law: whether a scene has an end, and where its innermost box lies, is told from views, cameras and the set's box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.fitting.fit import fit
from raymarch.fitting.plan.bounds import BACKGROUND_BOXES, MAX_BOXES, MIN_SCENE_BOXES, box_of_scene, boxes_of_scene
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.geometry.orbit import orbit
from raymarch.io.volumes.volume_file import load, save
from raymarch.matching.points import MIN_POINTS
from raymarch.rendering.renderer import render
from raymarch.views.contents import is_bounded
from raymarch.views.views import Views

CENTRE = np.array([1.0, -2.0, 0.5])
RING = orbit(CENTRE, 4.0, 8, like=Camera.look_at((4, 0, 0), width=12, height=8))
NOISE = np.random.default_rng(0).integers(0, 256, (8, 8, 12, 3), dtype=np.uint8)
SCENE = Views(RING, NOISE)
FRAMED = np.pad(NOISE[:, 1:-1, 1:-1], ((0, 0), (1, 1), (1, 1), (0, 0)))
FISHEYES = [replace(camera, lens=Lens("fisheye", (0.0,) * 4)) for camera in RING]


def with_(**changes) -> Views:
    return replace(SCENE, **changes)


@pytest.mark.parametrize(
    ("views", "bounded"),
    [
        (SCENE, False),
        (with_(images=np.concatenate([NOISE, NOISE[..., :1]], -1)), True),
        (with_(images=np.concatenate([NOISE, np.full_like(NOISE[..., :1], 255)], -1)), False),
        (with_(images=np.full_like(NOISE, 7)), True),
        (with_(images=FRAMED), True),
        (with_(images=FRAMED, cameras=FISHEYES), False),
        (with_(images=255 - FRAMED, cameras=FISHEYES), True),
        (with_(box=[CENTRE - 1, CENTRE + 1]), True),
        (with_(box=[CENTRE - 9, CENTRE + 9]), False),
    ],
    ids=[
        *("photographs", "alpha", "opaque alpha", "one colour all over", "black around", "black around fisheyes"),
        *("white around fisheyes", "own box before the cameras", "own box about the cameras"),
    ],
)
def test_a_scene_has_an_end_or_not(views, bounded):
    assert is_bounded(views) is bounded


def test_the_box_is_about_what_the_cameras_look_at():
    np.testing.assert_allclose(box_of_scene(Survey(SCENE)), [CENTRE - 2, CENTRE + 2], atol=1e-9)


def test_of_cameras_that_look_one_way_the_box_is_ahead():
    lower, upper = box_of_scene(Survey(one_way()))
    assert lower[0] < 0 < upper[0]
    assert (lower + upper)[1] / 2 == pytest.approx(np.hypot(2, 2))


def one_way(points=None) -> Views:
    eyes = [(x, 0, z) for x in (-1, 0, 1) for z in (-1, 1)]
    cameras = [Camera.look_at(eye, np.add(eye, (0, 5, 0)), width=12, height=8) for eye in eyes]
    return Views(cameras, NOISE[:6], points=points)


def cloud(reach, count=1000, wild=0, centre=CENTRE):
    """Points all over a cube's faces, half a side `reach`, and some far out."""
    points = np.random.default_rng(1).uniform(-1, 1, (count, 3))
    points *= reach / np.abs(points).max(1, keepdims=True)
    points[:wild] *= 1e6
    return centre + points


@pytest.mark.parametrize("wild", [0, 9])
@pytest.mark.parametrize(
    ("reach", "boxes"), [(0.1, 1), (2.01, 2), (7.99, 3), (8.01, 4), (15.9, 4), (16.1, 5), (31.9, 5), (900, 9)]
)
def test_boxes_are_as_many_as_hold_the_points(reach, boxes, wild):
    """The innermost is 4 wide here, about what the cameras look at; points do not move it."""
    views = with_(points=cloud(reach, wild=wild))
    assert boxes_of_scene(Survey(views)) == min(max(boxes + BACKGROUND_BOXES, MIN_SCENE_BOXES), MAX_BOXES)
    np.testing.assert_array_equal(box_of_scene(Survey(views)), box_of_scene(Survey(SCENE)))


@pytest.mark.parametrize("points", [None, cloud(3.0, MIN_POINTS - 1)], ids=["no points", "too few"])
def test_without_points_boxes_are_as_many_as_ever(points):
    assert boxes_of_scene(Survey(with_(points=points))) == MIN_SCENE_BOXES
    np.testing.assert_array_equal(box_of_scene(Survey(one_way(points))), box_of_scene(Survey(one_way())))


def test_of_cameras_that_look_one_way_the_box_is_about_the_middle_half_of_the_points():
    middle = np.array([0.3, 40, -0.2])
    near, far = cloud(1.0, 501, centre=middle), cloud(7.7, 499, centre=middle)
    views = one_way(np.concatenate([near, far, [(1e6, 1e6, 1e6)]]))
    lower, upper = box_of_scene(Survey(views))
    np.testing.assert_allclose((lower + upper) / 2, middle, atol=0.1)
    np.testing.assert_allclose(upper - lower, 2, atol=0.3)
    assert boxes_of_scene(Survey(views)) == 4 + BACKGROUND_BOXES


def test_of_points_on_a_near_and_a_far_plane_the_box_is_about_the_near_one():
    """Bounds of a forward-facing set come as such planes: their middle is that of inverse depths, 1/2 and 1/30."""
    across = np.stack(np.meshgrid(np.linspace(-1, 1, 6), [0], np.linspace(-1, 1, 5)), -1).reshape(-1, 3)
    views = one_way(np.concatenate([across + (0, 2, 0), 15 * across + (0, 30, 0)]))
    lower, upper = box_of_scene(Survey(views))
    assert (lower + upper)[1] / 2 == pytest.approx(2 / (1 / 2 + 1 / 30))
    assert lower[1] == pytest.approx(2)
    assert boxes_of_scene(Survey(views)) == 5 + BACKGROUND_BOXES


def test_outward_looking_cameras_are_in_the_middle_of_their_points():
    cameras = [Camera.look_at(c.position, 2 * c.position - CENTRE, width=12, height=8) for c in RING]
    lower, upper = box_of_scene(Survey(with_(cameras=tuple(cameras), points=cloud(9.0))))
    np.testing.assert_allclose((lower + upper) / 2, CENTRE, atol=0.6)
    np.testing.assert_allclose(upper - lower, 18, atol=0.8)


def test_points_in_one_place_are_no_box():
    same = np.tile(CENTRE, (MIN_POINTS, 1))
    np.testing.assert_array_equal(box_of_scene(Survey(one_way(same))), box_of_scene(Survey(one_way())))
    assert boxes_of_scene(Survey(with_(points=same))) == MIN_SCENE_BOXES


def test_cameras_in_one_point_have_no_box():
    cameras = [Camera.look_at((0, 0, 0), (x, 1, 0), width=12, height=8) for x in (-1, 0, 1)]
    with pytest.raises(RaymarchError, match="all cameras stand in one point"):
        box_of_scene(Survey(Views(cameras, NOISE[:3])))


@pytest.mark.parametrize("steps", [2, 3, 5, 10, 20])
def test_a_fit_of_few_steps_does_not_end_for_being_as_faint_as_it_began(steps):
    """Less opaque than what counts as empty: its second level begins before a step or two can have changed that."""
    assert preset("photos").initial_alpha < preset("photos").prune_alpha
    result = fit(SCENE, preset("photos", steps=steps, resolution=16, sh_degree=0, rays=256, slots=1))
    assert (result.ended, result.history[-1].step) == ("done", steps)


def test_a_scene_is_fitted_in_nested_boxes_and_saved(tmp_path):
    """Walls of one colour a side, all beyond the innermost box: what is drawn comes near them."""
    images = np.stack([np.full((8, 12, 3), 40 + 25 * i, np.uint8) for i in range(8)])
    views = with_(images=images // 2 + np.arange(12, dtype=np.uint8)[:, None] * 10)
    how = {"resolution": 8, "sh_degree": 0, "rays": 256, "slots": 1, "levels": ((0.0, 1.0),), "initial_alpha": 0.05}
    settings = preset("photos", steps=120, **how)
    result = fit(views, settings)
    volume = result.volume
    assert volume.boxes == MIN_SCENE_BOXES == result.settings.boxes
    assert volume.box_shape == (8, 8, 8)
    error = np.abs(render(volume, RING[0]) - views.rgb(0)).mean()
    assert error < 0.1
    save(volume, tmp_path / "scene.h5")
    again = load(tmp_path / "scene.h5")
    assert again.boxes == volume.boxes
    np.testing.assert_array_equal(again.density, volume.density)
    np.testing.assert_allclose(again.box, volume.box)
