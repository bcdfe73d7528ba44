"""Rigid transforms and boxes: world right-handed, camera axes x right, y up, looking along -z."""

from __future__ import annotations

import math

import numpy as np

from raymarch.errors import RaymarchError

RIGID_TOLERANCE = 1e-3


def look_at(eye, target=(0.0, 0.0, 0.0), up=(0.0, 0.0, 1.0)) -> np.ndarray:
    """`world_from_camera` (4, 4) of a camera at `eye` that looks at `target`, all in world units.

    Raises RaymarchError where eye and target coincide or `up` is along the line of sight.

    Example:
        >>> look_at((0, -2, 0))[:3, 3].tolist()
        [0.0, -2.0, 0.0]
    """
    eye, target, up = (np.asarray(v, float) for v in (eye, target, up))
    backward = eye - target
    length = np.linalg.norm(backward)
    if not length > 0:
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


def exp_rigid(twist) -> np.ndarray:
    """Rigid transform (4, 4) of six numbers: translation [unit of the frame], then rotation vector [radian].

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


def twist_about(world_from_camera: np.ndarray, centre) -> np.ndarray:
    """Twists in camera axes (6, 6) of six moves of a camera: by parts of its distance to `centre`, and turns about it.

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


def right_jacobian(twist) -> np.ndarray:
    """How exp moves with its twist: exp(twist + d) = exp(twist) exp(J d) to first order (6, 6).

    The series sum_k (-ad)^k / (k + 1)! (Sola et al. 2018, SE(3)), good to 1e-15 for rotations up to pi.

    Example:
        >>> right_jacobian(np.zeros(6)).tolist() == np.eye(6).tolist()
        True
    """

    def hat(a):
        return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])

    v, w = np.split(np.asarray(twist, float), 2)
    ad = np.block([[hat(w), hat(v)], [np.zeros((3, 3)), hat(w)]])
    out, term = np.zeros((6, 6)), np.eye(6)
    for k in range(40):
        out, term = out + term, term @ -ad / (k + 2)
    return out


def require_rigid(world_from_camera, name: str = "world_from_camera") -> np.ndarray:
    """The matrix as (4, 4) f64 if it is a rotation and a translation; else RaymarchError that says what is off."""
    matrix = np.asarray(world_from_camera, float)
    if matrix.shape != (4, 4):
        raise RaymarchError(f"{name} has shape {matrix.shape}, want (4, 4)")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise RaymarchError(f"{name} has {matrix[row, column]} at row {row}, column {column}; poses must be finite")
    if not np.allclose(matrix[3], (0, 0, 0, 1), atol=1e-6):
        raise RaymarchError(f"{name} has last row {matrix[3].tolist()}, want [0, 0, 0, 1]")
    rotation = matrix[:3, :3]
    if np.linalg.det(rotation) < 0:
        raise RaymarchError(
            f"{name} is mirrored (determinant {np.linalg.det(rotation):.3g}), want a rotation; flip an axis"
        )
    error = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if error > RIGID_TOLERANCE:
        raise RaymarchError(f"{name} is not rigid (R'R differs from 1 by {error:.2g}); take scale and shear out of it")
    u, _, vt = np.linalg.svd(rotation)
    rigid = matrix.copy()
    rigid[:3, :3] = u @ vt
    return rigid


def require_box(box) -> np.ndarray:
    """The box as (2, 3) f64, lower corner then upper; else RaymarchError."""
    array = np.asarray(box, float)
    if array.shape != (2, 3):
        raise RaymarchError(f"box has shape {array.shape}, want (2, 3): the lower corner, then the upper")
    if not np.isfinite(array).all() or not (array[1] > array[0]).all():
        raise RaymarchError(f"box {array.tolist()} is empty or not finite; every upper corner must exceed the lower")
    if np.abs(array).max() > 1e9 or (array[1] - array[0]).min() < 1e-9:
        raise RaymarchError(f"box {array.tolist()} is too large or too thin for single precision; scale the world")
    return array


def affine_of_box(box, shape) -> np.ndarray:
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


def grid_of_box(box, resolution: int) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The box grown to whole cubic voxels, and its shape with `resolution` samples along the longest side."""
    lower, upper = require_box(box)
    voxel = float((upper - lower).max()) / (resolution - 1)
    x, y, z = (max(math.ceil(length / voxel - 1e-6) + 1, 4) for length in upper - lower)
    grown = (np.array([x, y, z]) - 1) * voxel - (upper - lower)
    return np.stack([lower - grown / 2, upper + grown / 2]), (x, y, z)
