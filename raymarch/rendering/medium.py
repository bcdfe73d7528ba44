"""Medium that rays are marched through: one volume, or several composited together, on the device.

Both kinds are marched by the same line, `medium.passes.march(medium.fields, rays.fields, *medium.call(count, black))`.
So what renders or differentiates is written once, for one volume and for several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Check, Wrong
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.device.table_fields import MemberSettings, TableMemory
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.kernel import MarchCall
from raymarch.kernels.integrator.passes import Passes, passes_of, refusing
from raymarch.kernels.integrator.stretches import Member
from raymarch.kernels.modes.emission_absorption import EMISSION_ABSORPTION
from raymarch.kernels.modes.together import march_together, march_together_adjoint, march_together_tangent
from raymarch.kernels.modes.transfer import TRANSFER
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import (
    EXACT,
    MARCH,
    SINGLE_RAYS,
    March,
    march_for,
    require_seen,
    set_ray_settings,
    skip_invisible,
    skip_unseen,
)
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume, require_colour_volume

MAX_VOLUMES = 4
COMMON_SETTINGS = ("jitter", "step_jitter", "seed")  # settings of which a ray has one
NO_RAY_GRADIENT = "volumes together have no gradient by cameras; detach the tensors of cameras"

AnyVolumes: TypeAlias = "AnyVolume | Sequence[AnyVolume]"
Marches: TypeAlias = "March | Sequence[March] | None"


# Rules of arguments: one volume or several, and how each is marched.


def _volumes(value: Any) -> Volume | list[Volume]:
    if not isinstance(value, (list, tuple)):
        return VOLUME.read(value)
    if not 1 <= len(value) <= MAX_VOLUMES:
        raise Wrong(f"is {len(value)} of them", "merge some, or leave some out")
    scans = [one for one in value if isinstance(one, ScalarVolume)]
    for name, cure in (("world", "give one.in_world(of the other)"), ("length_unit", "scale the one's affine")):
        if len(several := sorted({getattr(one, name) for one in scans} - {""})) > 1:
            raise Wrong(f"has the {name} {' and '.join(several)}", cure)
    return [VOLUME(f"volumes[{i}]", volume) for i, volume in enumerate(value)]


def _marches(value: Any, rule: Check = MARCH) -> March | list[March]:
    if not isinstance(value, (list, tuple)) or not value:
        return rule.read(value)
    return [rule(f"marches[{i}]", march) for i, march in enumerate(value)]


VOLUMES = replace(VOLUME, wanted=f"a Volume, or a list of 1 to {MAX_VOLUMES}", read=_volumes)
MARCHES = replace(MARCH, wanted=f"{MARCH.wanted}, or a list of one for each volume", read=_marches)
MARCHES_OF_SINGLE_RAYS = replace(MARCHES, read=lambda value: _marches(value, SINGLE_RAYS))


def several(volume: Volume | Sequence[Volume]) -> list[Volume]:
    """Volumes as a list: of one volume it is the only one."""
    return [volume] if isinstance(volume, Volume) else list(volume)


def marches_for(volume: Volume | Sequence[Volume], marches: Marches, lit: bool = False) -> list[March]:
    """March of each volume: the one given for it, or that of `march_for`, which may be `lit` where there is one volume.

    RaymarchError, with the volume's place, for one that its march does not show or that does not composite with others.
    """
    volumes = several(volume)
    given: list[March | None]
    if marches is None or isinstance(marches, March):
        given = [marches] * len(volumes)
    elif isinstance(volume, Volume):
        raise RaymarchError(f"marches are {len(marches)}, volume is one; give one rm.March")
    elif len(marches) != len(volumes):
        raise RaymarchError(f"marches are {len(marches)}, volumes {len(volumes)}; give one for each, or one for all")
    else:
        given = list(marches)
    found = [march_for(*pair, lit and len(volumes) == 1) for pair in zip(volumes, given, strict=True)]
    if len(volumes) > 1:
        _require_composited(volumes, found)
    for one, march in zip(volumes, found, strict=True):
        require_seen(one, march)
    return found


def single_marches_for(volume: Volume | Sequence[Volume], marches: Marches) -> list[March]:
    """March of each volume for its gradients, which are of single rays: those of `marches_for`, without early ray
    termination where none are given; of one volume `EXACT` then."""
    if marches is None and isinstance(volume, Volume):
        marches = EXACT
    exact: dict[str, Any] = {"min_transmittance": 0.0, "min_weight": 0.0} if marches is None else {}
    return [replace(march, supersample=1, **exact) for march in marches_for(volume, marches)]


def _require_composited(volumes: Sequence[Volume], marches: Sequence[March]) -> None:
    """RaymarchError for volumes and marches that do not make one medium."""
    for i, (volume, march) in enumerate(zip(volumes, marches, strict=True)):
        if march.mode == TRANSFER.name and march.rule is not TRANSFER:
            what = "preintegrated" if march.preintegrated else "shading"
            raise RaymarchError(f"marches[{i}] has {what}, which several volumes together have not; leave it out")
        if march.rule is not EMISSION_ABSORPTION and march.rule is not TRANSFER:
            cure = f"take mode {EMISSION_ABSORPTION.name} or {TRANSFER.name}"
            raise RaymarchError(f"marches[{i}]: mode {march.rule.name} does not composite with other volumes; {cure}")
        require_colour_volume(volume, "several volumes together")
        if volume.boxes > 1:
            raise RaymarchError(f"volumes[{i}] has nested boxes, want one box; take volume.nested(0), the innermost")
        if volume.ndc_from_world is not None:
            raise RaymarchError(f"volumes[{i}] is in NDC, want a box in the world; resample it to one")
    for name in COMMON_SETTINGS:
        if len(values := sorted({getattr(march, name) for march in marches})) > 1:
            pair = " and ".join(f"{x:g}" for x in values[:2])
            raise RaymarchError(f"marches have {name} {pair}, want one for all rays; give the same to each")


# The two kinds of media.


class Medium(Holder):
    """Medium of one or several volumes: their grids, and the marches that rays see them by.

    Attributes:
        grids, marches: of each volume.
        passes: kernels of the march, its adjoint and its tangent.
    """

    grids: Sequence[Grid]
    marches: Sequence[March]
    passes: Passes

    @property
    def march(self) -> March:
        """March of the first volume; its jitter is that of all."""
        return self.marches[0]

    @property
    def side(self) -> int:
        """Rays along each edge of a pixel: the most that any of the volumes asks for."""
        return max(march.side for march in self.marches)

    @property
    def batch(self) -> int:
        """Rays a launch, those of a pixel at least."""
        return max(min(march.batch for march in self.marches), self.side**2)

    @property
    def shows_normals(self) -> bool:
        """Whether the normals of what rays meet are known in the world: slopes in NDC are none of it."""
        return self.passes.normals is not None and self.grids[0].ndc_from_world is None

    @property
    def channels(self) -> int | None:
        """Count of the channels of images; None for colours."""
        return None if self.grids[0].colours == 3 else self.grids[0].colours

    def jitter(self, rays: RayBuffer, pixels: np.ndarray) -> None:
        """Put the jitter of rays of these numbers into a buffer, if the march has any."""
        if (s := self.march).jittered:
            jitter_pixels(rays.fields, s.seed, np.asarray(pixels, np.int32), s.jitter, s.step_jitter)


class OneVolume(Medium):
    """Medium of one volume: a grid, which it owns where it was made `of` a volume. Settings lie in the ray buffer."""

    def __init__(self, grid: Grid, march: March):
        self.grid, self.grids, self.marches = grid, [grid], [march]
        self._owners = ExitStack()

    @classmethod
    def of(cls, volume: Volume, march: March) -> OneVolume:
        """Medium of a volume to be seen, whose empty space is leapt over."""
        runtime.start()
        with ExitStack() as owners:
            rule = march.rule
            by_steps = rule.classifies and not rule.level_ends
            lit = by_steps and rule.shaded and march.shading is not None and march.shading.smooth
            grid = owners.enter_context(grid_for(volume, seen=True, slopes=lit))
            grid.upload(volume)
            skip_unseen(grid, volume, march)
            medium = cls(grid, march)
            medium._owners = owners.pop_all()
        return medium

    @property
    def passes(self) -> Passes:  # type: ignore[override]  # the march may be set to another
        """Kernels of the march's mode."""
        return passes_of(self.march.rule)

    @property
    def fields(self) -> Any:
        """Grid as kernels see it."""
        return self.grid.fields

    def tables(self, rays: RayBuffer) -> list[TableMemory]:
        """Memory of the volume's transfer function."""
        return [rays]

    def set_up(self, rays: RayBuffer, iso: float | None = None) -> None:
        """Put what the mode reads of the march into a buffer; `iso` is another value of a surface."""
        set_ray_settings(rays, self.grid, self.march, iso)

    def call(self, count: int, background: Sequence[float] | np.ndarray, dt: float | None = None) -> MarchCall:
        """Last arguments of a march of `count` rays over three numbers; `dt` [world unit] is the march's if None."""
        return self.march.call(self.grid, count, background, dt)


class TogetherCall(NamedTuple):
    """Last arguments of the kernels of several volumes, as `MarchCall` names them; each volume has its own variant."""

    count: int  # type: ignore[assignment]  # as a tuple has a method of that name
    dt: float
    min_transmittance: float
    min_weight: float
    background: ti.Vector


def _depth_is_there(*_: Any) -> None:
    """Depth of several volumes: their march puts it beside the image."""


_refuse: Callable = refusing(NO_RAY_GRADIENT)
TOGETHER = Passes(
    march=march_together,
    adjoint=march_together_adjoint,
    tangent=march_together_tangent,
    geometry_adjoint=_refuse,
    geometry_tangent=_refuse,
    both_adjoints=_refuse,
    depth=_depth_is_there,
)


class SeveralVolumes(Medium):
    """Medium of several volumes, whose extinctions add up; owns their memory until `close`. Each has its own settings.

    Args:
        volumes, marches: two to four, and how each is read, as of `marches_for`.
        slots: gradient buffers; 0 for volumes that are only seen.
        skip: whether empty space is leapt over, and a volume of which nothing is seen left out.
    """

    passes = TOGETHER

    def __init__(self, volumes: Sequence[Volume], marches: Sequence[March], slots: int = 0, skip: bool = True):
        self.volumes, self.marches = list(volumes), list(marches)
        self.step = min(march.step * volume.voxel for volume, march in zip(self.volumes, self.marches, strict=True))
        runtime.start()
        with ExitStack() as owners:
            self.grids = [owners.enter_context(grid_for(volume, slots=slots)) for volume in self.volumes]
            self.settings = [owners.enter_context(MemberSettings()) for _ in self.volumes]
            self.load(self.volumes, skip)
            self._owners = owners.pop_all()

    def load(self, volumes: Sequence[Volume], skip: bool = False) -> None:
        """Upload of volumes of these shapes; with `skip` empty space is leapt over."""
        for grid, settings, volume, march in zip(self.grids, self.settings, volumes, self.marches, strict=True):
            grid.upload(volume)
            if skip:
                skip_invisible(grid, volume, march)
            settings.set_shown(not skip or bool(grid.occupied_cells().any()))

    @property
    def fields(self) -> tuple[Member, ...]:
        """Volumes as kernels see them."""
        jittered = self.march.jittered
        return tuple(
            Member(grid.fields, own.fields, grid.variant.replace(mode=m.rule, jittered=jittered, clipped=m.clipped))
            for grid, own, m in zip(self.grids, self.settings, self.marches, strict=True)
        )

    def tables(self, rays: RayBuffer) -> list[TableMemory]:
        """Memory of each volume's transfer function."""
        return list(self.settings)

    def set_up(self, rays: RayBuffer, iso: float | None = None) -> None:
        """Put each volume's table and planes beside it; a buffer has none of them."""
        for settings, march in zip(self.settings, self.marches, strict=True):
            if march.transfer is not None:
                settings.set_table(march.transfer)
            settings.set_planes(np.zeros((0, 4)) if march.clip is None else march.clip.half_spaces)

    def call(self, count: int, background: Sequence[float] | np.ndarray, dt: float | None = None) -> TogetherCall:
        """Last arguments of a march of `count` rays over three numbers; `dt` [world unit] is the shortest of all
        marches' if None."""
        thin = min(march.min_transmittance for march in self.marches)
        weight = min(march.min_weight for march in self.marches)
        behind = ti.Vector([float(c) for c in background])
        return TogetherCall(count, self.step if dt is None else dt, thin, weight, behind)


AnyMedium: TypeAlias = "OneVolume | SeveralVolumes"


def medium_of(volumes: Sequence[Volume], marches: Sequence[March]) -> AnyMedium:
    """Medium of volumes to be seen, each by its march."""
    if len(volumes) == 1:
        return OneVolume.of(volumes[0], marches[0])
    return SeveralVolumes(volumes, marches)
