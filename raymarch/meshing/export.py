"""Export of a volume's isosurface to a mesh file in one call."""

from __future__ import annotations

import os

from raymarch.arguments import checks
from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.geometry.pose import BOX
from raymarch.io.meshes.mesh_file import require_mesh_file, write_mesh
from raymarch.meshing.isosurface import COUNT, FEWER, ISO, isosurface_mesh, surface_points
from raymarch.volumes.mesh import Mesh
from raymarch.volumes.volume import VOLUME, Volume


@checked(
    volume=VOLUME, path=checks.path, iso=ISO, box=optional(BOX), largest=optional(COUNT), faces=FEWER,
    points=optional(COUNT), overwrite=checks.flag,
)  # fmt: skip
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
