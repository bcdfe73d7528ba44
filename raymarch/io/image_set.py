"""Image sets of any known layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from raymarch.errors import RaymarchError
from raymarch.io import nerf_synthetic
from raymarch.io.guard import require_folder
from raymarch.view import Views


class Layout(NamedTuple):
    """A way to lay out images and cameras: what it looks like, whether a folder has it, and its reader."""

    looks: str
    detect: Callable[[Path], bool]
    read: Callable[..., Views]


LAYOUTS = [
    Layout("transforms_<split>.json (NeRF-synthetic)", nerf_synthetic.detect, nerf_synthetic.read),
]


def load_views(path, split: str = "train", *, background=None) -> Views:
    """The views of one split of an image set, whose layout is found out from its files.

    Raises RaymarchError where the folder is missing or of no known layout, and what the layout's reader raises.

    Example:
        >>> len(load_views("lego", "train"))  # doctest: +SKIP
        100
    """
    folder = require_folder(path)
    for layout in LAYOUTS:
        if layout.detect(folder):
            return layout.read(folder, split, background)
    looked = ", ".join(layout.looks for layout in LAYOUTS)
    raise RaymarchError(f"{folder}: is no known image set, looked for {looked}; check the path or convert the set")
