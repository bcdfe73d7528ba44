"""Law: what docs/extending.md shows runs: a section is a program of its own blocks, in their order, in a new folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

import raymarch

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
MOST_LINES = 40
RUNNER = """
import json, os, runpy, sys, traceback
for program in sys.argv[1:]:
    os.chdir(os.path.join(os.path.dirname(program), "folder"))
    try:
        runpy.run_path(program, run_name="__main__")
        error = ""
    except BaseException:
        error = traceback.format_exc()
    print("\\noutcome " + json.dumps(error), flush=True)
"""


class Section(NamedTuple):
    """A section by its heading, with the languages and texts of its blocks."""

    title: str
    blocks: list[tuple[str, str]]

    def program(self) -> str:
        return "".join(text for _, text in self.blocks)


def sections_of(text: str) -> list[Section]:
    _, *pieces = re.split(r"(?m)^## (.+)$", text)
    return [Section(title, BLOCK.findall(body)) for title, body in zip(pieces[::2], pieces[1::2], strict=True)]


def by_precision(sections: list[Section]) -> dict[str, list[Section]]:
    """Sections that can share a process: those that start it in double precision, and the rest."""
    found: dict[str, list[Section]] = {"f32": [], "f64": []}
    for section in sections:
        found["f64" if '"f64"' in section.program() else "f32"].append(section)
    return found


SECTIONS = sections_of(DOCUMENT.read_text(encoding="utf-8"))
EACH = pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, str]:
    """What went wrong with each section: one process for all of a precision, a file for each, which Taichi reads."""
    found = {}
    for precision, sections in by_precision(SECTIONS).items():
        root, programs = tmp_path_factory.mktemp(precision), []
        for i, section in enumerate(sections):
            (root / str(i) / "folder").mkdir(parents=True)
            programs.append(root / str(i) / "section.py")
            programs[-1].write_text(section.program(), encoding="utf-8")
        command = [sys.executable, "-c", RUNNER, *map(str, programs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        told = re.findall(r"(?m)^outcome (.*)$", done.stdout)
        ended = f"the process ended with {done.returncode}: {done.stderr[-4000:]}"
        for section, text in zip_longest(sections, told):
            found[section.title] = ended if text is None else json.loads(text)
    return found


@pytest.mark.whole
@EACH
def test_a_section_runs(section, outcomes):
    assert not outcomes[section.title], outcomes[section.title]


@EACH
def test_a_section_is_an_example_of_a_page_that_asserts(section):
    """Each block is short, in Python, and uses only what is public."""
    assert section.blocks
    assert "assert " in section.program()
    for language, text in section.blocks:
        assert language == "python"
        assert len(text.splitlines()) <= MOST_LINES
        assert not re.search(r"(?m)^\s*(from|import) raymarch\.", text)
        assert set(re.findall(r"\brm\.(\w+)", text)) <= set(raymarch.__all__)


def test_sections_have_names_of_their_own():
    titles = [section.title for section in SECTIONS]
    assert {"An image-set reader", "A volume format"} <= set(titles)
    assert len(set(titles)) == len(titles)


def test_a_section_is_split_into_its_blocks():
    found = sections_of(
        "# T\n\n## A\n\n```python\nx = 1\n```\n\ntext\n\n```python\nassert x\n```\n\n## B\n\n```sh\nls\n```\n"
    )
    assert found == [Section("A", [("python", "x = 1\n"), ("python", "assert x\n")]), Section("B", [("sh", "ls\n")])]
    assert found[0].program() == "x = 1\nassert x\n"
