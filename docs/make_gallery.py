"""The pictures of docs/gallery.md: runs the page from top to bottom and keeps the pictures that it shows.

    python docs/make_gallery.py [--only cloud] [--work FOLDER]

All that a block does is seeded: run again on one machine it makes the same bytes. It takes two minutes of CPU, half of
it two fits.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "gallery.md"
BLOCK = re.compile(r"(?ms)^```(bash|python)\n(.*?)^```$")
PICTURE = re.compile(r"\]\(gallery/([^)]+)\)")


def sections(text: str) -> list[tuple[list[tuple[str, str]], list[str]]]:
    """Of each section its blocks, language and code, and the pictures that it shows, as the blocks write them."""
    return [(BLOCK.findall(part), PICTURE.findall(part)) for part in re.split(r"(?m)^## ", text)[1:]]


def run(language: str, code: str, folder: Path) -> None:
    """Run a block in a folder, with this interpreter's programs first and no display."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = {"bash": ["bash", "-e"], "python": [sys.executable, "-"]}[language]
    env = {**os.environ, "PATH": path, "MPLBACKEND": "Agg"}
    subprocess.run(program, input=code, text=True, cwd=folder, env=env, check=True)


def make(folder: Path, only: str) -> None:
    """Run all sections that have `only` in a block, in a folder with the scenes, and copy their pictures."""
    if not (folder / "scenes").exists():
        shutil.copytree(DOCS.parent / "scenes", folder / "scenes")
    for blocks, pictures in sections(PAGE.read_text(encoding="utf-8")):
        if not any(only in code for _, code in blocks):
            continue
        for language, code in blocks:
            run(language, code, folder)
        for picture in pictures:
            (DOCS / "gallery" / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / picture, DOCS / "gallery" / picture)
            print(picture, f"{(DOCS / 'gallery' / picture).stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="sections that have this text in a block")
    options.add_argument("--work", type=Path, help="folder to run in, which is kept; a new one if not given")
    asked = options.parse_args()
    if asked.work:
        asked.work.mkdir(parents=True, exist_ok=True)
        make(asked.work.resolve(), asked.only)
    else:
        with tempfile.TemporaryDirectory() as work:
            make(Path(work), asked.only)
