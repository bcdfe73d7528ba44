"""Law: PSNR and SSIM are what their papers say, loop by loop, and know an equal image from another."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import Evaluation, ViewScore, evaluate
from raymarch.evaluation.metrics import psnr, ssim
from raymarch.geometry.camera import Camera
from raymarch.rendering.march_settings import March
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

RNG = np.random.default_rng(0)
TRUTH = RNG.uniform(0, 1, (14, 13, 3))
IMAGE = np.clip(TRUTH + RNG.normal(0, 0.1, TRUTH.shape), 0, 1)


def slow_psnr(image, truth):
    """-10 log10 of the mean over pixels and channels of the squared difference."""
    total = sum((image[i] - truth[i]) ** 2 for i in np.ndindex(truth.shape))
    return -10 * math.log10(total / truth.size)


def slow_ssim(image, truth):
    """Wang et al. 2004, eq. 13, with a weighted mean, variance and covariance for each window."""
    weight = {}
    for i, j in np.ndindex(11, 11):
        weight[i, j] = math.exp(-((i - 5) ** 2 + (j - 5) ** 2) / (2 * 1.5**2))
    norm = sum(weight.values())
    scores = []
    for row, column, c in np.ndindex(truth.shape[0] - 10, truth.shape[1] - 10, truth.shape[2]):
        pairs = [
            (w / norm, image[row + i, column + j, c], truth[row + i, column + j, c]) for (i, j), w in weight.items()
        ]
        x, y = sum(w * p for w, p, _ in pairs), sum(w * q for w, _, q in pairs)
        xx, yy = sum(w * (p - x) ** 2 for w, p, _ in pairs), sum(w * (q - y) ** 2 for w, _, q in pairs)
        xy = sum(w * (p - x) * (q - y) for w, p, q in pairs)
        c1, c2 = 0.01**2, 0.03**2
        scores.append((2 * x * y + c1) * (2 * xy + c2) / ((x * x + y * y + c1) * (xx + yy + c2)))
    return sum(scores) / len(scores)


@pytest.mark.parametrize(("metric", "slow"), [(psnr, slow_psnr), (ssim, slow_ssim)], ids=["psnr", "ssim"])
def test_metric_is_its_definition(metric, slow):
    assert metric(IMAGE, TRUTH) == pytest.approx(slow(IMAGE, TRUTH), rel=1e-10)


@pytest.mark.parametrize(("off", "wanted"), [(1.0, 0.0), (0.1, 20.0), (0.01, 40.0), (0.5, 10 * math.log10(4))])
def test_psnr_of_an_even_difference(off, wanted):
    truth = np.zeros((4, 4, 3))
    assert psnr(truth + off, truth) == pytest.approx(wanted, abs=1e-9)


def test_ssim_of_even_images_is_their_luminance():
    """No variance: (2 x y + c1) / (x^2 + y^2 + c1)."""
    wanted = (2 * 0.5 * 0.25 + 1e-4) / (0.5**2 + 0.25**2 + 1e-4)
    assert ssim(np.full((12, 12, 3), 0.5), np.full((12, 12, 3), 0.25)) == pytest.approx(wanted, rel=1e-9)


def test_equal_images_are_perfect():
    assert psnr(TRUTH, TRUTH) == math.inf
    assert ssim(TRUTH, TRUTH) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("metric", [psnr, ssim])
def test_worse_images_score_less(metric):
    noise = np.random.default_rng(1).normal(size=TRUTH.shape)
    truth = 0.25 + TRUTH / 2
    scores = [metric(truth + size * noise, truth) for size in (0.001, 0.01, 0.05)]
    assert scores[0] > scores[1] > scores[2]


@pytest.mark.parametrize("metric", [psnr, ssim])
def test_the_image_is_clipped_to_what_can_be_shown(metric):
    wild = IMAGE * 3 - 1
    assert metric(wild, TRUTH) == metric(np.clip(wild, 0, 1), TRUTH)
    assert metric(wild, TRUTH) > metric(1 - np.clip(wild, 0, 1), TRUTH)


@pytest.mark.parametrize("metric", [psnr, ssim])
@pytest.mark.parametrize("cut", [np.s_[:-1], np.s_[:, 1:], np.s_[..., :2]])
def test_images_of_two_shapes_are_an_error(metric, cut):
    with pytest.raises(RaymarchError, match="resize") as error:
        metric(IMAGE[cut], TRUTH)
    assert str(TRUTH.shape) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", [(10, 12, 3), (12, 10, 3)])
def test_ssim_needs_a_window(shape):
    with pytest.raises(RaymarchError, match="11 x 11"):
        ssim(np.zeros(shape), np.zeros(shape))


@pytest.mark.parametrize("metric", [psnr, ssim])
def test_bytes_are_display_values(metric):
    """uint8 counts to 255, on either side; numbers that do so as floats are refused with the cure."""
    image, truth = (np.round(x * 255).astype(np.uint8) for x in (IMAGE, TRUTH))
    wanted = metric(image / 255, truth / 255)
    assert metric(image, truth) == metric(image, truth / 255) == metric(image / 255, truth) == wanted
    assert wanted == pytest.approx(metric(IMAGE, TRUTH), rel=1e-2)
    for pair in ((image.astype(float), truth), (image, truth.astype(float)), (image.astype(int), truth)):
        with pytest.raises(RaymarchError, match=r"(image|truth) has 255 at its brightest.*; divide it by 255"):
            metric(*pair)


def test_an_evaluation_prints_in_one_short_line():
    made = Evaluation(31.234, 0.98765, tuple(ViewScore(f"{i:03d}", 31.0, 0.98) for i in range(200)), 0.01234)
    assert repr(made) == "Evaluation(PSNR 31.23 dB, SSIM 0.9877, 200 views, 0.0123 s an image)"
    assert repr(replace(made, ssim=None)) == "Evaluation(PSNR 31.23 dB, SSIM none, 200 views, 0.0123 s an image)"


def test_a_volume_brighter_than_any_display_is_evaluated():
    """As what can be shown of it: a line integral has no upper end."""
    thick = Volume.from_array(np.full((6, 6, 6), 50.0))
    views = Views([Camera.look_at((0, -9, 0), fov=0.1, width=4, height=4)], np.full((1, 4, 4, 3), 255, np.uint8))
    found = evaluate(thick, views, march=March(mode="x-ray"))
    assert found.psnr == math.inf
    assert found.ssim is None


def test_a_view_without_error_is_not_in_the_mean():
    """One of nothing but background makes no score of the others infinite."""
    thick = Volume.from_array(np.full((6, 6, 6), 50.0))
    there, away = (
        Camera.look_at((0, -9, 0), target, fov=0.1, width=4, height=4) for target in ((0, 0, 0), (0, -20, 0))
    )
    views = Views([there, away, there], np.full((3, 4, 4, 3), 255, np.uint8))
    found = evaluate(thick, views)
    assert found.views[1].psnr == math.inf
    assert found.psnr == pytest.approx(found.views[0].psnr, rel=1e-12) and math.isfinite(found.psnr)
