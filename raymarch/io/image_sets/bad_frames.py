"""Bad frames of an image set, damaged or of no camera: left out, and told together, where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.images.decode import decode

BAD: ContextVar[dict[Path, str] | None] = ContextVar("bad frames", default=None)


@contextmanager
def bad_frames() -> Iterator[dict[Path, str]]:
    """Bad files and why, as sets are read that go on without them; elsewhere the first one ends the reading.

    Example:
        >>> with bad_frames() as bad:
        ...     bad
        {}
    """
    bad: dict[Path, str] = {}
    token = BAD.set(bad)
    try:
        yield bad
    finally:
        BAD.reset(token)


def left_out(file: Path, wanted: Callable[[], object]) -> bool:
    """Whether a file is bad, by the error of what is wanted of it, and bad ones are left out; else nothing is tried."""
    bad = BAD.get()
    if bad is None or file in bad:
        return bad is not None
    try:
        wanted()
    except RaymarchError as error:
        bad[file] = str(error)
    return file in bad


def damaged(file: Path) -> bool:
    """Whether an image cannot be decoded, where such ones are left out."""
    return left_out(file, lambda: decode([file], for_fit=False))
