"""JSON that means one thing: no NaN, no infinities, no key twice."""

from __future__ import annotations

import json
import math
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.guard import one_line

LARGEST_FILE = 64 << 20


def read_json(path):
    """The content of a UTF-8 JSON file of at most 64 MiB.

    Raises RaymarchError that names the file where it cannot be read, and for all that `parse_json` refuses.

    Example:
        >>> read_json("transforms_train.json")["camera_angle_x"]  # doctest: +SKIP
        0.6911112070083618
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise RaymarchError(f"{path}: is no file, want a JSON file; check the path")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise RaymarchError(f"{path}: has {size} bytes, want at most {LARGEST_FILE}; split it")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    except UnicodeDecodeError as error:
        raise RaymarchError(f"{path}: byte {error.start} is not UTF-8, want a JSON text; save it as UTF-8") from error
    return parse_json(text, str(path))


def parse_json(text: str, where: str):
    """The value of a JSON text; `where` opens every message.

    Raises RaymarchError for a syntax error (with its line and column), NaN, Infinity, numbers beyond a double such as
    1e999, a key given twice, and nesting that is too deep.

    Example:
        >>> parse_json('{"a": [1, 2.5]}', "text")
        {'a': [1, 2.5]}
    """

    def constant(name):
        raise RaymarchError(f"{where}: has the number {name}, want finite ones; correct what wrote it")

    def number(digits):
        value = float(digits)
        return value if math.isfinite(value) else constant(digits)

    def mapping(pairs):
        seen = dict(pairs)
        if len(seen) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise RaymarchError(f"{where}: key {twice!r} comes twice in one mapping; remove one")
        return seen

    try:
        return json.loads(text, parse_constant=constant, parse_float=number, object_pairs_hook=mapping)
    except json.JSONDecodeError as error:
        raise RaymarchError(
            f"{where}: is not JSON at line {error.lineno}, column {error.colno} ({error.msg}); correct it there"
        ) from error
    except RecursionError as error:
        raise RaymarchError(f"{where}: is nested too deeply, want a few levels; correct what wrote it") from error
    except RaymarchError:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise RaymarchError(f"{where}: has a number that cannot be read ({one_line(error)}); shorten it") from error
