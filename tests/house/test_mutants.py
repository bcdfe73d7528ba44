"""Law: every fault of benchmarks/mutants.py is one piece of a function that still has it, for tests that are there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from difflib import ndiff
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from mutants_cases import all_faults
from mutants_cases.fault import Fault, no_longer_match, room_of

import raymarch as rm

FEWEST, LEAST_A_ROOM = 300, 2  # docs/testing.md says so
ROOMS = (
    *(
        "kernels/field",
        "kernels/rays",
        "kernels/integrator",
        "kernels/modes",
        "kernels/fit",
        "device",
        "gradients",
        "fitting",
        "rendering",
    ),
    *("geometry", "views", "volumes", "registration", "solvers", "io", "evaluation", "cli", "tasks", "ranks"),
)


def test_the_faults_are_many_and_of_every_room(root):
    faults = all_faults()
    rooms = Counter(room_of(fault, root / "raymarch") for fault in faults)
    assert len(faults) >= FEWEST
    assert len({fault.name for fault in faults}) == len(faults)
    assert all(rooms[room] >= LEAST_A_ROOM for room in ROOMS), rooms


def test_every_fault_is_of_one_place_and_python(root):
    assert no_longer_match(all_faults(), root / "raymarch") == []


def test_a_fault_changes_one_line():
    for fault in all_faults():
        gone = [line for line in ndiff(fault.old.splitlines(), fault.new.splitlines()) if line.startswith("- ")]
        assert len(gone) == 1, fault
        assert fault.old.count("\n") == fault.new.count("\n"), fault


def test_the_tests_that_should_notice_are_there(root):
    for test in {test for fault in all_faults() for test in fault.tests}:
        file, name = test.split("::")
        assert re.search(rf"^def {name.split('[')[0]}\(", (root / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_the_command_lists_its_faults(root):
    done = subprocess.run(
        [sys.executable, str(root / "benchmarks/mutants.py"), "--list", "--only", "^solvers"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == sum(
        room_of(fault, root / "raymarch") == "solvers" for fault in all_faults()
    )


def test_a_piece_that_is_not_there_is_named(tmp_path):
    fault = all_faults()[0]
    (tmp_path / "another.py").write_text("def another():\n    pass\n")
    (said,) = no_longer_match([fault], tmp_path)
    assert said.startswith(f"{fault.name}: ")
    assert fault.where in said
    assert "\n" not in said


def planted(text, fault, folder):
    """What is left of a file once a fault is in it."""
    folder.mkdir()
    (folder / "one.py").write_text(text)
    return fault.planted(folder)[1]


def test_a_fault_is_found_wherever_its_lines_break(tmp_path):
    one = Fault("sum", "Sums.sum", "a + b,\n c", "a - b,\n c", ())
    text = "class Sums:\n    def sum(self, a, b):\n        return f({})\n\n"
    text += "    def other(self, a, b):\n        return f(a + b, c)\n"
    for i, (before, after) in enumerate({"a + b, c": "a - b,\n c", "\n a\n + b,\n c,\n": "\n a - b,\n c,\n"}.items()):
        assert planted(text.format(before), one, tmp_path / f"{i}") == text.format(after)


def test_a_fault_that_is_no_python_is_refused(tmp_path):
    with pytest.raises(rm.RaymarchError, match="is no Python"):
        planted("def f(a):\n    return a + 1\n", Fault("sum", "f", "a + 1", "a +", ()), tmp_path / "here")
