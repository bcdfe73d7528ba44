"""Multi-volume rendering: images of several volumes of different grids, composited together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Literal, overload

import numpy as np

from raymarch.arguments.arrays import Colour
from raymarch.arguments.checks import flag
from raymarch.arguments.declared import checked
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.geometry.camera import Camera
from raymarch.geometry.rays import RAYS, Rays
from raymarch.kernels.march.together import march_together
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.members import Members
from raymarch.rendering.ray_batches import Fill, parts_of, rays_as_given, rays_of_camera, require_room
from raymarch.rendering.renderer import BACKGROUND, ONE_CAMERA, Rendering
from raymarch.rendering.together_settings import MARCHES, VOLUMES, Marches
from raymarch.views.views import require_colour
from raymarch.volumes.volume import Volume


class TogetherRenderer(Holder):
    """Multi-volume renderer for many images of the same volumes; `close` it, or use it in a `with`.

    Where volumes overlap, their extinctions add up, and the colour of a point is the mean of theirs by extinction; the
    order of the list does not matter. Each is read by its own march: emission-absorption by its own density and colour,
    or "transfer" by its table, clipped by its own `clip`.

    Args:
        volumes: one to four, dense or sparse, `rm.Volume` or `rm.ScalarVolume`, anywhere in the world.
        marches: one for each, or one for all; by default through a table by its range for a volume of values alone, and
            emission-absorption for any other. Steps are the shortest that any asks for (its `step` times its voxel),
            and the smallest of `min_transmittance`, `min_weight` and `batch` counts, of `supersample` the largest;
            jitter must be the same.

    Raises RaymarchError for other modes, nested boxes, volumes in NDC, and counts that differ.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.2), shape=(8, 8, 8))
        >>> with TogetherRenderer([ball, fog]) as renderer:
        ...     renderer.render(Camera.look_at((0, -4, 0), width=64, height=64)).image.shape
        (64, 64, 3)
    """

    @checked(volumes=VOLUMES, marches=MARCHES)
    def __init__(self, volumes: Sequence[Volume], marches: Marches = None):
        self.background = volumes[0].background
        with ExitStack() as owners:
            self.members = owners.enter_context(Members(volumes, marches))
            self.buffer = owners.enter_context(RayBuffer(self.members.batch))
            self._owners = owners.pop_all()

    @checked(camera=ONE_CAMERA, background=BACKGROUND, depth=flag)
    def render(self, camera: Camera, background: Colour | None = None, *, depth: bool = True) -> Rendering:
        """Rendering of what `camera` sees, over `background` or that of the first volume."""
        count, size = camera.width * camera.height, (camera.height, camera.width)
        fill, side = rays_of_camera(self.buffer, camera), self.members.side
        image, distance = self._march(count, fill, background, depth and side == 1, side)
        if depth and side > 1:
            _, distance = self._march(count, fill, background, depth)
        return Rendering(image[:, :3].reshape(*size, 3), 1 - image[:, 3].reshape(size), distance.reshape(size))

    @checked(rays=RAYS, background=BACKGROUND, depth=flag)
    def trace(
        self, rays: Rays, background: Colour | None = None, *, depth: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Colour and transmittance (ray, 4) and depth (ray,) along rays."""
        return self._march(len(rays), rays_as_given(self.buffer, rays), background, depth)

    def _march(
        self, total: int, fill: Fill, background: Colour | None, depth: bool, side: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Colour and transmittance (pixel, 4) and depth (pixel,), the means of rays that `fill` puts into the buffer,
        `side` along each edge of a pixel."""
        require_room(total)
        behind = require_colour(self.background if background is None else background)
        image, distance = np.empty((total, 4), np.float32), np.full(total, np.inf, np.float32)
        s, parts = self.members.first, side**2
        for start in range(0, total, room := self.buffer.capacity // parts):
            count = min(room, total - start)
            pixels = fill(start, count, side)
            if s.jittered:
                jitter_pixels(self.buffer.fields, s.seed, parts_of(pixels, side), s.jitter, s.step_jitter)
            march_together(self.members.fields, self.buffer.fields, *self.members.call(count * parts, behind))
            image[pixels] = self.buffer.image(count * parts).reshape(count, parts, 4).mean(1)
            if depth:
                distance[pixels] = self.buffer.depth(count)
        return image, distance


@overload
def render_together(
    volumes: Sequence[Volume],
    camera: Camera,
    *,
    marches: Marches = None,
    background: Colour | None = None,
    extras: Literal[False] = False,
) -> np.ndarray: ...


@overload
def render_together(
    volumes: Sequence[Volume],
    camera: Camera,
    *,
    marches: Marches = None,
    background: Colour | None = None,
    extras: Literal[True],
) -> Rendering: ...


@checked(volumes=VOLUMES, camera=ONE_CAMERA, marches=MARCHES, background=BACKGROUND, extras=flag)
def render_together(
    volumes: Sequence[Volume],
    camera: Camera,
    *,
    marches: Marches = None,
    background: Colour | None = None,
    extras: bool = False,
) -> np.ndarray | Rendering:
    """Image (height, width, 3) float32 of several volumes together; with `extras` a `Rendering`.

    The background is that of the first volume unless given. `TogetherRenderer` has the rules, and is for many images.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(8, 8, 8))
        >>> camera = Camera.look_at((0, -4, 0), width=32, height=32)
        >>> render_together([fog, fog], camera, background="black").shape
        (32, 32, 3)
    """
    with TogetherRenderer(volumes, marches) as renderer:
        seen = renderer.render(camera, background, depth=extras)
    return seen if extras else seen.image
