"""Law of child processes: they run this very package, and no folder of packages comes before Python's own modules."""

from __future__ import annotations

import subprocess

from raymarch.system import child_process

SAID = """
import colorsys, sys
import beside
print(__name__, *sys.argv[1:], colorsys.rgb_to_hsv(0, 0, 1)[2], beside.WORD)
"""


def test_a_child_has_the_package_of_its_parent_and_python_s_own_modules(tmp_path, monkeypatch):
    """Though another package of that name is installed, and beside ours what bears the name of a module of Python's."""
    (tmp_path / "raymarch").mkdir()
    (tmp_path / "raymarch/__init__.py").touch()
    (tmp_path / "raymarch/said.py").write_text(SAID)
    (tmp_path / "beside.py").write_text("WORD = 'found'")
    (tmp_path / "colorsys.py").write_text("raise ImportError('not the one of Python')")
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(child_process, "PACKAGE_PARENT", tmp_path)
    command = child_process.child_command("raymarch.said", "a", "b c")
    done = subprocess.run(command, cwd=tmp_path / "work", capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("__main__ a b c 1 found\n", "")
