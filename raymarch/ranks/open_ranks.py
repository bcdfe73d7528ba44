"""Ranks joined as they were started, by torchrun or by MPI, each on its own device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.ranks.comm import Alone, Comm, require_count
from raymarch.ranks.launch import Launch, launched
from raymarch.ranks.mpi_comm import mpi_comm
from raymarch.ranks.torch_comm import torch_comm
from raymarch.runtime.gpu_memory import has_gpu


@contextmanager
def ranks_of(launch: Launch | None, by_gpu: bool = False) -> Iterator[Comm]:
    """Communicator of all ranks that were started so; RaymarchError for a count that a step cannot be dealt to."""
    if launch is None:
        yield Alone()
        return
    with torch_comm(by_gpu) if launch.by == "torchrun" else mpi_comm() as comm:
        if comm.size != launch.size:  # each would take itself for the only one, and all write the same file
            raise RaymarchError(
                f"{launch.by} started {launch.size} processes, and mpi4py joins {comm.size}; start them by the mpirun"
                " of the MPI that mpi4py was built with, or by torchrun"
            )
        yield comm


@contextmanager
def open_ranks() -> Iterator[Comm]:
    """Ranks that torchrun or MPI started with this process, in a context; one alone where nobody did.

    Each computes on its own GPU, or on its part of the machine's processors; so it is to be called before anything
    else that computes. All ranks then make the same calls: `rm.fit(..., ranks=ranks)` is one fit of all of them, with
    the same volume on each.

    Raises RaymarchError where the ranks are not 1, 2, 4 or 8, where they do not meet, and where PyTorch or mpi4py,
    which join them, is not installed.

    Example:
        >>> with open_ranks() as ranks:
        ...     ranks.rank, ranks.size
        (0, 1)
    """
    launch = launched()
    if launch is not None:
        launch.bind_gpu()
        running = runtime.started() or runtime.start(threads=None if has_gpu() else launch.threads)
        by_gpu = running.arch == "cuda"
    with ranks_of(launch, launch is not None and by_gpu) as comm:
        require_count(comm.size)
        yield comm
