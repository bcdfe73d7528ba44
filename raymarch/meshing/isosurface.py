"""Isosurface of a volume as a mesh, or points on it, in the world of its cameras, coloured as it is seen."""

from __future__ import annotations

import logging

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.data.seen_colours import seen_colours
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import BOX
from raymarch.meshing.lattice import is_aligned, lattice_of
from raymarch.meshing.level import is_scalar, level_of
from raymarch.meshing.marching import surface_of
from raymarch.meshing.pieces import decimated, largest_pieces, within
from raymarch.system.resources import require_free
from raymarch.volumes.mesh import Mesh, face_normals, vertex_normals
from raymarch.volumes.volume import VOLUME, AnyVolume

log = logging.getLogger(__name__)

ISO, COUNT, FEWER = optional(number()), whole(1, 1 << 30), optional(whole(4, 1 << 30))
BYTES_OF_POINT = 300  # of memory while points are made


@checked(volume=VOLUME, iso=ISO, box=optional(BOX), largest=optional(COUNT), faces=FEWER)
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
        vertices, triangles = within(vertices, triangles, np.asarray(box))
    if largest is not None:
        vertices, triangles = largest_pieces(vertices, triangles, largest)
    if faces is not None:
        vertices, triangles = decimated(vertices, triangles, faces)
    if not len(triangles):
        raise RaymarchError(f"the surface of {level.value:g} is empty within the box; choose another box or iso")
    normals = vertex_normals(vertices, triangles)
    return Mesh(vertices, triangles, seen_colours(volume, vertices, -normals), normals)


@checked(volume=VOLUME, count=COUNT, iso=ISO, box=optional(BOX), largest=optional(COUNT), seed=whole(0, 2**31 - 1))
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
    require_free(count * BYTES_OF_POINT, f"{count:,} points", "take fewer")
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
