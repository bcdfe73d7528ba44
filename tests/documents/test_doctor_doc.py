"""Law: what docs/doctor.md shows runs, and it lists every finding that there is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "doctor.md").read_text()
SOURCES = [*(ROOT / "raymarch" / "diagnosis").glob("*.py"), ROOT / "raymarch" / "cli" / "doctor.py"]


def test_its_block_runs():
    (block,) = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
    exec(compile(block, "doctor.md", "exec"), {})


def test_it_lists_every_finding():
    codes = {code for source in SOURCES for code in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source.read_text())}
    codes |= {code for source in SOURCES for code in re.findall(r'Finding\(\s*"([a-z-]+)"', source.read_text())}
    listed = set(re.findall(r"`([a-z-]+)`", TEXT))
    assert len(codes) > 20 and codes <= listed, codes - listed
