"""Exchange of a step between the ranks of a fit: the gradient of touched blocks, summed, and a few numbers of each."""

from __future__ import annotations

import numpy as np

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.kernels.field.touched import words_of
from raymarch.kernels.fit import packing
from raymarch.ranks.comm import Comm, sum_over_ranks

BITS_OF_BYTE = np.array([bin(n).count("1") for n in range(256)], np.int32)


class GradientExchange:
    """Exchange of gradients between ranks whose grids are alike; `bytes_sent` counts those of the last step."""

    def __init__(self, comm: Comm):
        self.comm, self.bytes_sent = comm, 0

    def share(self, grid: Grid, numbers: np.ndarray) -> list[np.ndarray]:
        """Have the grid's gradient be the sum of all ranks', in one order; `numbers` (n,) f64 of each, in their order.

        Blocks, and above degree 0 samples of features, that have a gradient on any rank travel, and no others.
        """
        if self.comm.size == 1:
            return [numbers]
        found, at = self._marked(grid, numbers)
        words = self._words(grid, at)
        flat, shapes = self._packed(grid, at, words)
        self.bytes_sent += 2 * flat.nbytes * (self.comm.size - 1) // self.comm.size
        self._unpack(grid, at, words, sum_over_ranks(self.comm, flat), shapes)
        return found

    def _marked(self, grid: Grid, numbers: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Numbers of each rank, and the blocks (n,) that have a gradient on any."""
        blocks = grid.blocks
        marks = np.zeros(int(np.prod([blocks[a] for a in range(3)])), np.uint8)
        packing.marks_out(grid.fields, blocks, marks)
        sent = np.concatenate([numbers.view(np.uint8), np.packbits(marks)])
        self.bytes_sent = sent.nbytes
        found = self.comm.gather(sent)
        bits = np.bitwise_or.reduce([each[numbers.nbytes :] for each in found])
        marked = np.flatnonzero(np.unpackbits(bits, count=len(marks))).astype(np.int32)
        return [each[: numbers.nbytes].copy().view(float) for each in found], marked

    def _words(self, grid: Grid, at: np.ndarray) -> np.ndarray | None:
        """Words (block, word) of the samples whose features have a gradient on any rank; None at degree 0."""
        if not grid.fields.parted:
            return None
        words = np.empty((len(at), words_of(grid.fields)), np.int32)
        packing.words_out(grid.fields, grid.blocks, at, words)
        self.bytes_sent += words.nbytes
        return np.bitwise_or.reduce(self.comm.gather(words))

    def _packed(self, grid: Grid, at: np.ndarray, words: np.ndarray | None) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Gradient of these blocks and samples in one array (n,), and the shapes of its parts."""
        shapes = [(len(at), packing.numbers_of_block(grid.fields))]
        if words is not None:
            shapes.append((int(_bits_of(words).sum()), grid.colours * (grid.degree + 1) ** 2))
        flat = np.empty(sum(rows * columns for rows, columns in shapes), runtime.dtype())
        parts = _parts(flat, shapes)
        packing.blocks_out(grid.fields, grid.blocks, at, parts[0])
        if words is not None:
            packing.features_out(grid.fields, grid.blocks, at, words, _first_of(words), parts[1])
        return flat, shapes

    @staticmethod
    def _unpack(
        grid: Grid, at: np.ndarray, words: np.ndarray | None, flat: np.ndarray, shapes: list[tuple[int, int]]
    ) -> None:
        """Set the grid's gradient to what `_packed` gave of all ranks."""
        parts = _parts(flat, shapes)
        packing.blocks_in(grid.fields, grid.blocks, at, parts[0])
        if words is not None:
            packing.features_in(grid.fields, grid.blocks, at, words, _first_of(words), parts[1])


def _parts(flat: np.ndarray, shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]


def _bits_of(words: np.ndarray) -> np.ndarray:
    """Count (block,) of the bits of each block's words."""
    return BITS_OF_BYTE[np.ascontiguousarray(words).view(np.uint8)].sum(1)


def _first_of(words: np.ndarray) -> np.ndarray:
    """Number (block,) of the first sample of each block among those of all."""
    counts = _bits_of(words)
    return (np.cumsum(counts) - counts).astype(np.int32)
