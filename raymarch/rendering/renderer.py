"""Volume renderer: images of whole cameras, or any rays, of one volume or of several; the same whatever the batch."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, overload

import numpy as np

from raymarch.arguments.checks import Colour, flag, optional
from raymarch.arguments.declared import checked
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.rays import RAYS, Rays
from raymarch.html.card import html_of
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import (
    MARCHES,
    VOLUMES,
    AnyMedium,
    AnyVolumes,
    Marches,
    OneVolume,
    marches_for,
    medium_of,
    several,
)
from raymarch.rendering.ray_batches import Fill, batches_of_rays, parts_of, rays_of_camera, require_room
from raymarch.rendering.rendering_card import rendering_card
from raymarch.rendering.shading import Shading, matcap_colours
from raymarch.views.views import require_colour
from raymarch.volumes.channels import COLOUR_OR_CHANNELS, background_of_channels

ONE_CAMERA = replace(
    CAMERA, wanted="one Camera", cure="call rm.render(volume, camera); for several, rm.Renderer in a loop"
)
BACKGROUND = optional(COLOUR_OR_CHANNELS)
# image (ray, 4), depth (ray,), normals (ray, 3)
RayValues: TypeAlias = "tuple[np.ndarray, np.ndarray, np.ndarray | None]"


@dataclass(frozen=True, eq=False)
class Rendering:
    """Rendered image of a camera, with opacity and depth.

    Attributes:
        image: (height, width, 3) float32, background included; in 0..1 where colours are. Of a volume of other channels
            (height, width, channel), in their units.
        opacity: (height, width) float32 in 0..1, one less the transmittance.
        depth: (height, width) float32, mean distance from the camera [world unit], infinite under 1 % opacity; that of
            the winner or of the hit in modes that have one.
        normals: (height, width, 3) float32, unit normals in the world that face the camera, 0 where nothing is met;
            None where they were not asked for, and of modes and of several volumes that know none.
    """

    image: np.ndarray
    opacity: np.ndarray
    depth: np.ndarray
    normals: np.ndarray | None = None

    def _repr_html_(self) -> str | None:
        return html_of(lambda one: rendering_card(one.image, one.opacity, one.depth, one.normals), self)


class Renderer(Holder):
    """Volume renderer for many images of one volume or of several; `close` it, or use it in a `with`.

    Several volumes are one medium: where they overlap, their extinctions add up, and the colour of a point is the mean
    of theirs by extinction. The order of the list does not matter.

    Args:
        volume: `rm.Volume` or `rm.ScalarVolume`, dense or sparse; or a list of one to four, anywhere in the world.
        march: how rays see it; as `render` chooses it if not given. Of several volumes one march for each, or one for
            all, in mode "emission-absorption", by a volume's own density and colour, or "transfer", by a table. Each
            volume is cut by the `clip` of its own march. Steps are the shortest that any march asks for (its `step`
            times its volume's voxel), the smallest `min_transmittance`, `min_weight` and `batch` count, and the largest
            `supersample`; jitter must be the same.

    Raises RaymarchError for volumes that their march does not show; of several volumes for other modes, nested boxes,
    volumes in NDC, and marches that are fewer or more than the volumes.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.2), shape=(8, 8, 8))
        >>> with Renderer([ball, fog]) as renderer:
        ...     renderer.render(Camera.look_at((0, -4, 0), width=64, height=64)).image.shape
        (64, 64, 3)
    """

    @checked(volume=VOLUMES, march=optional(MARCHES))
    def __init__(self, volume: AnyVolumes, march: Marches = None):
        volumes, marches = several(volume), marches_for(volume, march, lit=True)
        self.background, self._channels = volumes[0].background, volumes[0].channels
        with ExitStack() as owners:
            self.medium = medium_of(volumes, marches)
            owners.enter_context(self.medium)
            self.buffer = owners.enter_context(RayBuffer(self.medium.batch, channels=self.medium.channels))
            self._owners = owners.pop_all()

    @property
    def grid(self) -> Grid:
        """Grid of the (first) volume."""
        return self.medium.grids[0]

    @property
    def march(self) -> March:
        """March of the (first) volume."""
        return self.medium.march

    @checked(camera=ONE_CAMERA, background=BACKGROUND, depth=flag, normals=flag)
    def render(
        self, camera: Camera, background: Colour | None = None, *, depth: bool = True, normals: bool = False
    ) -> Rendering:
        """Rendering of what `camera` sees, over `background` or that of the (first) volume."""
        return render_camera(self.medium, self.buffer, camera, self._behind(background), depth, normals)

    @checked(rays=RAYS, background=BACKGROUND, depth=flag)
    def trace(
        self, rays: Rays, background: Colour | None = None, *, depth: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Colour and transmittance (ray, 4) and depth (ray,) along rays; of channels (ray, channel + 1)."""
        behind, fill = self._behind(background), batches_of_rays(self.buffer, rays)
        return march_pixels(self.medium, self.buffer, len(rays), fill, behind, side=1, depth=depth)[:2]

    def _behind(self, background: Colour | None) -> Colour:
        """Background in numbers, one a channel; the volume's if None."""
        return self.background if background is None else background_of_channels(self._channels, background)


@overload
def render(
    volume: AnyVolumes,
    camera: Camera,
    *,
    background: Colour | None = None,
    march: Marches = ...,
    extras: Literal[False] = False,
) -> np.ndarray: ...


@overload
def render(
    volume: AnyVolumes,
    camera: Camera,
    *,
    background: Colour | None = None,
    march: Marches = ...,
    extras: Literal[True],
) -> Rendering: ...


@checked(volume=VOLUMES, camera=ONE_CAMERA, background=BACKGROUND, march=optional(MARCHES), extras=flag)
def render(
    volume: AnyVolumes,
    camera: Camera,
    *,
    background: Colour | None = None,
    march: Marches = None,
    extras: bool = False,
) -> np.ndarray | Rendering:
    """Image (height, width, 3) float32 that `camera` sees of one volume or of several; with `extras` a `Rendering`. Of
    a volume with other channels than red, green and blue (height, width, channel), in their units.

    The background is that of the (first) volume unless given ("white", "black" or three numbers in 0..1; of channels
    one number each). For many images make a `Renderer` once; it has the rules for several volumes, too. Without a
    `march` it is the default's, and a volume of values alone, as a scan is, is seen through a table by the kind of its
    values, lit from the eye where it is the only one; `raymarch render` says which.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(8, 8, 8))
        >>> camera = Camera.look_at((0, -4, 0), width=32, height=32)
        >>> render(fog, camera).shape, render([fog, fog], camera, background="black").shape
        ((32, 32, 3), (32, 32, 3))
    """
    with Renderer(volume, march) as renderer:
        seen = renderer.render(camera, background, depth=extras, normals=extras)
    return seen if extras else seen.image


def render_camera(
    medium: AnyMedium, buffer: RayBuffer, camera: Camera, background: Colour, depth: bool, normals: bool = False
) -> Rendering:
    """Rendering of a medium by a camera, in batches of the buffer's size; without `depth`, distances are infinite."""
    shading = medium.march.shading
    if shading is not None and shading.matcap is not None:
        return _render_matcap(medium, shading, buffer, camera, background, depth, normals)
    count, fill = camera.width * camera.height, rays_of_camera(buffer, camera)
    seen = march_pixels(medium, buffer, count, fill, background, side=medium.side, depth=depth, normals=normals)
    return rendering_of(camera, seen)


def _render_matcap(
    medium: AnyMedium,
    shading: Shading,
    buffer: RayBuffer,
    camera: Camera,
    background: Colour,
    depth: bool,
    normals: bool,
) -> Rendering:
    """Rendering of a surface whose colours its normals look up, those of each ray of a pixel by themselves."""
    side, march = medium.side, replace(medium.march, shading=replace(shading, matcap=None), supersample=1)
    plain = OneVolume(medium.grids[0], march)
    finer = camera.scaled(side) if side > 1 else camera
    fine = render_camera(plain, buffer, finer, background, depth and side == 1, normals=True)
    colours = matcap_colours(np.asarray(fine.normals), camera, np.asarray(shading.matcap))
    image = np.where(fine.opacity[..., None] > 0, colours, fine.image).astype(np.float32)
    if side == 1:
        return replace(fine, image=image, normals=fine.normals if normals else None)
    seen, parts = render_camera(plain, buffer, camera, background, depth, normals), (side, camera.width, side)
    image = image.reshape(camera.height, *parts, 3).mean((1, 3))
    return replace(seen, image=image, opacity=fine.opacity.reshape(camera.height, *parts).mean((1, 3)))


def rendering_of(camera: Camera, seen: RayValues) -> Rendering:
    """Rendering of what all rays of a camera see, row by row."""
    (image, distance, normal), size = seen, (camera.height, camera.width)
    facing = None if normal is None else normal.reshape(*size, 3)
    colour = image[:, :-1].reshape(*size, image.shape[1] - 1)
    return Rendering(colour, 1 - image[:, -1].reshape(size), distance.reshape(size), facing)


def march_pixels(
    medium: AnyMedium,
    buffer: RayBuffer,
    total: int,
    fill: Fill,
    background: Colour,
    *,
    side: int,
    depth: bool,
    normals: bool = False,
) -> RayValues:
    """What `total` pixels see, the means of `side` x `side` rays each that `fill` puts into the buffer."""
    require_room(total)
    medium.set_up(buffer)
    seen = pixels_seen(medium, total, normals)
    room = buffer.capacity // side**2
    for first in range(0, total, room):
        march_batch(medium, buffer, (fill, first, min(room, total - first)), background, side, seen, depth)
    return seen


def pixels_seen(medium: AnyMedium, total: int, normals: bool) -> RayValues:
    """Arrays for what `total` pixels see; normals where they are asked for and known."""
    normal = np.zeros((total, 3), np.float32) if normals and medium.shows_normals else None
    lanes = 1 + (medium.channels or 3)
    return np.zeros((total, lanes), np.float32), np.full(total, np.inf, np.float32), normal


def march_batch(
    medium: AnyMedium,
    buffer: RayBuffer,
    run: tuple[Fill, int, int],
    background: Colour,
    side: int,
    seen: RayValues,
    depth: bool,
) -> np.ndarray:
    """March of one run of pixels, what they see put in its place; which they are. The settings are in the buffer.

    Depth and normals are of the rays through the pixels' centres, colours the means of `side` x `side` rays.
    """
    (_, _, count), (image, distance, normal), parts = run, seen, side**2
    if parts > 1:
        pixels = _march_rays(medium, buffer, run, background, side)
        image[pixels] = buffer.image(count * parts).reshape(count, parts, -1).mean(1)
        if not depth and normal is None:
            return pixels
    pixels = _march_rays(medium, buffer, run, background, 1)
    passes, call = medium.passes, medium.call(count, _behind(buffer, background))
    if parts == 1:
        image[pixels] = buffer.image(count)
    if depth:
        passes.depth(medium.fields, buffer.fields, *call[:4])
        distance[pixels] = buffer.depth(count)
    if normal is not None and passes.normals is not None:
        passes.normals(medium.fields, buffer.fields, *call[:4])
        normal[pixels] = buffer.normals(count)
    return pixels


def _behind(buffer: RayBuffer, background: Colour) -> ti.Vector:
    """Background as kernels take it: a colour by name, or numbers that were looked at, of channels in any unit."""
    return buffer.set_behind(require_colour(background) if isinstance(background, str) else background)


def _march_rays(
    medium: AnyMedium, buffer: RayBuffer, run: tuple[Fill, int, int], background: Colour, side: int
) -> np.ndarray:
    """March of the rays of one run of pixels, `side` along each edge of one; which pixels they are."""
    fill, first, count = run
    pixels = fill(first, count, side)
    medium.jitter(buffer, parts_of(pixels, side))
    medium.passes.march(medium.fields, buffer.fields, *medium.call(count * side**2, _behind(buffer, background)))
    return pixels
