"""Laws of backgrounds: one that stands still while the object turns, masks that had better be alpha, inverted masks."""

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.diagnosis.backgrounds import isolating_masks, static_background
from raymarch.diagnosis.diagnose import diagnose, quick_findings
from raymarch.views.mask_alpha import masks_to_alpha

SIZE, COUNT = 48, 16
LIKE = rm.Camera.look_at((4, 0, 1), width=SIZE, height=SIZE, fov=0.7)
RING = [camera for up in (10, 40) for camera in rm.orbit((0, 0, 0), 4.0, COUNT // 2, elevation=up, like=LIKE)]
BODY = np.random.default_rng(0).normal(size=(4000, 3))
BODY = BODY / np.linalg.norm(BODY, axis=1, keepdims=True) * (0.7, 0.5, 0.4) + (0.2, 0.1, 0)
RNG = np.random.default_rng(1)
STILL = RNG.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)


def silhouette(camera):
    shown = np.zeros((SIZE, SIZE), bool)
    u, v = np.floor(camera.project(BODY)[0]).astype(int).T
    for dv in (-1, 0, 1):
        for du in (-1, 0, 1):
            shown[np.clip(v + dv, 0, SIZE - 1), np.clip(u + du, 0, SIZE - 1)] = True
    return shown


SHOWN = [silhouette(camera) for camera in RING]


def turntable(background, noise=0):
    """The body before a background, which is one image for all, or a function of the view."""
    images = []
    for i, shown in enumerate(SHOWN):
        behind = background(i) if callable(background) else background
        image = np.where(shown[..., None], np.random.default_rng(i).integers(0, 256, (SIZE, SIZE, 3)), behind)
        images.append(np.clip(image + np.random.default_rng(50 + i).normal(0, noise, image.shape), 0, 255))
    return rm.Views(RING, np.stack(images).astype(np.uint8))


def moving(i):
    return np.random.default_rng(100 + i).integers(0, 256, (SIZE, SIZE, 3))


@pytest.mark.parametrize("noise", [0, 2, 4])
def test_a_background_that_stands_still_is_told_from_shuffled_images(noise):
    views = turntable(STILL, noise)
    (found,) = [each for each in diagnose(views) if each.severity == "error"]
    assert found.code == "static-background" and "alpha" in found.cure
    assert "static-background" in [each.code for each in quick_findings(views)]


QUIET = {
    "a background that moves": lambda: turntable(moving),
    "white": lambda: turntable(np.full((SIZE, SIZE, 3), 255)),
    "black": lambda: turntable(np.zeros((SIZE, SIZE, 3))),
    "a watermark": lambda: turntable(lambda i: np.where(np.arange(SIZE)[:, None, None] < 3, STILL, moving(i))),
    "cameras that stand still": lambda: replace(turntable(STILL), cameras=[RING[0]] * COUNT),
    "alpha": lambda: masks_to_alpha(replace(turntable(STILL), masks=SHOWN)),
    "masks": lambda: replace(turntable(STILL), masks=SHOWN),
    "few views": lambda: turntable(STILL)[:3],
}


@pytest.mark.parametrize("what", QUIET)
def test_nothing_is_said_of_other_backgrounds(what):
    assert static_background(QUIET[what]()) is None


def test_the_cure_of_a_still_background_is_masks_as_alpha():
    views = turntable(STILL)
    assert static_background(views) is not None
    cured = masks_to_alpha(replace(views, masks=SHOWN))
    assert static_background(cured) is None and isolating_masks(cured) is None


def test_masks_that_leave_an_object_alone_are_better_as_alpha():
    views = replace(turntable(STILL), masks=SHOWN)
    found = isolating_masks(views)
    assert found is not None and found.code == "masks-not-alpha" and "--masks alpha" in found.cure
    assert "masks-not-alpha" in [each.code for each in diagnose(views)]
    assert "masks-not-alpha" in [each.code for each in quick_findings(views)]
    assert isolating_masks(masks_to_alpha(views)) is None


def test_inverted_masks_are_told_and_cured():
    views = replace(turntable(moving), masks=[~shown for shown in SHOWN])
    found = isolating_masks(views)
    assert found is not None and found.code == "masks-inverted" and "invert them" in found.cure
    assert isolating_masks(replace(views, masks=SHOWN)).code == "masks-not-alpha"


def passer_by(i):
    mask = np.ones((SIZE, SIZE), bool)
    x, y = np.random.default_rng(i).integers(2, SIZE - 18, 2)
    mask[y : y + 16, x : x + 10] = False
    return mask


def circle(_):
    at = np.arange(SIZE) - SIZE / 2 + 0.5
    return at**2 + at[:, None] ** 2 < (SIZE / 2) ** 2


@pytest.mark.parametrize("mask", [passer_by, circle], ids=["a passer-by", "a lens"])
def test_masks_that_mean_unknown_are_left_as_they_are(mask):
    assert isolating_masks(replace(turntable(moving), masks=[mask(i) for i in range(COUNT)])) is None


@pytest.mark.parametrize("masked", [0.25, 0.75])
def test_views_of_which_some_have_no_mask_are_left_as_they_are(masked):
    masks = [shown if i < masked * COUNT else None for i, shown in enumerate(SHOWN)]
    assert isolating_masks(replace(turntable(moving), masks=masks)) is None
