"""Presets of a fit, and changes to settings by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from raymarch.arguments.arrays import Numbers, mended
from raymarch.arguments.checks import instance_of, one_of
from raymarch.arguments.declared import current_names
from raymarch.arguments.guess import unknown_names
from raymarch.errors import RaymarchError
from raymarch.fitting.scene_box import is_bounded
from raymarch.fitting.settings.optimiser import ADAM, Adam
from raymarch.fitting.settings.settings import FitSettings, of_objective
from raymarch.views.views import VIEWS, Views

PRESETS = {
    "quick": FitSettings(
        resolution=160,
        steps=600,
        seconds=45.0,  # fog has several times as much to march through: its steps give way to the time
        rays=8192,
        supersample=1,
        levels=((0.0, 0.4), (0.2, 0.65), (0.5, 1.0)),
        optimiser=Adam(beta2=0.99),
    ),
    "default": FitSettings(),
    "high": FitSettings(sh_degree=2, steps=6000),
    "medium": FitSettings(
        resolution=64,
        sh_degree=0,
        steps=600,
        rays=8192,
        supersample=1,
        pyramid=0.0,
        least_chance=1.0,
        levels=((0.0, 0.5), (0.3, 1.0)),
        initial_alpha=0.02,
        prune_alpha=1e-5,
        min_weight=1e-6,
        reopen=1.0,
        early=1.0,
        opacity_weight=1.0,
        tv_density=1e-3,
        optimiser=Adam(lr_density=0.3, lr_colour=0.15, final=0.03, cooldown=0.0, coarse=0.0, thinning=0.0, beta2=0.99),
    ),
    "photos": FitSettings(
        resolution=128,
        boxes=None,
        ndc=None,
        near=0.2,
        steps=3000,
        rays=8192,
        supersample=1,
        jitter=0.0,
        pyramid=0.0,
        least_chance=1.0,
        optimiser=Adam(final=0.1, cooldown=0.0, coarse=0.0, decay=0.0, thinning=0.0, beta2=0.99),
        initial_alpha=0.003,
        prune_alpha=0.005,
        min_transmittance=0.01,
        min_weight=1e-3,
        roulette=0.0,
        reopen=1.0,
        early=1.0,
        distortion_weight=0.01,
        tv_density=1.5e-3,
        tv_colour=1.5e-3,
        exposure=True,
    ),
}


def preset(name: str = "default", /, **changes: Any) -> FitSettings:
    """Preset settings, with changes by name: "quick", "default", "high", "medium" for clouds, "photos" for photographs.

    `seconds` without `steps` lets time alone end the fit, and `steps` without `seconds` the steps: "quick" has both,
    600 steps or 45 s, whichever comes first; where time does, two runs are not the same to the bit. Names of `Adam`,
    such as `lr_density`, work too.

    Raises RaymarchError for an unknown preset or setting.

    Example:
        >>> preset("quick", seed=3).seed
        3
    """
    return changed(PRESETS[one_of(*PRESETS)("preset", name)], **changes)


def preset_of_views(views: Views, box: Numbers | None = None) -> str:
    """Name of the preset that the command line takes by itself: "photos" for a scene without end, else "default"."""
    return "default" if box is not None or is_bounded(views) else "photos"


OF_READING = ("background", "downscale", "holdout", "masks", "split", "follow_links")  # arguments of `load_views`


def changed(settings: FitSettings, /, **changes: Any) -> FitSettings:
    """Settings with some changed by name; names of `Adam` go to the optimiser, `seconds` alone lifts the limit of
    steps, and `steps` alone that of seconds.

    An `objective` takes the place of the losses and weights that the settings had.

    Raises RaymarchError for a name that is neither's, or a value of another type.

    Example:
        >>> changed(FitSettings(), lr_density=0.3).optimiser.lr_density
        0.3
    """
    changes = current_names(FitSettings, changes)
    if changes.get("objective") is not None:
        changes = {**of_objective(), **changes}
    if changes.get("seconds") is not None and changes.get("steps") is None:
        changes["steps"] = None
    elif changes.get("steps") is not None and "seconds" not in changes:
        changes["seconds"] = None
    own, rates = FitSettings.__dataclass_fields__, Adam.__dataclass_fields__
    unknown = sorted(set(changes) - set(own) - set(rates))
    if unknown:
        reading = [name for name in unknown if name in OF_READING]
        elsewhere = f"; {', '.join(reading)}: say it as the views are read, in rm.load_views" if reading else ""
        raise RaymarchError(
            (f"unknown setting {', '.join(unknown)}" if reading else unknown_names(unknown, [*own, *rates])) + elsewhere
        )
    mine = {name: value for name, value in changes.items() if name in own}
    optimiser = ADAM("optimiser", mine.pop("optimiser", settings.optimiser))
    optimiser = replace(optimiser, **{name: value for name, value in changes.items() if name in rates})
    return replace(settings, optimiser=optimiser, **mine)


NAMED_SETTINGS = mended(
    instance_of(FitSettings, "FitSettings, as rm.preset gives, or the name of a preset"),
    lambda value: "rm.preset('default', **it) makes them of a mapping" if isinstance(value, dict) else "",
)
WITH_READER = instance_of(Views, VIEWS.wanted, "rm.load_views(path) reads a folder of them")


def settings_for(views: Views, settings: FitSettings | str, **changes: Any) -> FitSettings:
    """Settings of a fit to views, by record or by a preset's name, with changes by name.

    Raises RaymarchError where these are no views or no settings, and as `preset` does.
    """
    if isinstance(settings, str):
        settings = preset(settings, **changes)
    else:
        settings = changed(NAMED_SETTINGS("settings", settings), **changes)
    (WITH_READER if isinstance(views, str) else VIEWS)("views", views)
    return settings
