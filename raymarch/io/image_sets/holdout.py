"""Views that are held out of a set without splits of its own: every so many-th by name, for what is to be tested."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, overload

from raymarch.errors import RaymarchError, short_value
from raymarch.io.image_sets.frames import Frame
from raymarch.io.image_sets.read_options import ReadOptions

TEST_SPLITS = ("test", "val")
Item = TypeVar("Item")


@overload
def select_split(items: int, options: ReadOptions, source: Path) -> list[int]: ...


@overload
def select_split(items: Sequence[Item], options: ReadOptions, source: Path) -> list[Item]: ...


def select_split(items: int | Sequence, options: ReadOptions, source: Path) -> list:
    """Items of a split where the set itself has none: each `holdout`-th from the first on is held out.

    Args:
        items: frames, which are put in the order of their files' names, or whatever else in an order of its own; or how
            many there are, for their indices.
        options: `split`, "test" or "val" for what is held out, "train" for the rest, "all" for both; and `holdout`, of
            which 0 holds nothing out.
        source: opens messages. The log says what is held out.

    Raises RaymarchError for another split, and for one that nothing is left for.

    Example:
        >>> (select_split(10, ReadOptions("test"), Path("fox")),
        ...  select_split(5, ReadOptions("train", holdout=2), Path("fox")))
        ([0, 8], [1, 3])
    """
    split, holdout = options.split, options.holdout
    several: list = list(range(items)) if isinstance(items, int) else list(items)
    if several and all(isinstance(item, Frame) for item in several):
        several.sort(key=lambda frame: frame.file.as_posix())
    if split not in ("train", *TEST_SPLITS, "all"):
        raise RaymarchError(f"{source}: there is no split {short_value(split)}, it has train, test and all; choose one")
    count = len(several)
    if split == "all" or (holdout == 0 and split == "train"):
        return several
    first = _first_of_file(several, source)
    out = [item for i, item in enumerate(several) if first[i] % holdout == 0] if holdout else []
    chosen = out if split in TEST_SPLITS else [item for i, item in enumerate(several) if first[i] % holdout]
    if not chosen:
        views = f"{count} view{'s' if count != 1 else ''}"
        how = f"of {views} one in {holdout} is held out" if holdout else f"none of {views} is held out"
        another = "the holdout 0, --holdout 0," if count == 1 else "another holdout, --holdout K,"
        raise RaymarchError(
            f"{source}: {how}, which leaves none for the split {split}; take {another} or the split all"
        )
    logging.getLogger("raymarch").warning(
        "%s: has no splits of its own, so one view in %d is held out for test, %d of %d (--holdout K, 0 for none)",
        source,
        holdout,
        len(out),
        count,
    )
    return chosen


def _first_of_file(items: Sequence, source: Path) -> list[int]:
    """Index of the first frame of each one's image: a view that is held out shall not be fitted under another name."""
    known: dict[Path, int] = {}
    first = [known.setdefault(item.file.resolve(), i) if isinstance(item, Frame) else i for i, item in enumerate(items)]
    if again := sum(i != j for i, j in enumerate(first)):
        message = "%s: %d frames list an image that another one lists, and are held out if the first of these is"
        logging.getLogger("raymarch").warning(message, source, again)
    return first
