"""Forecast of a fit's memory and time, before it is begun: bytes by counting, seconds by a fit in small."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Numbers, flag, optional
from raymarch.arguments.declared import checked
from raymarch.device import memory
from raymarch.device.image_store import ImageStore
from raymarch.device.memory import Memory, memory_of_rendering
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.level_schedule import Schedule
from raymarch.fitting.plan.plan import Plan, plan_fit
from raymarch.fitting.settings.settings import FitSettings, settings_for
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import PIXELS_A_SIDE as PIXELS
from raymarch.geometry.orbit import orbit_of_volume
from raymarch.html.card import html_of, record_card
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views
from raymarch.volumes.volume import VOLUME, AnyVolume

PROBE_STEPS = 40  # steps of the fit in small
PROBE_SECONDS = 10.0  # of it at most, where steps take long: levels then begin by the time
# of them at least have one ray a pixel, which a fit begins with until each was drawn often enough
MIN_SINGLE_RAY_FRACTION = 0.7
# a step of a whole fit takes so much of one of those, as most of the volume is empty by then; measured
SETTLED_COST = 0.65
BISECTIONS = 40  # until it is known how many steps a part has time for
# of what it takes to begin a level goes to looking which cells are empty, where no look was measured
OCCUPANCY_COST = 0.5
IMAGE_SIDE = 128  # pixels a side of the image that a rendering's time is measured on
IMAGE_SIDE_ON_GPU = 512  # the same there, which has hardly begun with fewer


@dataclass(frozen=True)
class Forecast:
    """Forecast of a fit or a rendering: memory and time.

    Attributes:
        memory: at its peak; the fit itself refuses to begin where that is over the budget.
        free_bytes: what the device had left.
        seconds: of a fit's steps, or of an image; None if it was not asked for. Good to a third.
        steps: of the fit, as many as there is time for; None for a rendering.
        boxes: nested boxes of the grid, as of `Volume`.
        preparation: seconds of loading, planning and compiling before a fit's first step, as measured here; less once
            its kernels were compiled on this machine. None where it was not asked for.
    """

    memory: Memory
    free_bytes: int
    seconds: float | None = None
    steps: int | None = None
    boxes: int = 1
    preparation: float | None = None

    def _repr_html_(self) -> str | None:
        return html_of(record_card, self)

    def record(self) -> dict:
        """Forecast as plain numbers, for printing."""
        m = self.memory
        size = {"shape": list(m.shape), "sh_degree": m.sh_degree, "slots": m.slots, "boxes": self.boxes}
        told = {"bytes": m.total, "parts": dict(m.parts), "free_bytes": self.free_bytes, "seconds": self.seconds}
        return {**size, **told, "steps": self.steps, "preparation_seconds": self.preparation}


@checked(box=optional(BOX), clock=flag)
def forecast(
    views: Views,
    settings: FitSettings | str = "default",
    *,
    box: Numbers | None = None,
    clock: bool = True,
    **changes: Any,
) -> Forecast:
    """Forecast of a fit of these views: its grid, bytes and seconds; nothing is kept of it.

    Args:
        views, settings, box, changes: as of `fit`.
        clock: whether to run a fit in small for the time, which takes some seconds and the fit's memory.

    Raises RaymarchError where the fit would: over the memory's budget, without a box, and so on.

    Example:
        >>> forecast(views, "quick").memory.total  # doctest: +SKIP
        1500000000
    """
    settings, began = settings_for(views, settings, **changes), time.perf_counter()
    with ImageStore(views) as store:
        plan = plan_fit(views, settings, box, store)
    free, planned = memory.available_bytes(), time.perf_counter() - began
    if not clock:
        return Forecast(plan.memory, free, None, settings.steps, plan.settings.nested)
    cost, steps = Cost.of(plan), settings.steps or math.inf
    rest = plan.settings.nested, planned + cost.ready
    if settings.seconds and (by_time := cost.steps(settings.seconds)) < steps:
        return Forecast(plan.memory, free, settings.seconds, int(by_time), *rest)
    return Forecast(plan.memory, free, cost.seconds(steps), int(steps), *rest)


@checked(volume=VOLUME, width=PIXELS, height=PIXELS)
def forecast_rendering(volume: AnyVolume, width: int = 800, height: int = 800) -> Forecast:
    """Forecast of rendering one image of the volume, once all is compiled; its time is measured on a smaller one.

    Raises RaymarchError where the memory does not suffice.

    Example:
        >>> forecast_rendering(Volume.from_function(lambda p: 1 - p[..., 0] ** 2, shape=(8, 8, 8))).steps is None
        True
    """
    runtime.start()
    bricks = None if volume.bricks is None else volume.bricks.count
    needed = memory_of_rendering(volume.shape, volume.degree, width * height, bricks, volume.nbytes)
    free = memory.available_bytes()
    if needed.total > free:
        raise RaymarchError(
            f"an image of {width} x {height} pixels takes about {needed.total:,} bytes but {free:,} are free;"
            " take a smaller one"
        )
    side = IMAGE_SIDE if runtime.runs_on_cpu() else IMAGE_SIDE_ON_GPU
    camera = orbit_of_volume(volume.box, 1, size=side)[0]
    with Renderer(volume) as renderer:
        renderer.render(camera, depth=False)
        began = time.perf_counter()
        renderer.render(camera, depth=False)
        seconds = time.perf_counter() - began
    return Forecast(needed, memory.available_bytes(), seconds * width * height / side**2, None, volume.boxes)


@dataclass(frozen=True)
class Cost:
    """Cost of a fit.

    Attributes:
        schedule: of the fit, not of the one in small.
        kinds: by level and rays along each edge of a pixel.
        ready: seconds from making the fitter until its first step was done, and of compiling later; no time of the fit.
        seen: how many times a step draws each pixel in the mean.
    """

    schedule: Schedule
    kinds: dict[tuple[int, int], Kind]
    ready: float
    seen: float

    @staticmethod
    def of(plan: Plan) -> Cost:
        """Cost of a plan's fit, by one of `PROBE_STEPS` steps or `PROBE_SECONDS` through all levels, the last of
        several rays a pixel where the fit's are."""
        begin = max(plan.settings.supersample_from, MIN_SINGLE_RAY_FRACTION)
        small = replace(
            plan.settings, steps=PROBE_STEPS, seconds=PROBE_SECONDS, refresh=PROBE_STEPS // 4, supersample_seen=0.0
        )
        small = replace(small, supersample_from=begin)
        taken: dict[tuple[int, int], list[tuple[float, bool]]] = defaultdict(list)
        age, level = 0, 0
        with Fitter.of_plan(replace(plan, settings=small)) as fitter:
            fitter.step()
            taken[0, fitter.side].append((0.0, False))
            while fitter.progress < 1:
                before, level = level, fitter.schedule.level(fitter.progress)
                age = age + 1 if level == before else 0
                ti.sync()
                began = fitter.seconds
                fitter.step()
                ti.sync()
                seconds = fitter.seconds - began
                taken[level, fitter.side].append((seconds, fitter.schedule.looks(age)))
            kinds = {key: Kind.of(some) for key, some in taken.items()}
            return Cost(Schedule.of(plan.settings), kinds, fitter.preparation, fitter.tiles / fitter.store.listed)

    def seconds(self, steps: float) -> float:
        """Seconds of a fit of so many steps, from its first on."""
        total, ages = 0.0, defaultdict[int, float](float)
        for share, level, side in self.schedule.parts(self.seen * steps, steps):
            total += self._part(level, side, ages[level], share * steps)
            ages[level] += share * steps
        return total

    def steps(self, seconds: float) -> float:
        """Steps that a fit by seconds makes in them, with the one before its time counts."""
        steps = np.inf
        for _ in range(3):  # how many steps there is time for says when several rays a pixel begin, and that how many
            total, ages = 0.0, defaultdict[int, float](float)
            for share, level, side in self.schedule.parts(self.seen * steps, steps):
                total += (part := self._fitting(level, side, ages[level], share * seconds))
                ages[level] += part
            steps = total
        return steps + 1

    def _fitting(self, level: int, side: int, age: float, seconds: float) -> float:
        """Steps of a part that begins `age` steps into its level, in so many seconds."""
        least, most = 0.0, seconds / self._each(level, side)
        for _ in range(BISECTIONS):
            steps = (least + most) / 2
            if self._part(level, side, age, steps) < seconds:
                least = steps
            else:
                most = steps
        return least

    def _part(self, level: int, side: int, age: float, steps: float) -> float:
        """Seconds of so many steps, which begin `age` steps into a level."""
        kind, each = self.kinds.get((level, side), Kind()), self._each(level, side)
        looks = self.schedule.looks_by(age + steps) - self.schedule.looks_by(age)
        look = max(float(np.mean(kind.looks)) - each, 0.0) if kind.looks else OCCUPANCY_COST * kind.begin
        return kind.begin + steps * each + looks * look

    def _each(self, level: int, side: int) -> float:
        """Seconds of a step; one of a kind that was too short to be measured counts as the mean of as many rays a
        pixel, then of all, or as a level's beginning where there are more levels than steps of the fit in small."""
        some = self.kinds.get((level, side), Kind()).steps
        alike = [second for (_, rays), kind in self.kinds.items() if rays == side for second in kind.steps]
        every = [second for kind in self.kinds.values() for second in kind.steps]
        return SETTLED_COST * float(np.mean(some or alike or every or [kind.begin for kind in self.kinds.values()]))


@dataclass(frozen=True)
class Kind:
    """Kind of a fit's steps, of one level and so many rays a pixel: seconds that were measured.

    Attributes:
        steps: of each step but the first.
        looks: of each that also looked which cells are empty.
        begin: of the first, which also refines; 0 for that of the fit, from whose end on its time counts. Compiling
            counts in none.
    """

    steps: Sequence[float] = ()
    looks: Sequence[float] = ()
    begin: float = 0.0

    @staticmethod
    def of(taken: Sequence[tuple[float, bool]]) -> Kind:
        """Kind of steps that took so many seconds, one after the other, and whether each looked."""
        (begin, _), *rest = taken
        return Kind([took for took, looked in rest if not looked], [took for took, looked in rest if looked], begin)
