"""Makes photographs of a toy lighthouse in a garden: a set without end, as a telephone would take it.

JPEG files without alpha, ground to the horizon, sky, hedges and a house far off; a lens that bends, an exposure and a
white balance of each photograph's own, noise. The cameras are known and stand in `transforms.json` as nerfstudio writes
it (x right, y up, looking along -z; OpenCV's coefficients). Every surface is met in closed form, by the solids of
`primitives.py`; nothing here imports the project.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path

import lighthouse
import materials
import numpy as np
from common import look_at
from PIL import Image
from primitives import Box, Frustum, Primitive, Surface
from tracer import display

WIDTH, HEIGHT = 160, 120
FOCAL = 165.0  # [pixel]
LENS = {"k1": -0.12, "k2": 0.03, "p1": 0.001, "p2": -0.0015}
NOISE = 0.008  # standard deviation of a display value
SUN = np.array([0.5, -0.6, 0.75]) / np.linalg.norm([0.5, -0.6, 0.75])
TABLE = -0.82  # height of what the lighthouse stands on
GROUND = -1.5


def _chequered(size: float, dark: tuple[float, ...], pale: tuple[float, ...], fine: float) -> materials.Material:
    """Tiles of two colours with grain, by the two longest local axes."""

    def material(points: np.ndarray) -> Surface:
        cell = np.floor(points / size).astype(int)
        share = 0.6 * materials.hashed(*cell.T, 3) + 0.4 * materials.noise(points, fine, 5)
        return Surface(materials.mix(np.array(dark), np.array(pale), share))

    return material


def _lawn(points: np.ndarray) -> Surface:
    """Grass with patches, and flagstones about the middle."""
    share = 0.5 * materials.noise(points, 3.0, 1) + 0.5 * materials.noise(points, 0.7, 2)
    grass = materials.mix(np.array([0.05, 0.13, 0.03]), np.array([0.28, 0.34, 0.10]), share)
    cell = np.floor(points[:, :2] / 0.55).astype(int)
    stone = materials.mix(np.array([0.20, 0.18, 0.16]), np.array([0.50, 0.46, 0.40]), materials.hashed(*cell.T, 9))
    return Surface(np.where((np.hypot(points[:, 0], points[:, 1]) < 2.6)[:, None], stone, grass))


def _bush(points: np.ndarray) -> Surface:
    share = 0.5 * materials.noise(points, 2.2, 7) + 0.5 * materials.noise(points, 6.0, 8)
    return Surface(materials.mix(np.array([0.02, 0.07, 0.02]), np.array([0.22, 0.32, 0.10]), share))


@cache
def solids() -> tuple[Primitive, ...]:
    """The lighthouse on its table, hedges around, a house and a wall far off."""
    wood = materials.planks(0, 0.13, (0.24, 0.12, 0.05), (0.56, 0.34, 0.17))
    stone = _chequered(0.22, (0.22, 0.20, 0.18), (0.55, 0.50, 0.42), 9.0)
    brick = _chequered(0.6, (0.30, 0.10, 0.05), (0.72, 0.45, 0.28), 2.0)
    far: list[Primitive] = []
    for k in range(9):
        angle, away = 2 * np.pi * k / 9 + 0.2 * (k % 2), 7.0 + 3.0 * (k % 3)
        at = np.array([away * np.cos(angle), away * np.sin(angle), GROUND + 1.0 + 0.3 * (k % 2)])
        far.append(Frustum(_bush, at, bottom=1.1, top=0.5, half=1.0 + 0.3 * (k % 2)))
    return (
        *lighthouse.parts(),
        Box(wood, np.array([0, 0, TABLE - 0.06]), half=np.array([1.05, 0.95, 0.06])),
        Frustum(stone, np.array([0, 0, (GROUND + TABLE) / 2 - 0.06]), bottom=0.5, top=0.4, half=(TABLE - GROUND) / 2),
        *far,
        Box(brick, np.array([-13, 15, 1.0]), half=np.array([4, 3, 2.5])),
        Box(brick, np.array([16, 3, 0.2]), half=np.array([0.6, 9, 1.7])),
    )


def sky(directions: np.ndarray) -> np.ndarray:
    """Linear radiance of the sky: pale at the horizon, with clouds."""
    up = np.clip(directions[:, 2:], 0, 1)
    clear = np.array([0.75, 0.80, 0.85]) + (np.array([0.16, 0.34, 0.72]) - [0.75, 0.80, 0.85]) * np.sqrt(up)
    flat = directions / (up + 0.25)
    cloud = np.clip(2.5 * materials.noise(flat, 1.6, 11) + materials.noise(flat, 4.0, 12) - 1.9, 0, 0.8)[:, None]
    return clear * (1 - cloud) + 0.95 * cloud


def _met(eye: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance (n,) to what a ray meets first, and which solid, -1 the ground; infinite for the sky."""
    with np.errstate(divide="ignore"):
        depth = np.where(directions[:, 2] < 0, (GROUND - eye[..., 2]) / directions[:, 2], np.inf)
    which = np.full(len(directions), -1)
    for k, solid in enumerate(solids()):
        offset = solid.centre - eye
        along = np.einsum("...i,...i->...", directions, offset)
        near = (along > -solid.reach()) & ((offset**2).sum(-1) - along**2 < solid.reach() ** 2)
        some = np.flatnonzero(near)  # whose line passes its bounding sphere
        t = solid.hit(solid.local(np.broadcast_to(eye, directions.shape)[some]), directions[some] @ solid.axes.T)
        closer = t < depth[some]
        depth[some[closer]], which[some[closer]] = t[closer], k
    return depth, which


def trace(eye: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Linear radiance (n, 3) along unit directions (n, 3): sun, shadow, sky, and haze with distance."""
    depth, which = _met(eye, directions)
    light = sky(directions)
    hit = np.flatnonzero(np.isfinite(depth))
    points, owner = eye + depth[hit, None] * directions[hit], which[hit]
    normal, albedo = np.zeros_like(points), np.zeros_like(points)
    for k in np.unique(owner):
        mine = owner == k
        if k < 0:
            normal[mine], albedo[mine] = [0, 0, 1], _lawn(points[mine]).albedo
        else:
            solid = solids()[k]
            local = solid.local(points[mine])
            normal[mine], albedo[mine] = solid.normal(local) @ solid.axes, solid.material(local).albedo
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    shadow = np.isfinite(_met(points + 1e-3 * normal, np.broadcast_to(SUN, points.shape))[0])
    sun = np.clip(normal @ SUN, 0, 1) * ~shadow
    ambient = 0.45 + 0.2 * normal[:, 2]
    seen = albedo * (1.5 * sun[:, None] * [1.0, 0.95, 0.85] + ambient[:, None] * [0.85, 0.95, 1.1])
    haze = np.exp(-depth[hit, None] / 80)
    light[hit] = seen * haze + np.array([0.75, 0.80, 0.85]) * (1 - haze)
    return light


def directions_of(pose: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Unit world directions (n, 3) of places (u, v) [pixel], through the lens: its equation by fixed point."""
    x0, y0 = (u - WIDTH / 2) / FOCAL, (v - HEIGHT / 2) / FOCAL  # y down, as OpenCV has it
    x, y = x0, y0
    for _ in range(30):
        r2 = x * x + y * y
        radial = 1 + LENS["k1"] * r2 + LENS["k2"] * r2 * r2
        dx = 2 * LENS["p1"] * x * y + LENS["p2"] * (r2 + 2 * x * x)
        dy = LENS["p1"] * (r2 + 2 * y * y) + 2 * LENS["p2"] * x * y
        x, y = (x0 - dx) / radial, (y0 - dy) / radial
    local = np.stack([x, -y, -np.ones_like(x)], axis=1)
    return (local / np.linalg.norm(local, axis=1, keepdims=True)) @ pose[:3, :3].T


def poses(count: int, seed: int = 0) -> list[np.ndarray]:
    """Places of somebody who walks around the table and holds the telephone at two heights."""
    rng = np.random.default_rng([seed, 11])
    made = []
    for k in range(count):
        angle = 2 * np.pi * (k + 0.3 * rng.uniform()) / count
        away, height = rng.uniform(2.5, 2.9), (0.35 if k % 2 else 1.15) + rng.uniform(-0.1, 0.1)
        target = np.array([0, 0, -0.2]) + rng.uniform(-0.08, 0.08, 3)
        made.append(look_at(np.array([away * np.cos(angle), away * np.sin(angle), height]), target))
    return made


def exposures(count: int, seed: int = 0) -> np.ndarray:
    """Gains (count, 3) of the light in red, green and blue: up to half a stop either way, and a white balance."""
    rng = np.random.default_rng([seed, 12])
    return 2.0 ** rng.uniform(-0.5, 0.5, (count, 1)) * rng.uniform(0.94, 1.06, (count, 3))


def photograph(pose: np.ndarray, gains: np.ndarray, rng: np.random.Generator, samples: int = 2) -> np.ndarray:
    """One photograph (HEIGHT, WIDTH, 3) uint8 of so many rays a pixel and axis."""
    v, u, a, b = np.meshgrid(*map(np.arange, (HEIGHT, WIDTH, samples, samples)), indexing="ij")
    places = ((u + (a + 0.5) / samples).ravel(), (v + (b + 0.5) / samples).ravel())
    linear = trace(pose[:3, 3], directions_of(pose, *places))
    shown = display(gains * linear).reshape(HEIGHT, WIDTH, -1, 3).mean(2)
    return np.rint(255 * np.clip(shown + rng.normal(0, NOISE, shown.shape), 0, 1)).astype(np.uint8)


def write(folder: Path, count: int = 36, seed: int = 0, samples: int = 2) -> Path:
    """The set in a folder: images/0000.jpg and on, and transforms.json."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    frames, rng = [], np.random.default_rng([seed, 13])
    for k, (pose, gains) in enumerate(zip(poses(count, seed), exposures(count, seed), strict=True)):
        name = f"images/{k:04d}.jpg"
        Image.fromarray(photograph(pose, gains, rng, samples)).save(folder / name, quality=95, subsampling=0)
        frames.append({"file_path": name, "transform_matrix": pose.tolist()})
    how = {"camera_model": "OPENCV", "fl_x": FOCAL, "fl_y": FOCAL, "cx": WIDTH / 2, "cy": HEIGHT / 2}
    document = {**how, "w": WIDTH, "h": HEIGHT, **LENS, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(document, indent=1) + "\n")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("garden"), help="folder to write")
    parser.add_argument("--count", type=int, default=36, help="photographs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(write(options.out, options.count, options.seed))


if __name__ == "__main__":
    main()
