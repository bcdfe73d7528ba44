"""Mesh files: PLY, OBJ, GLB and STL, written by trimesh."""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.declared import checked
from raymarch.data.display_values import eight_bit, linear_of_srgb
from raymarch.data.mesh import MESH, Mesh
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import replacing, require_writable
from raymarch.io.files.ours import require_ours

log = logging.getLogger(__name__)

INSTALL = 'pip install "raymarch[formats]"'
FORMATS = ("ply", "obj", "glb", "stl")
OF_POINTS = ("ply", "glb")
MARK = b"raymarch"  # in the first bytes of what we write
HEAD = 4096


@checked(mesh=MESH, path=checks.path, overwrite=checks.flag)
def write_mesh(mesh: Mesh, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Mesh written to a file in one step, by its suffix: .ply, .obj, .glb or .stl; a cloud of points .ply or .glb.

    Coordinates are the world's, in single precision but for OBJ. Colours are display values of 8 bits, in GLB 8 bits of
    linear light, as its readers take them, which tells dark ones less well apart. STL has none. Needs trimesh:
    `pip install "raymarch[formats]"`.

    Args:
        mesh: an `rm.Mesh`.
        path: of the file.
        overwrite: whether a file may be replaced that raymarch did not write.

    Raises RaymarchError for another suffix, an existing file of others, a disk that refuses, a missing library.

    Example:
        >>> corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
        >>> write_mesh(Mesh(corners, [(0, 1, 2)], np.ones((3, 3)), [(0, 0, 1)] * 3), "corner.ply")
    """
    kind = require_mesh_file(path, points=not len(mesh.faces), overwrite=overwrite)
    if kind == "stl":
        log.warning("%s: STL has no colours; .ply, .obj and .glb have", path)
    content = _bytes(mesh, kind)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def require_mesh_file(path: str | os.PathLike[str], *, points: bool = False, overwrite: bool = False) -> str:
    """Format of a mesh file by its suffix; RaymarchError where it is none, or could not be written."""
    kind, able = Path(path).suffix.lower().removeprefix("."), OF_POINTS if points else FORMATS
    if kind not in able:
        names = ", ".join(f".{name}" for name in able)
        what = "a cloud of points is" if points and kind in FORMATS else "meshes are"
        raise RaymarchError(f"{path}: {what} written as {names}; end the name in one of them")
    require_ours([path], "mesh", _is_ours, overwrite)
    require_writable(path)
    _library()
    return kind


def _library() -> ModuleType:
    """trimesh; RaymarchError where it is not installed."""
    try:
        import trimesh
    except ImportError:
        raise RaymarchError(f"writing a mesh needs trimesh, which is not installed; {INSTALL}") from None
    return trimesh


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK in file.read(HEAD)


def _bytes(mesh: Mesh, kind: str) -> bytes:
    """Content of a file."""
    trimesh = _library()
    shown = linear_of_srgb(mesh.colours) if kind == "glb" else mesh.colours  # glTF 2.0, 3.7.2.1: COLOR_0 is linear
    colours = np.concatenate([eight_bit(shown), np.full((len(shown), 1), 255, np.uint8)], axis=1)
    made = trimesh.Trimesh(mesh.vertices, mesh.faces, vertex_normals=mesh.normals, vertex_colors=colours, process=False)
    content: Any
    if kind == "glb":
        part = made if len(mesh.faces) else trimesh.PointCloud(mesh.vertices, colors=colours)
        content = trimesh.Scene([part]).export(file_type=kind, include_normals=True, tree_postprocessor=_sign)
    elif kind == "ply":
        content = made.export(file_type=kind, vertex_normal=True)
    elif kind == "obj":
        content = made.export(file_type=kind, header=None, include_normals=True, digits=_digits(mesh.vertices))
    else:
        content = made.export(file_type=kind)
    return _marked(content.encode() if isinstance(content, str) else content, kind)


def _digits(vertices: np.ndarray) -> int:
    """Digits behind the point of an OBJ, which knows no exponents: eight of the mesh's size."""
    size = float(np.ptp(vertices, axis=0).max())
    return 8 if size == 0 else max(8, 8 - math.floor(math.log10(size)))


def _sign(tree: dict[str, Any]) -> None:
    """Our name in the header of a GLB."""
    tree["asset"]["generator"] = "raymarch, by trimesh"


def _marked(content: bytes, kind: str) -> bytes:
    """Content with our name where its format has room for words."""
    if kind == "ply":
        first, rest = content.split(b"\n", 2)[:2], content.split(b"\n", 2)[2]
        return b"\n".join([*first, b"comment made by raymarch", rest])
    if kind == "obj":
        return b"# made by raymarch\n" + content
    if kind == "stl":
        return b"binary STL of raymarch".ljust(80, b" ") + content[80:]
    return content
