"""The slow twin that defines the answer: NumPy loops in f64, written from the formulas and not from the kernels.

Letters: p position in index space, x raw density after interpolation and shift, sigma extinction [1/world unit],
T transmittance, alpha = 1 - exp(-sigma width), weight = T alpha, t distance; gradients are d_ + name.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.polynomial import Polynomial


def corners(p, shape):
    """(index, weight) of the eight samples around p, 0 <= p <= shape - 1: a product of hat functions."""
    return _corners(*map(float, p), tuple(shape))


@lru_cache(maxsize=1 << 14)  # density and features ask for the same, the gradient once more
def _corners(*place):
    *p, shape = place
    low = [min(max(math.floor(x), 0), n - 2) for x, n in zip(p, shape, strict=True)]
    around = []
    for offset in itertools.product((0, 1), repeat=3):
        index = tuple(l + o for l, o in zip(low, offset, strict=True))
        around.append((index, math.prod(1 - abs(x - i) for x, i in zip(p, index, strict=True))))
    return around


def gather(values, p):
    """Trilinear interpolation of `values` (x, y, z, ...) at p."""
    return sum(weight * values[index] for index, weight in corners(p, values.shape[:3]))


def scatter(values, p, value):
    """Transpose of `gather`: add `value` to the samples around p, in place."""
    for index, weight in corners(p, values.shape[:3]):
        values[index] += weight * value


def splat(positions, values, shape):
    """Points (point, axis) with values (point, channel) in (*shape, channel): each point meets each sample."""
    target = np.zeros((*shape, values.shape[1]))
    for index in np.ndindex(*shape):
        for p, value in zip(positions, values, strict=True):
            target[index] += math.prod(max(1 - abs(x - i), 0) for x, i in zip(p, index, strict=True)) * value
    return target


@lru_cache(maxsize=4)
def nested(volume):
    """(box, index_from_world) of each of the nested boxes alone."""
    boxes = [volume.nested(n) for n in range(volume.boxes)]
    return [(box, np.linalg.inv(box.world_from_index)) for box in boxes]


def clip(origin, direction, volume, index_from_world=None):
    """(near, far) [world unit] where the half line is inside the box; far < near for a miss."""
    if index_from_world is None:
        index_from_world = np.linalg.inv(volume.world_from_index)
    o = index_from_world[:3, :3] @ origin + index_from_world[:3, 3]
    d = index_from_world[:3, :3] @ direction
    near, far = 0.0, math.inf
    for a in range(3):
        if abs(d[a]) < 1e-12:
            if not 0 <= o[a] <= volume.shape[a] - 1:
                return 0.0, -1.0
            continue
        hits = sorted([(0 - o[a]) / d[a], (volume.shape[a] - 1 - o[a]) / d[a]])
        near, far = max(near, hits[0]), min(far, hits[1])
    return near, far


@cache
def rodrigues(l, m):
    """Derivative l + m of (z^2 - 1)^l."""
    return (Polynomial([-1, 0, 1]) ** l).deriv(l + m)


def harmonics(degree, direction):
    """Real spherical harmonics (l = 0.., m = -l..l) from Rodrigues' formula, with the Condon-Shortley sign."""
    x, y, z = direction
    phi = math.atan2(y, x)
    values = []
    for l, m in [(k, m) for k in range(degree + 1) for m in range(-k, k + 1)]:
        legendre = rodrigues(l, abs(m))(z) / (2**l * math.factorial(l))
        legendre *= (-1) ** m * max(1 - z * z, 0) ** (abs(m) / 2)
        scale = (2 * l + 1) / (4 * math.pi) * math.factorial(l - abs(m)) / math.factorial(l + abs(m))
        angular = 1 if m == 0 else math.sqrt(2) * (math.cos(m * phi) if m > 0 else math.sin(-m * phi))
        values.append(math.sqrt(scale) * angular * legendre)
    return np.array(values)


def solid_harmonic(l, m, x, y, z):
    """r^l Y_lm by recurrences over degree and order, Condon-Shortley sign included, for numbers real or complex.

    (x + iy)^|m| one factor at a time; the rest from Bonnet's recurrence of the Legendre functions, made homogeneous.
    """
    cosine, sine = 1.0 + 0 * x, 0 * x
    for _ in range(abs(m)):
        cosine, sine = x * cosine - y * sine, x * sine + y * cosine
    before, here = 0.0, float(math.prod(range(1, 2 * abs(m), 2)))
    for n in range(abs(m), l):
        before, here = (
            here,
            ((2 * n + 1) * z * here - (n + abs(m)) * (x * x + y * y + z * z) * before) / (n + 1 - abs(m)),
        )
    size = (2 * l + 1) / (4 * math.pi) * math.factorial(l - abs(m)) / math.factorial(l + abs(m)) * (2 if m else 1)
    return (-1) ** m * math.sqrt(size) * (cosine if m >= 0 else sine) * here


def density(activation, x):
    """(sigma, d sigma / d x)."""
    if activation.density == "softplus":
        y, slope = np.logaddexp(0, x), 1 / (1 + np.exp(-x))
    elif activation.density == "relu":
        y, slope = max(x, 0.0), float(x > 0)
    elif activation.density == "identity":
        y, slope = x, 1.0
    else:
        y, slope = math.exp(min(x, 15.0)), math.exp(x) if x <= 15 else 0.0
    return y / activation.scale, slope / activation.scale


def colour(activation, total):
    """(colour, d colour / d total), both (3,)."""
    if activation.colour == "sigmoid":
        y = 1 / (1 + np.exp(-total))
        return y, y * (1 - y)
    if activation.colour == "identity":
        return total, np.ones(3)
    return np.maximum(total + 0.5, 0), (total + 0.5 > 0).astype(float)


@dataclass
class Sample:
    """All that one sample of one ray is, kept for the gradient."""

    p: np.ndarray
    t: float
    ends: tuple[float, float]
    width: float
    slope: float
    T: float
    tau: float
    weight: float
    colour: np.ndarray
    colour_slope: np.ndarray
    seen: bool


def composite(mode, T, tau):
    """(weight of a sample, T after it)."""
    if mode == "additive":
        return min(tau, T), T - min(tau, T)
    return tau if mode == "x-ray" else -T * math.expm1(-tau), T * math.exp(-tau)


def take_gradient(mode, T, tau, d_weight, d_T):
    """(d_tau, d_T before the sample) from d_weight and d_T after it."""
    e = math.exp(-tau)
    if mode == "additive":
        return (d_weight - d_T, d_T) if tau <= T else (0.0, d_weight)
    if mode == "x-ray":
        return d_weight - T * e * d_T, e * d_T
    return T * e * (d_weight - d_T), (1 - e) * d_weight + e * d_T


def samples(
    volume, origin, direction, step, min_transmittance, min_weight, mode="emission-absorption", jitter=(0.0, 1.0)
):
    """(samples of a ray, transmittance behind them): midpoints of steps, the first `1 - phase` of one, the last cut."""
    Y = harmonics(volume.degree, direction)
    kept, T = [], 1.0
    phase, step = jitter[0], jitter[1] * step
    distance = abs
    if volume.ndc_from_world is not None:
        ray = in_ndc(volume.ndc_from_world, origin, direction)
        if ray is None:
            return kept, T
        origin, direction, distance = ray
    for n, near, far in segments(volume, origin, direction):
        (box, index_from_world), dt = nested(volume)[n], step * 2**n
        first = np.array([n * volume.box_shape[0], 0, 0])  # where its samples begin among all
        edges = [near]
        while far > near and near + (len(edges) - phase) * dt < far:
            edges.append(near + (len(edges) - phase) * dt)
        for begin, end in itertools.pairwise([*edges, far]):
            width = end - begin
            if not width > 0 or not (T >= min_transmittance or mode == "x-ray"):
                continue
            t = begin + width / 2
            p = (index_from_world @ [*(origin + t * direction), 1])[:3].clip(0, np.array(box.shape) - 1.0)
            sigma, slope = density(box.activation, gather(box.density, p) + box.activation.shift)
            shade = colour(box.activation, Y @ gather(box.features, p).reshape(-1, 3))
            if mode == "x-ray":
                shade = np.ones(3), np.zeros(3)
            weight, after = composite(mode, T, sigma * width)
            seen = abs(weight) >= min_weight or mode == "x-ray"
            kept.append(
                Sample(
                    first + p,
                    distance(t),
                    (distance(begin), distance(end)),
                    width,
                    slope,
                    T,
                    sigma * width,
                    weight,
                    *shade,
                    seen,
                )
            )
            T = after
    return kept, T


def in_ndc(P, origin, direction):
    """A ray from the near plane on as two of its points show it in NDC: origin, unit way, and the distance [world unit]
    from its beginning of what lies t along it there; None for one that stays before the near plane."""
    near, depth, slope = (P[3, 3] - P[2, 3]) / 2, P[3] @ [*origin, 1], P[3, :3] @ direction
    if depth < near and slope <= 0:
        return None
    begin = (near - depth) / slope if depth < near else 0.0
    second = begin + (near if slope >= 0 else min(near, depth / slope / -2))
    points = [P @ [*(origin + t * direction), 1] for t in (begin, second)]
    first, then = (whole[:3] / whole[3] for whole in points)
    way = (then - first) / np.linalg.norm(then - first)

    def distance(t):
        whole = np.linalg.inv(P) @ [*(first + t * way), 1]
        return np.linalg.norm(whole[:3] / max(whole[3], 1e-15) - origin)  # the far face is at infinity

    return first, way, distance


def segments(volume, origin, direction):
    """(number of the box, near, far) [world unit] of what a ray has of each of the nested boxes and not of the last."""
    inward, outward, hole = [], [], None
    for n, (box, index_from_world) in enumerate(nested(volume)):
        near, far = clip(origin, direction, box, index_from_world)
        if far >= near:
            inward.append((n, near, far if hole is None else hole[0]))
            if hole is not None:
                outward.append((n, hole[1], far))
            hole = near, far
    return [*inward[::-1], *outward]


def behind(mode, background):
    """The background as a mode sees it."""
    return np.zeros(3) if mode == "x-ray" else np.asarray(background)


def each(rays, jitter):
    """(origin, direction, jitter) of every ray."""
    return zip(rays.origin, rays.direction, [(0.0, 1.0)] * len(rays) if jitter is None else jitter, strict=True)


def march(
    volume, rays, step, background, min_transmittance=0.0, min_weight=0.0, mode="emission-absorption", jitter=None
):
    """Colour and transmittance (ray, 4): sum of weight * colour where weight > least, and the background behind."""
    image = []
    for origin, direction, own in each(rays, jitter):
        kept, T = samples(volume, origin, direction, step, min_transmittance, min_weight, mode, own)
        total = sum((s.weight * s.colour for s in kept if s.seen), np.zeros(3)) + T * behind(mode, background)
        image.append([*total, T])
    return np.array(image)


def depth(volume, rays, step, min_transmittance=0.0, mode="emission-absorption", jitter=None):
    """Mean distance (ray,) [world unit] of what is met, infinite for an opacity under 1 %."""
    out = []
    for origin, direction, own in each(rays, jitter):
        kept, T = samples(volume, origin, direction, step, min_transmittance, 0.0, mode, own)
        met = sum(s.weight for s in kept)
        out.append(sum(s.weight * s.t for s in kept) / met if 1 - T >= 0.01 else math.inf)
    return np.array(out)


def depth_gradient(volume, rays, d_depth, step, mode="emission-absorption", jitter=None):
    """d_density of sum(depth * d_depth) over the rays that meet something, by the quotient rule and the chain rule."""
    d_density = np.zeros(volume.density.shape)
    for (origin, direction, own), d in zip(each(rays, jitter), d_depth, strict=True):
        kept, T = samples(volume, origin, direction, step, 0.0, 0.0, mode, own)
        if 1 - T < 0.01:
            continue
        met, moment = sum(s.weight for s in kept), sum(s.weight * s.t for s in kept)
        d_T = 0.0
        for s in reversed(kept):
            d_weight = d * (s.t / met - moment / met**2)
            d_tau, d_T = take_gradient(mode, s.T, s.tau, d_weight, d_T)
            scatter(d_density, s.p, d_tau * s.width * s.slope)
    return d_density


def march_gradient(
    volume,
    rays,
    step,
    background,
    d_image,
    min_transmittance=0.0,
    min_weight=0.0,
    mode="emission-absorption",
    jitter=None,
    near=None,
):
    """(d_density, d_features) of sum(image * d_image), by the chain rule from the last sample to the first.

    `near`: (distance of the rays' origins from their cameras, distance from which on gradients are whole), where those
    of samples are scaled by the square of how far along they are.
    """
    d_density, d_features = np.zeros(volume.density.shape), np.zeros(volume.features.shape)
    for (origin, direction, own), d in zip(each(rays, jitter), d_image, strict=True):
        kept, _ = samples(volume, origin, direction, step, min_transmittance, min_weight, mode, own)
        Y = harmonics(volume.degree, direction)
        d_T = d[3] + np.dot(behind(mode, background), d[:3])  # of the transmittance behind the sample at hand
        for s in reversed(kept):
            d_weight = np.dot(s.colour, d[:3]) if s.seen else 0.0
            share = 1.0 if near is None else min(((near[0] + s.t) / near[1]) ** 2, 1.0)
            if s.seen:
                scatter(d_features, s.p, share * np.outer(Y, s.weight * d[:3] * s.colour_slope).reshape(-1))
            d_tau, d_T = take_gradient(mode, s.T, s.tau, d_weight, d_T)
            scatter(d_density, s.p, share * d_tau * s.width * s.slope)
    return d_density, d_features


def chessboard(occupied):
    """Distance (x, y, z) of each cell to the nearest occupied one, the largest of the three offsets; 255 if none."""
    there = np.argwhere(occupied)
    out = np.full(occupied.shape, 255)
    for cell in np.ndindex(occupied.shape):
        if len(there):
            out[cell] = min(255, np.abs(there - cell).max(1).min())
    return out
