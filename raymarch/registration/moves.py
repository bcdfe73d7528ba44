"""Moves of camera refinement: the box they are found in, their rays and directions, and the memory that they take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import size_of as bytes_of_buffer
from raymarch.fitting.plan.bounds import find_box
from raymarch.fitting.scene_box import is_bounded
from raymarch.fitting.settings.settings import FitSettings
from raymarch.geometry.lens import Lens
from raymarch.gradients.parameters import Parameters, units
from raymarch.gradients.tangents import bytes_of_tangents
from raymarch.registration.pyramid import Pyramid
from raymarch.views.views import Views

RAYS = 1 << 17  # rays that all cameras are moved by at once
OF_A_PIXEL, OF_ONE_MADE = 16, 48  # bytes of a smaller image, and of each pixel of the image that is being made smaller
OF_A_RAY, OF_A_DIRECTION = 200, 340  # bytes of the arrays that a move is solved by, at their peak (NumPy's own count)
WIDER = 0.06  # of a box that is found, on each side: the cameras that found it are off


def box_of_refinement(views: Views, settings: FitSettings, box: Numbers | None = None) -> Numbers | None:
    """Box (2, 3) that cameras are refined in: `box`, or else that of an object as it is found, a little wider; None for
    a scene, which has that of its fit.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> box_of_refinement(views, FitSettings(boxes=6)) is None
        True
    """
    if box is not None or settings.ndc or not (settings.boxes == 1 or (settings.boxes is None and is_bounded(views))):
        return box
    with ImageStore(views) as store:
        lower, upper = find_box(views, store)
    margin = WIDER * (upper - lower)
    return np.stack([lower - margin, upper + margin])


def rays_a_view(views: int) -> int:
    """Rays of a view, of so many, that cameras are moved by at once.

    Example:
        >>> rays_a_view(100)
        1310
    """
    return int(np.clip(RAYS // views, 64, 4096))


def directions_of(shared: Sequence[str], lens: Lens) -> list[Parameters]:
    """Directions that cameras move along: of the pose, and of what they share.

    Example:
        >>> len(directions_of(["focal"], Lens()))
        8
    """
    return [dot for name in ("pose", *shared) for dot in units(name, lens)]


def memory_of_moves(views: Views, samples: int, shared: Sequence[str] = ()) -> dict[str, int]:
    """Bytes that moving the cameras takes beside the fit, by what takes them: its images, as small as suits a volume of
    so many samples a side, and its rays with a tangent for each direction, both on the device and on the host.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=32)
        >>> memory_of_moves(Views([camera], np.zeros((1, 32, 64, 3), np.uint8)), 8)["images of the moves"]
        106496
    """
    factor = Pyramid(views).factor_for(samples)
    small = [(width // factor) * (height // factor) for width, height in views.sizes]
    made = max(width * height for width, height in views.sizes) * OF_ONE_MADE
    rays, dots = rays_a_view(len(views)), len(directions_of(shared, views.cameras[0].lens))
    on_device = bytes_of_buffer((rays * len(views),)) + bytes_of_tangents(rays * len(views), dots)
    solved = min(rays, *small) * len(views) * (OF_A_RAY + OF_A_DIRECTION * dots)
    return {"images of the moves": sum(small) * OF_A_PIXEL + made, "moves": on_device + solved}
