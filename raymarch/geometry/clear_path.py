"""Camera paths that keep out of matter: by other cameras on the way, or farther back."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raymarch.geometry.alignment import meeting_of_axes
from raymarch.geometry.camera import Camera
from raymarch.geometry.camera_path import farthest_points, path_through

Matter = Callable[[np.ndarray], np.ndarray]
"""Whether there is matter at points (n, 3) of the world, as (n,) bool."""

MAX_NODES = 200  # cameras that a way may lead by
NEIGHBOURS = 12  # of a camera, to which a way may lead
POINTS_A_LINE = 24  # points of a straight line that are looked at
MATTER_COST = 50.0  # times as long is a way through matter
RETREAT_STEPS = 24  # of going back, each farther by a quarter
BLEND_FRACTION = 1 / 10  # of the path, over which going back begins and ends


@dataclass(frozen=True)
class ClearPath:
    """Path of cameras, and what keeps it out of matter.

    Attributes:
        cameras: the frames.
        inside: how many frames of the plain path were in matter.
        by: how many cameras it goes by in addition.
        back: how many frames stand farther back than the path does.
        left: how many frames are in matter still.
    """

    cameras: list[Camera]
    inside: int = 0
    by: int = 0
    back: int = 0
    left: int = 0


def clear_path(cameras: Sequence[Camera], order: Sequence[int], count: int, matter: Matter) -> ClearPath:
    """Path of `count` frames through those of the cameras that `order` says, as `path_through`, out of matter.

    Where the plain path has frames in matter, it goes by other cameras, between which the straight lines are free, and
    turns about what they look at or goes from place to place; frames that are in matter then stand back, along their
    own axes, as far as is needed.

    Example:
        >>> ring = [Camera.look_at((4, 0, 0)), Camera.look_at((0, 4, 0)), Camera.look_at((-4, 0, 0))]
        >>> clear_path(ring, [0, 1, 2], 9, lambda points: np.linalg.norm(points, axis=1) < 1).inside
        0
    """
    keys = [cameras[i] for i in order]
    plain = path_through(keys, count)
    inside = int(matter(_places(plain)).sum())
    if not inside:
        return ClearPath(plain)
    longer = _route(cameras, order, matter)
    by = [cameras[i] for i in longer]
    found = [ClearPath(plain, inside, left=inside)]
    for more, frames in (
        (len(longer) - len(order), path_through(by, count)),
        (len(longer) - len(order), path_through(by, count, about=_places(by))),
        (0, path_through(keys, count, about=_places(keys))),
    ):
        left = int(matter(_places(frames)).sum())
        found.append(ClearPath(frames, inside, more, left=left))
        if not left:
            return found[-1]
    best = min(found, key=lambda one: one.left)
    return _step_back(best, matter)


def _places(cameras: Sequence[Camera]) -> np.ndarray:
    return np.array([camera.position for camera in cameras])


def _route(cameras: Sequence[Camera], order: Sequence[int], matter: Matter) -> list[int]:
    """Order with other cameras between those from one to the next of which a straight line leads through matter."""
    places = _places(cameras)
    nodes = sorted({*order, *farthest_points(places, MAX_NODES)})
    at = places[nodes]
    apart = np.linalg.norm(at[:, None] - at[None], axis=-1)
    links = {(i, int(j)) for i in range(len(nodes)) for j in np.argsort(apart[i])[1 : NEIGHBOURS + 1]}
    index = {node: i for i, node in enumerate(nodes)}
    links |= {(index[a], index[b]) for a, b in itertools.pairwise(order)}
    pairs = np.array(sorted({(min(link), max(link)) for link in links}))
    t = np.linspace(0, 1, POINTS_A_LINE)[:, None]
    through = np.array([matter(at[a] + t * (at[b] - at[a])).mean() for a, b in pairs])
    costs: dict[int, list[tuple[int, float]]] = {i: [] for i in range(len(nodes))}
    for (a, b), share in zip(pairs.tolist(), through, strict=True):
        cost = float(apart[a, b] * (1 + MATTER_COST * share))
        costs[a].append((b, cost))
        costs[b].append((a, cost))
    route = [order[0]]
    for a, b in itertools.pairwise(order):
        route += [nodes[i] for i in _cheapest_route(costs, index[a], index[b])]
    return route


def _cheapest_route(costs: dict[int, list[tuple[int, float]]], start: int, end: int) -> list[int]:
    """Nodes of the cheapest way from one to another (Dijkstra 1959), without the first."""
    best, before = {start: 0.0}, dict[int, int]()
    ahead = [(0.0, start)]
    while ahead:
        cost, node = heapq.heappop(ahead)
        if node == end:
            break
        for other, more in costs[node]:
            if cost + more < best.get(other, np.inf):
                best[other], before[other] = cost + more, node
                heapq.heappush(ahead, (cost + more, other))
    way = [end]
    while way[-1] != start and way[-1] in before:
        way.append(before[way[-1]])
    return way[::-1][1:] if way[-1] == start else [end]


def _step_back(path: ClearPath, matter: Matter) -> ClearPath:
    """Path whose frames in matter stand back, and their neighbours less and less; as it was where that is no better."""
    places = _places(path.cameras)
    axes = np.array([camera.world_from_camera[:3, 2] for camera in path.cameras])  # backward
    spread = float(np.linalg.norm(places - places.mean(0), axis=1).max())
    meeting = meeting_of_axes(path.cameras)
    ahead = spread if meeting is None else float(np.median(np.linalg.norm(places - meeting, axis=1)))
    steps = np.append(0.0, max(ahead, spread, 1e-9) * 0.02 * 1.25 ** np.arange(RETREAT_STEPS))
    need = np.zeros(len(places))
    for i in np.flatnonzero(matter(places)):
        free = np.flatnonzero(~matter(places[i] + steps[:, None] * axes[i]))
        need[i] = steps[free[0]] if len(free) else 0.0
    width = max(round(BLEND_FRACTION * len(places)), 1)
    offsets = np.arange(-width, width + 1)
    window = 0.5 + 0.5 * np.cos(np.pi * offsets / (width + 1))
    padded = np.pad(need, width)
    back = np.max([padded[width + o : width + o + len(need)] * w for o, w in zip(offsets, window, strict=True)], axis=0)
    moved = places + back[:, None] * axes
    left = int(matter(moved).sum())
    if left >= path.left:
        return path
    frames = []
    for camera, place in zip(path.cameras, moved, strict=True):
        pose = camera.world_from_camera.copy()
        pose[:3, 3] = place
        frames.append(replace(camera, world_from_camera=pose))
    return replace(path, cameras=frames, back=int((back > 0).sum()), left=left)
