"""Orbits: cameras on a circle around a place, or around a box so that all of it is in sight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import WORLD, flag, number, whole
from raymarch.arguments.declared import checked
from raymarch.geometry.camera import CAMERA, FOV, SIDE, Camera
from raymarch.geometry.pose import BOX, PLACE, look_at

ELEVATION = number(-89, 89, unit="degree")


@checked(target=PLACE, radius=number(0, WORLD, above=True), count=whole(1, 1 << 20), elevation=ELEVATION, like=CAMERA)
def orbit(target: Numbers, radius: float, count: int, *, elevation: float = 25.0, like: Camera) -> list[Camera]:
    """Orbit of `count` cameras about the z axis through `target`: `radius` [world unit], elevation [degree].

    Raises RaymarchError for an elevation beyond 89 degrees either way.

    Example:
        >>> len(orbit((0, 0, 0), 4.0, 60, like=Camera.look_at((4, 0, 0))))
        60
    """
    target, up = np.asarray(target, float), np.deg2rad(elevation)
    cameras = []
    for angle in 2 * np.pi * np.arange(count) / count:
        ring = [np.cos(angle) * np.cos(up), np.sin(angle) * np.cos(up), np.sin(up)]
        cameras.append(replace(like, world_from_camera=look_at(target + radius * np.array(ring), target)))
    return cameras


@checked(box=BOX, count=whole(1, 1 << 20), elevation=ELEVATION, size=SIDE, fov=FOV, orthographic=flag)
def orbit_of_volume(
    box: Numbers,
    count: int,
    *,
    elevation: float = 25.0,
    size: int = 512,
    fov: float = 0.7,
    orthographic: bool = False,
) -> list[Camera]:
    """Orbit of `count` square cameras of `size` pixels around a box (2, 3), all of it in sight; `elevation` [degree].

    They are pinholes of a field of view `fov` [radian], or `orthographic`: then all are of one scale.

    Raises RaymarchError for an elevation beyond 89 degrees either way.

    Example:
        >>> len(orbit_of_volume([(-1, -1, -1), (1, 1, 1)], 12))
        12
    """
    lower, upper = box
    corners = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), -1).reshape(-1, 3)
    corners = corners - (lower + upper) / 2
    like = Camera.look_at((1, 0, 0), fov=fov, width=size, height=size)
    radius = across = 0.0
    for camera in orbit((0, 0, 0), 1.0, count, elevation=elevation, like=like):
        x, y, z = (corners @ camera.world_from_camera[:3, :3]).T
        half = np.maximum(abs(x), abs(y))
        across = max(across, 2.04 * float(half.max()))
        radius = max(radius, float((z + (0 if orthographic else half / np.tan(fov / 2))).max()))
    if orthographic:
        like = Camera.orthographic((1, 0, 0), size=across, width=size, height=size)
    return orbit((lower + upper) / 2, 1.02 * radius, count, elevation=elevation, like=like)
