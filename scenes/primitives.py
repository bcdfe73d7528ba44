"""Solids that a ray meets in closed form: sphere, box, capped cone or cylinder, and capsule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

EPSILON = 1e-5


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i->...", a, b)


@dataclass
class Surface:
    """What a material says of the points it is asked about: linear albedo, and one gloss for all of them."""

    albedo: np.ndarray
    specular: np.ndarray | float = 0.03  # reflectance at normal incidence
    exponent: float = 24.0
    mirror: np.ndarray | float = 0.0  # how much of the sky's reflection shows


Material = Callable[[np.ndarray], Surface]


@dataclass
class Primitive:
    """A convex solid in its own frame: `axes` holds the local axes as rows, so local = axes @ (world - centre)."""

    material: Material
    centre: np.ndarray
    axes: np.ndarray = field(default_factory=lambda: np.eye(3))

    def local(self, points: np.ndarray) -> np.ndarray:
        return (points - self.centre) @ self.axes.T

    def reach(self) -> float:
        """Radius of the bounding sphere about the centre."""
        raise NotImplementedError

    def hit(self, o: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Distance to the first surface ahead along local rays, inf where there is none."""
        raise NotImplementedError

    def normal(self, p: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def distance(self, p: np.ndarray) -> np.ndarray:
        """Signed distance, or a lower bound of it outside; only the ambient occlusion reads it."""
        raise NotImplementedError


def nearest(candidates: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The least t that lies ahead among (t, valid) pairs."""
    best = np.inf
    for t, valid in candidates:
        best = np.minimum(best, np.where(valid & (t > EPSILON), t, np.inf))
    return np.asarray(best)


@dataclass
class Sphere(Primitive):
    radius: float = 1.0

    def reach(self) -> float:
        return self.radius

    def hit(self, o: np.ndarray, d: np.ndarray) -> np.ndarray:
        b = dot(o, d)
        inside = b * b - dot(o, o) + self.radius**2
        root = np.sqrt(np.maximum(inside, 0.0))
        return nearest([(-b - root, inside > 0), (-b + root, inside > 0)])

    def normal(self, p: np.ndarray) -> np.ndarray:
        return p

    def distance(self, p: np.ndarray) -> np.ndarray:
        return np.linalg.norm(p, axis=-1) - self.radius


@dataclass
class Box(Primitive):
    half: np.ndarray = field(default_factory=lambda: np.ones(3))

    def reach(self) -> float:
        return float(np.linalg.norm(self.half))

    def hit(self, o: np.ndarray, d: np.ndarray) -> np.ndarray:
        inverse = 1.0 / np.where(np.abs(d) < 1e-12, 1e-12, d)
        middle, spread = -o * inverse, np.abs(inverse) * self.half
        enter, leave = np.moveaxis(middle - spread, -1, 0), np.moveaxis(middle + spread, -1, 0)
        near = np.maximum(np.maximum(enter[0], enter[1]), enter[2])
        far = np.minimum(np.minimum(leave[0], leave[1]), leave[2])
        return nearest([(near, near < far), (far, near < far)])

    def normal(self, p: np.ndarray) -> np.ndarray:
        ratio = p / self.half
        face = np.abs(ratio).argmax(-1)
        return np.sign(ratio) * (np.arange(3) == face[..., None])

    def distance(self, p: np.ndarray) -> np.ndarray:
        q = np.abs(p) - self.half
        return np.linalg.norm(np.maximum(q, 0.0), axis=-1) + np.minimum(q.max(-1), 0.0)


@dataclass
class Frustum(Primitive):
    """A capped cylinder or cone about local z: radius `bottom` at -half, `top` at +half."""

    bottom: float = 1.0
    top: float = 1.0
    half: float = 1.0

    def reach(self) -> float:
        return float(np.hypot(max(self.bottom, self.top), self.half))

    def hit(self, o: np.ndarray, d: np.ndarray) -> np.ndarray:
        slope = (self.top - self.bottom) / (2.0 * self.half)
        middle = 0.5 * (self.top + self.bottom)
        (ox, oy, oz), (dx, dy, dz) = np.moveaxis(o, -1, 0), np.moveaxis(d, -1, 0)
        radius, growth = middle + slope * oz, slope * dz
        a = dx * dx + dy * dy - growth * growth
        b = ox * dx + oy * dy - growth * radius
        c = ox * ox + oy * oy - radius * radius
        inside = b * b - a * c
        root = np.sqrt(np.maximum(inside, 0.0))
        a = np.where(np.abs(a) < 1e-12, 1e-12, a)
        dz = np.where(np.abs(dz) < 1e-12, 1e-12, dz)
        found = []
        for t in ((-b - root) / a, (-b + root) / a):
            found.append((t, (inside > 0) & (np.abs(oz + t * dz) <= self.half) & (radius + t * growth >= 0)))
        for end, rim in ((-self.half, self.bottom), (self.half, self.top)):
            t = (end - oz) / dz
            found.append((t, np.square(ox + t * dx) + np.square(oy + t * dy) <= rim * rim))
        return nearest(found)

    def _planes(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = (self.top - self.bottom) / (2.0 * self.half)
        side = np.hypot(p[..., 0], p[..., 1]) - 0.5 * (self.top + self.bottom) - slope * p[..., 2]
        return side / np.hypot(1.0, slope), np.abs(p[..., 2]) - self.half

    def normal(self, p: np.ndarray) -> np.ndarray:
        slope = (self.top - self.bottom) / (2.0 * self.half)
        side, end = self._planes(p)
        rho = np.maximum(np.hypot(p[..., 0], p[..., 1]), 1e-9)
        around = np.stack([p[..., 0] / rho, p[..., 1] / rho, np.full_like(rho, -slope)], axis=-1)
        upright = np.sign(p[..., 2:]) * np.array([0.0, 0.0, 1.0])
        return np.where((np.abs(side) < np.abs(end))[..., None], around, upright)

    def distance(self, p: np.ndarray) -> np.ndarray:
        return np.maximum(*self._planes(p))


@dataclass
class Capsule(Primitive):
    """A round rod about local z, its ends at -half and +half."""

    radius: float = 1.0
    half: float = 1.0

    def reach(self) -> float:
        return self.radius + self.half

    def _from_axis(self, p: np.ndarray) -> np.ndarray:
        along = p[..., 2] - np.clip(p[..., 2], -self.half, self.half)
        return np.concatenate([p[..., :2], along[..., None]], axis=-1)

    def hit(self, o: np.ndarray, d: np.ndarray) -> np.ndarray:
        a = np.maximum(dot(d[..., :2], d[..., :2]), 1e-12)
        b = dot(o[..., :2], d[..., :2])
        inside = b * b - a * (dot(o[..., :2], o[..., :2]) - self.radius**2)
        t = (-b - np.sqrt(np.maximum(inside, 0.0))) / a
        z = o[..., 2] + t * d[..., 2]
        found = [(t, (inside > 0) & (np.abs(z) <= self.half))]
        for end in (-self.half, self.half):
            oz = o[..., 2] - end
            b = dot(o[..., :2], d[..., :2]) + oz * d[..., 2]
            inside = b * b - dot(o[..., :2], o[..., :2]) - oz * oz + self.radius**2
            found.append((-b - np.sqrt(np.maximum(inside, 0.0)), inside > 0))
        return nearest(found)

    def normal(self, p: np.ndarray) -> np.ndarray:
        return self._from_axis(p)

    def distance(self, p: np.ndarray) -> np.ndarray:
        return np.linalg.norm(self._from_axis(p), axis=-1) - self.radius
