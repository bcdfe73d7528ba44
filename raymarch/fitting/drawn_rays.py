"""Rays of a step of a fit: those of the pixels of the tiles that were chosen, each with the jitter of its samples."""

from __future__ import annotations

from raymarch.device.image_store import ImageStore
from raymarch.device.numbers import set_numbers
from raymarch.device.ray_buffer import RayBuffer
from raymarch.fitting.plan import Plan
from raymarch.kernels.fit import losses
from raymarch.kernels.rays.camera import draw_tiles, jitter_parts


def draw_rays(
    store: ImageStore, buffer: RayBuffer, plan: Plan, tiles: int, side: int, step: int, jitter: float
) -> int:  # fmt: skip
    """Fill the buffer with `side`^2 rays of each pixel of the chosen tiles; how many pixels have a target."""
    fields, pixels, seed = buffer.fields, tiles * store.fields.tile**2, plan.settings.seed
    draw_tiles(fields, store.fields, tiles, side, plan.near)
    set_numbers(fields, draw=(seed * 2654435761 + step) % 2**31)
    if jitter > 0:
        jitter_parts(fields, seed, step, pixels * side**2, side**2, jitter)
    return losses.counting(fields, pixels) if store.masked else pixels
