"""Members of a multi-volume march on the device: each volume's grid and settings, and the call that all share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.device.brick_grid import grid_for
from raymarch.device.member_fields import MemberSettings
from raymarch.device.owner import Holder
from raymarch.kernels.march.together import Member
from raymarch.rendering.march_settings import March
from raymarch.rendering.together_settings import Marches, marches_for, step_of
from raymarch.rendering.visibility import skip_invisible
from raymarch.volumes.volume import Volume


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
