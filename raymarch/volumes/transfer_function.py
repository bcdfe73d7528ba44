"""Transfer function: colour and opacity by a volume's value, piecewise linear between knots; colour maps make some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from raymarch.arguments.checks import (
    Check,
    Numbers,
    ReadOnly,
    Wrong,
    array,
    describe_value,
    instance_of,
    number,
    shape_of,
    text,
    vector,
    whole,
    with_cure,
)
from raymarch.arguments.declared import checked, checked_field, suggest_names, validate_fields
from raymarch.arguments.similar_names import did_you_mean
from raymarch.errors import RaymarchError, one_line
from raymarch.html.card import card_html, html_of
from raymarch.html.picture import data_uri, png, sketch, to_bytes
from raymarch.volumes.samples import RAW

SOME_COLORMAPS = "viridis, inferno, bone, gray, coolwarm"


def import_matplotlib() -> ModuleType:
    """Matplotlib; RaymarchError where the user's settings keep it from being imported."""
    try:
        import matplotlib
    except ValueError as error:
        raise RaymarchError(
            f"matplotlib cannot be imported ({one_line(error)}); check MPLBACKEND and matplotlibrc"
        ) from None
    return matplotlib


def _colormap(value: object) -> str:
    if not isinstance(value, str) or value not in import_matplotlib().colormaps:
        raise Wrong(
            f"is {describe_value(value)}", did_you_mean(value, import_matplotlib().colormaps) or "check its spelling"
        )
    return value


COLORMAP = Check(f"a colour map that matplotlib has, as {SOME_COLORMAPS}", _colormap)
MAX_KNOTS = 1024
MAX_OPACITY = 1.0 - 2.0**-20  # opacity 1 would be an infinite extinction: a millionth of the light passes instead
LENGTH = number(1e-9, 1e9, unit="world unit")
RAMP = vector(2, 0, 1)


def _rising(value: object) -> np.ndarray:
    values = array("knot").read(value)
    if not 2 <= len(values) <= MAX_KNOTS:
        raise Wrong(f"has {len(values)} knots")
    # As the device has them: their distances from the first, from which values of another size cancel.
    steps = np.minimum(*(np.diff(each.astype(np.float32)) for each in (values, values - values[0])))
    falls = np.flatnonzero(steps <= 0)
    if len(falls):
        i = int(falls[0])
        raise Wrong(
            f"has {values[i]:g} at {i} and {values[i + 1]:g} after it", "sort them, and put a step over a width"
        )
    return values


VALUES = Check(f"2 to {MAX_KNOTS} rising numbers, in single precision too", _rising)


def _knots_cure(value: object) -> str:
    shape = shape_of(value)
    if shape and len(shape) == 2 and shape[1] == 4:
        return "pass it[:, :3], and it[:, 3] as opacities"
    given: Any = value
    most = float(np.max(given)) if shape and np.size(given) else 0.0
    return "divide them by 255" if 1 < most <= 255 else ""


COLOURS, OPACITIES = with_cure(array("knot", 3, low=0, high=1), _knots_cure), array("knot", low=0, high=1)


@suggest_names
@dataclass(frozen=True, eq=False)
class TransferFunction(ReadOnly):
    """Transfer function of direct volume rendering: a table of colour and opacity over the values of a volume.

    Colour and opacity are linear between the knots and constant beyond the first and the last. Opacity is that of a way
    of `unit_length` through a medium of one value: sigma = -ln(1 - opacity) / unit_length, so that neither the step nor
    the spacing of the samples changes the picture (opacity correction; Engel et al. 2006, "Real-time volume graphics",
    1.4.1). An opacity of 1 lets a millionth through. docs/transfer.md has the conventions.

    Attributes:
        values: (knot,) rising, 2 to 1024, in the volume's own unit.
        colours: (knot, 3) red, green, blue in 0..1.
        opacities: (knot,) in 0..1.
        unit_length: length that the opacities are of [world unit].

    Raises RaymarchError for values that do not rise, colours or opacities out of 0..1, and counts that disagree.

    Example:
        >>> bone = TransferFunction([0, 500, 1200], [(0, 0, 0), (1, 0.5, 0.3), (1, 1, 1)], [0, 0.1, 0.8], 2.0)
        >>> bone(250.0).tolist()
        [0.5, 0.25, 0.15, 0.05]
        >>> round(float(bone.sigma(2000.0)), 3)
        0.805
    """

    values: np.ndarray = field(metadata={"check": VALUES})
    colours: np.ndarray = field(metadata={"check": COLOURS})
    opacities: np.ndarray = field(metadata={"check": OPACITIES})
    unit_length: float = checked_field(LENGTH, 1.0)

    def __post_init__(self) -> None:
        validate_fields(self)
        for name in ("colours", "opacities"):
            if (knots := len(getattr(self, name))) != len(self.values):
                raise RaymarchError(f"{name} are of {knots} knots, values of {len(self.values)}; give one for each")
        for given in (self.values, self.colours, self.opacities):
            given.setflags(write=False)

    @classmethod
    @checked(name=text, low=number(), high=number(), opacities=RAMP, unit_length=LENGTH, knots=whole(2, MAX_KNOTS))
    def of_colormap(
        cls,
        name: str,
        low: float,
        high: float,
        opacities: tuple[float, float] = (0.0, 0.5),
        *,
        unit_length: float = 1.0,
        knots: int = 64,
    ) -> TransferFunction:
        """Table of a matplotlib colour map from `low` to `high`, its opacity a ramp between two.

        Raises RaymarchError for a map that matplotlib has not, and for `high` not over `low`.

        Example:
            >>> TransferFunction.of_colormap("viridis", 0, 4000, (0, 0.3)).colours[-1].round(2).tolist()
            [0.99, 0.91, 0.14]
        """
        COLORMAP("name", name)
        if not low < high:
            raise RaymarchError(f"high is {high:g}, want a number over low, {low:g}; give them in order")
        share = np.linspace(0, 1, knots)
        ramp = opacities[0] + (opacities[1] - opacities[0]) * share
        return cls(low + (high - low) * share, colours_along(name, share), ramp, unit_length)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> TransferFunction:
        """Table of plain lists, as `record` gives and a JSON file holds them.

        Raises RaymarchError for a key that is missing or unknown, and for all that a table is refused for.
        """
        names = ("values", "colours", "opacities", "unit_length")
        if not isinstance(record, Mapping):
            raise RaymarchError(f"table is a {type(record).__name__}, want a mapping of {', '.join(names)}")
        for name in record:
            if name not in names:
                raise RaymarchError(f"table has {str(name)[:60]!r}, want {', '.join(names)}; take it out")
        for name in names[:3]:
            if name not in record:
                raise RaymarchError(f"table has no {name}, want {', '.join(names)}; add it")
        return cls(**record)

    def record(self) -> dict[str, Any]:
        """Plain lists and numbers of the table, for JSON."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}

    def _repr_html_(self) -> str | None:
        return html_of(table_card, self)

    @property
    def rgba(self) -> np.ndarray:
        """Colour and opacity of the knots (knot, 4), red, green, blue, opacity."""
        return np.concatenate([self.colours, self.opacities[:, None]], axis=1)

    def with_rgba(self, rgba: Numbers) -> TransferFunction:
        """Table of the same knots with other colours and opacities (knot, 4); what lies beyond 0..1 is cut."""
        rgba = array(len(self.values), 4)("rgba", rgba).clip(0, 1)
        return replace(self, colours=rgba[:, :3], opacities=rgba[:, 3])

    def __call__(self, values: Numbers) -> np.ndarray:
        """Colour and opacity (..., 4) of values (...)."""
        values = RAW("values", values)
        return np.stack([np.interp(values, self.values, column) for column in self.rgba.T], axis=-1)

    def sigma(self, values: Numbers) -> np.ndarray:
        """Extinction [1/world unit] of values (any shape)."""
        return -np.log1p(-np.minimum(self(values)[..., 3], MAX_OPACITY)) / self.unit_length

    def is_clear(self, low: Numbers, high: Numbers, most: float = 0.0) -> np.ndarray:
        """Whether all values from `low` to `high`, arrays of one shape, have an opacity of at most `most`."""
        ends = np.maximum(np.interp(low, self.values, self.opacities), np.interp(high, self.values, self.opacities))
        seen = np.concatenate([[0], np.cumsum(self.opacities > most)])  # of the knots before each
        first, last = np.searchsorted(self.values, low, "left"), np.searchsorted(self.values, high, "right")
        return (ends <= most) & (seen[np.maximum(last, first)] == seen[first])


def _table_cure(value: object) -> str:
    try:
        return f"rm.TransferFunction.of_colormap({COLORMAP.read(value)!r}, low, high) makes one"
    except Wrong:
        return ""


TRANSFER = with_cure(
    instance_of(TransferFunction, "an rm.TransferFunction", "as of_colormap('viridis', low, high) gives"), _table_cure
)


def colours_along(name: str, share: np.ndarray) -> np.ndarray:
    """Colours (n, 3) of a map at shares (n,) of its way, 0..1.

    Example:
        >>> colours_along("gray", np.array([0.0, 1.0])).tolist()
        [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    colours: np.ndarray = import_matplotlib().colormaps[name](share)[:, :3]
    return colours


PICTURE_SIZE = 240, 80  # CSS pixels of a card's picture
PICTURE_COLUMNS = 256


def table_card(table: TransferFunction) -> str:
    """HTML of a transfer function for a notebook."""
    low, high = float(table.values[0]), float(table.values[-1])
    rows = [
        ("knots", len(table.values)),
        ("values", f"{low:.5g} to {high:.5g}"),
        ("opacities", f"{table.opacities.min():.3g} to {table.opacities.max():.3g}"),
        ("unit length", f"{table.unit_length:.4g} world units"),
    ]
    return card_html("TransferFunction", rows, [table_picture(table)])


def table_picture(table: TransferFunction) -> str:
    """Colours from the first knot to the last, and the opacity over them, as HTML."""
    width, height = PICTURE_SIZE
    at = np.linspace(table.values[0], table.values[-1], PICTURE_COLUMNS)
    colours = np.stack([np.interp(at, table.values, column) for column in table.colours.T], -1)
    strip = data_uri(png(to_bytes(colours[None])))
    band = f'<image href="{strip}" x="0" y="{height - 16}" width="{width}" height="16" preserveAspectRatio="none"/>'
    u = width * (table.values - table.values[0]) / (table.values[-1] - table.values[0])
    line = np.stack([u, (height - 18) * (1 - table.opacities) + 1], axis=1)
    return sketch([line], "opacity 0 to 1 over the colours", PICTURE_SIZE, under=band)
