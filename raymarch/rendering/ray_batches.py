"""Batches of rays: those of a camera's pixels, or given ones, put into a buffer a run at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import taichi as ti

from raymarch.device.lens_vector import lens_vector
from raymarch.device.memory import BYTES_A_RAY, MAX_CELLS, available_bytes
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.pixel_order import pixels_in_tiles
from raymarch.geometry.rays import Rays
from raymarch.kernels.rays.camera import rays_of_pixels

Fill = Callable[[int, int], np.ndarray]  # puts `count` rays from `first` on into a buffer, and says which they are


def rays_of_camera(buffer: RayBuffer, camera: Camera) -> Fill:
    """Batches of a camera's rays, pixels in tiles."""
    pose, lens = ti.Matrix(camera.world_from_camera.tolist()), ti.Vector(lens_vector(camera))

    def fill(first: int, count: int) -> np.ndarray:
        pixels = pixels_in_tiles(first, count, camera.width, camera.height)
        rays_of_pixels(buffer.fields, pose, lens, camera.width, pixels, camera.lens.parallel)
        return pixels

    return fill


def rays_as_given(buffer: RayBuffer, rays: Rays) -> Fill:
    """Batches of rays in their order."""

    def fill(first: int, count: int) -> np.ndarray:
        buffer.upload(Rays(rays.origin[first : first + count], rays.direction[first : first + count]))
        return np.arange(first, first + count, dtype=np.int32)

    return fill


def require_room(rays: int) -> None:
    """RaymarchError where so many rays, what is seen of them and an image made of it do not fit."""
    needed, free = BYTES_A_RAY * rays, available_bytes()
    if needed > 0.9 * free or rays > MAX_CELLS:
        room = f"{free:,} are free and {MAX_CELLS:,} rays are the most"
        raise RaymarchError(f"an image of {rays:,} rays takes {needed:,} bytes but {room}; take a smaller one")
