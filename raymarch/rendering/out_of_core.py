"""Out-of-core rendering: a volume larger than memory, read and marched part by part (`kernels/integrator/parts`).

The image is that of the whole volume in memory but for the rounding of sums. Parts are taken in the order in which rays
meet them; one that no ray comes to, behind what is opaque or beside the image, is not read.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Colour, flag, number, optional
from raymarch.arguments.checks import path as PATH
from raymarch.arguments.declared import checked
from raymarch.device.memory import LIBRARY_BYTES, available_bytes, numbers_a_ray
from raymarch.device.part_rays import MAX_PARTS, bytes_a_ray
from raymarch.device.pool import Holder
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.parts_of_file import open_in_parts
from raymarch.io.volumes.volume_file import FORMAT
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.mode import InParts
from raymarch.kernels.integrator.parts import (
    NOWHERE,
    begin_rays,
    begin_states,
    find_met,
    find_waiting,
    finish_states,
)
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import EXTINCTION_MODES, MARCH, March, march_for, require_seen
from raymarch.rendering.part_march import PartMarch, Seen, features_on_device, walk_of
from raymarch.rendering.parts_by_workers import FileInParts, PartWorkers, Recipe
from raymarch.rendering.ray_batches import Fill, parts_of, rays_of_camera, require_room
from raymarch.rendering.render_many import VolumeFile
from raymarch.rendering.renderer import BACKGROUND, ONE_CAMERA, RayValues, Rendering, rendering_of
from raymarch.tasks.executors import EXECUTOR, Processes, Where, open_crew
from raymarch.tasks.worker import Device
from raymarch.views.views import require_colour
from raymarch.volumes.file_volume import FileVolume
from raymarch.volumes.part_plan import PartPlan, plan_of
from raymarch.volumes.selection import INDEX

log = logging.getLogger(__name__)

DEFAULT_MEMORY = 2.0  # GB
RAYS_FRACTION = 0.25  # of what is left beside the libraries, at most
MIN_ROOM = 100_000_000  # bytes of parts and rays that are worth a try
BYTES_BESIDE = 1  # a sample, of marks of empty space and of what reading takes for a moment
MEMORY = number(0, 1e6, above=True, below=True, unit="GB")
NO_PART = (2, 2, 2)  # samples on the device of a process whose workers read the parts


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
        parts_at_once: the most parts of the same distance from the eye's: about so many workers find work together.
    """

    parts: int
    part_shape: tuple[int, int, int]
    parts_met: int
    passes: int
    bytes_read: int
    volume_bytes: int
    parts_at_once: int = 1

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


class OutOfCoreRenderer(Holder):
    """Renderer of a volume larger than memory, read from its file part by part; `close` it, or use it in a `with`.

    Images are those of `rm.render` of the whole volume to 1e-6: samples lie at the same places, and rays end where they
    have seen enough. A part that nobody sees, by the transfer function, behind what is opaque or beside the image, is
    not marched, and not read where that is known before.

    Args:
        path: of a scan or a simulation, one value a voxel: OME-Zarr, .h5 of `rm.save`, .npy, or unpacked .nrrd, .nii,
            .mha, .mrc, .tif or .vti; or .h5 of a fitted volume with colours, dense or in bricks. It stays as it is, and
            must not change while it is rendered.
        march: how rays see it; as `rm.render` chooses it if not given, by some of the values. All modes but
            "x-ray-joseph", without occlusion and matcaps.
        memory: how much the process may take [GB], its libraries included; parts are as large as it allows. With an
            executor that is so of each worker, too, and of this process, which holds the rays alone.
        format: as of `rm.load`.
        channel, time, level: which of several channels, points in time and levels of a pyramid, from 0; the finest
            level if not given.
        executor: who goes through parts, as `rm.render_many` takes it, workers that all see the file by this path; None
            for this process. Workers are kept until `close`, and the image has the same bytes.

    Raises RaymarchError for a file that is not read in parts, a march that does not go through parts, and too little
    memory; as parts are read for values that are no numbers, and for workers that are not there, do not see the file,
    or have another version of raymarch.

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
        executor=EXECUTOR,
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
        executor: Where = None,
    ):
        self._owners = ExitStack()
        place: dict[str, Any] = {"channel": channel, "time": time, "level": level}
        volume = open_in_parts(path, format=format, **place)  # type: ignore[arg-type]  # its rule makes a record of it
        file = None
        if executor is not None:
            file = FileInParts(VolumeFile.of(path, format=getattr(format, "name", None)), **place)
        self._set_up(volume, march, memory, file, executor, Device())

    @classmethod
    def of(
        cls,
        volume: FileVolume,
        march: March | None,
        memory: float,
        file: FileInParts | None = None,
        executor: Where = None,
        device: Device | None = None,
    ) -> OutOfCoreRenderer:
        """Renderer of a volume that is open already; with an executor, of `file`, by workers, each on a `device`."""
        made = cls.__new__(cls)
        made._owners = ExitStack()
        made._set_up(volume, march, memory, file, executor, device or Device())
        return made

    def _set_up(
        self,
        volume: FileVolume,
        march: March | None,
        memory: float,
        file: FileInParts | None,
        executor: Where,
        device: Device,
    ) -> None:
        self.volume, self.march = volume, march_for(volume, march, lit=True)
        require_in_parts(self.march)
        if self.march.rule not in EXTINCTION_MODES or volume.samples.coloured():  # else values are looked at as read
            require_seen(volume, self.march)
        running = runtime.start()
        self._room, self._most_rays = _rooms(volume, memory, features_on_device(volume, self.march))
        largest = self._plan_for(None).largest
        self._rank = np.zeros(1)
        self._from: tuple[int | None, ...] = (None, None, None)
        self.watch = lambda: None
        self._workers: PartWorkers | None = None
        with ExitStack() as owners:
            self._parts = owners.enter_context(PartMarch(volume, self.march, largest if executor is None else NO_PART))
            self._hired = owners.enter_context(ExitStack())
            if executor is not None:
                assert file is not None
                crew = self._hired.enter_context(open_crew(executor, replace(device, precision=running.precision)))
                if isinstance(crew, Processes):
                    _warn_of_memory(crew.count, memory)
                self._workers = PartWorkers(crew, Recipe(file, volume.shape, self.march, largest))
            self._owners = owners.pop_all()

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
                pixels = self._send(rays_of_camera(self._parts.rays.buffer, camera), first, count, of_side)
                self._march(carried, count * of_side**2, behind)
                self._take(carried, pixels, of_side, seen)
        return rendering_of(camera, seen)

    @checked(camera=ONE_CAMERA)
    def forecast(self, camera: Camera) -> OutOfCoreForecast:
        """What an image by `camera` takes at most; nothing of the values is read for it."""
        runs, side, march = self._begin(camera), self.march.side, self._parts
        plan = self._plan
        met = np.zeros(plan.parts, int)
        scene = march.scene(march.carried(False, False)[0])
        for first, count in runs:
            self._send(rays_of_camera(march.rays.buffer, camera), first, count, side)
            find_met(scene, count * side**2, plan.parts, march.dt)
            met += march.rays.waits.waiting(plan.parts) > 0
        samples = sum(int(n) * plan.count_of_samples(i) for i, n in enumerate(met) if n)
        sizes = samples * self.volume.samples.bytes_of_sample, self.volume.samples.nbytes
        most = int(np.bincount(self._rank[met > 0], minlength=1).max())
        return OutOfCoreForecast(plan.parts, plan.largest, int((met > 0).sum()), len(runs), *sizes, most)

    @property
    def workers(self) -> int | None:
        """How many workers go through parts; None where none do, or it is not known how many."""
        return None if self._workers is None else self._workers.crew.known

    # Before rays are sent: how the volume is cut, and how many pixels are marched at once.

    @property
    def _plan(self) -> PartPlan:
        assert self._parts.plan is not None  # once a camera was there
        return self._parts.plan

    def _plan_for(self, eye: np.ndarray | None) -> PartPlan:
        try:
            plan = plan_of(self.volume.shape, self._room, int(self.march.rule.shaded), eye)
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
        self._parts.begin(plan, room * side**2)
        self._rank, self._from = plan.order(eye, ahead), plan.first_place(eye, ahead)
        return [(first, min(room, total - first)) for first in range(0, total, room)]

    def _send(self, fill: Fill, first: int, count: int, side: int) -> np.ndarray:
        """Put the rays of a run of pixels into the buffer; which pixels they are."""
        pixels, march = fill(first, count, side), self.march
        if march.jittered:
            numbers = np.asarray(parts_of(pixels, side), np.int32)
            jitter_pixels(self._parts.rays.buffer.fields, march.seed, numbers, march.jitter, march.step_jitter)
        return pixels

    # What rays carry, and on which journeys: rays through one traversal at a time, those of a pixel's area or centre.

    def _journeys(self, side: int, depth: bool, normals: bool) -> list[tuple[int, list[Seen]]]:
        image, *others = self._parts.carried(depth, normals)
        apart = [one for one in others if side > 1 or walk_of(one.mode) != walk_of(image.mode)]
        together = [one for one in others if one not in apart]
        return [(side, [image, *together]), *([(1, apart)] if apart else [])]

    def _march(self, carried: Sequence[Seen], count: int, behind: Any) -> None:
        """March of the rays in the buffer through all parts that they come to."""
        march, waits, parts = self._parts, self._parts.rays.waits, self._plan.parts
        scenes, here = [march.scene(one) for one in carried], NOWHERE
        begin_rays(scenes[0], count, march.dt)
        for scene in scenes:
            begin_states(scene, count, march.dt)

        def waiting(here: int) -> np.ndarray:
            """How many rays wait for each part, once they went through one."""
            find_waiting(scenes[0], count, parts, march.dt, here)
            return waits.waiting(parts)

        if self._workers is not None:
            self._have_gone_through(self._workers, carried, count, lambda: waiting(NOWHERE))
        else:
            while (there := waiting(here)).any():
                here = self._go_through_first(carried, count, there)
        for scene in scenes:
            finish_states(scene, count, march.dt, list(behind))

    def _go_through_first(self, carried: Sequence[Seen], count: int, waiting: np.ndarray) -> int:
        """March through the part that comes first of those that rays wait for; which it is, if any of it is seen."""
        here = int(np.where(waiting > 0, self._rank, np.iinfo(np.int64).max).argmin())
        is_seen = self._load(here)
        self.watch()
        if not is_seen:
            self._parts.rays.waits.set_clear(here)
            return NOWHERE
        self._parts.go_through(carried, count, here)
        return here

    def _load(self, here: int) -> bool:
        return self._parts.load(here)

    def _have_gone_through(
        self, workers: PartWorkers, carried: Sequence[Seen], count: int, waiting: Callable[[], np.ndarray]
    ) -> None:
        """Have workers go through all parts that rays come to."""
        plan, first, rank = self._plan, self._from, self._rank

        def opened() -> list[int]:
            """Parts that can be gone through, those first that others wait for most."""
            return sorted(plan.open_parts(waiting(), first).tolist(), key=rank.__getitem__)

        try:
            workers.go_through(self._parts, carried, count, opened, self.watch)
        except KeyboardInterrupt as error:  # what they are at is not waited for
            self._hired.__exit__(type(error), error, error.__traceback__)
            raise

    def _take(self, carried: Sequence[Seen], pixels: np.ndarray, side: int, seen: RayValues) -> None:
        """Put what rays have seen in its place."""
        (image, distance, normal), buffer, count = seen, self._parts.rays.buffer, len(pixels)
        kinds = {one.kept for one in carried}
        if "image" in kinds:
            image[pixels] = buffer.image(count * side**2).reshape(count, side**2, -1).mean(1)
        if "depth" in kinds:
            distance[pixels] = buffer.depth(count)
        if normal is not None and "normals" in kinds:
            normal[pixels] = buffer.normals(count)


def _warn_of_memory(workers: int, memory: float) -> None:
    """Warning of more memory for all workers of this machine than it has left."""
    free = available_bytes() / 1e9
    if workers * memory > free:
        log.warning(
            "%d workers of up to %.3g GB each, and %.3g GB are free here; where that is too much, give less memory or"
            " fewer workers",
            workers,
            memory,
            free,
        )


def _rooms(volume: FileVolume, memory: float, features: int) -> tuple[int, int]:
    """Samples of a part and rays that there is room for, a sample having so many numbers beside its value."""
    left = memory * 1e9 - LIBRARY_BYTES
    width = np.dtype(runtime.dtype()).itemsize
    a_ray = bytes_a_ray() + numbers_a_ray(False) * width
    copied = features if volume.samples.coloured() else 0  # for the device, beside what was read
    read = volume.samples.dtype.itemsize * (1 + copied)
    a_sample = read + width * (2 + features + copied) + BYTES_BESIDE
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
