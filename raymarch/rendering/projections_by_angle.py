"""Projections and back-projections of a projector by many workers, each with some of the angles.

The views are dealt into `GROUPS` groups, however many workers there are. A back-projection is the sum of those of the
groups, added in pairs, the pairs in pairs, and so on; a worker with two or four neighbouring groups adds these itself.
So the order of the sum, and with it each bit, does not depend on who made which part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.tasks.executors import Crew
from raymarch.tasks.last_made import LastMade

GROUPS = 8  # a power of two


class Projecting(Protocol):
    """What a worker projects with: an `rm.Projector` of its own process."""

    def project(self, values: np.ndarray, views: Sequence[int]) -> np.ndarray: ...

    def back(self, images: np.ndarray, views: Sequence[int]) -> np.ndarray: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Geometry:
    """What a worker makes its projector of, and the class that does."""

    make: Callable[..., Projecting]
    shape: tuple[int, ...]
    world_from_index: np.ndarray
    cameras: tuple[Camera, ...]
    quadrature: str

    def projector(self) -> Projecting:
        """A projector of all views in this process."""
        return self.make(self.shape, self.world_from_index, self.cameras, self.quadrature)


@dataclass(frozen=True)
class Part:
    """A worker's part of a pass: values (x, y, z) to project, or images (view, height, width) of its views to project
    back, which are in neighbouring groups."""

    geometry: Geometry
    numbers: np.ndarray
    groups: tuple[tuple[int, ...], ...]  # views of each


_last_projector: LastMade[Projecting] = LastMade()


def project_part(part: Part) -> np.ndarray:
    """Line integrals (view, height, width) of a part's views, group by group."""
    views = [view for group in part.groups for view in group]
    return _last_projector.of(part.geometry, part.geometry.projector).project(part.numbers, views)


def back_part(part: Part) -> np.ndarray | None:
    """Back-projection of a part, its groups added in pairs; None of no views."""
    projector = _last_projector.of(part.geometry, part.geometry.projector)
    ends = np.cumsum([0, *map(len, part.groups)])
    return add_in_pairs(
        [
            projector.back(part.numbers[first:last], group) if group else None
            for first, last, group in zip(ends, ends[1:], part.groups, strict=False)
        ]
    )


def add_in_pairs(arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Sum of arrays whose count is a power of two: of neighbours first, then of their sums; None counts as nothing.

    Example:
        >>> add_in_pairs([np.array([1.0]), np.array([2.0]), None, np.array([4.0])])
        array([7.])
    """
    while len(arrays) > 1:
        arrays = [_sum(one, other) for one, other in zip(arrays[::2], arrays[1::2], strict=True)]
    return arrays[0]


def _sum(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


@dataclass(frozen=True)
class Workers:
    """The passes of a geometry by a crew."""

    geometry: Geometry
    crew: Crew

    def project(self, values: np.ndarray, views: Sequence[int]) -> np.ndarray:
        """Line integrals (view, height, width) of values in some views, as `Projector.project`."""
        places = [np.arange(len(views))[g::GROUPS] for g in range(GROUPS)]
        parts = self._parts(places, views, lambda _: values)
        results = list(self.crew.results(project_part, parts))
        out = np.empty((len(views), *results[0].shape[1:]), results[0].dtype)
        out[np.concatenate(places)] = np.concatenate(results)
        return out

    def back(self, images: np.ndarray, views: Sequence[int]) -> np.ndarray:
        """Back-projection (x, y, z) of images in some views, as `Projector.back`."""
        places = [np.arange(len(views))[g::GROUPS] for g in range(GROUPS)]
        parts = self._parts(places, views, lambda mine: images[mine])
        total = add_in_pairs(list(self.crew.results(back_part, parts)))
        return np.zeros(self.geometry.shape, images.dtype) if total is None else total

    def _parts(
        self, places: list[np.ndarray], views: Sequence[int], numbers_of: Callable[[np.ndarray], np.ndarray]
    ) -> list[Part]:
        """As many parts of neighbouring groups as there are workers, or the next power of two."""
        count = 1
        while count < min(self.crew.count, GROUPS):
            count *= 2
        each = GROUPS // count
        parts = []
        for first in range(0, GROUPS, each):
            mine = places[first : first + each]
            groups = tuple(tuple(views[i] for i in group) for group in mine)
            parts.append(Part(self.geometry, numbers_of(np.concatenate(mine)), groups))
        return parts
