"""Out-of-core rendering: a volume larger than memory, read and marched part by part (`kernels/integrator/parts`).

The image is that of the whole volume in memory but for the rounding of sums. Parts are taken in the order in which rays
meet them; one that no ray comes to, behind what is opaque or beside the image, is not read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Colour, flag, number, optional
from raymarch.arguments.checks import path as PATH
from raymarch.arguments.declared import checked
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import NO_COLOUR_DEGREE, place_level
from raymarch.device.memory import LIBRARY_BYTES, numbers_a_ray
from raymarch.device.part_rays import MAX_PARTS, PartFields, PartRays, bytes_a_ray
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.parts_of_file import open_in_parts
from raymarch.io.volumes.volume_file import FORMAT
from raymarch.kernels.field import copies
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.distance import DISTANCE
from raymarch.kernels.integrator.integrand import Integrand
from raymarch.kernels.integrator.mode import InParts, Mode
from raymarch.kernels.integrator.normal import NORMAL
from raymarch.kernels.integrator.parts import (
    NOWHERE,
    PartScene,
    begin_rays,
    begin_states,
    find_met,
    find_waiting,
    finish_states,
    go_through_part,
)
from raymarch.kernels.light.gradient import slopes_in
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import (
    EXTINCTION_MODES,
    MARCH,
    March,
    level_of,
    march_for,
    require_seen,
    set_ray_settings,
)
from raymarch.rendering.ray_batches import Fill, parts_of, rays_of_camera, require_room
from raymarch.rendering.renderer import BACKGROUND, ONE_CAMERA, RayValues, Rendering, rendering_of
from raymarch.views.views import require_colour
from raymarch.volumes.file_volume import FileVolume
from raymarch.volumes.part_plan import PartPlan, plan_of
from raymarch.volumes.selection import INDEX

DEFAULT_MEMORY = 2.0  # GB
RAYS_FRACTION = 0.25  # of what is left beside the libraries, at most
MIN_ROOM = 100_000_000  # bytes of parts and rays that are worth a try
BYTES_BESIDE = 1  # a sample, of marks of empty space and of what reading takes for a moment
MEMORY = number(0, 1e6, above=True, below=True, unit="GB")


@dataclass(frozen=True)
class OutOfCoreForecast:
    """What an image of a volume larger than memory takes, before it is made.

    Attributes:
        parts: how many parts the volume is in.
        part_shape: samples (x, y, z) of the largest of them.
        parts_met: parts that any ray comes to, whatever hides them: so many are read at most, each once a pass.
        passes: how often rays are sent through, where the image has more pixels than memory has rays.
        bytes_read: bytes of values that are read at most, unpacked, samples that several parts need counted in each.
        volume_bytes: bytes of all values.
    """

    parts: int
    part_shape: tuple[int, int, int]
    parts_met: int
    passes: int
    bytes_read: int
    volume_bytes: int

    def __str__(self) -> str:
        size, several = " x ".join(map(str, self.part_shape)), "" if self.parts == 1 else "s"
        again = f" in each of {self.passes} passes" if self.passes > 1 else ""
        return (
            f"{self.parts} part{several} of up to {size} samples, of which rays meet {self.parts_met}{again}; of"
            f" {_size_text(self.volume_bytes)} up to {_size_text(self.bytes_read)} are read"
        )


def _size_text(size: int) -> str:
    """Bytes as gigabytes or megabytes.

    Example:
        >>> _size_text(4_294_967_296), _size_text(70_304)
        ('4.29 GB', '0.07 MB')
    """
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.2g} MB"


@dataclass(frozen=True)
class Seen:
    """One thing that rays carry through the parts: an integrand, the mode that it is of, and where its numbers lie."""

    integrand: Integrand
    mode: Mode
    kept: str


class OutOfCoreRenderer(Holder):
    """Renderer of a volume larger than memory, read from its file part by part; `close` it, or use it in a `with`.

    Images are those of `rm.render` of the whole volume to 1e-6: samples lie at the same places, and rays end where they
    have seen enough. A part that nobody sees, by the transfer function, behind what is opaque or beside the image, is
    not marched, and not read where that is known before.

    Args:
        path: of a scan or a simulation, one value a voxel: OME-Zarr, .h5 of `rm.save`, .npy, or unpacked .nrrd, .nii,
            .mha, .mrc, .tif or .vti. It stays as it is, and must not change while it is rendered.
        march: how rays see it; as `rm.render` chooses it if not given, by some of the values. All modes but
            "x-ray-joseph", without occlusion and matcaps.
        memory: how much the process may take [GB], its libraries included; parts are as large as it allows.
        format: as of `rm.load`.
        channel, time, level: which of several channels, points in time and levels of a pyramid, from 0; the finest
            level if not given.

    Raises RaymarchError for a file that is not read in parts, a march that does not go through parts, and too little
    memory; as parts are read for values that are no numbers.

    Example:
        >>> save(ScalarVolume(np.arange(64.0).reshape(4, 4, 4)), "large.h5")
        >>> with OutOfCoreRenderer("large.h5", memory=1.0) as renderer:
        ...     renderer.render(Camera.look_at((1.5, -9, 1.5), (1.5, 1.5, 1.5), width=64, height=64)).image.shape
        (64, 64, 3)
    """

    @checked(
        path=PATH,
        march=optional(MARCH),
        memory=MEMORY,
        format=FORMAT,
        channel=optional(INDEX),
        time=optional(INDEX),
        level=optional(INDEX),
    )
    def __init__(
        self,
        path: str | os.PathLike[str],
        march: March | None = None,
        *,
        memory: float = DEFAULT_MEMORY,
        format: Format | str | None = None,
        channel: int | None = None,
        time: int | None = None,
        level: int | None = None,
    ):
        self._owners = ExitStack()
        volume = open_in_parts(path, format=format, channel=channel, time=time, level=level)  # type: ignore[arg-type]
        self._set_up(volume, march, memory)

    @classmethod
    def of(cls, volume: FileVolume, march: March | None, memory: float) -> OutOfCoreRenderer:
        """Renderer of a volume that is open already."""
        made = cls.__new__(cls)
        made._owners = ExitStack()
        made._set_up(volume, march, memory)
        return made

    def _set_up(self, volume: FileVolume, march: March | None, memory: float) -> None:
        self.volume, self.march = volume, march_for(volume, march, lit=True)
        require_in_parts(self.march)
        if self.march.rule not in EXTINCTION_MODES:  # of which values are looked at as they are read
            require_seen(volume, self.march)
        runtime.start()
        self._lit = self.march.rule.shaded
        self._slopes = (
            self._lit and self.march.rule.classifies and bool(self.march.shading and self.march.shading.smooth)
        )
        self._room, self._most_rays = _rooms(volume, memory, self._slopes)
        self._plan = self._plan_for(None)
        self._ranges: dict[int, tuple[float, float]] = {}
        self._there, self._rank = NOWHERE, np.zeros(1)
        self.watch = lambda: None
        with ExitStack() as owners:
            degree = 0 if self._slopes else NO_COLOUR_DEGREE
            self._grid = owners.enter_context(Grid(self._plan.largest, degree, block=1, slopes=self._slopes))
            self._rays = _Rays()
            owners.enter_context(self._rays)
            self._owners = owners.pop_all()
        self._grid.set_activation(volume.activation)

    @checked(camera=ONE_CAMERA, background=BACKGROUND, depth=flag, normals=flag)
    def render(
        self, camera: Camera, background: Colour | None = None, *, depth: bool = True, normals: bool = False
    ) -> Rendering:
        """Rendering of what `camera` sees, over `background` or that of the volume."""
        behind = require_colour(self.volume.background if background is None else background)
        total, side = camera.width * camera.height, self.march.side
        require_room(total)
        seen: RayValues = (
            np.zeros((total, 4), np.float32),
            np.full(total, np.inf, np.float32),
            np.zeros((total, 3), np.float32) if normals and self.march.rule.has_normals else None,
        )
        for first, count in self._begin(camera):
            for of_side, carried in self._journeys(side, depth, seen[2] is not None):
                pixels = self._send(rays_of_camera(self._rays.buffer, camera), first, count, of_side)
                self._march(carried, count * of_side**2, behind)
                self._take(carried, pixels, of_side, seen)
        return rendering_of(camera, seen)

    @checked(camera=ONE_CAMERA)
    def forecast(self, camera: Camera) -> OutOfCoreForecast:
        """What an image by `camera` takes at most; nothing of the values is read for it."""
        runs, side, parts = self._begin(camera), self.march.side, self._plan.parts
        met = np.zeros(parts, int)
        scene = self._scene(self._carried(False, False)[0])
        for first, count in runs:
            self._send(rays_of_camera(self._rays.buffer, camera), first, count, side)
            find_met(scene, count * side**2, parts, self._dt)
            met += self._rays.waits.waiting(parts) > 0
        samples = sum(int(n) * self._plan.count_of_samples(i) for i, n in enumerate(met) if n)
        sizes = samples * self.volume.samples.dtype.itemsize, self.volume.samples.nbytes
        return OutOfCoreForecast(parts, self._plan.largest, int((met > 0).sum()), len(runs), *sizes)

    # Before rays are sent: how the volume is cut, and how many pixels are marched at once.

    @property
    def _dt(self) -> float:
        return self.march.step * self.volume.voxel

    def _plan_for(self, eye: np.ndarray | None) -> PartPlan:
        try:
            plan = plan_of(self.volume.shape, self._room, int(self._lit), eye)
        except RaymarchError as error:
            raise RaymarchError(f"{error}; give it more memory, or take a coarser level") from error
        if plan.parts > MAX_PARTS:
            raise RaymarchError(
                f"the volume would be in {plan.parts:,} parts, want up to {MAX_PARTS:,}; give more memory"
            )
        return plan

    def _begin(self, camera: Camera) -> list[tuple[int, int]]:
        """Runs of pixels that are marched at once, once the parts are those for a camera."""
        index_from_world = np.linalg.inv(self.volume.world_from_index)
        eye = index_from_world[:3] @ np.append(camera.position, 1.0)
        ahead = index_from_world[:3, :3] @ -camera.world_from_camera[:3, 2]
        eye = None if camera.lens.parallel else eye
        total, side = camera.width * camera.height, self.march.side
        room = max(min(self._most_rays // side**2, total), 1)
        plan = self._plan_for(eye)
        is_new = self._rays.require(room * side**2, plan.parts)
        if is_new or plan != self._plan:
            waits, volume = self._rays.waits, self.volume
            where = volume.world_from_index, np.array(volume.shape) - 1.0, volume.shape, np.ones(3, int)
            place_level(waits.fields, *where, None, volume.activation)  # type: ignore[arg-type]  # of a grid's names
            waits.set_parts(plan.side, plan.offset, plan.counts)
            if plan != self._plan:
                self._plan, self._there = plan, NOWHERE
                self._ranges.clear()
            for number_, ends in self._ranges.items():
                if self._is_clear(*ends):
                    waits.set_clear(number_)
        self._rank = plan.order(eye, ahead)
        set_ray_settings(self._rays.buffer, self._grid, self.march)
        return [(first, min(room, total - first)) for first in range(0, total, room)]

    def _send(self, fill: Fill, first: int, count: int, side: int) -> np.ndarray:
        """Put the rays of a run of pixels into the buffer; which pixels they are."""
        pixels, march = fill(first, count, side), self.march
        if march.jittered:
            numbers = np.asarray(parts_of(pixels, side), np.int32)
            jitter_pixels(self._rays.buffer.fields, march.seed, numbers, march.jitter, march.step_jitter)
        return pixels

    # What rays carry, and on which journeys: rays through one traversal at a time, those of a pixel's area or centre.

    def _journeys(self, side: int, depth: bool, normals: bool) -> list[tuple[int, list[Seen]]]:
        image, *others = self._carried(depth, normals)
        apart = [one for one in others if side > 1 or _walk_of(one.mode) != _walk_of(image.mode)]
        together = [one for one in others if one not in apart]
        return [(side, [image, *together]), *([(1, apart)] if apart else [])]

    def _carried(self, depth: bool, normals: bool) -> list[Seen]:
        rule = self.march.rule
        plain, how = rule.plain or rule, rule.in_parts or InParts()
        found = [Seen(how.image or rule.image or IMAGE, rule, "image")]
        if depth:
            own = plain.in_parts.distance if plain.in_parts else None
            found.append(Seen(own or plain.distance or DISTANCE, plain, "depth"))
        if normals:
            found.append(Seen(rule.normal, rule, "normals") if rule.normal else Seen(NORMAL, plain, "normals"))
        return found

    def _scene(self, seen: Seen) -> PartScene:
        fields: PartFields = self._rays.waits.fields
        variant = self.march.variant(self._grid).replace(mode=seen.mode)
        return PartScene(
            self._grid.fields,
            self._rays.buffer.fields,
            variant,
            seen.integrand,
            part=fields,
            kept=getattr(fields, seen.kept),
            at_cell=_walk_of(seen.mode),
        )

    def _march(self, carried: Sequence[Seen], count: int, behind: Any) -> None:
        """March of the rays in the buffer through all parts that they come to."""
        scenes, waits, parts = [self._scene(one) for one in carried], self._rays.waits, self._plan.parts
        thin, here = self.march.min_transmittance, NOWHERE
        begin_rays(scenes[0], count, self._dt)
        for scene in scenes:
            begin_states(scene, count, self._dt)
        while True:
            find_waiting(scenes[0], count, parts, self._dt, here)
            waiting = waits.waiting(parts)
            if not waiting.any():
                break
            here = int(np.where(waiting > 0, self._rank, np.iinfo(np.int64).max).argmin())
            if not self._load(here):
                waits.set_clear(here)
                here = NOWHERE
                continue
            for one, scene in zip(carried, scenes, strict=True):
                least = self.march.min_weight if one.kept == "image" else 0.0
                go_through_part(scene, count, self._dt, thin, least, here)
        for scene in scenes:
            finish_states(scene, count, self._dt, list(behind))

    def _take(self, carried: Sequence[Seen], pixels: np.ndarray, side: int, seen: RayValues) -> None:
        """Put what rays have seen in its place."""
        (image, distance, normal), buffer, count = seen, self._rays.buffer, len(pixels)
        kinds = {one.kept for one in carried}
        if "image" in kinds:
            image[pixels] = buffer.image(count * side**2).reshape(count, side**2, -1).mean(1)
        if "depth" in kinds:
            distance[pixels] = buffer.depth(count)
        if normal is not None and "normals" in kinds:
            normal[pixels] = buffer.normals(count)

    # Parts on the device.

    def _load(self, here: int) -> bool:
        """Have a part on the device; False where nothing is seen of it, and it is not put there."""
        if here == self._there:
            return True
        first, last = self._plan.samples(here)
        values = self.volume.samples.values(first, last, runtime.dtype())
        self.watch()
        ends = self._ranges[here] = float(values.min()), float(values.max())
        if self.march.rule in EXTINCTION_MODES and ends[0] < 0:
            raise RaymarchError(
                f"values go from {ends[0]:g} to {ends[1]:g}, which mode {self.march.rule.name} takes for extinction,"
                " want 0 or more; show them in mode transfer, isosurface or maximum"
            )
        if self._is_clear(*ends):
            return False
        affine = self.volume.world_from_index.copy()
        affine[:3, 3] += affine[:3, :3] @ first
        grid, self._there = self._grid, NOWHERE
        grid.set_level(values.shape, affine)
        copies.density_in(values, grid.fields)
        if self._slopes:
            slopes_in(grid.fields, *grid.shape, grid.shape[0])
        if self.march.transfer is not None:
            grid.refresh_through(self.march.transfer)
        else:
            grid.occupy(np.ones(grid.cells, bool))
            grid.measure_occupancy()
        self._rays.waits.set_first(first)
        self._there = here
        return True

    def _is_clear(self, low: float, high: float) -> bool:
        """Whether nothing is seen of a part with values from low to high."""
        march = self.march
        if march.transfer is not None:
            return bool(march.transfer.is_clear(np.array(low), np.array(high)))
        if "iso" in march.rule.parameters:
            level = level_of(float(march.iso), self.volume.activation)  # type: ignore[arg-type]  # March asks for one
            return low >= level or high < level
        return march.rule in EXTINCTION_MODES and low == high == 0


@dataclass
class _Rays(Holder):
    """Rays on the device, and where they wait; as many as the largest image so far asked for."""

    _owners: ExitStack = field(default_factory=ExitStack)
    buffer: Any = None
    waits: Any = None

    def require(self, rays: int, parts: int) -> bool:
        """Have room for so many; whether it is new."""
        if self.buffer is not None and self.buffer.capacity >= rays and self.waits.parts >= parts:
            return False
        self.close()
        self.buffer = self._owners.enter_context(RayBuffer(rays))
        self.waits = self._owners.enter_context(PartRays(rays, parts))
        return True


def _walk_of(mode: Mode) -> Any:
    """What a mode does in cells; None where it goes by steps."""
    return mode.in_parts.at_cell if mode.in_parts else None


def _rooms(volume: FileVolume, memory: float, slopes: bool) -> tuple[int, int]:
    """Samples of a part and rays that there is room for."""
    left = memory * 1e9 - LIBRARY_BYTES
    width = np.dtype(runtime.dtype()).itemsize
    a_ray = bytes_a_ray() + numbers_a_ray(False) * width
    a_sample = volume.samples.dtype.itemsize + width * (5 if slopes else 2) + BYTES_BESIDE
    rays = max(left * RAYS_FRACTION, 0) // a_ray
    if rays < 1:
        raise RaymarchError(
            f"memory is {memory:g} GB, of which raymarch takes {LIBRARY_BYTES / 1e9:.2g} before any volume; give"
            f" {(LIBRARY_BYTES + MIN_ROOM) / 1e9:.2g} or more"
        )
    return int(left * (1 - RAYS_FRACTION) // a_sample), int(rays)


def require_in_parts(march: March) -> None:
    """RaymarchError for a march that does not go through parts of a volume."""
    rule, shading = march.rule, march.shading
    how, by_itself = rule.in_parts, rule.traverse is not None and rule.in_parts == InParts()
    image = (how.image if how else None) or rule.image or IMAGE
    if how is None or by_itself or image.pause is None:
        other = "; take mode x-ray-exact" if rule.name.startswith("x-ray") else "; take another"
        raise RaymarchError(f"mode {rule.name} does not go through parts of a volume{other}, or render it from memory")
    if shading is not None and shading.occlusion > 0:
        raise RaymarchError("shading has occlusion, which reaches beyond a part of a volume; leave it 0")
    if shading is not None and shading.matcap is not None:
        raise RaymarchError("shading has a matcap, which parts of a volume do not take; leave it out")
