"""Argument rules for arrays: shapes, bounds of their numbers, colours, display values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from raymarch.arguments.checks import LARGEST, Check, Wrong, interval, shown, within

# What a user may give as an array: nested lists and tuples of numbers too. A union with Any, not ArrayLike, as the
# body of a checked function sees what its rule has made of it: an array.
Numbers: TypeAlias = "np.ndarray | Any"
Colour: TypeAlias = "str | Sequence[float] | np.ndarray"  # as the rule `colour` reads it

COLOURS = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}
BRIGHTEST = 8.0  # of display values: what is beyond it counts to 255


def array(
    *shape: int | str,
    low: float = -LARGEST,
    high: float = LARGEST,
    above: bool = False,
    below: bool = False,
    cure: str = "",
) -> Check:
    """Rule for an array of a shape, as float64: numbers of an interval; letters of the shape stand for one or more."""

    def read(value: object) -> np.ndarray:
        given = numeric(value)
        fits = [n == m if isinstance(m, int) else n > 0 for n, m in zip(given.shape, shape, strict=False)]
        if given.ndim == 0 and shape:
            raise TypeError
        if given.ndim != len(shape) or not all(fits):
            raise Wrong(f"has shape {given.shape}")
        require_within(given, low, high, above, below, cure)
        return given.astype(float)

    size = str(shape[0]) if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    what = f"{size} numbers" if shape else "a number"
    return Check(f"{what} {interval(low, high, above, below)}", read)


def vector(count: int, low: float = -LARGEST, high: float = LARGEST, *, above: bool = False) -> Check:
    """Rule for a vector: so many numbers of an interval, as a tuple."""
    check = array(count, low=low, high=high, above=above)

    def read(value: object) -> tuple[float, ...]:
        try:
            return tuple(check.read(value).tolist())
        except Wrong:
            raise ValueError from None  # so few are shown as they came

    return Check(check.wanted, read)


def numeric(value: object, masks: bool = False) -> np.ndarray:
    """Array of real numbers of whatever type; Wrong for texts, ragged lists, objects and the like.

    With `masks` booleans are taken too, as uint8 0 and 1.
    """
    try:
        given = np.asarray(value)
    except Exception:  # whatever a foreign __array__ raises
        raise Wrong(f"is {shown(value)}") from None
    if masks and given.dtype.kind == "b":
        given = given.view(np.uint8)
    if given.dtype.kind not in "iuf":
        raise Wrong(f"is {shown(value)}")
    if np.ma.is_masked(value):  # NumPy would take what lies under the mask
        raise Wrong(f"has {int(np.ma.count_masked(value)):,} masked", "put numbers there by filled(number)")
    return given


def _display(value: object) -> np.ndarray:
    given = numeric(value)
    if given.size == 0:
        raise Wrong(f"has shape {given.shape}", "an image of no pixels cannot be compared")
    if given.dtype == np.uint8:
        return given / 255.0
    require_within(given, -LARGEST, LARGEST)
    if given.max() > BRIGHTEST:
        raise Wrong(f"has {given.max():.3g} at its brightest", "divide it by 255, or give it as uint8")
    return given.astype(float)


display = Check("numbers in 0..1, or uint8", _display)


def require_within(
    given: np.ndarray, low: float, high: float, above: bool = False, below: bool = False, cure: str = ""
) -> None:
    """Bounds check of an array: Wrong, with the number and its index, unless all are within."""
    with np.errstate(all="ignore"):
        ends = (given.min(), given.max()) if given.size else ()
        if all(within(end, low, high, above, below) for end in ends):  # NaN is one of them
            return
        where = tuple(int(i) for i in np.argwhere(~within(given, low, high, above, below))[0])
    place = f" at {where[0] if len(where) == 1 else where}" if where else ""
    raise Wrong(f"is {given[where]}{place}", cure if np.isfinite(given[where]) else "")


def _colour(value: object) -> tuple[float, ...]:
    if isinstance(value, str):
        value = COLOURS.get(value) or [float(part) for part in value.split(",")]
    return vector(3, 0, 1).read(value)


colour = Check("white, black or three numbers in 0..1 such as 0.5,0.5,1", _colour)
