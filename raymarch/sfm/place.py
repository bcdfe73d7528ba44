"""Place of an image set that is about to be written: what may stand there, and how the new one takes it."""

from __future__ import annotations

import os
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import refused
from raymarch.io.files.strict import read_json

RECORD = "cameras.json"
PARTS = ("images", "sparse", RECORD)
WRITER = "raymarch cameras"


def require_place(out: Path, photos: Path, overwrite: bool) -> Path:
    """Folder for a set, resolved; RaymarchError where it would mix with the photographs or take something's place.

    With `overwrite` a set that was written this way may be there; of any other folder nothing is ever removed.
    """
    with refused(out):
        place, source = Path(os.path.realpath(out)), Path(os.path.realpath(photos))
        inner = source if source.is_dir() else source.parent
        if place == inner or (source.is_dir() and place.is_relative_to(source)):
            raise RaymarchError(f"{out}: lies in the photographs' folder; choose a place outside")
        if source.is_relative_to(place) and place.exists():
            raise RaymarchError(f"{out}: holds the photographs themselves; choose another place")
        if not place.parent.is_dir():
            raise RaymarchError(f"{out}: there is no folder {place.parent}; create it first")
        if place.exists() and not place.is_dir():
            raise RaymarchError(f"{out}: is a file, want the name of a folder; choose another")
        if place.exists() and any(place.iterdir()):
            if not overwrite:
                raise RaymarchError(f"{out}: is there already; choose another name, or --overwrite (overwrite=True)")
            if not _is_ours(place):
                raise RaymarchError(f"{out}: is no image set that raymarch cameras wrote; choose another place")
    return place


def _is_ours(place: Path) -> bool:
    try:
        told = read_json(place / RECORD)
    except RaymarchError:
        return False
    return isinstance(told, dict) and told.get("written_by") == WRITER


def take_place(made: Path, place: Path, aside: Path) -> None:
    """Move of a finished set to its place; parts of an older one go `aside`, and come back if that fails."""
    with refused(place):
        if not place.exists() or not any(place.iterdir()):
            if place.exists():
                place.rmdir()
            os.replace(made, place)
            return
        moved: list[tuple[Path, Path]] = []  # from, to
        try:
            for part in PARTS:
                for source, target in ((place / part, aside / part), (made / part, place / part)):
                    if source.exists():
                        os.replace(source, target)
                        moved.append((source, target))
        except BaseException:
            for source, target in reversed(moved):
                os.replace(target, source)
            raise
