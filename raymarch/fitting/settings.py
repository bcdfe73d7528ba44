"""What a fit is told: one frozen record, and the presets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from raymarch.arguments import current_names, held, hold, renamed
from raymarch.checks import Check, flag, instance_of, number, one_of, optional, whole
from raymarch.data.activation import FIT_COLOUR, FIT_DENSITY, ColourActivation, DensityActivation
from raymarch.data.views import VIEWS, Views
from raymarch.data.volume import MAX_DEGREE
from raymarch.device.grid_layout import BLOCKS
from raymarch.errors import RaymarchError
from raymarch.fitting.optimiser import ADAM, Adam

FEW_STEPS = 300  # under which a fit is told to be a poor one
LOSSES = ("squared", "huber")
MOST_LEVELS = 64


OWN_LOSS = "one of your own goes into a ti.ad.Tape round rm.Scene (docs/gradients.md, docs/autodiff.md)"


def _levels(value) -> tuple[tuple[float, float], ...]:
    fraction, scale = number(0, 1), number(0, 1, above=True)
    pairs = tuple((fraction.read(start), scale.read(size)) for start, size in value)
    starts = [start for start, _ in pairs]
    if not 1 <= len(pairs) <= MOST_LEVELS or starts[0] != 0 or starts != sorted(starts) or pairs[-1][1] != 1:
        raise ValueError
    return pairs


LEVELS = Check("pairs (share of the fit, scale): rising shares from 0, the last scale 1", _levels)
WEIGHT = number(0, 1e6)
PART = number(0, 1, below=True)


@renamed(stop="min_transmittance", least="min_weight", share="regularised_fraction")
@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit; `preset` gives good ones, `dataclasses.replace` changes some.

    Attributes:
        resolution: samples along the box's longest side at the finest level.
        sh_degree: 0 (no view dependence) to 3.
        steps: steps in all; None to go by `seconds` alone.
        seconds: time in all, loading and compiling included; None for no limit. The schedule follows whichever of
            the two is nearer its end.
        rays: a step, in tiles of 4 x 4 pixels.
        levels: (from which share of the fit, scale of the resolution), rising.
        step: length of a march step in voxels of the level.
        min_transmittance: early ray termination: a ray ends where less than that of the light passes.
        min_weight: weight below which a sample's colour is taken as black; darkens a ray by at most that times its
            samples.
        density: activation, "softplus", "relu" or "exponential". initial_alpha: opacity of the start over one voxel.
        colour: activation, "sigmoid" or "clamped".
        loss: "squared" or "huber", the latter linear beyond `huber_delta` (in display values 0..1).
        opacity_weight: of the squared error of the opacity, where the images have alpha.
        tv_density, tv_colour, sparsity: weights of the regularisers, per voxel of the level.
        regularised_fraction: of the blocks, looked at by the regularisers in one iteration.
        optimiser: step sizes.
        hull: whether the visual hull of images with alpha bounds the volume; off while poses are still wrong.
        refresh: steps between looks at which cells are empty. prune_alpha: opacity over one voxel that counts as empty.
        slots: gradient buffers on the CPU, filled side by side; None chooses by the grid's size. Changing it changes
            the last bits of a gradient, the number of threads does not.
        block: edge of the layout's blocks; None chooses by the grid's size.
        memory: how much the fit may take [GB]; None for what is free.
        seed: of every random number.
    """

    resolution: int = held(whole(4, 4096), 208)
    sh_degree: int = held(whole(0, MAX_DEGREE), 1)
    steps: int | None = held(optional(whole(1, 2**31 - 1)), 2500)
    seconds: float | None = held(optional(number(0, 1e9, above=True)), None)
    rays: int = held(whole(16, 1 << 22), 8192)
    levels: tuple[tuple[float, float], ...] = held(LEVELS, ((0.0, 0.3), (0.05, 0.5), (0.15, 0.7), (0.4, 1.0)))
    step: float = held(number(1e-3, 1e6, unit="voxel"), 1.0)
    min_transmittance: float = held(PART, 1e-3)
    min_weight: float = held(PART, 1e-4)
    density: str | DensityActivation = held(FIT_DENSITY, "softplus")
    initial_alpha: float = held(number(0, 1, above=True, below=True), 0.05)
    colour: str | ColourActivation = held(FIT_COLOUR, "sigmoid")
    loss: str = held(one_of(*LOSSES, cure=OWN_LOSS), "squared")
    huber_delta: float = held(number(0, 1e6, above=True), 0.1)
    opacity_weight: float = held(WEIGHT, 0.1)
    tv_density: float = held(WEIGHT, 0.0)
    tv_colour: float = held(WEIGHT, 0.0)
    sparsity: float = held(WEIGHT, 0.0)
    regularised_fraction: float = held(number(0, 1, above=True), 0.1)
    optimiser: Adam = held(ADAM, Adam())
    hull: bool = held(flag, True)
    refresh: int = held(whole(1, 10**6), 100)
    prune_alpha: float = held(PART, 1e-3)
    slots: int | None = held(optional(whole(1, 64)), None)
    block: int | None = held(optional(one_of(*BLOCKS)), None)
    memory: float | None = held(optional(number(0, 1e6, above=True, below=True, unit="GB")), None)
    seed: int = held(whole(0, 2**31 - 1), 0)

    def __post_init__(self):
        hold(self)
        if self.steps is None and self.seconds is None:
            raise RaymarchError("neither steps nor seconds; say when to stop")


PRESETS = {
    "quick": FitSettings(resolution=112, steps=600, levels=((0.0, 0.4), (0.2, 0.65), (0.5, 1.0))),
    "default": FitSettings(),
    "high": FitSettings(resolution=256, sh_degree=2, steps=12000, rays=16384),
    "medium": FitSettings(
        resolution=64,
        sh_degree=0,
        steps=600,
        levels=((0.0, 0.5), (0.3, 1.0)),
        initial_alpha=0.02,
        prune_alpha=1e-5,
        min_weight=1e-6,
        opacity_weight=1.0,
        tv_density=1e-3,
        optimiser=Adam(lr_density=0.3, lr_colour=0.15, final=0.03),
    ),
}


def preset(name: str = "default", /, **changes) -> FitSettings:
    """The settings of a preset, with changes by name: "quick", "default", "high", or "medium" for clouds and fog.

    `seconds` without `steps` lets time alone end the fit; names of `Adam`, such as `lr_density`, work too.

    Raises RaymarchError for an unknown preset or setting.

    Example:
        >>> preset("quick", seed=3).seed
        3
    """
    return changed(PRESETS[one_of(*PRESETS)("preset", name)], **changes)


def changed(settings: FitSettings, /, **changes) -> FitSettings:
    """Settings with some changed by name; names of `Adam` go to the optimiser, `seconds` alone lifts the step limit.

    Raises RaymarchError for a name that is neither's, or a value of another type.

    Example:
        >>> changed(FitSettings(), lr_density=0.3).optimiser.lr_density
        0.3
    """
    changes = current_names(FitSettings, changes)
    if changes.get("seconds") is not None and changes.get("steps") is None:
        changes["steps"] = None
    own, rates = FitSettings.__dataclass_fields__, Adam.__dataclass_fields__
    unknown = sorted(set(changes) - set(own) - set(rates))
    if unknown:
        raise RaymarchError(f"unknown setting {', '.join(unknown)}; want some of {', '.join([*own, *rates])}")
    mine = {name: value for name, value in changes.items() if name in own}
    optimiser = ADAM("optimiser", mine.pop("optimiser", settings.optimiser))
    optimiser = replace(optimiser, **{name: value for name, value in changes.items() if name in rates})
    return replace(settings, optimiser=optimiser, **mine)


FIT_SETTINGS = instance_of(FitSettings, "FitSettings, as rm.preset gives")
NAMED_SETTINGS = instance_of(FitSettings, "FitSettings, as rm.preset gives, or the name of a preset")
WITH_READER = replace(VIEWS, cure="rm.load_views(path) reads a folder of them")


def settings_for(views: Views, settings: FitSettings | str, **changes) -> FitSettings:
    """The settings of a fit to views, by record or by a preset's name, with changes by name.

    Raises RaymarchError where these are no views or no settings, and as `preset` does.
    """
    if isinstance(settings, str):
        settings = preset(settings, **changes)
    else:
        settings = changed(NAMED_SETTINGS("settings", settings), **changes)
    (WITH_READER if isinstance(views, str) else VIEWS)("views", views)
    return settings


def ending(steps: int, settings: FitSettings) -> str:
    """ "done", or what a person should know about a fit that made only so many steps in its time."""
    if steps == 0:
        return "the time was over before the first step"
    if settings.seconds and steps < min(FEW_STEPS, settings.steps or FEW_STEPS):
        smaller = "the preset quick" if settings.resolution > PRESETS["quick"].resolution else "a lower resolution"
        return f"done after only {steps} steps; give more seconds, or {smaller}"
    return "done"
