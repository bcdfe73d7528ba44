"""Batches of rays: those of a camera's pixels, or given ones, put into a buffer a run at a time.

Pixels come in square tiles, so that neighbouring rays share what they read (memory coherence).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from raymarch import runtime
from raymarch.device.image_store import lens_vector
from raymarch.device.memory import BYTES_A_RAY, MAX_CELLS, host_bytes, make_room
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.rays import Rays
from raymarch.kernels.rays.camera import rays_of_pixels

TILE_SIDE = 32  # pixels; a power of two


def pixels_in_tiles(first: int, count: int, width: int, height: int) -> np.ndarray:
    """Pixel indices (count,) int32 in tile order, from the `first`th on; numbered row by row.

    Within a whole square they follow the Z curve (Morton 1966), in those cut off at the right and below, rows.

    Example:
        >>> pixels_in_tiles(0, 4, 64, 64).tolist()
        [0, 1, 64, 65]
    """
    band, within = np.divmod(np.arange(first, first + count), TILE_SIDE * width)
    rows = np.minimum(TILE_SIDE, height - TILE_SIDE * band)
    column, within = np.divmod(within, TILE_SIDE * rows)
    columns = np.minimum(TILE_SIDE, width - TILE_SIDE * column)
    v, u = np.divmod(within, columns)
    whole = (rows == TILE_SIDE) & (columns == TILE_SIDE)
    u, v = np.where(whole, _deinterleave(within), u), np.where(whole, _deinterleave(within >> 1), v)
    return ((TILE_SIDE * band + v) * width + TILE_SIDE * column + u).astype(np.int32)


def _deinterleave(code: np.ndarray) -> np.ndarray:
    """Bits 0, 2, 4, ... of a code, side by side: half of a Z curve's coordinates."""
    return sum((code >> k & 1 << k for k in range(TILE_SIDE.bit_length() - 1)), np.zeros_like(code))


class Fill(Protocol):
    """Puts the rays of `count` pixels from `first` on into a buffer, and says which pixels they are of."""

    def __call__(self, first: int, count: int, side: int = 1) -> np.ndarray: ...


def rays_of_camera(buffer: RayBuffer, camera: Camera, at: int = 0) -> Fill:
    """Batches of a camera's rays, pixels in tiles, `side` rays along each edge of one, from place `at` on."""
    pose, lens = ti.Matrix(camera.world_from_camera.tolist()), ti.Vector(lens_vector(camera))

    def fill(first: int, count: int, side: int = 1) -> np.ndarray:
        pixels = pixels_in_tiles(first, count, camera.width, camera.height)
        rays_of_pixels(buffer.fields, pose, lens, camera.width, pixels, side, camera.lens.special, at)
        return pixels

    return fill


def batches_of_rays(buffer: RayBuffer, rays: Rays) -> Fill:
    """Batches of rays in their order."""

    def fill(first: int, count: int, side: int = 1) -> np.ndarray:
        buffer.upload(Rays(rays.origin[first : first + count], rays.direction[first : first + count]))
        return np.arange(first, first + count, dtype=np.int32)

    return fill


def parts_of(pixels: np.ndarray, side: int) -> np.ndarray:
    """Numbers of the rays of pixels, in the order in which they lie in the buffer, each of its own.

    Example:
        >>> parts_of(np.array([5], np.int32), 2)
        array([20, 21, 22, 23], dtype=int32)
    """
    return (pixels[:, None] * side**2 + np.arange(side**2, dtype=np.int32)).reshape(-1)


def require_room(rays: int) -> None:
    """RaymarchError where so many rays, what is seen of them and an image made of it do not fit.

    What is kept for reuse is freed for them.
    """
    needed, free = BYTES_A_RAY * rays, host_bytes()
    if needed > 0.9 * free or rays > MAX_CELLS:
        room = f"{free:,} are free and {MAX_CELLS:,} rays are the most"
        raise RaymarchError(f"an image of {rays:,} rays takes {needed:,} bytes but {room}; take a smaller one")
    if runtime.runs_on_cpu():
        make_room(needed)
