"""Fit that several ranks share: each has the whole volume and all images, and marches its part of a step's rays.

All ranks choose the same tiles and take the same step of Adam; what they know of their rays is exchanged once a step
(`gradient_exchange`). Rays are dealt to the same eight slots, and slots added along the same tree, however many ranks
there are (`kernels/rays/dealt_rays`), so that 1, 2, 4 and 8 have the same bits on CPUs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Numbers
from raymarch.device.grid_layout import set_numbers
from raymarch.device.image_store import ImageStore
from raymarch.device.memory import available_bytes
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting.clock import Clock
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.gradient_exchange import GradientExchange
from raymarch.fitting.level_schedule import Position
from raymarch.fitting.plan.budget import MAX_MEMORY_FRACTION
from raymarch.fitting.plan.plan import Plan, plan_fit
from raymarch.fitting.report import Report
from raymarch.fitting.settings.settings import FitSettings
from raymarch.kernels.fit import dealt, losses
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.kernels.numeric import RAYS_PER_CHUNK
from raymarch.kernels.rays.dealt_rays import VIRTUAL_SLOTS
from raymarch.ranks.comm import Comm, ranks_here, require_alike, require_count, sum_in_pairs
from raymarch.views.identity import ViewsDigest
from raymarch.views.views import Views

SEPARATE = {  # what is of one process so far, and how to do without
    "exposure": "fit without it, as by --preset default, or in one process",
    "learn_background": "give the background's colour, or fit in one process",
    "depth_weight": "leave it at 0, or fit in one process",
    "distortion_weight": "leave it at 0, or fit in one process",
}


def require_shared(views: Views, settings: FitSettings) -> None:
    """RaymarchError for what ranks do not share so far."""
    for name, cure in SEPARATE.items():
        if getattr(settings, name):
            raise RaymarchError(f"{name} is set and ranks do not share it; {cure}")
    if settings.objective is not None and settings.minimised.distortion_weight:
        raise RaymarchError(
            f"the objective has a distortion loss and ranks do not share it; {SEPARATE['distortion_weight']}"
        )
    if views.channels:
        raise RaymarchError(
            f"the views have the channels {', '.join(views.channels)} and ranks share fits of colours; fit in one"
            " process"
        )


def places_of_tiles(tiles: int, chunk: int, first: int, count: int) -> np.ndarray:
    """Places among a step's tiles of those that are dealt to `count` of the virtual slots, `chunk` at a time.

    Example:
        >>> places_of_tiles(20, 2, 0, 2)
        array([ 0,  1,  2,  3, 16, 17, 18, 19])
        >>> places_of_tiles(20, 2, 4, 2)
        array([ 8,  9, 10, 11])
    """
    places = np.arange(tiles)
    slot = places // chunk % VIRTUAL_SLOTS
    return places[(slot >= first) & (slot < first + count)]


class RankedFitter(Fitter):
    """Fit that is stepped on all ranks at once; see `Fitter`. Each call that looks at rays is made by all of them.

    Attributes:
        comm: communicator of the ranks.
        exchange: what travels between them.
    """

    def __init__(
        self,
        views: Views,
        settings: FitSettings,
        comm: Comm,
        *,
        box: Numbers | None = None,
        started: float | None = None,
        stop_when: Callable[[], bool] = lambda: False,
    ):
        require_count(comm.size)
        self.clock, self.comm, self.exchange = Clock(started), comm, GradientExchange(comm)
        self._stop_when, self._halted, self._agreed = stop_when, False, 0.0
        self._own, self._errors, self._chunk = np.zeros(0, int), list[np.ndarray](), 1
        require_shared(views, settings)
        running, alike = runtime.start(), "give all ranks the same files and settings, a resolution too"
        cure = "start as many on a machine as it has GPUs, or take --arch cpu (rm.start) on all"
        require_alike(comm, "the device", f"{running.arch} in {running.precision}", cure)
        require_alike(comm, "the checksum of the settings", _checksum(_plain(settings)), alike)
        require_alike(comm, "the checksum of the views", _checksum(ViewsDigest.of(views)), alike)
        shared = _settings_of_ranks(settings, comm)
        self._begin(views, settings.rays, lambda store: self._plan(views, shared, box, store))
        self.grid.pairwise = True
        grid = f"{self.plan.shape} with {self.plan.bricks} bricks in {self.plan.box.tolist()}"
        require_alike(comm, "the grid", grid, alike)

    def _plan(self, views: Views, settings: FitSettings, box: Numbers | None, store: ImageStore) -> Plan:
        """Plan at the resolution that rank 0 has: one that is found goes by the memory and the threads of a rank."""
        plan = plan_fit(views, settings, box, store)
        found = int(self.comm.gather(np.array([plan.settings.resolution or 0]))[0][0])
        if found and found != plan.settings.resolution:
            plan = plan_fit(views, replace(settings, resolution=found), box, store)
        return plan

    @property
    def seconds(self) -> float:
        """Seconds of the fit, as rank 0 had them in the last step: all ranks go by its clock."""
        return self._agreed

    def settings_record(self) -> dict[str, Any]:
        """Settings of the fit, whose bits are the same for any count of ranks, and not those of one process."""
        return {**super().settings_record(), "slots": VIRTUAL_SLOTS, "ranks": True}

    def go_on(self, at: Position, history: Sequence[Report]) -> None:
        """As of `Fitter`, by all ranks, from the same step."""
        alike = "give all ranks the same checkpoint"
        require_alike(self.comm, "the step that is gone on from", str(at.steps), alike)
        self._agreed = at.seconds
        super().go_on(at, history)

    def has_halted(self) -> bool:
        """Whether any rank was told to stop, by its `stop_when`, in the last step."""
        return self._halted

    def _most_bricks(self, room: int) -> int:
        return int(min(each[0] for each in self.comm.gather(np.array([self.plan.most_bricks(room)]))))

    def _draw(self) -> int:
        """Draw this rank's rays of a step; how many pixels of all have a target."""
        store, fields, parts = self.store, self.buffer.fields, self.side**2
        area, n = store.fields.tile**2, self.steps_done
        self._chunk, slots = max(RAYS_PER_CHUNK // (area * parts), 1), VIRTUAL_SLOTS // self.comm.size
        deal = self._chunk * area * parts, self.comm.rank * slots, slots
        self._own = places_of_tiles(self.tiles, self._chunk, *deal[1:])
        dealt.deal_tiles(store.fields, self.tiles, len(self._own), self._chunk, ti.Vector(list(deal)))
        draw_tiles(fields, store.fields, len(self._own), self.side, self.plan.near, self.settings.seed, n, 0.0)
        set_numbers(fields, deal=deal)
        if (phase := self.schedule.jitter) > 0:
            count = len(self._own) * area * parts
            dealt.jitter_dealt(fields, self.settings.seed, n, count, parts, phase)
        return dealt.count_dealt_targets(store.fields, self.tiles) if store.masked else self.rays

    def _differentiate(self, counted: int) -> None:
        """March of this rank's rays, its loss, and the gradient of all ranks' losses."""
        loss = self.buffer.fields.loss
        with ti.ad.Tape(loss, clear_gradients=False):
            self._compare_rays(self._own_pixels, counted, self._variant.replace(dealt=True))
        found = self.exchange.share(self.grid, self._told(float(loss[None])))
        self._agreed, self._halted = float(found[0][0]), any(each[1] for each in found)
        loss[None] = float(sum_in_pairs([each[2:3] for each in found])[0])
        self._errors = [each[3:] for each in found]
        self._regularise()

    @property
    def _own_pixels(self) -> int:
        return len(self._own) * self.store.fields.tile**2

    def _told(self, loss: float) -> np.ndarray:
        """What is told of a step: seconds, whether to stop, the loss, and the errors of this rank's tiles."""
        errors = np.zeros(max(len(self._own), 1), runtime.dtype())
        behind = self.buffer.set_behind(self.photometry.behind)
        call = len(self._own), self.side**2, behind, errors
        dealt.measure_errors(self.store.fields, self.buffer.fields, *call)
        told = np.zeros(
            3 + -(-self.tiles // (VIRTUAL_SLOTS * self._chunk)) * self._chunk * VIRTUAL_SLOTS // self.comm.size
        )
        told[:3] = self.clock.seconds, self._stop_when(), loss
        told[3 : 3 + len(self._own)] = errors[: len(self._own)]
        return told

    def _look(self, behind: ti.Vector) -> None:
        errors, slots = np.zeros(self.tiles, runtime.dtype()), VIRTUAL_SLOTS // self.comm.size
        for rank, of_rank in enumerate(self._errors):
            at = places_of_tiles(self.tiles, self._chunk, rank * slots, slots)
            errors[at] = of_rank[: len(at)]
        dealt.note_dealt_errors(self.store.fields, self.tiles, errors)

    def _error_of_rays(self) -> float:
        if self._error is None:
            self._error = self._mean_error()
        return self._error

    def _mean_error(self) -> float:
        """Mean squared error of the last step's pixels, on whichever rank."""
        behind = self.buffer.set_behind(self.photometry.behind)
        own = losses.count_targets(self.buffer.fields, self._own_pixels)
        error = losses.colour_error(self.buffer.fields, self._own_pixels, self.side**2, behind) if own else 0.0
        errors, counts = np.transpose(self.comm.gather(np.array([error * own, own])))
        return float(errors.sum() / max(counts.sum(), 1))


def _plain(settings: FitSettings) -> dict[str, Any]:
    """Settings that are numbers and words: functions of a user's own have no name that all ranks agree on."""
    kinds = (bool, int, float, str, tuple, type(None))
    return {name: value for name, value in vars(settings).items() if isinstance(value, kinds)}


def _checksum(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def _settings_of_ranks(settings: FitSettings, comm: Comm) -> FitSettings:
    """Settings of one rank: its part of the slots, and of the memory of the machine that has the least for one."""
    free = available_bytes() / (ranks_here(comm) if runtime.runs_on_cpu() else 1)
    least = MAX_MEMORY_FRACTION * min(each[0] for each in comm.gather(np.array([free])))
    memory = min(least / 1e9, settings.memory or np.inf)
    slots = VIRTUAL_SLOTS // comm.size if runtime.runs_on_cpu() else 1
    changes: dict[str, Any] = {"slots": slots, "memory": memory}
    return replace(settings, **changes)
