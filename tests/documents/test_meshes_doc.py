"""Law: what docs/meshes.md shows runs, block after block, and its options are those of the command."""

import re
from pathlib import Path

import pytest
from skips import require_extra

from raymarch.cli.export import OF_PAGES, export
from raymarch.io.meshes.mesh_file import FORMATS

require_extra("trimesh", "formats")
pytestmark = pytest.mark.extra
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "meshes.md").read_text()
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)


def test_blocks_run_and_assert(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        assert "assert " in block
        exec(compile(block, "docs/meshes.md", "exec"), names)
    assert len(BLOCKS) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ball.glb", "ball.ply"]


def test_options_and_files_are_all_in_the_tables():
    shown = set(re.findall(r"(?m)^\| `(--\w+) ", TEXT))
    of_meshes = [each for each in export.params if each.name not in OF_PAGES]
    assert shown == {opt for each in of_meshes for opt in each.opts if each.metavar or opt in shown} & {
        opt for each in of_meshes for opt in each.opts if opt.startswith("--")
    } | {"--iso", "--box"}
    assert set(re.findall(r"(?m)^\| `\.(\w+)` ", TEXT)) == set(FORMATS)
