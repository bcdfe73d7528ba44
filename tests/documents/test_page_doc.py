"""Law: what docs/page.md shows runs, and its options are those of the command."""

import re
from pathlib import Path

from raymarch.cli.export import export

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "page.md").read_text()


def test_the_block_runs_and_asserts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
    exec(compile(block, "docs/page.md", "exec"), {})
    assert "64 x 64 x 64 samples" in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["ball.html"]


def test_its_options_are_there():
    known = {opt for each in export.params for opt in each.opts}
    shown = set(re.findall(r"(--[a-z][\w-]+)", TEXT)) - {"--preset"}
    assert shown and shown <= known
