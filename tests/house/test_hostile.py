"""Law: the list of hostile cases is sound, and its judge sees what is lost, half said or crashed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from hostile_cases import all_cases
from hostile_cases.case import EITHER, REFUSED, WORKS, Case
from hostile_cases.judge import BAD, GOOD, POOR, judge
from hostile_cases.material import snapshot
from hostile_cases.place import Done

LINE = "raymarch: focal is 0.0 pixels, want a positive number; check fl_x\n"


def ruling(folder, code=1, err="", out="", after=None, **case):
    case = Case("area", "name", **{"do": ("info",), "expect": REFUSED, "says": "focal", **case})
    done = Done(code=code, out=out, err=err, seconds=1.0, cpu=1.0, peak=0, hung=False)
    before = snapshot(folder)
    return judge(case, done, folder, before, before if after is None else after)


def test_every_case_has_a_name_of_its_own_and_a_pattern_that_is_one():
    cases = all_cases()
    names = [(case.area, case.name) for case in cases]
    assert len(cases) > 300
    assert len(set(names)) == len(names)
    for case in cases:
        re.compile(case.says)
        assert case.expect in (REFUSED, WORKS, EITHER)


@pytest.mark.parametrize(
    ("verdict", "code", "err", "how"),
    [
        (GOOD, 1, LINE, {}),
        (GOOD, 1, "note: 1 of 12 images is missing\n 50%  step 9  loss 1\n" + LINE, {}),
        (POOR, 1, LINE + LINE, {}),
        (POOR, 1, "", {}),
        (POOR, 1, "raymarch: no; check it\n", {}),
        (POOR, 1, "raymarch: focal\n", {}),
        (POOR, 1, LINE.replace("pixels", "\x1b[31m"), {}),
        (POOR, 1, LINE, {"expect": WORKS}),
        (BAD, 0, "", {}),
        (BAD, -11, LINE, {}),
        (BAD, 139, LINE, {}),
        (BAD, 1, "Traceback (most recent call last):\nKeyError: 'focal'\n", {}),
        (POOR, 1, "Traceback (most recent call last):\nKeyError: 'focal'\n", {"do": "source"}),
        (BAD, 1, "Traceback (most recent call last):\nAssertionError: focal\n", {"do": "source", "expect": WORKS}),
        (
            GOOD,
            1,
            "Traceback (most recent call last):\nTypeError: focal\n",
            {"do": "source", "foreign": ("TypeError",)},
        ),
        (GOOD, 0, "", {"expect": WORKS, "says": ""}),
        (GOOD, 0, "", {"expect": EITHER}),
        (POOR, 0, "", {"expect": WORKS}),
        (POOR, 0, "x.py:3: RuntimeWarning: overflow\n  x * x\n", {"expect": WORKS, "says": ""}),
    ],
)
def test_the_judge_rules_by_what_was_said(tmp_path, verdict, code, err, how):
    assert ruling(tmp_path, code, err, **how).verdict == verdict


def test_the_judge_sees_files_that_are_lost_replaced_or_left(tmp_path):
    (tmp_path / "mine.png").write_text("mine")
    whole = snapshot(tmp_path)
    assert ruling(tmp_path, err=LINE, after=whole).verdict == GOOD
    assert ruling(tmp_path, err=LINE, after={}).what == "lost: 'mine.png'"
    assert ruling(tmp_path, err=LINE, after={"mine.png": "other"}).what == "replaced: 'mine.png'"
    assert ruling(tmp_path, err=LINE, after={"mine.png": "other"}, changes=("mine.*",)).verdict == GOOD
    for name, verdict in ((".raymarch-0.tmp", BAD), ("new.png", BAD), ("out.h5", GOOD)):
        assert ruling(tmp_path, err=LINE, after={**whole, name: "0"}, makes=("out.h5",)).verdict == verdict


def test_the_command_lists_its_cases(root):
    done = subprocess.run(
        [sys.executable, str(root / "benchmarks/hostile.py"), "--list", "--only", "^disks"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == sum(case.area == "disks" for case in all_cases())
