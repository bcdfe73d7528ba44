"""Law: what examples/autodiff states about the gradients of Taichi holds: an assert of its number proves each numbered
statement, and docs/autodiff.md names each program once.

An assert marked `trap` states what this Taichi gets wrong. If one fails, a newer Taichi has mended it: the canary.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "autodiff.md"
FOLDER = ROOT / "examples" / "autodiff"
TRAP = re.compile(r"(?m)^Trap: (.+)$")
CLAIM = re.compile(r"\((\d+)\)")
CODE = re.compile(r"`[^`]*`")

# Runs each file as a program, in one process: Taichi starts once, each block's ti.init gives it a fresh state.
RUNNER = """
import json, runpy, sys, traceback, warnings
with warnings.catch_warnings():  # Taichi 1.7.4 calls locale.getdefaultlocale as it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    import taichi
warnings.simplefilter("error")
for path in sys.argv[1:]:
    outcome = {"path": path, "error": "", "line": 0, "type": ""}
    try:
        runpy.run_path(path, run_name="__main__")
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = frames and frames[-1].filename == path
        line = frames[-1].lineno if own else 0
        outcome |= {"error": traceback.format_exc(), "type": type(error).__name__, "line": line}
    print("\\noutcome " + json.dumps(outcome), flush=True)
"""


class Program(NamedTuple):
    """An example; `trap` names what Taichi gets wrong in it, or is empty."""

    code: str

    @property
    def docstring(self) -> str:
        return ast.get_docstring(ast.parse(self.code)) or ""

    @property
    def trap(self) -> str:
        found = TRAP.search(self.docstring)
        return found[1] if found else ""

    def claims(self) -> list[int]:
        """Numbers of the statements, in the order of the text."""
        return [int(n) for n in CLAIM.findall(CODE.sub("", self.docstring))]

    def asserts(self) -> list[tuple[range, set[int], bool]]:
        """The lines, the numbers of the statements proven, and whether it is a trap, of each top-level assert."""
        lines = self.code.splitlines()
        found = []
        for node in ast.parse(self.code).body:
            if isinstance(node, ast.Assert):
                comment = lines[node.end_lineno - 1].partition("  # ")[2]
                numbers = {int(n) for n in CLAIM.findall(comment)}
                found.append((range(node.lineno, node.end_lineno + 1), numbers, comment.endswith("trap")))
        return found


PATHS = sorted(FOLDER.glob("*.py"))
PROGRAMS = {path.stem: Program(path.read_text(encoding="utf-8")) for path in PATHS}


def verdict(program: Program, outcome: dict, version: str) -> str:
    """What is to be said of a run of this program; nothing if it did what its docstring says."""
    if not outcome["error"]:
        return ""
    if outcome["type"] == "AssertionError":
        for lines, numbers, trap in program.asserts():
            if trap and outcome["line"] in lines:
                return (
                    f"trap '{program.trap}', statement {sorted(numbers)}: Taichi {version} no longer gets this wrong;"
                    f" check it, and update it and docs/autodiff.md\n{outcome['error']}"
                )
    return outcome["error"]


def run_all(paths: list[Path]) -> dict[str, dict]:
    """Run the files; where one takes the process down with it, go on with the next in a new process."""
    outcomes = {}
    todo = [str(path) for path in paths]
    env = os.environ | {"TI_SKIP_VERSION_CHECK": "ON", "ENABLE_TAICHI_HEADER_PRINT": "0"}
    while todo:
        command = [sys.executable, "-c", RUNNER, *todo]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)
        lines = [line for line in done.stdout.splitlines() if line.startswith("outcome ")]
        for line in lines:
            outcome = json.loads(line.removeprefix("outcome "))
            outcomes[outcome["path"]] = outcome
        todo = todo[len(lines) :]
        if todo:
            crash = f"the process died ({done.returncode})\n{done.stderr[-4000:]}"
            outcomes[todo[0]] = {"path": todo[0], "error": crash, "type": "", "line": 0}
            todo = todo[1:]
    return outcomes


@pytest.fixture(scope="session")
def outcomes() -> dict[str, dict]:
    found = run_all(PATHS)
    return {path.stem: found[str(path)] for path in PATHS}


@pytest.mark.whole
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_does_what_it_says(name, outcomes):
    import taichi

    version = ".".join(map(str, taichi.__version__))
    said = verdict(PROGRAMS[name], outcomes[name], version)
    assert not said, said


def test_programs_prove_what_they_state():
    """Statements are numbered from 1, and the asserts carry the same numbers."""
    for name, program in PROGRAMS.items():
        claims = program.claims()
        proven = set().union(*(numbers for _, numbers, _ in program.asserts()))
        assert claims and sorted(claims) == list(range(1, len(claims) + 1)), name
        assert proven == set(claims), name


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_whole(name):
    """It can be copied and run: it imports Taichi and starts it in f64. A trap is marked in both places or in none."""
    program = PROGRAMS[name]
    assert "import taichi as ti\n" in program.code
    assert re.search(r"(?m)^ti\.init\(ti\.cpu, default_fp=ti\.f64", program.code)
    assert bool(program.trap) == any(trap for *_, trap in program.asserts())


def test_traps_have_names_of_their_own():
    traps = [program.trap for program in PROGRAMS.values() if program.trap]
    assert traps
    assert len(set(traps)) == len(traps)


def test_the_page_names_every_program_once():
    named = re.findall(r"`(\w+)\.py`", DOCUMENT.read_text(encoding="utf-8"))
    assert sorted(named) == sorted(PROGRAMS)


def test_programs_that_others_name_are_there():
    named = {name for program in PROGRAMS.values() for name in re.findall(r"`(\w+)\.py`", program.docstring)}
    assert named <= set(PROGRAMS)


TOY = Program(
    '"""Toy.\n\nTrap: toy\n"""\n'
    "x = 1\nassert x == 1  # (1)\nassert not (\n    x == 1\n)  # (2) trap\nassert x == 2  # (3)\n"
)


def test_canary_names_the_mended_trap(tmp_path):
    path = tmp_path / "toy.py"
    path.write_text(TOY.code)
    said = verdict(TOY, run_all([path])[str(path)], "9.9.9")
    assert "trap 'toy', statement [2]: Taichi 9.9.9" in said
    assert "docs/autodiff.md" in said


@pytest.mark.parametrize("code", ["assert False  # (1)\n", "raise KeyError\n", "import os\nos._exit(3)\n"])
def test_other_failures_are_no_canary(tmp_path, code):
    paths = [tmp_path / "bad.py", tmp_path / "next.py"]
    paths[0].write_text(code)
    paths[1].write_text("assert True\n")
    found = run_all(paths)
    said = verdict(Program(code), found[str(paths[0])], "9.9.9")
    assert said
    assert "no longer" not in said
    assert not found[str(paths[1])]["error"]
