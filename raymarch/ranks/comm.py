"""Communicator of ranks, processes that make one thing together: what each gives, and sums in one order.

Sums of floats are never left to a library's all-reduce, whose order goes by the count of ranks and the network: here
they are added along one tree of pairs, of which a rank has a branch.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from raymarch.arguments.checks import Check
from raymarch.errors import RaymarchError

COUNTS = (1, 2, 4, 8)  # of ranks: a branch of the tree each


class Comm(Protocol):
    """Communicator: this rank's number among so many, and the two ways in which arrays travel between all.

    Attributes:
        rank, size: this rank's number from 0 on, and how many there are.
        by: what it is made of, in words.
    """

    rank: int
    size: int
    by: str

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        """Arrays of all ranks, in their order, on each; all have the same shape and type."""

    def swap(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What each rank has for this one, in their order, of the shape of `parts[rank]`; `parts[k]` goes to rank k."""

    def first_to_fail(self) -> bool:
        """Whether no other rank has asked this, as far as that can be known: the first that fails tells why, and what
        the others say comes of it."""


def _comm(value: object) -> Comm:
    if not all(hasattr(value, name) for name in ("rank", "size", "gather", "swap")) or isinstance(value, type):
        raise TypeError
    return value  # type: ignore[return-value]


COMM = Check("ranks, as `rm.open_ranks()` gives them", _comm)


class Alone:
    """Communicator of one process.

    Example:
        >>> Alone().gather(np.arange(2))[0].tolist()
        [0, 1]
    """

    rank, size, by = 0, 1, "one process"

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        return [array]

    def swap(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        return list(parts)

    def first_to_fail(self) -> bool:
        return True


def require_count(size: int) -> None:
    """RaymarchError for a count of ranks that is no branch of the tree.

    Example:
        >>> require_count(3)
        Traceback (most recent call last):
            ...
        raymarch.errors.RaymarchError: 3 ranks were started, want 1, 2, 4 or 8: a step has 8 parts, ...
    """
    if size not in COUNTS:
        fewer = max((count for count in COUNTS if count < size), default=1)
        raise RaymarchError(
            f"{size} ranks were started, want 1, 2, 4 or 8: a step has 8 parts, as many for each; start {fewer}"
        )


def sum_in_pairs(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Sum of arrays, a power of two of them, along a tree of pairs.

    Example:
        >>> float(sum_in_pairs([np.array(x, np.float32) for x in (1e8, 1.0, -1e8, 1.0)]))
        0.0
    """
    while len(arrays) > 1:
        arrays = [arrays[i] + arrays[i + 1] for i in range(0, len(arrays), 2)]
    return arrays[0]


def sum_over_ranks(comm: Comm, array: np.ndarray) -> np.ndarray:
    """Sum of all ranks' arrays (n,) along the tree of pairs, the same bits on each: each rank adds up its part of the
    numbers and gives it to all, so that no more travels than in any all-reduce.

    Example:
        >>> sum_over_ranks(Alone(), np.arange(3.0)).tolist()
        [0.0, 1.0, 2.0]
    """
    if comm.size == 1:
        return array
    each = -(-len(array) // comm.size)
    whole = np.zeros(each * comm.size, array.dtype)
    whole[: len(array)] = array
    own = sum_in_pairs(comm.swap(np.split(whole, comm.size)))
    return np.concatenate(comm.gather(own))[: len(array)]


def as_bytes(text: str, length: int) -> np.ndarray:
    """Text as so many bytes, the same count on each rank."""
    return np.frombuffer(text.encode()[:length].ljust(length, b"\0"), np.uint8).copy()


def texts_of(comm: Comm, text: str, length: int = 400) -> list[str]:
    """Texts of all ranks, cut to so many bytes, in their order.

    Example:
        >>> texts_of(Alone(), "cpu")
        ['cpu']
    """
    return [each.tobytes().rstrip(b"\0").decode(errors="replace") for each in comm.gather(as_bytes(text, length))]


def ranks_here(comm: Comm) -> int:
    """Count of the ranks on this machine.

    Example:
        >>> ranks_here(Alone())
        1
    """
    return texts_of(comm, platform.node()).count(platform.node())


def require_alike(comm: Comm, what: str, mine: str, cure: str) -> None:
    """RaymarchError, on all ranks, where something is not the same on each."""
    found = texts_of(comm, mine)
    for rank, its in enumerate(found):
        if its != found[0]:
            raise RaymarchError(f"{what} on rank 0 is {found[0]}, on rank {rank} {its}; {cure}")
