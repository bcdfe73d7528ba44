"""Known views: which views a volume was fitted to, as its provenance keeps them by name and checksums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from raymarch.views.views import Views

MOST = 2000  # views that are kept; of larger sets none
LETTERS = 200_000  # of all their names
EVERY = 16  # rows of an image that one counts of
DIGITS = 6  # of the numbers of a pose that count


def record_of(views: Views) -> dict[str, Any]:
    """Names, and checksums of images and poses, of views in plain texts, for a volume's provenance; none of more than
    2,000 views.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8), ["first"])
        >>> record_of(views)
        {'names': ['first'], 'checksums': ['a3c1ca20'], 'poses': ['371c9d28']}
    """
    if len(views) > MOST or sum(map(len, views.names)) > LETTERS:
        return {}
    every = range(len(views))
    sums = {"checksums": [_of_image(views, i) for i in every], "poses": [_of_pose(views, i) for i in every]}
    return {"names": list(views.names), **sums}


def known_of(views: Views, record: object) -> dict[int, str]:
    """Indices of the views that a record is of, and their names there: by name and image, or by name, source and pose
    at another size.

    A name is the same too where one of the two has folders before it, as of a set whose splits are read together.

    Args:
        views: as of `load_views`.
        record: "views" of a volume's provenance, whatever it is; poses do not count where it has none, as older ones.
    """
    told: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    by_image, by_pose = _sums(told, "checksums"), _sums(told, "poses")
    if told.get("downscale") == views.downscale or not is_same_source(told.get("source"), views.source):
        sum_of, sums = _of_image, by_image
    elif "poses" not in told:
        return {i: name for i, name in enumerate(views.names) if name in by_image}
    else:  # not names alone, for splits of one file may have the same ones
        sum_of, sums = _of_pose, by_pose
    tails: dict[str, list[str]] = {}
    for name in sums:
        for tail in _tails(name):
            tails.setdefault(tail, []).append(name)
    found = {}
    for i, name in enumerate(views.names):  # names first, for all pixels of a large set take their time
        alike = [name] if name in sums else tails.get(name) or [tail for tail in _tails(name) if tail in sums][:1]
        given = sum_of(views, i) if alike else ""
        same = [other for other in alike if given in sums[other]]
        if len(same) == 1:
            found[i] = same[0]
    return found


def _tails(name: str) -> Iterator[str]:
    """What a name is without the folders before it, as `unique_names` joins them."""
    while "_" in name:
        name = name.partition("_")[2]
        yield name


def _sums(told: Mapping[str, Any], what: str) -> dict[str, set[str]]:
    """Checksums of a record by names, none where it is no such record."""
    names, sums = told.get("names"), told.get(what)
    found: dict[str, set[str]] = {}
    if isinstance(names, list) and isinstance(sums, list):
        for name, one in zip(names, sums, strict=False):
            if isinstance(name, str) and isinstance(one, str):
                found.setdefault(name, set()).add(one)
    return found


def _of_image(views: Views, i: int) -> str:
    return f"{crc32(views.image(i)[::EVERY].tobytes()):08x}"


def _of_pose(views: Views, i: int) -> str:
    pose = np.round(views.cameras[i].world_from_camera, DIGITS) + 0.0  # no -0
    return f"{crc32(pose.tobytes()):08x}"


def is_same_source(source: object, other: str) -> bool:
    """Whether a record's source is the set that views were read from.

    Example:
        >>> is_same_source("scenes/tower", "scenes/../scenes/tower"), is_same_source(None, "scenes/tower")
        (True, False)
    """
    try:
        return isinstance(source, str) and bool(source) and Path(source).resolve() == Path(other).resolve()
    except (OSError, ValueError):  # what can be no path
        return False
