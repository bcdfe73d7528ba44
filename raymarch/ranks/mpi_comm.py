"""Communicator over MPI, by mpi4py."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError


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
        return self.rank == 0


@contextmanager
def mpi_comm() -> Iterator[MpiComm]:
    """Communicator of the ranks that mpirun started; where one of them fails, MPI ends all.

    RaymarchError where mpi4py is not installed.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        why = "is not installed" if isinstance(error, ModuleNotFoundError) else "finds no MPI"
        raise RaymarchError(
            f"MPI started this and mpi4py {why}; pip install mpi4py, or start the ranks by torchrun"
        ) from None
    comm = MpiComm(MPI)
    yield comm
    sys.stdout.flush()
