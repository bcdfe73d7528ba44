"""Volume renderer: images of whole cameras, or any rays; the same whatever the batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.arguments.checks import Check, Colour, Wrong, flag, optional, shown
from raymarch.arguments.checks import colour as colour_of
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.device.table_fields import MemberSettings
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.rays import RAYS, Rays
from raymarch.html.card import html_of
from raymarch.kernels.integrator.passes import passes_of
from raymarch.kernels.modes.emission_absorption import EMISSION_ABSORPTION
from raymarch.kernels.modes.together import Member, march_together
from raymarch.kernels.modes.transfer import TRANSFER
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import (
    MARCH,
    SINGLE_RAYS,
    March,
    march_for,
    require_seen,
    set_ray_settings,
    skip_invisible,
    skip_unseen,
)
from raymarch.rendering.ray_batches import Fill, parts_of, rays_as_given, rays_of_camera, require_room
from raymarch.rendering.rendering_card import rendering_card
from raymarch.rendering.shading import Shading, matcap_colours
from raymarch.views.views import require_colour
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

ONE_CAMERA = replace(
    CAMERA, wanted="one Camera", cure="call rm.render(volume, camera); for several, rm.Renderer in a loop"
)
BACKGROUND = optional(colour_of)
Seen: TypeAlias = "tuple[np.ndarray, np.ndarray, np.ndarray | None]"  # image (ray, 4), depth (ray,), normals (ray, 3)


@dataclass(frozen=True, eq=False)
class Rendering:
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

    def _repr_html_(self) -> str | None:
        return html_of(lambda one: rendering_card(one.image, one.opacity, one.depth, one.normals), self)


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


# Rules of multi-volume rendering: which volumes and modes go together, and what the march of all is set to.

MOST = 4
ALIKE = ("jitter", "step_jitter", "seed")  # of which a ray has one
Marches: TypeAlias = "March | Sequence[March] | None"


def _volumes(value: Any) -> list[Volume]:
    if not isinstance(value, (list, tuple)):
        raise Wrong(f"is {shown(value)}", "give [volume, other]")
    if not 1 <= len(value) <= MOST:
        raise Wrong(f"is {len(value)} of them", "merge some, or leave some out")
    scans = [one for one in value if isinstance(one, ScalarVolume)]
    for said, cure in (("world", "give one.in_world(of the other)"), ("length_unit", "scale the one's affine")):
        if len(several := sorted({getattr(one, said) for one in scans} - {""})) > 1:
            raise Wrong(f"has the {said} {' and '.join(several)}", cure)
    return [VOLUME(f"volumes[{i}]", volume) for i, volume in enumerate(value)]


def _marches(value: Any) -> March | list[March] | None:
    if value is None or isinstance(value, March):
        return value
    if not isinstance(value, (list, tuple)) or not value:
        raise Wrong(f"is {shown(value)}")
    return [MARCH(f"marches[{i}]", march) for i, march in enumerate(value)]


def _of_single_rays(value: Any) -> March | list[March] | None:
    given = _marches(value)
    for i, march in enumerate(given if isinstance(given, list) else [given] if given else []):
        SINGLE_RAYS(f"marches[{i}]", march)
    return given


def _one_or_several(value: Any) -> Volume | list[Volume]:
    return _volumes(value) if isinstance(value, (list, tuple)) else VOLUME.read(value)


VOLUMES = Check(f"a list of 1 to {MOST} volumes", _volumes)
ONE_OR_SEVERAL = Check(f"a Volume, or a list of 1 to {MOST} that are rendered together", _one_or_several, VOLUME.cure)
MARCHES = Check("a list of rm.March(...), one for each volume, or one for all", _marches)
SINGLE_MARCHES = Check(MARCHES.wanted, _of_single_rays)


def marches_for(volumes: Sequence[Volume], marches: Marches) -> list[March]:
    """March of each volume; RaymarchError for what cannot be composited together, with the volume's place."""
    if marches is None or isinstance(marches, March):
        given = [march_for(volume, marches) for volume in volumes]
    else:
        if len(marches) != len(volumes):
            raise RaymarchError(
                f"marches are {len(marches)}, volumes {len(volumes)}; give one for each, or one for all"
            )
        given = [march_for(volume, march) for volume, march in zip(volumes, marches, strict=True)]
    for i, (volume, march) in enumerate(zip(volumes, given, strict=True)):
        if march.mode == TRANSFER.name and march.rule is not TRANSFER:
            what = "preintegrated" if march.preintegrated else "shading"
            raise RaymarchError(f"marches[{i}] has {what}, which several volumes together have not; leave it out")
        if march.rule is not EMISSION_ABSORPTION and march.rule is not TRANSFER:
            cure = f"take mode {EMISSION_ABSORPTION.name} or {TRANSFER.name}"
            raise RaymarchError(f"marches[{i}]: mode {march.rule.name} does not composite with other volumes; {cure}")
        if volume.boxes > 1:
            raise RaymarchError(f"volumes[{i}] has nested boxes, want one box; take volume.nested(0), the innermost")
        if volume.ndc_from_world is not None:
            raise RaymarchError(f"volumes[{i}] is in NDC, want a box in the world; resample it to one")
        require_seen(volume, march)
    for name in ALIKE:
        if len(values := sorted({getattr(march, name) for march in given})) > 1:
            few = " and ".join(f"{x:g}" for x in values[:2])
            raise RaymarchError(f"marches have {name} {few}, want one for all rays; give the same to each")
    return given


def single_marches_for(volumes: Sequence[Volume], marches: Marches) -> list[March]:
    """March of each volume for its gradients, which are of single rays: those of `marches_for`, without early ray
    termination where none are given. RaymarchError as there."""
    exact: dict[str, Any] = {"min_transmittance": 0.0, "min_weight": 0.0} if marches is None else {}
    return [replace(march, supersample=1, **exact) for march in marches_for(volumes, marches)]


def step_of(volumes: Sequence[Volume], marches: Sequence[March]) -> float:
    """Length of a step [world unit]: the shortest that any of the volumes asks for."""
    return min(march.step * volume.voxel for volume, march in zip(volumes, marches, strict=True))


# Members of a multi-volume march on the device: each volume's grid and settings, and the call that all share.


class Members(Holder):
    """Volumes that are marched together, on the device; owns their memory until `close`.

    Args:
        volumes, marches: one to four, and how each is read.
        slots: gradient buffers; 0 for volumes that are only seen, whose empty space is leapt over.
    """

    def __init__(self, volumes: Sequence[Volume], marches: Marches, slots: int = 0):
        self.volumes, self.marches = list(volumes), marches_for(volumes, marches)
        self.step = step_of(self.volumes, self.marches)
        runtime.start()
        with ExitStack() as owners:
            self.grids = [owners.enter_context(grid_for(volume, slots=slots)) for volume in self.volumes]
            self.settings = [owners.enter_context(MemberSettings()) for _ in self.volumes]
            self._owners = owners.pop_all()
        try:
            self.load(skip=slots == 0)
        except BaseException:
            self.close()
            raise

    def load(self, skip: bool) -> None:
        """Upload of the volumes and their settings; where nothing of one is seen, `skip` leaves it out of the march."""
        for grid, settings, volume, march in zip(self.grids, self.settings, self.volumes, self.marches, strict=True):
            grid.upload(volume)
            if skip:
                skip_invisible(grid, volume, march)
            planes = np.zeros((0, 4)) if march.clip is None else march.clip.half_spaces
            settings.upload(march.transfer, planes, not skip or bool(grid.occupied_cells().any()))

    @property
    def fields(self) -> tuple[Member, ...]:
        """Members as kernels see them."""
        jittered = self.first.jittered
        return tuple(
            Member(grid.fields, own.fields, replace(grid.variant, mode=m.rule, jittered=jittered, clipped=m.clipped))
            for grid, own, m in zip(self.grids, self.settings, self.marches, strict=True)
        )

    @property
    def first(self) -> March:
        """March of the first volume, whose jitter is that of all."""
        return self.marches[0]

    @property
    def side(self) -> int:
        """Rays along each edge of a pixel: the most that any of the volumes asks for."""
        return max(march.supersample or 1 for march in self.marches)

    @property
    def batch(self) -> int:
        """Rays a launch, those of a pixel at least."""
        return max(min(march.batch for march in self.marches), self.side**2)

    def call(self, count: int, background: Sequence[float] | np.ndarray) -> tuple[int, float, float, float, ti.Vector]:
        """Last arguments of a march of `count` rays over three numbers."""
        behind = ti.Vector([float(c) for c in background])
        thin = min(march.min_transmittance for march in self.marches)
        return count, self.step, thin, min(march.min_weight for march in self.marches), behind


# Multi-volume rendering: images of several volumes of different grids, composited together.


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
