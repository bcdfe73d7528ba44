"""Origin of a set's world: sets in map coordinates are moved near the origin, where single precision resolves them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from raymarch.errors import RaymarchError

MAX_ORIGIN_DISTANCE = 1000  # times the cameras' spread: from there on single precision loses pixels
POSITION_ROUNDING = 1e-12  # of how far cameras lie from the origin, within which two are in one place
MAX_BOX_DISTANCE = 1000  # times its own size that a box may lie away from the moved cameras, to be about them

log = logging.getLogger("raymarch")


def new_origin(places: Sequence[np.ndarray] | np.ndarray, source: object) -> np.ndarray | None:
    """New origin (3,) of a set's world, in its own coordinates, where its cameras lie far from the origin; else None.

    Map coordinates have their origin thousands of kilometres away, and everything is computed in single precision. The
    new origin is rounded to the order of the cameras' spread, and depends on the cameras of the whole set alone: every
    split gets the same. A few cameras that lie elsewhere do not move it. The log says what it is.

    Args:
        places: (camera, 3) of all cameras of the set, whatever the split; those that are not finite do not count.
        source: opens the message.

    Example:
        >>> new_origin([(6e6, 0, 0), (6e6, 1, 0), (6e6, 2, 0)], "cameras.xml").tolist()
        [6000000.0, 1.0, 0.0]
        >>> new_origin([(2, 0, 0), (2, 1, 0)], "cameras.xml") is None
        True
    """
    if (origin := far_middle(places)) is None:
        return None
    log.warning(
        "%s: the cameras lie far from the origin, where single precision ends, so the world is moved by %s; what is at"
        " 0,0,0 now lies at %s in the set's coordinates, rm.Views.origin and a fitted volume's provenance keep it",
        source,
        coordinates_text(-origin),
        coordinates_text(origin),
    )
    return origin


def far_middle(places: Sequence[np.ndarray] | np.ndarray) -> np.ndarray | None:
    """Middle (3,) of places (camera, 3), rounded to the order of their spread, where they lie far from the origin.

    Example:
        >>> far_middle([(0, 2e6, 0), (1, 2e6, 0), (2, 2e6, 7)]).tolist()
        [1.0, 2000000.0, 0.0]
    """
    told = np.array([place for place in places if np.isfinite(place).all()], float).reshape(-1, 3)
    if len(told) < 2:
        return None
    middle = np.median(told, axis=0)
    away = np.abs(told - middle).max(axis=1)
    spread = float(np.median(away)) or float(away.max())
    # all in one place, which tells no unit: that of maps is a metre
    if spread <= POSITION_ROUNDING * np.abs(middle).max():
        spread = 1.0
    if np.abs(middle).max() <= MAX_ORIGIN_DISTANCE * spread:
        return None
    unit = 10.0 ** np.ceil(np.log10(spread))
    return np.round(middle / unit) * unit + 0.0


def coordinates_text(place: np.ndarray) -> str:
    """Coordinates as a text.

    Example:
        >>> coordinates_text(np.array([500000.0, 0.5, -2]))
        '500000, 0.5, -2'
    """
    return ", ".join(f"{x + 0.0:.12g}" for x in place)


def places_of(items: Iterable[object], place: Callable[..., np.ndarray]) -> list[np.ndarray]:
    """Places (3,) of those items that have one: who reads all of them says what is wrong with the others."""
    found = []
    for item in items:
        try:
            found.append(np.asarray(place(item), float))
        except RaymarchError:
            continue
    return found


def moved_pose(pose: np.ndarray, origin: np.ndarray | None) -> np.ndarray:
    """Pose (4, 4) in the world whose origin is at `origin`; as it is where that is None."""
    if origin is None:
        return pose
    out = np.array(pose, float)
    out[:3, 3] -= origin
    return out


def moved_points(points: np.ndarray | None, origin: np.ndarray | None) -> np.ndarray | None:
    """Points (point, 3), or the corners of a box, in the world whose origin is at `origin`."""
    return points if points is None or origin is None else points - origin


def box_near(box: np.ndarray, origin: Sequence[float] | None) -> np.ndarray:
    """Box (2, 3) that a user gives, in the world whose origin is at `origin`: one in the set's own coordinates is moved
    with its cameras, which the log says.

    Example:
        >>> box_near(np.array([(5e5, 4e6, 0), (5e5 + 2, 4e6 + 2, 2)]), (5e5, 4e6, 0)).tolist()
        [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]
    """
    if origin is None:
        return box
    middle, moved = np.mean(box, axis=0), np.asarray(box, float) - origin
    if np.linalg.norm(middle - origin) >= np.linalg.norm(middle):
        return box
    log.warning(
        "the box is in the set's own coordinates, and is moved with its cameras by %s",
        coordinates_text(-np.array(origin)),
    )
    return moved


def moved_box(box: np.ndarray | None, origin: np.ndarray | None, source: object) -> np.ndarray | None:
    """Box (2, 3) of a set in the world whose origin is at `origin`; None, which is said, where no camera is near it.

    A set that was moved to map coordinates may have a box that was not.
    """
    box = moved_points(box, origin)
    if box is None or origin is None:
        return box
    if np.abs(box.mean(axis=0)).max() > MAX_BOX_DISTANCE * float(np.ptp(box, axis=0).max()):
        log.warning("%s: the set's box lies far from its cameras and is left out; correct it, or give --box", source)
        return None
    return box
