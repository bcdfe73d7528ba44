"""Law: an image of channels is that of each alone, by a march written in NumPy, and has the gradients of its slopes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from skips import require_extra

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.gradients.check import check_rows
from raymarch.gradients.check_sample import background_to_check, over_ranges
from raymarch.gradients.linearised import Linearised
from raymarch.rendering.march_settings import March
from raymarch.torch.cameras import TorchCameras
from raymarch.torch.render import TorchRender
from raymarch.torch.tensors import TorchVolume
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

CHANNELS = ("red", "green", "blue", "thermal", "label")
SHAPE, DEGREE = (4, 5, 3), 1
CAMERA = Camera.look_at((0.4, -3, 0.7), width=4, height=3)
MARCH = March(step=0.6, min_transmittance=0.0, min_weight=0.0)


@pytest.fixture(scope="module")
def volume():
    rng = np.random.default_rng(1)
    affine = np.diag([*(2 / (n - 1) for n in SHAPE), 1.0])
    affine[:3, 3] = -1
    features = 20 * rng.normal(size=(*SHAPE, len(CHANNELS) * (DEGREE + 1) ** 2))
    activation = Activation("softplus", 0.0, 0.5, "identity")
    behind = 10 * rng.normal(size=len(CHANNELS))
    return Volume(rng.normal(size=SHAPE), features, affine, activation, behind, channels=CHANNELS)


@pytest.fixture(scope="module")
def seen(volume):
    with Linearised(volume, CAMERA, march=MARCH, columns=1) as seen:
        yield seen


def test_an_image_is_that_of_each_channel_by_a_march_in_numpy(volume, seen):
    image = seen.image()
    assert image.shape == (12, 6)
    for k in (2, 4):  # each between two others, which stand for red and blue
        three = volume.select([CHANNELS[k], CHANNELS[0], CHANNELS[3]])
        for r in (0, 5, 11):
            ray = seen.rays.origin[r], seen.rays.direction[r]
            steps, T = reference.samples(three, *ray, MARCH.step * volume.voxel, 0.0, 0.0)
            light = sum(one.weight * one.colour for one in steps) + T * np.array(three.background)
            np.testing.assert_allclose(image[r, [k, 0, 3]], light, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(image[r, 5], T, rtol=1e-12)


def test_gradients_of_five_channels_are_their_slopes(seen):
    rows = check_rows(seen, ["density", "colour", "background", "pose", "exposure"])
    for row in rows:
        assert row.verdict == "good", row
        assert row.dot < 1e-12 and row.difference < 1e-7, row


def test_a_check_is_of_channels_over_their_ranges(volume, seen):
    """So that kelvins have slopes beside their size; an image of such a volume is the image over the ranges."""
    ranges = np.array([(-3.0, 5.0), (0, 1), (290, 310), (-1, 0), (2, 4)])
    told = {"ranges": dict(zip(CHANNELS, ranges.tolist(), strict=True))}
    known = over_ranges(replace(volume, provenance=told))
    with Linearised(known, CAMERA, march=MARCH, columns=1) as scaled:
        image = scaled.image()
    low, high = ranges.T
    np.testing.assert_allclose(image[:, :5], (seen.image()[:, :5] - low) / (high - low), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(over_ranges(replace(known.sparse(), provenance={})).features, known.features)
    assert background_to_check(replace(volume, background=(310, -2, 0, 1, 2))) == (310, -2, 0.25, 1, 2)


def test_a_jacobian_has_a_column_for_each_number_of_the_background(seen):
    columns = seen.jacobian(["background"])
    assert columns.shape == (12, 6, 5)
    T = seen.image()[:, 5]
    np.testing.assert_allclose(columns[:, :5], T[:, None, None] * np.eye(5), atol=1e-14)


def test_what_is_of_colours_is_refused(volume):
    with pytest.raises(RaymarchError, match=r"exposure is of colours, .*leave it out"):
        Linearised(volume, CAMERA, exposure=[2, 1, 1, 0, 0, 0], march=MARCH)
    with pytest.raises(RaymarchError, match=r"mode maximum does not show the channels .* volume.in_colour\(\)"):
        Linearised(volume, CAMERA, march=March(mode="maximum"))
    with pytest.raises(RaymarchError, match=r"several volumes together wants red, green and blue, .*in_colour"):
        Linearised([volume, volume], CAMERA)


@pytest.mark.extra
def test_torch_has_the_image_and_the_gradients_of_five_channels(volume, seen):
    torch = require_extra("torch", "torch")
    tensors = TorchVolume.of(volume, requires_grad=True)
    assert tensors.background.shape == (5,)
    w = np.random.default_rng(0).normal(size=(3, 4, 5))
    with TorchRender(volume, MARCH) as render:
        image = render(tensors, TorchCameras.of([CAMERA])).image
        (image[0] * torch.tensor(w)).sum().backward()
    np.testing.assert_allclose(image[0].detach().numpy().reshape(12, 5), seen.image()[:, :5], rtol=1e-12, atol=1e-12)
    wanted = seen.adjoint(np.concatenate([w.reshape(12, 5), np.zeros((12, 1))], axis=1))
    np.testing.assert_allclose(tensors.features.grad.numpy(), wanted.colour, atol=1e-12 * np.abs(wanted.colour).max())
    np.testing.assert_allclose(tensors.density.grad.numpy(), wanted.density, atol=1e-12 * np.abs(wanted.density).max())
    assert tensors.volume().channels == CHANNELS and tensors.volume().background == pytest.approx(volume.background)
