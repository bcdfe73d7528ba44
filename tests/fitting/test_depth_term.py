"""Law: known distances draw surfaces to them, in units of their own too; without a weight they change nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import drive
import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import evaluate
from raymarch.fitting import depth_term
from raymarch.fitting.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from raymarch.fitting.depth_targets import alignments_by_points, targets_of
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.settings.settings import DEPTH_SETTINGS, preset
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.views.depth_images import camera_of_depth, distance_by_z, median_depth, unit_doubt
from raymarch.views.views import Views

SETTINGS = preset("quick", resolution=16, rays=512, sh_degree=0, slots=1, steps=60, refresh=10, seconds=None)
RADIUS = 0.55
RELATIVE = 0.5, 0.3  # scale and shift, along the axis, of depth images as a network would give them


@cache
def seen() -> Views:
    """The ball of `drive`, opaque images of it, and exact depths of its core, of half as many pixels a side."""
    views = drive.ball_views()
    depths = []
    for camera in views.cameras:
        small = camera.scaled(0.5)
        rays = small.rays()
        along = -(rays.origin * rays.direction).sum(1)
        root = RADIUS**2 - ((rays.origin + along[:, None] * rays.direction) ** 2).sum(1)
        with np.errstate(invalid="ignore"):
            depths.append((along - np.sqrt(root)).reshape(small.height, small.width))
    return replace(views, depths=depths)


def relative(views: Views, scale: float = RELATIVE[0], shift: float = RELATIVE[1]) -> Views:
    """Views whose depths have another scale and shift along the axis: true = scale given + shift."""
    depths = []
    for camera, depth in zip(views.cameras, views.depths, strict=True):
        ratio = distance_by_z(camera, camera_of_depth(camera, depth).rays().direction).reshape(depth.shape)
        depths.append((depth - shift * ratio) / scale)
    return replace(views, depths=depths)


def with_points(views: Views) -> Views:
    """Views with points on the ball, and which view sees which."""
    points = np.random.default_rng(0).normal(size=(60, 3))
    points *= RADIUS / np.linalg.norm(points, axis=1, keepdims=True)
    pairs = [
        (i, k)
        for i, camera in enumerate(views.cameras)
        for k in np.flatnonzero(points @ camera.position > 1.2 * RADIUS**2)
    ]
    return replace(views, points=points, sightings=np.array(pairs))


def result_of(result) -> tuple:
    told = {name: value for name, value in result.volume.provenance.items() if "seconds" not in name}
    return result.volume.density.tobytes(), result.volume.features.tobytes(), told


def test_without_a_weight_depths_change_nothing():
    plain, known = (fit(views, SETTINGS, steps=5, box=drive.BALL_BOX) for views in (drive.ball_views(), seen()))
    assert result_of(plain) == result_of(known)
    assert not set(DEPTH_SETTINGS) & set(known.volume.provenance["settings"])


def test_the_surface_comes_to_where_it_is_known_to_be():
    errors = []
    for weight in (0.0, 0.5):
        result = fit(seen(), SETTINGS, depth_weight=weight, box=drive.BALL_BOX)
        errors.append(evaluate(result.volume, seen()).depth_error)
    assert errors[1] < 0.7 * errors[0]
    assert result.volume.provenance["settings"]["depth_weight"] == 0.5


def test_relative_depths_are_aligned_by_the_volume_and_resumed_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(depth_term, "FIRST_UPDATE", 25)
    settings = replace(SETTINGS, depth_weight=0.5, depth_scale="per-view")
    with (
        Fitter(relative(seen()), settings, box=drive.BALL_BOX) as whole,
        Fitter(relative(seen()), settings, box=drive.BALL_BOX) as cut,
    ):
        assert np.isnan(whole.depths.alignment).all()
        for _ in range(60):
            whole.step()
        for _ in range(30):
            cut.step()
        save_checkpoint(cut, tmp_path / "c")
        assert np.isfinite(cut.depths.alignment).any()
        alignment, volume = whole.depths.alignment, whole.volume()
    with Fitter(relative(seen()), settings, box=drive.BALL_BOX) as resumed:
        load_checkpoint(resumed, tmp_path / "c")
        for _ in range(30):
            resumed.step()
        assert np.array_equal(resumed.depths.alignment, alignment)
        assert resumed.volume().density.tobytes() == volume.density.tobytes()
    listed = volume.provenance["depth_alignment"]
    assert [name for name, *_ in listed] == list(seen().names)
    depths = relative(seen()).depths
    middle = [scale * np.nanmin(depth) + shift for (_, scale, shift), depth in zip(listed, depths, strict=True)]
    np.testing.assert_allclose(middle, [np.nanmin(depth) for depth in seen().depths], rtol=0.05)
    other = replace(settings, depth_delta=0.1)
    with Fitter(relative(seen()), other, box=drive.BALL_BOX) as one, pytest.raises(RaymarchError, match="depth_delta"):
        load_checkpoint(one, tmp_path / "c")
    moved = relative(seen(), 0.4)
    with Fitter(moved, settings, box=drive.BALL_BOX) as one, pytest.raises(RaymarchError, match="depths differ"):
        load_checkpoint(one, tmp_path / "c")


def test_a_fit_too_short_to_tell_the_scale_of_depths_says_so(caplog):
    for views, how, said in (
        (relative(seen()), {}, True),
        (relative(seen()), {"steps": depth_term.FIRST_UPDATE}, False),
        (with_points(relative(seen())), {}, False),
        (seen(), {"depth_scale": "metric"}, False),
    ):
        caplog.clear()
        settings = replace(SETTINGS, **{"depth_weight": 0.5, "depth_scale": "per-view", **how})
        with Fitter(views, settings, box=drive.BALL_BOX):
            pass
        assert ("count for nothing" in caplog.text) == said


def test_points_align_relative_depths_and_are_targets_themselves():
    views = with_points(relative(seen()))
    found = alignments_by_points(views)
    for i, (scale, shift) in enumerate(found):
        ratio = distance_by_z(views.cameras[i], camera_of_depth(views.cameras[i], views.depth(i)).rays().direction)
        aligned = scale * views.depth(i) + shift * ratio.reshape(views.depth(i).shape)
        np.testing.assert_allclose(aligned, seen().depth(i), rtol=0.03)
    known = targets_of(views, "points", 0)
    assert known.images == 0
    assert len(known) == len(views.sightings)
    there = known.origin + known.distance[:, None] * known.direction
    np.testing.assert_allclose(np.linalg.norm(there, axis=1), RADIUS, atol=1e-5)


def test_views_of_an_index_keep_their_depths_and_sightings():
    views = with_points(seen())
    some = views[[4, 2]]
    assert np.array_equal(some.depth(0), views.depth(4), equal_nan=True)
    assert replace(views, sightings=[]).sightings is None
    for k, i in enumerate((4, 2)):
        assert set(some.sightings[some.sightings[:, 0] == k, 1]) == set(views.sightings[views.sightings[:, 0] == i, 1])


def test_what_a_fisheye_sees_beside_its_axis_has_a_distance_though_no_depth():
    camera = replace(
        Camera.look_at((0, -3, 0), width=16, height=16), focal=(4.5, 4.5), lens=Lens("fisheye", (0, 0, 0, 0))
    )
    depth, views = np.full((16, 16), 2.0), Views([camera], np.zeros((1, 16, 16, 3), np.uint8))
    known = targets_of(replace(views, depths=[depth], points=[(5, -3.5, 0)], sightings=[(0, 0)]), "all", 0)
    beside = np.isnan(known.ratio)
    assert beside[-1] and 0 < beside[:-1].mean() < 1
    index = np.arange(len(known))
    np.testing.assert_allclose(known.aligned(index, np.array([[1.0, 0.0]]))[:-1], 2.0)
    np.testing.assert_allclose(known.aligned(index, np.array([[0.5, 0.3]]))[:-1], 1 + 0.3 * known.ratio[:-1], rtol=1e-6)
    np.testing.assert_allclose(known.aligned(index[-1:], np.array([[np.nan, np.nan]])), np.hypot(5, 0.5), rtol=1e-6)


def of_channels(images) -> Views:
    return Views(seen().cameras, images, channels=("a", "b"))


def refused(*said, **how):
    views = how.pop("views")
    with pytest.raises(RaymarchError) as caught:
        Fitter(views, SETTINGS, box=drive.BALL_BOX, depth_weight=0.1, **how)
    text = str(caught.value)
    assert "\n" not in text
    assert all(part in text for part in said), text


def test_what_is_missing_or_of_another_unit_is_said_in_a_line():
    refused("depth_weight is 0.1 but", "no depth images or sparse points", views=drive.ball_views())
    refused("no sparse points", "depth_from=matches", views=seen(), depth_from="points")
    refused("depth_from is 'matches' but only", views=seen(), depth_from="matches")
    noise = np.random.default_rng(0).uniform(size=(*seen().images.shape[:3], 2))
    refused("depth_from is 'matches' but only", views=of_channels(noise), depth_from="matches")
    unseen = [np.zeros(image.shape[:2], bool) for image in seen().images]
    for mask in unseen:
        mask[0, 0] = True  # of a pixel whose depth is not known
    refused("no depth of the views counts", "check the masks", views=replace(seen(), masks=unseen))
    at_camera = replace(drive.ball_views(), points=[drive.ball_views().cameras[0].position], sightings=[(0, 0)])
    refused("no depth of the views counts", views=at_camera, depth_from="points")
    millimetres = replace(seen(), depths=[1000 * depth for depth in seen().depths])
    refused("depth images have a median of", "about 0.001 times the unit", "--depth-unit", views=millimetres)
    assert unit_doubt(seen().depths, 4.0) == ""
    assert 3 < median_depth(seen().depths) < 4
    with pytest.raises(RaymarchError, match="has no depth loss"):
        preset("quick", depth_weight=0.1, mode="transfer", transfer=drive_table())


def drive_table():
    from raymarch.volumes.transfer_function import TransferFunction

    return TransferFunction([0, 1], [(1, 1, 1)] * 2, [0, 1], unit_length=1.0)
