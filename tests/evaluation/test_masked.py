"""Law: what lies outside a mask counts nowhere, halves forgive exposure and nothing else, LPIPS is never downloaded."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.evaluation import held_out, metrics
from raymarch.evaluation.metrics import psnr, psnr_halves, ssim
from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

RNG = np.random.default_rng(0)
TRUTH = RNG.uniform(0.05, 0.95, (16, 24, 3))
IMAGE = np.clip(TRUTH + RNG.normal(0, 0.1, TRUTH.shape), 0, 1)
MASK = RNG.random(TRUTH.shape[:2]) < 0.6
EXPOSURE = np.array([1.3, 0.7, 0.9]), np.array([-0.05, 0.1, 0.02])


@pytest.mark.parametrize("metric", [psnr, psnr_halves, ssim])
def test_outside_a_mask_nothing_counts(metric):
    wild = np.where(MASK[..., None], IMAGE, RNG.random(IMAGE.shape))
    wild_truth = np.where(MASK[..., None], TRUTH, RNG.random(TRUTH.shape))
    assert metric(wild, wild_truth, MASK) == pytest.approx(metric(IMAGE, TRUTH, MASK), rel=1e-12)
    assert metric(IMAGE, TRUTH, MASK) != metric(IMAGE, TRUTH)


@pytest.mark.parametrize("metric", [psnr, psnr_halves, ssim])
def test_a_mask_of_all_is_none(metric):
    assert metric(IMAGE, TRUTH, np.ones_like(MASK)) == pytest.approx(metric(IMAGE, TRUTH), rel=1e-12)


def test_masked_psnr_is_its_definition():
    assert psnr(IMAGE, TRUTH, MASK) == pytest.approx(-10 * np.log10(np.mean((IMAGE - TRUTH)[MASK] ** 2)))


def test_masked_ssim_is_its_definition():
    """A window's weights are those of its pixels inside, scaled to the sum 1; it counts if its centre is inside."""
    x = np.arange(11) - 5.0
    gauss = np.exp(-(x[:, None] ** 2 + x**2) / (2 * 1.5**2))
    scores = []
    for row, column in np.argwhere(MASK[5:-5, 5:-5]):
        at = np.s_[row : row + 11, column : column + 11]
        w = gauss * MASK[at]
        w = (w / w.sum())[..., None]
        a, b = IMAGE[at], TRUTH[at]
        mean_a, mean_b = (w * a).sum((0, 1)), (w * b).sum((0, 1))
        aa, bb = (w * (a - mean_a) ** 2).sum((0, 1)), (w * (b - mean_b) ** 2).sum((0, 1))
        ab = (w * (a - mean_a) * (b - mean_b)).sum((0, 1))
        top = (2 * mean_a * mean_b + 1e-4) * (2 * ab + 9e-4)
        scores.append(top / ((mean_a**2 + mean_b**2 + 1e-4) * (aa + bb + 9e-4)))
    assert ssim(IMAGE, TRUTH, MASK) == pytest.approx(np.mean(scores), rel=1e-10)


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        (MASK[:-1], "mask is .* want bools"),
        (MASK.astype(float), "mask is .* want bools"),
        (np.zeros_like(MASK), "no pixel that counts"),
        ("all", "mask is 'all'"),
    ],
)
@pytest.mark.parametrize("metric", [psnr, psnr_halves, ssim])
def test_a_mask_that_is_none_is_refused(metric, mask, why):
    with pytest.raises(RaymarchError, match=why) as error:
        metric(IMAGE, TRUTH, mask)
    assert "\n" not in str(error.value)


def test_ssim_of_a_mask_along_the_edge_is_refused():
    edge = np.zeros_like(MASK)
    edge[:5] = True
    with pytest.raises(RaymarchError, match="take psnr"):
        ssim(IMAGE, TRUTH, edge)


def test_halves_are_lstsq_on_the_left_and_scored_on_the_right():
    gain, offset = EXPOSURE
    seen = np.clip(gain * TRUTH + offset, 0, 1)
    fitted = []
    for c in range(3):
        x, y = IMAGE[:, :12, c].ravel(), seen[:, :12, c].ravel()
        g, o = np.linalg.lstsq(np.stack([x, np.ones_like(x)], 1), y, rcond=None)[0]
        fitted.append(g * IMAGE[:, 12:, c] + o)
    wanted = psnr(np.stack(fitted, axis=-1), seen[:, 12:])
    assert psnr_halves(IMAGE, seen) == pytest.approx(wanted, abs=1e-3)
    assert psnr_halves(IMAGE, seen) > psnr(IMAGE, seen) + 1


def test_halves_forgive_exposure_and_no_more():
    gain, offset = EXPOSURE
    even = 0.1 + 0.6 * TRUTH
    assert psnr_halves(even, gain * even + offset) > 60
    wrong_right = TRUTH.copy()
    wrong_right[:, 12:] = wrong_right[:, 12:] * 0.7
    assert psnr_halves(wrong_right, TRUTH) == pytest.approx(psnr(wrong_right[:, 12:], TRUTH[:, 12:]), abs=0.01)


def test_a_half_of_few_pixels_tells_nothing():
    assert psnr_halves(IMAGE[:, :1], TRUTH[:, :1]) is None
    few = np.zeros_like(MASK)
    few[:, 12:], few[0, 0] = True, True
    assert psnr_halves(IMAGE, TRUTH, few) is None
    assert psnr_halves(IMAGE, TRUTH, few[:, ::-1]) is None


def test_an_even_half_keeps_the_exposure_as_it_is():
    white = np.concatenate([np.ones((16, 12, 3)), TRUTH[:, 12:]], axis=1)
    assert psnr_halves(white, white) > 50


def views_of(channels, mask=None):
    cameras = [Camera.look_at((0, -4, 0), width=24, height=16)] * 2
    images = np.round(255 * np.stack([TRUTH, IMAGE])).astype(np.uint8)
    if channels == 4:
        alpha = np.where(MASK, 255, 0).astype(np.uint8)[None, ..., None].repeat(2, 0)
        images = np.concatenate([images, alpha], axis=-1)
    return Views(cameras, images, masks=None if mask is None else [mask, None])


OTHER = RNG.random(MASK.shape) < 0.8
BOX = np.array([(-1.0, -1.0, -0.5), (1.0, 1.0, 0.5)])
PIXELS = np.stack(np.meshgrid(np.arange(24) + 0.5, np.arange(16) + 0.5), axis=-1)
CORNERS = views_of(3).cameras[0].project(np.stack(np.meshgrid(*BOX.T, indexing="ij"), axis=-1).reshape(-1, 3))[0]
IN_BOX = ((CORNERS.min(0) <= PIXELS) & (PIXELS <= CORNERS.max(0))).all(-1)  # seen head on, its outline is a rectangle
UNLIKE_BLACK = views_of(3).rgb(0).max(-1) > 0.1
SETS = {
    "photographs": (views_of(3), None, ""),
    "alpha": (views_of(4), MASK, held_out.ALPHA_MASK),
    "masks": (views_of(3, OTHER), OTHER, held_out.SET_MASK),
    "alpha and masks": (views_of(4, OTHER), MASK & OTHER, held_out.SET_AND_ALPHA_MASK),
    "box": (replace(views_of(3), background=(0, 0, 0), box=BOX), IN_BOX & UNLIKE_BLACK, held_out.BOX_MASK),
    "box about a camera": (replace(views_of(3), box=5 * np.array(BOX)), None, ""),
}


@pytest.mark.parametrize(("views", "inside", "by"), SETS.values(), ids=SETS)
def test_a_view_is_scored_as_a_whole_and_inside(views, inside, by):
    found = held_out.score(views, 0, IMAGE)
    assert found.psnr == psnr(IMAGE, views.rgb(0), views.mask(0))
    assert found.ssim == ssim(IMAGE, views.rgb(0), views.mask(0))
    assert found.psnr_halves == psnr_halves(IMAGE, views.rgb(0), views.mask(0))
    assert found.lpips is None
    assert held_out.mask_source(views) == by
    if inside is None:
        assert found.psnr_masked is found.ssim_masked is None
    else:
        assert found.psnr_masked == psnr(IMAGE, views.rgb(0), inside)
        assert found.ssim_masked == ssim(IMAGE, views.rgb(0), inside)


def test_a_view_that_shows_nothing_has_no_masked_scores():
    views = views_of(4)
    images = views.images.copy()
    images[..., 3] = 0
    found = held_out.score(replace(views, images=images), 0, IMAGE)
    assert found.psnr_masked is found.ssim_masked is None
    assert found.psnr > 0


def test_lpips_is_measured_where_it_is_there():
    found = held_out.score(views_of(3), 0, IMAGE, lambda image, truth: 0.25)
    assert found.lpips is None  # 24 x 16 pixels: nothing is left of them
    large = replace(
        views_of(3),
        images=np.zeros((2, 32, 48, 3), np.uint8),
        cameras=[Camera.look_at((0, -4, 0), width=48, height=32)] * 2,
    )
    assert held_out.score(large, 0, np.zeros((32, 48, 3)), lambda image, truth: 0.25).lpips == 0.25


def test_lpips_without_its_packages_is_a_reason(monkeypatch):
    monkeypatch.setattr(metrics.importlib.util, "find_spec", lambda name: None)
    distance, why = metrics.lpips_distance()
    assert distance is None
    assert "torch is not installed" in why


@pytest.mark.parametrize("there", [False, True])
def test_lpips_never_downloads(monkeypatch, tmp_path, there):
    """Without weights its network is not even made; with them images go in as -1 to 1."""
    made = []

    class Network:
        def __init__(self, net, verbose):
            made.append(net)

        def eval(self):
            return self

        def __call__(self, image, truth):
            return abs(image - truth).mean()

    class Tensor:
        @staticmethod
        def from_numpy(x):
            return SimpleNamespace(float=lambda: x)

    from contextlib import nullcontext

    weights = tmp_path / "checkpoints" / "alexnet-0.pth"
    if there:
        weights.parent.mkdir()
        weights.write_bytes(b"weights")
    alexnet = SimpleNamespace(DEFAULT=SimpleNamespace(url="https://somewhere/models/alexnet-0.pth"))
    stubs = {
        "torch": SimpleNamespace(from_numpy=Tensor.from_numpy, no_grad=nullcontext),
        "torch.hub": SimpleNamespace(get_dir=lambda: str(tmp_path)),
        "torchvision.models": SimpleNamespace(AlexNet_Weights=alexnet),
        "lpips": SimpleNamespace(LPIPS=Network),
    }
    monkeypatch.setattr(metrics.importlib.util, "find_spec", lambda name: name)
    for name, stub in stubs.items():
        monkeypatch.setitem(sys.modules, name, stub)
    distance, why = metrics.lpips_distance()
    assert made == (["alex"] if there else [])
    if there:
        assert distance(np.full((32, 32, 3), 0.75), np.full((32, 32, 3), 0.25)) == pytest.approx(1.0)
    else:
        assert distance is None and str(weights) in why
