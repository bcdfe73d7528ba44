"""Look of a picture: mode, step, table, iso value, clip, exposure and the like, read from a page's messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from raymarch.arguments.arrays import Colour, colour, vector
from raymarch.arguments.checks import LARGEST, WORLD, Check, flag, number, one_of, optional, whole
from raymarch.arguments.declared import held, hold
from raymarch.errors import RaymarchError, short
from raymarch.geometry.clip import CLIP, Clip
from raymarch.kernels.march.modes import MODES
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction

EXTRAS = ("image", "depth", "opacity", "normals")
FLAT = Shading(ambient=1.0, diffuse=0.0, specular=0.0)
STOPS = number(-10, 10)


@dataclass(frozen=True)
class Slice:
    """Slice of a volume: across the world's axis 0, 1 or 2 at a position [world unit]."""

    axis: int = held(whole(0, 2), 2)
    position: float = held(number(-WORLD, WORLD), 0.0)

    def __post_init__(self) -> None:
        hold(self, "slice")


def _slice(value: Any) -> Slice:
    if isinstance(value, Slice):
        return value
    return Slice(**_named(value, "slice", ("axis", "position")))


def _table(value: Any) -> TransferFunction:
    return value if isinstance(value, TransferFunction) else TransferFunction.of_record(value)


def _clip(value: Any) -> Clip:
    if isinstance(value, Clip):
        return value
    corners = _named(value, "clip", ("lower", "upper"))
    return Clip(box=(corners["lower"], corners["upper"]))


def _window(value: Any) -> tuple[float, float]:
    low, high = vector(2, -LARGEST, LARGEST).read(value)
    if not low < high:
        raise ValueError
    return low, high


def _named(value: Any, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Mapping of these names, no other."""
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise RaymarchError(f"{what} is {short(value)}, want a mapping of {' and '.join(names)}")
    return dict(value)


WINDOW = Check("two numbers, the first the less", _window)


@dataclass(frozen=True)
class Look:
    """Look of a picture.

    Attributes:
        mode: of the march.
        step: length of a step in voxels.
        exposure: display values are times two to the power of it.
        background: colour; None is the volume's own.
        table: transfer function of mode "transfer"; None is the volume's own.
        iso: value of the surface of mode "isosurface"; None is the volume's own.
        clip: part of the world that is seen.
        shading: whether a surface, or a transfer function's samples, are lit.
        slice: shown in place of the volume.
        window: values that are black and white where an image has values; None is the image's own range.
        extras: what is shown: "image", "depth", "opacity" or "normals".

    Raises RaymarchError for what is out of range.
    """

    mode: str = held(one_of(*MODES), next(iter(MODES)))
    step: float = held(number(0.05, 8), 0.5)
    exposure: float = held(STOPS, 0.0)
    background: Colour | None = held(optional(colour), None)
    table: TransferFunction | None = held(optional(Check(TRANSFER.wanted, _table)), None)
    iso: float | None = held(optional(number()), None)
    clip: Clip | None = held(optional(Check(CLIP.wanted, _clip)), None)
    shading: bool = held(flag, False)
    slice: Slice | None = held(optional(Check("an axis and a position", _slice)), None)
    window: tuple[float, float] | None = held(optional(WINDOW), None)
    extras: str = held(one_of(*EXTRAS), EXTRAS[0])

    def __post_init__(self) -> None:
        hold(self)

    def changed(self, message: Mapping[str, Any]) -> Look:
        """Look with what a page's message says; RaymarchError, and all stays as it was, where any of it is wrong.

        Example:
            >>> Look().changed({"type": "look", "exposure": 1.5}).exposure
            1.5
        """
        said = {name: value for name, value in message.items() if name not in ("type", "page")}
        for name in said:
            if name not in self.__dataclass_fields__:
                names = ", ".join(self.__dataclass_fields__)
                raise RaymarchError(f"look has {str(name)[:40]!r}, want some of {names}; leave it out")
        return replace(self, **said)

    def march(self, table: TransferFunction | None, iso: float | None) -> March:
        """March of the look, by the volume's own table and iso value where it has none."""
        rule, own = MODES[self.mode], dict[str, Any]()
        if rule.classifies:
            own = {"transfer": self.table or table, "shading": Shading() if self.shading else None}
        if "iso" in rule.parameters:
            own = {"iso": iso if self.iso is None else self.iso, "shading": None if self.shading else FLAT}
        return March(step=self.step, mode=self.mode, clip=self.clip, **own)

    def record(self) -> dict[str, Any]:
        """Plain numbers, lists and texts of it, as messages have them."""
        own: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if self.table is not None:
            own["table"] = self.table.record()
        if self.clip is not None and self.clip.box is not None:
            own["clip"] = dict(zip(("lower", "upper"), self.clip.box, strict=True))
        if self.slice is not None:
            own["slice"] = {"axis": self.slice.axis, "position": self.slice.position}
        return own
