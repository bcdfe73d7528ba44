"""How this process was started: by torchrun or by MPI, as their variables tell, as which of how many, on which GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from raymarch.system.resources import cores

GPUS = "CUDA_VISIBLE_DEVICES"
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
MPI = (  # rank, size, rank on this machine, ranks on this machine: Open MPI, MPICH and Intel MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


@dataclass(frozen=True)
class Launch:
    """How this process was started as one of several.

    Attributes:
        by: "torchrun" or "MPI".
        rank, size: this process's number among all, and how many there are.
        local_rank, local_size: the same of those on this machine.
    """

    by: str
    rank: int
    size: int
    local_rank: int
    local_size: int

    @property
    def threads(self) -> int:
        """Processors for this rank: its part of the machine's."""
        return max(1, cores() // self.local_size)

    def bind_gpu(self) -> None:
        """Have this process see one GPU, its own, before anything asks for GPUs: all ranks would take the first."""
        seen = [one for one in os.environ.get(GPUS, "").split(",") if one]
        if seen and self.local_rank < len(seen):
            os.environ[GPUS] = seen[self.local_rank]
        elif not seen and GPUS not in os.environ:
            os.environ[GPUS] = str(self.local_rank)


def launched(env: Mapping[str, str] | None = None) -> Launch | None:
    """How this process was started, by its variables; None for one alone. MPI counts from two processes on.

    Example:
        >>> launched({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"})
        Launch(by='torchrun', rank=1, size=2, local_rank=1, local_size=2)
        >>> launched({"PMI_SIZE": "1", "PMI_RANK": "0"}) is None
        True
    """
    env = os.environ if env is None else env
    for by, names in (("torchrun", TORCHRUN), *(("MPI", names) for names in MPI)):
        rank, size = (env.get(name, "") for name in names[:2])
        if not (rank.isdigit() and size.isdigit()) or (by == "MPI" and int(size) < 2):
            continue
        local, count = (env.get(name, "") for name in names[2:])
        return Launch(
            by, int(rank), int(size), int(local if local.isdigit() else rank), int(count if count.isdigit() else size)
        )
    return None
