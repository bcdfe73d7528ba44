"""Epipolar geometry of matches: how far each is from where its two cameras allow it, and where its rays cross.

Distances are Sampson's (Hartley & Zisserman, 11.4.3); `robust_step` moves parameters so that they become less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import unproject
from raymarch.matching.matches import Matches

MAX_EPIPOLAR_DISTANCE = 0.005  # of an image's side: a match no farther from its epipolar line agrees with the cameras
MIN_CROSSING_ANGLE = np.deg2rad(1.0)  # between two rays, under which their crossing may come out behind a camera
# of how far cameras are from the origin, which is rounding: two no farther apart are in one place
SAME_POSITION = 1e-12
MAX_STEP = 0.2  # that each parameter moves in a step


class MatchDirections(NamedTuple):
    """Directions of matches in their cameras' axes (match, 3) twice, of length 1, and their pixels per radian."""

    first: np.ndarray
    second: np.ndarray
    pixels: np.ndarray


def match_directions(cameras: Sequence[Camera], matches: Matches) -> MatchDirections:
    """Directions of matches by the cameras' lenses."""
    focal = np.array([np.sqrt(camera.focal[0] * camera.focal[1]) for camera in cameras])
    first = directions(cameras, matches.first, matches.at_first)
    return MatchDirections(first, directions(cameras, matches.second, matches.at_second), focal[matches.first])


def directions(cameras: Sequence[Camera], view: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Directions (match, 3) in camera axes, of length 1, of pixels (match, 2) of views (match,)."""
    out = np.zeros((len(pixels), 3))
    for i in np.unique(view):
        mine, camera = view == i, cameras[i]
        out[mine] = unproject(pixels[mine], camera.focal, camera.principal, camera.lens)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def poses_of(cameras: Sequence[Camera]) -> np.ndarray:
    """Poses (view, 4, 4) of cameras."""
    return np.array([camera.world_from_camera for camera in cameras])


class RayCrossings(NamedTuple):
    """Crossing of the rays of each match: signed distance to the epipolar line [pixel], whether before both cameras,
    the angle between the rays [radian] and the point (match, 3) in the middle between them."""

    distance: np.ndarray
    before: np.ndarray
    angle: np.ndarray
    point: np.ndarray


def ray_crossings(poses: np.ndarray, matches: Matches, seen: MatchDirections) -> RayCrossings:
    """Crossing of the rays of each match, by poses (view, 4, 4)."""
    i, u, w, b, length = _rays(poses, matches, seen)
    distance = _distance(u, w, b) * seen.pixels
    uw, ub, wb = (np.einsum("na,na->n", *pair) for pair in ((u, w), (u, b), (w, b)))
    rest = np.maximum(1 - uw * uw, 1e-12)
    along_u, along_w = (ub - uw * wb) / rest, (uw * ub - wb) / rest
    angle = np.arccos(np.clip(uw, -1, 1))
    before = ((along_u > 0) & (along_w > 0)) | (angle < MIN_CROSSING_ANGLE)
    middle = poses[i, :3, 3] + length[:, None] * (along_u[:, None] * u + b + along_w[:, None] * w) / 2
    return RayCrossings(distance, before, angle, middle)


def distances(poses: np.ndarray, matches: Matches, seen: MatchDirections) -> np.ndarray:
    """Signed distances (match,) to the epipolar lines [pixel], as of `ray_crossings`."""
    _, u, w, b, _ = _rays(poses, matches, seen)
    return _distance(u, w, b) * seen.pixels


def _rays(poses: np.ndarray, matches: Matches, seen: MatchDirections) -> tuple[np.ndarray, ...]:
    """First views, directions of both rays and of the base line between the cameras in the world, and its length.

    Cameras in one place, up to rounding, have no base line: its direction is 0, and rays of one point are one ray.
    """
    i, j = matches.first, matches.second
    u = np.einsum("nab,nb->na", poses[i, :3, :3], seen.first)
    w = np.einsum("nab,nb->na", poses[j, :3, :3], seen.second)
    base = poses[j, :3, 3] - poses[i, :3, 3]
    length = np.sqrt(np.einsum("na,na->n", base, base))
    apart = length > SAME_POSITION * np.abs(poses[:, :3, 3]).max()
    length = np.where(apart, length, 1e-12)
    return i, u, w, np.where(apart, base.T / length, 0.0).T, length


def _distance(u: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sampson's distance of two rays [radian]: their volume with the base line over its slope; without a base line
    that of the rays themselves."""
    across = np.stack(
        [
            b[:, 1] * u[:, 2] - b[:, 2] * u[:, 1],
            b[:, 2] * u[:, 0] - b[:, 0] * u[:, 2],
            b[:, 0] * u[:, 1] - b[:, 1] * u[:, 0],
        ],
        axis=1,
    )
    volume, ub, wb = (np.einsum("na,na->n", *pair) for pair in ((across, w), (u, b), (w, b)))
    volume = np.where(b.any(1), volume, np.linalg.norm(np.cross(u, w), axis=1))
    return volume / np.sqrt(np.maximum(2 - ub**2 - wb**2 - 2 * volume**2, 1e-12))


def matches_agree(poses: np.ndarray, matches: Matches, seen: MatchDirections, near: np.ndarray) -> np.ndarray:
    """Which matches agree with the poses: within `near` [pixel] of their epipolar lines, and before both cameras."""
    found = ray_crossings(poses, matches, seen)
    return (np.abs(found.distance) < near) & found.before


def epipolar_tolerance(cameras: Sequence[Camera], matches: Matches) -> np.ndarray:
    """Distance (match,) [pixel] up to which a match agrees with the cameras."""
    side = np.array([np.sqrt(camera.width * camera.height) for camera in cameras])
    return MAX_EPIPOLAR_DISTANCE * side[matches.first]


def robust_step(
    residual: Callable[[np.ndarray], np.ndarray], here: np.ndarray, widths: np.ndarray, scale: float
) -> np.ndarray:
    """Move (parameter,) of a Gauss-Newton step from where `residual` of no move is `here` (number,).

    Slopes are differences of one-sided `widths` (parameter,). A residual of `scale` weighs a quarter: the weights are
    those of iterated least squares in the loss r^2 / (r^2 + scale^2) (Geman and McClure 1985).

    Example:
        >>> wanted = np.array([1.0, 2.0, 50.0])
        >>> robust_step(lambda m: 10 * m - wanted, -wanted, np.array([1e-6]), 5.0).round(2).tolist()
        [0.14]
    """
    weight = 1 / (1 + (here / scale) ** 2) ** 2
    slope = np.stack([(residual(move) - here) / h for move, h in zip(np.diag(widths), widths, strict=True)], axis=1)
    normal = slope.T @ (weight[:, None] * slope)
    normal += 1e-9 * np.diag(np.diag(normal)) + 1e-12 * np.eye(len(widths))
    return np.clip(-np.linalg.solve(normal, slope.T @ (weight * here)), -MAX_STEP, MAX_STEP)
