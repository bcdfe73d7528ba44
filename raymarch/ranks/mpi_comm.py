"""Communicator over MPI, by mpi4py."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError

FIRST_SECONDS = 2.0  # that the first rank has to say why all fail, and to end the others


class MpiComm:
    """Communicator of all processes that mpirun or srun started."""

    by = "MPI"

    def __init__(self, mpi: Any):
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        array = np.ascontiguousarray(array)
        found = np.empty((self.size, *array.shape), array.dtype)
        self._world.Allgather(array, found)
        return list(found)

    def swap(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        mine = [np.ascontiguousarray(part) for part in parts]
        found = [mine[self.rank] if k == self.rank else np.empty_like(mine[self.rank]) for k in range(self.size)]
        others = [k for k in range(self.size) if k != self.rank]
        asked = [self._world.Irecv(found[k], k) for k in others] + [self._world.Isend(mine[k], k) for k in others]
        self._mpi.Request.Waitall(asked)
        return found

    def first_to_fail(self) -> bool:
        if self.rank > 0:
            time.sleep(FIRST_SECONDS)
        return True


@contextmanager
def mpi_comm() -> Iterator[MpiComm]:
    """Communicator of the ranks that mpirun started; where one of them fails, MPI ends all.

    RaymarchError where mpi4py is not installed, or finds no MPI.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        missing = isinstance(error, ModuleNotFoundError)
        why = "is not installed; pip install mpi4py" if missing else "finds no MPI library; pip install mpich"
        raise RaymarchError(f"MPI started this and mpi4py {why}, or start the ranks by torchrun") from None
    try:
        yield MpiComm(MPI)
    except Exception:
        atexit.register(MPI.COMM_WORLD.Abort, 1)  # once it is said why: MPI's own end would wait for the others
        raise
