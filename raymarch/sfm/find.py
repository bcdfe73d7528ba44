"""Cameras of photographs: from a folder of them, or a video, to an image set, by structure from motion."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.data.cores import cores
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import refused
from raymarch.io.files.lock import locked
from raymarch.io.files.temporary import temporary_folder_in
from raymarch.io.videos.av_library import import_av
from raymarch.sfm.child import require_pycolmap, run_worker
from raymarch.sfm.photographs import LeftOut, Photograph, copy_photographs
from raymarch.sfm.place import RECORD, WRITER, require_place, take_place
from raymarch.sfm.settings import LENSES, SETTINGS, SfmSettings, changed
from raymarch.sfm.video import VIDEOS, write_frames

MOST_EXHAUSTIVE = 150  # photographs, of which all pairs are compared
SHARED = 10  # photographs of one camera from which on its lens has more than one number
Show = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class FoundCameras:
    """Cameras found: the set that was written, and what became of each photograph.

    Attributes:
        folder: of the image set, which `rm.load_views` reads.
        registered: names of the photographs that have a camera, within `images/` of the set.
        left_out: the others, each with its `name` and `why`.
        photos: how many there were.
        error: mean distance [pixel] between where a point is seen and where its camera puts it.
        points: how many points were found.
        seconds: it took.
        models: lens models of the cameras, in COLMAP's words.
        world_from_sfm: similarity (4, 4) from the world as structure from motion left it to that of the set.
    """

    folder: Path
    registered: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    photos: int
    error: float
    points: int
    seconds: float
    models: tuple[str, ...]
    world_from_sfm: np.ndarray

    def record(self) -> dict[str, Any]:
        """Record for JSON: counts, who is left out, seconds, lens models, error [pixel]."""
        return {
            "out": str(self.folder),
            "registered": len(self.registered),
            "photos": self.photos,
            "left_out": [asdict(one) for one in self.left_out],
            "seconds": round(self.seconds, 3),
            "model": ", ".join(sorted(set(self.models))),
            "error": self.error,
            "points": self.points,
        }


def _silent(what: str, done: int, total: int) -> None:
    """No progress."""


@checked(
    photos=checks.path,
    out=checks.path,
    settings=optional(SETTINGS),
    overwrite=checks.flag,
    follow_links=checks.flag,
    show=optional(checks.callback),
)
def find_cameras(
    photos: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: SfmSettings | None = None,
    *,
    overwrite: bool = False,
    follow_links: bool = False,
    show: Show | None = None,
    **changes: Any,
) -> FoundCameras:
    """Cameras of photographs by structure from motion (pycolmap), written with them as an image set.

    Args:
        photos: folder of photographs, folders in it included; or a video, which needs PyAV.
        out: the set's folder, made if its parent exists: `images/` with upright copies, `sparse/0/` with cameras and
            points in COLMAP's binary files, `cameras.json` with what was done. The world is turned so that z is up,
            what the cameras look at is the origin, and half of them are within 1 of it.
        settings: an `rm.SfmSettings`.
        overwrite: replace an older set of this kind.
        follow_links: read photographs that links lead to outside of the folder.
        show: called with what is done, how many of it, and of how many.
        changes: settings by name.

    What is tried again with other settings is said in the log. The work is done in a process of its own, which ends
    with this call, interrupted or not; `out` is all there or not at all.

    Raises RaymarchError for fewer than three photographs, or cameras found; for photographs without features or
    overlap; where `out` may not be written, time is over, or an extra is missing, which it names.

    Example:
        >>> find_cameras("photos", "statue", seconds=600).registered  # doctest: +SKIP
        ('IMG_0001.jpg', 'IMG_0002.jpg', 'IMG_0003.jpg')
    """
    chosen, started, told = changed(settings or SfmSettings(), changes), time.monotonic(), show or _silent
    source = _source(Path(photos))
    place = require_place(Path(out), source, overwrite)
    require_pycolmap()
    if source.is_file():
        import_av()
    until = started + (chosen.seconds or math.inf)
    with refused(out), locked(out, "choose another --out"), temporary_folder_in(place.parent) as temporary:
        made, work, aside = (temporary / name for name in ("set", "work", "older"))
        for folder in (made / "images", work, aside):
            folder.mkdir(parents=True)
        kept, out_at_once = _photographs(source, made / "images", chosen, follow_links, _in_time(told, until))
        found = run_worker(work, _job(kept, chosen, source, made), told, until)
        left_out = [*out_at_once, *(LeftOut(**one) for one in found["left_out"])]
        left_out.sort(key=lambda one: one.name)
        done = FoundCameras(
            Path(out),
            tuple(found["registered"]),
            tuple(left_out),
            len(kept) + len(out_at_once),
            found["error"],
            found["points"],
            time.monotonic() - started,
            tuple(camera["model"] for camera in found["cameras"]),
            np.array(found["world_from_sfm"]),
        )
        for one in found["left_out"]:
            (made / "images" / one["name"]).unlink()
        _write_record(made / RECORD, done, found, chosen, kept)
        require_place(Path(out), source, overwrite)  # much may have happened since
        take_place(made, place, aside)
    if 2 * len(done.registered) < done.photos:
        message = "only %d of %d photographs have a camera; cameras.json says why the others have none"
        logging.getLogger("raymarch").warning(message, len(done.registered), done.photos)
    return done


def _source(photos: Path) -> Path:
    """Folder or video; RaymarchError for what is neither."""
    with refused(photos):
        if not photos.exists():
            raise RaymarchError(f"{photos}: no such folder, want one with photographs, or a video; check the path")
        if photos.is_file() and photos.suffix.lower() not in VIDEOS:
            raise RaymarchError(
                f"{photos}: is a file, want a folder of photographs, or a video ({', '.join(VIDEOS)}); name the folder"
            )
    return photos


def _in_time(show: Show, until: float) -> Show:
    """Progress that ends in a RaymarchError once the time is over."""

    def told(what: str, done: int, total: int) -> None:
        if time.monotonic() > until:
            raise RaymarchError(f"time is over at {done} of {total} {what}; give more seconds, or fewer of them")
        show(what, done, total)

    return told


def _photographs(
    source: Path, target: Path, settings: SfmSettings, follow_links: bool, show: Show
) -> tuple[list[Photograph], list[LeftOut]]:
    """Photographs in the set's folder, and those that are not used; RaymarchError where fewer than three are left."""
    if source.is_file():
        frames = write_frames(source, target, settings.frames, show)
        return [Photograph(name, str(source), size) for name, size in frames], []
    kept, left_out = copy_photographs(source, target, follow_links, show)
    if len(kept) < 3:
        some = "; ".join(f"{one.name}: {one.why}" for one in left_out[:2])
        total = len(kept) + len(left_out)
        raise RaymarchError(
            f"{source}: {len(kept)} of {total} photographs can be used ({some}), want 3 or more; mend or replace them"
        )
    return kept, left_out


def _job(kept: Sequence[Photograph], settings: SfmSettings, source: Path, made: Path) -> dict:
    """Job for the worker."""
    matching = settings.matching
    if matching == "auto":
        matching = "sequential" if source.is_file() or len(kept) > MOST_EXHAUSTIVE else "exhaustive"
    model = LENSES[settings.lens]
    radial = model in ("OPENCV", "RADIAL")
    return {
        "groups": _sharing(kept, settings.camera),
        "images": str(made / "images"),
        "model_folder": str(made / "sparse" / "0"),
        "matching": matching,
        "model": model,
        "start_model": "SIMPLE_RADIAL" if radial else model,
        "lens_from": SHARED if settings.lens == "auto" else 0,
        "max_size": settings.max_size,
        "features": settings.features,
        "threads": settings.threads or cores(),
        "seed": settings.seed,
    }


def _sharing(kept: Sequence[Photograph], how: str) -> list[list[str]]:
    """Names of the photographs that share a camera, which all have one size."""
    groups: dict[tuple, list[str]] = {}
    for one in kept:
        size = one.camera[:2]
        keys = {"auto": one.camera, "one": size, "folder": (*size, Path(one.name).parent), "each": (one.name,)}
        groups.setdefault(keys[how], []).append(one.name)
    return list(groups.values())


def _write_record(
    path: Path, done: FoundCameras, found: dict, settings: SfmSettings, kept: Sequence[Photograph]
) -> None:
    """What was done, beside the set: similarity and its inverse, who is left out, settings, cameras."""
    told = done.record()
    for name in ("out", "seconds"):  # the same photographs and seed give the same file
        told.pop(name)
    settled = asdict(settings)
    for name in ("threads", "seconds"):
        settled.pop(name)
    more = {name: found[name] for name in ("world_from_sfm", "sfm_from_world", "up", "centre", "cameras", "attempts")}
    names = {one.name: Path(one.source).name for one in kept if one.name in set(done.registered)}
    record = {"written_by": WRITER, **told, **more, "settings": settled, "files": names}
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
