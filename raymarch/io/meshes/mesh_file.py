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
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import replace_file, require_writable
from raymarch.io.files.authorship import require_ours
from raymarch.views.display_values import eight_bit, linear_of_srgb
from raymarch.volumes.mesh import MESH, Mesh

log = logging.getLogger(__name__)

INSTALL = 'pip install "raymarch[formats]"'
FORMATS = ("ply", "obj", "glb", "stl")
POINT_FORMATS = ("ply", "glb")
MADE_BY = b"raymarch"  # in the first bytes of what we write
HEAD_BYTES = 4096
# of a usual edge: rounding by more joins vertices, which lie a thousandth of a voxel apart here and there
MAX_HARMLESS_ROUNDING = 1e-5
MIN_ROUNDING_RATIO = 4.0  # times the rounding near the origin, from which on a mesh counts as far from it


@checked(mesh=MESH, path=checks.path, overwrite=checks.flag)
def write_mesh(mesh: Mesh, path: str | os.PathLike[str], overwrite: bool = False) -> np.ndarray:
    """Mesh written to a file in one step, by its suffix: .ply, .obj, .glb or .stl; a cloud of points .ply or .glb.

    Coordinates are the world's. Far from the origin, where single precision would pull vertices together, PLY has
    doubles, as OBJ's text always has enough digits; GLB keeps its vertices near the origin and puts the offset into the
    node's translation; STL, which has no place for one, is written moved, and the log says by how much. Colours are
    display values of 8 bits, in GLB 8 bits of linear light, as its readers take them, which tells dark ones less well
    apart. STL has none. Needs trimesh: `pip install "raymarch[formats]"`.

    Args:
        mesh: an `rm.Mesh`.
        path: of the file.
        overwrite: whether a file may be replaced that raymarch did not write.

    Returns the offset (3,) that brings the file's coordinates to the world's by addition [world unit]: 0 but for an STL
    that was moved.

    Raises RaymarchError for another suffix, an existing file of others, a disk that refuses, a missing library.

    Example:
        >>> corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
        >>> write_mesh(Mesh(corners, [(0, 1, 2)], np.ones((3, 3)), [(0, 0, 1)] * 3), "corner.ply").tolist()
        [0.0, 0.0, 0.0]
    """
    kind = require_mesh_file(path, points=not len(mesh.faces), overwrite=overwrite)
    if kind == "stl":
        log.warning("%s: STL has no colours; .ply, .obj and .glb have", path)
    offset = offset_of(mesh)
    content = _bytes(mesh, kind, offset)
    with replace_file(path) as temporary:
        temporary.write_bytes(content)
    if kind not in ("stl", "glb") or not offset.any():
        return np.zeros(3)
    words = " ".join(map(repr, offset.tolist()))
    if kind == "glb":
        log.warning(
            "%s: vertices lie about the origin; the node's translation, %s, puts them in the world", path, words
        )
        return np.zeros(3)
    rounding = _rounding(mesh.vertices)
    log.warning(
        "%s: STL has single precision, good to %.2g so far from the origin; written moved, add %s for the world's"
        " coordinates, or take .ply, which has doubles",
        path,
        rounding,
        words,
    )
    return offset


def offset_of(mesh: Mesh) -> np.ndarray:
    """Offset (3,) of a mesh so far from the origin that single precision would harm it: about its centre, in few
    digits; 0 where single precision does.

    Example:
        >>> corners = np.array([(5400000, 0, 0), (5400000.25, 0, 0), (5400000, 0.5, 0)])
        >>> offset_of(Mesh(corners, [(0, 1, 2)], np.ones((3, 3)), [(0, 0, 1)] * 3)).tolist()
        [5400000.12, 0.25, 0.0]
    """
    vertices = mesh.vertices
    size = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
    if size == 0:
        return np.zeros(3)
    offset = np.round(mesh.box.mean(0), 0 if size >= 10 else 1 - math.floor(math.log10(size)) if size < 1 else 1)
    a, b = (vertices[mesh.faces[:, i]] for i in (0, 1))
    edge = float(np.median(np.linalg.norm(b - a, axis=1))) if len(mesh.faces) else size / math.sqrt(len(vertices))
    rounding = _rounding(vertices)
    harmed = rounding > MAX_HARMLESS_ROUNDING * edge and rounding > MIN_ROUNDING_RATIO * _rounding(vertices - offset)
    return offset if harmed else np.zeros(3)


def _rounding(vertices: np.ndarray) -> float:
    """Rounding of coordinates to single precision, at most [world unit]."""
    return float(np.spacing(np.abs(vertices).max().astype(np.float32)) / 2)


def require_mesh_file(path: str | os.PathLike[str], *, points: bool = False, overwrite: bool = False) -> str:
    """Format of a mesh file by its suffix; RaymarchError where it is none, or could not be written."""
    kind, able = Path(path).suffix.lower().removeprefix("."), POINT_FORMATS if points else FORMATS
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
        return MADE_BY in file.read(HEAD_BYTES)


def _bytes(mesh: Mesh, kind: str, offset: np.ndarray) -> bytes:
    """Content of a file; `offset` as of `offset_of`."""
    trimesh = _library()
    shown = linear_of_srgb(mesh.colours) if kind == "glb" else mesh.colours  # glTF 2.0, 3.7.2.1: COLOR_0 is linear
    colours = np.concatenate([eight_bit(shown), np.full((len(shown), 1), 255, np.uint8)], axis=1)
    if kind == "ply":
        return _ply(mesh, colours, "f8" if offset.any() else "f4")
    vertices = mesh.vertices - offset if kind in ("glb", "stl") else mesh.vertices
    made = trimesh.Trimesh(vertices, mesh.faces, vertex_normals=mesh.normals, vertex_colors=colours, process=False)
    content: Any
    if kind == "glb":
        part = made if len(mesh.faces) else trimesh.PointCloud(vertices, colors=colours)

        def placed(tree: dict[str, Any]) -> None:
            tree["asset"]["generator"] = "raymarch, by trimesh"
            for node in tree["nodes"]:
                if "mesh" in node and offset.any():
                    node["translation"] = offset.tolist()

        content = trimesh.Scene([part]).export(file_type=kind, include_normals=True, tree_postprocessor=placed)
    elif kind == "obj":
        content = made.export(file_type=kind, header=None, include_normals=True, digits=_digits(mesh.vertices))
    else:
        content = made.export(file_type=kind)
    return _mark_content(content.encode() if isinstance(content, str) else content, kind, offset)


def _ply(mesh: Mesh, colours: np.ndarray, place: str) -> bytes:
    """Binary PLY, with coordinates of type `place`, "f4" or "f8"."""
    names = {"f4": "float", "f8": "double"}
    fields = [(axis, f"<{place}") for axis in "xyz"] + [(f"n{axis}", "<f4") for axis in "xyz"]
    fields += [(channel, "u1") for channel in ("red", "green", "blue", "alpha")]
    rows = np.empty(len(mesh.vertices), fields)
    for i, axis in enumerate("xyz"):
        rows[axis], rows[f"n{axis}"] = mesh.vertices[:, i], mesh.normals[:, i]
    for i, channel in enumerate(("red", "green", "blue", "alpha")):
        rows[channel] = colours[:, i]
    faces = np.empty(len(mesh.faces), [("count", "u1"), ("vertices", "<i4", 3)])
    faces["count"], faces["vertices"] = 3, mesh.faces
    lines = ["ply", "format binary_little_endian 1.0", "comment made by raymarch", f"element vertex {len(rows)}"]
    lines += [f"property {names.get(kind[1:], 'uchar')} {name}" for name, kind in fields]
    if len(faces):
        lines += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    return "\n".join([*lines, "end_header\n"]).encode() + rows.tobytes() + faces.tobytes()


def _digits(vertices: np.ndarray) -> int:
    """Digits behind the point of an OBJ, which knows no exponents: eight of the mesh's size."""
    size = float(np.ptp(vertices, axis=0).max())
    return 8 if size == 0 else max(8, 8 - math.floor(math.log10(size)))


def _mark_content(content: bytes, kind: str, offset: np.ndarray) -> bytes:
    """Content with our name where its format has room for words."""
    if kind == "obj":
        return b"# made by raymarch\n" + content
    if kind == "stl":
        words = "binary STL of raymarch"
        if offset.any():
            words += "; add " + " ".join(f"{x:.10g}" for x in offset)
        return words.encode()[:80].ljust(80, b" ") + content[80:]
    return content
