"""Isosurface of a volume as a mesh, or points on it, in the world of its cameras, coloured as it is seen."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import Numbers, number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, distinct_figures
from raymarch.geometry.boxes import BOX
from raymarch.io.meshes.mesh_file import require_mesh_file, write_mesh
from raymarch.meshing.marching_cubes import (
    connected_components,
    drop_unused_vertices,
    fast_simplification,
    is_aligned,
    lattice_of,
    surface_of,
)
from raymarch.system.resources import require_free
from raymarch.volumes.mesh import Mesh, face_normals, vertex_normals
from raymarch.volumes.surface_value import default_level, is_scalar
from raymarch.volumes.volume import SHOWN_VOLUME, AnyVolume, Volume, seen_colours


@dataclass(frozen=True)
class Level:
    """Level of an isosurface.

    Attributes:
        value: in the volume's own terms: sigma [1/world unit], or the number itself where the activation is "identity".
        raw: the raw density there; the trilinear field of raw densities has the surface where the march has it.
        words: how the value was chosen.
    """

    value: float
    raw: float
    words: str


def level_of(volume: Volume, iso: float | None, values: tuple[float, float]) -> Level:
    """Level of a value, or of `default_level`; RaymarchError where no sample is on one of its sides.

    `values` are the least and greatest value there are.
    """
    found = default_level(volume, values) if iso is None else (float(iso), "asked for")
    value, words = found
    unit = "" if is_scalar(volume) else " [1/world unit]"
    low, high = values
    if low == high:
        raise RaymarchError(f"values are all {low:.6g}{unit}, so there is no surface; check the file")
    shown, least, most = distinct_figures(value, low, high)
    if not low < value <= high:
        raise RaymarchError(
            f"iso is {shown}{unit}, where values are from {least} to {most}: the surface is empty; choose one"
            " between them"
        )
    return Level(value, float(volume.activation.raw(value)), words)


def largest_pieces(vertices: np.ndarray, faces: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` connected pieces with the largest areas."""
    sparse = connected_components()
    ends = faces[:, [0, 1]].T
    third = faces[:, [1, 2]].T
    rows, columns = np.concatenate([ends, third], axis=1)
    joins = sparse.coo_matrix((np.ones(len(rows), bool), (rows, columns)), shape=(len(vertices),) * 2)
    pieces, of_vertex = sparse.csgraph.connected_components(joins, directed=False)
    of_face = of_vertex[faces[:, 0]]
    areas = np.bincount(of_face, np.linalg.norm(face_normals(vertices, faces), axis=1), pieces)
    kept = np.argsort(-areas, kind="stable")[:count]
    return drop_unused_vertices(vertices, faces[np.isin(of_face, kept)])


def crop_faces(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The faces whose centroids lie in a box (2, 3). The mesh stays open where the box cuts it."""
    middle = vertices[faces].mean(1)
    return drop_unused_vertices(vertices, faces[((middle >= box[0]) & (middle <= box[1])).all(1)])


def decimate(vertices: np.ndarray, faces: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mesh of about `count` faces by collapsing the edges that move it least (Garland and Heckbert 1997)."""
    if len(faces) <= count:
        return vertices, faces
    middle, size = vertices.mean(0), float(np.ptp(vertices, axis=0).max()) or 1.0
    unit = ((vertices - middle) / size).astype(np.float32)
    points, kept = fast_simplification().simplify(unit, faces.astype(np.int32), target_count=count)
    return drop_unused_vertices(points.astype(float) * size + middle, kept.astype(np.int64))


log = logging.getLogger(__name__)

ISO, COUNT, FACE_COUNT = optional(number()), whole(1, 1 << 30), optional(whole(4, 1 << 30))
BYTES_A_POINT = 300  # of memory while points are made


@checked(volume=SHOWN_VOLUME, iso=ISO, box=optional(BOX), largest=optional(COUNT), faces=FACE_COUNT)
def isosurface_mesh(
    volume: AnyVolume,
    iso: float | None = None,
    *,
    box: Numbers | None = None,
    largest: int | None = None,
    faces: int | None = None,
) -> Mesh:
    """Mesh of the surface where a volume has one value, in world coordinates, which are those of its cameras.

    Marching cubes over the raw densities, whose trilinear field is what is marched. It closes at the border of the
    volume, so that what is inside is enclosed. Vertices have the volume's colour, its harmonics seen from outside along
    the normal. Needs scikit-image: `pip install "raymarch[formats]"`.

    Args:
        volume: dense or in bricks; of nested boxes the innermost.
        iso: sigma [1/world unit], or the number itself where the density activation is "identity". If not given, of
            sigma that at which two voxels take half of the light, else Otsu's threshold; the log says which.
        box: lower and upper corner (2, 3) [world unit] of the part wanted. Where the volume's axes run along the
            world's the mesh is cut and closed there; else faces beyond are left out, and it is open.
        largest: how many connected pieces to keep, those of most area; all if not given.
        faces: about how many faces to keep (quadric decimation); all if not given.

    Raises RaymarchError for an empty surface, with the range of values; for a volume in NDC; for a missing library.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * np.clip(8 - 10 * np.linalg.norm(p, axis=-1), 0, 1))
        >>> mesh = isosurface_mesh(ball, iso=4.5)
        >>> mesh.closed, bool(abs(np.linalg.norm(mesh.vertices, axis=1) - 0.75).max() < 0.01)
        (True, True)
    """
    if volume.ndc_from_world is not None:
        raise RaymarchError("volume lies in NDC, which have no voxels in the world; a surface of it is not made")
    if volume.boxes > 1:
        log.warning("the surface is that of the innermost of %d nested boxes", volume.boxes)
        volume = volume.nested(0)
    lattice = lattice_of(volume, box)
    low, high = volume.activation.sigma(np.array([lattice.raw.min(), lattice.raw.max()]))
    level = level_of(volume, iso, (float(low), float(high)))
    if iso is None:
        unit = "" if is_scalar(volume) else " [1/world unit]"
        log.warning("the surface is where the value is %.6g%s, %s", level.value, unit, level.words)
    vertices, triangles = surface_of(volume, lattice, level.raw)
    if box is not None and not is_aligned(volume):
        log.warning("the volume's axes do not run along the world's, so the mesh is open where the box cuts it")
        vertices, triangles = crop_faces(vertices, triangles, np.asarray(box))
    if largest is not None:
        vertices, triangles = largest_pieces(vertices, triangles, largest)
    if faces is not None:
        vertices, triangles = decimate(vertices, triangles, faces)
    if not len(triangles):
        raise RaymarchError(f"the surface of {level.value:g} is empty within the box; choose another box or iso")
    normals = vertex_normals(vertices, triangles)
    return Mesh(vertices, triangles, seen_colours(volume, vertices, -normals), normals)


@checked(
    volume=SHOWN_VOLUME, count=COUNT, iso=ISO, box=optional(BOX), largest=optional(COUNT), seed=whole(0, 2**31 - 1)
)
def surface_points(
    volume: AnyVolume,
    count: int,
    iso: float | None = None,
    *,
    box: Numbers | None = None,
    largest: int | None = None,
    seed: int = 0,
) -> Mesh:
    """Point cloud on the surface where a volume has one value: `count` places, evenly by area, with colour and normal.

    Args:
        volume, iso, box, largest: as of `isosurface_mesh`.
        count: of points.
        seed: of the choice of places.

    Returns a Mesh without faces. Raises RaymarchError as `isosurface_mesh` does.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * np.clip(8 - 10 * np.linalg.norm(p, axis=-1), 0, 1))
        >>> surface_points(ball, 1000, iso=4.5)
        Mesh(1,000 points)
    """
    require_free(count * BYTES_A_POINT, f"{count:,} points", "take fewer")
    mesh, rng = isosurface_mesh(volume, iso, box=box, largest=largest), np.random.default_rng(seed)
    if volume.boxes > 1:
        volume = volume.nested(0)
    area = np.linalg.norm(face_normals(mesh.vertices, mesh.faces), axis=1)
    ends = np.cumsum(area)
    at = (np.arange(count) + rng.random(count)) / count * ends[-1]
    chosen = np.minimum(np.searchsorted(ends, at, "right"), len(area) - 1)
    u, v = rng.random((2, count))
    u, v = np.where(u + v > 1, (1 - u, 1 - v), (u, v))
    weights = np.stack([1 - u - v, u, v], axis=1)[:, :, None]
    corners = mesh.faces[chosen]
    points = (weights * mesh.vertices[corners]).sum(1)
    normals = (weights * mesh.normals[corners]).sum(1)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.where(length > 0, normals / np.where(length > 0, length, 1), mesh.normals[corners[:, 0]])
    return Mesh(points, np.zeros((0, 3), int), seen_colours(volume, points, -normals), normals)


@checked(
    volume=SHOWN_VOLUME,
    path=checks.path,
    iso=ISO,
    box=optional(BOX),
    largest=optional(COUNT),
    faces=FACE_COUNT,
    points=optional(COUNT),
    overwrite=checks.flag,
)
def export_mesh(
    volume: Volume,
    path: str | os.PathLike[str],
    iso: float | None = None,
    *,
    box: Numbers | None = None,
    largest: int | None = None,
    faces: int | None = None,
    points: int | None = None,
    overwrite: bool = False,
) -> Mesh:
    """Isosurface of a volume written to a mesh file, .ply, .obj, .glb or .stl, and returned.

    Args:
        volume, iso, box, largest, faces: as of `isosurface_mesh`.
        path: of the file, whose suffix says the format.
        points: so many points on the surface in place of a mesh, to .ply or .glb.
        overwrite: whether a file may be replaced that raymarch did not write.

    The mesh returned is in the world's coordinates. So is what is in the file, unless the log says that an STL far from
    the origin was moved; see `write_mesh`.

    Raises RaymarchError as `isosurface_mesh` and `write_mesh` do; the file is looked at before the work is done.

    Example:
        >>> import numpy as np
        >>> ball = Volume.from_function(lambda p: 9.0 * np.clip(8 - 10 * np.linalg.norm(p, axis=-1), 0, 1))
        >>> export_mesh(ball, "ball.ply", iso=4.5).closed
        True
    """
    require_mesh_file(path, points=points is not None, overwrite=overwrite)
    if points is None:
        mesh = isosurface_mesh(volume, iso, box=box, largest=largest, faces=faces)
    else:
        mesh = surface_points(volume, points, iso, box=box, largest=largest)
    write_mesh(mesh, path, overwrite)
    return mesh
