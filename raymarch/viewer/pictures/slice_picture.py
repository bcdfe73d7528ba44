"""Slice of a volume as a picture, perpendicular to a world axis, with trilinear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.viewer.pictures.picture_source import Source, VolumeSource
from raymarch.viewer.pictures.viewer_camera import Look
from raymarch.volumes.volume import Volume
from raymarch.volumes.world_axes import shown_right, shown_up

OUTSIDE_VALUE = 0.0  # display value beside the volume


def slice_picture(source: Source, look: Look, width: int, height: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Display values (height, width, 1 or 3) of a look's slice through the whole box, and its position.

    Values are grey within the look's window, or the source's own; in mode "transfer" they have the colours of a table
    that a page has chosen. Of the two other axes the first goes to the right and the second up; in a body's world they
    lie as radiologists look at it, and `sides` are those at the left, right, bottom and top.
    """
    if not isinstance(source, VolumeSource) or look.slice is None:
        raise RaymarchError("slice: a running fit has none; look at the volume when it is done")
    volume, axis = source.seen, look.slice.axis
    across, middle, way, sides = _frame(source, axis, width, height)
    half = 0.5 * way * np.array([width, height])
    points = np.empty((height, width, 3))
    points[..., axis] = look.slice.position
    points[..., across[0]] = middle[0] + way[0] * (np.arange(width) + 0.5 - 0.5 * width)
    points[..., across[1]] = (middle[1] - way[1] * (np.arange(height) + 0.5 - 0.5 * height))[:, None]
    values, inside = sample_volume(volume, points)
    place: dict[str, Any] = {"lower": (middle - half).tolist(), "upper": (middle + half).tolist()}
    window = look.window or source.window
    place |= {"sides": sides}
    about = {"window": list(window), "slice": {"axis": axis, "position": look.slice.position, **place}}
    chosen = look.table is not None and look.table is not source.look.table
    if look.mode == "transfer" and look.table is not None and (chosen or not source.values):
        picture = look.table(values)[..., :3]
    else:
        picture = ((values - window[0]) / (window[1] - window[0]))[..., None]
    picture = np.where(inside[..., None], picture.clip(0, 1) * 2.0**look.exposure, OUTSIDE_VALUE)
    return picture, about


def slice_point(source: VolumeSource, look: Look, width: int, height: int, x: float, y: float) -> np.ndarray:
    """Point (3,) of the world at a place [pixel] of the picture of a look's slice."""
    assert look.slice is not None
    across, middle, way, _ = _frame(source, look.slice.axis, width, height)
    point = np.empty(3)
    point[look.slice.axis] = look.slice.position
    point[across[0]] = middle[0] + way[0] * (x - 0.5 * width)
    point[across[1]] = middle[1] - way[1] * (y - 0.5 * height)
    return point


def _frame(source: VolumeSource, axis: int, width: int, height: int) -> tuple[list[int], np.ndarray, np.ndarray, list]:
    """Axes to the right and up of a slice's picture, its middle, its way a pixel to the right and up [world unit], and
    the names of its sides."""
    world = getattr(source.volume, "world", "")
    across = [a for a in range(3) if a != axis]
    lower, upper = source.seen.box
    middle, size = 0.5 * (lower + upper)[across], (upper - lower)[across]
    per_pixel = 1.02 * float(np.max(size / (width, height)))
    (leftwards, *to_right), (down, *to_up) = (
        (shown_right(world[across[0]]), shown_up(world[across[1]])) if world else ((False,), (False,))
    )
    way = np.where([leftwards, down], -per_pixel, per_pixel)
    return across, middle, way, [*to_right, *to_up]


def sample_volume(volume: Volume, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (...) of a volume at points (..., 3) of the world, trilinear in its raw samples, and whether it has them.

    Example:
        >>> ramp = Volume.from_function(lambda p: p[..., 0], shape=(5, 4, 4))
        >>> [each.tolist() for each in sample_volume(ramp, np.array([[0.25, 0.0, 0.0], [3.0, 0.0, 0.0]]))]
        [[0.25, 0.0], [True, False]]
    """
    index = points @ np.linalg.inv(volume.world_from_index)[:3, :3].T + np.linalg.inv(volume.world_from_index)[:3, 3]
    most = np.array(volume.shape) - 1
    inside: np.ndarray = np.all((index >= -1e-6) & (index <= most + 1e-6), axis=-1)
    index = index[inside].clip(0, most)
    first = np.minimum(index.astype(int), most - 1)
    share, raw = index - first, 0.0
    for corner in np.ndindex(2, 2, 2):
        weight = np.where(corner, share, 1 - share).prod(-1)
        raw = raw + weight * volume.at(tuple((first + corner).T))[0]
    values = np.zeros(inside.shape)
    values[inside] = volume.activation.sigma(raw)
    return values, inside
