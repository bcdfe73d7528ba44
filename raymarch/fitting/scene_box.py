"""Boxes of an unbounded scene: the innermost from its cameras, or its points where they look one way, and how many."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from raymarch.diagnosis.extent import matched_points
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import camera_in_box
from raymarch.views.contents import border_colour
from raymarch.views.focus import focus, require_near
from raymarch.views.views import Views

BOXES_OF_A_SCENE = 6  # at least: the outermost is 32 times as large as the innermost
MOST = 8  # boxes where points tell of more
ENOUGH = 50  # points that tell
HELD = 0.99  # of the points, which say how far the scene reaches; a wild one in a hundred does not count
BEHIND = 3  # boxes more: what is far, or without texture, is seen and has no points; fewer lost up to 4 dB
MIDDLE = 0.5  # of the points, by the innermost box, where the cameras' axes meet nowhere
ONE_WAY = 0.5  # length of the mean of the axes, from which on depth along it means something
NEAR = 0.5  # of the distance of half the cameras from what they look at: half a side of the box
AHEAD = 1.0  # extents of the cameras' places before them that the middle lies at, where their axes meet nowhere
WIDE = 0.8  # of that extent


def is_bounded(views: Views) -> bool:
    """Whether all that the views show lies in one box: alpha that is not opaque everywhere, a box of the set's own that
    no camera is in, or images whose borders are one colour."""
    if views.shows_silhouettes:
        return True
    if views.box is not None:
        return not camera_in_box(views.cameras, views.box)
    return border_colour(views) is not None


def with_points(views: Views) -> Views:
    """Views that have points of the scene: the set's own, or else those that some of its images agree on."""
    if _points(views) is not None:
        return views
    found = matched_points(views)
    return replace(views, points=found) if len(found) >= ENOUGH else views


def box_of_scene(views: Views) -> np.ndarray:
    """Innermost box (2, 3) of nested ones: a cube about what the cameras look at, half as wide as they are far from it.

    Of cameras that look one way, as in a forward-facing capture, or outwards, it is a cube about the middle half of the
    set's points; without points it lies ahead of them (Sun et al. 2024, "Sparse voxels rasterization", has both rules
    for cameras). Raises RaymarchError for one camera, or a camera far from all others.
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
    if (points := _points(views)) is not None:
        centre = _middle(points, eyes, axes)
        if (half := _reach(points, centre, MIDDLE)) > 0:
            return np.stack([centre - half, centre + half])
    extent = float(np.linalg.norm(np.ptp(eyes, axis=0)))
    if extent == 0:
        raise RaymarchError(
            "all cameras stand in one point, so the box of the scene cannot be found; give it: box=, --box"
        )
    centre, half = eyes.mean(0) + AHEAD * extent * axes.mean(0), WIDE * extent
    return np.stack([centre - half, centre + half])


def boxes_of_scene(views: Views) -> int:
    """Count of nested boxes: the fewest that hold 99 % of the set's points and three more for what is behind them, from
    6, which it is without points, to 8.

    Raises RaymarchError as `box_of_scene` does.
    """
    if (points := _points(views)) is None:
        return BOXES_OF_A_SCENE
    lower, upper = box_of_scene(views)
    times = 2 * _reach(points, (lower + upper) / 2, HELD) / float((upper - lower).max())
    fewest = 1 + math.ceil(math.log2(max(times, 1.0)))
    return min(max(fewest + BEHIND, BOXES_OF_A_SCENE), MOST)


def _points(views: Views) -> np.ndarray | None:
    """Points (point, 3) of the set, None where they are too few to tell anything."""
    return None if views.points is None or len(views.points) < ENOUGH else views.points


def _middle(points: np.ndarray, eyes: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Median point; of cameras that look one way, at the median of inverse depths, for near things show the most."""
    centre, eye, axis = np.median(points, axis=0), eyes.mean(0), axes.mean(0)
    if (length := float(np.linalg.norm(axis))) < ONE_WAY:
        return centre
    axis = axis / length
    depth = (points - eye) @ axis
    if not (depth > 0).any():
        return centre
    return centre + (1 / np.median(1 / depth[depth > 0]) - (centre - eye) @ axis) * axis


def _reach(points: np.ndarray, centre: np.ndarray, share: float) -> float:
    """Half the side of the cube about a centre that holds this share of the points."""
    return float(np.quantile(np.abs(points - centre).max(1), share, method="lower"))
