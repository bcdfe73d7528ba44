"""Tours: an order of cameras that a path can follow, and few of many that are well spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.geometry.camera import Camera

IN_ORDER = 1.8  # times as long as the tour found the given order may be and is kept: it is how they were taken
PASSES = 30  # of improvement, at most


def tour(cameras: Sequence[Camera], most: int = 16) -> list[int]:
    """Indices of up to `most` cameras in an order that a path can follow.

    Photographs that were taken in order, as of a walk or a video, keep it, and every so many of them are taken; of
    others those that are farthest from each other, in the order of a short way from place to place.

    Example:
        >>> tour([Camera.look_at((x, -4, 0), (x, 0, 0)) for x in (0, 3, 1, 4, 2, 5)])
        [0, 2, 4, 1, 3, 5]
    """
    places = np.array([camera.position for camera in cameras])
    found = short_way(places)
    walked, shortest = (float(np.linalg.norm(np.diff(places[w], axis=0), axis=1).sum()) for w in (slice(None), found))
    if walked <= IN_ORDER * shortest:
        which = np.linspace(0, len(places) - 1, min(most, len(places))).round().astype(int)
        return which.tolist()
    spread = np.array(farthest(places, most))
    return spread[short_way(places[spread])].tolist()


def farthest(places: np.ndarray, most: int) -> list[int]:
    """Indices of up to `most` points, each in turn the farthest from those before (Gonzalez 1985), in rising order."""
    away = np.linalg.norm(places - places.mean(0), axis=1)
    chosen = [int(away.argmax())]
    near = np.linalg.norm(places - places[chosen[0]], axis=1)
    while len(chosen) < min(most, len(places)):
        chosen.append(int(near.argmax()))
        near = np.minimum(near, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return sorted(chosen)


def short_way(places: np.ndarray) -> np.ndarray:
    """Order (n,) of points along a short open way: always the nearest, then stretches turned around (2-opt)."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    left = set(range(len(places)))
    order = [int(np.linalg.norm(places - places.mean(0), axis=1).argmax())]
    left.remove(order[0])
    while left:
        rest = np.fromiter(left, int)
        order.append(int(rest[apart[order[-1], rest].argmin()]))
        left.remove(order[-1])
    way = np.array(order)
    for _ in range(PASSES):
        before = way.copy()
        for i in range(len(way) - 1):
            # Turning way[i + 1 .. j] around takes two of its links and adds two; the last end is free.
            j = np.arange(i + 1, len(way))
            last = j == len(way) - 1
            after = way[np.minimum(j + 1, len(way) - 1)]
            gain = apart[way[i], way[i + 1]] - apart[way[i], way[j]]
            gain = gain + np.where(last, 0.0, apart[way[j], after] - apart[way[i + 1], after])
            best = int(gain.argmax())
            if gain[best] > 1e-9 * apart.max():
                way[i + 1 : j[best] + 1] = way[i + 1 : j[best] + 1][::-1].copy()
        if (way == before).all():
            break
    return way
