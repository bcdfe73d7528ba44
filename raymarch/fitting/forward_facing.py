"""Frustum of forward-facing views: the reference camera, near plane and box of their fit in NDC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.errors import RaymarchError
from raymarch.fitting.scene_box import is_bounded
from raymarch.fitting.settings.settings import FitSettings
from raymarch.geometry.camera import border
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.geometry.pixels import unproject
from raymarch.views.focus import require_near
from raymarch.views.views import Views

STEEPEST = 0.2  # depth by distance: rays that are flatter than that to the near plane look another way
WIDEST = 3.0  # tangent of half the frustum's width
SPREAD = 2.0  # times the width of one camera's frustum, up to which NDC were better than nested boxes
NEAREST = 0.01  # of the scene's points lie nearer than what the near plane goes by
ROOM = 0.8  # of their depth
AHEAD = 0.5  # of the cameras' extent lies the near plane before them where no points are known
MOST_ACROSS = 2.5  # samples across for one along depth
CURE = "leave ndc out (--set ndc=False)"


@dataclass(frozen=True, eq=False)
class Frustum:
    """Frustum of a fit in NDC: `ndc_from_world` (4, 4), the box (2, 3) there, z from -1 to 1, and how many times as
    wide as one camera's own it is."""

    ndc_from_world: np.ndarray
    box: np.ndarray
    spread: float


def frustum_for(views: Views, settings: FitSettings, box: Numbers | None = None) -> Frustum | None:
    """Frustum of a fit: where settings ask for NDC, or leave them to views of a scene without end and it is not much
    wider than what one camera sees; else None.

    Raises RaymarchError where NDC are asked for that the views, or a box beside it, do not allow.
    """
    if settings.ndc:
        if box is not None:
            raise RaymarchError("ndc is True beside a box, which it takes from the cameras; leave one out")
        return frustum_of_views(views)
    if settings.ndc is False or settings.boxes is not None or box is not None or is_bounded(views):
        return None
    try:
        found = frustum_of_views(views)
    except RaymarchError:
        return None
    return found if found.spread <= SPREAD else None


def frustum_of_views(views: Views) -> Frustum:
    """Frustum that holds what all cameras see from its near plane on: about their mean pose, as wide as it must be.

    The near plane is a fifth nearer than the nearest of the scene's points, or half as far before the cameras as they
    are apart. A sample is as deep as it is wide, where width is what the cameras' places shift it by against what is
    behind. Raises RaymarchError where the cameras do not look one way, stand in one point, or beyond the near plane.
    """
    require_near(views)
    pose = _mean_pose(views)
    turn, place = pose[:3, :3], pose[:3, 3]
    eyes = (np.array([camera.position for camera in views.cameras]) - place) @ turn
    extent = float(np.linalg.norm(np.ptp(eyes, axis=0)))
    if extent == 0:
        raise RaymarchError(f"all cameras stand in one point, which NDC tell no depth for; {CURE}")
    near, foremost = _near_plane(views, pose, extent), float(-eyes[:, 2].min())
    if near <= foremost:
        raise RaymarchError(
            f"a camera stands {foremost:.3g} before the mean one, beyond the near plane at {near:.3g}; {CURE}"
        )
    tangents, own = np.zeros(2), np.zeros(2)
    for camera, eye in zip(views.cameras, eyes, strict=True):
        edge = border(camera.width, camera.height)
        local = unproject(edge, camera.focal, camera.principal, camera.lens)
        ways = local @ camera.world_from_camera[:3, :3].T @ turn
        if not (-ways[:, 2] > STEEPEST * np.linalg.norm(ways, axis=1)).all():
            raise RaymarchError(f"the cameras do not all look one way, as NDC need it; {CURE}")
        slopes = ways[:, :2] / -ways[:, 2:]
        own = np.maximum(own, np.abs(local[:, :2] / local[:, 2:]).max(0))
        at_near = (eye[:2] + slopes * (near + eye[2])) / near
        tangents = np.maximum(tangents, np.abs(np.concatenate([slopes, at_near])).max(0))
    if tangents.max() > WIDEST:
        raise RaymarchError(
            f"what the cameras see is {tangents.max():.1f} times as wide to a side as far at the near plane, want"
            f" {WIDEST:g} at most for NDC; {CURE}"
        )
    focal = float(np.clip(2 * near / extent, 1 / tangents.max(), MOST_ACROSS / tangents.max()))
    half = np.array([*(focal * tangents), 1.0])
    return Frustum(ndc_of_frustum(pose, near, focal), np.stack([-half, half]), float((tangents / own).max()))


def _mean_pose(views: Views) -> np.ndarray:
    """Pose (4, 4) in the middle of all: mean place, and the rotation nearest to the mean of theirs."""
    mean = np.mean([camera.world_from_camera for camera in views.cameras], axis=0)
    u, _, vt = np.linalg.svd(mean[:3, :3])
    if np.linalg.det(u @ vt) < 0:
        raise RaymarchError(f"the cameras do not all look one way, as NDC need it; {CURE}")
    mean[:3, :3] = u @ vt
    return mean


def _near_plane(views: Views, pose: np.ndarray, extent: float) -> float:
    """Near plane's distance before the mean camera [world unit]."""
    if views.points is not None and len(views.points):
        depth = -((np.asarray(views.points) - pose[:3, 3]) @ pose[:3, 2])
        return ROOM * float(np.quantile(depth, NEAREST))
    return AHEAD * extent
