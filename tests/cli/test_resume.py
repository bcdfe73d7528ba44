"""Law: a fit that was killed goes on by --resume to the same volume; nobody's hours are thrown away without a word."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from sets import write_set

from raymarch import cli
from raymarch.cli.progress import FitProgress
from raymarch.fitting.checkpoints.checkpoint_file import read_record
from raymarch.io.volumes.volume_file import load

FIT = "fit set --preset quick --steps 60 --resolution 8 --sh-degree 0 --box=-1,-1,-1,1,1,1 --set rays=64"
FIT += " --set hull=False --set slots=1"
CHECKPOINT = "v.h5.checkpoint"


@pytest.fixture
def ran(capsys, monkeypatch, tmp_path):
    """Exit code, stdout and stderr of a command in a folder with an image set."""
    monkeypatch.chdir(tmp_path)
    write_set(tmp_path / "set")

    def run(line: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(line))
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


class Killed(BaseException):
    """What no handler of the package knows."""


@pytest.fixture
def killed(ran, monkeypatch):
    """A fit of 60 steps that ended at its second report, with a checkpoint of the first."""

    def die(progress, report):
        if report.step == 50:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(FitProgress, "__call__", die)
        with pytest.raises(Killed):
            cli.main(shlex.split(f"{FIT} --out v.h5 --checkpoint-every 1e-9"))
    assert sorted(os.listdir()) == ["set", CHECKPOINT]
    assert read_record(CHECKPOINT)["steps"] == 25


def bytes_of(path):
    volume = load(path)
    return volume.density.tobytes() + volume.features.tobytes()


def test_a_killed_fit_goes_on_to_the_same_volume(ran, killed):
    assert ran(f"{FIT} --out whole.h5")[0] == 0
    code, out, _ = ran(f"{FIT} --out v.h5 --resume --json")
    assert code == 0
    assert (json.loads(out)["resumed_from"], json.loads(out)["ended"]) == (25, "done")
    assert bytes_of("v.h5") == bytes_of("whole.h5")
    assert load("v.h5").provenance["resumed_from"] == 25
    assert sorted(os.listdir()) == ["set", "v.h5", "whole.h5"]  # the checkpoint has done its duty
    assert json.loads(ran(f"{FIT} --out v.h5 --json")[1])["resumed_from"] is None


def test_a_fit_anew_is_refused_while_there_is_a_checkpoint(ran, killed, caplog):
    before = Path(CHECKPOINT).read_bytes()
    for more in ("", "--checkpoint-every 5"):
        code, out, err = ran(f"{FIT} --out v.h5 {more}")
        assert (code, out) == (1, "")
        assert err.startswith(f"raymarch: {CHECKPOINT}: has a fit of 25 steps and ")
        assert "go on with it by --resume" in err
        assert "lose it by --overwrite" in err
        assert len(err.splitlines()) == 1
    assert ran(f"{FIT} --dry-run")[0] == 0
    assert Path(CHECKPOINT).read_bytes() == before
    code, _, err = ran(f"{FIT} --out v.h5 --overwrite")
    assert code == 0
    assert caplog.text.count(f"{CHECKPOINT}: has a fit of 25 steps") == 1
    assert "this fit takes its place" in caplog.text
    assert not Path(CHECKPOINT).exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--seed 4", "other settings: seed was 0, is 4"),
        ("--set tv_density=1e-3", "tv_density was 0.0, is 0.001"),
        ("--box=-1,-1,-1,1,1,2", "another grid: box was"),
    ],
)
def test_another_fit_does_not_go_on(change, said, ran, killed):
    before = Path(CHECKPOINT).read_bytes()
    code, out, err = ran(f"{FIT} {change} --out v.h5 --resume")
    assert (code, out) == (1, "")
    assert said in err.splitlines()[-1]
    assert Path(CHECKPOINT).read_bytes() == before
    assert not Path("v.h5").exists()


def test_other_images_do_not_go_on(ran, killed):
    shutil.copy("set/train/r_0.png", "set/train/r_1.png")
    code, _, err = ran(f"{FIT} --out v.h5 --resume")
    assert code == 1
    assert "is of a fit to other views: the image of r_1 differs" in err


def test_there_must_be_something_to_resume(ran):
    code, out, err = ran(f"{FIT} --out v.h5 --resume")
    assert (code, out) == (1, "")
    assert err == f"raymarch: {CHECKPOINT}: there is no checkpoint to resume from; leave --resume out\n"
    code, _, err = ran(f"{FIT} --out v.h5 --checkpoint-every 0")
    assert code == 2
    assert "'0': want a number from 1e-09 to 1e+06; minutes between two" in err
    assert os.listdir() == ["set"]


def test_an_interrupted_fit_says_how_to_go_on(ran, monkeypatch):
    def stop(progress, report):
        if report.step == 25:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(FitProgress, "__call__", stop)
        code, _, err = ran(f"{FIT} --out v.h5 --checkpoint-every 60")
    assert code == 0
    assert f"{CHECKPOINT} has the fit as it stood; the same command with --resume goes on from there" in err
    assert load("v.h5").provenance["ended"] == "interrupted at step 26"
    assert json.loads(ran(f"{FIT} --out v.h5 --resume --json")[1])["resumed_from"] == 26
    volume = load("v.h5")
    assert (volume.provenance["steps"], volume.provenance["ended"]) == (60, "done")
    assert np.isfinite(volume.density).all()
    assert not Path(CHECKPOINT).exists()


def test_a_fit_without_checkpoints_leaves_those_of_another_to_the_same_file(ran, monkeypatch):
    """Which came while it ran; what was there before is refused, or given up by --overwrite."""
    module = sys.modules["raymarch.cli.fit"]  # the package has the command under that name
    report = module._report
    monkeypatch.setattr(module, "_report", lambda *args: (report(*args), Path(CHECKPOINT).write_text("another's")))
    assert ran(f"{FIT} --out v.h5")[0] == 0
    assert Path(CHECKPOINT).read_text() == "another's"
