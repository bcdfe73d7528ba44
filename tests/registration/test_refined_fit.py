"""Law: a fit with refinement fits to the cameras that were refined, says where they are, and takes no longer."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from drive import BALL_BOX, ball_views

from raymarch import cli
from raymarch.device.image_store import ImageStore
from raymarch.device.memory import Memory
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.checkpoint import save_checkpoint
from raymarch.fitting.checkpoints.checkpoint_file import read_record
from raymarch.fitting.checkpoints.saver import Checkpoints
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.forecast import Forecast
from raymarch.fitting.plan.bounds import find_box
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import FitSettings, preset
from raymarch.geometry.alignment import pose_differences
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.geometry.orbit import orbit
from raymarch.geometry.pose import exp_rigid
from raymarch.io.image_sets.hdf5.writing import write_views
from raymarch.registration import refine as moves
from raymarch.registration import refine as refining
from raymarch.registration import refined_fit as module
from raymarch.registration.intrinsics import change_of_shared, move_shared_of_views
from raymarch.registration.refine import FIRST_MOVE_STEP, Refinement
from raymarch.registration.refined_fit import (
    CAMERA_FRACTION,
    fit_refined,
    forecast_refined,
    settings_after_refinement,
    settings_of_refinement,
    views_as_fitted,
)
from raymarch.rendering.renderer import render
from raymarch.views.views import Views
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

QUICK = preset("quick", resolution=16, steps=5, rays=512, sh_degree=0)


@pytest.mark.parametrize(
    ("settings", "steps", "seconds"),
    [
        (FitSettings(steps=1000), 400, None),
        (FitSettings(steps=100), FIRST_MOVE_STEP, None),
        (FitSettings(steps=None, seconds=100.0), None, 100 * CAMERA_FRACTION),
        (FitSettings(steps=1000, seconds=100.0), 400, 100 * CAMERA_FRACTION),
    ],
)
def test_a_refinement_has_its_share_of_the_time_and_the_fit_the_rest(settings, steps, seconds):
    found, rest = settings_of_refinement(settings), settings_after_refinement(settings)
    assert (found.steps, found.seconds, found.hull) == (steps, seconds, False)
    assert rest.steps == settings.steps
    assert rest.seconds == (None if seconds is None else pytest.approx(settings.seconds - seconds))


K1 = -0.2


@pytest.fixture(scope="module")
def lens_left_out() -> Views:
    """A box of many colours as lenses of k1 = -0.2 show it from near and far, and cameras that say 0."""
    rng = np.random.default_rng(0)
    affine = np.diag([*[1.6 / 9] * 3, 1.0])
    affine[:3, 3] = -0.8
    box = Volume(rng.normal(-0.5, 4.5, (10, 10, 10)), rng.normal(0, 2.5, (10, 10, 10, 3)), affine)
    like = Camera.look_at((1, 0, 0), fov=1.0, width=24, height=24)
    rings = ((30, 1.7), (-25, 2.6), (0, 2.1))
    cameras = [camera for up, away in rings for camera in orbit((0, 0, 0), away, 6, elevation=up, like=like)]
    true = [replace(camera, lens=Lens("simple_radial", (K1,))) for camera in cameras]
    images = np.stack([np.round(255 * render(box, camera)).astype(np.uint8) for camera in true])
    return Views([replace(camera, lens=Lens("simple_radial", (0.0,))) for camera in true], images)


@pytest.mark.whole
def test_a_wrong_lens_is_moved_towards_the_true_one_where_that_is_asked_for(lens_left_out, monkeypatch):
    monkeypatch.setattr(refining, "MOVE_INTERVAL", 5)
    monkeypatch.setattr(module, "fit", lambda views, settings, **how: fit(views, settings, steps=1, **how))
    seen = []
    settings = replace(QUICK, steps=400, rays=1024, levels=((0.0, 1.0),))
    result = fit_refined(lens_left_out, settings, also=("lens",), box=((-0.8,) * 3, (0.8,) * 3), refined=seen.append)
    (k1,) = {camera.lens.coefficients[0] for camera in seen[0].views.cameras}
    assert abs(k1 - K1) < 0.3 * abs(K1)
    assert seen[0].errors[-1] < 0.7 * seen[0].errors[0]
    told = result.volume.provenance["refined"]["shared"]
    assert told == {"lens": [pytest.approx(k1)]}
    moved = move_shared_of_views(lens_left_out, told)  # as others of the set are, which were not refined
    assert {camera.lens.coefficients for camera in moved.cameras} == {(k1,)}


def test_a_refinement_whose_time_is_over_before_a_camera_moves_says_so(lens_left_out, caplog):
    short = replace(QUICK, steps=None, seconds=1e-6, rays=1024, levels=((0.0, 1.0),))
    still = refining.refine(lens_left_out, settings=short, box=((-0.8,) * 3, (0.8,) * 3))
    assert still.errors == () and still.degrees.max() < 1e-4
    assert "no camera moved, for the time was over before step 80; give more seconds" in caplog.text


MOVED = {"focal": [0.1, 0.0], "principal_point": [0.0, -0.02], "lens": [-0.05]}


def test_a_change_of_what_cameras_share_is_found_again(lens_left_out):
    views = lens_left_out
    moved = move_shared_of_views(views, MOVED)
    for before, after in zip(views.cameras, moved.cameras, strict=True):
        found = change_of_shared(before, after, list(MOVED))
        assert list(found) == list(MOVED)
        for name, value in MOVED.items():
            np.testing.assert_allclose(found[name], value, atol=1e-12)
    assert change_of_shared(before, after, ["lens"]) == {"lens": [-0.05]}
    assert (moved.images == views.images).all()


@pytest.mark.parametrize(
    "told", [None, {}, 3, {"box": [1]}, {"focal": "x"}, {"focal": [1.0]}, {"lens": [0.1, 0.1]}, {"lens": [np.nan]}]
)
def test_what_is_no_record_of_a_change_moves_nothing(told, lens_left_out):
    views = lens_left_out
    assert move_shared_of_views(views, told).cameras == views.cameras


@pytest.mark.parametrize(
    ("how", "box", "given"),
    [({"boxes": None}, None, False), ({"boxes": 3}, None, False), ({"boxes": 1}, None, True), ({}, BALL_BOX, True)],
)
def test_a_scene_is_refined_in_the_boxes_that_its_fit_would_take(how, box, given, monkeypatch):
    class Asked(Exception):
        pass

    def fitter(views, settings, *, box):
        raise Asked(box is not None)

    ring = orbit((0, 0, 0), 2.0, 6, like=Camera.look_at((2, 0, 0), width=12, height=8))
    room = Views(ring, np.random.default_rng(0).integers(0, 256, (6, 8, 12, 3), dtype=np.uint8))
    monkeypatch.setattr(refining, "Fitter", fitter)
    monkeypatch.setattr(moves, "find_box", lambda views, store: np.array(BALL_BOX, float))
    with pytest.raises(Asked, match=str(given)):
        refining.refine(room, settings=preset("photos", **how), box=box)


def test_a_forecast_is_of_the_box_that_cameras_are_refined_in(monkeypatch):
    """Wider than the fit's, by 0.06 of it on each side."""
    views, boxes = ball_views(), []

    def planned(views, settings, *, box, clock=True):
        boxes.append(box)
        return Forecast(Memory((16, 16, 16), 0, 1, {}), 0)

    def fitter(views, settings, *, box):
        boxes.append(box)
        raise RaymarchError("planned")

    monkeypatch.setattr(module, "forecast", planned)
    monkeypatch.setattr(refining, "Fitter", fitter)
    forecast_refined(views, QUICK)
    with pytest.raises(RaymarchError, match="planned"):
        fit_refined(views, QUICK)
    ahead, of_fit, refined = boxes
    np.testing.assert_array_equal(ahead, refined)
    assert of_fit is None
    with ImageStore(views) as store:
        lower, upper = find_box(Survey(views), store)
    np.testing.assert_allclose(ahead, [1.06 * lower - 0.06 * upper, 1.06 * upper - 0.06 * lower])


def test_a_forecast_refuses_what_cannot_be_refined(monkeypatch):
    monkeypatch.setattr(module, "forecast", lambda *_, **__: pytest.fail("planned"))
    monkeypatch.setattr(refining, "Fitter", lambda *_, **__: pytest.fail("begun"))
    views, table = ball_views(), TransferFunction([0.0, 1.0], [(0, 0, 0), (1, 1, 1)], [0.0, 0.5])
    lenses = Lens("simple_radial", (0.1,)), Lens("radial", (0.1, 0.0))
    mixed = replace(views, cameras=[replace(c, lens=lenses[i % 2]) for i, c in enumerate(views.cameras)])
    seen_through = replace(QUICK, mode="transfer", transfer=table)
    for ask in (forecast_refined, fit_refined):
        with pytest.raises(RaymarchError, match="lenses of models radial, simple_radial, want one"):
            ask(mixed, QUICK, also=("lens",), box=BALL_BOX)
        with pytest.raises(RaymarchError, match="settings have a table"):
            ask(views, seen_through, box=BALL_BOX)


def test_the_command_says_what_else_is_moved(tmp_path, monkeypatch, capsys):
    write_views([("train", ball_views())], tmp_path / "set.h5")
    asked = []

    def stand_in(*_, also, **how):
        asked.append(also)
        raise RaymarchError("asked")

    monkeypatch.setattr(module, "fit_refined", stand_in)
    for words in ("--refine", "--refine-also lens", "--refine --refine-also focal --refine-also lens"):
        with pytest.raises(SystemExit):
            cli.main(["fit", str(tmp_path / "set.h5"), "--out", str(tmp_path / "v.h5"), *words.split()])
    assert asked == [(), ("lens",), ("focal", "lens")]
    assert capsys.readouterr().err.count("raymarch: asked") == 3


def test_the_fit_is_of_the_refined_cameras_and_its_file_says_where_they_are(monkeypatch):
    views = ball_views()
    seen, asked = [], []

    def refine(views, parameters, settings, *, box):
        asked.append((parameters, settings, box))
        back = views[::-1]
        count = len(views)
        neutral = np.tile([1.0, 1, 1, 0, 0, 0], (count, 1))
        return Refinement(back, neutral, np.full(count, 0.5), np.full(count, 0.01), (0.1,))

    monkeypatch.setattr(module, "refine", refine)
    result = fit_refined(views, QUICK, box=BALL_BOX, refined=seen.append)
    assert asked == [(("pose",), settings_of_refinement(QUICK), BALL_BOX)]
    told = result.volume.provenance["refined"]
    assert (told["degrees"], told["share"]) == (0.5, 0.01)
    assert [pose[0] for pose in told["poses"]] == list(views.names[::-1]) == list(seen[0].views.names)
    np.testing.assert_allclose(told["poses"][0][1:], views.cameras[-1].world_from_camera[:3].ravel(), atol=1e-6)
    assert result.volume.provenance["steps"] == 5


def test_views_of_a_refined_fit_are_known_at_another_size_by_the_poses_that_the_set_has(monkeypatch):
    views = replace(ball_views(), source="set")
    shift = exp_rigid(np.array([0, 0, 0, 0.01, 0, 0]))
    moved = [camera.exactly(camera.world_from_camera @ shift) for camera in views.cameras]
    neutral = np.tile([1.0, 1, 1, 0, 0, 0], (len(views), 1))
    refined = Refinement(replace(views, cameras=moved), neutral, np.ones(len(views)), np.ones(len(views)), (0.1,))
    monkeypatch.setattr(module, "refine", lambda *_, **__: refined)
    told = fit_refined(views, replace(QUICK, steps=1), box=BALL_BOX).volume.provenance
    found = views_as_fitted(replace(views, downscale=2.0), told)
    for camera, want in zip(found.cameras, moved, strict=True):
        np.testing.assert_allclose(camera.world_from_camera, want.world_from_camera, atol=1e-6)


def test_a_fit_after_a_refinement_goes_on_with_the_cameras_that_it_had(monkeypatch, tmp_path):
    """To the last bit, without refining again; refused where it began with others, or without a refinement."""
    views, path = ball_views(), tmp_path / "v.h5.checkpoint"
    rng = np.random.default_rng(0)
    moved = [camera.exactly(camera.world_from_camera @ exp_rigid(rng.normal(0, 1e-3, 6))) for camera in views.cameras]
    told = rng.random((2, len(views)))
    neutral = np.tile([1.0, 1, 1, 0, 0, 0], (len(views), 1))
    refined = Refinement(replace(views, cameras=moved), neutral, *told, (0.1,))
    calls = []

    def refine(*_, **__):
        calls.append(1)
        return refined

    monkeypatch.setattr(module, "refine", refine)
    whole = fit_refined(views, QUICK, box=BALL_BOX)
    with pytest.raises(ZeroDivisionError):
        fit_refined(views, QUICK, box=BALL_BOX, checkpoints=Checkpoints(path), show=lambda report: 1 / 0)
    assert read_record(path)["steps"] == 0  # as soon as the cameras stand
    again, seen = Checkpoints(path, resume=True), []
    result = fit_refined(views, QUICK, box=BALL_BOX, checkpoints=again, refined=seen.append)
    assert len(calls) == 2
    assert result.volume.density.tobytes() == whole.volume.density.tobytes()
    assert result.volume.features.tobytes() == whole.volume.features.tobytes()
    assert result.volume.provenance["refined"] == whole.volume.provenance["refined"]
    np.testing.assert_array_equal([seen[0].degrees, seen[0].share], told)
    with pytest.raises(RaymarchError, match="the cameras that were refined differ"):
        fit_refined(views[::-1], QUICK, box=BALL_BOX, checkpoints=again)
    with pytest.raises(RaymarchError, match="after another refinement, of poses alone"):
        fit_refined(views, QUICK, also=["focal"], box=BALL_BOX, checkpoints=again)
    with pytest.raises(RaymarchError, match="15 of 15 cameras differ"):
        fit(views, QUICK, box=BALL_BOX, checkpoints=again)
    with Fitter(views, QUICK, box=BALL_BOX) as plain:
        save_checkpoint(plain, path)
    with pytest.raises(RaymarchError, match="is of a fit without refinement; leave --refine out"):
        fit_refined(views, QUICK, box=BALL_BOX, checkpoints=again)


def test_no_fit_begins_after_a_refinement_that_was_interrupted(lens_left_out, monkeypatch):
    """A scheduler's SIGTERM comes once, and SIGKILL soon after."""
    monkeypatch.setattr(module, "fit", lambda *args, **how: pytest.fail("a fit began"))

    def asked(*_):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(refining, "MOVE_INTERVAL", 5)
    monkeypatch.setattr(refining, "FIRST_MOVE_STEP", 5)
    plain = refining.refine
    monkeypatch.setattr(module, "refine", lambda *args, **how: plain(*args, **how, show=asked))
    with pytest.raises(RaymarchError, match="interrupted while cameras were refined, so nothing was fitted"):
        fit_refined(lens_left_out, replace(QUICK, steps=400, rays=256), box=((-0.8,) * 3, (0.8,) * 3))


def test_a_camera_in_the_middle_of_the_box_moves_by_a_finite_share():
    camera = Camera.look_at((0, -1, 0), (0, 0, 0), width=8, height=8)
    inside = replace(camera, world_from_camera=np.eye(4))
    degrees, share = pose_differences([camera, inside], [inside, camera], np.array([[-1.0, -1, -1], [1, 1, 1]]))
    np.testing.assert_allclose(share, [1 / (0.05 * 12**0.5), 1.0])
    assert np.isfinite(degrees).all()
