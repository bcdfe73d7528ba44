"""March settings: how rays are sampled and what their samples add up to, and what they see of a volume."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from raymarch.arguments.checks import Wrong, flag, instance_of, number, one_of, optional, whole, with_cure
from raymarch.arguments.declared import checked_field, suggest_names, validate_fields
from raymarch.arguments.similar_names import similar_names
from raymarch.device.activation_functions import require_mode
from raymarch.device.grid import Grid
from raymarch.device.memory import BATCH_RAYS
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import corners_of
from raymarch.geometry.clip import CLIP, Clip
from raymarch.kernels.integrator.kernel import MarchCall, Variant
from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.modes.preintegrated import PREINTEGRATED
from raymarch.kernels.modes.registry import MODES
from raymarch.kernels.modes.transfer import LIT_TRANSFER
from raymarch.rendering.shading import SHADING, WITHOUT_GRADIENT, Shading
from raymarch.views.display_values import MAX_SUPERSAMPLE, SUPERSAMPLE
from raymarch.volumes.activation import Activation
from raymarch.volumes.default_table import default_table, has_values_alone, range_of
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction
from raymarch.volumes.volume import Volume

# of the brightest colour, or 1: what a ray may lose by skipping empty space, over the whole box
MAX_SKIPPING_ERROR = 5e-6
EXTINCTION_MODES = (MODES["emission-absorption"], MODES["additive"])  # of which light that grows has no end
NAMED_MODE = one_of(*MODES)


def _mode(value: object) -> str | Mode:
    """A mode's name, or a record of the user's own."""
    return value if isinstance(value, Mode) else NAMED_MODE.read(value)


MODE = replace(NAMED_MODE, read=_mode)


@suggest_names
@dataclass(frozen=True)
class March:
    """March settings: step length, early ray termination, compositing mode, jitter.

    Attributes:
        step: length of a step in voxels.
        min_transmittance: early ray termination: a ray ends where less than that of the light passes; what it hides is
            at most that much of the image.
        min_weight: weight below which a sample's colour is taken as black: a ray loses at most this times its samples.
        batch: rays a launch; no effect on the image.
        mode: how samples add up: "emission-absorption", "additive" (opacities summed up to 1, as in Neural Volumes),
            "x-ray" (the integral of sigma in each colour, without colour, background or early stop) or "transfer"
            (emission and absorption by the transfer function of a sample's value); or what is shown of a whole ray:
            "maximum", "minimum", "average", "isosurface", "x-ray-exact" (an X-ray without steps),
            "x-ray-joseph" (one by planes of samples). Or an `rm.Mode`.
        jitter: each ray's first step is shorter by a random share of a step, up to this, 0..1; breaks up bands.
        step_jitter: each ray's steps are longer or shorter by a random share up to this, 0 to under 1.
        seed: of the jitter, which is a function of seed and pixel alone.
        iso: value of the surface that mode "isosurface" shows, in units of what the density activation gives.
        shading: how a surface is lit, `rm.Shading()` if None; in mode "transfer" how samples are, by the slope of their
            value, and not at all if None.
        transfer: the `rm.TransferFunction` of mode "transfer".
        preintegrated: whether mode "transfer" integrates the table between the knots that a ray meets, so that none is
            missed and there is no step; it takes 2 to 6 times as long.
        clip: `rm.Clip`, the part of the world that rays see; all if None.
        supersample: rays along each edge of a pixel, whose colour and opacity are the mean of so many squared, over its
            area; depth and normals are those of its centre. None for as many as the volume was fitted with, else 1.
            Rays that are given, and those of gradients, are single ones.
    """

    step: float = checked_field(number(1e-3, 1e6), 0.5)
    min_transmittance: float = checked_field(number(0, 1, below=True), 1e-4)
    min_weight: float = checked_field(number(0, 1, below=True), 1e-6)
    batch: int = checked_field(whole(1, 1 << 26), BATCH_RAYS)
    mode: str | Mode = checked_field(MODE, next(iter(MODES)))
    jitter: float = checked_field(number(0, 1), 0.0)
    step_jitter: float = checked_field(number(0, 1, below=True), 0.0)
    seed: int = checked_field(whole(0, 2**31 - 1), 0)
    iso: float | None = checked_field(optional(number()), None)
    shading: Shading | None = checked_field(optional(SHADING), None)
    transfer: TransferFunction | None = checked_field(optional(TRANSFER), None)
    preintegrated: bool = checked_field(flag, False)
    clip: Clip | None = checked_field(optional(CLIP), None)
    supersample: int | None = checked_field(optional(SUPERSAMPLE), None)

    def __post_init__(self) -> None:
        validate_fields(self)
        if "iso" in self.rule.parameters and self.iso is None:
            raise RaymarchError(f"iso is None, want the value of the surface that mode {self.rule.name} shows")
        if self.rule.classifies and self.transfer is None:
            raise RaymarchError(
                f"mode {self.rule.name} has no table, want a transfer function; give it"
                " transfer=rm.TransferFunction.of_colormap('viridis', low, high)"
            )
        if self.transfer is not None and not self.rule.classifies:
            raise RaymarchError(f"mode {self.rule.name} takes no transfer function; say mode='transfer' beside it")
        if self.iso is not None and "iso" not in self.rule.parameters:
            raise RaymarchError(f"iso is given in mode {self.rule.name}, which shows no surface; say mode='isosurface'")
        if self.shading is not None and not (self.rule.shaded or self.rule.classifies):
            raise RaymarchError(f"shading is given in mode {self.rule.name}, which lights nothing; leave it out")
        if self.shading is not None and self.shading.occlusion > 0 and not self.rule.classifies:
            raise RaymarchError(f"shading has occlusion in mode {self.rule.name}, want mode transfer; leave it 0")
        if self.shading is not None and self.shading.matcap is not None and self.rule.classifies:
            raise RaymarchError(f"shading has a matcap in mode {self.rule.name}, want mode isosurface; leave it out")
        if self.shading is not None and self.preintegrated:
            raise RaymarchError("shading is given beside preintegrated, which has none; leave one out")
        if self.preintegrated and self.rule is not PREINTEGRATED:
            raise RaymarchError(f"preintegrated is True in mode {self.rule.name}, want mode transfer; leave it False")

    @property
    def jittered(self) -> bool:
        """Jitter: whether rays have one of their own."""
        return self.jitter > 0 or self.step_jitter > 0

    @property
    def side(self) -> int:
        """Rays along each edge of a pixel."""
        return self.supersample or 1

    @property
    def clipped(self) -> bool:
        """Whether rays are cut by anything."""
        return self.clip is not None and len(self.clip.half_spaces) > 0

    @property
    def rule(self) -> Mode:
        """Compositing mode's record."""
        rule = MODES[self.mode] if isinstance(self.mode, str) else self.mode
        if rule is MODES["isosurface"] and self.shading is not None and self.shading.matcap is not None:
            return WITHOUT_GRADIENT
        if rule is not MODES["transfer"]:
            return rule
        return PREINTEGRATED if self.preintegrated else LIT_TRANSFER if self.shading is not None else rule

    def variant(self, grid: Grid) -> Variant:
        """Variant that this march's kernels over a grid are compiled for; a mode of one's own is checked first."""
        require_mode(self.rule)
        return grid.variant.replace(mode=self.rule, jittered=self.jittered, clipped=self.clipped)

    def call(
        self, grid: Grid, count: int, background: Sequence[float] | np.ndarray, dt: float | None = None
    ) -> MarchCall:
        """Last arguments of a march of `count` rays over three numbers, or those that a buffer of channels has (see
        `RayBuffer.set_behind`); `dt` is `step` [voxel] if not given."""
        dt = self.step * grid.voxel if dt is None else dt
        behind = background if isinstance(background, ti.Matrix) else ti.Vector([float(c) for c in background])
        return MarchCall(self.variant(grid), count, dt, self.min_transmittance, self.min_weight, behind)


EXACT = March(min_transmittance=0.0, min_weight=0.0)  # each sample counts, as gradients want it


def march_for(volume: Volume, march: March | None, lit: bool = False) -> March:
    """March of a volume: where none is given one that has values alone, as a scan has, is seen through the table that
    it was fitted through, or else one by the kind of its values, which may be lit, all others by the default; with as
    many rays a pixel as it was fitted with, if it does not say how many."""
    if march is None and has_values_alone(volume):
        light = Shading() if lit and table_of(volume) is None else None
        march = March(mode="transfer", transfer=table_of(volume) or default_table(volume), shading=light)
    march = march or March()
    side = supersample_of(volume) if march.supersample is None else None
    return march if side is None else replace(march, supersample=side)


def table_of(volume: Volume) -> TransferFunction | None:
    """Transfer function that a volume was fitted through; None where it was not, or does not tell."""
    settings = volume.provenance.get("settings")
    with suppress(RaymarchError, LookupError, TypeError):
        return TransferFunction.of_record(settings["transfer"])  # type: ignore[index]
    return None


def supersample_of(volume: Volume) -> int | None:
    """Rays along each edge of a pixel that a volume was fitted with; None where it was not, or does not tell."""
    told = volume.provenance.get("supersample")
    return told if type(told) is int and 1 <= told <= MAX_SUPERSAMPLE else None


def _of_single_rays(value: object) -> March:
    march: March = MARCH.read(value)
    if (march.supersample or 1) > 1:
        raise Wrong(f"has {march.supersample} rays along a pixel's edge", "gradients are of single ones; leave it out")
    return march


def _march_cure(value: object) -> str:
    name = next(iter(similar_names(value, MODES)), "")
    return f"rm.March(mode={name!r}{', ..' if name in ('transfer', 'isosurface') else ''}) is one" if name else ""


MARCH = with_cure(instance_of(March, "rm.March(...)", "with rm.March() for its defaults"), _march_cure)
SINGLE_RAYS = replace(MARCH, read=_of_single_rays)


def skip_invisible(grid: Grid, volume: Volume, march: March, most: float | None = None) -> None:
    """Empty-space skipping of a grid's cells so thin that nobody sees it: none where nothing is too thin to count.

    Through a transfer function those alone whose values all have opacity 0, so that no bit of the image depends on it.
    `most` is the largest of the features, up to their sign, where they are not the volume's own.
    """
    mode = march.rule
    if march.transfer is not None:
        grid.refresh_through(march.transfer)
    elif not volume.activation.density_rule.signed and mode.ends:
        segments = 2 * volume.boxes - 1  # through nested boxes, each as long as one in units of its own
        corners = corners_of(volume.world_from_index, volume.box_shape)  # in NDC, where it lies there
        longest = segments * float(np.linalg.norm(np.ptp(corners, axis=0)))
        grid.refresh_occupancy(MAX_SKIPPING_ERROR / (longest * max_colour(volume, most)))


def max_colour(volume: Volume, most: float | None = None) -> float:
    """Upper bound of the volume's colours, 1 or more: by the addition theorem |Y_lm| <= sqrt((2l + 1) / 4 pi)."""
    if most is None:
        features = (volume if volume.bricks is None else volume.bricks).features
        most = max(float(features.max(initial=0)), -float(features.min(initial=0)))
    per_band = (2 * np.arange(volume.degree + 1) + 1) ** 1.5 / np.sqrt(4 * np.pi)
    return max(float(volume.activation.colour_rule.forward(most * float(per_band.sum()))), 1.0)


def set_ray_settings(buffer: RayBuffer, grid: Grid, march: March, iso: float | None = None) -> None:
    """Put what a march's mode reads into a buffer: a surface's level (`iso` if given) and shading, a transfer function,
    clipping planes. Another value compiles nothing."""
    if march.transfer is not None:
        buffer.set_table(march.transfer)
        if march.shading is not None:
            buffer.set_surface(0.0, march.shading.numbers())
    if march.clip is not None:
        buffer.set_planes(march.clip.planes_in(grid.ndc_from_world))
    if "iso" in march.rule.parameters:
        value = float(march.iso if iso is None else iso)  # type: ignore[arg-type]  # March asks for one
        buffer.set_surface(level_of(value, grid.activation), (march.shading or Shading()).numbers())


def level_of(iso: float, activation: Activation) -> float:
    """Raw density where the value is `iso`; RaymarchError for what the activation never gives."""
    with np.errstate(all="ignore"):
        level = float(activation.raw(iso))
        found = float(activation.sigma(level)) if np.isfinite(level) else np.inf
    if abs(found - iso) > 1e-3 * abs(iso):
        name = activation.density_rule.name
        raise RaymarchError(f"iso is {iso:g}, which no density of activation {name} is; choose a positive one")
    return level


def skip_unseen(grid: Grid, volume: Volume, march: March) -> None:
    """Empty-space skipping of what a march cannot see in a volume.

    RaymarchError for a surface of a value that the volume does not have.
    """
    if march.iso is None or "iso" not in march.rule.parameters:
        skip_invisible(grid, volume, march)
    elif grid.mark_surface(level_of(march.iso, volume.activation)) == 0:
        low, high = range_of(volume)
        raise RaymarchError(
            f"iso is {march.iso:g} but values go from {low:g} to {high:g}, so there is no surface; choose one between"
        )


def require_seen(volume: Volume, march: March) -> None:
    """RaymarchError where a mode does not march such a volume."""
    rule = march.rule
    if not volume.is_colour and not rule.any_channels:
        names = ", ".join(volume.channels)
        raise RaymarchError(
            f"mode {rule.name} does not show the channels {names}; take mode emission-absorption, or pass"
            " volume.in_colour(), which shows some of them as colours"
        )
    if volume.boxes > 1 and (rule.classifies or not rule.boxes):  # a table reads values and lengths as of one box
        other = "maximum" if has_values_alone(volume) else "emission-absorption"
        raise RaymarchError(
            f"mode {rule.name} does not go through nested boxes; take volume.nested(0), the innermost, or mode {other}"
        )
    if rule in EXTINCTION_MODES and has_values_alone(volume):
        low, high = range_of(volume)
        if low < 0:
            raise RaymarchError(
                f"values go from {low:g} to {high:g}, which mode {rule.name} takes for extinction, want 0 or more; show"
                " them in mode transfer, isosurface or maximum"
            )
    if volume.ndc_from_world is not None and not rule.ndc:
        raise RaymarchError(f"mode {rule.name} does not march volumes in NDC; resample it to a box in the world")
