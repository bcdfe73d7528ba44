"""Law: a fit of channels finds each in its own unit, from the views that have it, and is scored by its name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import evaluate
from raymarch.fitting import differentiable_passes
from raymarch.fitting.fit import fit
from raymarch.fitting.settings.objective import Loss
from raymarch.geometry.camera import Camera
from raymarch.kernels.fit import losses
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.volume import Volume

COUNT = 23


def test_losses_count_what_is_known_by_a_formula_in_numpy():
    rng = np.random.default_rng(0)
    image, target = rng.normal(size=(COUNT, 6)), rng.normal(size=(COUNT, 6))
    target[:, 5] = rng.uniform(0, 1, COUNT)
    target[3, 5] = -1
    unknown = rng.uniform(size=(COUNT, 5)) < 0.3
    stored = target.copy()
    stored[:, :5][unknown] = 10 * losses.UNKNOWN
    behind = rng.normal(size=5)
    wanted = target[:, :5] * target[:, 5:] + behind * (1 - target[:, 5:])
    d = np.where(unknown | (target[:, 5:] < 0), 0, image[:, :5] - wanted)
    with RayBuffer(COUNT, channels=5) as buffer:
        for field, values in ((buffer.fields.image, image), (buffer.fields.target, stored)):
            whole = field.to_numpy()
            whole[:COUNT] = values
            field.from_numpy(whole)
        buffer.fields.image.grad.fill(0)
        call = buffer.set_behind(behind)
        with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
            differentiable_passes.compare(buffer, Loss.named("squared"), COUNT, call, 0.0, COUNT - 1)
        assert buffer.fields.loss[None] == pytest.approx((d**2).sum() / 5 / (COUNT - 1), rel=1e-12)
        slope = buffer.fields.image.grad.to_numpy()[:COUNT]
        np.testing.assert_allclose(slope[:, :5], 2 * d / 5 / (COUNT - 1), rtol=1e-12, atol=1e-15)
        known = ~unknown & (target[:, 5:] >= 0)
        error = losses.colour_error(buffer.fields, COUNT, 1, call)
        assert error == pytest.approx((d**2).sum() / known.sum(), rel=1e-12)


@pytest.fixture(scope="module")
def scene():
    """Views of a ball, half of them thermal alone, half without."""
    x, y, z = np.meshgrid(*[np.linspace(-1, 1, 12)] * 3, indexing="ij")
    density = np.where(x**2 + y**2 + z**2 < 0.5, 5.0, -9.0)
    values = np.stack([0.5 + 0.3 * x, 300 + 20 * y], axis=-1)
    affine = np.diag([2 / 11] * 3 + [1.0])
    affine[:3, 3] = -1
    activation = Activation("softplus", 0.0, 0.3, "identity")
    ball = Volume(density, values / Y00, affine, activation, (0.0, 280.0), channels=("grey", "thermal"))
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    eyes = [(4 * np.cos(a), 4 * np.sin(a), 1.5 * np.sin(3 * a)) for a in angles]
    cameras = [Camera.look_at(eye, width=16, height=12, fov=0.7) for eye in eyes]
    with Renderer(ball) as renderer:
        images = np.stack([renderer.render(camera, depth=False).image for camera in cameras])
    images[::2, ..., 0], images[1::2, ..., 1] = np.nan, np.nan
    return Views(cameras, images, channels=ball.channels, background=(0, 280))


def test_a_fit_of_views_that_lack_a_channel_finds_both(scene):
    how = {"resolution": 12, "steps": 150, "rays": 1024, "sh_degree": 0, "supersample": 1, "box": [[-1] * 3, [1] * 3]}
    found = fit(scene, **how).volume
    assert found.channels == ("grey", "thermal") and found.background == (0.0, 280.0)
    assert found.activation.colour == "identity"
    score = evaluate(found, scene)
    assert score.rmse["grey"] < 0.05 and score.rmse["thermal"] < 5
    assert score.psnr > 20 and score.ssim is None
    by_name = evaluate(found.select(["thermal"]), scene)
    assert by_name.rmse["thermal"] == pytest.approx(score.rmse["thermal"], rel=1e-3)


BAD = {
    r"colour is set but channels have no bounds": {"colour": "clamped"},
    r"learn_background is of colours": {"learn_background": True},
}


@pytest.mark.parametrize("message", BAD)
def test_settings_of_photographs_are_refused(scene, message):
    with pytest.raises(RaymarchError, match=message):
        fit(scene, resolution=8, steps=1, box=[[-1] * 3, [1] * 3], **BAD[message])


def test_too_many_numbers_a_sample_are_refused(scene):
    images = np.repeat(np.nan_to_num(scene.images[..., :1]), 30, axis=-1)
    many = replace(scene, images=images, channels=[f"band {i}" for i in range(30)], background=np.zeros(30))
    with pytest.raises(RaymarchError, match="30 channels at SH degree 2 are 270 numbers a sample, want at most 192"):
        fit(many, sh_degree=2, steps=1, box=[[-1] * 3, [1] * 3])


def test_views_of_which_nothing_is_known_are_neither_fitted_nor_scored(scene):
    unknown = replace(scene, images=np.full_like(scene.images, np.nan))
    with pytest.raises(
        RaymarchError, match="all numbers of all .* images are unknown, NaN, so there is nothing to fit"
    ):
        fit(unknown, steps=1, box=[[-1] * 3, [1] * 3])
    ball = Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 2)), np.eye(4), channels=("grey", "thermal"))
    with pytest.raises(RaymarchError, match="no view knows a number of grey, thermal, the channels that it has"):
        evaluate(ball, unknown)


def test_a_volume_and_views_without_a_common_channel_are_refused(scene):
    other = replace(scene, channels=("a", "b"))
    ball = Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 2)), np.eye(4), channels=("grey", "thermal"))
    with pytest.raises(
        RaymarchError, match=r"the volume has the channels grey, thermal, the views a, b, none in common"
    ):
        evaluate(ball, other)
