"""Cameras of photographs by structure from motion: makes an image set of a folder of photographs or a video."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import instance_of, number, one_of, optional, whole
from raymarch.arguments.declared import checked, checked_field, suggest_names, validate_fields
from raymarch.arguments.similar_names import unknown_names
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import system_refusals
from raymarch.io.files.lock import lock_file
from raymarch.io.files.strict import read_json
from raymarch.io.files.temporary import temporary_folder
from raymarch.io.videos.write_video import import_av
from raymarch.sfm.photographs import LeftOutPhotograph, Photograph, copy_photographs
from raymarch.sfm.video import VIDEO_SUFFIXES, write_frames
from raymarch.sfm.worker_process import require_pycolmap, run_worker
from raymarch.system.resources import cores

LENSES = {  # by the name that a user gives, COLMAP's
    "auto": "OPENCV",
    "pinhole": "SIMPLE_PINHOLE",
    "simple_radial": "SIMPLE_RADIAL",
    "radial": "RADIAL",
    "opencv": "OPENCV",
    "fisheye": "OPENCV_FISHEYE",
}
MATCHINGS = ("auto", "exhaustive", "sequential")
CAMERAS = ("auto", "one", "folder", "each")


@suggest_names
@dataclass(frozen=True)
class SfmSettings:
    """Settings of structure from motion, by which `find_cameras` goes.

    Attributes:
        matching: which pairs of photographs are compared: all (exhaustive), neighbours by name (sequential), or by
            "auto" all up to 150 photographs, neighbours of more and of a video.
        lens: model of the lens; "auto" is OpenCV's where ten photographs or more share a camera, else simple radial.
        camera: who shares focal length and lens: photographs of one size, camera and zoom, as EXIF tells ("auto"), all
            ("one"), those of a folder ("folder"), or nobody ("each").
        max_size: longer side [pixel] at which features are looked for; cameras are those of the full images.
        features: the most features of a photograph.
        frames: how many frames are taken out of a video.
        seed: of all that is drawn at random; with `threads=1` the same seed gives the same bytes.
        threads: of the CPU; one a core if not given.
        seconds: time limit.

    Raises RaymarchError for a value that is out of range.

    Example:
        >>> SfmSettings(features=4096).matching
        'auto'
    """

    matching: str = checked_field(one_of(*MATCHINGS), "auto")
    lens: str = checked_field(one_of(*LENSES), "auto")
    camera: str = checked_field(one_of(*CAMERAS), "auto")
    max_size: int = checked_field(whole(64, 16384), 1600)
    features: int = checked_field(whole(64, 1 << 17), 8192)
    frames: int = checked_field(whole(3, 5000), 100)
    seed: int = checked_field(whole(0, 2**31 - 1), 0)
    threads: int | None = checked_field(optional(whole(1, 1024)), None)
    seconds: float | None = checked_field(optional(number(1, 1e7, unit="s")), None)

    def __post_init__(self) -> None:
        validate_fields(self)


SETTINGS = instance_of(SfmSettings, "SfmSettings")


def change_settings(settings: SfmSettings, changes: dict[str, Any]) -> SfmSettings:
    """Settings with some changed by name; RaymarchError for an unknown one."""
    own = SfmSettings.__dataclass_fields__
    if unknown := sorted(set(changes) - set(own)):
        raise RaymarchError(unknown_names(unknown, own))
    return replace(settings, **changes)


# The folder of the new image set: what it may replace, and how it is moved there.

RECORD_FILE = "cameras.json"
RESULT_NAMES = ("images", "sparse", RECORD_FILE)
WRITER_NAME = "raymarch cameras"


def require_place(out: Path, photos: Path, overwrite: bool) -> Path:
    """Folder for a set, resolved; RaymarchError where it would mix with the photographs or take something's place.

    With `overwrite` a set that was written this way may be there; of any other folder nothing is ever removed.
    """
    with system_refusals(out):
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
        told = read_json(place / RECORD_FILE)
    except RaymarchError:
        return False
    return isinstance(told, dict) and told.get("written_by") == WRITER_NAME


def take_place(made: Path, place: Path, aside: Path) -> None:
    """Move a finished set to its folder. Parts of an older set go `aside`, and come back if the move fails."""
    with system_refusals(place):
        if not place.exists() or not any(place.iterdir()):
            if place.exists():
                place.rmdir()
            os.replace(made, place)
            return
        moved: list[tuple[Path, Path]] = []  # from, to
        try:
            for part in RESULT_NAMES:
                for source, target in ((place / part, aside / part), (made / part, place / part)):
                    if source.exists():
                        os.replace(source, target)
                        moved.append((source, target))
        except BaseException:
            for source, target in reversed(moved):
                os.replace(target, source)
            raise


MAX_EXHAUSTIVE = 150  # photographs, of which all pairs are compared
MIN_LENS_PHOTOGRAPHS = 10  # photographs of one camera from which on its lens has more than one number
ShowProgress = Callable[[str, int, int], None]


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
    left_out: tuple[LeftOutPhotograph, ...]
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


def _no_progress(what: str, done: int, total: int) -> None:
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
    show: ShowProgress | None = None,
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
    chosen, started, told = change_settings(settings or SfmSettings(), changes), time.monotonic(), show or _no_progress
    source = _source(Path(photos))
    place = require_place(Path(out), source, overwrite)
    require_pycolmap()
    if source.is_file():
        import_av()
    until = started + (chosen.seconds or math.inf)
    with system_refusals(out), lock_file(out, "choose another --out"), temporary_folder(place.parent) as temporary:
        made, work, aside = (temporary / name for name in ("set", "work", "older"))
        for folder in (made / "images", work, aside):
            folder.mkdir(parents=True)
        kept, out_at_once = _photographs(source, made / "images", chosen, follow_links, _with_deadline(told, until))
        found = run_worker(work, _job(kept, chosen, source, made), told, until)
        left_out = [*out_at_once, *(LeftOutPhotograph(**one) for one in found["left_out"])]
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
        _write_record(made / RECORD_FILE, done, found, chosen, kept)
        require_place(Path(out), source, overwrite)  # much may have happened since
        take_place(made, place, aside)
    if 2 * len(done.registered) < done.photos:
        message = "only %d of %d photographs have a camera; cameras.json says why the others have none"
        logging.getLogger("raymarch").warning(message, len(done.registered), done.photos)
    return done


def _source(photos: Path) -> Path:
    """Folder or video; RaymarchError for what is neither."""
    with system_refusals(photos):
        if not photos.exists():
            raise RaymarchError(f"{photos}: no such folder, want one with photographs, or a video; check the path")
        if photos.is_file() and photos.suffix.lower() not in VIDEO_SUFFIXES:
            raise RaymarchError(
                f"{photos}: is a file, want a folder of photographs, or a video ({', '.join(VIDEO_SUFFIXES)}); "
                "name the folder"
            )
    return photos


def _with_deadline(show: ShowProgress, until: float) -> ShowProgress:
    """Progress callback that raises RaymarchError when the time is over."""

    def told(what: str, done: int, total: int) -> None:
        if time.monotonic() > until:
            raise RaymarchError(f"time is over at {done} of {total} {what}; give more seconds, or fewer of them")
        show(what, done, total)

    return told


def _photographs(
    source: Path, target: Path, settings: SfmSettings, follow_links: bool, show: ShowProgress
) -> tuple[list[Photograph], list[LeftOutPhotograph]]:
    """Photographs in the set's folder, and those left out; RaymarchError if fewer than three remain."""
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
        matching = "sequential" if source.is_file() or len(kept) > MAX_EXHAUSTIVE else "exhaustive"
    model = LENSES[settings.lens]
    radial = model in ("OPENCV", "RADIAL")
    return {
        "groups": _shared_cameras(kept, settings.camera),
        "images": str(made / "images"),
        "model_folder": str(made / "sparse" / "0"),
        "matching": matching,
        "model": model,
        "start_model": "SIMPLE_RADIAL" if radial else model,
        "lens_from": MIN_LENS_PHOTOGRAPHS if settings.lens == "auto" else 0,
        "max_size": settings.max_size,
        "features": settings.features,
        "threads": settings.threads or cores(),
        "seed": settings.seed,
    }


def _shared_cameras(kept: Sequence[Photograph], how: str) -> list[list[str]]:
    """Names of the photographs that share a camera; all have one size."""
    groups: dict[tuple, list[str]] = {}
    for one in kept:
        size = one.camera[:2]
        keys = {"auto": one.camera, "one": size, "folder": (*size, Path(one.name).parent), "each": (one.name,)}
        groups.setdefault(keys[how], []).append(one.name)
    return list(groups.values())


def _write_record(
    path: Path, done: FoundCameras, found: dict, settings: SfmSettings, kept: Sequence[Photograph]
) -> None:
    """Write the record beside the set: similarity and its inverse, photographs left out, settings and cameras."""
    told = done.record()
    for name in ("out", "seconds"):  # the same photographs and seed give the same file
        told.pop(name)
    settled = asdict(settings)
    for name in ("threads", "seconds"):
        settled.pop(name)
    more = {name: found[name] for name in ("world_from_sfm", "sfm_from_world", "up", "centre", "cameras", "attempts")}
    names = {one.name: Path(one.source).name for one in kept if one.name in set(done.registered)}
    record = {"written_by": WRITER_NAME, **told, **more, "settings": settled, "files": names}
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
