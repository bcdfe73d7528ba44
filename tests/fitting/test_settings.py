"""Law: settings are what was asked for, and what cannot be meant is refused in one line that names it."""

from __future__ import annotations

import math
from dataclasses import fields

import click
import pytest

from raymarch.cli.fit import settings_of
from raymarch.errors import RaymarchError
from raymarch.fitting import fitter
from raymarch.fitting.fit import fit
from raymarch.fitting.settings.optimiser import Adam
from raymarch.fitting.settings.settings import PRESETS, FitSettings, change_settings, preset
from raymarch.volumes.transfer_function import TransferFunction

BAD = [
    ({"resolution": 3}, "resolution is 3"),
    ({"resolution": 5000}, "resolution is 5000"),
    ({"sh_degree": -1}, "sh_degree is -1"),
    ({"sh_degree": 4}, "sh_degree is 4"),
    ({"steps": 0}, "steps is 0"),
    ({"steps": -5}, "steps is -5"),
    ({"seconds": 0.0}, "seconds is 0"),
    ({"seconds": -1.0}, "seconds is -1"),
    ({"seconds": math.inf}, "seconds is inf"),
    ({"seconds": math.nan}, "seconds is nan"),
    ({"steps": None, "seconds": None}, "neither steps nor seconds"),
    ({"rays": 15}, "rays is 15"),
    ({"rays": 1 << 23}, "rays is 8388608"),
    ({"levels": ((0.1, 1.0),)}, "rising shares from 0"),
    ({"levels": ((0.0, 0.5),)}, "last scale 1"),
    ({"levels": ((0.0, 0.5), (0.5, 0.7), (0.2, 1.0))}, "rising"),
    ({"density": "tanh"}, "'tanh', want one of softplus"),
    ({"colour": "tanh"}, "'tanh', want one of sigmoid"),
    ({"loss": "l7"}, "'l7', want one of squared"),
    *[({"initial_alpha": alpha}, "initial_alpha is") for alpha in (0.0, 1.0, math.nan)],
    *[
        ({name: value}, f"{name} is")
        for name in ("step", "huber_delta", "regularised_fraction")
        for value in (0.0, -1.0, math.nan)
    ],
    ({"refresh": 0}, "refresh is 0"),
    *[
        ({name: value}, f"{name} is")
        for name in (
            "opacity_weight",
            "tv_density",
            "tv_colour",
            "sparsity",
            "prune_alpha",
            "min_transmittance",
            "min_weight",
        )
        for value in (-0.1, math.inf, math.nan)
    ],
]


def one_line(error, said):
    """The message names what was wrong, in one line."""
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("bad", "said"), BAD, ids=lambda x: str(x) if isinstance(x, dict) else "")
def test_bad_settings_are_refused(bad, said):
    for make in (lambda: FitSettings(**bad), lambda: preset("quick", **bad)):
        with pytest.raises(RaymarchError) as error:
            make()
        one_line(error, said)


@pytest.mark.parametrize(
    "bad",
    [
        {"rays": 500.5},
        {"resolution": "many"},
        {"step": "half"},
        {"density": 3},
        {"levels": 3},
        {"lr_density": "fast"},
        {"optimiser": "adam"},
        {"optimiser": None},
        {"seed": 0.5},
        {"steps": "all"},
        {"sh_degree": None},
    ],
    ids=str,
)
def test_settings_of_another_type_are_refused(bad):
    with pytest.raises(RaymarchError) as error:
        preset("quick", **bad)
    one_line(error, next(iter(bad)))


@pytest.mark.parametrize(
    "bad",
    [
        {"lr_density": math.nan},
        {"lr_colour": math.inf},
        {"beta1": 1.0},
        {"beta2": 1.0},
        {"step": math.inf},
        {"huber_delta": math.inf},
        {"regularised_fraction": 2.0},
        {"min_transmittance": 1.5},
        {"slots": -1},
        {"seed": 2**40},
        {"prune_alpha": 1.0},
        {"levels": ((0,), (0, 1))},
        {"supersample": 9},
        {"supersample_from": 1.5},
        {"supersample_seen": -1},
        {"jitter": -0.1},
        {"rays": 1 << 22, "supersample": 2},
    ],
    ids=str,
)
def test_settings_that_no_fit_can_work_with_are_refused(bad):
    with pytest.raises(RaymarchError) as error:
        preset("quick", **bad)
    one_line(error, next(iter(bad)))


def test_a_penalty_of_optical_depth_is_refused_where_values_go_through_a_table():
    table = TransferFunction([0.0, 1.0], [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)], [0.0, 0.5])
    with pytest.raises(RaymarchError) as error:
        preset("quick", mode="transfer", transfer=table, sparsity=1e-3)
    one_line(error, "sparsity is of the optical depth")
    assert preset("quick", mode="transfer", transfer=table, tv_density=1e-3).tv_density == 1e-3


@pytest.mark.parametrize("bad", ["fast", "", "Quick", None])
def test_unknown_presets_are_refused_with_the_known(bad):
    with pytest.raises(RaymarchError) as error:
        preset(bad)
    one_line(error, "quick, default, high")


@pytest.mark.parametrize("make", [lambda **c: preset("quick", **c), lambda **c: change_settings(FitSettings(), **c)])
def test_unknown_settings_are_refused_with_the_known(make):
    with pytest.raises(RaymarchError) as error:
        make(tv=1.0, learning_rate=2.0, seed=3)
    one_line(error, "unknown setting learning_rate, tv; want some of resolution")
    assert "lr_density" in str(error.value)


def test_fit_changes_a_preset_or_a_record(monkeypatch):
    """Before anything is started: settings are refused alike."""
    monkeypatch.setattr(fitter, "ImagePyramid", lambda *_, **__: pytest.fail("started"))
    for settings in ("quick", FitSettings()):
        with pytest.raises(RaymarchError, match="resolution is 1,"):
            fit(None, settings, resolution=1)


def test_names_of_adam_go_to_the_optimiser():
    start = FitSettings(optimiser=Adam(lr_density=0.3, beta1=0.7))
    settings = change_settings(start, lr_density=0.2, final=0.5, tv_density=1e-3)
    assert settings.optimiser == Adam(lr_density=0.2, beta1=0.7, final=0.5)
    assert settings.tv_density == 1e-3
    assert settings.resolution == start.resolution
    assert start.optimiser.lr_density == 0.3  # values are not changed, but made anew
    assert preset("medium", lr_colour=0.01).optimiser == Adam(
        lr_density=0.3, final=0.03, cooldown=0.0, lr_colour=0.01, coarse=0.0, thinning=0.0, beta2=0.99
    )


@pytest.mark.parametrize("name", PRESETS)
def test_seconds_alone_lift_the_limit_of_steps(name):
    assert preset(name, seconds=5).steps is None
    assert preset(name, seconds=5).seconds == 5
    assert (preset(name, seconds=5, steps=7).steps, preset(name, steps=7).seconds) == (7, None)
    assert preset(name).steps is not None
    assert preset(name) == PRESETS[name]


def test_whole_numbers_may_come_as_floats_and_the_other_way():
    """As they do from a command line or a file."""
    settings = preset("quick", resolution=64.0, step=1)
    assert (settings.resolution, type(settings.resolution)) == (64, int)
    assert (settings.step, type(settings.step)) == (1.0, float)


SHELL = [
    ("hull=False", "hull", False),
    ("hull=True", "hull", True),
    ("steps=None", "steps", None),
    ("slots=None", "slots", None),
    ("slots=4", "slots", 4),
    ("block=2", "block", 2),
    ("levels=((0,0.5),(0.4,1))", "levels", ((0.0, 0.5), (0.4, 1.0))),
    ("levels=[[0, 1]]", "levels", ((0.0, 1.0),)),
    ("density=relu", "density", "relu"),
    ("loss='huber'", "loss", "huber"),
    ("tv_density=1e-3", "tv_density", 1e-3),
    ("resolution=64.0", "resolution", 64),
    ("memory= 2", "memory", 2.0),
]


@pytest.mark.parametrize(("pair", "name", "value"), SHELL)
def test_the_shell_says_what_python_says(pair, name, value):
    settings = preset("quick", **{"seconds": 9.0, "steps": 9, **settings_of((pair,))})
    assert getattr(settings, name) == value
    assert type(getattr(settings, name)) is type(value)


@pytest.mark.parametrize("record", [FitSettings(steps=7, seconds=9.0, memory=2.0, slots=3, block=4), Adam(eps=1e-9)])
def test_every_setting_can_be_said_in_the_shell(record):
    """As Python prints it; the optimiser's by their own names."""
    pairs = {f.name: getattr(record, f.name) for f in fields(record) if f.name != "optimiser"}
    settings = preset("medium", **settings_of(tuple(f"{name}={value!r}" for name, value in pairs.items())))
    made = settings if isinstance(record, FitSettings) else settings.optimiser
    assert {name: getattr(made, name) for name in pairs} == pairs


@pytest.mark.parametrize(
    "text", ["[" * 900, "9" * 2000, "'", "\\d", "__import__('os')", "1if 1else 2", "\0", "{1: 2}", "lambda: 0"]
)
def test_what_is_no_literal_is_a_word_and_refused(text):
    with pytest.raises((RaymarchError, click.UsageError)) as error:
        preset("quick", **settings_of((f"levels={text}",)))
    one_line(error, "levels")
    if len(text) > 1000:
        one_line(error, "has 2,000 characters, want at most 1,000")
