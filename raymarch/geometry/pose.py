"""Rigid transforms: poses that look at a place, exponentials of twists; camera axes x right, y up, looking along -z."""

from __future__ import annotations

from typing import Any

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Numbers, array, shape_of, vector, with_cure
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError

POSITION = vector(3, -MAX_COORDINATE, MAX_COORDINATE)  # of a point in the world
RIGID_TOLERANCE = 1e-3
ORTHONORMAL_ROUNDING = 1e-14  # of an orthonormal matrix, by which its product with itself differs from 1


@checked(eye=POSITION, target=POSITION, up=vector(3, -MAX_COORDINATE, MAX_COORDINATE))
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
    matrix = with_cure(array(4, 4, low=-MAX_COORDINATE, high=MAX_COORDINATE, cure="scale the world"), _pose_cure)(
        name, world_from_camera
    )
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
    if error > ORTHONORMAL_ROUNDING:  # so that a pose taken again is the same to the last bit
        u, _, vt = np.linalg.svd(rotation)
        matrix[:3, :3] = u @ vt
    return matrix
