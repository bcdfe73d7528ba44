"""March through a part of a volume that is read from its file: the part on the device, and the rays that wait for it.

What one process renders alone with, and what a worker goes through parts with for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import NO_COLOUR_DEGREE, place_level
from raymarch.device.part_rays import PartFields, PartRays
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.kernels.field import copies
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.distance import DISTANCE
from raymarch.kernels.integrator.integrand import Integrand
from raymarch.kernels.integrator.mode import InParts, Mode
from raymarch.kernels.integrator.normal import NORMAL
from raymarch.kernels.integrator.parts import NOWHERE, PartScene, go_through_part
from raymarch.kernels.light.gradient import slopes_in
from raymarch.rendering.march_settings import EXTINCTION_MODES, March, level_of, set_ray_settings, skip_invisible
from raymarch.volumes.default_table import has_values_alone
from raymarch.volumes.file_volume import FileVolume
from raymarch.volumes.part_plan import PartPlan

Ends = tuple[float, float]


@dataclass(frozen=True)
class Seen:
    """One thing that rays carry through the parts: an integrand, the mode that it is of, and where its numbers lie."""

    integrand: Integrand
    mode: Mode
    kept: str


def walk_of(mode: Mode) -> Any:
    """What a mode does in cells; None where it goes by steps."""
    return mode.in_parts.at_cell if mode.in_parts else None


def lit_by_slopes(march: March) -> bool:
    """Whether a march lights samples by the smooth slope of the value, which a grid then holds."""
    return march.rule.shaded and march.rule.classifies and bool(march.shading and march.shading.smooth)


def shows_colours(volume: FileVolume, march: March) -> bool:
    """Whether a march shows a volume's own colours."""
    return volume.samples.coloured() and march.rule.colour and not march.rule.classifies


def features_on_device(volume: FileVolume, march: March) -> int:
    """Numbers that a sample has on the device beside its value: of its colours, or its slope."""
    return volume.samples.channels if shows_colours(volume, march) else 3 if lit_by_slopes(march) else 0


class PartMarch(Holder):
    """March of rays through parts of a volume, one of which is on the device at a time; `close` frees the memory.

    Args:
        volume: whose values stay in its file.
        march: how rays see it.
        shape: samples (x, y, z) that a part has at most.

    Attributes:
        plan: how the volume is cut, once `begin` said so.
        ranges: least and greatest value of the parts that were read, by their numbers.
        rays: on the device.
    """

    def __init__(self, volume: FileVolume, march: March, shape: Sequence[int]):
        self.volume, self.march = volume, march
        self.plan: PartPlan | None = None
        self.ranges: dict[int, Ends] = {}
        self._there, self._slopes, self._colours = NOWHERE, lit_by_slopes(march), shows_colours(volume, march)
        with ExitStack() as owners:
            degree = volume.degree if self._colours else NO_COLOUR_DEGREE
            of_grid = 0 if self._slopes else degree
            self._grid = owners.enter_context(Grid(shape, of_grid, block=1, slopes=self._slopes))
            self.rays = WaitingRays(degree)
            owners.enter_context(self.rays)
            self._owners = owners.pop_all()
        self._grid.set_activation(volume.activation)

    @property
    def dt(self) -> float:
        """Length of a step [world unit]."""
        return self.march.step * self.volume.voxel

    def begin(self, plan: PartPlan, rays: int) -> None:
        """Have room for so many rays, that see the volume cut by a plan."""
        is_new = self.rays.require(rays, plan.parts)
        if is_new or plan != self.plan:
            waits, volume = self.rays.waits, self.volume
            where = volume.world_from_index, np.array(volume.shape) - 1.0, volume.shape, np.ones(3, int)
            place_level(waits.fields, *where, None, volume.activation)  # type: ignore[arg-type]  # of a grid's names
            waits.set_parts(plan.side, plan.offset, plan.counts)
            if plan != self.plan:
                self.plan = plan
                self.ranges.clear()
            self._there = NOWHERE  # its first sample is known to the rays that were
            for number, ends in self.ranges.items():
                if self._is_clear(*ends):
                    waits.set_clear(number)
        set_ray_settings(self.rays.buffer, self._grid, self.march)

    # What rays carry.

    def carried(self, depth: bool, normals: bool) -> list[Seen]:
        """The image, and what is asked for beside it."""
        rule = self.march.rule
        plain, how = rule.plain or rule, rule.in_parts or InParts()
        found = [Seen(how.image or rule.image or IMAGE, rule, "image")]
        if depth:
            own = plain.in_parts.distance if plain.in_parts else None
            found.append(Seen(own or plain.distance or DISTANCE, plain, "depth"))
        if normals:
            found.append(Seen(rule.normal, rule, "normals") if rule.normal else Seen(NORMAL, plain, "normals"))
        return found

    def scene(self, seen: Seen) -> PartScene:
        """Scene of a march that makes one thing."""
        fields: PartFields = self.rays.waits.fields
        variant = self.march.variant(self._grid).replace(mode=seen.mode)
        return PartScene(
            self._grid.fields,
            self.rays.buffer.fields,
            variant,
            seen.integrand,
            part=fields,
            kept=getattr(fields, seen.kept),
            at_cell=walk_of(seen.mode),
        )

    def go_through(self, carried: Sequence[Seen], count: int, here: int) -> None:
        """March, through the part that is on the device, of those of the first rays that wait for it."""
        for one in carried:
            least = self.march.min_weight if one.kept == "image" else 0.0
            go_through_part(self.scene(one), count, self.dt, self.march.min_transmittance, least, here)

    # Parts on the device.

    def load(self, here: int) -> bool:
        """Have a part on the device; False where nothing is seen of it, and it is not put there.

        RaymarchError for values that are no numbers, and that a mode does not show.
        """
        assert self.plan is not None
        if here == self._there:
            return True
        first, last = self.plan.samples(here)
        values = self.volume.samples.values(first, last, runtime.dtype())
        ends = self.ranges[here] = float(values.min()), float(values.max())
        if self.march.rule in EXTINCTION_MODES and has_values_alone(self.volume) and ends[0] < 0:
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
        most = 0.0
        if self._colours:
            features = self.volume.samples.features_of(first, last, runtime.dtype())
            copies.upload(values, features, grid.fields)
            most = max(float(features.max()), -float(features.min()))
        else:
            copies.density_in(values, grid.fields)
        if self._slopes:
            slopes_in(grid.fields, *grid.shape, grid.shape[0])
        grid.occupy(np.ones(grid.cells, bool))
        grid.measure_occupancy()
        if "iso" not in self.march.rule.parameters:
            skip_invisible(grid, self.volume, self.march, most)
        self.rays.waits.set_first(first)
        self._there = here
        return True

    def _is_clear(self, low: float, high: float) -> bool:
        """Whether nothing is seen of a part with values from low to high."""
        march = self.march
        if march.transfer is not None:
            sigma = self.volume.activation.sigma
            return bool(march.transfer.is_clear(sigma(np.array(low)), sigma(np.array(high))))
        if "iso" in march.rule.parameters:
            level = level_of(float(march.iso), self.volume.activation)  # type: ignore[arg-type]  # March asks for one
            return low >= level or high < level
        return march.rule in EXTINCTION_MODES and not self.volume.activation.sigma(np.array([low, high])).any()


@dataclass
class WaitingRays(Holder):
    """Rays on the device, and where they wait; as many as the most that were asked for so far.

    Attributes:
        degree: of the harmonics of the volume's colours.
    """

    degree: int
    _owners: ExitStack = field(default_factory=ExitStack)
    buffer: Any = None
    waits: Any = None

    def require(self, rays: int, parts: int) -> bool:
        """Have room for so many; whether it is new."""
        if self.buffer is not None and self.buffer.capacity >= rays and self.waits.parts >= parts:
            return False
        self.close()
        self.buffer = self._owners.enter_context(RayBuffer(rays))
        self.waits = self._owners.enter_context(PartRays(rays, parts, self.degree))
        return True
