"""Source of pictures: a volume on the device, or the grid of a running fit."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.arrays import Colour
from raymarch.data.default_table import default_table, has_values_alone, range_of
from raymarch.data.value_contents import apart
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.memory import BATCH
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.clip import Clip
from raymarch.kernels.march.modes import MODES
from raymarch.rendering.default_look import DefaultLook, default_look
from raymarch.rendering.march_settings import March
from raymarch.rendering.ray_settings import require_seen, skip_unseen
from raymarch.viewer.look import Look, Slice
from raymarch.views.views import Views
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

if TYPE_CHECKING:
    from raymarch.fitting.fitter import Fitter

SMALL = 1 << 16  # rays a launch on the CPU, of which a slice of time has fewer


class Source(Holder):
    """Source of pictures; `close` it.

    Attributes:
        volume: as given; None of a fit.
        views: of the image set, or None.
        table, iso: what a look has that names none.
        grows: whether its values go on changing, as of a running fit.
    """

    volume: AnyVolume | None = None
    values = False
    slices = False
    grows = False
    look = Look()
    table: TransferFunction | None = None
    iso: float | None = None
    views: Views | None
    buffer: RayBuffer

    @property
    def grid(self) -> Grid:
        """Samples on the device."""
        raise NotImplementedError

    @property
    def background(self) -> Colour:
        """Colour behind it."""
        raise NotImplementedError

    @property
    def side(self) -> int:
        """Rays along each edge of a pixel of its finest pictures, as of `rm.render`."""
        raise NotImplementedError

    @property
    def modes(self) -> list[str]:
        """Modes that show it."""
        raise NotImplementedError

    def require(self, look: Look) -> None:
        """RaymarchError for a look whose mode is not shown."""
        raise NotImplementedError

    def require_slice(self, slice: Slice | None) -> None:
        """RaymarchError for a slice where none can be shown."""
        if slice is not None and not self.slices:
            raise RaymarchError("slice: this volume has none to show, want one in a box of the world; look at it whole")

    def prepare(self, look: Look) -> March:
        """March of a look, and empty space marked for it; RaymarchError where there is none."""
        raise NotImplementedError


def _rays() -> int:
    runtime.start()
    return SMALL if runtime.on_cpu() else BATCH


class VolumeSource(Source):
    """Volume on the device, seen as `begin` says at first, or as `default_look` does.

    Attributes:
        begin: the look to begin with, and from where.
        planes: clipping planes that stay, whatever box a page clips to.
    """

    def __init__(
        self,
        volume: AnyVolume,
        views: Views | None = None,
        begin: DefaultLook | None = None,
        window: tuple[float, float] | None = None,
    ) -> None:
        self.volume, self.views = volume, views
        self.seen: Volume = VOLUME("volume", volume)
        self.begin = begin = begin or default_look(volume)
        march, kind = begin.march, begin.kind
        self._side = march.supersample or 1
        self.values = has_values_alone(self.seen)
        self.table = march.transfer or self._own_table()
        if march.iso is not None or (kind is not None and kind.iso is not None):
            self.iso = march.iso if march.iso is not None else kind.iso  # type: ignore[union-attr]
        else:
            self.iso = None if self.table is None else float(self.table.values[0] + self.table.values[-1]) / 2
        mode = march.mode if self.seen.boxes == 1 else self.modes[0]  # through nested boxes there is no table
        self.planes = () if march.clip is None else march.clip.planes
        box = None if march.clip is None or march.clip.box is None else Clip(march.clip.box)
        lit = march.shading is not None or march.iso is not None
        behind = begin.background if tuple(begin.background) != tuple(self.seen.background) else None
        about: dict[str, Any] = {"clip": box, "shading": lit, "window": window, "background": behind}
        self.look = Look(mode=mode, step=march.step, table=self.table, iso=self.iso, **about)  # type: ignore[arg-type]
        self.slices = self.seen.boxes == 1 and self.seen.ndc_from_world is None
        self._marked: Any = None
        self._fresh = True
        with ExitStack() as owners:
            self.buffer = owners.enter_context(RayBuffer(_rays()))
            self._grid = owners.enter_context(grid_for(self.seen))
            self._grid.upload(self.seen)
            self._owners = owners.pop_all()

    def _own_table(self) -> TransferFunction | None:
        try:
            return default_table(self.seen, None if self.values else "viridis")
        except RaymarchError:  # one value, or hardly told apart
            return None

    @property
    def grid(self) -> Grid:
        return self._grid

    @property
    def background(self) -> Colour:
        return self.seen.background

    @property
    def side(self) -> int:
        return self._side

    @property
    def modes(self) -> list[str]:
        """Modes that show such a volume."""
        shown = []
        for name, rule in MODES.items():
            own = {"transfer": self.table} if rule.classifies else {"iso": self.iso} if rule.parameters else {}
            try:
                require_seen(self.seen, March(mode=name, **own))  # type: ignore[arg-type]
                shown.append(name)
            except RaymarchError:
                continue
        return shown

    @cached_property
    def range(self) -> tuple[float, float]:
        """Least and greatest value, one over the other."""
        return apart(*range_of(self.seen))

    @property
    def window(self) -> tuple[float, float]:
        """Values that are black and white in a slice: those of the kind of values, else their range."""
        kind = self.begin.kind
        return self.range if kind is None or not kind.ground < kind.top else (kind.ground, kind.top)

    def require(self, look: Look) -> None:
        require_seen(self.seen, look.march(self.table, self.iso))

    def prepare(self, look: Look) -> March:
        march = look.march(self.table, self.iso)
        if self.planes:
            march = replace(march, clip=Clip(None if look.clip is None else look.clip.box, self.planes))
        key = march.rule, march.transfer, march.iso, march.preintegrated and march.step
        if key != self._marked:
            require_seen(self.seen, march)
            self._marked = None
            if march.rule.classifies or march.rule.parameters or (march.rule.ends and not self._signed):
                skip_unseen(self._grid, self.seen, march)
            elif not self._fresh:  # what another mode left out may be seen in this one
                self._grid.occupy(np.ones(self._grid.cells, bool))
                self._grid.measure_occupancy()
            self._marked, self._fresh = key, False
        return march

    @property
    def _signed(self) -> bool:
        return self.seen.activation.density_rule.signed


class FitSource(Source):
    """Grid of a running fit, in the fit's own mode: nothing of what it reads or writes is touched."""

    grows = True

    def __init__(self, fitter: Fitter) -> None:
        self.fitter, self.views = fitter, fitter.views
        self.table, self.iso = fitter.march.transfer, fitter.march.iso
        name = fitter.march.mode if isinstance(fitter.march.mode, str) else fitter.march.rule.name
        self.look = Look(step=fitter.march.step, table=self.table, iso=self.iso)
        self._name, self._rule = name, fitter.march
        if name in MODES:
            self.look = self.look.changed({"mode": name})
        with ExitStack() as owners:
            self.buffer = owners.enter_context(RayBuffer(_rays()))
            self._owners = owners.pop_all()

    @property
    def grid(self) -> Grid:
        return self.fitter.grid

    @property
    def background(self) -> Colour:
        return self.fitter.photometry.background

    @property
    def side(self) -> int:
        return self.fitter.side

    @property
    def modes(self) -> list[str]:
        """Modes that show such a fit: its own."""
        return [self._name]

    def require(self, look: Look) -> None:
        if look.mode != self.look.mode:
            raise RaymarchError(f"mode is {look.mode}, but a running fit shows itself in {self._name} alone; keep that")

    def prepare(self, look: Look) -> March:
        return replace(self._rule, step=look.step, clip=look.clip or self._rule.clip)
