"""Law: what docs/autodiff.md states about Taichi's gradients holds, each numbered statement by an assert of its number.

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

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "autodiff.md"
HEADING = re.compile(r"(?m)^#{2,3} (?P<title>.+)$")
BLOCK = re.compile(r"(?ms)(?:^<!-- trap: (?P<trap>[^>]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$")
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


class Block(NamedTuple):
    """A fenced block; `trap` names what Taichi gets wrong in it, or is empty."""

    code: str
    trap: str
    language: str = "python"

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


class Section(NamedTuple):
    title: str
    claims: list[int]
    blocks: list[Block]


def blocks_of(text: str) -> list[Block]:
    return [Block(m["code"], m["trap"] or "", m["language"]) for m in BLOCK.finditer(text)]


def claims_of(prose: str) -> list[int]:
    return [int(n) for n in CLAIM.findall(CODE.sub("", prose))]


def sections_of(text: str) -> list[Section]:
    """Prose and block alternate: a piece of prose belongs to the block after it."""
    _, *pieces = HEADING.split(text)
    sections = []
    for title, body in zip(pieces[::2], pieces[1::2], strict=True):
        prose = BLOCK.split(body)[:: BLOCK.groups + 1]
        blocks = blocks_of(body)
        for k, block in enumerate(blocks):
            sections.append(Section(title, claims_of(prose[k]), [block]))
        rest = claims_of(prose[-1])
        if rest or not blocks:
            sections.append(Section(title, rest, []))
    return sections


TEXT = DOCUMENT.read_text()
BLOCKS = blocks_of(TEXT)
SECTIONS = sections_of(TEXT)
PARTS = set(re.findall(r"(?m)^## (.+)$", TEXT))


def verdict(block: Block, outcome: dict, version: str) -> str:
    """What is to be said of a run of this block; nothing if it did what the document says."""
    if not outcome["error"]:
        return ""
    if outcome["type"] == "AssertionError":
        for lines, numbers, trap in block.asserts():
            if trap and outcome["line"] in lines:
                return (
                    f"trap '{block.trap}', statement {sorted(numbers)}: Taichi {version} no longer gets this wrong;"
                    f" check it and update docs/autodiff.md\n{outcome['error']}"
                )
    return outcome["error"]


def run_all(paths: list[Path]) -> dict[str, dict]:
    """Run the files; where one takes the process down with it, go on with the next in a new process."""
    outcomes = {}
    todo = [str(p) for p in paths]
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
def outcomes(tmp_path_factory) -> list[dict]:
    folder = tmp_path_factory.mktemp("autodiff")
    paths = [folder / f"block_{k}.py" for k in range(len(BLOCKS))]
    for path, block in zip(paths, BLOCKS, strict=True):
        path.write_text(block.code)
    found = run_all(paths)
    return [found[str(path)] for path in paths]


def name_of(k: int) -> str:
    return f"{k}-{BLOCKS[k].trap or next(s.title for s in SECTIONS if BLOCKS[k] in s.blocks)}"


@pytest.mark.whole
@pytest.mark.parametrize("k", range(len(BLOCKS)), ids=name_of)
def test_block_does_what_the_document_says(k, outcomes):
    import taichi

    version = ".".join(map(str, taichi.__version__))
    said = verdict(BLOCKS[k], outcomes[k], version)
    assert not said, said


def test_sections_state_what_blocks_prove():
    """In each piece, the statements are numbered from 1 and the asserts of its block carry the same numbers."""
    for section in SECTIONS:
        if section.title in PARTS and not section.blocks:
            assert not section.claims
            continue
        assert section.blocks, f"{section.title!r} has no block"
        proven = set().union(*(numbers for b in section.blocks for _, numbers, _ in b.asserts()))
        assert sorted(section.claims) == list(range(1, len(section.claims) + 1)), section.title
        assert proven == set(section.claims), section.title
        assert proven, section.title


@pytest.mark.parametrize("k", range(len(BLOCKS)), ids=name_of)
def test_block_is_whole(k):
    """It can be copied and run: it imports Taichi and starts it in f64. A trap is marked in both places or in none."""
    block = BLOCKS[k]
    assert block.language == "python"
    assert "import taichi as ti\n" in block.code
    assert re.search(r"(?m)^ti\.init\(ti\.cpu, default_fp=ti\.f64", block.code)
    assert bool(block.trap) == any(trap for *_, trap in block.asserts())


def test_traps_have_names_of_their_own():
    traps = [b.trap for b in BLOCKS if b.trap]
    assert traps
    assert len(set(traps)) == len(traps)


def test_links_reach_their_headings():
    titles = re.findall(r"(?m)^#{2,3} (.+)$", TEXT)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    targets = set(re.findall(r"\]\(#([^)]+)\)", TEXT))
    assert targets
    assert targets <= anchors


TOY = Block("x = 1\nassert x == 1  # (1)\nassert not (\n    x == 1\n)  # (2) trap\nassert x == 2  # (3)\n", "toy")


def test_canary_names_the_mended_trap(tmp_path):
    path = tmp_path / "toy.py"
    path.write_text(TOY.code)
    said = verdict(TOY, run_all([path])[str(path)], "9.9.9")
    assert "trap 'toy', statement [2]: Taichi 9.9.9" in said
    assert "update docs/autodiff.md" in said


@pytest.mark.parametrize("code", ["assert False  # (1)\n", "raise KeyError\n", "import os\nos._exit(3)\n"])
def test_other_failures_are_no_canary(tmp_path, code):
    paths = [tmp_path / "bad.py", tmp_path / "next.py"]
    paths[0].write_text(code)
    paths[1].write_text("assert True\n")
    found = run_all(paths)
    said = verdict(Block(code, "toy"), found[str(paths[0])], "9.9.9")
    assert said
    assert "no longer" not in said
    assert not found[str(paths[1])]["error"]
