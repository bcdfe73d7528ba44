"""Law: what docs/volumes.md shows runs, its table has every format, and the options that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from skips import require_extra

from raymarch.cli.convert import convert
from raymarch.cli.info import info
from raymarch.cli.render import render
from raymarch.io.volumes.volume_file import FORMATS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "volumes.md").read_text()


@pytest.mark.extra
def test_the_blocks_run(tmp_path, monkeypatch):
    for library in ("nibabel", "nrrd"):
        require_extra(library, "formats")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
    for block in blocks:
        assert "assert " in block
        exec(compile(block, "docs/volumes.md", "exec"), names)
    assert len(blocks) >= 3 and {"head.nii.gz", "v.xdmf", "v.h5"} <= {file.name for file in tmp_path.iterdir()}


def test_the_table_has_every_format_with_its_suffixes():
    rows = dict(re.findall(r"(?m)^\| `([^`]+)` \| ([^|]+) \|", TEXT))
    assert list(rows) == [one.name for one in FORMATS]
    for one in FORMATS:
        assert rows[one.name].startswith("a folder") or all(suffix in rows[one.name] for suffix in one.suffixes)


def test_the_options_are_there():
    options = {option for verb in (convert, info, render) for each in verb.params for option in each.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", TEXT)) - {"--raw"} <= options
