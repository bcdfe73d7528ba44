"""A small surface ray tracer in NumPy: solids met in closed form, an area light, ambient occlusion and sky reflection.

It shares nothing with the volume raymarcher whose test data it makes: every surface is met in closed form. Rays go tile
by tile; a tile's pixels see only the primitives whose bounding spheres its cone of rays (or its shadow rays) can touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import camera_directions
from primitives import Primitive, dot

TILE = 16
SHADOW_RAYS = 2  # per side, for each subsample
GRID, GRID_HALF = 96, 1.3
OCCLUSION_REACH = np.array([0.04, 0.09, 0.18, 0.32])
OCCLUSION_WEIGHT = np.array([0.16, 0.18, 0.19, 0.20])


@dataclass
class AreaLight:
    """A square light of side `side` that faces the origin."""

    centre: np.ndarray
    side: float
    radiance: np.ndarray

    def points(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        forward = self.centre / np.linalg.norm(self.centre)
        across = np.cross([0.0, 0.0, 1.0], forward)
        across /= np.linalg.norm(across)
        return self.centre + self.side * (
            (u - 0.5)[..., None] * across + (v - 0.5)[..., None] * np.cross(forward, across)
        )


def sky(directions: np.ndarray) -> np.ndarray:
    """Linear radiance of the surroundings, for ambient light and for reflections: ground, horizon, zenith."""
    z = directions[..., 2:]
    ground, horizon, zenith = np.array([[0.20, 0.17, 0.13], [0.85, 0.87, 0.90], [0.28, 0.46, 0.85]])
    above = horizon + (zenith - horizon) * np.sqrt(np.clip(z, 0.0, 1.0))
    return ground + (above - ground) / (1.0 + np.exp(-9.0 * z))


def srgb(linear: np.ndarray) -> np.ndarray:
    """Display values of linear ones (IEC 61966-2-1)."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-9) ** (1.0 / 2.4) - 0.055)


def display(linear: np.ndarray) -> np.ndarray:
    """Linear radiance to display values: a soft shoulder, then the sRGB curve, kept clear of 0 and of 1."""
    return 0.02 + 0.96 * srgb(-np.expm1(-1.15 * linear))


class Scene:
    def __init__(self, primitives: list[Primitive], light: AreaLight) -> None:
        self.primitives, self.light = primitives, light
        self.centres = np.stack([primitive.centre for primitive in primitives])
        self.reaches = np.array([primitive.reach() for primitive in primitives])
        self.grid = self._distance_grid()

    def _distance_grid(self) -> np.ndarray:
        axis = np.linspace(-GRID_HALF, GRID_HALF, GRID)
        grid = np.full((GRID, GRID, GRID), np.inf, np.float32)
        for i, x in enumerate(axis):
            points = np.stack(np.broadcast_arrays(x, axis[:, None], axis[None, :]), axis=-1).reshape(-1, 3)
            for primitive in self.primitives:
                # Occlusion reads no farther than its longest reach, so a primitive out of a slab's reach is left out.
                if abs(x - primitive.centre[0]) < primitive.reach() + 0.45:
                    distance = primitive.distance(primitive.local(points))
                    np.minimum(grid[i], distance.reshape(GRID, GRID), out=grid[i], casting="same_kind")
        return np.minimum(grid, 0.45)

    def _distance(self, points: np.ndarray) -> np.ndarray:
        """Trilinear reading of the distance grid."""
        place = np.clip((points + GRID_HALF) * ((GRID - 1) / (2.0 * GRID_HALF)), 0.0, GRID - 1.001)
        low = place.astype(np.intp)
        (x, y, z), flat = np.moveaxis(place - low, -1, 0), self.grid.ravel()
        first = (low[..., 0] * GRID + low[..., 1]) * GRID + low[..., 2]

        def along_z(start: np.ndarray) -> np.ndarray:
            return flat[start] * (1.0 - z) + flat[start + 1] * z

        left = along_z(first) * (1.0 - y) + along_z(first + GRID) * y
        right = along_z(first + GRID * GRID) * (1.0 - y) + along_z(first + GRID * GRID + GRID) * y
        return left * (1.0 - x) + right * x

    def openness(self, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """1 where nothing is near above the surface, down to 0.2 in a corner: occlusion from distances ahead."""
        probes = points + OCCLUSION_REACH[:, None, None] * normals
        shortfall = np.clip(1.0 - self._distance(probes) / OCCLUSION_REACH[:, None], 0.0, 1.0)
        return np.clip(1.0 - 1.4 * np.tensordot(OCCLUSION_WEIGHT, shortfall, axes=1), 0.2, 1.0)

    def visibility(self, points: np.ndarray, strata: np.ndarray, sides: int, rng: np.random.Generator) -> np.ndarray:
        """The share of the light that points (N, 3) see, by rays to the strata (N, M) of its square."""
        jitter = rng.random((2, *strata.shape))
        ends = self.light.points((strata % sides + jitter[0]) / sides, (strata // sides + jitter[1]) / sides)
        offsets = ends - points[:, None]
        lengths = np.sqrt(dot(offsets, offsets))
        directions = offsets / lengths[..., None]
        middle = 0.5 * (points.min(0) + points.max(0))
        spread = np.linalg.norm(points - middle, axis=1).max()
        towards = self.light.centre - middle
        along = np.clip((self.centres - middle) @ towards / (towards @ towards), 0.0, 1.0)
        gap = np.linalg.norm(self.centres - middle - along[:, None] * towards, axis=1)
        blocked = np.zeros(lengths.shape, bool)
        for k in np.flatnonzero(gap < self.reaches + spread + 0.75 * self.light.side * along):
            primitive = self.primitives[k]
            blocked |= primitive.hit(primitive.local(points[:, None]), directions @ primitive.axes.T) < lengths
        return 1.0 - blocked.mean(axis=1)

    def shade(
        self, primitive: Primitive, points: np.ndarray, normals: np.ndarray, views: np.ndarray, lit: np.ndarray
    ) -> np.ndarray:
        """Linear radiance towards the camera: diffuse and Blinn-Phong light, ambient sky, and its reflection."""
        surface = primitive.material(primitive.local(points))
        towards = self.light.centre - points
        towards /= np.linalg.norm(towards, axis=1, keepdims=True)
        halfway = towards - views
        halfway /= np.linalg.norm(halfway, axis=1, keepdims=True)
        facing = np.clip((normals * towards).sum(1), 0.0, 1.0)
        facing_view = np.clip(-(normals * views).sum(1), 0.0, 1.0)[:, None]
        key = (facing * lit)[:, None] * self.light.radiance
        ambient = 0.62 * sky(normals) * self.openness(points, normals)[:, None]
        fresnel = surface.specular + (1.0 - surface.specular) * (1.0 - facing_view) ** 5
        lobe = np.clip((normals * halfway).sum(1), 0.0, 1.0)[:, None] ** surface.exponent
        lobe = lobe * ((surface.exponent + 8.0) / 8.0)
        reflected = sky(views + 2.0 * facing_view * normals)
        return surface.albedo * (key + ambient) + surface.specular * lobe * key + surface.mirror * fresnel * reflected

    def render(
        self, world_from_camera: np.ndarray, camera_angle_x: float, resolution: int, samples: int, seed: list[int]
    ) -> np.ndarray:
        """Straight-alpha display RGBA (H, W, 4): samples^2 jittered rays a pixel, box filter, premultiplied mean."""
        image = np.zeros((resolution, resolution, 4))
        for top in range(0, resolution, TILE):
            for left in range(0, resolution, TILE):
                rows = np.arange(top, min(top + TILE, resolution))
                columns = np.arange(left, min(left + TILE, resolution))
                rng = np.random.default_rng([*seed, top, left])
                grid = np.meshgrid(rows, columns, np.arange(samples), np.arange(samples), indexing="ij")
                y, x = grid[0] + (grid[2] + rng.random(grid[0].shape)) / samples, grid[1].astype(float)
                x += (grid[3] + rng.random(x.shape)) / samples
                directions = camera_directions(world_from_camera, camera_angle_x, resolution, x, y).reshape(-1, 3)
                colours = self._trace(world_from_camera[:3, 3], directions, samples, rng)
                part = colours.reshape(len(rows), len(columns), samples * samples, 4).mean(axis=2)
                part[..., :3] /= np.maximum(part[..., 3:], 1e-9)
                image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = part
        return image

    def _trace(self, eye: np.ndarray, directions: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Premultiplied display RGBA (N, 4) of rays from the eye, subsamples fastest."""
        colours = np.zeros((len(directions), 4))
        axis = directions.mean(0) / np.linalg.norm(directions.mean(0))
        half_angle = np.arccos(np.clip((directions @ axis).min(), -1.0, 1.0))
        offsets = self.centres - eye
        distances = np.linalg.norm(offsets, axis=1)
        angles = np.arccos(np.clip(offsets @ axis / distances, -1.0, 1.0))
        depth, winner = np.full(len(directions), np.inf), np.full(len(directions), -1)
        for k in np.flatnonzero(angles < half_angle + np.arcsin(np.minimum(self.reaches / distances, 1.0)) + 1e-6):
            primitive = self.primitives[k]
            t = primitive.hit(primitive.local(eye), directions @ primitive.axes.T)
            closer = t < depth
            depth, winner = np.where(closer, t, depth), np.where(closer, k, winner)
        met = np.flatnonzero(winner >= 0)
        if not len(met):
            return colours
        views, owners = directions[met], winner[met]
        points = eye + depth[met, None] * views
        normals = np.empty_like(points)
        for k in np.unique(owners):
            mine, primitive = owners == k, self.primitives[k]
            normals[mine] = primitive.normal(primitive.local(points[mine])) @ primitive.axes
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        sides = samples * SHADOW_RAYS
        strata = rng.permutation(sides * sides).reshape(samples * samples, -1)[met % (samples * samples)]
        lifted = points + 1e-4 * normals
        lit = np.zeros(len(met))
        turned = (normals * (self.light.centre - points)).sum(1) > 0.0
        if turned.any():
            lit[turned] = self.visibility(lifted[turned], strata[turned], sides, rng)
        for k in np.unique(owners):
            mine = owners == k
            linear = self.shade(self.primitives[k], points[mine], normals[mine], views[mine], lit[mine])
            colours[met[mine], :3] = display(linear)
        colours[met, 3] = 1.0
        return colours
