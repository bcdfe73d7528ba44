"""Innermost box of an unbounded scene, from its cameras: what they stand around, or what lies before them."""

from __future__ import annotations

import numpy as np

from raymarch.data.contents import border_colour
from raymarch.data.focus import focus, require_near
from raymarch.data.views import Views
from raymarch.errors import RaymarchError

BOXES_OF_A_SCENE = 6  # the outermost is 32 times as large as the innermost
NEAR = 0.5  # of the distance of half the cameras from what they look at: half a side of the box
AHEAD = 1.0  # extents of the cameras' places before them that the middle lies at, where their axes meet nowhere
WIDE = 0.8  # of that extent


def is_bounded(views: Views) -> bool:
    """Whether all that the views show lies in one box: alpha, a box of the set's own that no camera is in, or images
    whose borders are one colour."""
    if views.has_alpha:
        return True
    if views.box is not None:
        lower, upper = views.box
        return not any((lower < camera.position).all() and (camera.position < upper).all() for camera in views.cameras)
    return border_colour(views) is not None


def box_of_scene(views: Views) -> np.ndarray:
    """Innermost box (2, 3) of nested ones: a cube about what the cameras look at, half as wide as they are far from it.

    Of cameras that look one way, as in a forward-facing capture, the cube lies ahead of them (Sun et al. 2024, "Sparse
    voxels rasterization", has both rules). Raises RaymarchError for one camera, or a camera far from all others.
    """
    require_near(views)
    eyes = np.array([camera.position for camera in views.cameras])
    axes = -np.array([camera.world_from_camera[:3, 2] for camera in views.cameras])
    try:
        centre, _ = focus(views.cameras)
        ahead = ((centre - eyes) * axes).sum(1)
        if np.mean(ahead > 0) > 0.5:
            half = NEAR * float(np.median(np.linalg.norm(centre - eyes, axis=1)))
            return np.stack([centre - half, centre + half])
    except RaymarchError:
        pass
    extent = float(np.linalg.norm(np.ptp(eyes, axis=0)))
    if extent == 0:
        raise RaymarchError(
            "all cameras stand in one point, so the box of the scene cannot be found; give it: box=, --box"
        )
    centre, half = eyes.mean(0) + AHEAD * extent * axes.mean(0), WIDE * extent
    return np.stack([centre - half, centre + half])
