"""Lens distortion on the image plane: value, slopes and inverse of the field's radial and tangential polynomials.

A point `a` of the plane is where a direction goes without distortion, in focal lengths, x right and y down:
(X / Z, Y / Z), with `ANGLES` the angle to the axis [radian] that way, or with `SPHERE` longitude and latitude [radian],
which nothing distorts. The nine numbers `k` are k1, k2, k3, p1, p2, k4, k5, k6, r8:

    a (1 + k1 s + k2 s^2 + k3 s^3 + r8 s^4) / (1 + k4 s + k5 s^2 + k6 s^3) + tangential by p1, p2,   s = |a|^2

(Brown 1971; Kannala and Brandt 2006 of angles). With `FOV` the first is omega (Devernay and Faugeras 2001). From
`reach` on, where the polynomial would turn back, its value grows in proportion to |a|. `kernels/rays/lens.py` is
beside it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

PINHOLE, TANGENTS, ANGLES, FOV, PARALLEL, SPHERE = range(6)
LENS_NUMBERS = 9
TINY_OMEGA = 1e-3  # under it the first terms of the series are exact to rounding
MAX_NEWTON_STEPS = 60  # of Newton's method at most; six or so are used
MAX_START_STEPS, START_TOLERANCE = 20, 0.01  # turns at most, and share of the way, of its start
MAX_PLANE_RADIUS = 1e3  # of the plane: 89.94 degrees off the axis
MAX_ANGLE = 3.14  # of angles [radian]; what is exactly behind is on no one side
FOLD_DIRECTIONS = 24  # directions of the plane along which a fold is looked for


def project_to_plane(kind: int, q: np.ndarray) -> np.ndarray:
    """Plane points without distortion (..., 2) of points (..., 3), y down, z ahead."""
    if kind == SPHERE:
        x, y, z = np.moveaxis(np.asarray(q, float), -1, 0)
        return np.stack([np.arctan2(x, z), np.arctan2(y, np.hypot(x, z))], axis=-1)
    if kind != ANGLES:
        with np.errstate(divide="ignore", invalid="ignore"):
            return q[..., :2] / q[..., 2:]
    across = np.linalg.norm(q[..., :2], axis=-1, keepdims=True)
    angle = np.arctan2(across, q[..., 2:])
    near = across < 1e-9 * np.abs(q[..., 2:])
    scale = np.where(near, 1 / np.maximum(np.abs(q[..., 2:]), 1e-300), angle / np.maximum(across, 1e-300))
    return q[..., :2] * scale


def project_to_plane_slope(kind: int, q: np.ndarray) -> np.ndarray:
    """d plane point / d point (n, 2, 3)."""
    if kind == SPHERE:
        return _sphere_slope(q)
    x, z = q[:, :2], q[:, 2]
    out = np.zeros((len(q), 2, 3))
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind != ANGLES:
            out[:, :, :2] = np.eye(2) / z[:, None, None]
            out[:, :, 2] = -x / z[:, None] ** 2
            return out
        square = (x * x).sum(1)
        across, whole = np.sqrt(square), square + z * z
        t = across / z
        near = (z > 0) & (t < 1e-2)
        scale = np.where(near, (1 - t**2 / 3 + t**4 / 5 - t**6 / 7) / z, np.arctan2(across, z) / across)
        bend = np.where(
            near, (-2 / 3 + 4 * t**2 / 5 - 6 * t**4 / 7 + 8 * t**6 / 9) / z**3, (z / whole - scale) / square
        )
    out[:, :, :2] = scale[:, None, None] * np.eye(2) + bend[:, None, None] * x[:, :, None] * x[:, None, :]
    out[:, :, 2] = -x / whole[:, None]
    return out


def _sphere_slope(q: np.ndarray) -> np.ndarray:
    """d (longitude, latitude) / d point (n, 2, 3); infinite at the poles, where longitude is none."""
    x, y, z = q.T
    level = np.hypot(x, z)  # distance from the axis of the poles
    whole = level**2 + y**2
    with np.errstate(divide="ignore", invalid="ignore"):
        longitude = np.stack([z, np.zeros_like(x), -x], axis=1) / (level**2)[:, None]
        latitude = np.stack([-x * y / level, level, -z * y / level], axis=1) / whole[:, None]
    return np.stack([longitude, latitude], axis=1)


def distort(kind: int, k: np.ndarray, reach: float, a: np.ndarray) -> np.ndarray:
    """Distorted plane points (n, 2) of undistorted ones.

    Example:
        >>> distort(TANGENTS, np.eye(9)[0], 9.0, np.array([[0.0, 0.5]])).tolist()
        [[0.0, 0.625]]
    """
    inside = np.minimum(1.0, reach / np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-300))
    with np.errstate(invalid="ignore"):  # of one that folds at its centre
        return _value(kind, k, a * inside) / inside


def distortion_slopes(kind: int, k: np.ndarray, reach: float, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d distorted / d point (n, 2, 2), and d distorted / d number (n, 2, 9)."""
    size = np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-300)
    inside = np.minimum(1.0, reach / size)
    value, (xx, xy, yy) = _value(kind, k, a * inside), _slopes(kind, k, a * inside)
    by_point = np.stack([xx, xy, xy, yy], axis=-1).reshape(*a.shape, 2)
    along = a / size
    grows = np.where(inside < 1, 1.0, 0.0)[..., None]  # there by |a| alone along the radius
    radial = (value / (size * inside))[..., :, None] - by_point @ along[..., None]
    return by_point + grows * radial * along[..., None, :], _slopes_by_number(kind, k, a * inside) / inside[..., None]


def undistort(kind: int, k: np.ndarray, reach: float, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Undistorted plane points (n, 2) of distorted ones, and what is left (n,) of the equation.

    Newton's method, its steps halved until they help and kept within `reach`. Distortion is the gradient of a function
    that is convex there, for its slopes are symmetric and stay positive from the centre on: so there is one solution.
    """
    a, left, step = np.zeros_like(m), np.full(len(m), np.inf), _newton_start(kind, k, reach, m)
    active = np.arange(len(m))
    for _ in range(MAX_NEWTON_STEPS):
        tried = a[active] + step[active]
        tried *= np.minimum(1.0, reach / np.maximum(np.linalg.norm(tried, axis=1, keepdims=True), 1e-300))
        gap = m[active] - _value(kind, k, tried)
        size = np.linalg.norm(gap, axis=1)
        better = size < left[active]
        took = active[better]
        a[took], left[took] = tried[better], size[better]
        step[active[~better]] *= 0.5
        xx, xy, yy = _slopes(kind, k, tried[better])
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = gap[better].T / (xx * yy - xy * xy)
            step[took] = np.nan_to_num(np.stack([yy * x - xy * y, xx * y - xy * x], 1))
        done = (np.abs(step[active]) <= 1e-13 * (1 + np.abs(a[active]))).all(1) | (left[active] == 0)
        active = active[~done]
        if not len(active):
            break
    return a, left


def _newton_start(kind: int, k: np.ndarray, reach: float, m: np.ndarray) -> np.ndarray:
    """Points (n, 2) on the way of the distorted ones that are about as far off: Newton's method between bounds."""
    size = np.linalg.norm(m, axis=1, keepdims=True)
    way, r = m / np.maximum(size, 1e-300), np.minimum(size, reach)
    low, high = np.zeros_like(r), np.full_like(r, reach)
    for _ in range(MAX_START_STEPS):
        gap = (_value(kind, k, r * way) * way).sum(1, keepdims=True) - size
        if (abs(gap) <= START_TOLERANCE * size).all():
            break
        low, high = np.where(gap < 0, r, low), np.where(gap > 0, r, high)
        (xx, xy, yy), (x, y) = _slopes(kind, k, r * way), way.T
        slope = (xx * x * x + 2 * xy * x * y + yy * y * y)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            tried = r - gap / slope
        r = np.where((tried > low) & (tried < high), tried, (low + high) / 2)
    return r * way


@lru_cache(4096)  # the cameras of a set often share a lens
def fold_radius(kind: int, numbers: tuple[float, ...]) -> float:
    """Radius of the undistorted plane up to which distortion can be undone: where its Jacobian is first singular."""
    k = np.array(numbers)
    angle = 2 * np.pi * np.arange(FOLD_DIRECTIONS) / FOLD_DIRECTIONS
    ways = np.stack([np.cos(angle), np.sin(angle)], 1)
    if kind == FOV or not k[3:5].any():
        ways = ways[:1]  # all are alike
    far = MAX_ANGLE if kind == ANGLES else MAX_PLANE_RADIUS
    radii = far * np.geomspace(1e-5, 1, 320)

    def turned(at: np.ndarray) -> np.ndarray:  # (n,) radii -> (n, ways)
        with np.errstate(all="ignore"):
            xx, xy, yy = _slopes(kind, k, at[:, None, None] * ways)
            return ~((xx * yy - xy * xy > 0) & (xx + yy > 0))

    wrong = np.flatnonzero(turned(radii).any(1))
    if not len(wrong):
        return far
    if wrong[0] == 0:
        return 0.0
    low, high = radii[wrong[0] - 1], radii[wrong[0]]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if turned(np.array([middle])).any() else (middle, high)
    return float(low) * (1 - 1e-9)  # the value itself may have its pole there


def _value(kind: int, k: np.ndarray, a: np.ndarray) -> np.ndarray:
    s = (a * a).sum(-1, keepdims=True)
    if kind == FOV:
        return a * _fov(k[0], s)[0]
    x, y = a[..., :1], a[..., 1:]
    above, below = _radial(k, s)
    pull = 2 * (k[3] * y + k[4] * x)
    return a * (above / below + pull) + s * np.array([k[4], k[3]])


def _slopes(kind: int, k: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """d distorted / d point within the reach, xx, xy and yy: it is symmetric."""
    x, y = a[..., 0], a[..., 1]
    s = x * x + y * y
    if kind == FOV:
        scale, by_s, _ = _fov(k[0], s)
        return scale + 2 * by_s * x * x, 2 * by_s * x * y, scale + 2 * by_s * y * y
    above, below = _radial(k, s)
    scale, (p1, p2) = above / below, k[3:5]
    by_s = k[0] + s * (2 * k[1] + s * (3 * k[2] + s * (4 * k[8]))) - scale * (k[5] + s * (2 * k[6] + s * (3 * k[7])))
    by_s, even = 2 * by_s / below, scale + 2 * (p1 * y + p2 * x)
    return even + x * (by_s * x + 4 * p2), by_s * x * y + 2 * (p2 * y + p1 * x), even + y * (by_s * y + 4 * p1)


def _slopes_by_number(kind: int, k: np.ndarray, a: np.ndarray) -> np.ndarray:
    """d distorted / d number (..., 2, 9) within the reach."""
    s = (a * a).sum(-1, keepdims=True)
    out = np.zeros((*a.shape, LENS_NUMBERS))
    if kind == FOV:
        out[..., 0] = a * _fov(k[0], s)[2]
        return out
    x, y = a[..., :1], a[..., 1:]
    above, below = _radial(k, s)
    powers = np.concatenate([s, s**2, s**3, s**4], axis=-1)
    out[..., :3] = a[..., None] * (powers[..., None, :3] / below[..., None])
    out[..., 8] = a * powers[..., 3:] / below
    out[..., 5:8] = -a[..., None] * (above / below**2 * powers[..., :3])[..., None, :]
    out[..., 3] = 2 * a * y + s * np.array([0, 1])
    out[..., 4] = 2 * a * x + s * np.array([1, 0])
    return out


def _radial(k: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numerator and denominator of the radial factor at |a|^2 = s."""
    return 1 + s * (k[0] + s * (k[1] + s * (k[2] + s * k[8]))), 1 + s * (k[5] + s * (k[6] + s * k[7]))


def _fov(omega: float, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Radial factor atan(2 r tan(omega / 2)) / (omega r) with s = r^2, its slope by s, and by omega."""
    if abs(omega) < TINY_OMEGA:
        w = omega * omega
        return 1 + w * (1 / 12 - s / 3), np.full_like(s, -w / 3), omega * (1 / 6 - 2 * s / 3)
    t = 2 * np.tan(omega / 2)
    x = t * np.sqrt(s)
    small = x < 1e-2
    x = np.where(small, 1.0, x)
    z = t * t * s
    ratio = np.where(small, 1 - z / 3 + z**2 / 5 - z**3 / 7 + z**4 / 9, np.arctan(x) / x)  # atan(x) / x
    bend = np.where(small, -1 / 3 + 2 * z / 5 - 3 * z**2 / 7 + 4 * z**3 / 9, (1 / (1 + z) - ratio) / (2 * x * x))
    dot_t = 1 + t * t / 4
    return t / omega * ratio, t**3 / omega * bend, (dot_t / (1 + z) - t / omega * ratio) / omega
