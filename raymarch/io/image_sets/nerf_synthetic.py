"""NeRF-synthetic (Blender) image sets: `transforms_<split>.json` beside folders of images."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from raymarch.data.views import Views
from raymarch.errors import RaymarchError, short
from raymarch.io.files.limits import require_folder
from raymarch.io.files.strict_json import read_json
from raymarch.io.image_sets.frame_file import frame_file
from raymarch.io.image_sets.frames import Frame, pinhole, require_few, views_of_frames
from raymarch.io.image_sets.reader import Reader

FILES = "transforms_*.json"


def detect(folder: Path) -> bool:
    """Detection: whether any of the folder's transforms files lists frames as the layout does."""
    return any(_lists_frames(path) for path in sorted(folder.glob(FILES)))


def _lists_frames(path: Path) -> bool:
    try:
        first = read_json(path)["frames"][0]
        return isinstance(first, dict) and {"file_path", "transform_matrix"} <= first.keys()
    except (RaymarchError, LookupError, TypeError):
        return False


def read(
    folder: str | os.PathLike[str],
    split: str = "train",
    *,
    follow_links: bool = False,
    for_fit: bool = True,
    downscale: float = 1.0,
    holdout: int = 8,
) -> Views:
    """Views of one split.

    The json has what `frames.pinhole` reads, for all frames or in one; and `frames` with `file_path` (.png if it has no
    suffix) and `transform_matrix`. Images that are missing are left out and named in the log. `follow_links`, `for_fit`
    and `downscale` as of `load_views`; nothing more is held out, as the set has splits of its own.

    Raises RaymarchError that names the file, what is wrong and the cure; for more than 20,000 frames too.

    Example:
        >>> read("lego", "val").images.shape  # doctest: +SKIP
        (25, 400, 400, 4)
    """
    folder = require_folder(folder)
    path = _transforms_path(folder, split)
    document = read_json(path)
    if not isinstance(document, dict):
        raise RaymarchError(f"{path}: is a {type(document).__name__}, want a mapping with frames; export it again")
    listed = document.get("frames")
    if not isinstance(listed, list) or not listed:
        raise RaymarchError(f"{path}: frames is {short(listed)}, want a list of at least one; export it again")
    require_few(len(listed), path)
    frames, root = [], folder.resolve()
    for i, frame in enumerate(listed):
        if not isinstance(frame, dict):
            raise RaymarchError(f"{path}, frame {i}: is {short(frame)}, want a mapping; export it again")
        file = frame_file(folder, root, frame.get("file_path"), f"{path}, frame {i}", follow_links)
        where = f"{path}, frame {i} ({file.stem})"
        frames.append(Frame(file, partial(pinhole, {**document, **frame}, where=where)))
    return views_of_frames(frames, folder, path, for_fit=for_fit, downscale=downscale)


def _transforms_path(folder: Path, split: str) -> Path:
    splits = sorted(path.stem.removeprefix("transforms_") for path in folder.glob(FILES))
    if split in splits:
        return folder / f"transforms_{split}.json"
    have = f"it has the splits {', '.join(splits)}"
    raise RaymarchError(f"{folder}: there is no transforms_{split}.json, {have}; choose or add one")


NERF_SYNTHETIC = Reader("NeRF-synthetic", detect, read, FILES)
