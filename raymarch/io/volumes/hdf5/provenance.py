"""Provenance in an HDF5 file: what is known of a volume's making, as one text of JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.hdf5 import RESTORE_CURE
from raymarch.io.files.strict import parse_json

MAX_DEPTH = 400
MAX_BYTES = 1 << 24  # bytes of its text: of 20,000 views whose cameras were refined 5 MB


def provenance_text(provenance: Mapping, path: str | os.PathLike[str]) -> np.ndarray:
    """The text; RaymarchError for what is not plain, too deep or too long."""
    try:
        plain = _plain(provenance, "provenance")
        _require_shallow(plain, "its text")
        text = json.dumps(plain, allow_nan=False)
        require_short(len(text))
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None
    except (RecursionError, ValueError) as error:
        raise RaymarchError(f"{path}: provenance cannot be written ({one_line(error)}); simplify it") from error
    return np.array(text.encode("ascii"))


def provenance_of(text: np.ndarray, path: str | os.PathLike[str]) -> dict:
    """What a text says; RaymarchError for one that is no mapping in JSON."""
    value = parse_json(text.tolist().decode(), f"{path}: provenance")
    if not isinstance(value, dict):
        raise RaymarchError(f"{path}: provenance is a {type(value).__name__}, want a mapping; {RESTORE_CURE}")
    _require_shallow(value, path)
    return value


def require_short(size: int) -> None:
    """Length check: RaymarchError for a text longer than provenance may be."""
    if size > MAX_BYTES:
        raise RaymarchError(f"provenance is {size:,} bytes long, want at most {MAX_BYTES:,}; keep it elsewhere")


def _require_shallow(value: object, where: object) -> None:
    """What is nested deeper than Python recurses would end in a traceback later, or in none."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise RaymarchError(f"{where}: provenance is nested over {MAX_DEPTH} levels deep; make it flatter")
        inside = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))]
        level = [item for items in inside for item in items]


def _plain(value: Any, where: str) -> Any:
    """The value in what JSON has; numbers that are not finite become null."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise RaymarchError(f"{where} has the key {key!r}, want texts as keys; convert it with str")
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    raise RaymarchError(f"{where} is a {type(value).__name__}, want numbers, texts, lists and mappings; convert it")
