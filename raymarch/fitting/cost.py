"""Cost of a fit in seconds, by its kinds of steps: measured on a fit in small."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import taichi as ti

from raymarch.fitting.fitter import Fitter
from raymarch.fitting.plan.plan import Plan
from raymarch.fitting.schedule import Schedule

PROBE = 40  # steps of the fit in small
PROBE_SECONDS = 10.0  # of it at most, where steps take long: levels then begin by the time
ONE_RAY = 0.7  # of them at least have one ray a pixel, which a fit begins with until each was drawn often enough
SETTLED = 0.65  # a step of a whole fit takes so much of one of those, as most of the volume is empty by then; measured
HALVINGS = 40  # until it is known how many steps a part has time for
LOOK = 0.5  # of what it takes to begin a level goes to looking which cells are empty, where no look was measured


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
        """Cost of a plan's fit, by one of `PROBE` steps or `PROBE_SECONDS` through all levels, the last of several rays
        a pixel where the fit's are."""
        begin = max(plan.settings.supersample_from, ONE_RAY)
        small = replace(plan.settings, steps=PROBE, seconds=PROBE_SECONDS, refresh=PROBE // 4, supersample_seen=0.0)
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
        for _ in range(HALVINGS):
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
        look = max(float(np.mean(kind.looks)) - each, 0.0) if kind.looks else LOOK * kind.begin
        return kind.begin + steps * each + looks * look

    def _each(self, level: int, side: int) -> float:
        """Seconds of a step; one of a kind that was too short to be measured counts as the mean of as many rays a
        pixel, then of all, or as a level's beginning where there are more levels than steps of the fit in small."""
        some = self.kinds.get((level, side), Kind()).steps
        alike = [second for (_, rays), kind in self.kinds.items() if rays == side for second in kind.steps]
        every = [second for kind in self.kinds.values() for second in kind.steps]
        return SETTLED * float(np.mean(some or alike or every or [kind.begin for kind in self.kinds.values()]))
