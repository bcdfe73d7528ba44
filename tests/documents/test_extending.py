"""Law: the programs that docs/extending.md shows run, each in a new folder, and use only what is public."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

import raymarch

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "extending.md"
PROGRAMS = sorted((ROOT / "examples" / "extending").glob("*.py"))
EACH = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
RUNNER = """
import json, os, runpy, sys, traceback
for folder, program in zip(sys.argv[1::2], sys.argv[2::2]):
    os.chdir(folder)
    try:
        runpy.run_path(program, run_name="__main__")
        error = ""
    except BaseException:
        error = traceback.format_exc()
    print("\\noutcome " + json.dumps(error), flush=True)
"""


def by_precision() -> dict[str, list[Path]]:
    """Programs that can share a process: those that start it in double precision, and the rest."""
    found: dict[str, list[Path]] = {"f32": [], "f64": []}
    for program in PROGRAMS:
        found["f64" if '"f64"' in program.read_text(encoding="utf-8") else "f32"].append(program)
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, str]:
    """What went wrong with each program: one process for all of a precision."""
    found = {}
    for programs in by_precision().values():
        words = [str(word) for program in programs for word in (tmp_path_factory.mktemp(program.stem), program)]
        command = [sys.executable, "-c", RUNNER, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        told = re.findall(r"(?m)^outcome (.*)$", done.stdout)
        ended = f"the process ended with {done.returncode}: {done.stderr[-4000:]}"
        for program, text in zip_longest(programs, told):
            found[program.stem] = ended if text is None else json.loads(text)
    return found


@pytest.mark.whole
@EACH
def test_a_program_runs(program, outcomes):
    assert not outcomes[program.stem], outcomes[program.stem]


@EACH
def test_a_program_asserts_and_uses_what_is_public(program):
    text = program.read_text(encoding="utf-8")
    assert "assert " in text and not re.search(r"(?m)^\s*(from|import) raymarch\.", text)
    assert set(re.findall(r"\brm\.(\w+)", text)) <= set(raymarch.__all__)


def test_the_page_shows_every_program_once():
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = re.findall(r"(?m)^```\{literalinclude\} \.\./(.+)$", text)
    assert sorted(shown) == [program.relative_to(ROOT).as_posix() for program in PROGRAMS]
    assert len(re.findall(r"(?m)^## ", text)) == len(PROGRAMS)
