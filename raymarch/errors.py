"""Exception for errors of a user's input, and how values are put into its line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise


class RaymarchError(ValueError):
    """Error of a user's input: what came, what was wanted and the cure, in one line; the command line exits with 1.

    Example:
        >>> raise RaymarchError("focal is 0.0 pixels, want a positive number; check camera_angle_x")
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: focal is 0.0 pixels, want a positive number; check camera_angle_x
    """

    def __init__(self, *told: object) -> None:
        super().__init__(*(escape(one) if isinstance(one, str) else one for one in told))


class ArgumentNameError(RaymarchError, TypeError):
    """Call with an argument that the function does not have, or without one that it needs; a TypeError too."""


def escape(text: str) -> str:
    """Text in one line, with all that is not printable as escapes: names of files may hold newlines and colour codes.

    Example:
        >>> escape("two\\nlines")
        'two\\\\nlines'
    """
    text = decode_names(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def decode_names(text: str) -> str:
    """Text with the names of files in letters where a shell without UTF-8 gave them as bytes.

    Example:
        >>> decode_names("\\udcce\\udca4.png")
        'Τ.png'
    """
    with suppress(UnicodeError):
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    return text


def one_line(error: BaseException) -> str:
    """Message of an exception, in one line.

    Example:
        >>> one_line(ValueError("two\\nlines"))
        'two lines'
    """
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


PROGRAM_FAULTS = (
    LookupError, AttributeError, TypeError, NameError, AssertionError, NotImplementedError, ZeroDivisionError,
    RecursionError, StopIteration, ImportError, SystemError, UnicodeEncodeError,
)  # fmt: skip
"""Exceptions that no damaged file is to raise in code of raymarch's: where one does, a check is missing."""

MAX_FAULT_LENGTH = 300  # characters of what an exception says


def program_fault(error: BaseException, what: str = "read") -> str:
    """Words for an exception that is likely a fault of raymarch's and not of the user's file.

    Example:
        >>> program_fault(KeyError("axes"))
        "raymarch could not read this (KeyError: 'axes'), which is likely a fault of raymarch and not of the file; \
please report it with the file's header"
    """
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:MAX_FAULT_LENGTH]}".removesuffix(": ")
    whose = "of the file; please report it with the file's header"
    if what == "write":
        whose = "of the volume; please report it"
    return f"raymarch could not {what} this ({said}), which is likely a fault of raymarch and not {whose}"


def first_names(names: Sequence[str], most: int = 5) -> str:
    """First few of the names, for a message.

    Example:
        >>> first_names(["r_0", "r_1", "r_2"], most=2)
        'r_0, r_1, ...'
    """
    return ", ".join(map(escape, names[:most])) + (", ..." if len(names) > most else "")


def short_value(value: object) -> str:
    """Value for a message, cut to a line.

    Example:
        >>> short_value([1, 2, 3])
        'a list of 3'
    """
    if value is None:
        return "missing"
    text = repr(value) if not isinstance(value, (list, dict)) else f"a {type(value).__name__} of {len(value)}"
    return text if len(text) <= 80 else text[:77] + "..."


def distinct_figures(*values: float, step: float = 0.0, least: int = 6) -> list[str]:
    """Texts of numbers with as many figures as tell them apart, and tell each to a tenth of `step`; at least so many.

    Example:
        >>> distinct_figures(999.9999, 1000.0001), distinct_figures(0.5, 2.0), distinct_figures(5400000.85, step=0.1)
        (['999.9999', '1000.0001'], ['0.5', '2'], ['5400000.85'])
    """
    largest, several = max(map(abs, values), default=0.0), sorted({float(x) for x in values})
    gaps = [b - a for a, b in pairwise(several)]
    step = min([*gaps, step] if step > 0 else gaps, default=0.0)
    if step > 0 and math.isfinite(largest) and largest > 0:
        least = min(max(least, math.ceil(math.log10(largest) - math.log10(step)) + 1), 17)
    for count in range(least, 18):
        texts = [f"{x:.{count}g}" for x in values]
        if len(set(texts)) >= len(several):
            break
    return texts
