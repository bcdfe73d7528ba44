"""Marching cubes over a lattice by scikit-image: closed at the lattice's border, faces outwards."""

from __future__ import annotations

import math

import numpy as np

from raymarch.meshing.lattice import Lattice
from raymarch.meshing.libraries import skimage_measure
from raymarch.system.resources import require_free
from raymarch.volumes.volume import Volume

BORDER = 1e-3  # of a voxel: how far beyond the border the surface closes, so that no two of its vertices are one
MOST = 1e30  # of that value: how far below the level a sample counts
NONE = 1e-4  # of the largest value above the level: what a sample on the level itself is taken as


def surface_of(volume: Volume, lattice: Lattice, raw: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (vertex, 3) in the world and faces (face, 3) of the surface where the raw density is `raw`.

    Lorensen and Cline 1987, in the form of Lewiner et al. 2003 that has no holes. What lies beyond the lattice counts
    as empty.
    """
    shape = [n + 2 for n in lattice.raw.shape]
    require_free(20 * math.prod(shape), f"a surface among {math.prod(shape):,} samples", "take a smaller box")
    raw = min(raw, float(lattice.raw.max()))  # the level of a sigma may be rounded to beyond the raw value that has it
    padded = np.full(shape, -1 / BORDER, np.float32)
    above = padded[1:-1, 1:-1, 1:-1]
    ends = float(lattice.raw.max()) - raw, raw - float(lattice.raw.min())
    span = ends[0] if ends[0] > 0 else ends[1]
    for out, values in zip(above, lattice.raw, strict=True):  # in f64: values may be far from 0, or all of them tiny
        out[...] = np.clip((values.astype(float) - raw) / span, -MOST, MOST)
    padded[padded == 0] = NONE
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
    return joined(vertices, faces)


def joined(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mesh with vertices at one place made one, and without the faces that this leaves no area, nor lone vertices."""
    places, number = np.unique(vertices, axis=0, return_inverse=True)
    faces = number.reshape(-1)[faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return compact(places, faces)


def compact(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mesh without the vertices that no face has."""
    used, number = np.unique(faces, return_inverse=True)
    return vertices[used], number.reshape(faces.shape)
