"""Schedule of a fit: how far it is by steps or seconds, which level of the grid that is, and how long it will take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from raymarch.fitting.settings.optimiser import relative_length
from raymarch.fitting.settings.settings import FitSettings

DONE = "done"
MIN_STEPS = 300  # under which a fit is told to be a poor one
FIRST_TIMED_PROGRESS = 0.2  # share of the time from which on it may lead a fit that has a limit of steps too
PACE_POWER = 0.7  # power of the share of time that is the share of steps: those of coarse levels are quicker


@dataclass(frozen=True)
class Position:
    """Position in a schedule: steps and seconds done, age of Adam's moments [step], level, the place in the epochs of
    tiles, and the seconds of loading, planning and compiling."""

    steps: int
    moments_age: int
    level: int
    drawn: int
    seconds: float
    preparation: float


@dataclass(frozen=True)
class Schedule:
    """Schedule by steps or by seconds, whichever is nearer its end; None is no limit. Beside steps, time leads late.

    `levels` are (from which fraction of the fit, scale of the resolution), rising; `supersample` is (from which
    fraction, from how many times on that each pixel was drawn, rays along each edge of a pixel), `jitter` up to which
    share of a step rays are moved, `refresh` how many steps pass between looks at which cells are empty, at first,
    `early` by how much less of a long fit levels begin at most: what coarse ones tell is told in so many steps. In
    the methods `steps` are done, in so many `seconds` of the fit's clock.

    Example:
        >>> schedule = Schedule(100, None, ((0.0, 0.5), (0.4, 1.0)))
        >>> schedule.progress(40, 7.0), schedule.level(0.4)
        (0.4, 1)
    """

    steps: int | None
    seconds: float | None
    levels: tuple[tuple[float, float], ...]
    supersample: tuple[float, float, int] = (0.0, 0.0, 1)
    jitter: float = 0.0
    refresh: int = 100
    early: float = 1.0

    @staticmethod
    def of(settings: FitSettings) -> Schedule:
        """Schedule that settings ask for."""
        supersample = settings.supersample_from, settings.supersample_seen, settings.supersample
        jitter = float(settings.sh_degree > 0) if settings.jitter is None else settings.jitter
        how = supersample, jitter, settings.refresh, settings.early
        return Schedule(settings.steps, settings.seconds, settings.levels, *how)

    def progress(self, steps: int, seconds: float) -> float:
        """Fraction of the fit that is done, 0..1: of steps or of seconds, whichever is further."""
        by_steps = steps / self.steps if self.steps else 0.0
        by_seconds = seconds / self.seconds if self.seconds else 0.0
        if self.steps is not None:  # so that a fit which comes to its steps in time is the same in each run
            by_seconds = (by_seconds - FIRST_TIMED_PROGRESS) / (1 - FIRST_TIMED_PROGRESS)
        return min(max(by_steps, by_seconds), 1.0)

    def sooner(self, progress: float, steps: float) -> float:
        """By how many times sooner levels begin in a fit that is so far after so many steps.

        Example:
            >>> [Schedule(None, 60.0, ((0.0, 1.0),), early=2.0).sooner(1.0, steps) for steps in (900, 1800, 9000)]
            [1.0, 1.2, 2.0]
        """
        return min(relative_length(progress, self.even(progress, steps)), self.early)

    def even(self, progress: float, steps: float) -> float:
        """Steps that a fit of one pace throughout would have done by now, of as many in all.

        Example:
            >>> levels = (0.0, 0.5), (0.4, 1.0)
            >>> [round(Schedule(None, 60.0, levels).even(progress, 500)) for progress in (0.1, 0.5, 1.0)]
            [251, 406, 500]
        """
        by_seconds = self.seconds and (self.steps is None or progress > steps / self.steps)
        slower = by_seconds and len(self.levels) > 1
        return steps * progress ** (1 - PACE_POWER) if slower else steps

    def is_long(self, progress: float, steps: int) -> bool:
        """Whether a fit that is so far after so many steps will have more than the short ones."""
        return relative_length(progress, self.even(progress, steps)) > 1

    def level(self, progress: float, steps: float = 0.0) -> int:
        """Index of the coarse-to-fine level, from 0, after so many steps."""
        return self._level_at(progress * self.sooner(progress, steps))

    def _level_at(self, ahead: float) -> int:
        return max(i for i, (start, _) in enumerate(self.levels) if ahead >= start)

    def looks(self, age: int) -> bool:
        """Whether it is looked which cells are empty, `age` steps into a level: the older, the less it has to tell.

        Example:
            >>> [age for age in range(3300) if Schedule(None, 60.0, ((0.0, 1.0),)).looks(age)][6:]
            [700, 800, 1000, 1200, 1400, 1600, 2000, 2400, 2800, 3200]
        """
        count, rest = divmod(age, self.refresh)
        return rest == 0 < count and count % (1 << max(count.bit_length() - 3, 0)) == 0

    def looks_by(self, age: float) -> int:
        """How often it is looked in the first `age` steps of a level.

        Example:
            >>> Schedule(None, 60.0, ((0.0, 1.0),)).looks_by(3201.0)
            16
        """
        last, total = max(int(age) - 1, 0) // self.refresh, 0
        for bits in range(1, last.bit_length() + 1):
            gap = 1 << max(bits - 3, 0)
            total += min(last, (1 << bits) - 1) // gap - ((1 << (bits - 1)) - 1) // gap
        return total

    def side(self, progress: float, seen: float) -> int:
        """Rays along each edge of a pixel, once each pixel was drawn `seen` times, in the mean."""
        start, least, side = self.supersample
        return side if progress >= start and seen >= least else 1

    def parts(self, seen: float, steps: float = 0.0) -> list[tuple[float, int, int]]:
        """Parts of a whole fit that draws each pixel `seen` times in so many steps: share, level, and rays along each
        edge of a pixel.

        Example:
            >>> Schedule(None, 60.0, ((0.0, 0.5), (0.4, 1.0)), (0.7, 3.0, 2)).parts(4.0)
            [(0.4, 0, 1), (0.35, 1, 1), (0.25, 1, 2)]
        """
        start, least, _ = self.supersample
        several = max(start, least / max(seen, 1e-9))
        sooner = self.sooner(1.0, steps)
        firsts = {first / sooner for first, _ in self.levels}
        edges = sorted({first for first in firsts if first < 1} | {min(several, 1.0), 1.0})
        found = []
        for begin, end in pairwise(edges):
            middle, side = (begin + end) / 2, self.side(begin, least if begin >= several else -1.0)
            found.append((end - begin, self._level_at(middle * sooner), side))
        return found

    def seconds_left(self, progress: float, seconds: float) -> float:
        """Time left [s], by what it took so far."""
        most = max(self.seconds - seconds, 0.0) if self.seconds else math.inf
        return most if self.steps is None else min(seconds * (1 - progress) / max(progress, 1e-9), most)


def describe_ending(steps: int, settings: FitSettings, level: int | None = None) -> str:
    """ "done", or what a person should know about a fit that was over after so many steps, at a level of its grid."""
    if settings.seconds is None or (settings.steps is not None and steps >= settings.steps):
        return DONE
    levels = len(settings.levels)
    unfinished = level is not None and level < levels - 1
    if unfinished or steps < min(MIN_STEPS, settings.steps or MIN_STEPS):
        where = f", at level {level + 1} of {levels} of its grid" if unfinished and level is not None else ""
        return (
            f"{DONE} after only {steps} step{'s' if steps > 1 else ''}{where}; give more seconds, smaller images"
            " (downscale), or a lower resolution"
        )
    if settings.steps:
        return (
            f"{DONE} at step {steps} of {settings.steps}, when its {settings.seconds:.3g} s were over; --steps"
            f" {settings.steps} (steps={settings.steps}) alone lifts the limit of time"
        )
    return DONE


def is_early(ended: str) -> bool:
    """Test of an ending: whether time ended the fit so soon that its volume is a poor one.

    Example:
        >>> is_early("done"), is_early(describe_ending(3, FitSettings(steps=None, seconds=1.0)))
        (False, True)
    """
    return ended.startswith(f"{DONE} after only")
