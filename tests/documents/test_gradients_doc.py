"""Law: what docs/gradients.md shows runs, each block alone, and the tests it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from blocks import blocks_of, outcomes

from raymarch.gradients.parameters import CHOICES

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "gradients.md").read_text()
BLOCKS = blocks_of("gradients")


@pytest.mark.whole
@pytest.mark.parametrize("which", range(len(BLOCKS)))
def test_block_runs(which):
    error = outcomes()["gradients", which]
    assert not error, error


def test_every_block_asserts():
    assert BLOCKS
    assert all("assert " in block for block in BLOCKS)


PLACES = ("| parameter | numbers | moves | proven in", "| where | derivative given | test (")


def rows_of(head: str) -> list[list[str]]:
    """Cells of each row of the table that begins so."""
    lines = TEXT[TEXT.index(head) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("head", PLACES)
def test_tests_it_names_exist(head):
    """Each row names one, of the file that it says, or says that there is none."""
    rows = rows_of(head)
    assert len(rows) > 10
    for row in rows:
        if row[-1].startswith(("none: ", "the same")):
            continue
        file, found = "test_kinks.py" if head == PLACES[1] else "", 0
        for said in re.findall(r"`(\w+(?:\.py)?)`", row[-1]):
            if said.endswith(".py"):
                file = said
            text = (ROOT / "tests" / "kernels" / file).read_text()
            assert said == file or f"def test_{said}" in text, row
            found += 1
        assert found, row


def test_every_parameter_has_a_row():
    assert {name for row in rows_of(PLACES[0]) for name in re.findall(r"`(\w+)`", row[0])} == set(CHOICES)
