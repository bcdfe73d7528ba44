"""Law: a transfer function comes back from pictures that were made by it, and what a mask takes out shapes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm

KNOTS = [0, 0.4, 0.8, 1.3]
COLOURS, OPACITIES = [(0.1, 0.2, 0.9), (0.2, 0.9, 0.3), (0.9, 0.2, 0.2), (1, 1, 1)], [0, 0.05, 0.25, 0.5]
TRUE = rm.TransferFunction(KNOTS, COLOURS, OPACITIES, unit_length=0.2)
START = rm.TransferFunction(KNOTS, [(0.5, 0.5, 0.5)] * 4, [0.1] * 4, unit_length=0.2)
HALF = np.arange(24) < 12 + np.zeros((24, 1))
BALL = rm.Volume.from_function(lambda p: 1.3 * np.clip(1 - np.linalg.norm(p, axis=-1), 0, None), shape=(16, 16, 16))


@pytest.fixture(scope="module")
def views():
    cameras = rm.orbit((0, 0, 0), 4.0, 5, like=rm.Camera.look_at((4, 0, 0), fov=0.5, width=24, height=24))
    march = rm.March(mode="transfer", transfer=TRUE)
    seen = [rm.render(BALL, camera, march=march, background=(0, 0, 0)) for camera in cameras]
    images = np.rint(255 * np.clip(seen, 0, 1)).astype(np.uint8)
    return rm.Views(cameras, images, background=(0, 0, 0))


def fitted(views):
    return rm.fit_table(BALL, views, START, steps=30, newton=4, rays=1024).table.rgba


def test_a_table_comes_back_from_its_pictures(views):
    np.testing.assert_allclose(fitted(views)[:, 3], OPACITIES, atol=0.05)


def test_paint_behind_a_mask_changes_no_table(views):
    masks = [HALF] * 4 + [np.zeros((24, 24), bool)]
    images = views.images.copy()
    images[:4, :, 12:] = images[4] = (255, 0, 0)
    masked, painted = replace(views, masks=masks), replace(views, masks=masks, images=images)
    found = fitted(painted)
    np.testing.assert_allclose(found, fitted(masked), atol=1e-9)
    np.testing.assert_allclose(found[:, 3], OPACITIES, atol=0.05)


def test_pixels_that_do_not_count_do_not_make_the_loss_less(views):
    """A volume that is transparent throughout is as far from white in any part of an image."""
    clear = rm.TransferFunction(START.values, START.colours, 0 * np.array(START.opacities))
    white = replace(views, images=np.full_like(views.images, 255))
    losses = [
        rm.fit_table(BALL, seen, clear, steps=1, newton=0, rays=1024).loss[0]
        for seen in (white, replace(white, masks=[HALF] * len(white)))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[0] > 0.3
