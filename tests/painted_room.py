"""Images of a corner of a room with patterned walls, and of a patterned ball, by formulas: sets to be diagnosed."""

from __future__ import annotations

import numpy as np

import raymarch as rm

WIDTH, HEIGHT = 120, 96
PATTERN = np.random.default_rng(3).uniform(0.08, 0.92, (3, 64, 64, 3))


def pattern(wall: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Colours (..., 3) of a wall at places (a, b), by lines between those of a lattice."""
    i, j = np.floor(a).astype(int), np.floor(b).astype(int)
    s, t = (a - i)[..., None], (b - j)[..., None]
    at = [PATTERN[wall, (i + k) % 64, (j + l) % 64] for k in (0, 1) for l in (0, 1)]
    return (at[0] * (1 - t) + at[1] * t) * (1 - s) + (at[2] * (1 - t) + at[3] * t) * s


def room_image(camera: rm.Camera) -> np.ndarray:
    """Image (height, width, 3) uint8 of the walls x = 0, y = 0 and z = 0, seen from where all are positive."""
    rays = camera.rays()
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(rays.direction < 0, -rays.origin / rays.direction, np.inf)
    wall = far.argmin(1)
    place = rays.origin + far.min(1)[:, None] * rays.direction
    colour = np.zeros((len(wall), 3))
    for k, (a, b) in enumerate([(1, 2), (0, 2), (0, 1)]):
        colour[wall == k] = pattern(k, 6 * place[wall == k, a], 6 * place[wall == k, b])
    return np.rint(255 * colour.reshape(camera.height, camera.width, 3)).astype(np.uint8)


def room(count: int = 10, lens: rm.Lens | None = None) -> rm.Views:
    """Views of the corner from an arc before it, each also a little up or down."""
    cameras = []
    for i, angle in enumerate(np.linspace(0.35, 1.2, count)):
        eye = 4 * np.array([np.cos(angle), np.sin(angle), 0.5 + 0.25 * np.sin(2.5 * i)])
        camera = rm.Camera.look_at(eye, (0.6, 0.6, 0.6), fov=0.9, width=WIDTH, height=HEIGHT)
        if lens is not None:
            camera = rm.Camera(camera.world_from_camera, camera.focal, camera.principal, WIDTH, HEIGHT, lens=lens)
        cameras.append(camera)
    return rm.Views(cameras, np.stack([room_image(camera) for camera in cameras]))


def ball(count: int = 10) -> rm.Views:
    """Views of a patterned ball of radius 1 with straight alpha, smooth at its rim."""
    like = rm.Camera.look_at((4, 0, 0), fov=0.7, width=3 * 64, height=3 * 64)
    cameras = rm.orbit((0, 0, 0), 4.0, count, elevation=20, like=like)
    images = []
    for camera in cameras:
        rays = camera.rays()
        middle = -(rays.origin * rays.direction).sum(1)
        inside = 1 - (rays.origin**2).sum(1) + middle**2
        place = rays.origin + (middle - np.sqrt(np.maximum(inside, 0)))[:, None] * rays.direction
        colour = pattern(0, 9 * np.arctan2(place[:, 1], place[:, 0]), 9 * place[:, 2]) * (inside > 0)[:, None]
        fine = np.concatenate([colour, (inside > 0)[:, None]], 1).reshape(64, 3, 64, 3, 4).mean((1, 3))
        fine[..., :3] /= np.maximum(fine[..., 3:], 1e-6)
        images.append(np.rint(255 * fine).astype(np.uint8))
    return rm.Views([camera.scaled(1 / 3) for camera in cameras], np.stack(images))
