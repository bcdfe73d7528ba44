"""Orbits and spirals: cameras around a place, or around a box so that all of it is in sight."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Check, Numbers, Wrong, flag, number, vector, whole
from raymarch.arguments.declared import checked
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import CAMERA, FOV, PIXELS_A_SIDE, Camera
from raymarch.geometry.camera_path import equal_length_parameters
from raymarch.geometry.pose import POSITION, look_at

ELEVATION = number(-89, 89, unit="degree")
DEFAULT_UP = (0.0, 0.0, 1.0)


def _direction(value: Any) -> np.ndarray:
    direction = np.array(vector(3).read(value))
    if not (length := np.linalg.norm(direction)) > 0:
        raise Wrong("is 0", "give the direction that is up in the world")
    return direction / length


UP = Check("a direction, three numbers that are not all 0", _direction)


@checked(
    target=POSITION,
    radius=number(0, MAX_COORDINATE, above=True),
    count=whole(1, 1 << 20),
    elevation=ELEVATION,
    like=CAMERA,
    up=UP,
)
def orbit(
    target: Numbers, radius: float, count: int, *, elevation: float = 25.0, like: Camera, up: Numbers = DEFAULT_UP
) -> list[Camera]:
    """Orbit of `count` cameras about the axis `up` through `target`: `radius` [world unit], elevation [degree].

    Raises RaymarchError for an elevation beyond 89 degrees either way.

    Example:
        >>> len(orbit((0, 0, 0), 4.0, 60, like=Camera.look_at((4, 0, 0))))
        60
    """
    target = np.asarray(target, float)
    places = _sphere_points(2 * np.pi * np.arange(count) / count, np.full(count, elevation), up)
    return [replace(like, world_from_camera=look_at(target + radius * place, target, up)) for place in places]


@checked(box=BOX, count=whole(1, 1 << 20), elevation=ELEVATION, size=PIXELS_A_SIDE, fov=FOV, orthographic=flag, up=UP)
def orbit_of_volume(
    box: Numbers,
    count: int,
    *,
    elevation: float = 25.0,
    size: int = 512,
    fov: float = 0.7,
    orthographic: bool = False,
    up: Numbers = DEFAULT_UP,
) -> list[Camera]:
    """Orbit of `count` square cameras of `size` pixels around a box (2, 3), all of it in sight; `elevation` [degree].

    It goes about the direction `up` of the world. The cameras are pinholes of a field of view `fov` [radian], or
    `orthographic`: then all are of one scale.

    Raises RaymarchError for an elevation beyond 89 degrees either way.

    Example:
        >>> len(orbit_of_volume([(-1, -1, -1), (1, 1, 1)], 12))
        12
    """

    return orbit_of_points(_corners(box), count, elevation, size=size, fov=fov, orthographic=orthographic, up=up)


def orbit_of_points(
    points: np.ndarray,
    count: int,
    elevation: float,
    *,
    size: int = 512,
    fov: float = 0.7,
    orthographic: bool = False,
    up: Numbers = DEFAULT_UP,
    front: Numbers | None = None,
) -> list[Camera]:
    """Orbit as of `orbit_of_volume` around points (n, 3); the first camera lies towards `front` where that is given."""

    def ring(like: Camera) -> list[Camera]:
        azimuths = _azimuth_of(front, up) + 2 * np.pi * np.arange(count) / count
        places = _sphere_points(azimuths, np.full(count, elevation), up)
        return [replace(like, world_from_camera=look_at(place, (0, 0, 0), up)) for place in places]

    return _frame_points(points, ring, size, fov, orthographic, up)


@checked(
    box=BOX,
    count=whole(1, 1 << 20),
    turns=number(-1000, 1000),
    elevations=vector(2, -89, 89),
    size=PIXELS_A_SIDE,
    fov=FOV,
    orthographic=flag,
    up=UP,
)
def spiral_of_volume(
    box: Numbers,
    count: int,
    *,
    turns: float = 2.0,
    elevations: tuple[float, float] = (-10.0, 60.0),
    size: int = 512,
    fov: float = 0.7,
    orthographic: bool = False,
    up: Numbers = DEFAULT_UP,
) -> list[Camera]:
    """Spiral of `count` square cameras of `size` pixels around a box (2, 3), all of it in sight, at constant speed.

    It goes about the direction `up` `turns` times, from the first of two `elevations` [degree] to the second. They are
    pinholes of a field of view `fov` [radian], or `orthographic`.

    Raises RaymarchError for elevations beyond 89 degrees either way.

    Example:
        >>> path = spiral_of_volume([(-1, -1, -1), (1, 1, 1)], 60, turns=3, elevations=(0, 80))
        >>> len(path), bool(path[0].position[2] < path[-1].position[2])
        (60, True)
    """
    how: dict[str, Any] = {"size": size, "fov": fov, "orthographic": orthographic, "up": up}
    return spiral_of_points(_corners(box), count, turns, elevations, **how)


def spiral_of_points(
    points: np.ndarray,
    count: int,
    turns: float = 2.0,
    elevations: tuple[float, float] = (-10.0, 60.0),
    *,
    size: int = 512,
    fov: float = 0.7,
    orthographic: bool = False,
    up: Numbers = DEFAULT_UP,
    front: Numbers | None = None,
) -> list[Camera]:
    """Spiral as of `spiral_of_volume` around points (n, 3); the first camera lies towards `front` where it is given."""
    share, begin = np.linspace(0, 1, 1 + 400 * (1 + math.ceil(abs(turns)))), _azimuth_of(front, up)
    fine = _sphere_points(
        begin + 2 * np.pi * turns * share, elevations[0] + (elevations[1] - elevations[0]) * share, up
    )
    lengths = np.linalg.norm(np.diff(fine, axis=0), axis=1)
    at = equal_length_parameters(share, lengths, count, closed=False)
    places = _sphere_points(begin + 2 * np.pi * turns * at, elevations[0] + (elevations[1] - elevations[0]) * at, up)

    def ring(like: Camera) -> list[Camera]:
        return [replace(like, world_from_camera=look_at(place, (0, 0, 0), up)) for place in places]

    return _frame_points(points, ring, size, fov, orthographic, up)


def _corners(box: np.ndarray) -> np.ndarray:
    """Corners (8, 3) of a box."""
    return np.stack(np.meshgrid(*zip(*box, strict=True), indexing="ij"), -1).reshape(-1, 3)


def _azimuth_of(front: Numbers | None, up: Numbers) -> float:
    """Azimuth [radian] about `up` that lies towards a direction; of one along `up`, as of y, towards z instead."""
    if front is None:
        return 0.0
    level = np.zeros(2)
    ahead, beside = _sphere_points(np.array([0.0, np.pi / 2]), level, up)
    x, y = float(np.dot(front, ahead)), float(np.dot(front, beside))
    if math.hypot(x, y) < 1e-6:
        front = (0.0, 0.0, math.copysign(1.0, np.asarray(up)[1]))
        x, y = float(np.dot(front, ahead)), float(np.dot(front, beside))
    return math.atan2(y, x)


def _sphere_points(azimuth: np.ndarray, elevation: np.ndarray, up: Numbers) -> np.ndarray:
    """Places (n, 3) on the unit sphere at azimuths (n,) [radian] and elevations (n,) [degree] about `up`."""
    high = np.deg2rad(elevation)
    places = np.stack([np.cos(azimuth) * np.cos(high), np.sin(azimuth) * np.cos(high), np.sin(high)], axis=-1)
    return places if tuple(up) == DEFAULT_UP else places @ _rotation_from_z(np.asarray(up)).T


def _rotation_from_z(up: np.ndarray) -> np.ndarray:
    """Rotation (3, 3) that takes z to a direction: the shortest, from z or after half a turn from -z (Rodrigues)."""
    sign = 1.0 if up[2] >= 0 else -1.0
    x, y, z = sign * up
    about = np.array([[0, 0, x], [0, 0, y], [-x, -y, 0]])
    turn = np.eye(3) + about + about @ about / (1 + z)
    return turn if sign > 0 else turn @ np.diag([1.0, -1.0, -1.0])


def _frame_points(
    points: np.ndarray, ring: Callable[[Camera], list[Camera]], size: int, fov: float, orthographic: bool, up: Numbers
) -> list[Camera]:
    """Cameras of `ring`, at distance 1 of the origin, moved about points and off them until all are in sight."""
    centre = (points.min(0) + points.max(0)) / 2
    corners = points - centre
    like = Camera.look_at((1, 0, 0), fov=fov, width=size, height=size)
    radius = across = 0.0
    for camera in ring(like):
        x, y, z = (corners @ camera.world_from_camera[:3, :3]).T
        half = np.maximum(abs(x), abs(y))
        across = max(across, 2.04 * float(half.max()))
        radius = max(radius, float((z + (0 if orthographic else half / np.tan(fov / 2))).max()))
    if orthographic:
        like = Camera.orthographic((1, 0, 0), size=across, width=size, height=size)
    cameras = ring(like)
    away = [centre + 1.02 * radius * camera.position for camera in cameras]
    return [replace(c, world_from_camera=look_at(place, centre, up)) for c, place in zip(cameras, away, strict=True)]
