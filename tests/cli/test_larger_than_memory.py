"""Law of `raymarch render --memory`: the picture in memory, what it takes said before, and refusals of one line."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import raymarch as rm
from raymarch import cli
from raymarch.rendering import out_of_core
from raymarch.volumes import part_plan

LOOK = "--position 24,-70,40 --size 24 --mode maximum --window 0,900"


@pytest.fixture
def here(tmp_path, monkeypatch):
    x = np.linspace(-1, 1, 26)
    values = (900 * np.exp(-3 * (x[:, None, None] ** 2 + x[:, None] ** 2 + x**2))).astype(np.float32)
    rm.save(rm.ScalarVolume(values, np.diag([2.0, 1.0, 1.0, 1.0])), tmp_path / "scan.h5")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(line))
    return ended.value.code


def test_picture_is_that_in_memory_and_what_is_read_is_said_before(here, monkeypatch, capsys):
    monkeypatch.setattr(part_plan, "MIN_SIDE", 4)
    monkeypatch.setattr(out_of_core, "_rooms", lambda volume, memory, features: (14**3, 4000))
    assert run(f"render scan.h5 --memory 2 {LOOK} --out parts.png") == 0
    said = capsys.readouterr().err
    assert "scan.h5: 8 parts of up to 14 x 14 x 14 samples, of which rays meet 8; of 0.07 MB up to" in said
    assert run(f"render scan.h5 {LOOK} --out whole.png") == 0
    assert (here / "parts.png").read_bytes() == (here / "whole.png").read_bytes()
    assert run(f"render scan.h5 --memory 2 --level 0 --workers 1 {LOOK} --out workers.png") == 0
    assert "are read; by 1 worker, up to 3 parts at once" in capsys.readouterr().err
    assert (here / "workers.png").read_bytes() == (here / "parts.png").read_bytes()


REFUSED = {
    "--memory 0.2": "--memory is 0.2 GB, of which raymarch takes 0.25 before any volume; give 0.35 or more",
    "--memory 0": "--memory is 0.0, want a number between 0 and 1e+06 [GB]",
    "--memory nan": "--memory is nan, want a number between 0 and 1e+06 [GB]",
    "--memory inf": "--memory is inf, want a number between 0 and 1e+06 [GB]",
    "--memory two": "want gigabytes, such as 8, 8GB or 500MB",
    "--memory 2 --with scan.h5": "--with takes all volumes into memory; leave one of them out",
    "--memory 2 --channels a,b,c": "--channels is of fitted volumes; leave one of them out",
    "--memory 2 --level 3": "--level is 3, but there is only one; leave it out",
    "--level 3": "--level is 3, but there is only one; leave it out",
    "--level 0 --workers 2": "are read by this process alone; leave --workers out",
}


@pytest.mark.parametrize("out", ["parts.png", "parts"])
@pytest.mark.parametrize("options", REFUSED)
def test_what_does_not_go_together_is_one_line_and_leaves_nothing(options, out, here, capsys):
    assert run(f"render scan.h5 {options} {LOOK} --out {out}") != 0
    assert REFUSED[options] in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["scan.h5"]
