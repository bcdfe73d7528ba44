"""Settings of a fit: one frozen record, each field with its bounds; presets of it, and changes by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, SupportsFloat

from raymarch.arguments.checks import (
    Check,
    Numbers,
    describe_value,
    flag,
    instance_of,
    number,
    one_of,
    optional,
    whole,
    with_cure,
)
from raymarch.arguments.declared import checked_field, suggest_names, validate_fields
from raymarch.arguments.similar_names import unknown_names
from raymarch.device.grid_layout import BLOCK_EDGES
from raymarch.errors import RaymarchError
from raymarch.fitting.settings.objective import LOSSES, OBJECTIVE, REGULARISERS, WEIGHT, Objective
from raymarch.fitting.settings.optimiser import ADAM, Adam
from raymarch.kernels.fit.regularise import OPTICAL_DEPTH
from raymarch.views.contents import is_bounded
from raymarch.views.display_values import SUPERSAMPLE
from raymarch.views.views import VIEWS, Views
from raymarch.volumes.activation import FIT_COLOUR, FIT_DENSITY, ColourActivation, DensityActivation
from raymarch.volumes.samples import BOXES, MAX_DEGREE
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction

MAX_LEVELS = 64
MAX_RAYS = 1 << 23  # of a step: what a buffer of them holds has numbers of its own that Taichi can index
OTHER_MODES_CURE = (
    "others, and rm.Mode of your own, are fitted through rm.TorchRender or rm.Linearised, see docs/write-a-mode.md"
)
OWN_LOSS_CURE = "one of your own goes into objective=rm.Objective(robust=rm.Loss(...)), see docs/extending.md"
# arguments of `load_views`
READING_ARGUMENTS = ("background", "downscale", "holdout", "masks", "split", "follow_links")


def _levels(value: Iterable[Iterable[SupportsFloat]]) -> tuple[tuple[float, float], ...]:
    fraction, scale = number(0, 1), number(0, 1, above=True)
    pairs = tuple((fraction.read(start), scale.read(size)) for start, size in value)
    starts = [start for start, _ in pairs]
    if not 1 <= len(pairs) <= MAX_LEVELS or starts[0] != 0 or starts != sorted(starts) or pairs[-1][1] != 1:
        raise ValueError
    return pairs


LEVELS = Check("pairs (share of the fit, scale): rising shares from 0, the last scale 1", _levels)
FRACTION = number(0, 1, below=True)
DEPTH_SETTINGS = ("depth_weight", "depth_delta", "depth_scale", "depth_from")


@suggest_names
@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit; `preset` gives good ones, `dataclasses.replace` changes some.

    Attributes:
        resolution: samples along the box's longest side at the finest level; in NDC along depth, with up to 2.5 times
            as many across. None for voxels of 1.2 pixels, wider where rays are few, down to 0.85 where they are many.
        sh_degree: 0 (no view dependence) to 3.
        boxes: nested boxes of an unbounded scene, each twice as large as the last and of as many samples; 1 for an
            object, all of which lies in the box; None to tell from the views.
        ndc: whether the volume lies in normalised device coordinates, the frustum of all cameras from a near plane to
            infinity, for forward-facing captures, `near` and `near_gradient` then 0; None to tell from the views.
        near: near plane: rays begin that part of the cameras' usual distance from the box's middle before them, half
            the nearest's at most but for one in twenty, so that nothing grows where a camera alone would see it.
        near_gradient: up to that part of the same distance a sample's gradient is scaled by the square of how far along
            it is (Philip and Deschaintre 2023); 0 for gradients as they are.
        steps: steps in all; None to go by `seconds` alone.
        seconds: time of the steps, from the end of the first one on: loading and compiling come before it and beside it
            (`Fit.preparation`); None for no limit. The schedule follows whichever of the two is nearer its end, so that
            it is through when the fit ends; a fit that comes to its steps in time is the same in each run.
        rays: pixels of a step, in tiles of 4 x 4; each is a ray, or more of them by `supersample`.
        supersample, supersample_from, supersample_seen: rays along each edge of a pixel, which is the mean of so many
            squared over its area, from that share of the fit on and so many draws of each; so are the volume's images.
        least_chance: tiles that were rendered well when last drawn are passed over by chance, the better the more, but
            for this share of them; 1 draws all alike.
        levels: (from which share of the fit, scale of the resolution), rising.
        early: in fits of more than 1,500 steps levels begin so many times sooner at most; 1 for the shares themselves.
        pyramid: image pyramid: a level before the last is fitted to images made smaller by halves, as long as its
            voxels are so many of their pixels wide; a ray then tells of all that was averaged. 0 for none.
        step: length of a march step in voxels of the level.
        jitter: each ray's samples are moved by a random share of a step, up to this, another in each step of the fit.
            None for 1, but 0 at degree 0, whose samples go in pairs without.
        min_transmittance: early ray termination: a ray ends where less than that of the light passes.
        min_weight: weight below which a sample's colour is black; darkens a ray by at most that times its samples.
        roulette: above degree 0, influence on its ray under which what a sample gives the gradient is left to chance,
            an unbiased estimate that leaves most of the memory alone (Russian roulette); 0 for the gradient itself.
        density: activation, "softplus", "relu" or "exponential". initial_alpha: opacity of the start over one voxel.
        colour: activation, "sigmoid" or "clamped".
        loss: "squared", or a robust one, "huber" or "charbonnier" (smooth), which grow like a line beyond `huber_delta`
            (in display values 0..1).
        opacity_weight: of the squared error of the opacity, where the images have alpha.
        distortion_weight: of the distortion loss, which draws what a ray meets together (Barron et al. 2022).
        tv_density, tv_colour, sparsity: weights of the regularisers, per voxel of the level.
        depth_weight: of the depth loss, how far from their known distances rays end, 0 to 1 each; 0 for none. Known are
            depth images and the sparse points that views see.
        depth_delta: error of a known distance from which on it counts less [world unit]; None for 2 % of each, and a
            voxel at least.
        depth_scale: "metric" for depth images in world units; "per-view" where a scale and a shift of each are to be
            fitted, as those of a network are.
        depth_from: "all" that the set has, or of "images" or "points" alone; or "matches", for points where the rays of
            matches between the images cross, of a set that has none.
        regularised_fraction: of the blocks, looked at by the regularisers in one iteration.
        exposure: whether gain and offset of each view's channels are fitted along, for photographs whose exposure or
            white balance changed; of images with alpha, opaque pixels tell them.
        learn_background: whether the background is fitted along, from the mean colour of the images; images with alpha
            keep theirs.
        optimiser: step sizes.
        hull: whether the visual hull of images with alpha bounds the volume; off while poses are still wrong.
        refresh: steps between looks at which cells are empty; eight of them into a level twice as many, and so on.
        prune_alpha: opacity over one voxel that counts as empty.
        prune_weight: at each change of level but the first, what part of a ray's light a sample in a cell must give or
            take in the images for that to be kept, as what no camera sees takes memory all the same; 0 keeps all that
            is not empty. None for 0.001 in bricks and 0 else.
        reopen: opacity over one finest voxel that samples of a fit of more than 1,500 steps have at most as a level
            begins; 1 for any.
        slots: gradient buffers on the CPU, filled side by side; None chooses by the grid's size. Changing it changes
            the last bits of a gradient, the number of threads does not.
        block: edge of the layout's blocks; None chooses by the grid's size.
        bricks: whether samples are kept in bricks of 8^3, of those places alone where something may be, so that memory
            goes with surface; None for where the grid is so large that it pays.
        memory: how much the fit may take [GB]; None for what is free.
        seed: of every random number.
        objective: an `Objective` in place of what `loss` to `sparsity` stand for, which then keep their defaults.
        mode: "emission-absorption", or "transfer" for values, as they are, seen through the table `transfer`.
    """

    # Field: where it lies, how fine it is.
    resolution: int | None = checked_field(optional(whole(4, 4096)), None)
    sh_degree: int = checked_field(whole(0, MAX_DEGREE), 1)
    boxes: int | None = checked_field(optional(BOXES), 1)
    ndc: bool | None = checked_field(optional(flag), False)
    near: float = checked_field(FRACTION, 0.0)
    near_gradient: float = checked_field(number(0, 1e6), 0.0)

    # Schedule: steps, their rays, levels from coarse to fine.
    steps: int | None = checked_field(optional(whole(1, 2**31 - 1)), 2500)
    seconds: float | None = checked_field(optional(number(0, 1e9, above=True)), None)
    rays: int = checked_field(whole(16, 1 << 22), 16384)
    supersample: int = checked_field(SUPERSAMPLE, 2)
    supersample_from: float = checked_field(number(0, 1), 0.7)
    supersample_seen: float = checked_field(number(0, 1e6), 3.0)
    least_chance: float = checked_field(number(0.01, 1), 0.5)
    levels: tuple[tuple[float, float], ...] = checked_field(LEVELS, ((0.0, 0.3), (0.05, 0.5), (0.15, 0.7), (0.4, 1.0)))
    early: float = checked_field(number(1, 64), 2.0)
    pyramid: float = checked_field(number(0, 1e6, unit="pixel"), 1.0)

    # March.
    step: float = checked_field(number(1e-3, 1e6, unit="voxel"), 1.0)
    jitter: float | None = checked_field(optional(number(0, 1)), None)
    min_transmittance: float = checked_field(FRACTION, 1e-3)
    min_weight: float = checked_field(FRACTION, 1e-3)
    roulette: float = checked_field(FRACTION, 1e-2)

    # What raw numbers mean.
    density: str | DensityActivation = checked_field(FIT_DENSITY, "softplus")
    initial_alpha: float = checked_field(number(0, 1, above=True, below=True), 0.05)
    colour: str | ColourActivation = checked_field(FIT_COLOUR, "sigmoid")

    # Objective: losses and regularisers.
    loss: str = checked_field(one_of(*LOSSES, cure=OWN_LOSS_CURE), "squared")
    huber_delta: float = checked_field(number(0, 1e6, above=True), 0.1)
    opacity_weight: float = checked_field(WEIGHT, 0.1)
    distortion_weight: float = checked_field(WEIGHT, 0.0)
    tv_density: float = checked_field(WEIGHT, 0.0)
    tv_colour: float = checked_field(WEIGHT, 0.0)
    sparsity: float = checked_field(WEIGHT, 0.0)
    depth_weight: float = checked_field(WEIGHT, 0.0)
    depth_delta: float | None = checked_field(optional(number(0, 1e9, above=True, unit="world unit")), None)
    depth_scale: str = checked_field(one_of("metric", "per-view"), "metric")
    depth_from: str = checked_field(one_of("all", "images", "points", "matches"), "all")
    regularised_fraction: float = checked_field(number(0, 1, above=True), 0.1)

    # Photometry.
    exposure: bool = checked_field(flag, False)
    learn_background: bool = checked_field(flag, False)

    # Optimiser.
    optimiser: Adam = checked_field(ADAM, Adam())

    # Empty space: what is never looked at, and what is given up on the way.
    hull: bool = checked_field(flag, True)
    refresh: int = checked_field(whole(1, 10**6), 100)
    prune_alpha: float = checked_field(FRACTION, 1e-3)
    prune_weight: float | None = checked_field(optional(FRACTION), None)
    reopen: float = checked_field(number(0, 1, above=True), 0.5)

    # Memory and its layout.
    slots: int | None = checked_field(optional(whole(1, 64)), None)
    block: int | None = checked_field(optional(one_of(*BLOCK_EDGES)), None)
    bricks: bool | None = checked_field(optional(flag), None)
    memory: float | None = checked_field(optional(number(0, 1e6, above=True, below=True, unit="GB")), None)

    # Besides.
    seed: int = checked_field(whole(0, 2**31 - 1), 0)
    objective: Objective | None = checked_field(optional(OBJECTIVE), None)
    mode: str = checked_field(one_of("emission-absorption", "transfer", cure=OTHER_MODES_CURE), "emission-absorption")
    transfer: TransferFunction | None = checked_field(optional(TRANSFER), None)

    def __post_init__(self) -> None:
        validate_fields(self)
        require_consistent(self)

    @property
    def seeks_scene(self) -> bool:
        """Whether a scene without end is to be placed: by nested boxes or NDC, or left to the views."""
        return self.boxes != 1 or self.ndc is True

    @property
    def nested(self) -> int:
        """Count of nested boxes, 1 as long as the views were not asked."""
        return self.boxes or 1

    @property
    def minimised(self) -> Objective:
        """Objective of the fit: the one given, or the one that the settings by name stand for."""
        if self.objective is not None:
            return self.objective
        robust = LOSSES[self.loss] if self.loss == "squared" else replace(LOSSES[self.loss], scale=self.huber_delta)
        ours = [replace(one, weight=getattr(self, name)) for name, one in REGULARISERS.items()]
        kept = tuple(one for one in ours if one.weight)
        return Objective(robust, kept, self.opacity_weight, self.distortion_weight)

    def record(self) -> dict[str, Any]:
        """Settings in plain names and numbers; an objective takes the place of those that it stands for."""
        how = asdict(replace(self, objective=None, mode="emission-absorption", transfer=None))
        del how["objective"]
        how |= {part: getattr(getattr(self, part), "name", how[part]) for part in ("density", "colour")}
        del how["mode"], how["transfer"]
        if not self.depth_weight:  # a fit without depth is the one that it was
            how = {name: value for name, value in how.items() if name not in DEPTH_SETTINGS}
        if self.transfer is not None:
            how |= {"mode": self.mode, "transfer": self.transfer.record()}
        if self.objective is not None:
            how = {name: value for name, value in how.items() if name not in objective_settings()}
            how["objective"] = self.objective.record()
        return how


def require_consistent(settings: FitSettings) -> None:
    """Check of settings beside each other: RaymarchError for what does not go together."""
    for name, default in objective_settings().items() if settings.objective is not None else ():
        if (value := getattr(settings, name)) != default:
            raise RaymarchError(
                f"{name} is {describe_value(value)} beside an objective, which stands in its place; say it there,"
                " as in rm.Objective(regularisers=[rm.Regulariser.named('tv_density', 1e-3)])"
            )
    if settings.ndc and settings.nested > 1:
        raise RaymarchError(
            f"ndc is True beside {settings.boxes} nested boxes; it reaches infinity by itself, leave one"
        )
    if (rays := settings.rays * settings.supersample**2) > MAX_RAYS:
        raise RaymarchError(
            f"rays is {settings.rays:,}, each {settings.supersample}^2 of them by supersample, which makes {rays:,} a"
            f" step, want {MAX_RAYS:,} or less; lower one of both"
        )
    if settings.steps is None and settings.seconds is None:
        raise RaymarchError("neither steps nor seconds; say when to stop")
    if (settings.mode == "transfer") != (settings.transfer is not None):
        raise RaymarchError(
            f"mode is {settings.mode!r} {'with' if settings.transfer else 'without'} a transfer function; give both, as"
            " in rm.fit(views, mode='transfer', transfer=table)"
        )
    if settings.transfer is None:
        return
    object.__setattr__(settings, "sh_degree", 0)  # the volume's own colours are not seen
    if settings.minimised.distortion_weight:
        raise RaymarchError("distortion_weight is over 0 in mode transfer, which has no distortion loss; leave it 0")
    if settings.depth_weight:
        raise RaymarchError("depth_weight is over 0 in mode transfer, which has no depth loss; leave it 0")
    for each in settings.minimised.regularisers:
        if each.of == OPTICAL_DEPTH and each.weight:
            raise RaymarchError(
                f"{each.name} is of the optical depth, which in mode transfer is the table's alone; leave it 0"
            )
    if settings.bricks or settings.nested > 1 or settings.ndc:
        raise RaymarchError("mode transfer fits one dense box; leave bricks and ndc False, and boxes 1")


def objective_settings() -> dict[str, object]:
    """Settings that an objective takes the place of, with their defaults.

    Example:
        >>> objective_settings()["loss"]
        'squared'
    """
    names = ("loss", "huber_delta", "opacity_weight", "distortion_weight", *REGULARISERS)
    return {each.name: each.default for each in fields(FitSettings) if each.name in names}


FIT_SETTINGS = instance_of(FitSettings, "FitSettings, as rm.preset gives")
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
    return change_settings(PRESETS[one_of(*PRESETS)("preset", name)], **changes)


def preset_of_views(views: Views, box: Numbers | None = None) -> str:
    """Name of the preset that the command line takes by itself: "photos" for a scene without end, else "default"."""
    return "default" if box is not None or is_bounded(views) else "photos"


def change_settings(settings: FitSettings, /, **changes: Any) -> FitSettings:
    """Settings with some changed by name; names of `Adam` go to the optimiser, `seconds` alone lifts the limit of
    steps, and `steps` alone that of seconds.

    An `objective` takes the place of the losses and weights that the settings had.

    Raises RaymarchError for a name that is neither's, or a value of another type.

    Example:
        >>> change_settings(FitSettings(), lr_density=0.3).optimiser.lr_density
        0.3
    """
    if changes.get("objective") is not None:
        changes = {**objective_settings(), **changes}
    if changes.get("seconds") is not None and changes.get("steps") is None:
        changes["steps"] = None
    elif changes.get("steps") is not None and "seconds" not in changes:
        changes["seconds"] = None
    own, rates = FitSettings.__dataclass_fields__, Adam.__dataclass_fields__
    unknown = sorted(set(changes) - set(own) - set(rates))
    if unknown:
        reading = [name for name in unknown if name in READING_ARGUMENTS]
        elsewhere = f"; {', '.join(reading)}: say it as the views are read, in rm.load_views" if reading else ""
        raise RaymarchError(
            (f"unknown setting {', '.join(unknown)}" if reading else unknown_names(unknown, [*own, *rates])) + elsewhere
        )
    mine = {name: value for name, value in changes.items() if name in own}
    optimiser = ADAM("optimiser", mine.pop("optimiser", settings.optimiser))
    optimiser = replace(optimiser, **{name: value for name, value in changes.items() if name in rates})
    return replace(settings, optimiser=optimiser, **mine)


NAMED_SETTINGS = with_cure(
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
        settings = change_settings(NAMED_SETTINGS("settings", settings), **changes)
    (WITH_READER if isinstance(views, str) else VIEWS)("views", views)
    return settings
