"""Law: losses are the means they are named after, and their derivative in a Tape is the formula's."""

from __future__ import annotations

import cases
import drive
import numpy as np
import pytest

from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.fitting.settings.objective import LOSSES, Loss
from raymarch.kernels.fit import losses

COUNT = 37
DELTA = 0.1
BACKGROUNDS = [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), cases.BACKGROUND]


def pixels(seed=0):
    """(image, target) of rays: some errors within DELTA, some beyond, alpha from 0 to 1."""
    rng = np.random.default_rng(seed)
    image = rng.uniform(-0.2, 1.2, (COUNT, 4))
    target = rng.uniform(0, 1, (COUNT, 4))
    target[:5, 3], target[5:10, 3] = 0, 1
    target[10:20, 3] = 1
    target[10:20, :3] = image[10:20, :3] + rng.uniform(-DELTA, DELTA, (10, 3))
    return image, target


def truth(target, background):
    """The pixel over the background."""
    return target[:, :3] * target[:, 3:] + np.asarray(background) * (1 - target[:, 3:])


def of(name, image, target, background, opacity, delta=DELTA):
    """(value, d value / d image) of a loss by its formula."""
    d = image[:, :3] - truth(target, background)
    if name == "squared":
        value, slope = d**2, 2 * d
    elif name == "charbonnier":
        root = np.sqrt(1 + (d / delta) ** 2)
        value, slope = 2 * delta**2 * (root - 1), 2 * d / root
    else:
        inside = np.abs(d) < delta
        value = np.where(inside, d**2, 2 * delta * np.abs(d) - delta**2)
        slope = np.where(inside, 2 * d, 2 * delta * np.sign(d))
    o = image[:, 3] - (1 - target[:, 3])
    total = value.sum(1) / 3 + opacity * o**2
    return total.mean(), np.c_[slope / 3, 2 * opacity * o] / len(image)


def add(name, buffer, background, opacity, delta=DELTA, count=COUNT):
    """Add a loss to the buffer's."""
    loss = Loss.named(name, 1.0 if name == "squared" else delta)
    differentiable_passes.compare(buffer, loss, count, ti.Vector(list(background)), opacity)


def test_one_ray_a_tenth_off_in_red():
    """(0.1^2 + 0 + 0) / 3, and half the weight of an opacity that is off by 1."""
    target = np.array([[0.5, 0.5, 0.5, 1.0]])
    buffer = drive.set_rays(target + [[0.1, 0, 0, 0]], target)
    add("squared", buffer, (0.0, 0.0, 0.0), 0.5, count=1)
    assert buffer.fields.loss[None] == pytest.approx(0.01 / 3 + 0.5, rel=64 * np.finfo(float).eps)


@pytest.mark.parametrize("opacity", [0.0, 0.7])
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("name", LOSSES)
def test_value_is_the_formula(name, background, opacity):
    image, target = pixels()
    buffer = drive.set_rays(image, target)
    add(name, buffer, background, opacity)
    wanted, _ = of(name, image, target, background, opacity)
    assert buffer.fields.loss[None] == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("opacity", [0.0, 0.7])
@pytest.mark.parametrize("name", LOSSES)
def test_derivative_is_the_formula(name, opacity):
    image, target = pixels(1)
    buffer = drive.set_rays(image, target)
    buffer.fields.image.grad.fill(0)
    with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
        add(name, buffer, cases.BACKGROUND, opacity)
    _, wanted = of(name, image, target, cases.BACKGROUND, opacity)
    got = buffer.fields.image.grad.to_numpy()
    np.testing.assert_allclose(got[:COUNT], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert not got[COUNT:].any()  # rays that do not count


@pytest.mark.parametrize("name", LOSSES)
def test_derivative_of_a_perfect_image_is_zero(name):
    """Where Huber's two branches have the same value, the one not taken must not poison the other."""
    _, target = pixels()
    image = np.c_[truth(target, cases.BACKGROUND), 1 - target[:, 3]]
    buffer = drive.set_rays(image, target)
    buffer.fields.image.grad.fill(0)
    with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
        add(name, buffer, cases.BACKGROUND, 0.3)
    np.testing.assert_allclose(buffer.fields.image.grad.to_numpy(), 0, rtol=0, atol=1e-15)
    assert buffer.fields.loss[None] == pytest.approx(0, abs=1e-30)


def test_huber_is_squared_within_delta_and_less_beyond():
    image, target = pixels()
    values = {}
    for delta in (1e-3, 0.1, 10.0):
        buffer = drive.set_rays(image, target)
        add("huber", buffer, cases.BACKGROUND, 0.2, delta)
        values[delta] = buffer.fields.loss[None]
    buffer = drive.set_rays(image, target)
    add("squared", buffer, cases.BACKGROUND, 0.2)
    assert values[10.0] == pytest.approx(buffer.fields.loss[None], rel=4 * COUNT * np.finfo(float).eps)
    assert values[1e-3] < values[0.1] < values[10.0]


def test_charbonnier_lies_between_huber_and_nothing_and_is_squared_near_zero():
    """2 (sqrt(1 + x^2) - 1): less than Huber's x^2 or 2 |x| - 1 everywhere, and within x^4 / 4 of x^2."""
    _, target = pixels()
    values = {}
    for off in (1e-4, 0.05, 0.4):
        for name in ("squared", "huber", "charbonnier"):
            image = np.c_[truth(target, cases.BACKGROUND) + off, 1 - target[:, 3]]
            buffer = drive.set_rays(image, target)
            add(name, buffer, cases.BACKGROUND, 0.0)
            values[name, off] = buffer.fields.loss[None]
        assert 0 < values["charbonnier", off] < values["huber", off] * (1 + 1e-12)
    assert values["charbonnier", 1e-4] == pytest.approx(values["squared", 1e-4], rel=1e-6)
    assert values["charbonnier", 0.4] < 0.5 * values["squared", 0.4]


@pytest.mark.parametrize("name", LOSSES)
def test_a_ray_without_a_target_counts_nowhere(name):
    """Value, derivative and error are those of the other rays alone, whatever the image shows there."""
    image, target = pixels(2)
    counts = np.arange(COUNT) % 3 > 0
    target[~counts, 3] = -1
    buffer = drive.set_rays(image, target)
    buffer.fields.image.grad.fill(0)
    counted = losses.count_targets(buffer.fields, COUNT)
    assert counted == counts.sum()
    loss, background = Loss.named(name), ti.Vector(list(cases.BACKGROUND))
    with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
        differentiable_passes.compare(buffer, loss, COUNT, background, 0.7, counted)
    value, slope = of(name, image[counts], target[counts], cases.BACKGROUND, 0.7)
    assert buffer.fields.loss[None] == pytest.approx(value, rel=1e-13)
    got = buffer.fields.image.grad.to_numpy()[:COUNT]
    np.testing.assert_allclose(got[counts], slope, rtol=0, atol=1e-12 * np.abs(slope).max())
    assert not got[~counts].any()
    error = np.mean((np.clip(image[counts, :3], 0, 1) - truth(target[counts], cases.BACKGROUND)) ** 2)
    assert losses.colour_error(buffer.fields, COUNT, 1, background) == pytest.approx(error, rel=1e-13)


def test_losses_add():
    image, target = pixels()
    buffer = drive.set_rays(image, target)
    wanted = 0.0
    for name in ("squared", "huber", "squared"):
        add(name, buffer, cases.BACKGROUND, 0.4)
        wanted += of(name, image, target, cases.BACKGROUND, 0.4)[0]
    assert buffer.fields.loss[None] == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_colour_error_is_the_clipped_mean_square(background):
    image, target = pixels()
    assert (image[:, :3] > 1).any()
    assert (image[:, :3] < 0).any()
    buffer = drive.set_rays(image, target)
    wanted = np.mean((np.clip(image[:, :3], 0, 1) - truth(target, background)) ** 2)
    got = losses.colour_error(buffer.fields, COUNT, 1, ti.Vector(list(background)))
    assert got == pytest.approx(wanted, rel=1e-13)
    assert buffer.fields.loss[None] == 0  # it is a measure, no loss


@pytest.mark.parametrize("name", LOSSES)
def test_a_pixel_of_several_rays_is_their_mean(name):
    """Value and error are those of the means; to each ray goes its part of the derivative, and nothing to others."""
    rng, parts, count = np.random.default_rng(4), 4, COUNT // 4
    rays = rng.uniform(-0.2, 1.2, (count * parts, 4))
    target = rng.uniform(0, 1, (count, 4))
    mean, padded = rays.reshape(count, parts, 4).mean(1), np.full((count * parts, 4), np.nan)
    padded[:count] = target  # a target for each pixel, whatever lies behind
    buffer = drive.set_rays(rays, padded)
    buffer.fields.image.grad.fill(0)
    loss, background = Loss.named(name, 1.0 if name == "squared" else DELTA), ti.Vector(list(cases.BACKGROUND))
    with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
        differentiable_passes.compare(buffer, loss, count, background, 0.7, count, parts)
    value, slope = of(name, mean, target, cases.BACKGROUND, 0.7)
    assert buffer.fields.loss[None] == pytest.approx(value, rel=1e-13)
    got = buffer.fields.image.grad.to_numpy()
    np.testing.assert_allclose(got[: len(rays)], np.repeat(slope, parts, 0) / parts, rtol=0, atol=1e-13)
    assert not got[len(rays) :].any()
    error = np.mean((np.clip(mean[:, :3], 0, 1) - truth(target, cases.BACKGROUND)) ** 2)
    assert losses.colour_error(buffer.fields, count, parts, background) == pytest.approx(error, rel=1e-13)
