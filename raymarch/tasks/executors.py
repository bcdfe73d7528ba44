"""Executors of independent tasks: processes of this machine, a Dask cluster, or any `concurrent.futures.Executor`.

Results come in the order of the items, and a few more items than there are workers are under way, so that a long row of
pictures is never in memory at once. A lost worker costs the items that it had: processes of our own are replaced, and
Dask gives them to another.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from numbers import Integral
from types import FrameType
from typing import Any, TypeVar

from raymarch.arguments.checks import Check, describe_value
from raymarch.errors import RaymarchError, one_line
from raymarch.system.interrupt import hold_interrupts, leave_interrupts_to_parent
from raymarch.system.resources import cores
from raymarch.system.versions import NOT_INSTALLED, version_of
from raymarch.tasks.device_thread import stop_device
from raymarch.tasks.worker import Device, Outcome, Task, run_task

log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")
Where = Executor | int | str | None

ITEMS_A_WORKER = 2  # under way at once: none waits for the next
UNKNOWN_WORKERS = 16  # of an executor that does not say how many it has
MAX_LOSSES = 3  # of workers in a row, without a result between
MAX_WORKERS = 1024
GRACE_SECONDS = 3.0  # of a process that is told to end, for what it has open
SCHEDULER_SECONDS = 10.0  # that a Dask scheduler may take to answer
LOOK_SECONDS = 5.0  # between two looks whether a Dask cluster has workers
EMPTY_SECONDS = 120.0  # that a Dask cluster may be without any worker: time to start one in place of what was lost
LOCAL = "local"  # in place of an address: a Dask cluster of its own on this machine


def _where(value: object) -> Where:
    if isinstance(value, Integral) and not isinstance(value, bool):  # NumPy's too
        value = int(value)
    if isinstance(value, (ThreadPoolExecutor, type)):
        raise TypeError
    if isinstance(value, bool) or (isinstance(value, int) and not 1 <= value <= MAX_WORKERS):
        raise ValueError
    if isinstance(value, str) and not value.strip():
        raise ValueError
    if value is not None and not isinstance(value, (int, str)) and not callable(getattr(value, "submit", None)):
        raise TypeError
    return value  # type: ignore[return-value]


EXECUTOR = Check(
    "None for this process, a number of processes on this machine, the address of a Dask scheduler or 'local', or an"
    " executor of processes (concurrent.futures): threads of one would share one device",
    _where,
)


def run_tasks(
    function: Callable[[T], R], items: Sequence[T], where: Where = None, device: Device | None = None
) -> Iterator[R]:
    """Results of a function of a module for each item, in their order, each made by a worker of `where`.

    Args:
        items: what travels; small, so paths and records in place of volumes.
        where: as `EXECUTOR` reads it.
        device: of each worker, its share of processors where that leaves `threads` open.

    Raises RaymarchError of a function as it is; for a cluster or a worker that is not there, one that cannot import
    raymarch or has another version, and workers that are lost again and again.
    """
    if where is None:
        yield from map(function, items)
        return
    with open_crew(where, device) as crew:
        yield from crew.results(function, items)


@contextmanager
def open_crew(where: Executor | int | str, device: Device | None = None) -> Iterator[Crew]:
    """The crew of workers that `where` names, gone when the context ends if it was made for it."""
    device = device or Device()
    if isinstance(where, int):
        processes = Processes(where, device)
        try:
            yield processes
        finally:
            processes.close()
    elif isinstance(where, str):
        with _dask_client(where) as client:
            yield DaskWorkers(client, device)
            with suppress(Exception):  # of a cluster that is gone
                client.run(_stop_worker, on_error="ignore")  # not after Ctrl-C: it would wait for what is at work
    else:
        yield Crew(where, getattr(where, "_max_workers", None), device)


class Crew:
    """Workers of an executor, `count` of them if it is `known`."""

    def __init__(self, executor: Executor, count: object, device: Device) -> None:
        self.executor, self.device = executor, device
        self.known = count if isinstance(count, int) and count > 0 else None
        self.count = self.known or UNKNOWN_WORKERS

    def results(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Results in the order of the items; what is still under way when nobody asks any more is cancelled."""
        return self.results_while(function, iter(items))

    def results_while(self, function: Callable[[T], R], items: Iterator[T]) -> Iterator[R]:
        """As `results`, of items that may depend on results: an iterator that has ended is asked again after each."""
        device, version = self.device, version_of("raymarch")
        under_way: deque[tuple[Task, Future]] = deque()
        losses = 0
        try:
            while True:
                while len(under_way) < ITEMS_A_WORKER * self.count:
                    try:
                        task = Task(function, next(items), device, version)
                    except StopIteration:
                        break
                    under_way.append((task, self._submit(task)))
                if not under_way:
                    return
                try:
                    result = self._result(under_way[0][1])
                except BrokenExecutor as error:
                    losses += 1
                    self.replace(losses, error)
                    again = [(task, future if _has_result(future) else None) for task, future in under_way]
                    under_way = deque((task, future or self._submit(task)) for task, future in again)
                    continue
                under_way.popleft()
                losses = 0
                yield result
        finally:
            for _, future in under_way:
                future.cancel()

    def _submit(self, task: Task) -> Future:
        try:
            future = self.executor.submit(run_task, task)
        except MemoryError:
            raise
        except BrokenExecutor as error:  # told by its result, as that of one that broke later
            broken: Future = Future()
            broken.set_exception(error)
            return broken
        except RuntimeError as error:  # of an executor that was shut down
            raise RaymarchError(
                "the workers were dismissed, as by close; make another, or take them on anew"
            ) from error
        except Exception as error:  # of others' executors, as of a Dask client that was closed
            raise RaymarchError(
                f"the executor takes no work ({type(error).__name__}: {one_line(error)[:120]}); make another, or give a"
                " number of processes"
            ) from error
        if not all(callable(getattr(future, name, None)) for name in ("result", "cancel")):
            raise RaymarchError(
                f"the executor's submit gives {describe_value(future)}, want a Future as concurrent.futures has it;"
                " give another executor, or a number of processes"
            )
        return future

    def _result(self, future: Future) -> Any:
        try:
            outcome = future.result()
        except (BrokenExecutor, MemoryError, KeyboardInterrupt):
            raise
        except ModuleNotFoundError as error:
            raise RaymarchError(
                f"a worker cannot import {error.name}; install raymarch {version_of('raymarch')} in the workers' Python"
            ) from error
        except Exception as error:
            if type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError"):
                raise RaymarchError(
                    f"workers of the cluster were lost one after another ({one_line(error)[:120]}); look into their"
                    " logs, for want of memory most of all"
                ) from error
            raise
        if not isinstance(outcome, Outcome):
            raise RaymarchError(
                f"a Future of the executor gives {describe_value(outcome)}, want what the function that it was given"
                " returns; give another executor, or a number of processes"
            )
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def replace(self, losses: int, error: BrokenExecutor) -> None:
        """Another executor in place of a broken one; RaymarchError where it is not ours to replace."""
        raise RaymarchError(
            "the executor lost a worker and takes no more; make a new one, or give a number of processes, which are"
            " replaced"
        ) from error


class Processes(Crew):
    """So many processes of this machine, each with its part of the processors."""

    def __init__(self, count: int, device: Device) -> None:
        share = replace(device, threads=device.threads or max(1, cores() // count))
        super().__init__(_new_pool(count), count, share)

    def _submit(self, task: Task) -> Future:
        with hold_interrupts():  # processes begin in it
            return super()._submit(task)

    def replace(self, losses: int, error: BrokenExecutor) -> None:
        if losses >= MAX_LOSSES:
            raise RaymarchError(
                f"{losses} times a worker process ended before it gave anything; give fewer workers where memory is"
                ' short, and in a script call this under `if __name__ == "__main__":`'
            ) from error
        self.close()
        self.executor = _new_pool(self.count)

    def close(self) -> None:
        """End the processes; one that is at work is stopped."""
        pool = self.executor
        assert isinstance(pool, ProcessPoolExecutor)
        at_work = [process for process in (pool._processes or {}).values() if process.is_alive()]
        # Then each ends by itself, and writes what it compiled; of a broken pool one may have lost the word to end.
        idle = not pool._pending_work_items and not pool._broken
        pool.shutdown(wait=idle, cancel_futures=True)
        for process in [] if idle else at_work:
            process.terminate()
        end = time.monotonic() + GRACE_SECONDS  # for all of them together
        for process in at_work:
            process.join(None if idle else max(end - time.monotonic(), 0.0))
            if process.is_alive():  # with an item that it had taken before
                process.kill()
                process.join()


class DaskWorkers(Crew):
    """Workers of a Dask cluster, which without any waits for others and says nothing."""

    def __init__(self, client: Any, device: Device) -> None:
        self._client = client
        self._require_raymarch()
        super().__init__(client.get_executor(pure=False), sum(client.nthreads().values()), device)

    def _require_raymarch(self) -> None:
        """RaymarchError for a worker without raymarch: Dask ends it with the first message that names raymarch."""
        wanted = version_of("raymarch")
        if wanted == NOT_INSTALLED:  # it runs from its sources, as those of the workers may
            return
        for worker, found in self._client.run(metadata.version, "raymarch", on_error="return").items():
            if isinstance(found, metadata.PackageNotFoundError):
                raise RaymarchError(f"the worker at {worker} has no raymarch; install raymarch {wanted} in its Python")

    def _result(self, future: Future) -> Any:
        last = None  # when the cluster had workers
        while not wait([future], LOOK_SECONDS).done:
            if self._count_of_workers():
                last = None
            elif last is None:
                last = time.monotonic()
                log.warning("the cluster has no worker any more; waiting for one for %.0f s", EMPTY_SECONDS)
            elif time.monotonic() - last > EMPTY_SECONDS:
                raise RaymarchError(
                    "the cluster has lost all its workers, and no other came; look into their logs, and start one by"
                    f" `dask worker {self._client.scheduler.address}`"
                )
        return super()._result(future)

    def _count_of_workers(self) -> int:
        with suppress(OSError, TimeoutError):  # of a scheduler that is gone
            return len(self._client.nthreads())
        return 0


def _new_pool(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_begin_process)


def _begin_process() -> None:
    """Begin a worker process, which ends with the one that asks, however that ends."""
    _leave_interrupts()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()  # a process that is killed says nothing to its children
    os._exit(1)


def _leave_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all its processes, to the one that asks; SIGTERM ends what is at work, a
    fit too, which would else end early and be scored."""
    leave_interrupts_to_parent()
    signal.signal(signal.SIGTERM, _end_soon)


def _end_soon(number: int, frame: FrameType | None) -> None:
    """End this process: tidied up, or, where a library loses the exception, by force."""
    force = threading.Timer(GRACE_SECONDS, os._exit, (1,))
    force.daemon = True
    force.start()
    sys.exit(1)


async def _stop_worker() -> None:
    """`stop_device` of a Dask worker, whose own thread goes on meanwhile: its scheduler would take it for lost."""
    await asyncio.to_thread(stop_device)


def _has_result(future: Future) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _begin_tracker() -> None:
    """Begin the process that counts what processes share: Python unblocks Ctrl-C as it does, for all after it."""
    if os.name == "posix":
        from multiprocessing import resource_tracker

        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_of_users(record: logging.LogRecord) -> bool:
    """False of what asyncio and Tornado say of Dask's tasks that are cancelled, as all that is under way is after an
    error and as a client ends."""
    cancelled = record.exc_info and type(record.exc_info[1]).__name__ == "FutureCancelledError"
    return not (cancelled or "_discard_future_result" in record.getMessage())


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    """Client of the Dask scheduler at an address, or of a cluster of its own; RaymarchError where none answers."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise RaymarchError(
            'Dask is not installed and a cluster is asked for; pip install "raymarch[cluster]", or give a number of'
            " workers on this machine"
        ) from None
    logging.getLogger("distributed").setLevel(logging.ERROR)  # of what it does it says thirty lines
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).addFilter(_is_of_users)
    address = address.strip()
    if address == LOCAL:
        how = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
        with ExitStack() as owners:
            with hold_interrupts():  # Dask does not close what has not yet begun
                _begin_tracker()
                cluster = owners.enter_context(LocalCluster(cores(), silence_logs=logging.ERROR, **how))
                client = owners.enter_context(Client(cluster))
            yield client
        return
    client, why = None, ""
    try:
        client = Client(address, timeout=SCHEDULER_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        why = one_line(error)[:80]
    if client is None:
        gc.collect()  # Dask closes what it made as garbage: here, or it would wait for itself as the next client begins
        raise RaymarchError(
            f"no Dask scheduler answers at {address} ({why}); start one by `dask scheduler`, or give {LOCAL} for a"
            " cluster on this machine"
        )
    with client:
        if not client.nthreads():
            raise RaymarchError(f"the cluster at {address} has no workers; start one by `dask worker {address}`")
        yield client
