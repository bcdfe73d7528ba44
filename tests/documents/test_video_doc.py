"""Law: what docs/video.md shows runs, its options are those of the command, and its file of keys is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raymarch.cli.render import render
from raymarch.io.videos.camera_path_file import load_camera_path

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "video.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)


@pytest.mark.parametrize("which", range(len(BLOCKS)))
def test_block_runs(which, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "assert " in BLOCKS[which]
    exec(compile(BLOCKS[which], "docs/video.md", "exec"), {})


def test_options_are_those_of_the_command():
    shown = set(re.findall(r"(?m)^\| `(--\w+)", TEXT))
    known = {option: each.default for each in render.params for option in each.opts}
    assert {"--orbit", "--path", "--up", "--frames", "--fps", "--size", "--quality"} == shown <= set(known)
    said = {name: float(re.search(rf"`{name}.*?(\d+) if not given", TEXT)[1]) for name in ("--fps", "--quality")}
    assert said == {name: known[name] for name in said}


def test_the_file_of_keys_is_one(tmp_path):
    (keys,) = re.findall(r"(?ms)^```json\n(.*?)^```$", TEXT)
    (tmp_path / "path.json").write_text(keys)
    assert len(load_camera_path(tmp_path / "path.json", 12)) == 12
