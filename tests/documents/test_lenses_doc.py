"""Law: what docs/lenses.md shows runs, block after block, and its table has every model with its coefficients."""

import re
from pathlib import Path

from raymarch.geometry.lens import MODELS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "lenses.md").read_text()
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)


def test_blocks_run_and_assert():
    names = {}
    for block in BLOCKS:
        assert "assert " in block
        exec(compile(block, "docs/lenses.md", "exec"), names)
    assert len(BLOCKS) >= 3


def test_every_model_is_in_the_table():
    for model, each in MODELS.items():
        (row,) = re.findall(rf"(?m)^\| `{model}` \|([^|]*)\|", TEXT)
        assert tuple(re.findall(r"\w+(?= \[|,|$)", row.strip())) == each.names
