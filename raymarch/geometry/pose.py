"""Rigid transforms and boxes: world right-handed, camera axes x right, y up, looking along -z."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments.checks import WORLD, Check, Numbers, array, mended, shape_of, vector
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError

PLACE = vector(3, -WORLD, WORLD)  # of a point in the world
CORNERS = array(2, 3, low=-WORLD, high=WORLD, cure="scale the world")
CORNERS = replace(CORNERS, wanted=f"(2, 3): the lower corner, then the upper, within {WORLD:g} of the origin")
CORNERS = mended(CORNERS, lambda value: _box_cure(value))
RIGID_TOLERANCE = 1e-3
ROUNDING = 1e-14  # of an orthonormal matrix, by which its product with itself differs from 1


@checked(eye=PLACE, target=PLACE, up=vector(3, -WORLD, WORLD))
def look_at(eye: Numbers, target: Numbers = (0.0, 0.0, 0.0), up: Numbers = (0.0, 0.0, 1.0)) -> np.ndarray:
    """Look-at pose: `world_from_camera` (4, 4) of a camera at `eye` that looks at `target`, all in world units.

    Raises RaymarchError where eye and target coincide or `up` is along the line of sight.

    Example:
        >>> look_at((0, -2, 0))[:3, 3].tolist()
        [0.0, -2.0, 0.0]
    """
    eye, target, up = (np.array(v) for v in (eye, target, up))
    backward = eye - target
    length = np.linalg.norm(backward)
    if length == 0:
        raise RaymarchError(f"camera eye and target are both {eye.tolist()}; move one of them")
    backward = backward / length
    right = np.cross(up, backward)
    if not np.linalg.norm(right) > 1e-9 * np.linalg.norm(up):
        raise RaymarchError(f"up {up.tolist()} is along the line of sight; choose another up")
    right = right / np.linalg.norm(right)
    world_from_camera = np.eye(4)
    world_from_camera[:3, :3] = np.stack([right, np.cross(backward, right), backward], axis=1)
    world_from_camera[:3, 3] = eye
    return world_from_camera


def exp_rigid(twist: Numbers) -> np.ndarray:
    """Exponential of SE(3), a rigid transform (4, 4) of translation [unit of the frame] and rotation vector [radian].

    The exponential of the twist (Sola et al. 2018, "A micro Lie theory", SE(3)).

    Example:
        >>> exp_rigid((1, 2, 3, 0, 0, 0))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    v, w = np.split(np.asarray(twist, float), 2)
    angle = float(np.linalg.norm(w))
    k = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    a, b, c = 1.0, 0.5, 1 / 6
    if angle > 1e-4:
        a, b = np.sin(angle) / angle, (1 - np.cos(angle)) / angle**2
        c = (1 - a) / angle**2
    else:
        a, b = 1 - angle**2 / 6, 0.5 - angle**2 / 24
    out = np.eye(4)
    out[:3, :3] += a * k + b * k @ k
    out[:3, 3] = v + b * k @ v + c * k @ (k @ v)
    return out


def twist_about(world_from_camera: np.ndarray, centre: Numbers) -> np.ndarray:
    """Twists about a centre (6, 6), in camera axes: moves by parts of the camera's distance to it, and turns about it.

    Example:
        >>> world_from_camera = look_at((0, -2, 0))
        >>> turn = exp_rigid(twist_about(world_from_camera, (0, 0, 0)) @ [0, 0, 0, 0, np.pi, 0])
        >>> (world_from_camera @ turn)[:3, 3].round(6).tolist()  # half way around
        [0.0, 2.0, 0.0]
    """
    x, y, z = world_from_camera[:3, :3].T @ (np.asarray(centre, float) - world_from_camera[:3, 3])
    out = np.eye(6)
    out[:3, :3] *= np.sqrt(x * x + y * y + z * z)
    out[:3, 3:] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    return out


def right_jacobian(twist: Numbers) -> np.ndarray:
    """Right Jacobian of SE(3) (6, 6): exp(twist + d) = exp(twist) exp(J d) to first order.

    The series sum_k (-ad)^k / (k + 1)! (Sola et al. 2018, SE(3)), good to 1e-15 for rotations up to pi.

    Example:
        >>> right_jacobian(np.zeros(6)).tolist() == np.eye(6).tolist()
        True
    """

    def hat(a: np.ndarray) -> np.ndarray:
        return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])

    v, w = np.split(np.asarray(twist, float), 2)
    ad = np.block([[hat(w), hat(v)], [np.zeros((3, 3)), hat(w)]])
    out, term = np.zeros((6, 6)), np.eye(6)
    for k in range(40):
        out, term = out + term, term @ -ad / (k + 2)
    return out


def _pose_cure(value: Any) -> str:
    """What a pose in another form may be meant as."""
    return {
        (3, 4): "add the last row: np.vstack([it, [0, 0, 0, 1]])",
        (16,): "give it in rows: np.reshape(it, (4, 4))",
        (12,): "give it in rows, with the last: np.vstack([np.reshape(it, (3, 4)), [0, 0, 0, 1]])",
    }.get(shape_of(value) or (), "")


def require_rigid(world_from_camera: Numbers, name: str = "world_from_camera") -> np.ndarray:
    """Rigid transform as (4, 4) f64, a rotation and a translation; else RaymarchError that says what is off."""
    matrix = mended(array(4, 4, low=-WORLD, high=WORLD, cure="scale the world"), _pose_cure)(name, world_from_camera)
    if not np.allclose(matrix[3], (0, 0, 0, 1), atol=1e-6):
        turned = np.allclose(matrix[:, 3], (0, 0, 0, 1), atol=1e-6)
        cure = "; its place is in its last row, so it is by columns: pass its transpose" if turned else ""
        raise RaymarchError(f"{name} has last row {matrix[3].tolist()}, want [0, 0, 0, 1]{cure}")
    rotation = matrix[:3, :3]
    if np.linalg.det(rotation) < 0:
        raise RaymarchError(
            f"{name} is mirrored (determinant {np.linalg.det(rotation):.3g}), want a rotation; flip an axis"
        )
    error = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if error > RIGID_TOLERANCE:
        raise RaymarchError(f"{name} is not rigid (R'R differs from 1 by {error:.2g}); take scale and shear out of it")
    if error > ROUNDING:  # so that a pose taken again is the same to the last bit
        u, _, vt = np.linalg.svd(rotation)
        matrix[:3, :3] = u @ vt
    return matrix


def require_box(box: Numbers) -> np.ndarray:
    """Box as (2, 3) f64, lower corner then upper; else RaymarchError."""
    corners = CORNERS("box", box)
    if not (corners[1] > corners[0]).all():
        cure = "every upper corner must exceed the lower"
        if (corners[0] > corners[1]).all():
            cure += "; give the two the other way round"
        raise RaymarchError(f"box {corners.tolist()} is empty; {cure}")
    if (corners[1] - corners[0]).min() < 1 / WORLD:
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


AFFINE = mended(array(4, 4, low=-WORLD, high=WORLD, cure="scale the world"), _affine_cure)


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
    if not edges.min() > 1 / WORLD:
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


def voxel_of(world_from_index: np.ndarray) -> float:
    """Voxel size: the shortest edge of an affine's voxel [world unit].

    Example:
        >>> voxel_of(np.diag([3, 2, 4, 1]))
        2.0
    """
    return float(np.linalg.norm(world_from_index[:3, :3], axis=0).min())


def corners_of(world_from_index: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Corners (8, 3) in the world of a box of `shape` samples.

    Example:
        >>> corners_of(np.eye(4), (2, 3, 4))[-1].tolist()
        [1.0, 2.0, 3.0]
    """
    index = np.stack(np.meshgrid(*[(0, n - 1) for n in shape], indexing="ij"), axis=-1).reshape(-1, 3)
    return index @ world_from_index[:3, :3].T + world_from_index[:3, 3]


def require_nested(world_from_index: Numbers, shape: Sequence[int], boxes: int) -> np.ndarray:
    """Affine of the innermost of nested boxes as (4, 4) f64, once the outermost is an affine too; else RaymarchError.

    Example:
        >>> require_nested(np.eye(4), (8, 8, 8), 6).shape
        (4, 4)
    """
    affine = require_affine(world_from_index)
    require_affine(larger_box(affine, shape, 2 ** (boxes - 1)))
    return affine


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
