"""What a worker does with one task: the same version of raymarch, its share of the processors, the device's thread."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.system.resources import cores
from raymarch.system.versions import version_of
from raymarch.tasks.device_thread import DEVICE_THREAD, stop_device

SLURM_SHARE = "SLURM_CPUS_PER_TASK"


@dataclass(frozen=True)
class Device:
    """Device of a worker: `arch`, `threads` of a CPU, None for the worker's share, and `precision`, None for any."""

    arch: str = "auto"
    threads: int | None = None
    precision: str | None = None


@dataclass(frozen=True)
class Task:
    """One item of work, as it travels: a function of a module, what it is called with, the device it runs on, and the
    version of the raymarch that asks."""

    function: Callable[[Any], Any]
    item: Any
    device: Device
    version: str


@dataclass(frozen=True)
class Outcome:
    """What came of a task: what its function returned, or the RaymarchError that ended it, which is the user's to mend
    and no failure of the worker, of which its executor would tell."""

    value: Any = None
    error: RaymarchError | None = None


def run_task(task: Task) -> Outcome:
    """Outcome of a task on this worker's device; a RaymarchError too where this worker has another version."""
    try:
        return Outcome(_value_of(task))
    except RaymarchError as error:
        return Outcome(error=error)


def _value_of(task: Task) -> Any:
    if (here := version_of("raymarch")) != task.version:
        raise RaymarchError(
            f"the worker on {platform.node()} has raymarch {here}, and {task.version} asks; install the same there"
        )
    threads = task.device.threads or own_share()  # asked in the executor's thread, which knows its worker
    return DEVICE_THREAD.call(_run, task, threads)


def _run(task: Task, threads: int | None) -> Any:
    running, precision = runtime.started(), task.device.precision
    if running is not None and precision not in (None, running.precision):
        stop_device()
        running = None
    if running is None:
        runtime.start(task.device.arch, precision, threads)
    return task.function(task.item)


def own_share() -> int | None:
    """Processors that are this worker's own: as Dask or SLURM say; None where nobody does."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        try:
            return int(get_worker().state.nthreads)
        except (ValueError, AttributeError):  # not in a task of Dask's
            pass
    share = os.environ.get(SLURM_SHARE, "")
    return min(int(share), cores()) if share.isdigit() and int(share) else None
