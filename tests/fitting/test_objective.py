"""Law: an objective of a user's own is minimised as ours are, and a wrong part of it is named before the fit begins."""

from __future__ import annotations

from dataclasses import replace

import drive
import numpy as np
import pytest

from raymarch.device import pool
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.report import provenance
from raymarch.fitting.settings import objective as proof
from raymarch.fitting.settings.objective import (
    LOSSES,
    REGULARISERS,
    Loss,
    Objective,
    Regulariser,
    _check_slope,
    check_slopes,
)
from raymarch.fitting.settings.settings import FitSettings, change_settings, preset
from raymarch.kernels.fit.regularise import COLOUR_DIFFERENCE, DENSITY_DIFFERENCE, OPTICAL_DEPTH
from raymarch.volumes.activation import DensityActivation


@ti.func
def welsch(x):
    return 1.0 - ti.exp(-x * x)


@ti.func
def welsch_slope(x):
    return 2.0 * x * ti.exp(-x * x)


@ti.func
def half_slope(x):
    return x * ti.exp(-x * x)


@ti.func
def absolute(x):
    y = x
    if x < 0:
        y = -x
    return y


@ti.func
def sign(x):
    return ti.math.sign(x)


@ti.func
def steep(x):
    return ti.sqrt(x + 1e-4)


@ti.func
def steep_slope(x):
    return 0.5 / ti.sqrt(x + 1e-4)


@ti.func
def square(x):
    return x * x


@ti.func
def twice(x):
    return 2.0 * x


@ti.func
def vector(x):
    return ti.Vector([x, x])


@ti.func
def pair(x):
    return x, x


@ti.func
def nothing(x):
    y = x  # noqa: F841


@ti.func
def unknown(x):
    return not_there(x)  # noqa: F821


@ti.func
def undefined_at_zero(x):
    return x / ti.abs(x)


@ti.func
def early(x):
    if x < 0:
        return -x
    return x


QUICK = {"resolution": 16, "steps": 30, "rays": 512, "sh_degree": 0, "slots": 1}
RIGHT = [(welsch, welsch_slope), (absolute, sign), (square, twice)]
WRONG = [
    (
        welsch,
        half_slope,
        r"slope is 0.4288 at 0.7, differences of value give 0.857\d; make slope the",
    ),
    (welsch_slope, welsch, "slope is"),
    (square, absolute, "slope is"),
    (vector, twice, "value is no function of one number: it returns a vector; docs/extending.md"),
    (square, pair, "slope is no function of one number: it returns 2 values"),
    (nothing, twice, "value is no function of one number: it returns nothing"),
    (unknown, twice, "value is no function of one number: .*not_there"),
    (early, sign, "value is no function of one number: Return inside"),
    (square, undefined_at_zero, "slope is nan at 0, want a finite number everywhere"),
    (undefined_at_zero, twice, "value is nan at 0, want a finite number everywhere"),
]


def fitter_of(objective, **changes):
    return Fitter(drive.ball_views(), preset("quick", **QUICK | changes), box=drive.BALL_BOX, objective=objective)


def losses_of(objective, **changes):
    """The losses of all steps."""
    with fitter_of(objective, **changes) as fitter:
        found = []
        while fitter.progress < 1:
            fitter.step()
            found.append(fitter.buffer.fields.loss[None])
    return np.array(found)


# What is proven


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize(("value", "slope"), RIGHT)
def test_right_slopes_pass(value, slope, scale):
    check_slopes(Objective(Loss("mine", value, slope, scale), [Regulariser("mine", OPTICAL_DEPTH, value, slope)]))


def test_a_bend_at_0_that_differences_miss_is_no_fault():
    check_slopes(Objective(regularisers=Regulariser("mine", OPTICAL_DEPTH, steep, steep_slope)))


@pytest.mark.parametrize("each", [*LOSSES.values(), *REGULARISERS.values()], ids=lambda each: each.name)
def test_our_own_slopes_are_proven_as_a_users_are(each, monkeypatch):
    monkeypatch.setattr(proof, "BUILT_IN_FUNCTIONS", set())
    _check_slope.cache_clear()
    check_slopes(Objective(each) if isinstance(each, Loss) else Objective(regularisers=each))


@pytest.mark.parametrize(("value", "slope", "said"), WRONG)
def test_a_wrong_part_is_named_with_its_object_before_anything_is_fitted(value, slope, said):
    for objective, name in (
        (Objective(Loss("odd", value, slope)), "loss"),
        (Objective(regularisers=[Regulariser("odd", DENSITY_DIFFERENCE, value, slope)]), "regulariser"),
    ):
        with pytest.raises(RaymarchError, match=f"^{name} 'odd': {said}") as error:
            check_slopes(objective)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 300


def test_a_fitter_refuses_a_wrong_slope_and_the_next_one_starts():
    with pytest.raises(RaymarchError, match="loss 'odd': slope is"):
        fitter_of(Objective(Loss("odd", welsch, half_slope)))
    with fitter_of(Objective(Loss("mine", welsch, welsch_slope))) as fitter:
        fitter.step()


# What is minimised


@pytest.mark.parametrize(
    "objective",
    [
        Objective(Loss("welsch", welsch, welsch_slope, 0.3)),
        Objective(Loss("absolute", absolute, sign)),
        Objective(regularisers=[Regulariser("mine", of, square, twice, 1e-3) for of in (DENSITY_DIFFERENCE,)]),
    ],
)
def test_an_objective_of_ones_own_comes_down(objective):
    losses = losses_of(objective)
    assert np.isfinite(losses).all()
    assert losses[-3:].mean() < 0.7 * losses[:3].mean()


def test_the_same_functions_under_other_names_give_the_same_losses():
    """The squared error written by a user is ours, to the last bit."""
    ours, theirs = losses_of(None), losses_of(Objective(Loss("square", square, twice)))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("of", [DENSITY_DIFFERENCE, COLOUR_DIFFERENCE, OPTICAL_DEPTH])
def test_a_regulariser_shrinks_what_it_is_of(of):
    def size(weight):
        mine = Objective(regularisers=[Regulariser("mine", of, square, twice, weight)])
        with fitter_of(mine, regularised_fraction=1.0) as fitter:
            while fitter.progress < 1:
                fitter.step()
            density, features = fitter.grid.download()
            sigma = fitter.grid.activation.sigma(density)
        if of == OPTICAL_DEPTH:
            return sigma.mean()
        values = density if of == DENSITY_DIFFERENCE else features
        return sum(np.abs(np.diff(values, axis=axis)).mean() for axis in range(3))

    assert size(10.0) < 0.7 * size(1e-9)


def test_flat_settings_stand_for_an_objective():
    mine = FitSettings(loss="huber", huber_delta=0.05, opacity_weight=0.7, tv_density=1e-3, sparsity=2e-3).minimised
    wanted = [Regulariser.named("tv_density", 1e-3), Regulariser.named("sparsity", 2e-3)]
    assert mine == Objective(Loss.named("huber", 0.05), wanted, 0.7)
    assert FitSettings().minimised == Objective() == FitSettings(objective=Objective()).minimised


def test_an_objective_takes_the_place_of_a_presets_own():
    medium = preset("medium", objective=Objective())
    assert medium.minimised == Objective()
    assert preset("medium").minimised.regularisers
    assert medium == change_settings(preset("medium"), objective=Objective())


@pytest.mark.parametrize(
    "flat", [{"loss": "huber"}, {"huber_delta": 0.2}, {"opacity_weight": 0.5}, {"tv_density": 1.0}, {"sparsity": 1.0}]
)
def test_settings_beside_an_objective_are_refused(flat):
    name = next(iter(flat))
    for make in (
        lambda: FitSettings(objective=Objective(), **flat),
        lambda: preset("medium", objective=Objective(), **flat),
        lambda: change_settings(FitSettings(objective=Objective()), **flat),
    ):
        with pytest.raises(RaymarchError, match=f"{name} is .* beside an objective, which stands in its place"):
            make()


def test_a_volume_tells_its_objective_in_names_and_numbers():
    views = drive.ball_views()
    mine = Objective(Loss("welsch", welsch, welsch_slope, 0.3), [Regulariser.named("sparsity", 0.5)])
    told = provenance(preset("quick", objective=mine), views, {})["settings"]
    assert told["objective"] == {
        "robust": {"name": "welsch", "scale": 0.3},
        "regularisers": [{"name": "sparsity", "of": "optical depth", "weight": 0.5}],
        "opacity_weight": 0.1,
        "distortion_weight": 0.0,
    }
    assert "loss" not in told
    assert "sparsity" not in told
    assert told["steps"] == preset("quick").steps
    assert "objective" not in provenance(preset("quick"), views, {})["settings"]


def test_a_volume_tells_an_activation_of_ones_own_by_its_name():
    mine = DensityActivation("mine", np.exp, np.log)
    told = provenance(preset("quick", density=mine), drive.ball_views(), {})["settings"]
    assert (told["density"], told["colour"]) == ("mine", "sigmoid")


def test_another_weight_or_scale_compiles_nothing():
    """A loss's scale and a regulariser's weight are arguments, no constants."""
    from raymarch import engine

    def kernels():
        return sum(len(engine.made_of(kernel)) for kernel in engine.state().kernels)

    first = Objective(Loss("mine", square, twice), [Regulariser("mine", OPTICAL_DEPTH, square, twice, 1e-3)])
    losses_of(first, steps=2)
    before, kept = kernels(), pool.kept_bytes()
    robust, (regulariser,) = first.robust, first.regularisers
    other = Objective(replace(robust, scale=0.3, name="other"), [replace(regulariser, weight=0.5)])
    losses_of(other, steps=2)
    assert (kernels(), pool.kept_bytes()) == (before, kept)
