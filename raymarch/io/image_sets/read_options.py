"""What is asked of a reader of image sets beside the folder: which views, how large, and how far links are followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

from raymarch.io.files.strict import require_folder
from raymarch.views.views import Views

DEFAULT_HOLDOUT = 8  # one view in so many is held out, where nothing else is asked for


@dataclass(frozen=True)
class ReadOptions:
    """What is asked of a reader beside the folder, as of `load_views`.

    Attributes:
        split: which of the set's views, such as "train".
        follow_links: read images that links in the folder lead to outside of it.
        for_fit: refuse, before anything is decoded, more images than a fit has memory for.
        downscale: how many times smaller, 1 or more, images are made as they are read; cameras are scaled with them.
        holdout: of a set without splits of its own every so many-th view is held out; 0 for none.
        depths: read depth images, and which view sees which sparse point.
        depth_unit: world units of one step of a depth image's values; None for what the set or its layout says.
        cameras_alone: read cameras for themselves: images may be missing, and none is decoded.
    """

    split: str = "train"
    follow_links: bool = False
    for_fit: bool = True
    downscale: float = 1.0
    holdout: int = DEFAULT_HOLDOUT
    depths: bool = True
    depth_unit: float | None = None
    cameras_alone: bool = False


def by_options(read: Callable[[Path, ReadOptions], Views]) -> Callable[..., Views]:
    """Function that a `Reader` calls, `read(folder, split, **options)`, of one that takes a folder and a `ReadOptions`.

    Raises RaymarchError where there is no such folder.

    Example:
        >>> by_options(lambda folder, options: options.downscale)(".", "test", downscale=2)
        2
    """

    @wraps(read)
    def opened(folder: str | os.PathLike[str], split: str = "train", **options: float) -> Views:
        return read(require_folder(folder), ReadOptions(split, **options))  # type: ignore[arg-type]

    return opened
