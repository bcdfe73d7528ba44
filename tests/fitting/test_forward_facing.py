"""Law: views that look one way from before one plane are fitted in the frustum that holds them all, others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raymarch.device.image_store import ImageStore
from raymarch.errors import RaymarchError
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.plan.bounds import MAX_FRUSTUM_SPREAD, MAX_SAMPLES_ACROSS, frustum_for, frustum_of_views
from raymarch.fitting.plan.plan import plan_fit
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.camera import Camera, border_points
from raymarch.geometry.ndc import near_plane_of, rays_in_ndc
from raymarch.geometry.orbit import orbit
from raymarch.geometry.rays import Rays
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views

NOISE = np.random.default_rng(0).integers(0, 256, (6, 8, 12, 3), dtype=np.uint8)
UP = np.array([0.0, 1.0, 0.0])
EYES = [np.array([x, 3.0 + 0.02 * x, 1.0 + z]) for x in (-0.3, 0.0, 0.3) for z in (-0.2, 0.2)]


def ahead(eyes=EYES, spread=0.3, **like) -> list[Camera]:
    """Cameras that look along y, at a point far off."""
    like = {"width": 12, "height": 8, "fov": 0.9, **like}
    return [Camera.look_at(eye, eye + UP - spread * (eye - (0, 3, 1)), **like) for eye in eyes]


POINTS = np.array([[0.1, 5.0, 1.0], [0.0, 40.0, 2.0]] * 200)
FRAMED = np.pad(NOISE[:, 1:-1, 1:-1], ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=7)
VIEWS = Views(ahead(), NOISE, points=POINTS)


@pytest.mark.parametrize("points", [POINTS, None], ids=["points", "no points"])
def test_all_that_the_cameras_see_lies_in_the_frustum(points):
    views = replace(VIEWS, points=points)
    found = frustum_of_views(Survey(views))
    near = near_plane_of(found.ndc_from_world)
    assert near == pytest.approx(0.8 * 2.0 if points is not None else 0.5 * np.hypot(0.6, 0.4), rel=0.01)
    np.testing.assert_allclose(found.box[:, 2], (-1, 1))
    assert found.box[1, 0] <= MAX_SAMPLES_ACROSS + 1e-9
    touched = np.zeros(2)
    for camera in views.cameras:
        edge = border_points(camera.width, camera.height)
        local = np.c_[(edge - camera.principal) / camera.focal * (1, -1), -np.ones(len(edge))]
        direction = local @ camera.world_from_camera[:3, :3].T
        rays = rays_in_ndc(found.ndc_from_world, Rays(np.broadcast_to(camera.position, direction.shape), direction))
        for z in (-1, 1):
            place = rays.origin + (z - rays.origin[:, 2:]) / rays.direction[:, 2:] * rays.direction
            assert (np.abs(place[:, :2]) <= found.box[1, :2] + 1e-9).all()
            touched = np.maximum(touched, np.abs(place[:, :2]).max(0))
    np.testing.assert_allclose(touched, found.box[1, :2], rtol=1e-6)


SOME = range(2, 9)  # nested boxes

REFUSED = {
    "ring": (orbit((0, 0, 0), 4.0, 6, like=Camera.look_at((4, 0, 0), width=12, height=8)), None, "look one way"),
    "one place": ([ahead()[0]] * 6, None, "stand in one point"),
    "one far ahead": (ahead([*EYES[:5], EYES[5] + 1.9 * UP]), POINTS, "beyond the near plane"),
    "wide": (ahead(fov=2.7), POINTS, "look one way"),
    "near plane before their feet": (ahead(), [(0, 3.05, 1)] * 9, "times as wide"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_views_that_have_no_frustum_are_told_why(which):
    cameras, points, why = REFUSED[which]
    views = Views(cameras, NOISE, points=points)
    with pytest.raises(RaymarchError, match=why):
        frustum_of_views(Survey(views))


def test_cameras_on_a_wide_arc_have_a_frustum_that_is_not_taken_by_itself():
    angles = np.deg2rad(np.linspace(-25, 25, 6))
    eyes = [np.array([3 * np.sin(a), 3 - 3 * np.cos(a), 1.0]) for a in angles]
    cameras = [Camera.look_at(eye, (0, 3, 1), width=12, height=8, fov=0.9) for eye in eyes]
    views = Views(cameras, NOISE, points=POINTS)
    assert frustum_of_views(Survey(views)).spread > MAX_FRUSTUM_SPREAD > frustum_of_views(Survey(VIEWS)).spread > 1
    assert frustum_for(Survey(views), preset("photos")) is None
    assert frustum_for(Survey(views), preset("photos", ndc=True)) is not None


def test_settings_that_exclude_each_other_are_refused():
    with pytest.raises(RaymarchError, match="ndc is True beside 3 nested boxes"):
        preset("photos", ndc=True, boxes=3)
    with pytest.raises(RaymarchError, match="ndc is True beside a box"):
        Fitter(VIEWS, "photos", ndc=True, box=[(-1, -1, -1), (1, 1, 1)])


@pytest.mark.parametrize(
    ("views", "changes", "boxes", "ndc"),
    [
        (VIEWS, {}, [1], True),
        (VIEWS, {"boxes": 4}, [4], False),
        (VIEWS, {"ndc": False}, SOME, False),
        (replace(VIEWS, images=FRAMED, box=[(-1, 4, 0), (1, 6, 2)]), {}, [1], False),
        (replace(VIEWS, images=FRAMED), {"ndc": True}, [1], True),
        (Views(REFUSED["ring"][0], NOISE), {}, SOME, False),
    ],
    ids=["forward-facing", "boxes asked for", "NDC refused", "bounded", "NDC asked for", "ring"],
)
def test_photographs_lie_in_ndc_where_they_may(views, changes, boxes, ndc):
    with ImageStore(views) as store:
        plan = plan_fit(views, preset("photos", resolution=6, sh_degree=0, **changes), None, store)
    assert plan.settings.ndc is ndc
    assert plan.settings.boxes in boxes
    assert (plan.ndc_from_world is not None) is ndc
    assert plan.shape[2] == 6 or not ndc
    assert plan.settings.near == (0.2 if plan.settings.boxes > 1 else 0.0)


def test_a_wall_far_off_is_fitted_behind_the_near_plane():
    """Columns of a few colours on a wall at 12: what is drawn comes near them, and its depth is beyond what is near."""
    cameras, images = ahead(fov=0.5), []
    for camera in cameras:
        rays = camera.rays()
        x = (rays.origin + (12 - camera.position[1]) / rays.direction[:, 1:2] * rays.direction)[:, 0]
        images.append(np.stack([120 + 60 * np.sin(2 * x), 100 + 0 * x, 90 + 20 * x], 1).reshape(8, 12, 3))
    views = Views(cameras, np.round(images).astype(np.uint8), points=POINTS)
    drawn: list[bool] = []
    result = fit(
        views,
        "quick",
        ndc=True,
        steps=150,
        resolution=12,
        sh_degree=0,
        rays=256,
        levels=((0, 1.0),),
        ready=lambda fitter: drawn.append(fitter.store.listed == fitter.store.tiles),
    )
    assert drawn == [True]
    assert result.volume.shape == result.history[-1].shape
    np.testing.assert_allclose(result.box, result.volume.box)
    with Renderer(result.volume) as renderer:
        seen = renderer.render(cameras[0])
    assert np.abs(seen.image - views.rgb(0)).mean() < 0.08
    assert (seen.depth > near_plane_of(result.volume.ndc_from_world)).all()
