"""Law: every fault of benchmarks/mutants.py is one line of a file that still has it, for tests that are there."""

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
from mutants_cases.fault import no_longer_match

FEWEST, LEAST_A_ROOM = 300, 2  # docs/testing.md says so
ROOMS = (
    *("kernels/field", "kernels/rays", "kernels/march", "kernels/fit", "device", "gradients", "fitting", "rendering"),
    *("geometry", "data", "registration", "solvers", "io", "evaluation", "cli"),
)


def test_the_faults_are_many_and_of_every_room():
    faults = all_faults()
    rooms = Counter(fault.room for fault in faults)
    assert len(faults) >= FEWEST
    assert len({fault.name for fault in faults}) == len(faults)
    assert all(rooms[room] >= LEAST_A_ROOM for room in ROOMS), rooms


def test_every_fault_matches_its_file_once(root):
    assert no_longer_match(all_faults(), root / "raymarch") == []


@pytest.mark.parametrize("fault", all_faults(), ids=lambda fault: f"{fault.file}: {fault.name}")
def test_a_fault_changes_one_line(fault):
    gone = [line for line in ndiff(fault.old.splitlines(), fault.new.splitlines()) if line.startswith("- ")]
    assert len(gone) == 1
    assert fault.old.count("\n") == fault.new.count("\n")


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
    assert len(done.stdout.splitlines()) == sum(fault.room == "solvers" for fault in all_faults())


def test_a_line_that_is_not_there_is_named(tmp_path):
    fault = all_faults()[0]
    path = tmp_path / fault.file
    path.parent.mkdir(parents=True)
    path.write_text("another line\n")
    (said,) = no_longer_match([fault], tmp_path)
    assert said.startswith(f"{fault.name}: ")
    assert fault.file in said
    assert "\n" not in said
