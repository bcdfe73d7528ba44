"""Reader of image sets: the record of one, and which of several reads a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, optional, whole
from raymarch.arguments.declared import checked_field
from raymarch.arguments.extensions import NAME, call_callback, call_detect, callback_rule, hold_parts, require_one
from raymarch.views.views import Views


def _patterns(value: Any) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(one, str) and _is_pattern(one) for one in several):
        raise ValueError
    return several


def _is_pattern(text: str) -> bool:
    """Whether it is one that stays in a folder, and looks at few of those in it."""
    parts, anchor = PurePosixPath(text).parts, PurePosixPath(text).anchor or PureWindowsPath(text).anchor
    return text.isprintable() and bool(parts) and not anchor and not any("**" in part or part == ".." for part in parts)


@dataclass(frozen=True)
class Reader:
    """Reader of image sets of one layout: pass one to `rm.load_views` as `reader=`.

    Attributes:
        name: what it is called in messages, and by `reader=` where it is one of raymarch's own.
        detect: `detect(folder)`, whether a folder has the layout. It must not claim a folder of another layout, which
            `read` would refuse.
        read: `read(folder, split, *, follow_links, for_fit)`, the `rm.Views` of one split, such as "train"; the two
            options are those of `rm.load_views`, and a reader that needs neither takes `**_`. `downscale` and `holdout`
            come too where a user asks for others than 1 and 8.
        files: patterns of names, relative to the folder, of the files that the layout is known by. A folder that nobody
            recognises but that has one is left to `read`, which says what is wrong with it.
        specificity: of two readers that claim a folder the one with more reads it: a layout that is a special case of
            another has one more.
        splits: `splits(folder)`, the names of the splits that a set has, of which `raymarch convert` writes all; if not
            given, or none has names, it tries train, val and test.

    Paths come as pathlib.Path. The background that a user asks for is put on the views afterwards. Whatever a function
    raises becomes a RaymarchError that names the reader and the function, and so does what is no Views.

    Raises RaymarchError for a part that is missing or no function.

    Example:
        >>> def read(folder, split, **_):
        ...     images = np.load(folder / f"{split}.npy")
        ...     cameras = orbit((0, 0, 0), 4, len(images), like=Camera.look_at((4, 0, 0), width=8, height=8))
        ...     return Views(cameras, images)
        >>> turntable = Reader("turntable", lambda folder: (folder / "train.npy").is_file(), read)
        >>> np.save("train.npy", np.zeros((3, 8, 8, 4), np.uint8))
        >>> len(load_views(".", reader=turntable))
        3
    """

    name: str = checked_field(NAME, None)
    detect: Callable[[Path], bool] = checked_field(callback_rule("detect(folder)", "True or False"), None)
    read: Callable[..., Views] = checked_field(callback_rule("read(folder, split, **options)", "rm.Views"), None)
    files: Sequence[str] = checked_field(Check("patterns of file names such as transforms_*.json", _patterns), ())
    specificity: int = checked_field(whole(0, 1000), 1)
    splits: Callable[[Path], Sequence[str]] | None = checked_field(
        optional(callback_rule("splits(folder)", "a list of texts")), None
    )

    def __post_init__(self) -> None:
        hold_parts(self)

    def has_files(self, folder: Path) -> bool:
        """Test of a folder: whether it has any of the files that the layout is known by."""
        return folder.is_dir() and any(next(folder.glob(pattern), None) is not None for pattern in self.files)


def reader_of(folder: Path, readers: Sequence[Reader]) -> Reader | None:
    """Reader of a folder: the most specific one that recognises it, else one of which it has files, else None.

    Raises RaymarchError where two that are equally specific claim it, with their names.
    """
    claiming = [one for one in readers if call_detect(one, folder)]
    most = max((one.specificity for one in claiming), default=0)
    found = require_one([one for one in claiming if one.specificity == most], folder, "reader")
    return found or next((one for one in readers if one.has_files(folder)), None)


def read_views(reader: Reader, folder: Path, split: str, **options: float) -> Views:
    """Views of one split; RaymarchError where they cannot be read."""
    with np.errstate(all="ignore"):  # what absurd numbers of a file come to is checked where cameras are made
        return call_callback(reader, "read", folder, folder, split, kind=Views, wanted="rm.Views", **options)
