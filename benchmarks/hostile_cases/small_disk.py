"""Small disks to fill, to lock and to take away, and files that nobody may change."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostile_cases.place import Place


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


@contextmanager
def small_disk(place: Place, options: str = "size=256k", fill: bool = False) -> Iterator[Path]:
    """A disk of its own in the folder, `disk`; full if asked."""
    disk = place.folder / "disk"
    disk.mkdir()
    _mount("-t", "tmpfs", "-o", options, "tmpfs", str(disk))
    try:
        if fill:
            fill_up(disk)
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False, capture_output=True)
        disk.rmdir()


def fill_up(disk: Path) -> None:
    """Take the last byte of a disk."""
    with open(disk / "ballast", "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return


@contextmanager
def immutable(path: Path) -> Iterator[None]:
    """A file or folder that nobody may change, root included."""
    subprocess.run(["chattr", "+i", str(path)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)


def make_read_only(disk: Path) -> None:
    _mount("-o", "remount,ro", str(disk))
