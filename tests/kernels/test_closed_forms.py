"""Law: where the answer is known, the march gives it; and where it is not exact it converges with order 2."""

from __future__ import annotations

import cases
import drive
import numpy as np
import pytest
import single as worker

from raymarch.geometry.rays import Rays
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.volume import Volume

WHITE = 0.5 / Y00  # the feature that "clamped" reads as 1
CLAMPED = Activation("relu", 0.0, 1.0, "clamped")
THROUGH = Rays([[0.5, 0.5, -3]], [[0, 0, 1]])  # along z through the unit box


def test_one_voxel_one_ray():
    """A unit cube of sigma ln 2, white on black: half the light is stopped, so the image is 1/2."""
    cube = cases.constant(np.log(2), WHITE, activation=CLAMPED)
    np.testing.assert_allclose(drive.image(cube, THROUGH, 0.25, (0, 0, 0)), [[0.5, 0.5, 0.5, 0.5]], atol=1e-15)


@pytest.mark.parametrize("step", [0.013, 0.25, 0.3, 0.7, 2.0, 2.5, 100.0])
def test_slab_is_exact_at_any_step(step):
    """Opacity is 1 - exp(-sigma L) of steps that divide the slab, do not, or are longer than it."""
    slab = cases.constant(1.7, WHITE, shape=(3, 4, 5), size=(1, 1, 2), activation=CLAMPED)
    T = np.exp(-1.7 * 2)
    background = np.array([0.1, 0.2, 0.3])
    got = drive.image(slab, THROUGH, step, background)
    np.testing.assert_allclose(got[0], [*(1 - T + T * background), T], rtol=0, atol=1e-12)


def test_slanted_slab_is_exact():
    """The length is what the ray has inside the box."""
    slab = cases.constant(0.9, size=(5, 5, 1), activation=CLAMPED)
    slant = Rays([[1, 1, -1]], [[1, 1, 2]])
    T = np.exp(-0.9 * np.sqrt(1.5))
    np.testing.assert_allclose(drive.image(slab, slant, 0.3)[0, 3], T, rtol=0, atol=1e-12)


def test_opaque_colour_hides_the_background():
    """The colour is the sigmoid of feature times Y00, the background does not shine through."""
    wall = cases.constant(1e4, [-2.0, 0.0, 3.0], activation=Activation())
    wanted = 1 / (1 + np.exp(-Y00 * np.array([-2.0, 0.0, 3.0])))
    np.testing.assert_allclose(drive.image(wall, THROUGH, 0.25, (1, 0, 1))[0], [*wanted, 0], rtol=0, atol=1e-12)


def test_zero_features_are_grey():
    for activation in (Activation(), CLAMPED):
        wall = cases.constant(1e4, activation=activation)
        np.testing.assert_allclose(drive.image(wall, THROUGH, 0.25)[0, :3], 0.5, rtol=0, atol=1e-15)


def ramp(density, activation, features=(0.0, 0.0)):
    """A unit cube whose raw density and first feature run linearly from z = 0 to z = 1."""
    values = np.zeros((2, 2, 2, 12))
    values[:, :, 0, :3], values[:, :, 1, :3] = features
    return Volume(np.broadcast_to(np.array(density, float), (2, 2, 2)).copy(), values, np.eye(4), activation)


def slopes(error):
    """Order of convergence between 10, 20, 40 and 80 steps."""
    errors = np.array([error(1 / n) for n in (10, 20, 40, 80)])
    return np.log2(errors[:-1] / errors[1:])


def test_exponential_medium_converges_with_order_2():
    """sigma = e^(a + (b - a) z): tau = (e^b - e^a) / (b - a)."""
    a, b = -1.0, 1.5
    T = np.exp(-(np.exp(b) - np.exp(a)) / (b - a))
    medium = ramp((a, b), Activation("exponential"))
    order = slopes(lambda dt: abs(drive.image(medium, THROUGH, dt)[0, 3] - T))
    np.testing.assert_allclose(order, 2, atol=0.1)


def test_colour_ramp_converges_with_order_2():
    """Constant sigma s, colour z: the image is the integral of s e^(-s z) z, that is (1 - e^-s (1 + s)) / s."""
    s = 2.3
    medium = ramp((s, s), CLAMPED, (-WHITE, WHITE))
    wanted = (1 - np.exp(-s) * (1 + s)) / s
    order = slopes(lambda dt: abs(drive.image(medium, THROUGH, dt, (0, 0, 0))[0, 0] - wanted))
    np.testing.assert_allclose(order, 2, atol=0.1)


def test_transmittance_of_two_halves_multiplies():
    """A volume cut along a plane of samples: T = T_a T_b, colour = colour_a + T_a colour_b."""
    whole = cases.volume()
    first = Volume(whole.density[:4], whole.features[:4], whole.world_from_index, whole.activation)
    shift = whole.world_from_index @ np.block([[np.eye(3), np.array([[3], [0], [0]])], [np.zeros((1, 3)), 1]])
    second = Volume(whole.density[3:], whole.features[3:], shift, whole.activation)
    rays = Rays([[-4, 0.2, 0.1], [-4, -0.3, 0.7]], [[1, 0, 0], [1, 0, 0]])
    black = (0, 0, 0)
    all_, a, b = (drive.image(v, rays, 0.125, black) for v in (whole, first, second))
    np.testing.assert_allclose(all_[:, 3], a[:, 3] * b[:, 3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(all_[:, :3], a[:, :3] + a[:, 3:] * b[:, :3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("density", cases.FIT_DENSITIES)
def test_zero_grid_has_the_initial_alpha_over_one_voxel(density):
    for alpha in (1e-6, 0.01, 0.5, 0.99):
        activation = Activation.of_initial_alpha(alpha, 0.2, density, "clamped" if density == "relu" else "sigmoid")
        voxel = cases.constant(0.0, size=(0.2, 0.3, 0.4), activation=activation)
        across = Rays([[-1, 0.1, 0.1]], [[1, 0, 0]])
        np.testing.assert_allclose(1 - drive.image(voxel, across, 0.05)[0, 3], alpha, rtol=1e-12, atol=1e-15)


def relative(got, wanted):
    return np.max(np.abs(np.asarray(got, float) - wanted) / np.abs(wanted))


def magnitudes(low, high, count=20001):
    """f32 numbers spread over decades."""
    return np.geomspace(low, high, count).astype(np.float32)


def test_f32_exp_is_good_near_zero_and_over_the_range(single):
    """3e-7 within -1..1; further out the rounding of x itself, half a bit of x, comes on top."""
    small = np.concatenate([-magnitudes(1e-9, 1), magnitudes(1e-9, 1)])
    assert relative(single(worker.exp, small), np.exp(small.astype(float))) < 3e-7
    large = np.linspace(-80, 80, 20001).astype(np.float32)
    error = np.abs(single(worker.exp, large) / np.exp(large.astype(float)) - 1)
    assert np.all(error < 3e-7 + 2**-24 * np.abs(large) * 2)


def test_f32_log1p_is_good_over_the_unit_interval(single):
    u = magnitudes(1e-30, 1)
    assert relative(single(worker.log1p_unit, u), np.log1p(u.astype(float))) < 3e-7


def test_f32_log_of_the_rest_is_good_up_to_one(single):
    x = np.concatenate([-magnitudes(1e-30, 0.4), magnitudes(1e-30, 0.999999)])
    assert relative(single(worker.log_of_rest, x), np.log1p(-x.astype(float))) < 4e-7


def test_f32_softplus_is_good_over_the_range(single):
    x = np.concatenate([-magnitudes(1e-9, 4), magnitudes(1e-9, 80)])
    assert relative(single(worker.density, "softplus", x), np.logaddexp(0, x.astype(float))) < 4e-7


@pytest.mark.parametrize("density", cases.FIT_DENSITIES)
def test_slope_is_the_derivative_of_the_activation(density):
    x = np.linspace(-6, 6, 101) + 0.013
    difference = (worker.density(density, x + 1e-5) - worker.density(density, x - 1e-5)) / 2e-5
    np.testing.assert_allclose(worker.density_slope(density, x), difference, rtol=1e-8, atol=1e-9)
