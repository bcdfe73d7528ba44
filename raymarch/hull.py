"""Where the object can be: the box of a fit and its visual hull, from cameras and alpha masks."""

from __future__ import annotations

import logging

import numpy as np
import taichi as ti

from raymarch.errors import RaymarchError
from raymarch.imagestore import ImageStore
from raymarch.kernels import hull
from raymarch.view import Views

log = logging.getLogger(__name__)

SEARCH_CELLS = 64
FEW_VIEWS = 8


def find_box(views: Views, store: ImageStore) -> np.ndarray:
    """Lower and upper corner (2, 3) in the world of what the views show.

    With alpha, the bounds of the visual hull; without, the cube that the cameras' fields of view span about the
    point nearest to all their axes. Raises RaymarchError where the axes meet nowhere or all images are transparent.
    """
    centre, half = _span_of(views)
    box = np.stack([centre - half, centre + half])
    if not views.has_alpha:
        log.warning("the images have no alpha, so the box is all that the cameras see; a tighter box fits better")
        return box
    if len(views) < FEW_VIEWS:
        log.warning("%d views carve the box badly; a tighter box fits better", len(views))
    tight = _bounds_of_hull(store, box)
    for _ in range(3):  # grow the cube until the hull stays clear of its faces
        if (tight[0] > box[0]).all() and (tight[1] < box[1]).all():
            break
        half *= 1.6
        box = np.stack([centre - half, centre + half])
        tight = _bounds_of_hull(store, box)
    return _bounds_of_hull(store, tight)


def visual_hull(store: ImageStore, box, cells) -> np.ndarray:
    """(x, y, z) int32 for `cells` cells of the box: how many views see it wholly, or -1 where one
    shows that it is empty, or none looks."""
    lower, upper = np.asarray(box, float)
    seen = np.zeros(tuple(cells), np.int32)
    size = (upper - lower) / np.array(seen.shape)
    hull.visual_hull(store.fields, ti.Vector(lower.tolist()), ti.Vector(size.tolist()), seen)
    return seen


def _span_of(views: Views) -> tuple[np.ndarray, float]:
    """The point nearest to all optical axes (least squares), and the reach of the fields of view there."""
    axes = np.array([-camera.world_from_camera[:3, 2] for camera in views.cameras])
    eyes = np.array([camera.position for camera in views.cameras])
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    normal = across.sum(0)
    if np.linalg.cond(normal) > 1e4:
        raise RaymarchError(
            f"the optical axes of {len(views)} view(s) meet in no point, so the box cannot be found;"
            " give it: box=, --box x0,y0,z0,x1,y1,z1"
        )
    centre = np.linalg.solve(normal, (across @ eyes[:, :, None]).sum(0)[:, 0])
    reach = [
        np.linalg.norm(centre - eye) * max(c.width / c.focal[0], c.height / c.focal[1]) / 2
        for eye, c in zip(eyes, views.cameras, strict=True)
    ]
    if not max(reach) > 0:
        raise RaymarchError("all cameras stand in one point, so the box cannot be found; give it: box=, --box")
    return centre, 1.1 * float(max(reach))


def _bounds_of_hull(store: ImageStore, box: np.ndarray) -> np.ndarray:
    """Bounds of the hull within the box, one cell wider where there is room.

    A cell that few views see, such as one right before a camera, has had little chance to be found empty: it counts
    only if half as many see it as see the best seen one.
    """
    seen = visual_hull(store, box, (SEARCH_CELLS,) * 3)
    allowed = (seen >= 0) & (seen > 0.5 * seen.max())
    if not allowed.any():
        raise RaymarchError("the images are transparent wherever the views agree; check alpha, poses and box")
    index = np.argwhere(allowed)
    size = (box[1] - box[0]) / SEARCH_CELLS
    first, last = np.maximum(index.min(0) - 1, 0), np.minimum(index.max(0) + 2, SEARCH_CELLS)
    return np.stack([box[0] + first * size, box[0] + last * size])
