"""Law: what docs/extending.md shows runs: a section is a program of its own blocks, in their order, in a new folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import raymarch

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
MOST_LINES = 40


class Section(NamedTuple):
    """A section by its heading, with the languages and texts of its blocks."""

    title: str
    blocks: list[tuple[str, str]]

    def program(self) -> str:
        return "".join(text for _, text in self.blocks)


def sections_of(text: str) -> list[Section]:
    _, *pieces = re.split(r"(?m)^## (.+)$", text)
    return [Section(title, BLOCK.findall(body)) for title, body in zip(pieces[::2], pieces[1::2], strict=True)]


SECTIONS = sections_of(DOCUMENT.read_text(encoding="utf-8"))
EACH = pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)


@EACH
def test_a_section_runs(section, tmp_path):
    """In a process and a file of its own: Taichi reads the source of what it compiles."""
    program, folder = tmp_path / "section.py", tmp_path / "folder"
    folder.mkdir()
    program.write_text(section.program(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]


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
