"""Law: what the README and the first tour show runs as it stands there but for how long it fits, and what the README
points to exists; continuous integration runs the test commands of README and CONTRIBUTING."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import pytest
from sets import few_views

ROOT = Path(__file__).resolve().parents[2]
README, TOUR, CONTRIBUTING = ROOT / "README.md", ROOT / "docs" / "what-there-is.md", ROOT / "CONTRIBUTING.md"
# A reader waits for a good picture; here all that follows is only to have a volume to work on.
SHORTER = {
    "--seconds 20": "--steps 30 --resolution 32 --sh-degree 0 --set rays=1024",
    "seconds=20": "steps=30, resolution=32, sh_degree=0, rays=512, slots=1",  # as other tests of this process do
    "--dry-run": "--dry-run --resolution 32 --sh-degree 0 --set rays=1024",
}
BLOCK = re.compile(r"(?ms)(?P<setup>^<!-- (setup|extras|whole) -->\s*\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$")


class Block(NamedTuple):
    """A fenced block; `setup` are those for a bare machine, which are not run here."""

    language: str
    code: str
    setup: bool


def blocks_of(text: str) -> list[Block]:
    return [Block(m["language"], m["code"], bool(m["setup"])) for m in BLOCK.finditer(text)]


def shown() -> list[Block]:
    return [block for page in (README, TOUR) for block in blocks_of(page.read_text(encoding="utf-8"))]


def blocks(language: str, setup: bool = False) -> list[str]:
    return [b.code for b in shown() if b.language == language and b.setup == setup]


def shorter(language: str) -> str:
    """All blocks of a language one after the other, their fits made short."""
    code = "\n".join(blocks(language))
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


@pytest.fixture
def elsewhere(tmp_path, root) -> Path:
    """A fresh folder with `scenes/` as in a clone, every fourth view of them, of 32 x 32 pixels or fewer."""
    few_views(root / "scenes", tmp_path / "scenes", smaller=8)
    return tmp_path


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Run without a display, this interpreter's programs first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "MPLBACKEND": "Agg"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=400)


def test_blocks_are_told_apart():
    text = "<!-- setup -->\n```bash\na\n```\n\n```bash\nb\nc\n```\n\n```python\nd\n```\n"
    want = [Block("bash", "a\n", True), Block("bash", "b\nc\n", False), Block("python", "d\n", False)]
    assert blocks_of(text) == want


def test_only_how_long_it_fits_is_changed():
    """Each change is of something that stands there, and none of a fit is left as long as it was."""
    text = "".join(blocks("python") + blocks("bash"))
    assert all(long in text for long in SHORTER)
    assert not re.search(r"seconds[ =]\d", shorter("python") + shorter("bash"))


def test_python_runs(elsewhere, monkeypatch):
    """All of it, in order."""
    matplotlib.use("agg")
    monkeypatch.chdir(elsewhere)
    exec(compile(shorter("python"), "README.md", "exec"), {})
    assert "tower.h5" in {path.name for path in elsewhere.iterdir()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_runs(elsewhere):
    """All of it, in order, to the first command that fails."""
    (elsewhere / "tour.sh").write_text(shorter("bash"))
    done = run(["bash", "-e", "-x", "tour.sh"], elsewhere)
    assert done.returncode == 0, done.stderr[-4000:]


def test_sets_up_in_two_commands():
    """One to see it work and one to test it, a line each."""
    assert [code.count("\n") for code in blocks("bash", setup=True)] == [1, 1]
    assert not blocks("python", setup=True)


def test_every_block_is_of_a_language_that_is_run():
    assert {b.language for b in shown()} <= {"python", "bash"}


def test_what_there_is_names_every_verb():
    from raymarch.cli import cli

    text = TOUR.read_text(encoding="utf-8")
    assert [verb for verb in cli.commands if f"raymarch {verb}" not in text] == []


def test_what_it_points_to_exists():
    targets = re.findall(r"\]\(([^)#\s]+)", README.read_text())
    local = [target for target in targets if not re.match(r"\w+:", target)]
    assert [target for target in local if not (README.parent / target).exists()] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_continuous_integration_runs_the_test_commands_and_no_other(root):
    done = run(["bash", str(root / ".ci" / "run"), "--show"], root)
    others = [block.code for block in blocks_of(CONTRIBUTING.read_text(encoding="utf-8")) if block.setup]
    commands = [*blocks("bash", setup=True)[1:], *others]
    assert len(others) == 2 and done.stdout == "".join(f"+ {command}" for command in commands), done.stderr
