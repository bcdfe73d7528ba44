"""Law: an activation of a user's own is marched, differentiated and fitted as ours are, and a wrong one is named."""

from dataclasses import replace

import cases
import numpy as np
import pytest
from drive import volume_adjoint

from raymarch.device.activation_functions import colour_functions, density_functions
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.field.activation import COLOUR_FUNCTIONS, DENSITY_FUNCTIONS
from raymarch.rendering.march_settings import March
from raymarch.volumes.activation import COLOURS, DENSITIES, Activation, ColourActivation, DensityActivation


@ti.func
def hyperbola(x):  # (x + sqrt(x^2 + 1)) / 2
    return 0.5 * (x + ti.sqrt(x * x + 1.0))


@ti.func
def pair(x):
    return x, x


@ti.func
def hyperbola_slope(x):
    return 0.5 * (1.0 + x / ti.sqrt(x * x + 1.0))


@ti.func
def tangent_to_unit(x):
    return 0.5 * (1.0 + ti.tanh(x))


@ti.func
def unit_slope(y):
    return 2.0 * y * (1.0 - y)


HYPERBOLA = DensityActivation(
    "hyperbola", lambda x: (x + np.hypot(x, 1)) / 2, lambda y: y - 1 / (4 * y), hyperbola, hyperbola_slope, empty=-1e4
)
TANH = ColourActivation("tanh", lambda x: (1 + np.tanh(x)) / 2, tangent_to_unit, unit_slope)


def volume():
    v = cases.volume("upright", 0)
    return replace(v, activation=replace(v.activation, density=HYPERBOLA, colour=TANH))


def test_an_activation_of_ones_own_passes_the_dot_test_and_the_difference():
    v, rng = volume(), np.random.default_rng(2)
    with Linearised(v, cases.cameras(v)[0], march=March(0.47, 0.0, 0.0, jitter=1.0), columns=1) as seen:
        w = rng.normal(size=seen.image().shape)
        gradient = volume_adjoint(seen, w)
        for name in ("density", "colour"):
            direction = Parameters(**{name: rng.normal(size=np.shape(getattr(gradient, name)))})
            along = seen.tangent(direction)
            assert abs((along * w).sum() / gradient.dot(direction) - 1) < 1e-12, name
            difference = (seen.shifted(direction, 1e-6) - seen.shifted(direction, -1e-6)) / 2e-6
            assert np.abs(difference - along).max() < 1e-6 * np.abs(along).max(), name


def test_the_inverse_of_ones_own_gives_the_start_of_a_fit():
    start = Activation.of_initial_alpha(0.05, 0.5, HYPERBOLA, TANH)
    assert 1 - np.exp(-start.sigma(0.0) * 0.5) == pytest.approx(0.05, abs=1e-12)
    assert start.raw(start.sigma([0.3, -0.2])) == pytest.approx([0.3, -0.2], abs=1e-12)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (replace(HYPERBOLA, value=None), "density activation 'hyperbola': value is None, want a ti.func"),
        (replace(HYPERBOLA, value=hyperbola_slope), "density activation 'hyperbola': value gives .* forward gives"),
        (replace(HYPERBOLA, value=pair), "value is no function of one number: it returns 2 values"),
        (replace(HYPERBOLA, slope=hyperbola), "density activation 'hyperbola': slope gives .* differences give"),
        (replace(HYPERBOLA, inverse=np.log), "density activation 'hyperbola': inverse gives"),
        (replace(HYPERBOLA, inverse=lambda y: 1 / 0), "activation 'hyperbola': inverse raised ZeroDivisionError: div"),
        (replace(HYPERBOLA, inverse=np.sum), r"inverse gives shape \(\) of \(10,\), want a number for each; rm"),
        (replace(HYPERBOLA, inverse=lambda y: y + np.inf), "activation 'hyperbola': inverse gives inf at 0.034"),
        (replace(HYPERBOLA, forward=np.sum), "density activation 'hyperbola': forward gives shape"),
        (replace(HYPERBOLA, forward=np.log), "density activation 'hyperbola': forward gives nan at -7.3"),
        (replace(TANH, slope=tangent_to_unit), "colour activation 'tanh': slope gives .* differences give"),
        (replace(TANH, forward=lambda x: 1 / 0), "colour activation 'tanh': forward raised ZeroDivisionError"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_wrong_part_is_named_in_one_line(wrong, said):
    v = volume()
    kind = "density" if isinstance(wrong, DensityActivation) else "colour"
    with pytest.raises(RaymarchError, match=said) as caught:
        other = replace(v.activation, **{kind: wrong})
        (density_functions if kind == "density" else colour_functions)(other)
    assert "\n" not in str(caught.value)


def test_an_inverse_that_raises_is_named_before_any_kernel_is_there():
    """A fit's start and the threshold of empty space ask for it first."""
    wrong = replace(HYPERBOLA, inverse=lambda y: y.missing)
    asked = (lambda: Activation.of_initial_alpha(0.05, 0.5, wrong), lambda: Activation(wrong).raw([0.3, 0.2]))
    for ask in asked:
        with pytest.raises(RaymarchError, match="density activation 'hyperbola': inverse raised AttributeError: "):
            ask()
    with pytest.raises(RaymarchError, match=r"'hyperbola': forward gives shape \(\) of \(2,\)"):
        Activation(replace(HYPERBOLA, forward=np.sum)).sigma([0.3, 0.2])


@pytest.mark.parametrize("name", DENSITIES)
def test_our_densities_pass_the_check(name):
    ours, functions = DENSITIES[name], DENSITY_FUNCTIONS[name]
    own = replace(ours, name="a copy", value=functions.value, slope=functions.slope)
    assert density_functions(replace(volume().activation, density=own)).value is functions.value


@pytest.mark.parametrize("name", COLOURS)
def test_our_colours_pass_the_check(name):
    ours, functions = COLOURS[name], COLOUR_FUNCTIONS[name]
    own = replace(ours, name="a copy", value=functions.value, slope=functions.slope)
    assert colour_functions(replace(volume().activation, colour=own)).value is functions.value
