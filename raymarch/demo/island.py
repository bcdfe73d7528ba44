"""The demonstration's scene: a floating island with a lighthouse, a cottage, trees, a pond and a balloon."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raymarch.demo.solids import Shade, Solid

LAWN_HEIGHT = -0.22  # height of the lawn
BOX = ((-0.82, -0.82, -0.95), (0.82, 0.82, 0.8))

Paint = Callable[[np.ndarray], Shade]


def island(seed: int = 0) -> list[Solid]:
    """Solids of the island within the box from -0.82 -0.82 -0.95 to 0.82 0.82 0.8; a seed says where trees stand.

    Example:
        >>> len(island()) > 40
        True
    """
    rng = np.random.default_rng(seed)
    return [*_land(rng), *_lighthouse(), *_cottage(), *_trees(rng), *_balloon()]


def _solid(kind: str, at: tuple, half: tuple, paint: Paint, top: float = 1.0, turn: np.ndarray | None = None) -> Solid:
    return Solid(kind, np.array(at, float), np.array(half, float), paint, turn, top)


def _upright_solid(bottom: tuple, top: tuple, at: tuple, paint: Paint) -> Solid:
    """Cone or cylinder from a height and radius to others."""
    (z0, r0), (z1, r1) = bottom, top
    return _solid("cone", (*at, (z0 + z1) / 2), (r0, r0, (z1 - z0) / 2), paint, r1 / r0)


def _rotation_about(axis: str, degrees: float) -> np.ndarray:
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    i, j = {"x": (1, 2), "z": (0, 1)}[axis]
    out = np.eye(3)
    out[i, i] = out[j, j] = c
    out[i, j], out[j, i] = -s, s
    return out


def _plain_paint(*colour: float) -> Paint:
    return lambda p: Shade(np.broadcast_to(np.array(colour), p.shape))


def _grain(p: np.ndarray, fine: float, salt: int = 0) -> np.ndarray:
    """Smooth seeded noise in 0..1 at points (n, 3), its waves 1 / fine long."""
    rng = np.random.default_rng(salt)
    waves = rng.normal(0, fine, (6, 3))
    return 0.5 + 0.5 * np.sin(p @ waves.T + rng.uniform(0, 6.3, 6)).mean(1) * 1.6


def _mix_paints(dark: tuple, pale: tuple, share: np.ndarray) -> np.ndarray:
    return np.array(dark) + np.clip(share, 0, 1)[:, None] * (np.array(pale) - np.array(dark))


def _land(rng: np.random.Generator) -> list[Solid]:
    def rock(p: np.ndarray) -> Shade:
        strata = 0.5 + 0.5 * np.sin(55 * p[:, 2] + 3 * _grain(p, 6))
        return Shade(_mix_paints((0.17, 0.10, 0.06), (0.42, 0.29, 0.19), 0.45 * strata + 0.6 * _grain(p, 14, 1)))

    def lawn(p: np.ndarray) -> Shade:
        colour = _mix_paints((0.08, 0.21, 0.03), (0.33, 0.50, 0.09), 0.6 * _grain(p, 12, 2) + 0.4 * _grain(p, 40, 3))
        winding = np.abs(p[:, 1] - 0.09 * np.sin(5 * p[:, 0])) < 0.05 + 0.008 * np.sin(40 * p[:, 0])
        path = winding & (p[:, 0] > -0.25) & (p[:, 0] < 0.62)
        colour[path] = _mix_paints((0.50, 0.40, 0.24), (0.68, 0.58, 0.40), _grain(p[path], 45, 4))
        wide = np.hypot((p[:, 0] + 0.02) / 0.24, (p[:, 1] + 0.42) / 0.15) + 0.1 * _grain(p, 9, 5)
        colour[(wide < 1.12)] = (0.62, 0.55, 0.38)
        pond = wide < 1.0
        colour[pond] = _mix_paints((0.01, 0.10, 0.16), (0.03, 0.22, 0.27), 1 - wide[pond])
        return Shade(colour, 0.75 * pond)

    def earth(p: np.ndarray) -> Shade:
        return Shade(_mix_paints((0.20, 0.12, 0.06), (0.34, 0.22, 0.12), _grain(p, 20, 6)))

    parts = [
        _upright_solid((LAWN_HEIGHT - 0.035, 0.70), (LAWN_HEIGHT, 0.70), (0, 0), lawn),
        _upright_solid((LAWN_HEIGHT - 0.10, 0.655), (LAWN_HEIGHT - 0.035, 0.685), (0, 0), earth),
        _upright_solid((-0.56, 0.33), (LAWN_HEIGHT - 0.10, 0.64), (0, 0), rock),
        _upright_solid((-0.80, 0.06), (-0.50, 0.34), (0.04, -0.02), rock),
    ]
    for angle in np.arange(9) * 0.7:
        at = 0.40 * np.cos(angle), 0.40 * np.sin(angle)
        low = rng.uniform(-0.72, -0.58)
        parts.append(_upright_solid((low, 0.02), (LAWN_HEIGHT - 0.12, rng.uniform(0.17, 0.23)), at, rock))
    grey = _plain_paint(0.36, 0.35, 0.33)
    for x, y, r in ((0.24, -0.50, 0.055), (0.30, -0.44, 0.035), (-0.60, 0.05, 0.05), (0.50, 0.42, 0.06)):
        parts.append(_solid("ellipsoid", (x, y, LAWN_HEIGHT + 0.3 * r), (r, 0.8 * r, 0.75 * r), grey))
    return parts


def _lighthouse() -> list[Solid]:
    at, foot = (-0.30, 0.10), LAWN_HEIGHT

    def stripes(p: np.ndarray) -> Shade:
        red = np.floor((p[:, 2] + 0.31) / 0.124) % 2 == 1
        around = np.arctan2(p[:, 1], p[:, 0])
        window = (np.abs(np.mod(around + 0.35, 1.57) - 0.785) < 0.16) & (np.abs(np.mod(p[:, 2], 0.248) - 0.124) < 0.030)
        colour = np.where(red[:, None], (0.62, 0.055, 0.045), (0.82, 0.80, 0.75))
        colour[window] = (0.05, 0.08, 0.12)
        return Shade(colour * (0.9 + 0.15 * _grain(p, 25, 7))[:, None], 0.5 * window)

    def glass(p: np.ndarray) -> Shade:
        bar = np.mod(np.arctan2(p[:, 1], p[:, 0]) * 8 / 6.2832, 1) < 0.16
        return Shade(np.where(bar[:, None], (0.06, 0.06, 0.07), (1.0, 0.76, 0.22)), 0.15)

    dark, roof = _plain_paint(0.09, 0.09, 0.11), _plain_paint(0.55, 0.05, 0.045)
    top = foot + 0.62
    return [
        _upright_solid((foot, 0.165), (foot + 0.045, 0.16), at, _plain_paint(0.45, 0.43, 0.40)),
        _upright_solid((foot + 0.02, 0.135), (top, 0.085), at, stripes),
        _upright_solid((top, 0.125), (top + 0.025, 0.125), at, dark),
        _upright_solid((top + 0.025, 0.070), (top + 0.135, 0.070), at, glass),
        _upright_solid((top + 0.135, 0.105), (top + 0.235, 0.012), at, roof),
        _solid("ellipsoid", (*at, top + 0.245), (0.02, 0.02, 0.025), dark),
    ]


def _cottage() -> list[Solid]:
    x, y, yaw = 0.26, 0.28, 24.0
    turn = _rotation_about("z", yaw)

    def walls(p: np.ndarray) -> Shade:
        colour = np.broadcast_to(np.array((0.80, 0.72, 0.55)), p.shape) * (0.88 + 0.2 * _grain(p, 30, 8))[:, None]
        u = np.where(np.abs(p[:, 0]) > 0.1499, p[:, 1], p[:, 0])
        pane = (np.abs(np.abs(u) - 0.065) < 0.028) & (np.abs(p[:, 2] - 0.012) < 0.030)
        door = (np.abs(u) < 0.028) & (p[:, 2] < 0.028) & (p[:, 1] < -0.09)
        colour[pane] = (0.06, 0.12, 0.18)
        colour[door] = (0.24, 0.10, 0.04)
        return Shade(colour, 0.5 * pane)

    def tiles(p: np.ndarray) -> Shade:
        row = np.floor((p[:, 1] + p[:, 2]) * 40)
        brick = np.mod(np.floor(p[:, 0] * 28 + 0.5 * np.mod(row, 2)) * 7 + row * 3, 5) / 4
        return Shade(_mix_paints((0.30, 0.09, 0.05), (0.58, 0.22, 0.11), brick))

    roof = turn @ _rotation_about("x", 45)
    chimney = turn @ np.array((0.08, 0.045, 0.0))
    return [
        _solid("box", (x, y, LAWN_HEIGHT + 0.07), (0.15, 0.11, 0.075), walls, turn=turn),
        _solid("box", (x, y, LAWN_HEIGHT + 0.135), (0.165, 0.088, 0.088), tiles, turn=roof),
        _solid(
            "box",
            (x + chimney[0], y + chimney[1], LAWN_HEIGHT + 0.25),
            (0.02, 0.02, 0.06),
            _plain_paint(0.4, 0.2, 0.14),
            turn=turn,
        ),
    ]


def _trees(rng: np.random.Generator) -> list[Solid]:
    def needles(p: np.ndarray) -> Shade:
        return Shade(_mix_paints((0.015, 0.09, 0.04), (0.10, 0.28, 0.09), _grain(p, 38, 9)))

    def leaves(p: np.ndarray) -> Shade:
        return Shade(_mix_paints((0.34, 0.16, 0.02), (0.74, 0.46, 0.05), _grain(p, 32, 10)))

    wood, parts = _plain_paint(0.17, 0.09, 0.045), []
    firs = ((0.02, 0.55), (0.20, 0.56), (-0.18, 0.52), (-0.50, 0.36), (-0.52, -0.30), (-0.36, -0.48), (0.58, 0.12))
    for x, y in firs:
        at, tall = (x, y), rng.uniform(0.75, 1.1)
        parts.append(_upright_solid((LAWN_HEIGHT, 0.022), (LAWN_HEIGHT + 0.09 * tall, 0.018), at, wood))
        for low, high, wide in ((0.06, 0.22, 0.10), (0.15, 0.30, 0.078), (0.24, 0.39, 0.054)):
            parts.append(
                _upright_solid((LAWN_HEIGHT + low * tall, wide * tall), (LAWN_HEIGHT + high * tall, 0.006), at, needles)
            )
    for x, y in ((0.42, -0.22), (0.52, -0.06), (-0.10, 0.36)):
        r = rng.uniform(0.075, 0.10)
        parts.append(_upright_solid((LAWN_HEIGHT, 0.02), (LAWN_HEIGHT + 0.13, 0.016), (x, y), wood))
        for dx, dy, dz, share in ((0, 0, 0.17, 1.0), (0.5, 0.2, 0.13, 0.7), (-0.35, -0.5, 0.14, 0.65)):
            place = (x + dx * r, y + dy * r, LAWN_HEIGHT + dz)
            parts.append(_solid("ellipsoid", place, (share * r, share * r, 0.85 * share * r), leaves))
    return parts


def _balloon() -> list[Solid]:
    x, y, z = 0.44, -0.36, 0.46
    palette = np.array([(0.80, 0.10, 0.05), (0.92, 0.62, 0.06), (0.05, 0.30, 0.55), (0.88, 0.86, 0.80)])

    def gores(p: np.ndarray) -> Shade:
        gore = np.floor((np.arctan2(p[:, 1], p[:, 0]) / 6.28319 + 0.5) * 12).astype(int) % 4
        colour = palette[gore]
        colour = np.where((np.abs(p[:, 2]) < 0.022)[:, None], (0.10, 0.08, 0.25), colour)
        return Shade(colour)

    wicker = _plain_paint(0.42, 0.25, 0.10)
    parts = [
        _solid("ellipsoid", (x, y, z), (0.17, 0.17, 0.185), gores),
        _upright_solid((z - 0.225, 0.05), (z - 0.12, 0.125), (x, y), gores),
        _solid("box", (x, y, z - 0.315), (0.035, 0.035, 0.03), wicker),
    ]
    for sx in (-1, 1):
        for sy in (-1, 1):
            parts.append(_solid("box", (x + 0.032 * sx, y + 0.032 * sy, z - 0.25), (0.004, 0.004, 0.045), wicker))
    return parts
