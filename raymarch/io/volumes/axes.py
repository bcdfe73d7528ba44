"""Axes of a file's array: which three are of space, and the choice along the others (channels, points in time)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.io.volumes.part import require_one_place
from raymarch.io.volumes.source import Slices
from raymarch.io.volumes.stored_values import Index
from raymarch.volumes.selection import Selection

COLOURS = (
    "rgb", "rgba", "hsv", "xyz", "color", "colour", "vector", "point", "normal", "complex", "channel", "list", "matrix",
    "gradient", "quaternion",
)  # fmt: skip
IN_SHELL = {"channel": "--channel", "time": "--time-point"}


def chosen(
    path: Path,
    shape: Sequence[int],
    spatial: Sequence[int],
    selection: Selection,
    names: Sequence[object] | None = None,
) -> tuple[Callable[[Slices], Index], tuple[str, ...]]:
    """Index of a file's array for slices along x, y and z, and what of the choice is to be said.

    Args:
        path, shape: of the file and its array.
        spatial: axes that are x, y and z, rising.
        selection: of which `channel` and `time` say which place along the other axes.
        names: kinds of the axes, by which channels are told from points in time.

    Raises RaymarchError for an axis of several places of which none is chosen, and for one that is not there.
    """
    fixed: dict[int, int] = {}
    others = [axis for axis in range(len(shape)) if axis not in spatial]
    asked: dict[str, Any] = {"channel": selection.channel, "time": selection.time}
    for axis in others:
        option = _option(axis, spatial, None if names is None else str(names[axis]))
        count = int(shape[axis])
        if option not in asked and count > 1:
            where = ", ".join(":" if one in spatial else "0" for one in range(len(shape)))
            raise RaymarchError(
                f"{path}: has {' x '.join(map(str, shape))} numbers along {len(shape)} axes, of which {option} chooses"
                f" one; take one volume in Python, as array[{where}], and np.save that"
            )
        place = asked.pop(option, None)
        if place is None and count > 1:
            what = "channels" if option == "channel" else "points in time"
            raise RaymarchError(
                f"{path}: has {count:,} {what} along axis {axis}, want one volume; choose one by {option}=0"
                f" ({IN_SHELL[option]} 0 in the shell)"
            )
        if place is not None and place >= count:
            raise RaymarchError(f"{path}: {option} is {place}, but it has {count:,}; choose one from 0 to {count - 1}")
        fixed[axis] = place or 0
    require_one_place(Selection(**asked), path)
    require_one_place(Selection(level=selection.level), path)

    def index(slices: Slices) -> Index:
        of_space = iter(slices)
        return tuple(fixed[axis] if axis in fixed else next(of_space) for axis in range(len(shape)))

    return index, ()


def _option(axis: int, spatial: Sequence[int], name: str | None) -> str:
    """Whether an axis is one of channels or of time: by its name, else channels come before those of space."""
    if name and any(word in name.lower() for word in COLOURS):
        return "channel"
    if name and "time" in name.lower():
        return "time"
    return "channel" if axis < spatial[0] else "time"
