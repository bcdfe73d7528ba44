"""Boxes and the affines that place samples in them: the rules for both, nested boxes, and where rays meet a box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Check, Numbers, array, shape_of, with_cure
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera

CORNERS = array(2, 3, low=-MAX_COORDINATE, high=MAX_COORDINATE, cure="scale the world")
CORNERS = replace(CORNERS, wanted=f"(2, 3): the lower corner, then the upper, within {MAX_COORDINATE:g} of the origin")
CORNERS = with_cure(CORNERS, lambda value: _box_cure(value))


def require_box(box: Numbers) -> np.ndarray:
    """Box as (2, 3) f64, lower corner then upper; else RaymarchError."""
    corners = CORNERS("box", box)
    if not (corners[1] > corners[0]).all():
        cure = "every upper corner must exceed the lower"
        if (corners[0] > corners[1]).all():
            cure += "; give the two the other way round"
        raise RaymarchError(f"box {corners.tolist()} is empty; {cure}")
    if (corners[1] - corners[0]).min() < 1 / MAX_COORDINATE:
        raise RaymarchError(f"box {corners.tolist()} is too thin for single precision; scale the world")
    return corners


def _box_cure(value: Any) -> str:
    """What a box in another form may be meant as."""
    if hasattr(value, "box") and not isinstance(value, type):
        return "pass its .box"
    shape = shape_of(value)
    if shape not in ((2,), (6,), (3, 2)):
        return ""
    flat = np.asarray(value, float)
    forms = [np.reshape(flat, (2, 3)), np.reshape(flat, (3, 2)).T] if shape == (6,) else [flat.T]
    forms = [np.repeat(flat[:, None], 3, 1)] if shape == (2,) else forms
    likely = [str(form.tolist()) for form in forms if (form[1] > form[0]).all()]
    return f"did you mean {' or '.join(likely)}?" if likely else ""


BOX = Check(CORNERS.wanted, require_box)


def _affine_cure(value: Any) -> str:
    """What an array of another shape may be meant as."""
    shape = shape_of(value)
    if shape in ((), (1,), (3,)):
        steps = np.broadcast_to(np.asarray(value, float), 3).tolist()
        return f"spacings make np.diag({[*steps, 1.0]})"
    return {
        (3, 3): "put its 3 x 3 numbers into a corner: M = np.eye(4); M[:3, :3] = it",
        (3, 4): "it lacks its last row: pass np.vstack([it, [0, 0, 0, 1]])",
        (4, 3): "it looks transposed, and lacks its last row: pass np.vstack([np.transpose(it), [0, 0, 0, 1]])",
        (16,): "pass np.reshape(it, (4, 4))",
        (12,): "pass np.vstack([np.reshape(it, (3, 4)), [0, 0, 0, 1]])",
    }.get(shape or (), "")


AFFINE = with_cure(array(4, 4, low=-MAX_COORDINATE, high=MAX_COORDINATE, cure="scale the world"), _affine_cure)


def require_affine(world_from_index: Numbers) -> np.ndarray:
    """Affine of a volume as (4, 4) f64, with an inverse and voxels that single precision can tell apart.

    Edges of voxels are over 1e-9 and all numbers within 1e9 [world unit]; else RaymarchError.

    Example:
        >>> require_affine(np.eye(4)).shape
        (4, 4)
    """
    affine = AFFINE("world_from_index", world_from_index)
    if not abs(np.linalg.det(affine)) > 0:
        raise RaymarchError(f"world_from_index {affine.tolist()} is not invertible; make its columns the voxel's edges")
    if not np.allclose(affine[3], (0, 0, 0, 1), rtol=0, atol=1e-9):
        cure = "it is an affine"
        if np.allclose(affine[:, 3], (0, 0, 0, 1), rtol=0, atol=1e-9):
            cure = "it looks transposed, pass its .T"
        raise RaymarchError(f"world_from_index has last row {affine[3].tolist()}, want 0, 0, 0, 1; {cure}")
    edges = np.linalg.norm(affine[:3, :3], axis=0)
    if not edges.min() > 1 / MAX_COORDINATE:
        raise RaymarchError(f"world_from_index has voxels of {edges.tolist()}; scale the world to edges near 1")
    return affine


def affine_of_box(box: Numbers, shape: Sequence[int]) -> np.ndarray:
    """`world_from_index` (4, 4) of a grid of `shape` samples whose first and last samples lie on the box's faces.

    Example:
        >>> affine_of_box([(-1, -1, -1), (1, 1, 1)], (3, 3, 3))[0].tolist()
        [1.0, 0.0, 0.0, -1.0]
    """
    lower, upper = require_box(box)
    affine = np.eye(4)
    affine[:3, :3] = np.diag((upper - lower) / (np.asarray(shape) - 1))
    affine[:3, 3] = lower
    return affine


def corners_of(world_from_index: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Corners (8, 3) in the world of a box of `shape` samples.

    Example:
        >>> corners_of(np.eye(4), (2, 3, 4))[-1].tolist()
        [1.0, 2.0, 3.0]
    """
    index = np.stack(np.meshgrid(*[(0, n - 1) for n in shape], indexing="ij"), axis=-1).reshape(-1, 3)
    return index @ world_from_index[:3, :3].T + world_from_index[:3, 3]


def voxel_of(world_from_index: np.ndarray) -> float:
    """Voxel size: the shortest edge of an affine's voxel [world unit].

    Example:
        >>> voxel_of(np.diag([3, 2, 4, 1]))
        2.0
    """
    return float(np.linalg.norm(world_from_index[:3, :3], axis=0).min())


def grid_of_box(box: Numbers, resolution: int, axis: int | None = None) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Grid of a box: the box grown to whole cubic voxels; the shape, `resolution` samples along an axis, None for the
    longest side's."""
    lower, upper = require_box(box)
    sides = upper - lower
    voxel = float(sides.max() if axis is None else sides[axis]) / (resolution - 1)
    x, y, z = (max(math.ceil(length / voxel - 1e-6) + 1, 4) for length in sides)
    grown = (np.array([x, y, z]) - 1) * voxel - sides
    whole, shape = np.stack([lower - grown / 2, upper + grown / 2]), (x, y, z)
    try:
        require_affine(affine_of_box(whole, shape))
    except RaymarchError as error:
        raise RaymarchError(f"box {np.asarray(box).tolist()} at a resolution of {resolution}: {error}") from None
    return whole, shape


def larger_box(world_from_index: np.ndarray, shape: Sequence[int], times: float) -> np.ndarray:
    """`world_from_index` (4, 4) of as many samples (x, y, z) in a box that is larger by a factor, about its centre.

    Example:
        >>> larger_box(np.eye(4), (3, 3, 3), 2)[0].tolist()
        [2.0, 0.0, 0.0, -1.0]
    """
    affine, middle = world_from_index.copy(), (np.array(shape) - 1) / 2
    affine[:3, :3] *= times
    affine[:3, 3] += (world_from_index - affine)[:3, :3] @ middle
    return affine


def require_nested(world_from_index: Numbers, shape: Sequence[int], boxes: int) -> np.ndarray:
    """Affine of the innermost of nested boxes as (4, 4) f64, once the outermost is an affine too; else RaymarchError.

    Example:
        >>> require_nested(np.eye(4), (8, 8, 8), 6).shape
        (4, 4)
    """
    affine = require_affine(world_from_index)
    require_affine(larger_box(affine, shape, 2 ** (boxes - 1)))
    return affine


def camera_in_box(cameras: Sequence[Camera], box: np.ndarray) -> bool:
    """Whether any camera stands in a box (2, 3), or on a face of it.

    Example:
        >>> camera_in_box([Camera.look_at((4, 0, 0)), Camera.look_at((1, 0, 0))], np.array([(-1, -1, -1), (1, 1, 1)]))
        True
    """
    lower, upper = box
    return any(bool(((lower <= camera.position) & (camera.position <= upper)).all()) for camera in cameras)


def meets_box(origin: np.ndarray, direction: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Whether rays (ray, 3) meet a box (2, 3) from where they begin on: (ray,) bool.

    Example:
        >>> ahead, behind = np.array([[-3.0, 0, 0], [3.0, 0, 0]])
        >>> meets_box(np.stack([ahead, behind]), np.array([[1.0, 0, 0]]), np.array([(-1, -1, -1), (1, 1, 1)]))
        array([ True, False])
    """
    near, far = meet_box(origin, direction, box)
    return (far >= near) & (far > 0)


def meet_box(origin: np.ndarray, direction: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (ray,) [length of the direction] at which rays (ray, 3) enter a box (2, 3) and leave it; they miss it
    where they would leave before they enter (slabs: Kay and Kajiya 1986).

    Example:
        >>> meet_box(np.array([[-3.0, 0, 0]]), np.array([[1.0, 0, 0]]), np.array([(-1, -1, -1), (1, 1, 1)]))
        (array([2.]), array([4.]))
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        faces = (box[:, None] - origin) / direction
    return np.nanmax(faces.min(0), axis=-1), np.nanmin(faces.max(0), axis=-1)
