"""Law: what docs/modes.md shows runs, each block alone, and the tests it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from blocks import blocks_of, outcomes

from raymarch.kernels.modes.registry import MODES

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "modes.md").read_text()
BLOCKS = blocks_of("modes")


@pytest.mark.whole
@pytest.mark.parametrize("which", range(len(BLOCKS)))
def test_block_runs(which):
    error = outcomes()["modes", which]
    assert not error, error


def test_every_block_asserts():
    assert BLOCKS
    assert all("assert " in block for block in BLOCKS)


def test_every_mode_by_name_is_there():
    named = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", TEXT))))
    assert named == set(MODES)
