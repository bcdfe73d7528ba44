"""Law: exposures and the background of a fit are the least squares of what was rendered and seen, in one gauge."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import drive
import numpy as np
import pytest

from raymarch.device.image_store import ImageStore
from raymarch.device.photometry_sums import PhotometricSums
from raymarch.engine import ti
from raymarch.fitting import photometry as module
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.settings.settings import preset
from raymarch.kernels.fit.photometry import add_photometry
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.views.exposure import NEUTRAL_EXPOSURE, exposures_of, moments, normalise_exposures
from raymarch.views.views import Views

QUICK = {"resolution": 20, "steps": 300, "rays": 1024, "sh_degree": 0, "slots": 1}


@pytest.fixture
def rng():
    """Random numbers of one test, the same whichever ran before it."""
    return np.random.default_rng(1)


def planted(count, stops=1.0, offset=0.03, seed=0):
    """Exposures (view, 6) that drift by up to so many stops, and another a channel."""
    rng = np.random.default_rng(seed)
    drift = np.linspace(-stops / 2, stops / 2, count)[:, None] + rng.uniform(-0.1, 0.1, (count, 3))
    return np.concatenate([2.0**drift, rng.uniform(-offset, offset, (count, 3))], axis=1)


def seen_by(x, exposure):
    return exposure[:3] * x + exposure[3:]


@pytest.mark.parametrize("ridge", [(1e-12, 1e-12), (1.0, 100.0), (50.0, 0.1)])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_exposures_are_those_of_lstsq_with_the_ridge_as_rows(ridge, noise, rng):
    x, w = rng.uniform(0, 1, (200, 3)), rng.uniform(0, 1, (200, 3))
    y = seen_by(x, planted(2)[0]) + noise * rng.normal(size=x.shape)
    found = exposures_of(moments(x, y, w), ridge)
    for c in range(3):
        rows = np.sqrt(w[:, c, None]) * np.stack([x[:, c], np.ones(200)], axis=1)
        rows = np.concatenate([rows, np.diag(np.sqrt(ridge))])
        right = np.concatenate([np.sqrt(w[:, c]) * y[:, c], [np.sqrt(ridge[0]), 0]])
        wanted = np.linalg.lstsq(rows, right, rcond=None)[0]
        np.testing.assert_allclose(found[[c, 3 + c]], wanted, rtol=1e-9, atol=1e-10)


def test_what_tells_nothing_leaves_an_exposure_neutral():
    nothing = exposures_of(np.zeros((2, 5, 3)), (1.0, 100.0))
    np.testing.assert_array_equal(nothing, np.tile(NEUTRAL_EXPOSURE, (2, 1)))
    one_pixel = exposures_of(moments(np.full((1, 3), 0.5), np.full((1, 3), 0.9)), (1.0, 100.0))
    assert np.abs(one_pixel - NEUTRAL_EXPOSURE).max() < 0.2


def test_the_gauge_holds_means_and_changes_no_view_against_another(rng):
    """A common image that is brighter and lifted is all that a gauge takes out."""
    exposures = planted(7, stops=2.0, offset=0.1)
    found = normalise_exposures(exposures)
    np.testing.assert_allclose(np.log(found[:, :3]).mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(found[:, 3:].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(normalise_exposures(found), found, atol=1e-12)
    brighter = np.concatenate([exposures[:, :3] / 1.7, exposures[:, 3:] - exposures[:, :3] * 0.2 / 1.7], axis=1)
    np.testing.assert_allclose(normalise_exposures(brighter), found, atol=1e-12)
    x = rng.uniform(0, 1, (5, 3))
    gain = exposures[0, :3] / found[0, :3]
    common = gain * x + (exposures[0, 3:] - found[0, 3:]) / found[0, :3]
    for one, other in zip(exposures, found, strict=True):
        np.testing.assert_allclose(seen_by(x, one), seen_by(common, other), atol=1e-12)


@cache
def photos() -> Views:
    """Images without alpha: a soft ball before grey."""
    seen = replace(drive.ball_views(), background=(0.3, 0.4, 0.5))
    return replace(seen, images=np.round([255 * seen.rgb(i) for i in range(len(seen))]).astype(np.uint8))


def exposed(views, exposures) -> Views:
    """The same images as they are seen through exposures."""
    images = [np.clip(255 * seen_by(views.rgb(i), e), 0, 255) for i, e in enumerate(exposures)]
    return replace(views, images=np.round(images).astype(np.uint8))


def test_a_drift_of_a_stop_is_recovered():
    """As ratios of gains: what all views share is the gauge's. And the fit is as good as one of even images."""
    views = photos()
    true = normalise_exposures(planted(len(views)))
    result = fit(exposed(views, true), preset("quick", **QUICK, exposure=True), box=drive.BALL_BOX)
    found = np.array([row[1:] for row in result.volume.provenance["exposures"]])
    assert [row[0] for row in result.volume.provenance["exposures"]] == list(views.names)
    np.testing.assert_allclose(np.log2(found[:, :3] / true[:, :3]), 0, atol=0.1)
    np.testing.assert_allclose(found[:, 3:], true[:, 3:], atol=0.03)
    assert np.abs(np.log2(true[:, :3])).max() > 0.4


@pytest.mark.parametrize("start", [(0.9, 0.1, 0.5)])
def test_a_planted_background_is_recovered(start, monkeypatch):
    monkeypatch.setattr(module, "mean_colour", lambda views: start)
    result = fit(photos(), preset("quick", **QUICK, learn_background=True), box=drive.BALL_BOX)
    np.testing.assert_allclose(result.volume.background, photos().background, atol=0.02)


def test_the_start_of_a_learned_background_is_the_images_mean():
    views = photos()
    np.testing.assert_allclose(module.mean_colour(views), views.images[:, ::4, ::4].mean((0, 1, 2)) / 255, atol=1e-6)
    counts = np.arange(views.images.shape[2]) % 8 < 4 + np.zeros((views.images.shape[1], 1))
    masked = replace(views, masks=[counts] * len(views))
    wanted = views.images[:, ::4, ::8].mean((0, 1, 2)) / 255
    np.testing.assert_allclose(module.mean_colour(masked), wanted, atol=1e-6)


def test_a_newton_step_is_least_squares(rng):
    """Of images C + T b: one step from anywhere lands at the b of lstsq, up to the ridge of one ray."""
    T, b = rng.uniform(0, 1, 500), np.array([0.2, 0.5, 0.8])
    start = np.array([0.9, 0.9, 0.1])
    sums = np.stack([(T[:, None] * T[:, None] * (start - b)).sum(0), np.repeat((T * T).sum(), 3)])
    np.testing.assert_allclose(module.step_background(tuple(start), sums), b, atol=0.01)
    assert module.step_background((0.5, 0.5, 0.5), np.array([[-1e9, 1e9, 0], [1, 1, 0]])) == (1.0, 0.0, 0.5)


def test_images_with_alpha_keep_their_background(caplog):
    with Fitter(drive.ball_views(), preset("quick", **QUICK, learn_background=True), box=drive.BALL_BOX) as fitter:
        assert fitter.photometry.background == drive.ball_views().background
    assert "not learned" in caplog.text


@pytest.mark.parametrize("gain", [1 / 16, 16.0])
def test_an_offset_is_the_least_beside_a_gain_that_is_bounded(gain):
    """By trying others: none is better."""
    x = np.random.default_rng(0).uniform(0.05, 0.2, (500, 3))
    y = np.repeat(gain * (x[:, :1] - 0.12) + 0.4, 3, 1)
    found = exposures_of(moments(x, y), (1e-9, 1e-9))
    assert found[0] == np.clip(gain, 0.25, 4)

    def error(offset):
        return np.square(found[:3] * x + offset - y).sum()

    assert error(found[3:]) < min(error(found[3:] + 0.01), error(found[3:] - 0.01))


@pytest.mark.parametrize("side", [1, 2])  # last: the fits before it take the buffer that it keeps
def test_sums_on_the_device_are_those_of_numpy(side, rng):
    """Some pixels clipped, some transparent, some far off; every view has the same tiles as its rays."""
    views, seed, step, listed_tiles = drive.ball_views()[:4], 3, 7, 12
    masks = [rng.random((24, 24)) < 0.9, None, None, None]
    images = views.images.copy()
    images[..., 3] = np.where(rng.random(images.shape[:3]) < 0.3, 200, 255)
    images[..., :3][rng.random(images.shape[:3]) < 0.2] = 255
    views = replace(views, images=images, masks=masks)
    exposures, behind = planted(4), np.array([0.2, 0.5, 0.9])
    buffer = drive.ray_buffer()
    with ImageStore(views) as store, PhotometricSums(4, listed_tiles) as sums:
        store.set_exposures(exposures)
        store.choose(listed_tiles, seed, start=step * listed_tiles)
        draw_tiles(buffer.fields, store.fields, listed_tiles, side, 0.0, seed, step, 0.0)
        count, parts = 16 * listed_tiles, side**2
        image = np.zeros((*buffer.fields.image.shape, 4))
        image[: count * parts] = rng.uniform(0, 1, (count * parts, 4))
        buffer.fields.image.from_numpy(image)
        call = (4, listed_tiles, parts, ti.Vector(behind.tolist()), 0.1)
        for _ in range(2):
            add_photometry(buffer.fields, store.fields, sums.fields, *call)
        of_tile = sums.fields.view_of_tile.to_numpy()[:listed_tiles]
        found, found_behind = sums.take(0.5)
        again, none = sums.take(0.0)
    view, target = np.repeat(of_tile, 16), buffer.fields.target.to_numpy()[:count]
    image = image[: count * parts].reshape(count, parts, 4).mean(1)
    origin = buffer.fields.origin.to_numpy()[: count * parts : parts]
    np.testing.assert_allclose(origin, [views.cameras[v].position for v in view], atol=1e-12)
    gain, offset, x = exposures[view, :3], exposures[view, 3:], image[:, :3]
    y = gain * target[:, :3] + offset
    counts = (target[:, 3:] > 0.999) & (y > 0.5 / 255) & (y < 254.5 / 255)
    w = counts / np.maximum(np.abs(gain * x + offset - y) / 0.1, 1)
    wanted = np.stack([moments(x[view == v], y[view == v], w[view == v]) for v in range(4)])
    np.testing.assert_allclose(found, 2 * wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(again, 0.5 * found, rtol=1e-15)
    assert not none.any() and 0 < counts.mean() < 1
    assert (target[:, 3] == -1).any()
    d, T = x - (target[:, :3] * target[:, 3:] + behind * (1 - target[:, 3:])), image[:, 3:]
    w = (target[:, 3:] >= 0) / np.maximum(np.abs(d) / 0.1, 1)
    np.testing.assert_allclose(found_behind, 2 * np.stack([(w * T * d).sum(0), (w * T * T).sum(0)]), rtol=1e-12)
