"""Pieces of a mesh: the largest connected ones, a part within a box, fewer faces."""

from __future__ import annotations

import numpy as np

from raymarch.meshing.libraries import connected_components, fast_simplification
from raymarch.meshing.marching import compact
from raymarch.volumes.mesh import face_normals


def largest_pieces(vertices: np.ndarray, faces: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` connected pieces of most area."""
    sparse = connected_components()
    ends = faces[:, [0, 1]].T
    third = faces[:, [1, 2]].T
    rows, columns = np.concatenate([ends, third], axis=1)
    joins = sparse.coo_matrix((np.ones(len(rows), bool), (rows, columns)), shape=(len(vertices),) * 2)
    pieces, of_vertex = sparse.csgraph.connected_components(joins, directed=False)
    of_face = of_vertex[faces[:, 0]]
    areas = np.bincount(of_face, np.linalg.norm(face_normals(vertices, faces), axis=1), pieces)
    kept = np.argsort(-areas, kind="stable")[:count]
    return compact(vertices, faces[np.isin(of_face, kept)])


def within(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The faces whose middles lie within a box (2, 3); where it cuts the mesh it is left open."""
    middle = vertices[faces].mean(1)
    return compact(vertices, faces[((middle >= box[0]) & (middle <= box[1])).all(1)])


def decimated(vertices: np.ndarray, faces: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mesh of about `count` faces by collapsing the edges that move it least (Garland and Heckbert 1997)."""
    if len(faces) <= count:
        return vertices, faces
    middle, size = vertices.mean(0), float(np.ptp(vertices, axis=0).max()) or 1.0
    unit = ((vertices - middle) / size).astype(np.float32)
    points, kept = fast_simplification().simplify(unit, faces.astype(np.int32), target_count=count)
    return compact(points.astype(float) * size + middle, kept.astype(np.int64))
