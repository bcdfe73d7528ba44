"""Known views: which views a volume was fitted to, as its provenance keeps them by name and checksum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from raymarch.data.views import Views

MOST = 2000  # views that are kept; of larger sets none
LETTERS = 200_000  # of all their names
EVERY = 16  # rows of an image that one counts of


def record_of(views: Views) -> dict[str, Any]:
    """Names and checksums of views in plain texts, for a volume's provenance; none of more than 2,000 views.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8), ["first"])
        >>> record_of(views)
        {'names': ['first'], 'checksums': ['a3c1ca20']}
    """
    if len(views) > MOST or sum(map(len, views.names)) > LETTERS:
        return {}
    return {"names": list(views.names), "checksums": [_checksum(views, i) for i in range(len(views))]}


def known_of(views: Views, record: object) -> list[int]:
    """Indices of the views that a record is of: by name and image, or by name and source at another size.

    Args:
        views: as of `load_views`.
        record: "views" of a volume's provenance, whatever it is.
    """
    told: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    names, sums = told.get("names"), told.get("checksums")
    if not isinstance(names, list) or not isinstance(sums, list):
        return []
    pairs = {
        (name, one) for name, one in zip(names, sums, strict=False) if isinstance(name, str) and isinstance(one, str)
    }
    smaller = told.get("downscale") != views.downscale and _is_same(told.get("source"), views.source)
    known = {name for name, _ in pairs}
    return [
        i for i, name in enumerate(views.names) if name in known and (smaller or (name, _checksum(views, i)) in pairs)
    ]


def _checksum(views: Views, i: int) -> str:
    return f"{crc32(views.image(i)[::EVERY].tobytes()):08x}"


def _is_same(source: object, other: str) -> bool:
    try:
        return isinstance(source, str) and bool(source) and Path(source).resolve() == Path(other).resolve()
    except (OSError, ValueError):  # what can be no path
        return False
