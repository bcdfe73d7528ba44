"""Argument rules: what a value must be, and the one-line error that says so; `arguments.declared` applies them."""

from __future__ import annotations

import inspect
import os
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, SupportsInt

import numpy as np

from raymarch.arguments.guess import did_you_mean
from raymarch.errors import RaymarchError

LARGEST = 1e30  # of any number: kernels compute in single precision, and what they sum up must stay finite there
WORLD = 1e9  # world units from the origin, and pixels of a focal length: single precision is at its end there
PLAIN = (int, float, complex, str, bytes, list, tuple, dict, set, type(None))
PLURAL = {"is": "are", "has": "have"}


class Wrong(Exception):
    """Refusal of a value: what came, in words that follow the name, from "is" or "has" on, and a cure of its own."""

    def __init__(self, came: str, cure: str = ""):
        self.came, self.cure = came, cure


class Meant(ValueError):
    """Refusal of a value that is shown as it came, with what to do instead."""

    def __init__(self, cure: str):
        super().__init__(cure)
        self.cure = cure


@dataclass(frozen=True)
class Check:
    """Argument rule: called with a name and a value it returns the value as it is used, or raises RaymarchError.

    Attributes:
        wanted: in words.
        read: the value as it is used; raises Wrong, TypeError, ValueError or OverflowError for what cannot be.
        cure: what to do instead.
        kind: the class, of a rule that wants one of the package; `checked` says how the function is called.

    Example:
        >>> number(0, 1)("share", 2)
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: share is 2, want a number from 0 to 1
    """

    wanted: str
    read: Callable[[Any], Any]
    cure: str = ""
    kind: type | None = None

    def __call__(self, name: str, value: object) -> Any:
        try:
            return self.read(value)
        except RaymarchError:
            raise
        except Wrong as wrong:
            verb, rest = wrong.came.split(" ", 1)
            several = name.endswith("s") and not name.endswith("ss")
            came, cure = f"{PLURAL[verb] if several else verb} {rest}", wrong.cure or self.cure
        except Meant as meant:
            cures = (self.cure, meant.cure) if self.kind else (meant.cure,)
            came, cure = f"is {shown(value)}", "; ".join(filter(None, cures))
        except (TypeError, ValueError, OverflowError):
            came, cure = f"is {shown(value)}", self.cure
        raise RaymarchError(f"{name} {came}, want {self.wanted}" + (f"; {cure}" if cure else ""))


def shown(value: object) -> str:
    """Short description of a value for a message, on one line.

    Example:
        >>> shown(np.zeros((2, 4))), shown("wide"), shown(len)
        ('a float64 array (2, 4)', "'wide'", 'a function')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and value.size <= 6:
        value = value.tolist()
    if isinstance(value, np.ndarray):
        return f"{_a(str(value.dtype))} array {value.shape}"
    if isinstance(value, np.generic):
        return str(value)[:60]
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], PLAIN):
        more = f" and {len(value) - 1} more" if len(value) > 1 else ""
        return f"a {type(value).__name__} of {shown(value[0])}{more}"
    if isinstance(value, PLAIN):
        return " ".join(reprlib.repr(value).split())
    return "a function" if inspect.isroutine(value) else _a(type(value).__name__)


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeio" else f"a {noun}"


def _real(value: object) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError
    return float(value)


def interval(low: float, high: float, above: bool, below: bool) -> str:
    """Interval in words, `above` without its lower end, `below` without its upper."""
    lower, upper = (str(n) if isinstance(n, int) else f"{n:g}" for n in (low, high))
    if above:
        return f"between {lower} and {upper}" if below else f"over {lower} and at most {upper}"
    return f"{lower} or more and less than {upper}" if below else f"from {lower} to {upper}"


def within(x: float | np.ndarray, low: float, high: float, above: bool, below: bool) -> bool | np.bool_ | np.ndarray:
    """Interval test of numbers; NaN is in none."""
    return ((x > low) if above else (x >= low)) & ((x < high) if below else (x <= high))


def number(
    low: float = -LARGEST,
    high: float = LARGEST,
    *,
    above: bool = False,
    below: bool = False,
    unit: str = "",
    cure: str = "",
) -> Check:
    """Rule for a number of an interval, as float."""

    def read(value: object) -> float:
        x = _real(value)
        if not within(x, low, high, above, below):
            raise ValueError
        return x

    words = f"a number {interval(low, high, above, below)}" + (f" [{unit}]" if unit else "")
    return Check(words, read, cure)


def whole(low: int, high: int, *, cure: str = "") -> Check:
    """Rule for a whole number of an interval, as int; 64.0 is one too, as it comes from a file."""

    def read(value: SupportsInt) -> int:
        x = _real(value)
        if not (x.is_integer() and low <= int(value) <= high):
            raise ValueError
        return int(value)

    return Check(f"a whole number {interval(low, high, False, False)}", read, cure)


def one_of(*names: str | int, cure: str = "") -> Check:
    """Rule for a choice: one of some names or whole numbers."""

    def read(value: object) -> str | int:
        if not isinstance(value, str):
            value = _real(value)
        if value not in names:
            raise Meant("; ".join(filter(None, (did_you_mean(value, names), cure))))
        return names[names.index(value)]

    return Check(f"one of {', '.join(map(str, names))}", read, cure)


def some_of(*names: str) -> Check:
    """Rule for a selection: one or more of some names, as a tuple; a name alone is one."""

    def read(value: Iterable[str]) -> tuple[str, ...]:
        several = (value,) if isinstance(value, str) else tuple(value)
        for one in several:
            if not isinstance(one, str) or one not in names:
                raise Wrong(f"has {shown(one)}", did_you_mean(one, names))
        if not several:
            raise ValueError
        return several

    return Check(f"some of {', '.join(names)}", read)


def _flag(value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _callable(value: object) -> Callable:
    if not callable(value) or isinstance(value, type):
        raise TypeError
    return value


def _path(value: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if not isinstance(os.fspath(value), str):
        raise TypeError
    if "\0" in os.fspath(value):
        raise Wrong("has a null character", "choose another name")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # halves of a surrogate pair
        raise Wrong("has a character that no file's name can have", "choose another name") from None
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


flag = Check("True or False", _flag)
callback = Check("a function", _callable)
path = Check("a path, text or pathlib.Path", _path)
text = Check("a text", _text)


def instance_of(kind: type, wanted: str, cure: str = "") -> Check:
    """Rule for an instance of one class of the package."""

    def read(value: object) -> object:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return Check(wanted, read, cure, kind)


def optional(check: Check) -> Check:
    """Rule for an optional value: what another rule says, or None."""
    return replace(check, wanted=f"{check.wanted}, or None", read=lambda x: None if x is None else check.read(x))
