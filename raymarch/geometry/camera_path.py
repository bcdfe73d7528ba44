"""Camera paths: a smooth way through cameras at constant speed, and an order of cameras that such a way can follow.

Places and rotations go along Catmull-Rom curves between keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, Numbers, Wrong, describe_value, flag, numeric, optional, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.alignment import meeting_of_axes
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import PINHOLE_LENS, Lens

MAX_ORDER_RATIO = 1.8  # times as long as the tour found the given order may be and is kept: it is how they were taken
MAX_PASSES = 30  # of improvement, at most


def tour_order(cameras: Sequence[Camera], most: int = 16) -> list[int]:
    """Indices of up to `most` cameras in an order that a path can follow.

    Photographs that were taken in order, as of a walk or a video, keep it, and every so many of them are taken; of
    others those that are farthest from each other, in the order of a short way from place to place.

    Example:
        >>> tour_order([Camera.look_at((x, -4, 0), (x, 0, 0)) for x in (0, 3, 1, 4, 2, 5)])
        [0, 2, 4, 1, 3, 5]
    """
    places = np.array([camera.position for camera in cameras])
    found = short_route(places)
    walked, shortest = (float(np.linalg.norm(np.diff(places[w], axis=0), axis=1).sum()) for w in (slice(None), found))
    if walked <= MAX_ORDER_RATIO * shortest:
        which = np.linspace(0, len(places) - 1, min(most, len(places))).round().astype(int)
        return which.tolist()
    spread = np.array(farthest_points(places, most))
    return spread[short_route(places[spread])].tolist()


def farthest_points(places: np.ndarray, most: int) -> list[int]:
    """Indices of up to `most` points, each in turn the farthest from those before (Gonzalez 1985), in rising order."""
    away = np.linalg.norm(places - places.mean(0), axis=1)
    chosen = [int(away.argmax())]
    near = np.linalg.norm(places - places[chosen[0]], axis=1)
    while len(chosen) < min(most, len(places)):
        chosen.append(int(near.argmax()))
        near = np.minimum(near, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return sorted(chosen)


def short_route(places: np.ndarray) -> np.ndarray:
    """Order (n,) of points along a short open way: always the nearest, then stretches turned around (2-opt)."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    left = set(range(len(places)))
    order = [int(np.linalg.norm(places - places.mean(0), axis=1).argmax())]
    left.remove(order[0])
    while left:
        rest = np.fromiter(left, int)
        order.append(int(rest[apart[order[-1], rest].argmin()]))
        left.remove(order[-1])
    way = np.array(order)
    for _ in range(MAX_PASSES):
        before = way.copy()
        for i in range(len(way) - 1):
            # Turning way[i + 1 .. j] around takes two of its links and adds two; the last end is free.
            j = np.arange(i + 1, len(way))
            last = j == len(way) - 1
            after = way[np.minimum(j + 1, len(way) - 1)]
            gain = apart[way[i], way[i + 1]] - apart[way[i], way[j]]
            gain = gain + np.where(last, 0.0, apart[way[j], after] - apart[way[i + 1], after])
            best = int(gain.argmax())
            if gain[best] > 1e-9 * apart.max():
                way[i + 1 : j[best] + 1] = way[i + 1 : j[best] + 1][::-1].copy()
        if (way == before).all():
            break
    return way


Blend = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def lerp(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Straight line from `a` to `b` (n, d) at shares `s` (n,), beyond its ends too."""
    return a + s[:, None] * (b - a)


def slerp(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Great arc from unit quaternions `a` to `b` (n, 4) at shares `s` (n,), beyond its ends too.

    To `b` itself and never to its opposite, which is the same rotation: so it is steady in both. The shorter way of two
    rotations is that of `align_quaternions` ones. Shoemake 1985, "Animating rotation with quaternion curves".

    Example:
        >>> slerp(np.array([[1.0, 0, 0, 0]]), np.array([[0.0, 1, 0, 0]]), np.array([0.5])).round(3).tolist()
        [[0.707, 0.707, 0.0, 0.0]]
    """
    # By both chords: the arc cosine of their product would lose half of the digits where they are near.
    angle = 2 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    sine = np.sin(angle)
    small = sine < 1e-9  # of opposite ones no arc is the shortest
    sine = np.where(small, 1.0, sine)
    first = np.where(small, 1 - s, np.sin((1 - s) * angle) / sine)
    second = np.where(small, s, np.sin(s * angle) / sine)
    out = first[:, None] * a + second[:, None] * b
    length = np.linalg.norm(out, axis=-1, keepdims=True)
    return np.where(length > 0, out, a) / np.where(length > 0, length, 1.0)


def align_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4) of the same rotations, each on its predecessor's side, so that the arc between is the shorter.

    Example:
        >>> align_quaternions(np.array([[1.0, 0, 0, 0], [-0.8, 0.6, 0, 0]])).tolist()
        [[1.0, 0.0, 0.0, 0.0], [0.8, -0.6, -0.0, -0.0]]
    """
    turns = (quaternions[1:] * quaternions[:-1]).sum(-1) < 0
    return quaternions * np.append(1.0, np.where(np.cumsum(turns) % 2, -1.0, 1.0))[:, None]


def catmull_rom(keys: np.ndarray, knots: np.ndarray, t: np.ndarray, blend: Blend, closed: bool) -> np.ndarray:
    """Curve with a steady tangent through `keys` (key, d) at `knots` (key,), rising, at `t` (n,) within them.

    Pyramids of `blend` over four keys each: Barry and Goldman 1988, "A recursive evaluation algorithm for a class of
    Catmull-Rom splines"; with `slerp` as Schlag 1991, "Using geometric constructions to interpolate orientation with
    quaternions", whose sides are chosen once, at the keys: within the pyramid another choice would be a jump. A closed
    curve has its first key as its last one too.

    Example:
        >>> keys, knots = np.array([[0.0], [1.0], [4.0]]), np.arange(3.0)
        >>> catmull_rom(keys, knots, knots, lerp, False).tolist()
        [[0.0], [1.0], [4.0]]
    """
    one, two = np.array([-1.0]), np.array([2.0])
    keys = align_quaternions(keys) if blend is slerp else keys
    if closed:
        before, after = keys[-2:-1], keys[1:2]
        ends = knots[0] - (knots[-1] - knots[-2]), knots[-1] + (knots[1] - knots[0])
    else:  # as far beyond the ends as the next key is within
        before, after = blend(keys[:1], keys[1:2], one), blend(keys[-2:-1], keys[-1:], two)
        ends = 2 * knots[0] - knots[1], 2 * knots[-1] - knots[-2]
    keys, knots = np.concatenate([before, keys, after]), np.concatenate([ends[:1], knots, ends[1:]])
    keys = align_quaternions(keys) if blend is slerp else keys
    first = np.clip(np.searchsorted(knots, t, "right") - 1, 1, len(knots) - 3) - 1
    k = [knots[first + i] for i in range(4)]
    level = [keys[first + i] for i in range(4)]
    for rise in (1, 2, 3):
        # The last level is within the middle two keys, which both of its curves pass.
        ways = [(i, i + rise) for i in range(4 - rise)] if rise < 3 else [(1, 2)]
        level = [blend(level[n], level[n + 1], (t - k[i]) / (k[j] - k[i])) for n, (i, j) in enumerate(ways)]
    return level[0]


def equal_length_parameters(t: np.ndarray, lengths: np.ndarray, count: int, closed: bool) -> np.ndarray:
    """Parameters (count,) at equal lengths along a way: `lengths` (n - 1,) between the points at `t` (n,).

    From end to end; of a closed way without its end, which is its beginning.

    Example:
        >>> equal_length_parameters(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0]), 3, False).round(3).tolist()
        [0.0, 1.333, 2.0]
    """
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    shares = np.arange(count) / (count if closed else max(count - 1, 1))
    return np.interp(shares * along[-1], along, t)


def quaternions_of(rotations: np.ndarray) -> np.ndarray:
    """Unit quaternions (n, 4), real part first, of rotations (n, 3, 3); each on its predecessor's side.

    The eigenvector of the greatest eigenvalue of Bar-Itzhack's matrix (2000), which is good for every angle.

    Example:
        >>> quaternions_of(np.eye(3)[None]).tolist()
        [[1.0, 0.0, 0.0, 0.0]]
    """
    r = np.asarray(rotations, float)
    n = np.empty((len(r), 4, 4))
    n[:, 0, 0] = r[:, 0, 0] + r[:, 1, 1] + r[:, 2, 2]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        n[:, 0, i + 1] = n[:, i + 1, 0] = r[:, k, j] - r[:, j, k]
        n[:, i + 1, i + 1] = r[:, i, i] - r[:, j, j] - r[:, k, k]
        n[:, j + 1, k + 1] = n[:, k + 1, j + 1] = r[:, j, k] + r[:, k, j]
    out = np.linalg.eigh(n)[1][:, :, 3]
    out[0] *= 1.0 if out[0, np.abs(out[0]).argmax()] >= 0 else -1.0
    for i in range(1, len(out)):
        out[i] *= 1.0 if out[i] @ out[i - 1] >= 0 else -1.0
    return out + 0.0


def rotations_of(quaternions: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) of unit quaternions (n, 4), real part first.

    Example:
        >>> rotations_of(np.array([[0.0, 0.0, 0.0, 1.0]]))[0].tolist()
        [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    w, v = quaternions[:, :1, None], quaternions[:, 1:]
    x, y, z = v.T
    o = np.zeros(len(v))
    cross = np.stack([o, -z, y, z, o, -x, -y, x, o], axis=1).reshape(-1, 3, 3)
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross + 0.0


MAX_CAMERAS = 1 << 20  # cameras
COUNT = whole(1, MAX_CAMERAS)
POINTS_A_SEGMENT = 200  # points between two keys, at which the way is measured
SAME_DISTANCE = 1e-9  # of the scene's size, up to which two keys are one


def _several(value: Iterable[Camera] | Any) -> tuple[Camera, ...]:
    cameras = tuple(getattr(value, "cameras", value))
    for camera in cameras:
        if not isinstance(camera, Camera):
            raise Wrong(f"has {describe_value(camera)}")
    if len(cameras) < 2:
        raise Wrong(f"has {len(cameras)}", "a path leads from one to another")
    return cameras


def _targets(value: object) -> np.ndarray:
    points = numeric(value)
    if points.ndim not in (1, 2) or points.shape[-1] != 3 or not np.isfinite(points).all():
        raise Wrong(f"has shape {points.shape}" if np.isfinite(points).all() else "has NaN")
    return points.astype(float)


KEYS = Check("two or more Cameras, or Views", _several)
TARGETS = optional(Check("a point (3,) or one for each camera", _targets))


@checked(cameras=KEYS, count=COUNT, closed=flag, about=TARGETS)
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
    moves = np.append(True, apart > SAME_DISTANCE * max(scale, float(apart.max())))
    if moves.sum() < 2:
        raise RaymarchError(f"cameras are {len(keys)} of one pose, want two or more that differ; move one")
    way, apart = way.taken(np.flatnonzero(moves)), apart[moves[1:]]
    knots = np.append(0.0, np.cumsum(np.sqrt(apart)))  # centripetal: no loops nor cusps (Yuksel et al. 2011)
    fine = np.concatenate([np.linspace(a, b, POINTS_A_SEGMENT, endpoint=False) for a, b in pairwise(knots)])
    fine = np.append(fine, knots[-1])
    lengths = _steps(_interpolate(way, knots, fine, closed), scale)
    frames = _interpolate(way, knots, equal_length_parameters(fine, lengths, count, closed), closed)
    return _cameras(frames, keys[0].width, keys[0].height, parallel.pop())


@dataclass(frozen=True)
class _Path:
    """Keys, or frames: rotations as quaternions (n, 4), pivots (n, 3), and distances to them, logarithms of the focal
    lengths and principal points, both for an image one pixel wide and high, in columns (n, 5)."""

    turns: np.ndarray
    pivots: np.ndarray
    numbers: np.ndarray

    def taken(self, which: np.ndarray) -> _Path:
        return _Path(self.turns[which], self.pivots[which], self.numbers[which])

    @property
    def places(self) -> np.ndarray:
        """Positions (n, 3) of the cameras: off their pivots, backward."""
        return self.pivots + self.numbers[:, :1] * rotations_of(self.turns)[:, :, 2]


def _keys(cameras: Sequence[Camera], about: np.ndarray | None) -> _Path:
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
    return _Path(quaternions_of(poses[:, :3, :3]), pivots, np.column_stack([ahead, lens]))


def _scale(way: _Path) -> float:
    """Length that a turn by one radian counts as: half of the usual distance to what is looked at."""
    ahead = float(np.median(way.numbers[:, 0]))
    spread = 2 * float(np.linalg.norm(way.places - way.places.mean(0), axis=1).max())
    return 0.5 * (ahead if ahead > 0 else spread) or 1.0


def _steps(way: _Path, scale: float) -> np.ndarray:
    """Lengths (n - 1,) from each to the next: of its move, turn, change of focal length, the greatest."""
    moved = np.linalg.norm(np.diff(way.places, axis=0), axis=1)
    a, b = way.turns[:-1], way.turns[1:]
    b = np.where((a * b).sum(-1, keepdims=True) < 0, -b, b)
    turned = 4 * np.arcsin(np.minimum(np.linalg.norm(a - b, axis=-1) / 2, 1))
    zoomed = np.abs(np.diff(way.numbers[:, 1:], axis=0)).max(axis=1)
    return np.maximum(moved, scale * np.maximum(turned, zoomed))


def _interpolate(way: _Path, knots: np.ndarray, t: np.ndarray, closed: bool) -> _Path:
    def curve(keys: np.ndarray, blend: Callable) -> np.ndarray:
        return catmull_rom(keys, knots, t, blend, closed)

    numbers = way.numbers.copy()
    turning = bool((numbers[:, 0] > 0).all())
    numbers[:, 0] = np.log(numbers[:, 0]) if turning else numbers[:, 0]  # which no curve can make negative
    numbers = curve(numbers, lerp)
    numbers[:, 0] = np.exp(numbers[:, 0]) if turning else numbers[:, 0]
    return _Path(curve(way.turns, slerp), curve(way.pivots, lerp), numbers)


def _cameras(way: _Path, width: int, height: int, parallel: bool) -> list[Camera]:
    poses = np.tile(np.eye(4), (len(way.turns), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations_of(way.turns), way.places
    focal, principal = np.exp(way.numbers[:, 1:3]) * width, way.numbers[:, 3:5] * (width, height)
    lens = Lens("orthographic") if parallel else PINHOLE_LENS
    return [
        Camera(pose, tuple(f), tuple(p), width, height, lens)
        for pose, f, p in zip(poses, focal, principal, strict=True)
    ]


def reframe(camera: Camera, width: int, height: int) -> Camera:
    """Camera of another image size (pixels) that shows all that it showed, scaled to fit, and more at two sides.

    Example:
        >>> wide = reframe(Camera.look_at((0, -4, 0), width=64, height=64), 192, 108)
        >>> wide.principal, round(wide.focal[0] / 108, 3) == round(Camera.look_at((0, -4, 0)).focal[0] / 256, 3)
        ((96.0, 54.0), True)
    """
    scale = min(width / camera.width, height / camera.height)
    more = (width - scale * camera.width) / 2, (height - scale * camera.height) / 2
    focal = (camera.focal[0] * scale, camera.focal[1] * scale)
    principal = (camera.principal[0] * scale + more[0], camera.principal[1] * scale + more[1])
    return Camera(camera.world_from_camera, focal, principal, width, height, camera.lens)
