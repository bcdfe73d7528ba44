"""Law: whether a scene has an end, and where its innermost box lies, is told from views, cameras and the set's box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raymarch.data.views import Views
from raymarch.errors import RaymarchError
from raymarch.fitting.fit import fit
from raymarch.fitting.presets import preset
from raymarch.fitting.scene_box import BOXES_OF_A_SCENE, box_of_scene, is_bounded
from raymarch.geometry.camera import Camera, orbit
from raymarch.io.volumes.volume_file import load, save
from raymarch.rendering.renderer import render

CENTRE = np.array([1.0, -2.0, 0.5])
RING = orbit(CENTRE, 4.0, 8, like=Camera.look_at((4, 0, 0), width=12, height=8))
NOISE = np.random.default_rng(0).integers(0, 256, (8, 8, 12, 3), dtype=np.uint8)
SCENE = Views(RING, NOISE)


def with_(**changes) -> Views:
    return replace(SCENE, **changes)


@pytest.mark.parametrize(
    ("views", "bounded"),
    [
        (SCENE, False),
        (with_(images=np.concatenate([NOISE, NOISE[..., :1]], -1)), True),
        (with_(images=np.full_like(NOISE, 7)), True),
        (with_(box=[CENTRE - 1, CENTRE + 1]), True),
        (with_(box=[CENTRE - 9, CENTRE + 9]), False),
    ],
    ids=["photographs", "alpha", "one colour around", "own box before the cameras", "own box about the cameras"],
)
def test_a_scene_has_an_end_or_not(views, bounded):
    assert is_bounded(views) is bounded


def test_the_box_is_about_what_the_cameras_look_at():
    np.testing.assert_allclose(box_of_scene(SCENE), [CENTRE - 2, CENTRE + 2], atol=1e-9)


def test_of_cameras_that_look_one_way_the_box_is_ahead():
    eyes = [(x, 0, z) for x in (-1, 0, 1) for z in (-1, 1)]
    cameras = [Camera.look_at(eye, np.add(eye, (0, 5, 0)), width=12, height=8) for eye in eyes]
    lower, upper = box_of_scene(Views(cameras, NOISE[:6]))
    assert lower[0] < 0 < upper[0]
    assert (lower + upper)[1] / 2 == pytest.approx(np.hypot(2, 2))


def test_cameras_in_one_point_have_no_box():
    cameras = [Camera.look_at((0, 0, 0), (x, 1, 0), width=12, height=8) for x in (-1, 0, 1)]
    with pytest.raises(RaymarchError, match="all cameras stand in one point"):
        box_of_scene(Views(cameras, NOISE[:3]))


def test_a_scene_is_fitted_in_nested_boxes_and_saved(tmp_path):
    """Walls of one colour a side, all beyond the innermost box: what is drawn comes near them."""
    images = np.stack([np.full((8, 12, 3), 40 + 25 * i, np.uint8) for i in range(8)])
    views = with_(images=images // 2 + np.arange(12, dtype=np.uint8)[:, None] * 10)
    settings = preset(
        "photos", steps=120, resolution=8, sh_degree=0, rays=256, levels=((0.0, 1.0),), initial_alpha=0.05
    )
    result = fit(views, settings)
    volume = result.volume
    assert volume.boxes == BOXES_OF_A_SCENE == result.settings.boxes
    assert volume.box_shape == (8, 8, 8)
    error = np.abs(render(volume, RING[0]) - views.rgb(0)).mean()
    assert error < 0.1
    save(volume, tmp_path / "scene.h5")
    again = load(tmp_path / "scene.h5")
    assert again.boxes == volume.boxes
    np.testing.assert_array_equal(again.density, volume.density)
    np.testing.assert_allclose(again.box, volume.box)
