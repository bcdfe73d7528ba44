"""Meshes: triangles in the world with colours and normals at their vertices, or points alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import Check, ReadOnly, Wrong, array, instance_of, numeric, require_within
from raymarch.arguments.declared import checked_field, suggest_names, validate_fields
from raymarch.errors import RaymarchError
from raymarch.html.card import card_html, html_of, numbers_text


def _rows(value: object) -> np.ndarray:
    given = numeric(value)
    if given.ndim != 2 or given.shape[1] != 3:
        raise Wrong(f"has shape {given.shape}")
    require_within(given, -np.inf, np.inf)
    return given.astype(float)


def _indices(value: object) -> np.ndarray:
    given = numeric(value)
    if given.ndim != 2 or given.shape[1] != 3:
        raise Wrong(f"has shape {given.shape}")
    if given.size and given.dtype.kind == "f":
        raise Wrong(f"is {given.dtype}")
    return given.astype(np.int64)


ROWS = Check("(vertex, 3) numbers", _rows)
FACES = Check("(face, 3) whole numbers, the vertices of each triangle", _indices)


@suggest_names
@dataclass(frozen=True, eq=False)
class Mesh(ReadOnly):
    """Triangle mesh in the world, or a cloud of points where it has no faces.

    Attributes:
        vertices: (vertex, 3) [world unit].
        faces: (face, 3) vertices of each triangle, counterclockwise seen from outside; (0, 3) of a point cloud.
        colours: (vertex, 3) display colours in 0..1.
        normals: (vertex, 3) unit vectors that point outwards.

    Raises RaymarchError for shapes that disagree, a face of a vertex that there is not, numbers that are not finite.

    Example:
        >>> corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
        >>> flat = Mesh(corners, [(0, 1, 2)], np.ones((3, 3)), [(0, 0, 1)] * 3)
        >>> flat.area, flat.closed
        (0.5, False)
    """

    vertices: np.ndarray = checked_field(ROWS, None)
    faces: np.ndarray = checked_field(FACES, None)
    colours: np.ndarray = checked_field(ROWS, None)
    normals: np.ndarray = checked_field(ROWS, None)

    def __post_init__(self) -> None:
        validate_fields(self, "mesh")
        for name in ("colours", "normals"):
            if getattr(self, name).shape != self.vertices.shape:
                got = getattr(self, name).shape
                raise RaymarchError(f"mesh: {name} have shape {got}, want {self.vertices.shape}, one a vertex")
        array("vertex", 3, low=0, high=1)("mesh: colours", self.colours if len(self.colours) else np.zeros((1, 3)))
        if self.faces.size and not 0 <= self.faces.min() <= self.faces.max() < len(self.vertices):
            bad = self.faces.max() if self.faces.max() >= len(self.vertices) else self.faces.min()
            raise RaymarchError(f"mesh: a face has vertex {bad}, want numbers of 0 to {len(self.vertices) - 1}")
        for name in ("vertices", "faces", "colours", "normals"):
            getattr(self, name).setflags(write=False)

    def __repr__(self) -> str:
        if not len(self.faces):
            return f"Mesh({len(self.vertices):,} points)"
        closed = "closed" if self.closed else "open"
        return f"Mesh({len(self.vertices):,} vertices, {len(self.faces):,} faces, {closed})"

    def _repr_html_(self) -> str | None:
        return html_of(mesh_card, self)

    @property
    def box(self) -> np.ndarray:
        """Bounding box (2, 3) [world unit]; of nothing zeros."""
        return np.stack([self.vertices.min(0), self.vertices.max(0)]) if len(self.vertices) else np.zeros((2, 3))

    @property
    def area(self) -> float:
        """Area of the faces [world unit^2]."""
        return float(np.linalg.norm(face_normals(self.vertices, self.faces), axis=1).sum() / 2)

    @property
    def volume(self) -> float:
        """Volume enclosed [world unit^3], over 0 where faces look outwards; of an open mesh it means little."""
        a, b, c = (self.vertices - self.box.mean(0))[self.faces.T]
        return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6)

    @property
    def closed(self) -> bool:
        """Whether it is watertight: every edge joins two faces, in opposite senses."""
        if not len(self.faces):
            return False
        ends = self.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        forth, back = (np.sort(a * len(self.vertices) + b) for a, b in (ends.T, ends.T[::-1]))
        return bool((forth == back).all() and (np.diff(forth) > 0).all())


def mesh_card(mesh: Mesh) -> str:
    """HTML of a mesh for a notebook: its counts, whether it is closed, its box."""
    box = [numbers_text(corner) for corner in mesh.box] if len(mesh.vertices) else []
    rows = [
        ("vertices", f"{len(mesh.vertices):,}"),
        ("faces", f"{len(mesh.faces):,}" if len(mesh.faces) else None),
        ("surface", ("closed" if mesh.closed else "open") if len(mesh.faces) else None),
        ("box", " to ".join(box)),
    ]
    return card_html("Mesh" if len(mesh.faces) else "Points", rows)


def face_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Normals (face, 3) of triangles, of twice their area's length."""
    a, b, c = vertices[faces.T]
    return np.cross(b - a, c - a)


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Unit normals (vertex, 3): of the faces about each, by their areas; of a vertex without any (0, 0, 1)."""
    of_faces, out = face_normals(vertices, faces), np.zeros_like(vertices)
    for corner in range(3):
        for axis in range(3):
            out[:, axis] += np.bincount(faces[:, corner], of_faces[:, axis], len(vertices))
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return np.where(length > 0, out / np.where(length > 0, length, 1), (0.0, 0.0, 1.0))


MESH = instance_of(Mesh, "an rm.Mesh", "rm.isosurface_mesh(volume) makes one")
