"""Choice of the memory layout: the block of each kind of grid, which depends on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import one_of
from raymarch.arguments.declared import held, hold

LARGE = 192**3  # samples from which a grid of degree 0 counts as large
BLOCK = one_of(1, 2, 4)  # not 8, whose marks, and so what is refused for want of memory, are others


@dataclass(frozen=True)
class LayoutChoice:
    """Layout choice: edge of the layout's blocks [voxel] by kind of grid, 1 flat; the bytes of results are the same.

    Attributes:
        read, fit: of SH degree 0, without and with gradients, below 192^3 samples.
        read_large, fit_large: the same from 192^3 samples on.
        read_above, fit_above: of higher SH degrees.

    Example:
        >>> LayoutChoice().fit_large
        4
    """

    read: int = held(BLOCK, 1)  # flat: addresses are cheapest
    fit: int = held(BLOCK, 4)  # of which adding up and Adam read whole pages
    read_large: int = held(BLOCK, 1)
    fit_large: int = held(BLOCK, 4)
    read_above: int = held(BLOCK, 4)
    fit_above: int = held(BLOCK, 4)

    def __post_init__(self) -> None:
        hold(self)


IN_WORDS = {
    "read": "reading, SH degree 0, below 192^3 samples",
    "fit": "fitting, SH degree 0, below 192^3 samples",
    "read_large": "reading, SH degree 0, from 192^3 samples",
    "fit_large": "fitting, SH degree 0, from 192^3 samples",
    "read_above": "reading, higher SH degrees",
    "fit_above": "fitting, higher SH degrees",
}


def block_in_words(block: int) -> str:
    """A layout in words, by the edge of its blocks.

    Example:
        >>> block_in_words(1), block_in_words(4)
        ('flat', 'blocks of 4')
    """
    return "flat" if block == 1 else f"blocks of {block}"


def kind_of(shape: Sequence[int], degree: int, slots: int) -> str:
    """Kind of a grid, a field of `LayoutChoice`; it is fitted where it has slots.

    Example:
        >>> kind_of((256, 256, 256), 0, slots=4)
        'fit_large'
    """
    use = "fit" if slots else "read"
    if degree > 0:
        return f"{use}_above"
    return f"{use}_large" if np.prod(shape, dtype=float) >= LARGE else use
