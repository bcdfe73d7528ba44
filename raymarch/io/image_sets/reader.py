"""Reader of image sets: the record of one, and which of several reads a folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar, overload

import numpy as np

from raymarch.arguments.checks import Check, optional, whole
from raymarch.arguments.declared import held
from raymarch.arguments.extensions import NAME, called, hold_parts, part, recognises, require_one
from raymarch.errors import RaymarchError, one_line, short
from raymarch.io.image_sets.frames import Frame
from raymarch.views.views import Views

OUR_FAULTS = (LookupError, AttributeError, TypeError, NameError, AssertionError, NotImplementedError)


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

    name: str = held(NAME, None)
    detect: Callable[[Path], bool] = held(part("detect(folder)", "True or False"), None)
    read: Callable[..., Views] = held(part("read(folder, split, **options)", "rm.Views"), None)
    files: Sequence[str] = held(Check("patterns of file names such as transforms_*.json", _patterns), ())
    specificity: int = held(whole(0, 1000), 1)
    splits: Callable[[Path], Sequence[str]] | None = held(optional(part("splits(folder)", "a list of texts")), None)

    def __post_init__(self) -> None:
        hold_parts(self)

    def has_files(self, folder: Path) -> bool:
        """Test of a folder: whether it has any of the files that the layout is known by."""
        return folder.is_dir() and any(next(folder.glob(pattern), None) is not None for pattern in self.files)


def reader_of(folder: Path, readers: Sequence[Reader]) -> Reader | None:
    """Reader of a folder: the most specific one that recognises it, else one of which it has files, else None.

    Raises RaymarchError where two that are equally specific claim it, with their names.
    """
    claiming = [one for one in readers if recognises(one, folder)]
    most = max((one.specificity for one in claiming), default=0)
    found = require_one([one for one in claiming if one.specificity == most], folder, "reader")
    return found or next((one for one in readers if one.has_files(folder)), None)


def read_views(reader: Reader, folder: Path, split: str, **options: float) -> Views:
    """Views of one split; RaymarchError where they cannot be read."""
    with np.errstate(all="ignore"):  # what absurd numbers of a file come to is checked where cameras are made
        try:
            return called(reader, "read", folder, folder, split, kind=Views, wanted="rm.Views", **options)
        except RaymarchError as error:
            if isinstance(error.__cause__, OUR_FAULTS) and reader.read.__module__.startswith("raymarch."):
                said = f"{type(error.__cause__).__name__}: {one_line(error.__cause__)}"
                raise RaymarchError(
                    f"{folder}: raymarch could not read this, by a fault of its own in the reader {reader.name}"
                    f" ({said}); please report it with the file that lists the cameras"
                ) from error.__cause__
            raise


# Held-out views of a set without splits of its own: every so many-th by name, for what is to be tested.

HOLDOUT = 8
TEST = ("test", "val")

Item = TypeVar("Item")


@overload
def held_out(items: int, split: str, holdout: int, source: Path) -> list[int]: ...


@overload
def held_out(items: Sequence[Item], split: str, holdout: int, source: Path) -> list[Item]: ...


def held_out(items: int | Sequence, split: str, holdout: int, source: Path) -> list:
    """Items of a split where the set itself has none: each `holdout`-th from the first on is held out.

    Args:
        items: frames, which are put in the order of their files' names, or whatever else in an order of its own; or how
            many there are, for their indices.
        split: "test" or "val" for what is held out, "train" for the rest, "all" for both.
        holdout: as of `load_views`; 0 holds nothing out.
        source: opens messages. The log says what is held out.

    Raises RaymarchError for another split, and for one that nothing is left for.

    Example:
        >>> held_out(10, "test", 8, Path("fox")), held_out(5, "train", 2, Path("fox"))
        ([0, 8], [1, 3])
    """
    several: list = list(range(items)) if isinstance(items, int) else list(items)
    if several and all(isinstance(item, Frame) for item in several):
        several.sort(key=lambda frame: frame.file.as_posix())
    if split not in ("train", *TEST, "all"):
        raise RaymarchError(f"{source}: there is no split {short(split)}, it has train, test and all; choose one")
    count = len(several)
    if split == "all" or (holdout == 0 and split == "train"):
        return several
    first = _first_of_file(several, source)
    out = [item for i, item in enumerate(several) if first[i] % holdout == 0] if holdout else []
    chosen = out if split in TEST else [item for i, item in enumerate(several) if first[i] % holdout]
    if not chosen:
        views = f"{count} view{'s' if count != 1 else ''}"
        how = f"of {views} one in {holdout} is held out" if holdout else f"none of {views} is held out"
        another = "the holdout 0, --holdout 0," if count == 1 else "another holdout, --holdout K,"
        raise RaymarchError(
            f"{source}: {how}, which leaves none for the split {split}; take {another} or the split all"
        )
    logging.getLogger("raymarch").warning(
        "%s: has no splits of its own, so one view in %d is held out for test, %d of %d (--holdout K, 0 for none)",
        source, holdout, len(out), count,
    )  # fmt: skip
    return chosen


def _first_of_file(items: Sequence, source: Path) -> list[int]:
    """Index of the first frame of each one's image: a view that is held out shall not be fitted under another name."""
    known: dict[Path, int] = {}
    first = [known.setdefault(item.file.resolve(), i) if isinstance(item, Frame) else i for i, item in enumerate(items)]
    if again := sum(i != j for i, j in enumerate(first)):
        message = "%s: %d frames list an image that another one lists, and are held out if the first of these is"
        logging.getLogger("raymarch").warning(message, source, again)
    return first
