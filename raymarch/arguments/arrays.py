"""Argument rules for arrays: shapes, bounds of their numbers, colours, display values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from raymarch.arguments.checks import LARGEST, Check, Meant, Wrong, interval, shown, within
from raymarch.errors import RaymarchError

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


def mended(check: Check, cure_of: Callable[[Any], str]) -> Check:
    """Rule that says, of what another refuses, what that may have been meant as: `cure_of(value)`, or ""."""

    def read(value: object) -> Any:
        try:
            return check.read(value)
        except (Wrong, TypeError, ValueError, OverflowError) as error:
            cure = cure_of(value)
            if isinstance(error, RaymarchError) or not cure:
                raise
            raise (Wrong(error.came, cure) if isinstance(error, Wrong) else Meant(cure)) from None

    return replace(check, read=read)


def shape_of(value: object) -> tuple[int, ...] | None:
    """Shape of an array of numbers, however given; None of what is none."""
    try:
        return numeric(value).shape
    except Wrong:
        return None


def channels_cure(shape: tuple[int, ...] | None, spatial: tuple[int, ...], channels: Sequence[int] = (3,)) -> str:
    """What to do with an array whose channels lie elsewhere than behind the axes of space, or are too many; or ""."""
    if shape is None or len(shape) != len(spatial) + 1:
        return ""
    if shape[1:] == spatial and shape[0] in channels:
        return "its channels come first: pass np.moveaxis(it, 0, -1)"
    if shape[:-1] == spatial[::-1] and shape[-1] in channels and spatial != spatial[::-1]:
        return "its axes are z, y, x: pass np.swapaxes(it, 0, 2)"
    if shape[:-1] == spatial and shape[-1] == 4 and 3 in channels:
        return "it has a fourth channel, alpha: pass it[..., :3]"
    return ""


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


def _colour_cure(value: object) -> str:
    shape = shape_of(value)
    if isinstance(value, str):
        try:
            from matplotlib.colors import to_rgb

            return f"say {','.join(f'{c:.3g}' for c in to_rgb(value))}"
        except ValueError:
            return ""
    if shape == (4,):
        return "leave the fourth, alpha, out"
    three = np.asarray(value).tolist() if shape == (3,) else [0.0]
    if 1 < max(three) <= 255 and min(three) >= 0:
        return f"of 0..255 it is {','.join(f'{c / 255:.3g}' for c in three)}"
    if shape == () and isinstance(value, (int, float)) and 0 <= value <= 1:
        return f"a grey is {','.join([f'{value:g}'] * 3)}"
    return ""


def _colour(value: object) -> tuple[float, ...]:
    if isinstance(value, str):
        value = COLOURS.get(value) or [float(part) for part in value.split(",")]
    return vector(3, 0, 1).read(value)


colour = mended(Check("white, black or three numbers in 0..1 such as 0.5,0.5,1", _colour), _colour_cure)
