"""Solids with closed-form ray intersections, each in its own frame: ellipsoids, boxes, cones and cylinders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

MIN_HIT_DISTANCE = 1e-4  # from which on something is met: a shadow ray begins on a surface
MIN_LENGTH = 1e-12


@dataclass(frozen=True)
class Shade:
    """Surface at points: linear colour (n, 3) and the share of the sky that it mirrors (n,)."""

    colour: np.ndarray
    mirror: np.ndarray | float = 0.0


@dataclass(frozen=True, eq=False)
class Solid:
    """Solid at `centre`, of half sizes `half` (3,) along the columns of `axes` (3, 3), or the world's.

    `kind` is "ellipsoid", "box", or "cone": about the local z axis, its radius half[0] below and `top` times that
    above. `paint` gives the surface at local points.
    """

    kind: str
    centre: np.ndarray
    half: np.ndarray
    paint: Callable[[np.ndarray], Shade]
    axes: np.ndarray | None = None
    top: float = 0.0

    @property
    def reach(self) -> float:
        """Radius of a sphere about the centre that holds it."""
        if self.kind == "ellipsoid":
            return float(self.half.max())
        if self.kind == "box":
            return float(np.linalg.norm(self.half))
        return float(np.hypot(self.half[0] * max(self.top, 1), self.half[2]))

    def local(self, points: np.ndarray) -> np.ndarray:
        """Points (n, 3) of the world in the solid's frame."""
        return self._turned(points - self.centre)

    def _turned(self, vectors: np.ndarray) -> np.ndarray:
        return vectors if self.axes is None else vectors @ self.axes

    def hit(self, origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Distances (n,) along rays of the world at which they enter it, infinite where they do not."""
        o, d = self.local(origins), self._turned(directions)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            if self.kind == "box":
                return _box(o, d, self.half)
            if self.kind == "ellipsoid":
                return _sphere(o / self.half, d / self.half)
            return _cone(o, d, float(self.half[0]), self.top, float(self.half[2]))

    def normal(self, points: np.ndarray) -> np.ndarray:
        """Unit normals (n, 3) in the world at points (n, 3) of its surface."""
        p = self.local(points)
        if self.kind == "ellipsoid":
            n = p / self.half**2
        elif self.kind == "box":
            off = np.abs(p) / self.half
            n = np.sign(p) * (np.arange(3) == off.argmax(1)[:, None])
        else:
            r, high = float(self.half[0]), float(self.half[2])
            slope = r * (self.top - 1) / (2 * high)
            side = np.column_stack([p[:, :2], -slope * np.linalg.norm(p[:, :2], axis=1)])
            end = np.column_stack([np.zeros((len(p), 2)), np.sign(p[:, 2])])
            n = np.where((np.abs(p[:, 2]) > high * (1 - 1e-6))[:, None], end, side)
        n = n if self.axes is None else n @ self.axes.T
        return n / np.maximum(np.linalg.norm(n, axis=1, keepdims=True), MIN_LENGTH)


def _first_hit(*candidates: np.ndarray) -> np.ndarray:
    return np.minimum.reduce([np.where(t > MIN_HIT_DISTANCE, t, np.inf) for t in candidates])


def _sphere(o: np.ndarray, d: np.ndarray) -> np.ndarray:
    a, b, c = (d * d).sum(1), (o * d).sum(1), (o * o).sum(1) - 1
    root = np.sqrt(b * b - a * c)
    return _first_hit((-b - root) / a, (-b + root) / a)


def _box(o: np.ndarray, d: np.ndarray, half: np.ndarray) -> np.ndarray:
    inverse = 1 / np.where(np.abs(d) < MIN_LENGTH, MIN_LENGTH, d)
    middle, spread = -o * inverse, np.abs(inverse) * half
    near, far = (middle - spread).max(1), (middle + spread).min(1)
    return np.where(near < far, _first_hit(near, far), np.inf)


def _cone(o: np.ndarray, d: np.ndarray, radius: float, top: float, high: float) -> np.ndarray:
    slope, mean = radius * (top - 1) / (2 * high), radius * (top + 1) / 2
    r, dr = mean + slope * o[:, 2], slope * d[:, 2]
    a = d[:, 0] ** 2 + d[:, 1] ** 2 - dr * dr
    b = o[:, 0] * d[:, 0] + o[:, 1] * d[:, 1] - r * dr
    c = o[:, 0] ** 2 + o[:, 1] ** 2 - r * r
    root = np.sqrt(b * b - a * c)
    a = np.where(np.abs(a) < MIN_LENGTH, MIN_LENGTH, a)
    found = []
    for t in ((-b - root) / a, (-b + root) / a):
        found.append(np.where((np.abs(o[:, 2] + t * d[:, 2]) <= high) & (r + t * dr >= 0), t, np.inf))
    dz = np.where(np.abs(d[:, 2]) < MIN_LENGTH, MIN_LENGTH, d[:, 2])
    for end, rim in ((-high, radius), (high, radius * top)):
        t = (end - o[:, 2]) / dz
        across = (o[:, 0] + t * d[:, 0]) ** 2 + (o[:, 1] + t * d[:, 1]) ** 2
        found.append(np.where(across <= rim * rim, t, np.inf))
    return _first_hit(*found)
