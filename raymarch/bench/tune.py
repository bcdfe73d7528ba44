"""Tuning of memory layouts to the processor at hand: measured once, kept in the user's cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from raymarch import runtime
from raymarch.bench.layouts import CASES, Case, Trial, compare
from raymarch.device import layout_choice
from raymarch.device.layout_choice import USE_WORDS
from raymarch.errors import RaymarchError

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class TuningResult:
    """Outcome of tuning: what was measured, the kinds of grids there was no time or memory for, and the file."""

    trials: tuple[Trial, ...]
    missed: tuple[str, ...]
    file: Path
    seconds: float


def tune(
    seconds: float = 20.0,
    progress: Progress = lambda what, done, total: None,
    *,
    cases: Sequence[Case] = CASES,
    clock: Callable[[], float] = time.perf_counter,
) -> TuningResult:
    """Measure which layout each kind of grid has best on this processor, and keep that in the user's cache.

    Args:
        seconds: in all; no kind is begun that would probably end later. The first time most of it is compiling.
        progress: called before each kind with its name, how many are done, and of how many.
        cases: what is measured.
        clock: seconds.

    Kinds that were measured before come last; one that is not reached stays as it is. Nothing is kept where this
    is interrupted.

    Raises RaymarchError on another device than the CPU, and where the cache cannot be written.
    """
    if runtime.start().arch != "cpu":
        raise RaymarchError("layouts are measured for the CPU alone; take --arch cpu, or rm.start('cpu') before")
    begin, trials, missed = clock(), list[Trial](), list[str]()
    known = layout_choice.measured_blocks()
    for done, case in enumerate(sorted(cases, key=lambda case: case.kind in known)):
        spent = clock() - begin
        if trials and spent + spent / len(trials) > seconds:
            missed.append(case.kind)
            continue
        progress(USE_WORDS[case.kind], done, len(cases))
        try:
            trials.append(compare(case, clock))
        except RaymarchError:  # no memory for its grids
            missed.append(case.kind)
    if not trials:
        raise RaymarchError("no grid to measure layouts on fits the free memory; free some memory")
    file = layout_choice.save_choice({**known, **{trial.kind: trial.kept for trial in trials}})
    return TuningResult(tuple(trials), tuple(missed), file, clock() - begin)
