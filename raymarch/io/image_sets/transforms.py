"""instant-ngp and nerfstudio image sets: one `transforms.json` beside its images."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, named, short
from raymarch.io.files.folders import natural
from raymarch.io.files.limits import require_folder
from raymarch.io.image_sets.frame_file import frame_file, present
from raymarch.io.image_sets.frame_lists import (
    frame_of_keys,
    lists_frames,
    places_of_frames,
    read_frames,
    say_what_is_not_read,
)
from raymarch.io.image_sets.frames import Frame, flag, number, views_of_frames
from raymarch.io.image_sets.given_alpha import alpha_file
from raymarch.io.image_sets.holdout import held_out
from raymarch.io.image_sets.image_folder import MASKS
from raymarch.io.image_sets.ply import read_ply_points
from raymarch.io.image_sets.reader import Reader
from raymarch.io.image_sets.unit_cube import box_of_cube
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_box, moved_points, new_origin

log = logging.getLogger("raymarch")

FILES = "transforms.json"
SPLIT_ELSEWHERE = "transforms_train.json"
SPLITS = ("train", "val", "test")
STAND_IN = {"val": "test", "test": "val"}
TRANSPARENT = {"white_transparent": 255, "black_transparent": 0}
NEIGHBOURS = 3  # frames either way, whose mean sharpness a frame is held against


def detect(folder: Path) -> bool:
    """Detection: whether the folder's transforms.json lists frames, and no file of a split does in its place."""
    return lists_frames(folder / FILES, comments=True) and not (folder / SPLIT_ELSEWHERE).exists()


def read(
    folder: str | os.PathLike[str],
    split: str = "train",
    *,
    follow_links: bool = False,
    for_fit: bool = True,
    downscale: float = 1.0,
    holdout: int = 8,
) -> Views:
    """Views of one split: as `train_filenames` and the like say, else every `holdout`-th by name is a test view.

    The json, which may have comments, has what `intrinsics.camera_by_keys` reads, for all frames or in one, and
    `frames` with `file_path`, `mask_path` (black where pixels are not to count). The set's box is that of instant-ngp's
    `aabb` or `aabb_scale`, its points those of `ply_file_path`. Options as of `load_views`.

    Raises RaymarchError that names the file, what is wrong and the cure; for more than 20,000 frames too.

    Example:
        >>> len(read("fox", "test", downscale=2))  # doctest: +SKIP
        7
    """
    folder = require_folder(folder)
    path, root = folder / FILES, folder.resolve()
    document, listed = read_frames(path, comments=True)
    say_what_is_not_read(document, listed, path)
    _say_masks_apart(document, listed, path)
    origin = new_origin(places_of_frames(document, listed), path)
    chosen = _chosen(document, listed, path)
    frames = [frame_of_keys(keys, document, path, i, follow_links, origin) for i, keys in chosen]
    there = present([frame.file for frame in frames], path)
    frames = sorted((frames[i] for i in there), key=lambda frame: frame.file.as_posix())  # as what is held out
    listed_files = {name: _files(document, name, path, follow_links) for name in SPLITS if _listing(name) in document}
    frames = _of_split(frames, listed_files, split, path) if listed_files else held_out(frames, split, holdout, path)
    points, box = _points(document, path, follow_links), box_of_cube(document, str(path))
    hints = {"points": moved_points(points, origin), "box": moved_box(box, origin, path), "origin": origin}
    frames = [frame._replace(alpha=alpha_file(frame.file, root, follow_links)) for frame in frames]
    colours = [value for key, value in TRANSPARENT.items() if flag(document.get(key), f"{path}: {key}")]
    return views_of_frames(frames, folder, path, for_fit=for_fit, downscale=downscale, transparent=colours, **hints)


def _say_masks_apart(document: Mapping[str, Any], listed: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Note of a folder of masks that no frame names."""
    masked = any(keys.get("mask_path") is not None for keys in (document, *listed))
    apart = next((name for name in MASKS if (path.parent / name).is_dir()), None)
    if apart is not None and not masked:
        message = "%s: the folder %s is not read, as no frame names a mask; add a mask_path to each frame"
        log.warning(message, path, apart)


def splits(folder: Path) -> list[str]:
    """Names of the splits of which the file lists an image that is there, and of those that they stand in for.

    None where it lists no files. The log says which are listed in vain: of some benchmarks nobody gets the test images.
    """
    path, root = folder / FILES, folder.resolve()
    document, listed = read_frames(path, comments=True)
    told = [name for name in SPLITS if document.get(_listing(name))]
    # links are followed, for this looks which files there are and reads none
    names = [(keys.get("file_path"), f"{path}, frame {i}") for i, keys in enumerate(listed)]
    framed = {frame_file(folder, root, name, where, True) for name, where in names}
    there = [name for name in told if any(file.is_file() for file in _files(document, name, path, True) & framed)]
    for name in told:
        if name not in there:
            log.warning("%s: no image of %s is there, going without the split %s", path, _listing(name), name)
    return [name for name in SPLITS if name in there or (name not in told and STAND_IN.get(name) in there)]


def _listing(split: str) -> str:
    """Key of the list of a split's files."""
    return f"{split}_filenames"


def _chosen(
    document: Mapping[str, Any], listed: Sequence[dict[str, Any]], path: Path
) -> list[tuple[int, dict[str, Any]]]:
    """Frames by the names of their files, with their places in the list: the first `n_frames`, of them the sharp.

    First and next to each other are what instant-ngp has so: it takes the numbers in names by what they are.
    """
    frames = sorted(enumerate(listed), key=lambda one: (natural(_inner(one[1])), one[0]))
    if "n_frames" in document:
        frames = frames[: max(1, round(min(number(document["n_frames"], f"{path}: n_frames"), len(frames))))]
    least = number(document.get("sharpness_discard_threshold", 0), f"{path}: sharpness_discard_threshold")
    if not least > 0 or any("sharpness" not in keys for _, keys in frames):
        return frames
    sharp = np.array([number(keys["sharpness"], f"{path}, frame {i}: sharpness") for i, keys in frames])
    sums = np.concatenate([[0], np.cumsum(sharp)])
    at = np.arange(len(sharp))
    first, last = np.maximum(at - NEIGHBOURS, 0), np.minimum(at + NEIGHBOURS + 1, len(sharp))
    keep = sharp > least * (sums[last] - sums[first]) / (last - first)
    blurred = [str(frames[i][1].get("file_path")) for i in np.flatnonzero(~keep)]
    if not keep.any():
        raise RaymarchError(f"{path}: no frame has sharpness over {least:g} of its neighbours'; lower the threshold")
    if blurred:
        message = "%s: %d of %d frames are less sharp than %g of their neighbours, going on without them (%s)"
        log.warning(message, path, len(blurred), len(frames), least, named(blurred))
    return [frame for frame, kept in zip(frames, keep, strict=True) if kept]


def _inner(keys: Mapping[str, Any]) -> str:
    """Path of a frame's image, however it is written."""
    return str(PurePosixPath(str(keys.get("file_path")).replace("\\", "/")))


def _files(document: Mapping[str, Any], split: str, path: Path, follow_links: bool) -> set[Path]:
    """Files that `<split>_filenames` lists."""
    key, folder = _listing(split), path.parent
    listed = document[key]
    if not isinstance(listed, list):
        raise RaymarchError(f"{path}: {key} is {short(listed)}, want a list of file names; export it again")
    return {frame_file(folder, folder.resolve(), one, str(path), follow_links, key=key) for one in listed}


def _of_split(frames: Sequence[Frame], listed: Mapping[str, set[Path]], split: str, path: Path) -> list[Frame]:
    """Frames of a split as the file lists them; test and val stand in for each other where one of them is not there."""
    if split == "all":
        return list(frames)
    taken = split if listed.get(split) else STAND_IN.get(split, split)
    if not any(listed.values()):
        keys = " and ".join(map(_listing, listed))
        raise RaymarchError(f"{path}: {keys} list no files, want one or more; fill them, or take them out")
    if not listed.get(taken):
        have = ", ".join(name for name in listed if listed[name])
        raise RaymarchError(f"{path}: has no {split}_filenames, it has the splits {have}; choose or add one")
    if taken != split:
        log.warning("%s: has no %s_filenames, taking %s_filenames", path, split, taken)
    chosen = [frame for frame in frames if frame.file in listed[taken]]
    if not chosen:
        raise RaymarchError(f"{path}: no frame has a file of {taken}_filenames; correct the names")
    if len(chosen) < len(listed[taken]):
        some = named(sorted(file.name for file in listed[taken] - {frame.file for frame in chosen}))
        message = "%s: %d of %d %s_filenames are of no frame that is there, going on without them (%s)"
        log.warning(message, path, len(listed[taken]) - len(chosen), len(listed[taken]), taken, some)
    return chosen


def _points(document: Mapping[str, Any], path: Path, follow_links: bool) -> np.ndarray | None:
    """Points of the set's PLY file, where it names one that is there."""
    if document.get("ply_file_path") is None:
        return None
    folder = path.parent
    file = frame_file(
        folder, folder.resolve(), document["ply_file_path"], str(path), follow_links, key="ply_file_path", image=False
    )
    if not file.exists():
        log.warning("%s: ply_file_path %s is missing, going on without its points", path, file.name)
        return None
    return read_ply_points(file)


TRANSFORMS = Reader(FILES, detect, read, FILES, specificity=4, splits=splits)
