"""Settings of structure from motion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from raymarch.arguments.checks import instance_of, number, one_of, optional, whole
from raymarch.arguments.declared import held, hold, named
from raymarch.arguments.guess import unknown_names
from raymarch.errors import RaymarchError

LENSES = {  # by the name that a user gives, COLMAP's
    "auto": "OPENCV",
    "pinhole": "SIMPLE_PINHOLE",
    "simple_radial": "SIMPLE_RADIAL",
    "radial": "RADIAL",
    "opencv": "OPENCV",
    "fisheye": "OPENCV_FISHEYE",
}
MATCHINGS = ("auto", "exhaustive", "sequential")
CAMERAS = ("auto", "one", "folder", "each")


@named
@dataclass(frozen=True)
class SfmSettings:
    """Settings of structure from motion, by which `find_cameras` goes.

    Attributes:
        matching: which pairs of photographs are compared: all (exhaustive), neighbours by name (sequential), or by
            "auto" all up to 150 photographs, neighbours of more and of a video.
        lens: model of the lens; "auto" is OpenCV's where ten photographs or more share a camera, else simple radial.
        camera: who shares focal length and lens: photographs of one size, camera and zoom, as EXIF tells ("auto"), all
            ("one"), those of a folder ("folder"), or nobody ("each").
        max_size: longer side [pixel] at which features are looked for; cameras are those of the full images.
        features: the most features of a photograph.
        frames: how many frames are taken out of a video.
        seed: of all that is drawn at random; with `threads=1` the same seed gives the same bytes.
        threads: of the CPU; one a core if not given.
        seconds: time limit.

    Raises RaymarchError for a value that is out of range.

    Example:
        >>> SfmSettings(features=4096).matching
        'auto'
    """

    matching: str = held(one_of(*MATCHINGS), "auto")
    lens: str = held(one_of(*LENSES), "auto")
    camera: str = held(one_of(*CAMERAS), "auto")
    max_size: int = held(whole(64, 16384), 1600)
    features: int = held(whole(64, 1 << 17), 8192)
    frames: int = held(whole(3, 5000), 100)
    seed: int = held(whole(0, 2**31 - 1), 0)
    threads: int | None = held(optional(whole(1, 1024)), None)
    seconds: float | None = held(optional(number(1, 1e7, unit="s")), None)

    def __post_init__(self) -> None:
        hold(self)


SETTINGS = instance_of(SfmSettings, "SfmSettings")


def changed(settings: SfmSettings, changes: dict[str, Any]) -> SfmSettings:
    """Settings with some changed by name; RaymarchError for an unknown one."""
    own = SfmSettings.__dataclass_fields__
    if unknown := sorted(set(changes) - set(own)):
        raise RaymarchError(unknown_names(unknown, own))
    return replace(settings, **changes)
