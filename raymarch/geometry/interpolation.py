"""Smooth interpolation between keys: Catmull-Rom curves through vectors and through rotations, and equal lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Blend = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def lerp(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Straight line from `a` to `b` (n, d) at shares `s` (n,), beyond its ends too."""
    return a + s[:, None] * (b - a)


def slerp(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Great arc from unit quaternions `a` to `b` (n, 4) at shares `s` (n,), beyond its ends too.

    To `b` itself and never to its opposite, which is the same rotation: so it is steady in both. The shorter way of two
    rotations is that of `aligned` ones. Shoemake 1985, "Animating rotation with quaternion curves".

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


def aligned(quaternions: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4) of the same rotations, each on its predecessor's side, so that the arc between is the shorter.

    Example:
        >>> aligned(np.array([[1.0, 0, 0, 0], [-0.8, 0.6, 0, 0]])).tolist()
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
    keys = aligned(keys) if blend is slerp else keys
    if closed:
        before, after = keys[-2:-1], keys[1:2]
        ends = knots[0] - (knots[-1] - knots[-2]), knots[-1] + (knots[1] - knots[0])
    else:  # as far beyond the ends as the next key is within
        before, after = blend(keys[:1], keys[1:2], one), blend(keys[-2:-1], keys[-1:], two)
        ends = 2 * knots[0] - knots[1], 2 * knots[-1] - knots[-2]
    keys, knots = np.concatenate([before, keys, after]), np.concatenate([ends[:1], knots, ends[1:]])
    keys = aligned(keys) if blend is slerp else keys
    first = np.clip(np.searchsorted(knots, t, "right") - 1, 1, len(knots) - 3) - 1
    k = [knots[first + i] for i in range(4)]
    level = [keys[first + i] for i in range(4)]
    for rise in (1, 2, 3):
        # The last level is within the middle two keys, which both of its curves pass.
        ways = [(i, i + rise) for i in range(4 - rise)] if rise < 3 else [(1, 2)]
        level = [blend(level[n], level[n + 1], (t - k[i]) / (k[j] - k[i])) for n, (i, j) in enumerate(ways)]
    return level[0]


def at_equal_lengths(t: np.ndarray, lengths: np.ndarray, count: int, closed: bool) -> np.ndarray:
    """Parameters (count,) at equal lengths along a way: `lengths` (n - 1,) between the points at `t` (n,).

    From end to end; of a closed way without its end, which is its beginning.

    Example:
        >>> at_equal_lengths(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0]), 3, False).round(3).tolist()
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
