"""NeRF-synthetic (Blender) image sets: `transforms_<split>.json` beside folders of images."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.image_sets.frames import views_of_frames
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.io.image_sets.transforms import (
    frame_of_keys,
    lists_frames,
    places_of_frames,
    read_frames,
    say_what_is_not_read,
)
from raymarch.views.views import Views
from raymarch.views.world_origin import new_origin

log = logging.getLogger("raymarch")

SPLIT_FILES = "transforms_*.json"


def detect(folder: Path) -> bool:
    """Detection: whether any of the folder's transforms files lists frames as the layout does."""
    return any(lists_frames(path) for path in sorted(folder.glob(SPLIT_FILES)))


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of one split.

    The json has what `camera_keys.camera_by_keys` reads, for all frames or in one; and `frames` with `file_path` (.png
    if it has no suffix), `transform_matrix` and perhaps `mask_path` (black where pixels are not to count). Images that
    are missing are left out and named in the log.
    Nothing more is held out, as the set has splits.

    Raises RaymarchError that names the file, what is wrong and the cure; for more than 20,000 frames too.

    Example:
        >>> NERF_SYNTHETIC.read("lego", "val").images.shape  # doctest: +SKIP
        (25, 400, 400, 4)
    """
    path = _transforms_path(folder, options.split)
    document, listed = read_frames(path)
    say_what_is_not_read(document, listed, path)
    origin = new_origin(_places(folder), folder)
    frames = [frame_of_keys(keys, document, path, i, options, origin) for i, keys in enumerate(listed)]
    return views_of_frames(frames, folder, path, options, origin=origin)


def _places(folder: Path) -> list[np.ndarray]:
    """Places (3,) of the cameras of all splits: the world of all is moved alike."""
    places = list[np.ndarray]()
    for path in sorted(folder.glob(SPLIT_FILES)):
        try:
            places += places_of_frames(*read_frames(path))
        except RaymarchError:  # which the reading of that split tells
            continue
    return places


def splits(folder: Path) -> list[str]:
    """Names of the splits of a set."""
    return sorted(path.stem.removeprefix("transforms_") for path in folder.glob(SPLIT_FILES))


def _transforms_path(folder: Path, split: str) -> Path:
    if split in (there := splits(folder)):
        return folder / f"transforms_{split}.json"
    if split == "test" and "val" in there:
        log.warning("%s: there is no transforms_test.json, taking transforms_val.json", folder)
        return folder / "transforms_val.json"
    have = f"it has the splits {', '.join(there)}"
    raise RaymarchError(f"{folder}: there is no transforms_{split}.json, {have}; choose or add one")


NERF_SYNTHETIC = Reader("NeRF-synthetic", detect, by_options(read), SPLIT_FILES, specificity=3, splits=splits)
