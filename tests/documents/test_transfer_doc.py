"""Law: what docs/transfer.md shows runs, each block alone; that of VTK in tests/rendering/test_pictures_of_vtk.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "transfer.md").read_text()
ALL = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
BLOCKS = [block for block in ALL if "import vtk" not in block]


@pytest.mark.parametrize("which", range(len(BLOCKS)))
def test_block_runs(which, tmp_path):
    (tmp_path / "block.py").write_text(BLOCKS[which])
    env = {**os.environ, "TI_OPT_LEVEL": "0"}  # large kernels for a few rays: they compile in half the time
    command, how = [sys.executable, "block.py"], {"capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, cwd=tmp_path, env=env, check=False, **how)
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_block_asserts():
    assert len(BLOCKS) == len(ALL) - 1 > 0
    assert all("assert " in block for block in ALL)
