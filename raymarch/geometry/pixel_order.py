"""Pixel order of a march: square tiles, so that neighbouring rays share what they read (memory coherence)."""

from __future__ import annotations

import numpy as np

SIDE = 32  # pixels a side of a square; a power of two


def pixels_in_tiles(first: int, count: int, width: int, height: int) -> np.ndarray:
    """Pixel indices (count,) int32 in tile order, from the `first`th on; numbered row by row.

    Within a whole square they follow the Z curve (Morton 1966), in those cut off at the right and below, rows.

    Example:
        >>> pixels_in_tiles(0, 4, 64, 64).tolist()
        [0, 1, 64, 65]
    """
    band, within = np.divmod(np.arange(first, first + count), SIDE * width)
    rows = np.minimum(SIDE, height - SIDE * band)
    column, within = np.divmod(within, SIDE * rows)
    columns = np.minimum(SIDE, width - SIDE * column)
    v, u = np.divmod(within, columns)
    whole = (rows == SIDE) & (columns == SIDE)
    u, v = np.where(whole, _every_other_bit(within), u), np.where(whole, _every_other_bit(within >> 1), v)
    return ((SIDE * band + v) * width + SIDE * column + u).astype(np.int32)


def _every_other_bit(code: np.ndarray) -> np.ndarray:
    """Bits 0, 2, 4, ... of a code, side by side: half of a Z curve's coordinates."""
    return sum((code >> k & 1 << k for k in range(SIDE.bit_length() - 1)), np.zeros_like(code))
