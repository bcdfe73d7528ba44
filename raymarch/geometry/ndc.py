"""Normalised device coordinates (NDC): a camera's frustum, from its near plane to infinity, as a box.

The projective matrix `ndc_from_world` P takes a place x of the world to P x / w: w is its depth before the camera, and
z' = 1 - 2 near / w, so that the near plane is z' = -1 and infinity z' = 1. Straight lines stay straight. A ray is
marched by its length in NDC (Mildenhall et al. 2020, "NeRF", appendix C). One that begins before half the near plane,
where w may be 0, begins there: still before the box, so that it enters that by a face, as any other ray does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Check, Numbers, array, number
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import corners_of, require_nested
from raymarch.geometry.pose import require_rigid
from raymarch.geometry.rays import Rays

POSE = Check("a rigid pose (4, 4)", require_rigid)
NEAR = number(0, MAX_COORDINATE, above=True, unit="world unit")
FOCAL = number(0, MAX_COORDINATE, above=True)
MATRIX = array(4, 4, low=-MAX_COORDINATE, high=MAX_COORDINATE, cure="scale the world")
MAP_TOLERANCE = 1e-9
PARALLEL_TOLERANCE = 1e-12
MAX_DEPTH_RATIO = 4.0  # times the depth of its first samples up to which a box's place is told in the world
START_PLANE = np.array([0.0, 0.0, 1.0, 3.0])  # of P x, z + 3 w is over 0 from half the near plane on, where z' is -3
# a ray that meets no frustum: from before the near plane, and on from it
MISSED_SEGMENT = (0.0, 0.0, -3.0), (0.0, 0.0, -1.0)


@checked(world_from_camera=POSE, near=NEAR, focal=FOCAL)
def ndc_of_frustum(world_from_camera: Numbers, near: float, focal: float = 1.0) -> np.ndarray:
    """`Volume.ndc_from_world` (4, 4) of a camera's frustum: the place (x, y, -depth) before it is at (focal x / depth,
    focal y / depth, 1 - 2 near / depth) in NDC.

    Args:
        world_from_camera: (4, 4) rigid pose.
        near: depth of the near plane [world unit], positive.
        focal: of the lens, in units of NDC; positive.

    Raises RaymarchError for a pose that is not rigid, and a near plane or focal that is not positive.

    Example:
        >>> ndc_from_world = ndc_of_frustum(np.eye(4), near=2.0)
        >>> (ndc_from_world @ [3, 0, -6, 1] / 6).round(3).tolist()
        [0.5, 0.0, 0.333, 1.0]
    """
    own = np.array([[focal, 0, 0, 0], [0, focal, 0, 0], [0, 0, -1, -2 * near], [0, 0, -1, 0]], float)
    return own @ np.linalg.inv(world_from_camera)


def require_ndc(ndc_from_world: Numbers, corners: np.ndarray) -> np.ndarray:
    """`ndc_from_world` as (4, 4) f64, w counted in world units; RaymarchError for a matrix that is of no NDC, and
    corners (corner, 3) of a box there that are nearer than the near plane or beyond infinity."""
    P = MATRIX("ndc_from_world", ndc_from_world)
    unit = float(np.linalg.norm(P[3, :3]))
    if not unit > 0 or not np.allclose(P[2, :3], P[3, :3], rtol=0, atol=MAP_TOLERANCE * unit) or not P[2, 3] < P[3, 3]:
        raise RaymarchError(
            f"ndc_from_world has rows {P[2].tolist()}, {P[3].tolist()} for z and w, want z = w - 2 near; "
            "take rm.ndc_of_frustum"
        )
    if not abs(np.linalg.det(P)) > 0:
        raise RaymarchError(f"ndc_from_world {P.tolist()} is not invertible; take rm.ndc_of_frustum")
    low, high = float(corners[:, 2].min()), float(corners[:, 2].max())
    if low < -1 - MAP_TOLERANCE or high > 1 + MAP_TOLERANCE:
        raise RaymarchError(
            f"world_from_index puts samples at z from {low:g} to {high:g} in NDC, want -1 (near plane) to 1 (infinity);"
            " place them between"
        )
    P = P / unit
    P[2, :3] = P[3, :3]
    return P


def near_plane_of(ndc_from_world: np.ndarray) -> float:
    """Near plane's distance before the camera [world unit]."""
    return float(ndc_from_world[3, 3] - ndc_from_world[2, 3]) / 2


def world_of_ndc(ndc_from_world: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Places (point, 3) in the world of points in NDC; those at infinity are not finite."""
    whole = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ np.linalg.inv(ndc_from_world).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return whole[:, :3] / whole[:, 3:]


def corners_in_world(
    world_from_index: np.ndarray, shape: Sequence[int], ndc_from_world: np.ndarray | None
) -> np.ndarray:
    """Corners (8, 3) in the world of a box of `shape` samples; of one in NDC, cut where it is four times as far off as
    where it begins."""
    corners = corners_of(world_from_index, shape)
    if ndc_from_world is None:
        return corners
    far = 1 - (1 - corners[:, 2].min()) / MAX_DEPTH_RATIO
    return world_of_ndc(ndc_from_world, np.minimum(corners, (np.inf, np.inf, far)))


def rays_in_ndc(ndc_from_world: np.ndarray, rays: Rays) -> Rays:
    """Rays in NDC, from half the near plane on where they begin before that."""
    a, b, _, meets = _homogeneous(ndc_from_world, rays)
    origin = a[:, :3] / a[:, 3:]
    way = (b[:, :3] - origin * b[:, 3:]) / a[:, 3:]
    o, d = MISSED_SEGMENT
    return Rays(np.where(meets[:, None], origin, o), np.where(meets[:, None], way, d))


def ray_slopes(ndc_from_world: np.ndarray, rays: Rays) -> np.ndarray:
    """Jacobian (ray, 6, 6) of a ray's origin and unit way in NDC by its origin and direction in the world."""
    P = ndc_from_world
    a, b, begin, meets = _homogeneous(P, rays)
    linear, none = np.broadcast_to(P[:, :3], (len(rays), 4, 3)), np.zeros((len(rays), 4, 3))
    d_a, d_b = np.concatenate([linear, none], axis=2), np.concatenate([none, linear], axis=2)
    late = begin[:, None] > 0
    moved, toward = d_a + begin[:, None, None] * d_b, np.where(late, (b @ START_PLANE)[:, None], 1.0)
    d_begin = np.where(late, -(START_PLANE @ moved) / toward, 0.0)
    d_a = moved + b[:, :, None] * d_begin[:, None]
    w, d_w = a[:, 3, None, None], d_a[:, None, 3]
    origin = a[:, :3, None] / w
    d_origin = (d_a[:, :3] - origin * d_w) / w
    way = (b[:, :3, None] - origin * b[:, 3, None, None]) / w
    d_way = (d_b[:, :3] - d_origin * b[:, 3, None, None] - origin * d_b[:, None, 3] - way * d_w) / w
    speed = np.linalg.norm(way, axis=1, keepdims=True)
    way = way / speed
    d_way = (d_way - way * (way * d_way).sum(1, keepdims=True)) / speed
    return np.where(meets[:, None, None], np.concatenate([d_origin, d_way], axis=1), 0.0)


def _homogeneous(P: np.ndarray, rays: Rays) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """P of origins and of directions (ray, 4), the distance (ray,) at which rays begin, and which meet a frustum."""
    a, b = rays.origin @ P[:, :3].T + P[:, 3], rays.direction @ P[:, :3].T
    ahead, toward = a @ START_PLANE, b @ START_PLANE
    meets = (ahead >= 0) | (toward > PARALLEL_TOLERANCE)
    late = (ahead < 0) & meets
    begin = np.where(late, -ahead / np.where(late, toward, 1.0), 0.0)
    a = np.where(meets[:, None], a + begin[:, None] * b, (0.0, 0.0, 0.0, 1.0))
    return a, b, begin, meets


def require_placement(
    affine: object, ndc: object, shape: tuple[int, int, int], boxes: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """`world_from_index` and `ndc_from_world`, read and not to be written; RaymarchError for what places no samples."""
    affine = require_nested(affine, (shape[0] // boxes, *shape[1:]), boxes)
    if ndc is not None:
        if boxes > 1:
            raise RaymarchError(f"boxes are {boxes} beside ndc_from_world, which has no end by itself; leave one out")
        ndc = require_ndc(ndc, corners_of(affine, shape))
        ndc.setflags(write=False)
    affine.setflags(write=False)
    return affine, ndc
