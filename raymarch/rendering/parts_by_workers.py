"""Parts of a volume larger than memory, gone through by many workers, each of which reads its part for itself.

The process that asks keeps the rays and marches nothing. To a worker travel the path of the file, the number of a part
and the rays that wait for it, as the numbers that they are on the device; back come where each goes on and what it
carries. Parts that no ray comes to any more but those that wait for them do not depend on one another: workers go
through them at the same time, and each part is read once an image, by one of them. Each part that is through may open
others, so nobody waits for the slowest of a row.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.io.volumes.parts_of_file import open_in_parts
from raymarch.io.volumes.volume_file import FORMAT
from raymarch.kernels.integrator.part_arrays import (
    RAY_NUMBERS,
    kept_in,
    kept_out,
    then_in,
    then_out,
    waiting_in,
    waiting_out,
)
from raymarch.rendering.march_settings import March
from raymarch.rendering.part_march import Ends, PartMarch, Seen
from raymarch.rendering.render_many import VolumeFile
from raymarch.tasks.executors import Crew
from raymarch.tasks.last_made import LastMade
from raymarch.volumes.file_volume import FileVolume
from raymarch.volumes.part_plan import PartPlan

RAYS_AT_ONCE = 1 << 16  # that a worker has on the device


@dataclass(frozen=True)
class FileInParts:
    """A file that is read in parts, as a worker finds it, and which of its channels, times and levels it is of."""

    file: VolumeFile
    channel: int | None = None
    time: int | None = None
    level: int | None = None

    def open(self) -> FileVolume:
        """The volume, of whose values none is read yet; RaymarchError where this machine does not see the file."""
        self.file.require()
        kind = FORMAT("format", self.file.format) if self.file.format else None
        place = {"channel": self.channel, "time": self.time, "level": self.level}
        return open_in_parts(self.file.path, format=kind, remarks=False, **place)


@dataclass(frozen=True)
class Recipe:
    """What a worker makes its `PartMarch` of: a file, of `samples` along x, y and z, a march, and the samples that a
    part has at most."""

    file: FileInParts
    samples: tuple[int, ...]
    march: March
    largest: tuple[int, ...]

    def march_of_parts(self) -> PartMarch:
        """The march, in this process; RaymarchError where this machine sees another file."""
        volume = self.file.open()
        if volume.shape != self.samples:
            raise RaymarchError(
                f"{self.file.file.path}: the worker on {platform.node()} sees another volume there, of"
                f" {' x '.join(map(str, volume.shape))} samples; put one where all workers see it"
            )
        return PartMarch(volume, self.march, self.largest)


@dataclass(frozen=True, eq=False)
class RaysOfPart:
    """Rays that wait for a part, as they travel.

    Attributes:
        recipe: what they are marched with.
        plan, number: the part.
        names: of what they carry.
        numbers, cells: (ray, RAY_NUMBERS), (ray, 3): the rays, and where each goes on.
        kept: (ray, n) numbers of each of `names`.
    """

    recipe: Recipe
    plan: PartPlan
    number: int
    names: tuple[str, ...]
    numbers: np.ndarray
    cells: np.ndarray
    kept: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class BehindPart:
    """Rays behind a part: `spots` (ray, 2) and `cells` (ray, 3) where each goes on, and what it carries; None of a part
    that shows nothing, by its least and greatest value `ends`."""

    ends: Ends
    spots: np.ndarray | None = None
    cells: np.ndarray | None = None
    kept: tuple[np.ndarray, ...] = ()


_last_march: LastMade[PartMarch] = LastMade()


def go_through(rays: RaysOfPart) -> BehindPart:
    """Rays behind a part, in a worker; RaymarchError for values that a march does not show."""
    rays.recipe.file.file.require()  # of each part: what is written anew while others are at it is no image
    march, number, count = _last_march.of(rays.recipe, rays.recipe.march_of_parts), rays.number, len(rays.cells)
    march.begin(rays.plan, RAYS_AT_ONCE)
    if not march.load(number):
        return BehindPart(march.ranges[number])
    carried = [one for one in march.carried(True, True) if one.kept in rays.names]
    spots, cells = np.empty((count, 2), rays.numbers.dtype), np.empty((count, 3), np.int32)
    kept = tuple(np.empty_like(one) for one in rays.kept)
    buffer, waits = march.rays.buffer.fields, march.rays.waits.fields
    for first in range(0, count, RAYS_AT_ONCE):
        run = slice(first, first + RAYS_AT_ONCE)
        index = np.arange(len(cells[run]), dtype=np.int32)
        waiting_in(index, rays.numbers[run], rays.cells[run], buffer, waits, number)
        for one, values in zip(carried, rays.kept, strict=True):
            kept_in(index, values[run], getattr(waits, one.kept))
        march.go_through(carried, len(index), number)
        then_out(index, waits, spots[run], cells[run])
        for one, values in zip(carried, kept, strict=True):
            kept_out(index, getattr(waits, one.kept), values[run])
    return BehindPart(march.ranges[number], spots, cells, kept)


@dataclass
class OpenParts:
    """Parts that can be gone through now, one after the other, with the rays that wait for each; it has ended while
    there is none, and goes on as results open others.

    Attributes:
        opened: -> numbers of such parts, those under way among them, as the rays wait now.
        pack: number, places of its rays -> what travels.
    """

    march: PartMarch
    count: int
    opened: Callable[[], Sequence[int]]
    pack: Callable[[int, np.ndarray], RaysOfPart]
    under_way: deque[tuple[int, np.ndarray]] = field(default_factory=deque)
    _next: deque[int] = field(default_factory=deque)

    def __iter__(self) -> OpenParts:
        return self

    def look(self) -> None:
        """Find them anew, after rays came back."""
        at_work = {number for number, _ in self.under_way}
        self._next = deque(number for number in self.opened() if number not in at_work)

    def __next__(self) -> RaysOfPart:
        if not self._next:
            raise StopIteration
        number = self._next.popleft()
        index = np.flatnonzero(self.march.rays.waits.waits(self.count) == number).astype(np.int32)
        self.under_way.append((number, index))
        return self.pack(number, index)


@dataclass(frozen=True)
class PartWorkers:
    """Workers that go through parts of one file's volume."""

    crew: Crew
    recipe: Recipe

    def go_through(
        self,
        march: PartMarch,
        carried: Sequence[Seen],
        count: int,
        opened: Callable[[], Sequence[int]],
        done: Callable[[], object],
    ) -> None:
        """Have the first rays of a march, of which nothing but their places is known here, go through all parts that
        they come to; `opened` gives the parts that no ray comes to any more but those that wait for them, and `done` is
        called as one is through."""
        names = tuple(one.kept for one in carried)
        parts = OpenParts(march, count, opened, lambda number, index: self._pack(march, names, number, index))
        parts.look()
        for behind in self.crew.results_while(go_through, parts):
            _put_back(march, names, *parts.under_way.popleft(), behind)
            parts.look()
            done()

    def _pack(self, march: PartMarch, names: tuple[str, ...], number: int, index: np.ndarray) -> RaysOfPart:
        assert march.plan is not None
        numbers, waits = np.empty((len(index), RAY_NUMBERS), runtime.dtype()), march.rays.waits.fields
        cells = np.empty((len(index), 3), np.int32)
        waiting_out(index, march.rays.buffer.fields, waits, numbers, cells)
        kept = []
        for name in names:
            of_rays = getattr(waits, name)
            kept.append(np.empty((len(index), of_rays.n), runtime.dtype()))
            kept_out(index, of_rays, kept[-1])
        return RaysOfPart(self.recipe, march.plan, number, names, numbers, cells, tuple(kept))


def _put_back(march: PartMarch, names: tuple[str, ...], number: int, index: np.ndarray, behind: BehindPart) -> None:
    """Put rays that went through a part, or that are to pass it, where they were."""
    march.ranges[number] = behind.ends
    waits = march.rays.waits
    if behind.spots is None:
        waits.set_clear(number)
        return
    then_in(index, behind.spots, behind.cells, waits.fields)
    for name, values in zip(names, behind.kept, strict=True):
        kept_in(index, values, getattr(waits.fields, name))
