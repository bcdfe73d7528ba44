"""Focus of a set's cameras: the point they look at together, and which of them do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.geometry.alignment import meeting_of_axes
from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

MAX_DISTANCE_RATIO = 1000.0  # times as far from the middle of all cameras as half of them are
BOX_CURE = "give it: box=, --box x0,y0,z0,x1,y1,z1"


def focus(cameras: Sequence[Camera]) -> tuple[np.ndarray, float]:
    """Focus point: the one nearest to all optical axes (least squares), and the reach of the fields of view there.

    Raises RaymarchError where the axes meet in no point, or all cameras stand in one.

    Example:
        >>> from raymarch.geometry.orbit import orbit
        >>> centre, reach = focus(orbit((1, 2, 3), 4.0, 8, like=Camera.look_at((4, 0, 0), fov=0.7)))
        >>> centre.round(9).tolist(), round(reach, 3)
        ([1.0, 2.0, 3.0], 1.606)
    """
    poses = np.array([camera.world_from_camera for camera in cameras])
    eyes = poses[:, :3, 3]
    if len(cameras) > 1 and np.allclose(poses, poses[0], rtol=1e-12, atol=1e-9):
        raise RaymarchError(
            f"all {len(cameras)} views have the same pose, so the box cannot be found; correct the poses"
        )
    centre = meeting_of_axes(cameras)
    if centre is None:
        raise RaymarchError(
            f"the optical axes of {len(cameras)} view(s) meet in no point, so the box cannot be found; {BOX_CURE}"
        )
    away = np.linalg.norm(centre - eyes, axis=1)
    if not away.max() > 1e-9 * np.abs(eyes).max():
        raise RaymarchError(f"all cameras stand in one point, so the box cannot be found; {BOX_CURE}")
    spread = [max(c.width / c.focal[0], c.height / c.focal[1]) / 2 for c in cameras]
    return centre, 1.1 * float((np.where([c.lens.parallel for c in cameras], 1.0, away) * spread).max())


def faces_away(cameras: Sequence[Camera], centre: np.ndarray) -> np.ndarray:
    """Mask (view,) of the cameras that have the point behind them."""
    return np.array([(centre - c.position) @ -c.world_from_camera[:3, 2] < 0 for c in cameras])


def require_near(views: Views) -> None:
    """Outlier check of cameras: RaymarchError where one stands a thousand times as far from the middle as half do."""
    eyes = np.array([camera.position for camera in views.cameras])
    away = np.linalg.norm(eyes - np.median(eyes, axis=0), axis=1)
    usual = float(np.median(away))
    astray = away > MAX_DISTANCE_RATIO * usual
    if usual > 0 and astray.any():
        raise RaymarchError(
            f"view {names_of_mask(views, astray)} was taken {away.max():.3g} world units from the middle of all "
            "cameras,"
            f" where half of them are within {usual:.3g}; correct its transform_matrix or take it out"
        )


def names_of_mask(views: Views, which: np.ndarray) -> str:
    """First few names of the views in a mask, for a message."""
    return first_names([views.names[int(i)] for i in np.flatnonzero(which)])
