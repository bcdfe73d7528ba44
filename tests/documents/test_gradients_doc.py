"""Law: what docs/gradients.md shows runs, each block alone, and the tests it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from blocks import blocks_of, outcomes

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


def test_tests_it_names_exist():
    tests = (ROOT / "tests" / "kernels" / "test_kinks.py").read_text()
    named = re.findall(r"\| `(\w+)`(?:, `(\w+)`)?(?:, `(\w+)`)? \|$", TEXT, re.M)
    names = [name for pair in named for name in pair if name]
    assert len(names) >= 7
    assert all(f"def test_{name}" in tests for name in names)
