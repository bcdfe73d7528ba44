"""Object's mask of a view: what masked scores count, by the set's masks, by alpha, or by its box and background."""

from __future__ import annotations

import numpy as np

from raymarch.geometry.boxes import camera_in_box, meets_box
from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

ALPHA, MASK, BOTH = "alpha over 0", "the set's mask", "the set's mask, and alpha over 0"
BOX = "the set's box, where the image is not its background"
UNLIKE = 0.1  # display value, by which a channel of the object differs from the background


def object_mask(views: Views, view: int) -> np.ndarray | None:
    """Pixels (height, width) that show the object; None where nothing tells it from the rest.

    The view's mask, and where alpha is over 0. Of a set that has neither but a box before its cameras, the pixels
    whose rays meet the box and whose colour is not the background's.
    """
    mask = views.mask(view)
    if views.shows_silhouettes:
        shows = views.image(view)[..., 3] > 0
        return shows if mask is None else shows & mask
    if (box := _box_before_cameras(views)) is None:
        return mask
    unlike = np.abs(views.rgb(view) - np.asarray(views.background)).max(-1) > UNLIKE
    shows = unlike & _meets(views.cameras[view], box)
    return shows if mask is None else shows & mask


def told_by(views: Views) -> str:
    """What the object's masks of a set are made of, in words; "" where it has none."""
    masks = any(views.mask(i) is not None for i in range(len(views)))
    if views.shows_silhouettes:
        return BOTH if masks else ALPHA
    if _box_before_cameras(views) is not None:
        return f"{MASK}, and {BOX}" if masks else BOX
    return MASK if masks else ""


def _box_before_cameras(views: Views) -> np.ndarray | None:
    """The set's own box (2, 3), if no camera stands in it: what is behind it is background then."""
    if views.box is None:
        return None
    return None if camera_in_box(views.cameras, views.box) else views.box


def _meets(camera: Camera, box: np.ndarray) -> np.ndarray:
    """Pixels (height, width) whose rays meet a box."""
    rays = camera.rays()
    return meets_box(rays.origin, rays.direction, box).reshape(camera.height, camera.width)
