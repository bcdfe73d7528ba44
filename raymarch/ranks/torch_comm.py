"""Communicator over torch.distributed: gloo between processors, NCCL between GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from raymarch.errors import RaymarchError, one_line

T = TypeVar("T")

WAIT = timedelta(minutes=10)  # for a rank that says nothing: as long as compiling may take
MEETING = timedelta(minutes=2)  # for all ranks to be there


class TorchComm:
    """Communicator of a process group of PyTorch's, which is there already."""

    def __init__(self, dist: Any, torch: Any, backend: str):
        self._dist, self._torch, self._device = dist, torch, "cuda" if backend == "nccl" else "cpu"
        self.rank, self.size, self.by = dist.get_rank(), dist.get_world_size(), f"torch.distributed ({backend})"

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        mine = self._sent(array)
        found = [self._torch.empty_like(mine) for _ in range(self.size)]
        self._require_all(lambda: self._dist.all_gather(found, mine))
        return [each.cpu().numpy() for each in found]

    def swap(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        dist, mine = self._dist, [self._sent(part) for part in parts]
        found = [
            mine[self.rank] if k == self.rank else self._torch.empty_like(mine[self.rank]) for k in range(self.size)
        ]
        others = [k for k in range(self.size) if k != self.rank]
        asked = [dist.P2POp(dist.isend, mine[k], k) for k in others]
        asked += [dist.P2POp(dist.irecv, found[k], k) for k in others]

        def go() -> None:
            for request in dist.batch_isend_irecv(asked):
                request.wait()

        self._require_all(go)
        return [each.cpu().numpy() for each in found]

    def first_to_fail(self) -> bool:
        with suppress(Exception):  # the store went with the rank that had it: who is left tells what it knows
            return self._dist.distributed_c10d._get_default_store().add("raymarch: failed", 1) == 1
        return True

    def _sent(self, array: np.ndarray) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def _require_all(self, go: Callable[[], T]) -> T:
        """What a call gives; RaymarchError where a rank is gone."""
        try:
            return go()
        except RuntimeError as error:
            raise RaymarchError(
                f"rank {self.rank} has lost another rank ({_first_words(error)}), and nothing was written; look what it"
                " said last, for want of memory most of all, and start all ranks anew, with --resume (resume=True in"
                " Python) where there is a checkpoint"
            ) from error


def _first_words(error: BaseException) -> str:
    """What happened, without the place in PyTorch's source and addresses."""
    text = one_line(error).split("] ", 1)[-1]
    return text.split(" This may", 1)[0].split(". ", 1)[0][:90]


@contextmanager
def torch_comm(by_gpu: bool) -> Iterator[TorchComm]:
    """Communicator of the ranks that torchrun started, by its variables; over NCCL where they compute on GPUs.

    RaymarchError where PyTorch is not installed, or the ranks do not meet.
    """
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        raise RaymarchError(
            'PyTorch is not installed and joins the ranks of torchrun; pip install "raymarch[torch]"'
        ) from None
    backend = "nccl" if by_gpu and torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    try:
        dist.init_process_group(backend, timeout=MEETING)
    except (RuntimeError, ValueError) as error:
        raise RaymarchError(
            f"the ranks do not meet ({_first_words(error)}); start them by torchrun, all with the same MASTER_ADDR and"
            " MASTER_PORT"
        ) from error
    try:
        with suppress(Exception):  # of a PyTorch that has one time for all
            dist.distributed_c10d._set_pg_timeout(WAIT)
        yield TorchComm(dist, torch, backend)
    finally:
        with suppress(Exception):  # of ranks that are gone
            dist.destroy_process_group()
