"""Camera of a page and look of its picture, both read from the page's messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch.arguments.checks import (
    MAX_COORDINATE,
    MAX_NUMBER,
    Check,
    Colour,
    Numbers,
    colour,
    flag,
    number,
    one_of,
    optional,
    vector,
    whole,
)
from raymarch.arguments.declared import checked_field, validate_fields
from raymarch.errors import RaymarchError, short_value
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import CLIP, Clip
from raymarch.geometry.pose import POSITION
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction

MAX_SIDE = 4096  # pixels
MAX_PATH_CAMERAS = 1000  # of a path
NUMBER = whole(0, 2**53)
PIXELS = whole(1, MAX_SIDE)


@dataclass(frozen=True, eq=False)
class ViewerCamera:
    """Camera of a page, and the size of its picture.

    Attributes:
        id: number of the message, rising.
        position, target, up: (3,) in the world.
        fov: horizontal field of view [degree].
        orthographic: whether rays are parallel; the picture is as wide as the other kind's at the target.
        width, height: size of the picture [pixel].
        moving: whether it is in motion, so that a picture soon is better than a fine one.
        view: index of the view of the image set whose camera is meant; None for none.

    Raises RaymarchError for what is out of range.
    """

    id: int = checked_field(NUMBER, 0)
    position: Numbers = checked_field(POSITION, None)
    target: Numbers = checked_field(POSITION, (0.0, 0.0, 0.0))
    up: Numbers = checked_field(POSITION, (0.0, 0.0, 1.0))
    fov: float = checked_field(number(0, 180, above=True, below=True, unit="degree"), 40.0)
    orthographic: bool = checked_field(flag, False)
    width: int = checked_field(PIXELS, 512)
    height: int = checked_field(PIXELS, 512)
    moving: bool = checked_field(flag, False)
    view: int | None = checked_field(optional(NUMBER), None)

    def __post_init__(self) -> None:
        validate_fields(self, "camera")

    def camera(self, cameras: Sequence[Camera] = ()) -> Camera:
        """Camera of it; of a `view` that of the image set, as large as fits into width and height."""
        if self.view is not None:
            if self.view >= len(cameras):
                raise RaymarchError(f"camera: view is {self.view}, but there are {len(cameras)} views; choose another")
            of_set = cameras[self.view]
            return of_set.scaled(min(self.width / of_set.width, self.height / of_set.height))
        how: dict[str, Any] = {"width": self.width, "height": self.height}
        place = self.position, self.target, self.up
        if not self.orthographic:
            return Camera.look_at(*place, fov=math.radians(self.fov), **how)
        away = float(np.linalg.norm(np.subtract(self.target, self.position)))
        return Camera.orthographic(*place, size=2 * away * math.tan(math.radians(self.fov) / 2), **how)

    def sized(self, width: int, height: int) -> ViewerCamera:
        """The same camera at rest, with a picture of another size."""
        return replace(self, width=width, height=height, moving=False)


def camera_of_message(message: Mapping[str, Any]) -> ViewerCamera:
    """Camera of a page's message; RaymarchError for a message that describes none.

    Example:
        >>> camera_of_message({"type": "camera", "id": 1, "position": [0, -4, 0], "width": 8,
        ...     "height": 6}).camera().width
        8
    """
    said = {name: value for name, value in message.items() if name not in ("type", "page")}
    for name in said:
        if name not in ViewerCamera.__dataclass_fields__:
            names = ", ".join(ViewerCamera.__dataclass_fields__)
            raise RaymarchError(f"camera has {str(name)[:40]!r}, want some of {names}; leave it out")
    eye = ViewerCamera(**said)
    if eye.view is None:
        eye.camera()  # what cannot be one is said now
    return eye


def cameras_of_path(message: Mapping[str, Any], least: int) -> list[ViewerCamera]:
    """Cameras of a page's list, all of the message's picture size; RaymarchError for too few or too many."""
    cameras = message.get("cameras")
    if not isinstance(cameras, list) or not least <= len(cameras) <= MAX_PATH_CAMERAS:
        raise RaymarchError(
            f"cameras is {short_value(cameras)}, want a list of {least} to {MAX_PATH_CAMERAS}; add views first"
        )
    size = {name: message.get(name, 512) for name in ("width", "height")}
    for each in cameras:
        if not isinstance(each, Mapping):
            raise RaymarchError(f"camera is {short_value(each)}, want a mapping; add views first")
    return [camera_of_message({**each, **size}) for each in cameras]


# The look of a picture: mode, step, table, iso value, clip, exposure and the like.

PICTURE_KINDS = ("image", "depth", "opacity", "normals")
FLAT_SHADING = Shading(ambient=1.0, diffuse=0.0, specular=0.0)
STOPS = number(-10, 10)


@dataclass(frozen=True)
class Slice:
    """Slice of a volume, perpendicular to the world's axis 0, 1 or 2, at a position [world unit]."""

    axis: int = checked_field(whole(0, 2), 2)
    position: float = checked_field(number(-MAX_COORDINATE, MAX_COORDINATE), 0.0)

    def __post_init__(self) -> None:
        validate_fields(self, "slice")


def _slice(value: Any) -> Slice:
    if isinstance(value, Slice):
        return value
    return Slice(**_require_names(value, "slice", ("axis", "position")))


def _table(value: Any) -> TransferFunction:
    return value if isinstance(value, TransferFunction) else TransferFunction.of_record(value)


def _clip(value: Any) -> Clip:
    if isinstance(value, Clip):
        return value
    corners = _require_names(value, "clip", ("lower", "upper"))
    return Clip(box=(corners["lower"], corners["upper"]))


def _window(value: Any) -> tuple[float, float]:
    low, high = vector(2, -MAX_NUMBER, MAX_NUMBER).read(value)
    if not low < high:
        raise ValueError
    return low, high


def _require_names(value: Any, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Mapping of these names, no other."""
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise RaymarchError(f"{what} is {short_value(value)}, want a mapping of {' and '.join(names)}")
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

    mode: str = checked_field(one_of(*MODES), next(iter(MODES)))
    step: float = checked_field(number(0.05, 8), 0.5)
    exposure: float = checked_field(STOPS, 0.0)
    background: Colour | None = checked_field(optional(colour), None)
    table: TransferFunction | None = checked_field(optional(Check(TRANSFER.wanted, _table)), None)
    iso: float | None = checked_field(optional(number()), None)
    clip: Clip | None = checked_field(optional(Check(CLIP.wanted, _clip)), None)
    shading: bool = checked_field(flag, False)
    slice: Slice | None = checked_field(optional(Check("an axis and a position", _slice)), None)
    window: tuple[float, float] | None = checked_field(optional(WINDOW), None)
    extras: str = checked_field(one_of(*PICTURE_KINDS), PICTURE_KINDS[0])

    def __post_init__(self) -> None:
        validate_fields(self)

    def changed(self, message: Mapping[str, Any]) -> Look:
        """Look changed by a page's message; RaymarchError, and no change, if any part of it is wrong.

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
            own = {"iso": iso if self.iso is None else self.iso, "shading": None if self.shading else FLAT_SHADING}
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
