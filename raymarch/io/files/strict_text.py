"""Strict text tables: bounded UTF-8, and words that are finite numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from raymarch.errors import RaymarchError, one_line, short
from raymarch.io.files.limits import require_file

LARGEST_TEXT = 32 << 20  # bytes
EXPORT = "export it again"


def read_bytes(path: str | os.PathLike[str], wanted: str, most: int = LARGEST_TEXT) -> bytes:
    """Content of a file of at most `most` bytes; else RaymarchError that names it, with what was wanted.

    Example:
        >>> Path("a.txt").write_bytes(b"1 2")
        3
        >>> read_bytes("a.txt", "a table")
        b'1 2'
    """
    path = require_file(path, wanted, EXPORT)
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    if len(data) > most:
        raise RaymarchError(f"{path}: has over {most:,} bytes, want {wanted} of fewer; split it")
    return data


def read_text(path: str | os.PathLike[str], wanted: str, most: int = LARGEST_TEXT) -> str:
    """Content of a UTF-8 file of at most `most` bytes, without null characters; else RaymarchError.

    Example:
        >>> Path("a.txt").write_bytes(b"1 2")
        3
        >>> read_text("a.txt", "a table")
        '1 2'
    """
    data = read_bytes(path, wanted, most)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RaymarchError(f"{path}: byte {error.start} is not UTF-8, want {wanted}; save it as UTF-8") from error
    if "\0" in text:
        raise RaymarchError(f"{path}: has null characters, want {wanted}; {EXPORT}")
    return text


def finite(word: object, where: str) -> float:
    """Finite number of a word of a text; else RaymarchError, opened by `where`.

    Example:
        >>> finite("1e-002", "a.txt, line 3: k1")
        0.01
    """
    try:
        if not isinstance(word, str) or "_" in word:  # which Python takes inside numbers, and no format has
            raise ValueError
        value = float(word)
    except ValueError:
        raise RaymarchError(f"{where} is {short(word)}, want a number; {EXPORT}") from None
    if not math.isfinite(value):
        raise RaymarchError(f"{where} is {word}, want a finite number; {EXPORT}")
    return value


def finites(text: str | Sequence[str], count: int, where: str) -> list[float]:
    """Finite numbers of a text, exactly `count`, separated by spaces or lines; else RaymarchError.

    Example:
        >>> finites("1 2\\n3", 3, "a.txt")
        [1.0, 2.0, 3.0]
    """
    words = text.split(maxsplit=count + 1) if isinstance(text, str) else text
    if len(words) != count:
        came = f"more than {count}" if len(words) > count else str(len(words))
        raise RaymarchError(f"{where}: has {came} numbers, want {count}; {EXPORT}")
    return [finite(word, f"{where}, number {i + 1}") for i, word in enumerate(words)]
