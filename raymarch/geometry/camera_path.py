"""Camera paths: a smooth way through cameras, at constant speed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from raymarch.arguments.arrays import Numbers, numeric
from raymarch.arguments.checks import Check, Wrong, flag, optional, shown, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.interpolation import at_equal_lengths, catmull_rom, lerp, quaternions_of, rotations_of, slerp
from raymarch.geometry.lens import PLAIN, Lens
from raymarch.geometry.optical_axes import meeting_of_axes

MOST = 1 << 20  # cameras
COUNT = whole(1, MOST)
FINE = 200  # points between two keys, at which the way is measured
SAME = 1e-9  # of the scene's size, up to which two keys are one


def _several(value: Iterable[Camera] | Any) -> tuple[Camera, ...]:
    cameras = tuple(getattr(value, "cameras", value))
    for camera in cameras:
        if not isinstance(camera, Camera):
            raise Wrong(f"has {shown(camera)}")
    if len(cameras) < 2:
        raise Wrong(f"has {len(cameras)}", "a path leads from one to another")
    return cameras


def _targets(value: object) -> np.ndarray:
    points = numeric(value)
    if points.ndim not in (1, 2) or points.shape[-1] != 3 or not np.isfinite(points).all():
        raise Wrong(f"has shape {points.shape}" if np.isfinite(points).all() else "has NaN")
    return points.astype(float)


KEYS = Check("two or more Cameras, or Views", _several)
ABOUT = optional(Check("a point (3,) or one for each camera", _targets))


@checked(cameras=KEYS, count=COUNT, closed=flag, about=ABOUT)
def path_through(
    cameras: Iterable[Camera], count: int, *, closed: bool = False, about: Numbers | None = None
) -> list[Camera]:
    """Smooth camera path of `count` frames through cameras in their order (keyframes), at constant speed.

    The way turns about what the cameras look at, so that it goes around an object and not through it: the point on each
    axis nearest to `about`, and the distance to it, lie on Catmull-Rom curves, as rotations do on the sphere of unit
    quaternions and focal lengths by their logarithms. Speed is that of the camera's place, in world units a frame;
    where a camera turns by more than that over half its distance, it is the turning that is as fast.

    Args:
        cameras: two or more, of any sizes; the path's are pinholes (or orthographic) of the first one's size.
        count: how many; the first and the last are those of the ends, or the last one comes before the first again.
        closed: whether the way leads back to its beginning.
        about: what they look at, (3,) or (camera, 3) [world unit]; where their axes meet if not given.

    Raises RaymarchError for fewer than two cameras that differ, and pinholes beside orthographic ones.

    Example:
        >>> ring = [Camera.look_at((4, 0, 1)), Camera.look_at((0, 4, 1)), Camera.look_at((-4, 0, 1))]
        >>> path = path_through(ring, 9)
        >>> np.allclose(path[4].position, (0, 4, 1))
        True
    """
    keys = list(cameras)
    parallel = {camera.lens.parallel for camera in keys}
    if len(parallel) > 1:
        raise RaymarchError("cameras are pinholes and orthographic ones, want one kind on a path; take two paths")
    way = _keys(keys, about)
    if closed:
        way = way.taken(np.append(np.arange(len(keys)), 0))
    scale = _scale(way)
    apart = _steps(way, scale)
    moves = np.append(True, apart > SAME * max(scale, float(apart.max())))
    if moves.sum() < 2:
        raise RaymarchError(f"cameras are {len(keys)} of one pose, want two or more that differ; move one")
    way, apart = way.taken(np.flatnonzero(moves)), apart[moves[1:]]
    knots = np.append(0.0, np.cumsum(np.sqrt(apart)))  # centripetal: no loops nor cusps (Yuksel et al. 2011)
    fine = np.concatenate([np.linspace(a, b, FINE, endpoint=False) for a, b in pairwise(knots)])
    fine = np.append(fine, knots[-1])
    lengths = _steps(_between(way, knots, fine, closed), scale)
    frames = _between(way, knots, at_equal_lengths(fine, lengths, count, closed), closed)
    return _cameras(frames, keys[0].width, keys[0].height, parallel.pop())


@dataclass(frozen=True)
class _Way:
    """Keys, or frames: rotations as quaternions (n, 4), pivots (n, 3), and distances to them, logarithms of the focal
    lengths and principal points, both for an image one pixel wide and high, in columns (n, 5)."""

    turns: np.ndarray
    pivots: np.ndarray
    numbers: np.ndarray

    def taken(self, which: np.ndarray) -> _Way:
        return _Way(self.turns[which], self.pivots[which], self.numbers[which])

    @property
    def places(self) -> np.ndarray:
        """Positions (n, 3) of the cameras: off their pivots, backward."""
        return self.pivots + self.numbers[:, :1] * rotations_of(self.turns)[:, :, 2]


def _keys(cameras: Sequence[Camera], about: np.ndarray | None) -> _Way:
    poses = np.array([camera.world_from_camera for camera in cameras])
    if about is None:
        about = meeting_of_axes(cameras)
    elif about.ndim == 2 and len(about) != len(cameras):
        raise RaymarchError(
            f"about is {len(about)} points for {len(cameras)} cameras, want one for each or one for all"
        )
    ahead = np.zeros(len(cameras))
    if about is not None:
        ahead = ((about - poses[:, :3, 3]) * -poses[:, :3, 2]).sum(-1)
        if ahead.min() <= 0:  # some look away from it: the way goes from place to place
            ahead = np.zeros(len(cameras))
    pivots = poses[:, :3, 3] - ahead[:, None] * poses[:, :3, 2]
    lens = [
        (*np.log(np.divide(c.focal, (c.width, c.width))), c.principal[0] / c.width, c.principal[1] / c.height)
        for c in cameras
    ]
    return _Way(quaternions_of(poses[:, :3, :3]), pivots, np.column_stack([ahead, lens]))


def _scale(way: _Way) -> float:
    """Length that a turn by one radian counts as: half of the usual distance to what is looked at."""
    ahead = float(np.median(way.numbers[:, 0]))
    spread = 2 * float(np.linalg.norm(way.places - way.places.mean(0), axis=1).max())
    return 0.5 * (ahead if ahead > 0 else spread) or 1.0


def _steps(way: _Way, scale: float) -> np.ndarray:
    """Lengths (n - 1,) from each to the next: of its move, turn, change of focal length, the greatest."""
    moved = np.linalg.norm(np.diff(way.places, axis=0), axis=1)
    a, b = way.turns[:-1], way.turns[1:]
    b = np.where((a * b).sum(-1, keepdims=True) < 0, -b, b)
    turned = 4 * np.arcsin(np.minimum(np.linalg.norm(a - b, axis=-1) / 2, 1))
    zoomed = np.abs(np.diff(way.numbers[:, 1:], axis=0)).max(axis=1)
    return np.maximum(moved, scale * np.maximum(turned, zoomed))


def _between(way: _Way, knots: np.ndarray, t: np.ndarray, closed: bool) -> _Way:
    def curve(keys: np.ndarray, blend: Callable) -> np.ndarray:
        return catmull_rom(keys, knots, t, blend, closed)

    numbers = way.numbers.copy()
    turning = bool((numbers[:, 0] > 0).all())
    numbers[:, 0] = np.log(numbers[:, 0]) if turning else numbers[:, 0]  # which no curve can make negative
    numbers = curve(numbers, lerp)
    numbers[:, 0] = np.exp(numbers[:, 0]) if turning else numbers[:, 0]
    return _Way(curve(way.turns, slerp), curve(way.pivots, lerp), numbers)


def _cameras(way: _Way, width: int, height: int, parallel: bool) -> list[Camera]:
    poses = np.tile(np.eye(4), (len(way.turns), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations_of(way.turns), way.places
    focal, principal = np.exp(way.numbers[:, 1:3]) * width, way.numbers[:, 3:5] * (width, height)
    lens = Lens("orthographic") if parallel else PLAIN
    return [
        Camera(pose, tuple(f), tuple(p), width, height, lens)
        for pose, f, p in zip(poses, focal, principal, strict=True)
    ]


def framed(camera: Camera, width: int, height: int) -> Camera:
    """Camera of another image size (pixels) that shows all that it showed, scaled to fit, and more at two sides.

    Example:
        >>> wide = framed(Camera.look_at((0, -4, 0), width=64, height=64), 192, 108)
        >>> wide.principal, round(wide.focal[0] / 108, 3) == round(Camera.look_at((0, -4, 0)).focal[0] / 256, 3)
        ((96.0, 54.0), True)
    """
    scale = min(width / camera.width, height / camera.height)
    more = (width - scale * camera.width) / 2, (height - scale * camera.height) / 2
    focal = (camera.focal[0] * scale, camera.focal[1] * scale)
    principal = (camera.principal[0] * scale + more[0], camera.principal[1] * scale + more[1])
    return Camera(camera.world_from_camera, focal, principal, width, height, camera.lens)
