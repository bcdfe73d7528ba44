"""Makes scenes/phantom: a scalar volume of nested materials on a sheared, anisotropic grid, with reference pictures.

Ellipsoids and a box that lie in each other, each of which adds a number to what is there: a shell like bone, soft
tissue with cavities and seeded lesions, a tilted bar of metal. What is `hard` has one value throughout, what is soft
fades to 0 at its edge with its slope; the integral along a line is known of both, so the X-rays here are no sums of
samples. Values are extinctions [1 / mm]; on the grid each is the mean over its voxel, as a scanner has it, rounded to
1e-4. The picture through a table is a sum over samples of the grid, at steps far below a voxel. Nothing here imports
the project.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import look_at

SHAPE = (84, 72, 50)
STEPS = np.array([[1.25, 0.2, 0.2], [0.1, 1.5, -0.15], [0.0, 0.1, 1.95]])  # columns: from sample to sample [mm]
PER_STORED = 1e-4  # [1 / mm] of a stored 1
SUBSAMPLES = 4  # an axis of a voxel, of its mean
SIZE = 96  # of the X-rays [pixel]
TABLE_SIZE = 48  # of the picture through the table
STEP = 0.05  # of its samples [mm]
CAMERAS = {
    "pinhole": {"position": (60.0, -210.0, 70.0), "target": (0.0, 0.0, 0.0), "fov": 0.5},
    "orthographic": {"position": (-150.0, -90.0, 60.0), "target": (0.0, 0.0, 0.0), "size": 110.0},
}
TABLE = {
    "values": [0.0, 0.008, 0.016, 0.021, 0.027, 0.036, 0.046, 0.06, 0.09],
    "colours": [
        [0, 0, 0], [0.5, 0.1, 0.1], [0.8, 0.4, 0.35], [0.8, 0.4, 0.35], [1, 0.55, 0.1], [0.9, 0.85, 0.7], [1, 1, 0.95],
        [0.4, 0.7, 1], [0.3, 0.6, 1],
    ],
    "opacities": [0.0, 0.0, 0.006, 0.006, 0.12, 0.02, 0.05, 0.4, 0.9],
    "unit_length": 3.0,
}  # fmt: skip


def rotation(axis: tuple[float, float, float], degrees: float) -> np.ndarray:
    """(3, 3) rotation about an axis (Rodrigues)."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross, angle = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]), np.deg2rad(degrees)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


@dataclass(frozen=True)
class Solid:
    """An ellipsoid or box: where it lies, how it is turned, half its sides [mm], what it adds [1 / mm]."""

    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    adds: float
    turn: np.ndarray
    kind: str = "hard"

    def own(self, vectors: np.ndarray, at: bool) -> np.ndarray:
        """Vectors (..., 3) in the solid's axes, where it is of size 1; places if `at`."""
        return ((vectors - np.array(self.centre)) if at else vectors) @ self.turn / np.array(self.half)

    def value(self, points: np.ndarray) -> np.ndarray:
        """What it adds (...) at points (..., 3)."""
        p = self.own(points, True)
        if self.kind == "bar":
            return self.adds * (np.abs(p) <= 1).all(-1)
        inside = 1 - np.square(p).sum(-1)
        return self.adds * (inside >= 0 if self.kind == "hard" else np.maximum(inside, 0) ** 2)

    def integral(self, origin: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Integral (n,) of what it adds along rays (n, 3) that begin outside, directions of length 1."""
        o, d = self.own(origin, True), self.own(direction, False)
        if self.kind == "bar":
            with np.errstate(divide="ignore"):
                faces = np.stack([(-1 - o) / d, (1 - o) / d])
            return self.adds * np.maximum(faces.max(0).min(1) - np.maximum(faces.min(0).max(1), 0), 0)
        square, along = (d * d).sum(1), (o * d).sum(1)
        nearest = np.maximum(1 - ((o * o).sum(1) - along**2 / square), 0)  # 1 - distance^2 of the line from the middle
        if self.kind == "hard":
            return self.adds * 2 * np.sqrt(nearest / square)
        return self.adds * 16 / 15 * nearest**2.5 / np.sqrt(square)  # of (nearest - u^2)^2 by u


def solids(seed: int = 0) -> list[Solid]:
    """The phantom, from the outside in."""
    rng, plain = np.random.default_rng([seed, 5]), np.eye(3)
    made = [
        Solid((0, 0, 0), (40, 45, 39), 0.045, plain),  # bone
        Solid((0, -1, -1), (36, 41, 35), -0.025, plain),  # soft tissue within
        Solid((-11, 4, 6), (5, 15, 8), -0.018, rotation((0, 0, 1), 18)),  # cavities
        Solid((11, 4, 6), (6, 18, 9), -0.018, rotation((0, 0, 1), -18)),
        Solid((0, -26, -8), (9, 7, 7), -0.02, rotation((1, 0, 0), 25)),
        Solid((0, 14, -12), (17, 12, 10), 0.012, rotation((0, 1, 0), 10), "soft"),
        Solid((16, -14, -14), (2.6, 2.6, 15), 0.06, rotation((1, 1, 0.2), 55), "bar"),
    ]
    for _ in range(6):
        place = rng.uniform((-22, -25, -20), (22, 25, 20))
        turn = rotation(tuple(rng.normal(size=3)), rng.uniform(0, 180))
        made.append(Solid(tuple(place), tuple(rng.uniform(2.5, 6, 3)), rng.uniform(0.004, 0.014), turn, "soft"))
    return made


def placed(shape: tuple[int, int, int], finer: float = 1.0) -> np.ndarray:
    """world_from_index (4, 4) of a grid about the origin, `finer` times as fine as the shipped one."""
    affine = np.eye(4)
    affine[:3, :3] = STEPS / finer
    affine[:3, 3] = -affine[:3, :3] @ (np.array(shape) - 1) / 2
    return affine


def sampled(made: list[Solid], shape: tuple[int, int, int], affine: np.ndarray, subsamples: int) -> np.ndarray:
    """Values (x, y, z) [1 / mm]: means over voxels by so many places an axis; 1 takes the samples' own places."""
    offsets = (np.arange(subsamples) + 0.5) / subsamples - 0.5
    out = np.zeros(shape)
    for i in range(shape[0]):
        index = np.stack(np.meshgrid([i], *map(np.arange, shape[1:]), indexing="ij"), -1).astype(float)
        for offset in np.stack(np.meshgrid(offsets, offsets, offsets, indexing="ij"), -1).reshape(-1, 3):
            points = (index + offset) @ affine[:3, :3].T + affine[:3, 3]
            out[i] += sum(solid.value(points) for solid in made)[0]
    return out / subsamples**3


def rays(camera: dict, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """world_from_camera (4, 4), and origins and unit directions (size * size, 3) through pixel centres, row by row."""
    pose = look_at(np.array(camera["position"]), np.array(camera["target"]))
    v, u = np.divmod(np.arange(size * size), size)
    x, y = (u + 0.5) / size * 2 - 1, 1 - (v + 0.5) / size * 2
    right, up, backward = pose[:3, :3].T
    if "size" in camera:
        half = camera["size"] / 2
        origin = pose[:3, 3] + half * (x[:, None] * right + y[:, None] * up)
        return pose, origin, np.broadcast_to(-backward, origin.shape)
    tangent = np.tan(camera["fov"] / 2)
    direction = tangent * (x[:, None] * right + y[:, None] * up) - backward
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return pose, np.broadcast_to(pose[:3, 3], direction.shape), direction


def xray(made: list[Solid], camera: dict, size: int) -> np.ndarray:
    """Line integrals (size, size) of the solids, in closed form."""
    _, origin, direction = rays(camera, size)
    return sum(solid.integral(origin, direction) for solid in made).reshape(size, size)


def trilinear(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Values (n,) between samples at index-space places (n, 3) within the grid."""
    low = np.clip(np.floor(index).astype(int), 0, np.array(values.shape) - 2)
    f, total = index - low, 0.0
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(np.array(corner) == 1, f, 1 - f), axis=1)
        total = total + weight * values[tuple((low + corner).T)]
    return total


def through_table(values: np.ndarray, affine: np.ndarray, camera: dict, size: int, step: float) -> np.ndarray:
    """Picture (size, size, 4) of a grid through `TABLE`: colour over black, and opacity.

    Samples are in the middle of steps; a value is interpolated first and classified then, and an opacity is that over
    `unit_length`.
    """
    _, origin, direction = rays(camera, size)
    index_from_world = np.linalg.inv(affine)
    o = origin @ index_from_world[:3, :3].T + index_from_world[:3, 3]
    d = direction @ index_from_world[:3, :3].T
    with np.errstate(divide="ignore"):
        faces = np.stack([-o / d, (np.array(values.shape) - 1 - o) / d])
    near, far = np.maximum(faces.min(0).max(1), 0), faces.max(0).min(1)
    light, T = np.zeros((len(o), 3)), np.ones(len(o))
    knots, columns = np.array(TABLE["values"]), np.column_stack([TABLE["colours"], TABLE["opacities"]])
    for k in range(int(np.ceil(np.maximum(far - near, 0).max() / step))):
        begin = near + k * step
        on = np.flatnonzero(begin < far)
        width = np.minimum(step, far[on] - begin[on])
        found = trilinear(values, o[on] + (begin[on] + width / 2)[:, None] * d[on])
        rgba = np.stack([np.interp(found, knots, column) for column in columns.T], axis=1)
        passed = (1 - rgba[:, 3]) ** (width / TABLE["unit_length"])
        light[on] += (T[on] * (1 - passed))[:, None] * rgba[:, :3]
        T[on] *= passed
    return np.column_stack([light, 1 - T]).reshape(size, size, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "phantom", help="folder to write")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    made, affine = solids(options.seed), placed(SHAPE)
    stored = np.rint(sampled(made, SHAPE, affine, SUBSAMPLES) / PER_STORED).astype(np.int16)
    about = {"world_from_index": affine, "slope": PER_STORED, "intercept": 0.0}
    words = {"unit": "1/mm", "length_unit": "mm", "name": "phantom"}
    np.savez_compressed(options.out / "phantom.npz", values=stored, **about, **words)
    pictures = {name: xray(made, camera, SIZE).astype(np.float32) for name, camera in CAMERAS.items()}
    seen = through_table(stored * PER_STORED, affine, CAMERAS["pinhole"], TABLE_SIZE, STEP).astype(np.float32)
    np.savez_compressed(options.out / "pictures.npz", table=seen, **{f"xray_{k}": v for k, v in pictures.items()})
    cameras = {name: {**camera, "world_from_camera": rays(camera, 1)[0].tolist()} for name, camera in CAMERAS.items()}
    (options.out / "cameras.json").write_text(json.dumps(cameras, indent=1) + "\n")
    (options.out / "table.json").write_text(json.dumps(TABLE) + "\n")


if __name__ == "__main__":
    main()
