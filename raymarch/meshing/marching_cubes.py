"""Marching cubes over a lattice by scikit-image: closed at the lattice's border, faces outwards."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.system.resources import require_free
from raymarch.volumes.bricks import BRICK_SIDE, spread_bricks
from raymarch.volumes.volume import Volume

AXIS_TOLERANCE = 1e-9  # of the affine's largest number: what is less counts as 0


@dataclass(frozen=True, eq=False)
class Lattice:
    """Raw densities (x, y, z), and the place of each plane in index space, an array an axis."""

    raw: np.ndarray
    places: tuple[np.ndarray, ...]


def is_aligned(volume: Volume) -> bool:
    """Whether the volume's axes run along the world's, in any order and sense."""
    linear = np.abs(volume.world_from_index[:3, :3])
    there = linear > AXIS_TOLERANCE * linear.max()
    return bool((there.sum(0) == 1).all() and (there.sum(1) == 1).all())


def lattice_of(volume: Volume, box: np.ndarray | None) -> Lattice:
    """Lattice of one box's samples within a box (2, 3) of the world; all of it if None.

    Where the volume's axes run along the world's the lattice ends with the box, between samples, by interpolation; else
    it is the smallest that has all of the box.

    Raises RaymarchError for a box beside the volume.
    """
    top = np.array(volume.box_shape) - 1.0
    ends = np.stack([np.zeros(3), top])
    if box is not None:
        corners = np.stack(np.meshgrid(*box.T, indexing="ij"), -1).reshape(-1, 3)
        index_from_world = np.linalg.inv(volume.world_from_index)
        index = corners @ index_from_world[:3, :3].T + index_from_world[:3, 3]
        ends = np.stack([np.maximum(index.min(0), 0), np.minimum(index.max(0), top)])
        if not is_aligned(volume):
            ends = np.stack([np.floor(ends[0]), np.ceil(ends[1])])
        if not (ends[1] > ends[0]).all():
            lower, upper = (" ".join(f"{x:.4g}" for x in corner) for corner in volume.box)
            raise RaymarchError(f"box {box.tolist()} is beside the volume, whose box is {lower} to {upper}")
    if volume.bricks is not None:
        ends = _brick_bounds(volume, ends)
    first, last = np.floor(ends[0]).astype(int), np.ceil(ends[1]).astype(int)
    raw = _raw(volume, first, last)
    places = []
    for axis in range(3):
        place = np.arange(first[axis], last[axis] + 1, dtype=float)
        raw, place = _trim_ends(raw, place, axis, ends[0, axis], ends[1, axis])
        places.append(place)
    return Lattice(raw, tuple(places))


def _brick_bounds(volume: Volume, ends: np.ndarray) -> np.ndarray:
    """Bounds (2, 3) in index space of the bricks, with one empty sample beyond."""
    there = np.argwhere(volume.bricks.table[: -(-volume.box_shape[0] // BRICK_SIDE)] >= 0)  # type: ignore[union-attr]
    if not len(there):
        return ends
    low, high = BRICK_SIDE * there.min(0) - 1.0, BRICK_SIDE * (there.max(0) + 1.0)
    cut = np.stack([np.maximum(ends[0], low), np.minimum(ends[1], high)])
    return cut if (cut[1] > cut[0]).all() else ends


def _raw(volume: Volume, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Raw densities of samples from `first` to `last`, both included."""
    i, j, k = (slice(a, b + 1) for a, b in zip(first, last, strict=True))
    if volume.bricks is None:
        return volume.density[i, j, k]
    bricks, low = volume.bricks, first // BRICK_SIDE
    table = bricks.table[tuple(slice(a, b // BRICK_SIDE + 1) for a, b in zip(low, last, strict=True))]
    some = last + 1 - BRICK_SIDE * low
    whole = spread_bricks(table, bricks.density, some, volume.activation.empty)
    return whole[tuple(slice(a, None) for a in first - BRICK_SIDE * low)]


def _trim_ends(raw: np.ndarray, place: np.ndarray, axis: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples along an axis, with the first and last plane interpolated at `low` and `high`."""
    if low == place[0] and high == place[-1]:
        return raw, place
    moved = np.moveaxis(raw.astype(float), axis, 0)
    f, g = low - place[0], place[-1] - high
    first, last = moved[0] + f * (moved[1] - moved[0]), moved[-1] + g * (moved[-2] - moved[-1])
    moved = moved.copy()
    moved[0], moved[-1], place = first, last, place.copy()
    place[0], place[-1] = low, high
    return np.moveaxis(moved, 0, axis), place


INSTALL = 'pip install "raymarch[formats]"'


def _library(module: str, package: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise RaymarchError(f"{what} needs {package}, which is not installed; {INSTALL}") from None


def skimage_measure() -> ModuleType:
    """scikit-image's measures, of which marching cubes is one; RaymarchError where it is not installed."""
    return _library("skimage.measure", "scikit-image", "an isosurface")


def connected_components() -> ModuleType:
    """SciPy's graphs; RaymarchError where it is not installed."""
    return _library("scipy.sparse", "scipy", "the largest pieces of a mesh")


def fast_simplification() -> ModuleType:
    """Quadric decimation; RaymarchError where it is not installed."""
    return _library("fast_simplification", "fast-simplification", "decimation")


BORDER_VOXELS = 1e-3  # of a voxel: how far beyond the border the surface closes, so that no two of its vertices are one
MAX_BELOW_LEVEL = 1e30  # of that value: how far below the level a sample counts
LEVEL_OFFSET = 1e-4  # of the largest value above the level: what a sample on the level itself is taken as


def surface_of(volume: Volume, lattice: Lattice, raw: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (vertex, 3) in the world and faces (face, 3) of the surface where the raw density is `raw`.

    Lorensen and Cline 1987, in the form of Lewiner et al. 2003 that has no holes. What lies beyond the lattice counts
    as empty.
    """
    shape = [n + 2 for n in lattice.raw.shape]
    require_free(20 * math.prod(shape), f"a surface among {math.prod(shape):,} samples", "take a smaller box")
    raw = min(raw, float(lattice.raw.max()))  # the level of a sigma may be rounded to beyond the raw value that has it
    padded = np.full(shape, -1 / BORDER_VOXELS, np.float32)
    above = padded[1:-1, 1:-1, 1:-1]
    ends = float(lattice.raw.max()) - raw, raw - float(lattice.raw.min())
    span = ends[0] if ends[0] > 0 else ends[1]
    for out, values in zip(above, lattice.raw, strict=True):  # in f64: values may be far from 0, or all of them tiny
        out[...] = np.clip((values.astype(float) - raw) / span, -MAX_BELOW_LEVEL, MAX_BELOW_LEVEL)
    padded[padded == 0] = LEVEL_OFFSET
    found, faces, _, _ = skimage_measure().marching_cubes(padded, 0.0, gradient_direction="ascent")
    places = []
    for axis, place in enumerate(lattice.places):
        wide = np.concatenate([[place[0] - 1], place, [place[-1] + 1]])
        places.append(np.interp(found[:, axis].astype(float), np.arange(len(wide)), wide))
    affine = volume.world_from_index
    vertices = np.stack(places, axis=1) @ affine[:3, :3].T + affine[:3, 3]
    faces = faces.astype(np.int64)
    if np.linalg.det(affine[:3, :3]) < 0:
        faces = faces[:, ::-1]
    return join_vertices(vertices, faces)


def join_vertices(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mesh whose coincident vertices are merged, without faces of no area and without unused vertices."""
    places, number = np.unique(vertices, axis=0, return_inverse=True)
    faces = number.reshape(-1)[faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return drop_unused_vertices(places, faces)


def drop_unused_vertices(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mesh without unused vertices."""
    used, number = np.unique(faces, return_inverse=True)
    return vertices[used], number.reshape(faces.shape)
