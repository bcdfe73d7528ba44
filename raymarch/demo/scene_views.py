"""Views of the demonstration's scene: sunlight with soft shadows and a sky, in NumPy; no volume and no raymarching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from raymarch.demo.solids import Solid
from raymarch.geometry.camera import Camera
from raymarch.system.resources import workers
from raymarch.views.display_values import eight_bit
from raymarch.views.views import Views

SUN_DIRECTION = np.array((0.52, -0.42, 0.75)) / np.linalg.norm((0.52, -0.42, 0.75))
SUN_COLOUR = np.array((2.5, 2.3, 1.95))
SUN_RADIUS = 0.02  # radius of the sun, as a part of its distance
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
RAYS_A_PIXEL_SIDE = 2  # rays a side of a pixel
CAMERA_DISTANCE, CAMERA_FOV = 3.3, 0.56  # world unit, radian
CAMERA_TARGET = np.array((0.0, 0.0, -0.08))


def cameras(count: int, size: int, held_out: bool) -> list[Camera]:
    """Cameras on a golden-angle spiral over a band of the sphere. Held-out ones start and turn otherwise."""
    k = np.arange(count)
    sine = -0.10 + 1.0 * (k + 0.5) / count
    azimuth = (1.1 - GOLDEN_ANGLE * k) if held_out else GOLDEN_ANGLE * k
    away = CAMERA_DISTANCE * np.stack(
        [np.sqrt(1 - sine**2) * np.cos(azimuth), np.sqrt(1 - sine**2) * np.sin(azimuth), sine], 1
    )
    return [Camera.look_at(CAMERA_TARGET + off, CAMERA_TARGET, fov=CAMERA_FOV, width=size, height=size) for off in away]


def views_of(
    solids: Sequence[Solid], cameras: Sequence[Camera], done: Callable[[], None], names: str = "r_{:03d}"
) -> Views:
    """Views (RGBA) of solids by cameras, on all cores; `done` is called after each."""

    def one(i: int) -> np.ndarray:
        image = picture(solids, cameras[i], seed=i)
        done()
        return image

    with ThreadPoolExecutor(workers()) as pool:  # NumPy lets go of Python's lock
        images = np.stack(list(pool.map(one, range(len(cameras)))))
    return Views(cameras, images, [names.format(i) for i in range(len(cameras))], source="raymarch demo")


def picture(solids: Sequence[Solid], camera: Camera, seed: int = 0) -> np.ndarray:
    """Image (height, width, 4) uint8 of solids, straight alpha: the mean of ACROSS^2 rays a pixel.

    Example:
        >>> from raymarch.demo.island import island
        >>> picture(island(), cameras(1, 8, held_out=False)[0]).shape
        (8, 8, 4)
    """
    fine = camera.scaled(RAYS_A_PIXEL_SIDE)
    rays = fine.rays()
    o, d = rays.origin, rays.direction / np.linalg.norm(rays.direction, axis=1, keepdims=True)
    depth, owner = _first_hits(solids, o, d, fine)
    rgba = np.zeros((len(d), 4))
    met = np.flatnonzero(owner >= 0)
    points = o[met] + depth[met, None] * d[met]
    rgba[met, :3] = display(_light(solids, points, d[met], owner[met], np.random.default_rng(seed)))
    rgba[met, 3] = 1
    mean = rgba.reshape(camera.height, RAYS_A_PIXEL_SIDE, camera.width, RAYS_A_PIXEL_SIDE, 4).mean((1, 3))
    mean[..., :3] /= np.maximum(mean[..., 3:], 1e-9)
    return eight_bit(mean)


def display(linear: np.ndarray) -> np.ndarray:
    """Display values of linear light: a shoulder, so that nothing clips, then the power 1 / 2.2."""
    return (1 - np.exp(-1.25 * linear)) ** (1 / 2.2)


def sky(directions: np.ndarray) -> np.ndarray:
    """Linear light (n, 3) of the sky in directions (n, 3): from the ground's over the horizon's to the zenith's."""
    up = directions[:, 2:]
    ground, horizon, zenith = np.array([(0.16, 0.14, 0.11), (0.72, 0.78, 0.85), (0.24, 0.42, 0.80)])
    above = horizon + (zenith - horizon) * np.sqrt(np.clip(up, 0, 1))
    return ground + (above - ground) / (1 + np.exp(-8 * up))


def _first_hits(solids: Sequence[Solid], o: np.ndarray, d: np.ndarray, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Distance (n,) and number (n,) of the first solid on a camera's rays; -1 where there is none."""
    depth, owner = np.full(len(d), np.inf), np.full(len(d), -1)
    index = np.arange(len(d)).reshape(camera.height, camera.width)
    for k, solid in enumerate(solids):
        (at,), (ahead,) = camera.project(solid.centre[None])
        wide = 1.1 * camera.focal[0] * solid.reach / max(ahead - solid.reach, 0.1) + 1
        low, high = np.floor(at - wide).astype(int).clip(0), np.ceil(at + wide).astype(int).clip(0)
        some = index[low[1] : high[1], low[0] : high[0]].ravel()
        if len(some):
            t = solid.hit(o[some], d[some])
            nearer = t < depth[some]
            depth[some[nearer]], owner[some[nearer]] = t[nearer], k
    return depth, owner


def _light(
    solids: Sequence[Solid], points: np.ndarray, views: np.ndarray, owner: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Linear light (n, 3) that points send back along rays."""
    normals, colour, mirror = np.empty_like(points), np.empty_like(points), np.zeros(len(points))
    for k in np.unique(owner):
        mine = owner == k
        normals[mine] = solids[k].normal(points[mine])
        shade = solids[k].paint(solids[k].local(points[mine]))
        colour[mine], mirror[mine] = shade.colour, shade.mirror
    lit = np.clip(normals @ SUN_DIRECTION, 0, 1)
    lit *= ~_in_shadow(solids, points + 2e-3 * normals, lit > 0, rng)
    close = 1 - 0.5 * np.exp(-np.maximum(points[:, 2] + 0.22, 0) / 0.05) * (np.abs(normals[:, 2]) < 0.5)
    ambient = 0.75 * sky(normals) * close[:, None]
    facing = np.clip(-(normals * views).sum(1), 0, 1)
    away = views + 2 * facing[:, None] * normals
    fresnel = (mirror * (0.06 + 0.94 * (1 - facing) ** 4))[:, None]
    return colour * (lit[:, None] * SUN_COLOUR + ambient) * (1 - fresnel) + fresnel * sky(away)


def _in_shadow(solids: Sequence[Solid], points: np.ndarray, asked: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Whether a solid lies between points (n, 3) and a point on the sun's disc, for the `asked` points."""
    some = np.flatnonzero(asked)
    ways = SUN_DIRECTION + SUN_RADIUS * rng.uniform(-1, 1, (len(some), 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    dark = np.zeros(len(points), bool)
    for solid in solids:
        to = solid.centre - points[some]
        along = to @ SUN_DIRECTION
        off = (to * to).sum(1) - along * along
        near = (off < (solid.reach + SUN_RADIUS * np.abs(along)) ** 2) & (along > -solid.reach) & ~dark[some]
        if near.any():
            which = np.flatnonzero(near)
            dark[some[which]] = np.isfinite(solid.hit(points[some[which]], ways[which]))
    return dark
