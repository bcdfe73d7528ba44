"""Law: what docs/transfer.md shows runs, each block alone; VTK's program: tests/rendering/test_pictures_of_vtk.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from blocks import blocks_of, outcomes

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "transfer.md").read_text()
ALL = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
BLOCKS = blocks_of("transfer")


@pytest.mark.whole
@pytest.mark.parametrize("which", range(len(BLOCKS)))
def test_block_runs(which):
    error = outcomes()["transfer", which]
    assert not error, error


def test_every_block_asserts():
    assert len(BLOCKS) == len(ALL) > 0
    assert all("assert " in block for block in ALL)
