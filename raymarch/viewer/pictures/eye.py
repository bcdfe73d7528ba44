"""Eye of a page: where it looks from and to, and the size of its picture; read from its messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import flag, number, optional, whole
from raymarch.arguments.declared import held, hold
from raymarch.errors import RaymarchError, short
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import PLACE

MOST_SIDE = 4096  # pixels
MOST_EYES = 1000  # of a path
NUMBER = whole(0, 2**53)
PIXELS = whole(1, MOST_SIDE)


@dataclass(frozen=True, eq=False)
class Eye:
    """Eye of a page.

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

    id: int = held(NUMBER, 0)
    position: Numbers = held(PLACE, None)
    target: Numbers = held(PLACE, (0.0, 0.0, 0.0))
    up: Numbers = held(PLACE, (0.0, 0.0, 1.0))
    fov: float = held(number(0, 180, above=True, below=True, unit="degree"), 40.0)
    orthographic: bool = held(flag, False)
    width: int = held(PIXELS, 512)
    height: int = held(PIXELS, 512)
    moving: bool = held(flag, False)
    view: int | None = held(optional(NUMBER), None)

    def __post_init__(self) -> None:
        hold(self, "camera")

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

    def sized(self, width: int, height: int) -> Eye:
        """Eye at rest with a picture of another size."""
        return replace(self, width=width, height=height, moving=False)


def eye_of(message: Mapping[str, Any]) -> Eye:
    """Eye of a page's message of a camera; RaymarchError for what is wrong with it.

    Example:
        >>> eye_of({"type": "camera", "id": 1, "position": [0, -4, 0], "width": 8, "height": 6}).camera().width
        8
    """
    said = {name: value for name, value in message.items() if name not in ("type", "page")}
    for name in said:
        if name not in Eye.__dataclass_fields__:
            names = ", ".join(Eye.__dataclass_fields__)
            raise RaymarchError(f"camera has {str(name)[:40]!r}, want some of {names}; leave it out")
    eye = Eye(**said)
    if eye.view is None:
        eye.camera()  # what cannot be one is said now
    return eye


def eyes_of(message: Mapping[str, Any], least: int) -> list[Eye]:
    """Eyes of a page's list of cameras, of one size, that of the message; RaymarchError for too few or too many."""
    cameras = message.get("cameras")
    if not isinstance(cameras, list) or not least <= len(cameras) <= MOST_EYES:
        raise RaymarchError(f"cameras is {short(cameras)}, want a list of {least} to {MOST_EYES}; add views first")
    size = {name: message.get(name, 512) for name in ("width", "height")}
    for each in cameras:
        if not isinstance(each, Mapping):
            raise RaymarchError(f"camera is {short(each)}, want a mapping; add views first")
    return [eye_of({**each, **size}) for each in cameras]
