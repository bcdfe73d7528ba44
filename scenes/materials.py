"""Procedural materials of the tower, in each solid's own coordinates; their finest detail spans some pixels.

Cells (bricks, tiles, flagstones, planks) get their own colour from a hash of their indices. Colours are linear.
"""

from __future__ import annotations

import numpy as np
from primitives import Material, Surface

TURN = 2.0 * np.pi
MORTAR = np.array([0.42, 0.38, 0.32])


def hashed(*indices: np.ndarray | int) -> np.ndarray:
    """A value in [0, 1) for each tuple of integers."""
    state = np.uint64(0x9E3779B97F4A7C15)
    for index in indices:
        word = np.asarray(index).astype(np.int64).astype(np.uint64)
        with np.errstate(over="ignore"):
            state = (state ^ word) * np.uint64(0xD6E8FEB86659FD93)
            state = (state ^ (state >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
            state = state ^ (state >> np.uint64(29))
    return (state >> np.uint64(11)).astype(np.float64) / 2.0**53


def noise(points: np.ndarray, frequency: float, salt: int = 0) -> np.ndarray:
    """Smooth value noise in [0, 1] at points (N, 3)."""
    place = points * frequency
    low = np.floor(place)
    part = place - low
    part = part * part * (3.0 - 2.0 * part)
    total = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        weight = np.where(corner, part, 1.0 - part).prod(axis=1)
        total += weight * hashed(*(low + corner).T, salt)
    return total


def mix(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    return first + (second - first) * share[:, None]


def bond(u: np.ndarray, rows: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Running bond: u in turns, rows in courses, `across` cells a turn -> (row, column, place within the cell)."""
    row = np.floor(rows)
    place = u * across + 0.5 * np.mod(row, 2.0)
    column = np.floor(place)
    return row, np.mod(column, across), np.stack([place - column, rows - row], axis=1)


def edge_distance(place: np.ndarray, width: np.ndarray | float, height: float) -> np.ndarray:
    """Distance in world units to the nearest edge of a cell of that size."""
    inset = 0.5 - np.abs(place - 0.5)
    return np.minimum(inset[:, 0] * width, inset[:, 1] * height)


def turns(points: np.ndarray) -> np.ndarray:
    return np.arctan2(points[:, 1], points[:, 0]) / TURN + 0.5


def masonry(
    radius: float,
    height: float,
    width: float,
    dark: tuple[float, float, float],
    pale: tuple[float, float, float],
    salt: int = 0,
    mortar: np.ndarray = MORTAR,
) -> Material:
    """Bricks around an upright cylinder of about `radius`, each in its own mix of `dark` and `pale`."""
    across = np.array(float(round(TURN * radius / width)))

    def material(points: np.ndarray) -> Surface:
        row, column, place = bond(turns(points), points[:, 2] / height + 100.0, across)
        tone, tint = hashed(row, column, salt), hashed(row, column, salt + 1)
        albedo = mix(np.array(dark), np.array(pale), 0.15 + 0.85 * tone**1.3)
        albedo = albedo * (1.0 + 0.10 * (tint[:, None] - 0.5) * np.array([1.0, 0.0, -1.0]))
        albedo = np.where((edge_distance(place, width, height) < 0.0065)[:, None], mortar, albedo)
        stain = 0.80 + 0.32 * noise(points, 4.0, salt) + 0.10 * (noise(points, 14.0, salt) - 0.5)
        return Surface(albedo * stain[:, None])

    return material


def paving(rim: float) -> Material:
    """The slab: flagstones in rings, a lawn with a path through it, and a kerb; courses of stone on its side."""
    side = masonry(rim, 0.1, 0.17, (0.36, 0.32, 0.27), (0.62, 0.56, 0.47), 40)

    def material(points: np.ndarray) -> Surface:
        rho, ring_width = np.hypot(points[:, 0], points[:, 1]), 0.115
        ring = np.floor(rho / ring_width)
        across = np.maximum(np.round(TURN * (ring + 0.5) * ring_width / 0.17), 1.0)
        row, column, place = bond(turns(points), rho / ring_width, across)
        stone = mix(np.array([0.40, 0.34, 0.27]), np.array([0.66, 0.58, 0.47]), hashed(row, column, 50))
        width = TURN * (ring + 0.5) * ring_width / across
        stone = np.where((edge_distance(place, width, ring_width) < 0.007)[:, None], 0.55 * MORTAR, stone)
        blades = 0.6 * noise(points, 9.0, 51) + 0.4 * noise(points, 34.0, 52)
        lawn = mix(np.array([0.07, 0.19, 0.03]), np.array([0.33, 0.48, 0.10]), blades)
        ragged = 0.03 * (noise(points, 16.0, 53) - 0.5)
        path = (points[:, 0] > 0.0) & (np.abs(points[:, 1]) < 0.15 + ragged)
        grown = (rho + ragged > 0.615) & (rho + ragged < 0.905) & ~path
        top = np.where(grown[:, None], lawn, stone * (0.85 + 0.25 * noise(points, 6.0, 54))[:, None])
        return Surface(np.where((rho > rim - 1e-4)[:, None], side(points).albedo, top))

    return material


def tiles(bottom: float, slope: float) -> Material:
    """Scalloped roof tiles in staggered courses; `slope` is the drop along the slant per unit of local z."""
    height, width = 0.062, 0.092

    def material(points: np.ndarray) -> Surface:
        rho = np.hypot(points[:, 0], points[:, 1])
        rows = (bottom - rho) * slope / height
        row = np.floor(rows)
        across = np.maximum(np.round(TURN * (bottom - (row + 0.5) * height / slope) / width), 5.0)
        row, column, place = bond(turns(points), rows, across)
        # The lower edge of a tile is round; what it leaves free shows the tile of the course below.
        arc = 0.42 - np.sqrt(np.clip(0.25 - np.square(place[:, 0] - 0.5), 0.0, 0.25)) * 0.84
        below = place[:, 1] < arc
        under = bond(turns(points), rows - 1.0, across)[1]
        tone = np.where(below, hashed(row - 1, under, 60), hashed(row, column, 60))
        albedo = mix(np.array([0.36, 0.075, 0.035]), np.array([0.78, 0.27, 0.11]), tone)
        shadow = np.where(below, 0.50, 0.80 + 0.35 * np.clip(1.0 - (place[:, 1] - arc) * 1.3, 0.0, 1.0))
        shadow *= 0.85 + 0.25 * noise(points, 5.0, 61)
        return Surface(albedo * shadow[:, None], 0.04, 20.0, 0.25)

    return material


def planks(axis: int, width: float, dark: tuple[float, float, float], pale: tuple[float, float, float]) -> Material:
    """Boards side by side along local `axis`, with grain and dark joints."""

    def material(points: np.ndarray) -> Surface:
        place = points[:, axis] / width + 50.0
        board = np.floor(place)
        stretched = points * np.where(np.arange(3) == axis, 1.0, 0.25)
        grain = noise(stretched, 40.0, 71)
        albedo = mix(np.array(dark), np.array(pale), 0.65 * hashed(board, axis, 70) + 0.35 * grain)
        joint = 0.5 - np.abs(place - board - 0.5) < 0.006 / width
        return Surface(np.where(joint[:, None], 0.35 * albedo, albedo), 0.03, 20.0, 0.1)

    return material


def timbered(radius: float, half: float) -> Material:
    """Cream plaster between dark beams, with glazed windows: the upper storey."""

    def material(points: np.ndarray) -> Surface:
        turn = turns(points) * 8.0
        bay = np.floor(turn)
        x = (turn - bay - 0.5) * TURN * radius / 8.0
        z = points[:, 2]
        plaster = np.array([0.80, 0.69, 0.50]) * (0.82 + 0.25 * noise(points, 7.0, 80))[:, None]
        beam = (np.abs(x) > TURN * radius / 16.0 - 0.016) | (np.abs(z) > half - 0.03)
        glazed_bay = np.mod(bay, 2.0) == 0.0
        brace = ~glazed_bay & (np.abs(np.abs(x) * 1.05 - np.abs(z)) < 0.015)
        frame = glazed_bay & (np.abs(x) < 0.068) & (np.abs(z) < 0.088)
        glass = (
            glazed_bay & (np.abs(x) < 0.050) & (np.abs(z) < 0.070) & (np.abs(x) > 0.007) & (np.abs(z - 0.01) > 0.007)
        )
        albedo = np.where((beam | brace | frame)[:, None], np.array([0.17, 0.085, 0.04]), plaster)
        albedo = np.where(glass[:, None], np.array([0.05, 0.10, 0.17]), albedo)
        shine = glass[:, None].astype(float)
        return Surface(albedo, 0.02 + 0.05 * shine, 40.0, 0.9 * shine)

    return material


def window(half_width: float, half_height: float) -> Material:
    """A glazed window in the local y, z plane with one mullion and one transom."""

    def material(points: np.ndarray) -> Surface:
        y, z = np.abs(points[:, 1]), np.abs(points[:, 2])
        bar = (y < 0.008) | (z < 0.008) | (y > half_width - 0.010) | (z > half_height - 0.010)
        albedo = np.where(bar[:, None], np.array([0.20, 0.10, 0.05]), np.array([0.04, 0.09, 0.16]))
        return Surface(albedo, 0.05, 40.0, np.where(bar, 0.1, 0.9)[:, None])

    return material


def barrel(half: float) -> Material:
    """Staves and two iron hoops."""
    wood = (np.array([0.26, 0.13, 0.05]), np.array([0.50, 0.28, 0.12]))

    def material(points: np.ndarray) -> Surface:
        albedo = mix(*wood, hashed(np.floor(turns(points) * 16.0), 90))
        hoop = np.abs(np.abs(points[:, 2]) - 0.45 * half) < 0.014
        return Surface(np.where(hoop[:, None], np.array([0.16, 0.16, 0.18]), albedo), 0.05, 30.0, 0.3)

    return material


def foliage(points: np.ndarray) -> Surface:
    leaves = 0.55 * noise(points, 13.0, 95) + 0.45 * noise(points, 30.0, 96)
    return Surface(mix(np.array([0.03, 0.11, 0.04]), np.array([0.20, 0.38, 0.11]), leaves), 0.02, 12.0)


def stripes(points: np.ndarray) -> Surface:
    """The flag: a gold band between two crimson ones, by local z."""
    gold = np.abs(points[:, 2]) < 0.020
    return Surface(np.where(gold[:, None], np.array([0.86, 0.58, 0.10]), np.array([0.62, 0.05, 0.07])), 0.03, 20.0, 0.1)


def glaze(points: np.ndarray) -> Surface:
    """The glazed ball: deep teal with a pale band, glossy."""
    band = np.abs(points[:, 2] - 0.02) < 0.022
    body = mix(np.array([0.02, 0.20, 0.27]), np.array([0.03, 0.33, 0.34]), noise(points, 9.0, 97))
    return Surface(np.where(band[:, None], np.array([0.72, 0.62, 0.38]), body), 0.08, 48.0, 1.0)


def plain(
    albedo: tuple[float, float, float], specular: float = 0.03, exponent: float = 24.0, mirror: float = 0.1
) -> Material:
    """One colour all over."""

    def material(points: np.ndarray) -> Surface:
        return Surface(np.broadcast_to(np.array(albedo), points.shape), specular, exponent, mirror)

    return material
