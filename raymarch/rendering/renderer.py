"""Volume renderer: images of whole cameras, or any rays; the same whatever the batch."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, overload

import numpy as np

from raymarch import runtime
from raymarch.arguments.arrays import Colour
from raymarch.arguments.arrays import colour as colour_of
from raymarch.arguments.checks import flag, optional
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.rays import RAYS, Rays
from raymarch.kernels.march.passes import passes_of
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import MARCH, March, march_for
from raymarch.rendering.matcap import matcap_colours
from raymarch.rendering.ray_batches import Fill, parts_of, rays_as_given, rays_of_camera, require_room
from raymarch.rendering.ray_settings import require_seen, set_ray_settings, skip_unseen
from raymarch.rendering.rendering_card import RenderingCard
from raymarch.rendering.shading import Shading
from raymarch.views.views import require_colour
from raymarch.volumes.volume import VOLUME, AnyVolume

ONE_CAMERA = replace(
    CAMERA, wanted="one Camera", cure="call rm.render(volume, camera); for several, rm.Renderer in a loop"
)
BACKGROUND = optional(colour_of)
Seen: TypeAlias = "tuple[np.ndarray, np.ndarray, np.ndarray | None]"  # image (ray, 4), depth (ray,), normals (ray, 3)


@dataclass(frozen=True, eq=False)
class Rendering(RenderingCard):
    """Rendered image of a camera, with opacity and depth.

    Attributes:
        image: (height, width, 3) float32, background included; in 0..1 where colours are.
        opacity: (height, width) float32 in 0..1, one less the transmittance.
        depth: (height, width) float32, mean distance from the camera [world unit], infinite under 1 % opacity; that of
            the winner or of the hit in modes that have one.
        normals: (height, width, 3) float32, unit normals in the world that face the camera, 0 where nothing is met;
            None where they were not asked for, and of modes that know none.
    """

    image: np.ndarray
    opacity: np.ndarray
    depth: np.ndarray
    normals: np.ndarray | None = None


class Renderer(Holder):
    """Volume renderer for many images of one volume on the device; `close` it, or use it in a `with`.

    Without `settings` it marches as `render` does without a `march`.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> with Renderer(ball) as renderer:
        ...     renderer.render(Camera.look_at((0, -4, 0), width=64, height=64)).image.shape
        (64, 64, 3)
    """

    @checked(volume=VOLUME, settings=optional(MARCH))
    def __init__(self, volume: AnyVolume, settings: March | None = None):
        runtime.start()
        settings = march_for(volume, settings, lit=True)  # type: ignore[arg-type]  # the rule made it a Volume
        require_seen(volume, settings)
        self.background = volume.background
        self.settings = settings
        with ExitStack() as owners:
            self.grid = owners.enter_context(grid_for(volume))
            self.grid.upload(volume)
            skip_unseen(self.grid, volume, settings)
            self.buffer = owners.enter_context(RayBuffer(max(settings.batch, (settings.supersample or 1) ** 2)))
            self._owners = owners.pop_all()

    @checked(camera=ONE_CAMERA, background=BACKGROUND, depth=flag, normals=flag)
    def render(
        self, camera: Camera, background: Colour | None = None, *, depth: bool = True, normals: bool = False
    ) -> Rendering:
        """Rendering of what `camera` sees, over `background` or the volume's own."""
        behind = self.background if background is None else background
        return render_camera(self.grid, self.buffer, camera, behind, self.settings, depth, normals)

    @checked(rays=RAYS, background=BACKGROUND, depth=flag)
    def trace(
        self, rays: Rays, background: Colour | None = None, *, depth: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Colour and transmittance (ray, 4) and depth (ray,) along rays."""

        behind = self.background if background is None else background
        fill, single = rays_as_given(self.buffer, rays), replace(self.settings, supersample=1)
        return _march(self.grid, self.buffer, len(rays), fill, behind, single, depth)[:2]


def render_camera(
    grid: Grid,
    buffer: RayBuffer,
    camera: Camera,
    background: Colour,
    settings: March,
    depth: bool,
    normals: bool = False,
) -> Rendering:
    """Rendering of a grid by a camera, in batches of the buffer's size; without `depth`, distances are infinite."""
    if settings.shading is not None and settings.shading.matcap is not None:
        return _render_matcap(grid, buffer, camera, background, settings, depth, normals)
    fill = rays_of_camera(buffer, camera)
    count = camera.width * camera.height
    return rendering_of(camera, _march(grid, buffer, count, fill, background, settings, depth, normals))


def _render_matcap(
    grid: Grid, buffer: RayBuffer, camera: Camera, background: Colour, s: March, depth: bool, normals: bool
) -> Rendering:
    """Rendering of a surface whose colours its normals look up, those of each ray of a pixel by themselves."""
    shading, side = s.shading or Shading(), s.supersample or 1
    plain = replace(s, shading=replace(shading, matcap=None), supersample=1)
    finer = camera.scaled(side) if side > 1 else camera
    fine = render_camera(grid, buffer, finer, background, plain, depth and side == 1, normals=True)
    colours = matcap_colours(np.asarray(fine.normals), camera, np.asarray(shading.matcap))
    image = np.where(fine.opacity[..., None] > 0, colours, fine.image).astype(np.float32)
    if side == 1:
        return replace(fine, image=image, normals=fine.normals if normals else None)
    seen, parts = render_camera(grid, buffer, camera, background, plain, depth, normals), (side, camera.width, side)
    image = image.reshape(camera.height, *parts, 3).mean((1, 3))
    return replace(seen, image=image, opacity=fine.opacity.reshape(camera.height, *parts).mean((1, 3)))


def rendering_of(camera: Camera, seen: Seen) -> Rendering:
    """Rendering of what all rays of a camera see, row by row."""
    (image, distance, normal), size = seen, (camera.height, camera.width)
    facing = None if normal is None else normal.reshape(*size, 3)
    return Rendering(image[:, :3].reshape(*size, 3), 1 - image[:, 3].reshape(size), distance.reshape(size), facing)


def _march(
    grid: Grid, buffer: RayBuffer, total: int, fill: Fill, background: Colour, s: March, depth: bool,
    normals: bool = False,
) -> Seen:  # fmt: skip
    """Colour and transmittance (pixel, 4), depth (pixel,), normals (pixel, 3) of what `fill` puts into the buffer."""
    require_room(total)
    set_ray_settings(buffer, grid, s)
    seen = rays_seen(total, grid, s, normals)
    room = buffer.capacity // (s.supersample or 1) ** 2
    for first in range(0, total, room):
        march_batch(grid, buffer, (fill, first, min(room, total - first)), background, s, seen, depth)
    return seen


def rays_seen(total: int, grid: Grid, s: March, normals: bool) -> Seen:
    """Arrays for what `total` rays see; normals where they are asked for and the mode knows them."""
    shown = normals and passes_of(s.rule).normals and grid.ndc_from_world is None  # slopes in NDC are none of the world
    normal = np.zeros((total, 3), np.float32) if shown else None
    return np.zeros((total, 4), np.float32), np.full(total, np.inf, np.float32), normal


def march_batch(
    grid: Grid, buffer: RayBuffer, run: tuple[Fill, int, int], background: Colour, s: March, seen: Seen, depth: bool
) -> np.ndarray:
    """March of one run of pixels, what they see put in its place; which they are. The settings are in the buffer.

    Depth and normals are of the rays through the pixels' centres, colours the means of as many as `s` asks for.
    """
    (_, _, count), (image, distance, normal), passes = run, seen, passes_of(s.rule)
    parts, extras = (s.supersample or 1) ** 2, depth or (normal is not None and passes.normals is not None)
    if parts > 1:
        pixels = _march_rays(grid, buffer, run, background, s)
        image[pixels] = buffer.image(count * parts).reshape(count, parts, 4).mean(1)
    if parts > 1 and not extras:
        return pixels
    pixels = _march_rays(grid, buffer, run, background, replace(s, supersample=1))
    call = s.call(grid, count, require_colour(background))
    if parts == 1:
        image[pixels] = buffer.image(count)
    if depth:
        passes.depth(grid.fields, buffer.fields, *call[:4])
        distance[pixels] = buffer.depth(count)
    if normal is not None and passes.normals:
        passes.normals(grid.fields, buffer.fields, *call[:4])
        normal[pixels] = buffer.normals(count)
    return pixels


def _march_rays(grid: Grid, buffer: RayBuffer, run: tuple[Fill, int, int], background: Colour, s: March) -> np.ndarray:
    """March of the rays of one run of pixels; which pixels they are."""
    (fill, first, count), side = run, s.supersample or 1
    pixels = fill(first, count, side)
    if s.jittered:
        jitter_pixels(buffer.fields, s.seed, parts_of(pixels, side), s.jitter, s.step_jitter)
    passes_of(s.rule).march(grid.fields, buffer.fields, *s.call(grid, count * side**2, require_colour(background)))
    return pixels


@overload
def render(
    volume: AnyVolume,
    camera: Camera,
    *,
    background: Colour | None = None,
    march: March | None = ...,
    extras: Literal[False] = False,
) -> np.ndarray: ...


@overload
def render(
    volume: AnyVolume,
    camera: Camera,
    *,
    background: Colour | None = None,
    march: March | None = ...,
    extras: Literal[True],
) -> Rendering: ...


@checked(volume=VOLUME, camera=ONE_CAMERA, background=BACKGROUND, march=optional(MARCH), extras=flag)
def render(
    volume: AnyVolume,
    camera: Camera,
    *,
    background: Colour | None = None,
    march: March | None = None,
    extras: bool = False,
) -> np.ndarray | Rendering:
    """Image (height, width, 3) float32 that `camera` sees of `volume`; with `extras` a `Rendering`.

    The background is the volume's own unless given ("white", "black" or three numbers in 0..1). For many images of
    one volume make a `Renderer` once. Without a `march` it is the default's, and a volume of values alone, as a scan
    is, is seen through a table by the kind of its values, lit from the eye; `raymarch render` says which.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(8, 8, 8))
        >>> render(fog, Camera.look_at((0, -4, 0), width=32, height=32)).shape
        (32, 32, 3)
    """
    with Renderer(volume, march) as renderer:
        seen = renderer.render(camera, background, depth=extras, normals=extras)
    return seen if extras else seen.image
