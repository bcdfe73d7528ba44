"""Progressive rendering: a camera's image marched a batch of tiles at a time, so that other work goes between them."""

from __future__ import annotations

from raymarch.arguments.checks import Colour
from raymarch.device.ray_buffer import RayBuffer
from raymarch.geometry.camera import Camera
from raymarch.rendering.medium import AnyMedium
from raymarch.rendering.ray_batches import TILE_SIDE, rays_of_camera, require_room
from raymarch.rendering.renderer import Rendering, march_batch, pixels_seen, rendering_of


class ProgressiveRendering:
    """Progressive rendering of a medium by a camera: `render_camera`'s very image, made in as many calls as one likes.

    Between the calls the buffer may serve others.
    """

    def __init__(
        self,
        medium: AnyMedium,
        buffer: RayBuffer,
        camera: Camera,
        background: Colour,
        depth: bool = False,
        normals: bool = False,
    ) -> None:
        self.medium, self.buffer, self.camera = medium, buffer, camera
        self.background, self.depth = background, depth
        self.total, self.done = camera.width * camera.height, 0
        require_room(self.total)
        self.seen = pixels_seen(medium, self.total, normals)
        self._fill = rays_of_camera(buffer, camera)

    def advance(self, count: int) -> int:
        """March up to `count` more pixels, in order of tiles; how many they were, 0 at the end."""
        side = self.medium.side
        count = min(count, self.buffer.capacity // side**2, self.total - self.done)
        if count > 0:
            self.medium.set_up(self.buffer)
            run = self._fill, self.done, count
            march_batch(self.medium, self.buffer, run, self.background, side, self.seen, self.depth)
            self.done += count
        return max(count, 0)

    @property
    def rows(self) -> int:
        """Rows of the image, from above, that are done: tiles lie in bands of their height."""
        whole = self.done // (TILE_SIDE * self.camera.width) * TILE_SIDE
        return self.camera.height if self.done == self.total else whole

    def rendering(self) -> Rendering:
        """What is seen so far; of rays that were not marched, anything."""
        return rendering_of(self.camera, self.seen)

    def band(self, first: int, last: int) -> Rendering:
        """What is seen in the rows from `first` to before `last`."""
        seen = self.rendering()
        rows = slice(first, last)
        normals = None if seen.normals is None else seen.normals[rows]
        return Rendering(seen.image[rows], seen.opacity[rows], seen.depth[rows], normals)


def tiles_for(rays: float) -> int:
    """Rays of as many whole tiles as `rays` make, one tile at least.

    Example:
        >>> tiles_for(3000.0)
        2048
    """
    return max(int(rays) // TILE_SIDE**2, 1) * TILE_SIDE**2
