"""What a fit is told: one frozen record, and the presets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from numbers import Real

from raymarch.errors import RaymarchError
from raymarch.grid import BLOCKS
from raymarch.optimiser import Adam
from raymarch.view import Views
from raymarch.volume import COLOURS, DENSITIES, MAX_DEGREE

LOSSES = ("squared", "huber")


def _typed(name: str, value, annotation: str):
    """The value as what its field is declared to be."""
    kinds = annotation.split(" | ")
    number = isinstance(value, Real) and not isinstance(value, bool)
    if "int" in kinds and number and float(value).is_integer():
        return int(value)
    if "float" in kinds and number:
        return float(value)
    wrong = ("int" in kinds or "float" in kinds) and not (value is None and "None" in kinds)
    if wrong or (kinds == ["str"] and not isinstance(value, str)):
        words = {"int": "a whole number", "float": "a number", "str": "a name", "None": "None"}
        raise RaymarchError(f"setting {name} is {value!r}, want {' or '.join(words[kind] for kind in kinds)}")
    if name == "optimiser" and not isinstance(value, Adam):
        raise RaymarchError(f"setting optimiser is {value!r}, want rm.Adam(...), or its settings by their own names")
    return value


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
        stop, least: transmittance at which a ray ends; weight below which a sample's colour is taken as black, which
            darkens a ray by at most `least` times its samples.
        density: activation, "softplus", "relu" or "exponential". initial_alpha: opacity of the start over one voxel.
        colour: activation, "sigmoid" or "clamped".
        loss: "squared" or "huber", the latter linear beyond `huber_delta` (in display values 0..1).
        opacity_weight: of the squared error of the opacity, where the images have alpha.
        tv_density, tv_colour, sparsity: weights of the regularisers, per voxel of the level.
        share: of the blocks that the regularisers look at in one step.
        optimiser: step sizes.
        hull: whether the visual hull of images with alpha bounds the volume; off while poses are still wrong.
        refresh: steps between looks at which cells are empty. prune_alpha: opacity over one voxel that counts as empty.
        slots: gradient buffers on the CPU, filled side by side; None chooses by the grid's size. Changing it changes
            the last bits of a gradient, the number of threads does not.
        block: edge of the layout's blocks; None chooses by the grid's size.
        memory: how much the fit may take [GB]; None for what is free.
        seed: of every random number.
    """

    resolution: int = 208
    sh_degree: int = 1
    steps: int | None = 2500
    seconds: float | None = None
    rays: int = 8192
    levels: tuple[tuple[float, float], ...] = ((0.0, 0.3), (0.05, 0.5), (0.15, 0.7), (0.4, 1.0))
    step: float = 1.0
    stop: float = 1e-3
    least: float = 1e-4
    density: str = "softplus"
    initial_alpha: float = 0.05
    colour: str = "sigmoid"
    loss: str = "squared"
    huber_delta: float = 0.1
    opacity_weight: float = 0.1
    tv_density: float = 0.0
    tv_colour: float = 0.0
    sparsity: float = 0.0
    share: float = 0.1
    optimiser: Adam = field(default_factory=Adam)
    hull: bool = True
    refresh: int = 100
    prune_alpha: float = 1e-3
    slots: int | None = None
    block: int | None = None
    memory: float | None = None
    seed: int = 0

    def __post_init__(self):
        for name, kind in self.__dataclass_fields__.items():
            object.__setattr__(self, name, _typed(name, getattr(self, name), str(kind.type)))

        def want(good: bool, text: str) -> None:
            if not good:
                raise RaymarchError(text)

        want(isinstance(self.hull, bool), f"hull is {self.hull!r}, want True or False")
        want(4 <= self.resolution <= 4096, f"resolution is {self.resolution}, want 4 to 4096")
        want(0 <= self.sh_degree <= MAX_DEGREE, f"SH degree is {self.sh_degree}, want 0 to {MAX_DEGREE}")
        want(self.steps is None or self.steps >= 1, f"steps is {self.steps}, want at least 1")
        budget = self.seconds is None or (math.isfinite(self.seconds) and self.seconds > 0)
        want(budget, f"seconds is {self.seconds}, want a positive number")
        want(self.steps is not None or self.seconds is not None, "neither steps nor seconds; say when to stop")
        want(16 <= self.rays <= 1 << 22, f"rays a step is {self.rays}, want 16 to {1 << 22}")
        want(_rise(self.levels), f"levels is {self.levels}: want pairs, rising shares from 0, the last scale 1")
        want(self.density in DENSITIES, f"density activation {self.density!r}: want one of {', '.join(DENSITIES)}")
        want(self.colour in COLOURS, f"colour activation {self.colour!r}: want one of {', '.join(COLOURS)}")
        want(self.loss in LOSSES, f"loss {self.loss!r}: want one of {', '.join(LOSSES)}")
        want(0 < self.initial_alpha < 1, f"initial alpha is {self.initial_alpha}, want between 0 and 1")
        want(self.slots is None or 1 <= self.slots <= 64, f"slots is {self.slots}, want 1 to 64, or None to choose")
        want(
            self.block is None or self.block in BLOCKS,
            f"block is {self.block}, want one of {BLOCKS}, or None to choose",
        )
        want(
            self.memory is None or 0 < self.memory < 1e6,
            f"memory is {self.memory} GB, want over 0 and under 1e6; leave it out for all that is free",
        )
        want(0 <= self.seed < 2**31, f"seed is {self.seed}, want 0 to {2**31 - 1}")
        want(0 < self.share <= 1, f"share is {self.share}, want over 0 and at most 1")
        want(1e-3 <= self.step <= 1e6, f"step is {self.step} voxels, want 1e-3 to 1e6")
        for name in ("huber_delta", "refresh"):
            want(0 < getattr(self, name) <= 1e6, f"{name} is {getattr(self, name)}, want over 0 and at most 1e6")
        for name in ("opacity_weight", "tv_density", "tv_colour", "sparsity"):
            want(0 <= getattr(self, name) <= 1e6, f"{name} is {getattr(self, name)}, want 0 to 1e6")
        for name in ("prune_alpha", "stop", "least"):
            want(0 <= getattr(self, name) < 1, f"{name} is {getattr(self, name)}, want 0 or more and less than 1")


def _rise(levels) -> bool:
    """Whether these are (share, scale) pairs that begin at share 0 and end at scale 1."""
    try:
        starts, scales = zip(*[(float(start), float(scale)) for start, scale in levels], strict=True)
    except (TypeError, ValueError):
        return False
    return starts[0] == 0 and starts == tuple(sorted(starts)) and scales[-1] == 1 and all(0 < s <= 1 for s in scales)


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
        least=1e-6,
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
    if name not in PRESETS:
        raise RaymarchError(f"preset {name!r}: want one of {', '.join(PRESETS)}")
    return changed(PRESETS[name], **changes)


def changed(settings: FitSettings, /, **changes) -> FitSettings:
    """Settings with some changed by name; names of `Adam` go to the optimiser, `seconds` alone lifts the step limit.

    Raises RaymarchError for a name that is neither's, or a value of another type.

    Example:
        >>> changed(FitSettings(), lr_density=0.3).optimiser.lr_density
        0.3
    """
    if changes.get("seconds") is not None and changes.get("steps") is None:
        changes["steps"] = None
    own, rates = FitSettings.__dataclass_fields__, Adam.__dataclass_fields__
    unknown = sorted(set(changes) - set(own) - set(rates))
    if unknown:
        raise RaymarchError(f"unknown setting {', '.join(unknown)}; want some of {', '.join([*own, *rates])}")
    changes = {n: _typed(n, v, str((own.get(n) or rates[n]).type)) for n, v in changes.items()}
    optimiser = replace(settings.optimiser, **{n: v for n, v in changes.items() if n in rates})
    return replace(settings, **{"optimiser": optimiser, **{n: v for n, v in changes.items() if n in own}})


def settings_for(views: Views, settings: FitSettings | str, **changes) -> FitSettings:
    """The settings of a fit to views, by record or by a preset's name, with changes by name.

    Raises RaymarchError where these are no views or no settings, and as `preset` does.
    """
    if isinstance(settings, str):
        settings = preset(settings, **changes)
    elif isinstance(settings, FitSettings):
        settings = changed(settings, **changes)
    if not isinstance(views, Views) or not isinstance(settings, FitSettings):
        came = f"{type(views).__name__} and {type(settings).__name__}"
        raise RaymarchError(f"a fit wants views and settings, as of rm.load_views and rm.preset, not {came}")
    return settings
