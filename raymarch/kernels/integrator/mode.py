"""Mode: what a ray makes of its samples, as a record: a rule for one sample after the other, or an integrand.

Each mode is a file in `kernels/modes` and a line in its list; a record of one's own goes to `rm.March(mode=...)`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.integrand import Integrand
from raymarch.kernels.numeric import exp

MAX_TRANSMITTANCE = 1e6  # of T, which depths under 0 would make infinite
RULE_FUNCTIONS = ("composite", "tangent", "adjoint", "step_transmittance")


@ti.func
def exponential(tau):
    """Beer-Lambert transmittance e^-tau, the fraction of the light that passes a sample."""
    return exp(-tau)


@ti.func
def unclamped(T):
    """T where it has a slope, 0 where it is held at `MAX_TRANSMITTANCE`."""
    return ti.select(T < MAX_TRANSMITTANCE, T, 0.0)


@dataclass(frozen=True)
class InParts:
    """How a mode marches a volume that is on the device a part at a time (`kernels/integrator/parts`).

    Attributes:
        at_cell: what is done in a cell, (scene, ray, seg, spot, t, out, state); None where samples are those of steps.
        image, distance: integrands in place of the mode's own, of one that looks for a sample first.
    """

    at_cell: Callable | None = None
    image: Integrand | None = None
    distance: Integrand | None = None


@dataclass(frozen=True)
class Mode:
    """Mode: a compositing rule, its tangent and its adjoint, `@ti.func`s of the numbers of one sample; and what is not
    as of all that composite along steps: the samples' traversal, and integrands of its image, distance and normal.

    T is the transmittance before the sample, 1 at the ray's start; tau its optical depth. The image is
    `sum weight colour + T background` with the T behind the last sample.

    Attributes:
        name: for messages and reports.
        composite: (T, tau, e) -> weight, T after. e is `step_transmittance(tau)`.
        tangent: (T, tau, dot_T, dot_tau) -> dot_weight, dot_T_after: its directional derivative.
        adjoint: (T, tau, T_after, d_weight, remaining) -> d_tau. d_weight is what the image gains by a unit of weight,
            `remaining` what it gains by a unit of T_after; where `power` is given, that times T_after.
        step_transmittance: what the rule wants of tau alone; e^-tau if not given.
        colour: whether weights multiply colours; else the image is the sum of weights in each channel.
        background: whether what is left of T multiplies the background.
        ends: whether a ray may end where T is under `min_transmittance`, and weights under `min_weight` be left out.
        power: the power of T, 0 or 1, that weights are proportional to, if T_after is T times a function of tau: then
            the radiance still to come is read off the image; of 0, T has no slope from `MAX_TRANSMITTANCE` on. None for
            any other rule: the adjoint looks ahead for it.
        classifies: whether optical depth and colour of a sample are those that a transfer function has for its value.
        saturates: whether T after, where it has no slope by T before, has none by tau either.
        image, distance, normal: integrands of the image, of depth and of normals, where they are not those of all modes
            that composite.
        traverse: the samples' traversal, by steps if not given.
        search: kernel (grid, rays, variant, count, dt) that goes before each pass and leaves in the rays what it found.
        level_ends: whether the traversal has ends that move with the volume, where its raw density meets a level.
        plain: mode whose depth, and normals if it has none of its own, this one takes.
        has_normals: whether there is a surface to speak of.
        step: whether the image depends on the length of a step.
        shaded: whether normals are seen, so that the image depends on how a box is turned and stretched.
        boxes, ndc: whether it goes through nested boxes, and normalised device coordinates.
        parameters: groups of numbers of its own that it reads at run time, such as "iso".
        no_gradient: why it has no gradient, and what to do instead; empty where it has.
        no_image: the same of the image.
        in_parts: how it marches a volume larger than memory, part by part; None where it does not. By steps if not
            given.

    Raises RaymarchError for a part that is missing or of another kind; before the first march of a mode of one's own,
    for derivatives that are not those of its rule.

    Example:
        >>> from raymarch.kernels.modes.registry import MODES
        >>> MODES["x-ray"].background
        False
    """

    name: str
    composite: Callable
    tangent: Callable
    adjoint: Callable
    step_transmittance: Callable = exponential
    colour: bool = True
    background: bool = True
    ends: bool = True
    power: int | None = None
    classifies: bool = False
    saturates: bool = False
    image: Integrand | None = None
    distance: Integrand | None = None
    normal: Integrand | None = None
    traverse: Callable | None = None
    search: Callable | None = None
    level_ends: bool = False
    plain: "Mode | None" = None
    has_normals: bool = True
    step: bool = True
    shaded: bool = False
    boxes: bool = True
    ndc: bool = True
    parameters: tuple[str, ...] = ()
    no_gradient: str = ""
    no_image: str = ""
    in_parts: InParts | None = InParts()

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise RaymarchError(f"name is {self.name!r}, want a text by which messages call the mode")
        for part in RULE_FUNCTIONS:
            if not callable(getattr(self, part)):
                raise RaymarchError(f"mode {self.name!r}: {part} is {getattr(self, part)!r}, want a ti.func")
        for part in ("colour", "background", "ends", "classifies"):
            if not isinstance(getattr(self, part), bool):
                raise RaymarchError(f"mode {self.name!r}: {part} is {getattr(self, part)!r}, want True or False")
        if self.power not in (None, 0, 1) or isinstance(self.power, bool):
            raise RaymarchError(f"mode {self.name!r}: power is {self.power!r}, want 0, 1 or None")

    @property
    def any_channels(self) -> bool:
        """Whether images may have other channels than three colours: of samples' own colours, composited."""
        return self.colour and not self.classifies and self.image is None

    @property
    def looks_ahead(self) -> bool:
        """Whether the adjoint must march ahead for the radiance still to come."""
        return self.power is None

    @property
    def looks_before(self) -> bool:
        """Whether it does so before a sample that a change of T does not reach: soon enough where it saturates."""
        return self.looks_ahead and self.saturates

    @property
    def looks_behind(self) -> bool:
        """Whether it does so behind a sample that a change of T does not come through, before that one's gradient."""
        return self.looks_ahead and not self.saturates


# Compositing of a ray's samples as the variant's mode has it: what marches ask of a `Mode`.


@ti.func
def is_alive(variant: ti.template(), T, min_transmittance):
    """Early ray termination: whether a ray goes on."""
    on = T >= min_transmittance
    if ti.static(not variant.mode.ends):
        on = True
    return on


@ti.func
def contributes(variant: ti.template(), weight, min_weight):
    """Contribution test: whether a sample's colour is looked at."""
    on = ti.abs(weight) >= min_weight
    if ti.static(not variant.mode.ends):
        on = True
    return on


@ti.func
def background_of(variant: ti.template(), background):
    """Background as the mode sees it."""
    b = ti.Vector([background[c] for c in ti.static(range(background.n))])
    if ti.static(not variant.mode.background):
        b = ti.Vector.zero(float, background.n)
    return b


@ti.func
def behind_of(rays: ti.template(), background):
    """Background of a march: the three numbers of its call, or as many as the buffer's images have channels."""
    if ti.static(rays.of_channels):
        return rays.behind[None]
    else:
        return background


@ti.func
def composite(variant: ti.template(), T, tau):
    """Compositing of one sample: weight, and transmittance T after it."""
    return variant.mode.composite(T, tau, variant.mode.step_transmittance(tau))
