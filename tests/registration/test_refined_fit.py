"""Law: a fit with refinement fits to the cameras that were refined, says where they are, and takes no longer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drive import BALL_BOX, ball_views

from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoint import save_checkpoint
from raymarch.fitting.checkpoints import Checkpoints
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.presets import preset
from raymarch.fitting.settings import FitSettings
from raymarch.geometry.pose import exp_rigid
from raymarch.io.checkpoints.checkpoint_file import record_of
from raymarch.registration import refined_fit as module
from raymarch.registration.refine import FIRST, Refinement
from raymarch.registration.refined_fit import SHARE, fit_refined, settings_of_refinement

QUICK = preset("quick", resolution=16, steps=5, rays=512, sh_degree=0, slots=1)


@pytest.mark.parametrize(
    ("settings", "spent", "steps", "seconds"),
    [
        (FitSettings(steps=1000), 3.0, 400, None),
        (FitSettings(steps=100), 0.0, FIRST, None),
        (FitSettings(steps=None, seconds=100.0), 10.0, None, 100 * SHARE - 10),
        (FitSettings(steps=None, seconds=10.0), 10.0, None, 1.0),
    ],
)
def test_a_refinement_has_its_share_of_the_time(settings, spent, steps, seconds):
    found = settings_of_refinement(settings, spent)
    assert (found.steps, found.seconds, found.hull) == (steps, seconds, False)


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
    assert record_of(path)["steps"] == 0  # as soon as the cameras stand
    again, seen = Checkpoints(path, resume=True), []
    result = fit_refined(views, QUICK, box=BALL_BOX, checkpoints=again, refined=seen.append)
    assert len(calls) == 2
    assert result.volume.density.tobytes() == whole.volume.density.tobytes()
    assert result.volume.features.tobytes() == whole.volume.features.tobytes()
    assert result.volume.provenance["refined"] == whole.volume.provenance["refined"]
    np.testing.assert_array_equal([seen[0].degrees, seen[0].share], told)
    with pytest.raises(RaymarchError, match="the cameras that were refined differ"):
        fit_refined(views[::-1], QUICK, box=BALL_BOX, checkpoints=again)
    with pytest.raises(RaymarchError, match="15 of 15 cameras differ"):
        fit(views, QUICK, box=BALL_BOX, checkpoints=again)
    with Fitter(views, QUICK, box=BALL_BOX) as plain:
        save_checkpoint(plain, path)
    with pytest.raises(RaymarchError, match="is of a fit without refinement; leave --refine out"):
        fit_refined(views, QUICK, box=BALL_BOX, checkpoints=again)
