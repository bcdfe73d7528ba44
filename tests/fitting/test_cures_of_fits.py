"""Law: what a message of a fit, a checkpoint, an evaluation or a registration says to do can be done, and helps.

Each row is a mistake, what its message must say, and the code that does what it says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import drive
import h5py
import numpy as np
import pytest

import raymarch as rm
from raymarch.evaluation.held_out import doubt_of_set
from raymarch.evaluation.metrics import psnr, ssim
from raymarch.fitting.checkpoints.saver import Checkpoints
from raymarch.fitting.fit import fit
from raymarch.fitting.level_schedule import DONE, describe_ending, is_early
from raymarch.fitting.plan.bounds import frustum_for
from raymarch.fitting.plan.budget import require_budget
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.objective import Objective, Regulariser
from raymarch.fitting.settings.settings import FitSettings, preset
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.geometry.orbit import orbit
from raymarch.registration.refine import require_refinable
from raymarch.registration.register import register
from raymarch.volumes.transfer_function import TransferFunction

QUICK = {"resolution": 16, "sh_degree": 0, "slots": 1, "rays": 512}
BOX = [(-1, -1, -1), (1, 1, 1)]
IMAGES = (20, 32, 32, 4)
TABLE = TransferFunction((0.0, 1.0), ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), (0.0, 0.5))
IMAGE = np.random.default_rng(0).uniform(0, 1, (24, 32, 3))
EDGES = np.zeros((24, 32), bool)
EDGES[0] = True
DISTORTED = Lens("opencv", (0.1, 0.0, 0.0, 0.0, 0.0))


@cache
def few_views() -> rm.Views:
    return rm.Views(
        [Camera.look_at((4, 0, z), width=32, height=24) for z in (0, 1)], [np.full((24, 32, 3), 9, "u1")] * 2
    )


def with_lens(*lenses) -> rm.Views:
    return replace(few_views(), cameras=[replace(c, lens=x) for c, x in zip(few_views().cameras, lenses, strict=True)])


def largest_of(message: str) -> int:
    return int(message.split("take a resolution of ")[1].split()[0])


def in_half_a_gigabyte(resolution: int) -> None:
    require_budget(FitSettings(resolution=resolution, memory=0.5, supersample=1), BOX, IMAGES)


def gigabytes_of(message: str) -> float:
    return float(message.split("raise memory to ")[1].split()[0])


SETTINGS = [
    (lambda: FitSettings(steps=None), "say when to stop", [
        lambda told: FitSettings(steps=None, seconds=5.0), lambda told: FitSettings(steps=9)]),
    (lambda: preset("fast"), "want one of quick, default", [lambda told: preset("quick")]),
    (lambda: preset("quick", step_count=3), "unknown setting step_count; want some of resolution", [
        lambda told: preset("quick", steps=3)]),
    (lambda: FitSettings(rays=1 << 22, supersample=4), "lower one of both", [
        lambda told: FitSettings(rays=1 << 19, supersample=4), lambda told: FitSettings(rays=1 << 22, supersample=1)]),
    (lambda: FitSettings(ndc=True, boxes=4), "leave one", [
        lambda told: FitSettings(ndc=True), lambda told: FitSettings(boxes=4)]),
    (lambda: FitSettings(objective=Objective(), tv_density=1e-3), "say it there, as in rm.Objective(regularisers=[", [
        lambda told: FitSettings(objective=rm.Objective(regularisers=[rm.Regulariser.named("tv_density", 1e-3)]))]),
    (lambda: FitSettings(mode="transfer"), "give both, as in rm.fit(views, mode='transfer', transfer=table)", [
        lambda told: FitSettings(mode="transfer", transfer=TABLE)]),
    (lambda: FitSettings(mode="transfer", transfer=TABLE, distortion_weight=0.1), "leave it 0", [
        lambda told: FitSettings(mode="transfer", transfer=TABLE, distortion_weight=0)]),
    (lambda: FitSettings(mode="transfer", transfer=TABLE, objective=Objective(
        regularisers=(replace(Regulariser.named("sparsity", 0.1)),))), "leave it 0", [
        lambda told: FitSettings(mode="transfer", transfer=TABLE)]),
    (lambda: FitSettings(mode="transfer", transfer=TABLE, bricks=True), "leave bricks and ndc False, and boxes 1", [
        lambda told: FitSettings(mode="transfer", transfer=TABLE, bricks=False, ndc=False, boxes=1)]),
    (lambda: in_half_a_gigabyte(400), "take a resolution of", [lambda told: in_half_a_gigabyte(largest_of(told))]),
    (lambda: require_budget(FitSettings(memory=0.001), BOX, IMAGES), "raise memory to", [
        lambda told: require_budget(FitSettings(memory=gigabytes_of(told), resolution=4), BOX, IMAGES)]),
]  # fmt: skip

SCORES = [
    (lambda: psnr(IMAGE, IMAGE[:12]), "resize one of them", [lambda told: psnr(IMAGE[:12], IMAGE[:12])]),
    (lambda: psnr(IMAGE, IMAGE, IMAGE[..., 0]), "want bools (24, 32), True for the pixels that count", [
        lambda told: psnr(IMAGE, IMAGE, IMAGE[..., 0] > 0.5)]),
    (lambda: psnr(IMAGE, IMAGE, np.zeros((24, 32), bool)), "leave the view out", [lambda told: psnr(IMAGE, IMAGE)]),
    (lambda: ssim(IMAGE, IMAGE, EDGES), "take psnr", [lambda told: psnr(IMAGE, IMAGE, EDGES)]),
    (lambda: ssim(IMAGE[:8], IMAGE[:8]), "want at least 11 x 11 pixels", [
        lambda told: ssim(IMAGE[:11], IMAGE[:11])]),
]  # fmt: skip

CAMERAS = [
    (lambda: require_refinable(few_views(), ("pose",), FitSettings(steps=5)), "give steps=80", [
        lambda told: require_refinable(few_views(), ("pose",), FitSettings(steps=80))]),
    (lambda: require_refinable(few_views(), ("pose",), FitSettings(mode="transfer", transfer=TABLE)), "leave it out", [
        lambda told: require_refinable(few_views(), ("pose",), FitSettings())]),
    (lambda: require_refinable(with_lens(Lens(), DISTORTED), ("lens",), FitSettings()), "leave lens out", [
        lambda told: require_refinable(with_lens(Lens(), DISTORTED), ("pose",), FitSettings()),
        lambda told: require_refinable(with_lens(DISTORTED, DISTORTED), ("lens",), FitSettings())]),
]  # fmt: skip


def created(told: str) -> None:
    Path("nowhere").mkdir()
    Checkpoints("nowhere/c").require()


NOTE_LIMIT = 1 << 20
RING = orbit((0, 0, 0), 4.0, 6, like=Camera.look_at((4, 0, 0), width=32, height=24))
ONE_WAY = [Camera.look_at((x, -4, 0), (x, 0, 0), width=32, height=24) for x in (-0.2, 0.0, 0.2)]
IN_NDC = FitSettings(ndc=True)


def seen_by(cameras) -> Survey:
    return Survey(rm.Views(list(cameras), [np.full((24, 32, 3), 9, np.uint8)] * len(cameras)))


PLACES = [
    (lambda: frustum_for(seen_by(ONE_WAY), IN_NDC, BOX), "ndc is True beside a box, which it takes", [
        lambda told: frustum_for(seen_by(ONE_WAY), IN_NDC),
        lambda told: frustum_for(seen_by(ONE_WAY), FitSettings(), BOX)]),
    (lambda: frustum_for(seen_by(RING), IN_NDC), "leave ndc out (--set ndc=False)", [
        lambda told: frustum_for(seen_by(RING), FitSettings(ndc=False))]),
    (lambda: frustum_for(seen_by(ONE_WAY[:1] * 2), IN_NDC), "leave ndc out (--set ndc=False)", [
        lambda told: frustum_for(seen_by(ONE_WAY[:1] * 2), FitSettings(ndc=False))]),
    (lambda: FitSettings(levels=((0.5, 1.0),)), "rising shares from 0, the last scale 1", [
        lambda told: FitSettings(levels=((0.0, 1.0),)), lambda told: FitSettings(levels=((0.0, 0.5), (0.5, 1.0)))]),
    (lambda: FitSettings(seconds=0), "seconds is 0", [lambda told: FitSettings(seconds=1)]),
    (lambda: Checkpoints("c", note="x" * (NOTE_LIMIT + 1)), "shorten it", [
        lambda told: Checkpoints("c", note="x" * NOTE_LIMIT)]),
    (lambda: Checkpoints("c", every=0), "every is 0", [lambda told: Checkpoints("c", every=5)]),
    (lambda: Checkpoints("nowhere/c").require(), "create it first", [created]),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "says", "cures"), [*SETTINGS, *SCORES, *CAMERAS, *PLACES])
def test_what_is_said_of_settings_scores_and_cameras_helps(mistake, says, cures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rm.RaymarchError) as refused:
        mistake()
    told = str(refused.value)
    assert says in told and "\n" not in told
    for cure in cures:
        cure(told)


def quick(**how):
    """Fit of a few steps, all of one kind, so that they share their kernels."""
    settings = preset("quick", **{**QUICK, "steps": 3, **how.pop("settings", {})})
    return fit(how.pop("views", drive.ball_views()), settings, box=drive.BALL_BOX, **how)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Bytes of the checkpoint of a fit that was stopped after its first step."""
    path = tmp_path_factory.mktemp("stopped") / "c"
    quick(checkpoints=Checkpoints(path), between=lambda fitter: fitter.steps_done == 1)
    return path.read_bytes()


def flipped(content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 255]) + content[101:2000]


CHECKPOINTS = [
    ("it is there", None, {}, {}, "go on with it by --resume (resume=True in Python), or lose it by --overwrite",
     [({"resume": True}, {}), ({"overwrite": True}, {})]),
    ("other settings", None, {"resume": True}, {"seed": 5}, "seed was 0, is 5; give what it had, or begin anew",
     [({"resume": True}, {}), ({"overwrite": True}, {"seed": 5})]),
    ("a limit of time", None, {"resume": True}, {"seconds": 9.0}, "seconds was not there|seconds was None, is 9.0",
     [({"resume": True}, {})]),
    ("damaged", flipped, {"resume": True}, {}, "begin anew without it (--overwrite, without --resume)",
     [({"overwrite": True}, {})]),
    ("a text", lambda content: b"mine", {"resume": True}, {}, "begin anew without it (--overwrite, without --resume)",
     [({"overwrite": True}, {})]),
    ("none", lambda content: None, {"resume": True}, {}, "leave --resume (resume=True) out", [({}, {})]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "asked", "settings", "says", "cures"),
    [row[1:] for row in CHECKPOINTS],
    ids=[row[0] for row in CHECKPOINTS],
)
def test_what_is_said_of_a_checkpoint_helps(content, asked, settings, says, cures, stopped, tmp_path):
    def lay(path):
        made = stopped if content is None else content(stopped)
        if made is not None:
            path.write_bytes(made)
        return path

    with pytest.raises(rm.RaymarchError) as refused:
        quick(checkpoints=Checkpoints(lay(tmp_path / "c"), **asked), settings=settings)
    assert any(each in str(refused.value) for each in says.split("|")), str(refused.value)
    for i, (how, others) in enumerate(cures):
        done = quick(checkpoints=Checkpoints(lay(tmp_path / f"c{i}"), **how), settings=others)
        assert done.volume.provenance["steps"] == 3


def test_a_copy_of_a_damaged_checkpoint_is_as_good(stopped, tmp_path):
    (tmp_path / "c").write_bytes(stopped)
    assert quick(checkpoints=Checkpoints(tmp_path / "c", resume=True)).resumed_from == 1


def test_a_fit_that_was_stopped_before_its_first_step_can_begin_anew(tmp_path):
    with pytest.raises(rm.RaymarchError, match="nothing was fitted: interrupted before the first step; begin anew"):
        quick(checkpoints=Checkpoints(tmp_path / "c"), between=lambda fitter: True)
    assert quick(checkpoints=Checkpoints(tmp_path / "c")).ended == DONE


def test_more_seconds_make_a_fit_that_time_ended_a_whole_one():
    early = quick(settings={"seconds": 1e-9, "steps": 30})
    assert is_early(early.ended) and "give more seconds" in early.ended
    assert quick(settings={"seconds": 600.0, "steps": 30}).ended == DONE


def test_steps_alone_lift_the_limit_of_time_as_is_said():
    settings = preset("quick")
    told = describe_ending(412, settings)
    assert told == (
        "done at step 412 of 600, when its 45 s were over; --steps 600 (steps=600) alone lifts the limit of time"
    )
    assert preset("quick", steps=600).seconds is None and describe_ending(600, preset("quick", steps=600)) == DONE
    assert describe_ending(600, settings) == DONE
    assert preset("quick", seconds=60).steps is None
    assert (preset("quick", steps=9, seconds=60).steps, preset("quick", steps=9, seconds=60).seconds) == (9, 60)


def test_numbers_that_run_away_stop_doing_so_at_lower_rates():
    views = drive.ball_views()
    wild = fit(views, preset("quick", **QUICK, steps=3, lr_density=1.0), box=drive.BALL_BOX, between=spoil)
    assert "lower the learning rates" in wild.ended
    assert quick(settings={"lr_density": 0.01}).ended == DONE


def spoil(fitter):
    """Numbers run away in the second step, as at rates that are too high."""
    if fitter.steps_done == 1:
        fitter.grid.fields.d_density[0, 3, 3, 3] = np.nan
    return False


def test_the_box_s_centre_is_where_a_camera_is_to_look(capsys):
    ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.6), shape=(8, 8, 8))
    away = Camera.look_at((0, -4, 0), (0, -8, 0), width=24, height=24)
    with pytest.raises(rm.RaymarchError, match="turn it to the box's centre") as refused:
        register(ball, np.zeros((24, 24, 3)), away)
    centre = [float(n) for n in str(refused.value).split("centre, (")[1].split(")")[0].split(",")]
    at = Camera.look_at((0, -4, 0), centre, width=24, height=24)
    with pytest.raises(rm.RaymarchError, match="scale one"):
        register(ball, np.zeros((48, 48, 3)), at)
    assert register(ball, np.zeros((24, 24, 3)), at, steps=1).steps <= 9


def test_the_set_that_belongs_to_a_volume_raises_no_doubt():
    image = few_views().rgb(0)
    volume = replace(rm.Volume.from_array(np.ones((4, 4, 4))), provenance={"rays_psnr": 40.0})
    other = replace(few_views(), images=[np.round(255 * IMAGE).astype("u1")] * 2)
    assert "give the set and the volume that belong together" in doubt_of_set(volume, other, 1 - IMAGE)
    assert doubt_of_set(volume, few_views(), image) == ""


def test_there_is_a_file_for_each_checkpoint_of_this_list(stopped, tmp_path):
    """The damage is damage: the rest of the list would pass with none."""
    (tmp_path / "c").write_bytes(flipped(stopped))
    with pytest.raises(OSError), h5py.File(tmp_path / "c") as file:  # noqa: PT011
        file["record"][()]
