"""Law: what docs/torch.md shows runs, in one process, where PyTorch is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from skips import require_extra

require_extra("torch", "torch")

pytestmark = pytest.mark.extra
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "torch.md").read_text()
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)


def test_blocks_run(tmp_path):
    """One after the other, each with names of its own: what is compiled for one serves the next."""
    for k, block in enumerate(BLOCKS):
        (tmp_path / f"block_{k}.py").write_text(block)
    run = "import runpy, sys\nfor path in sys.argv[1:]:\n    runpy.run_path(path)\n"
    command = [sys.executable, "-c", run, *(f"block_{k}.py" for k in range(len(BLOCKS)))]
    how = {"capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, cwd=tmp_path, check=False, **how)
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_block_asserts():
    assert BLOCKS
    assert all("assert " in block for block in BLOCKS)
