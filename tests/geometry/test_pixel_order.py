"""Law: the order in which pixels are marched has each once, whatever image and batch, and keeps neighbours near."""

from __future__ import annotations

import numpy as np
import pytest

from raymarch.rendering.ray_batches import TILE_SIDE, pixels_in_tiles

SIZES = ((1, 1), (5, 3), (32, 32), (33, 32), (32, 33), (31, 100), (100, 31), (64, 96), (97, 130))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_each_pixel_comes_once(width, height):
    order = pixels_in_tiles(0, width * height, width, height)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(width * height))


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_batches_cut_one_order(width, height, batch):
    total = width * height
    if total > 40 * batch:
        batch = -(-total // 40)
    parts = [pixels_in_tiles(i, min(batch, total - i), width, height) for i in range(0, total, batch)]
    np.testing.assert_array_equal(np.concatenate(parts), pixels_in_tiles(0, total, width, height))


@pytest.mark.parametrize("side", [2, 4, 8, 16, TILE_SIDE])
def test_runs_of_a_whole_square_are_squares(side):
    width, height = 3 * TILE_SIDE + 5, 2 * TILE_SIDE + 7
    for start in range(3):
        run = pixels_in_tiles(start * side**2, side**2, width, height)
        v, u = np.divmod(run, width)
        assert (np.ptp(u), np.ptp(v)) == (side - 1, side - 1)
