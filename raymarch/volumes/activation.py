"""Activations: raw numbers to extinction and colour, after interpolation.

Each is a record and a line in `DENSITIES` or `COLOURS` here, and its equation as Taichi functions in
`kernels/field/activation.py`; a record of one's own brings both and goes to `rm.Activation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np

from raymarch.arguments.checks import MAX_NUMBER, Check, Numbers, instance_of, number, one_of, with_cure
from raymarch.arguments.declared import checked, checked_field, suggest_names, validate_fields
from raymarch.errors import RaymarchError, one_line
from raymarch.volumes.samples import RAW

MAX_EXPONENT = 15.0
MIN_DENSITY = 1e-30  # of what a density's inverse is asked for: a logarithm's argument


def _require_parts(record: DensityActivation | ColourActivation, kind: str, functions: tuple[str, ...]) -> None:
    if not isinstance(record.name, str) or not record.name:
        raise RaymarchError(f"name is {record.name!r}, want a text by which messages call the activation")
    for part in functions:
        value = getattr(record, part)
        if not callable(value) and not (value is None and part in ("value", "slope")):
            raise RaymarchError(f"{kind} activation {record.name!r}: {part} is {value!r}, want a function")


@dataclass(frozen=True)
class DensityActivation:
    """Density activation, raw density to extinction: sigma = forward(raw + shift) / scale.

    Attributes:
        name: for messages and files.
        forward, inverse: of arrays, in NumPy; forward does not fall.
        value, slope: `@ti.func`s of one number: forward again, and its derivative. None for those that raymarch has.
        empty: raw + shift of a sample that holds nothing.
        signed: whether extinction may be negative; then no space is skipped as empty.
        linear: whether raw numbers are optical depths; a fit's steps are then in units of those of its start.

    Raises RaymarchError for a part that is missing; before the first march, for a `value` that is not `forward` and a
    `slope` that is not its derivative.

    Example:
        >>> DENSITIES["relu"].empty
        0.0
    """

    name: str
    forward: Callable
    inverse: Callable
    value: Callable | None = None
    slope: Callable | None = None
    empty: float = -25.0
    signed: bool = False
    linear: bool = False

    def __post_init__(self) -> None:
        _require_parts(self, "density", ("forward", "inverse", "value", "slope"))
        empty = number()(f"density activation {self.name!r}: empty", self.empty)
        object.__setattr__(self, "empty", empty)


@dataclass(frozen=True)
class ColourActivation:
    """Colour activation: the sum over spherical harmonics to a colour, channel by channel.

    Attributes:
        name: for messages and files.
        forward: of arrays, in NumPy; it does not fall.
        value: `@ti.func` of one sum: forward again. slope: `@ti.func` of one colour: the derivative by the sum there.
            None for those that raymarch has.

    Raises RaymarchError as `DensityActivation` does.

    Example:
        >>> float(COLOURS["clamped"].forward(-0.1))
        0.4
    """

    name: str
    forward: Callable
    value: Callable | None = None
    slope: Callable | None = None

    def __post_init__(self) -> None:
        _require_parts(self, "colour", ("forward", "value", "slope"))


def numbers_of(rule: DensityActivation | ColourActivation, part: str, x: Numbers) -> np.ndarray:
    """Numbers that an activation's `forward` or `inverse` gives, one for each of x; RaymarchError where it does not."""
    try:
        y = np.asarray(getattr(rule, part)(x), float)
    except MemoryError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise wrong_part(rule, part, f"raised {type(error).__name__}: {one_line(error)}") from error
    if y.shape != np.shape(x):
        raise wrong_part(rule, part, f"gives shape {y.shape} of {np.shape(x)}, want a number for each")
    return y


def wrong_part(rule: DensityActivation | ColourActivation, part: str, why: str) -> RaymarchError:
    """Error about a part of an activation of a user's own."""
    kind = "density" if isinstance(rule, DensityActivation) else "colour"
    return RaymarchError(
        f"{kind} activation {rule.name!r}: {part} {why}; rm.{type(rule).__name__} says what each part is"
    )


DENSITIES = {
    each.name: each
    for each in (
        DensityActivation("softplus", lambda x: np.logaddexp(0, x), lambda y: y + np.log(-np.expm1(-y))),
        DensityActivation("relu", lambda x: np.maximum(x, 0), lambda y: y, empty=0.0, linear=True),
        DensityActivation("exponential", lambda x: np.exp(np.minimum(x, MAX_EXPONENT)), np.log),
        DensityActivation("identity", lambda x: x, lambda y: y, empty=0.0, signed=True),
    )
}
COLOURS = {
    each.name: each
    for each in (
        ColourActivation("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ColourActivation("clamped", lambda x: np.maximum(x + 0.5, 0)),
        ColourActivation("identity", lambda x: x),
    )
}
FIT_DENSITIES = tuple(name for name, each in DENSITIES.items() if not each.signed)
FIT_COLOURS = tuple(name for name in COLOURS if name != "identity")  # which is for data and linear problems


_own_activations: ContextVar[tuple[DensityActivation | ColourActivation, ...]] = ContextVar(
    "own activations", default=()
)


@contextmanager
def known_by_name(own: Sequence[DensityActivation | ColourActivation]) -> Iterator[None]:
    """Context in which activations of a user's own are known by their names, as a file has them."""
    token = _own_activations.set(tuple(own))
    try:
        yield
    finally:
        _own_activations.reset(token)


def _or_own(names: tuple[str, ...], kind: type) -> Check:
    by_name = one_of(*names)

    def read(value: object) -> object:
        own = [each for each in _own_activations.get() if isinstance(each, kind) and each.name == value]
        return value if isinstance(value, kind) else own[0] if own else by_name.read(value)

    return replace(by_name, read=read)


DENSITY, COLOUR = _or_own(tuple(DENSITIES), DensityActivation), _or_own(tuple(COLOURS), ColourActivation)
FIT_DENSITY, FIT_COLOUR = _or_own(FIT_DENSITIES, DensityActivation), _or_own(FIT_COLOURS, ColourActivation)


@suggest_names
@dataclass(frozen=True)
class Activation:
    """Activation pair of a volume: raw numbers to extinction and colour, after interpolation.

    Attributes:
        density: "softplus" `ln(1 + e^(raw + shift)) / scale`, "relu" `max(raw + shift, 0) / scale`,
            "exponential" `e^min(raw + shift, 15) / scale`, or "identity" `(raw + shift) / scale`, of any sign.
        shift: added to the raw density, no unit.
        scale: a length [world unit]; sigma is in 1/world unit.
        colour: "sigmoid" `1 / (1 + e^-sum)`, "clamped" `max(sum + 1/2, 0)` or "identity" `sum`, of
            `sum_k c_k Y_k(direction)`.

    A `DensityActivation` or `ColourActivation` of one's own goes where a name does.

    Example:
        >>> round(float(Activation.of_initial_alpha(0.01, 0.5).sigma(0.0)), 4)  # alpha 0.01 over 0.5
        0.0201
    """

    density: str | DensityActivation = checked_field(DENSITY, "softplus")
    shift: float = checked_field(number(), 0.0)
    scale: float = checked_field(number(1 / MAX_NUMBER, MAX_NUMBER), 1.0)
    colour: str | ColourActivation = checked_field(COLOUR, "sigmoid")

    def __post_init__(self) -> None:
        validate_fields(self)

    @classmethod
    @checked(alpha=number(0, 1, above=True, below=True), scale=number(1 / MAX_NUMBER, MAX_NUMBER), density=DENSITY)
    def of_initial_alpha(
        cls,
        alpha: float,
        scale: float,
        density: str | DensityActivation = "softplus",
        colour: str | ColourActivation = "sigmoid",
    ) -> Activation:
        """Activation under which a zero grid has opacity `alpha` (in 0..1) over the length `scale`."""
        rule = density if isinstance(density, DensityActivation) else DENSITIES[density]
        shift = 0.0 if rule.signed else float(numbers_of(rule, "inverse", -np.log1p(-alpha)))
        return cls(density, shift, float(scale), colour)

    @property
    def density_rule(self) -> DensityActivation:
        """Record of the density activation."""
        return self.density if isinstance(self.density, DensityActivation) else DENSITIES[self.density]

    @property
    def colour_rule(self) -> ColourActivation:
        """Record of the colour activation."""
        return self.colour if isinstance(self.colour, ColourActivation) else COLOURS[self.colour]

    def sigma(self, raw: Numbers) -> np.ndarray:
        """Extinction [1/world unit] of raw densities (any shape)."""
        return numbers_of(self.density_rule, "forward", RAW("raw", raw) + self.shift) / self.scale

    def raw(self, sigma: Numbers) -> np.ndarray:
        """Raw density of a `sigma`: the inverse activation; densities under 1e-30 / scale come back as that."""
        rule, x = self.density_rule, RAW("sigma", sigma) * self.scale
        if not rule.signed:
            x = np.maximum(x, 0 if rule.linear else MIN_DENSITY)
        return numbers_of(rule, "inverse", x) - self.shift

    @property
    def empty(self) -> float:
        """Raw density of empty space."""
        return self.density_rule.empty - self.shift


def _several_own(
    value: Iterable[DensityActivation | ColourActivation],
) -> tuple[DensityActivation | ColourActivation, ...]:
    several = tuple(value)
    if not all(isinstance(each, (DensityActivation, ColourActivation)) for each in several):
        raise TypeError
    return several


ACTIVATION = with_cure(
    instance_of(Activation, "an Activation"),
    lambda value: f"rm.Activation({value!r}) is one" if isinstance(value, str) and value in DENSITIES else "",
)
OWN_ACTIVATIONS = Check("a list of rm.DensityActivation and rm.ColourActivation", _several_own)
