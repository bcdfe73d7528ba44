"""Extent of what the views show, by the crossings of matches, and the box held against it."""

from __future__ import annotations

import numpy as np

from raymarch.data.bound_planes import are_planes
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches, features_of, match, neighbours
from raymarch.matching.epipolar import Sight, agreeing, crossing, nearness, poses_of, sight
from raymarch.views.agreement import alpha_of
from raymarch.views.views import Views
from raymarch.views.world_origin import far_middle

APART = np.deg2rad(2.0)  # between two rays, for their crossing to say how far it is
FAR = np.deg2rad(0.5)  # the same where only the order of magnitude matters
FEWEST = 50  # points
INSIDE = 0.3  # of the points, under which a box is not about them
UNIT = 100.0  # times too small, as no part of a scene is, but a box in another unit
LARGE = 7.0  # times as wide as what is seen, on every axis
LOOKED_AT = 0.01  # of a box, that some camera sees
ASKED = 32  # views, evenly spread, whose matches tell how far a scene goes
VIEWED = 24  # points a side of the box at which it is asked who sees them


def far_away(views: Views) -> Finding | None:
    """Cameras so far from the origin that single precision does not resolve what they see."""
    middle = far_middle([camera.position for camera in views.cameras])
    if middle is None:
        return None
    far, rounding = float(np.abs(middle).max()), float(np.finfo(np.float32).eps)
    message = (
        f"the cameras lie {far:.3g} world units from the origin, where single precision is good to"
        f" {rounding * far:.2g}: a fit comes out coarse"
    )
    told = ", ".join(f"{x:.12g}" for x in middle)
    cure = f"move the world to the origin: take {told} from the cameras' places, points and box"
    return Finding("far-from-origin", "error", message, cure)


def points_of(views: Views, matches: Matches, seen: Sight, poses: np.ndarray, apart: float = APART) -> np.ndarray:
    """Points (point, 3) in the world: the set's own, or where the rays of matches cross that agree with the poses."""
    if (own := _own(views)) is not None:
        return own
    found = crossing(poses, matches, seen)
    return found.point[found.angle > apart]


def matched_points(views: Views) -> np.ndarray:
    """Points (point, 3) in the world: the set's own, or by matches of some of its views; takes some seconds then."""
    if (own := _own(views)) is not None:
        return own
    if len(views) < 2:
        return np.zeros((0, 3))
    some = views[np.linspace(0, len(views) - 1, min(len(views), ASKED)).astype(int)]
    matches = match(features_of(some), neighbours(some.cameras))
    if len(matches) < FEWEST:
        return np.zeros((0, 3))
    poses, seen, near = poses_of(some.cameras), sight(some.cameras, matches), nearness(some.cameras, matches)
    agree = agreeing(poses, matches, seen, near)
    return points_of(some, matches.take(agree), Sight(*(part[agree] for part in seen)), poses, FAR)


def _own(views: Views) -> np.ndarray | None:
    """Points (point, 3) of the set, None where they are too few, or bounds that say nothing of what images show."""
    if views.points is None or len(views.points) < FEWEST or are_planes(views.points):
        return None
    return np.asarray(views.points, float)


def box(views: Views, given: np.ndarray, points: np.ndarray) -> Finding | None:
    """Box that is not about what the images show: too small, too large or beside it."""
    if len(points) < FEWEST:
        return _box_by_alpha(views, given) or _box_by_cameras(views, given)
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    size, wide = float(np.linalg.norm(high - low)), float(np.linalg.norm(given[1] - given[0]))
    inside = float(((points >= given[0]) & (points <= given[1])).all(1).mean())
    corners = ",".join(f"{v:.3g}" for v in (*(low - 0.05 * (high - low)), *(high + 0.05 * (high - low))))
    cure = f"--box {corners} holds most of it; or leave the box out, so that it is found"
    if inside < INSIDE:
        held = f"the box holds {inside:.0%} of the points that images agree on: it is"
        middle = given.mean(0)
        if (middle < low).any() or (middle > high).any():
            return Finding("box", "error", f"{held} beside most of them", cure)
        times = f"{size / wide:.1f} times " if 3 * wide < size else ""  # a part of the scene, if that is meant
        severity = "error" if UNIT * wide < size else "warning"
        return Finding("box", severity, f"{held} {times}too small for all of them", cure)
    if wide > LARGE * size:
        message = (
            f"the box is {wide / size:.0f} times as wide as what the images agree on, so its voxels are too coarse"
        )
        return Finding("box", "warning", message, cure)
    return None


def _box_by_alpha(views: Views, given: np.ndarray) -> Finding | None:
    """Box that masks belie, where there are no points: what they show lies outside of it, or is a small part of it."""
    if not views.shows_silhouettes:
        return None
    corners = np.stack(np.meshgrid(*given.T, indexing="ij"), -1).reshape(8, 3)
    outside, share = [], []
    for i in range(0, len(views), max(len(views) // 32, 1)):
        camera, alpha = views.cameras[i], alpha_of(views, i, masked=0) > 8
        if not alpha.any():
            continue
        rows, columns = np.nonzero(alpha)
        shown = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], float)
        local = (corners - camera.position) @ camera.world_from_camera[:3, :3]
        depth = -local[:, 2]
        if (depth <= 0).all():
            outside.append(1.0)
            continue
        if (depth <= 0).any():  # the camera stands in it, or beside it
            outside.append(0.0)
            share.append(0.0)
            continue
        pixels = camera.project(corners)[0]
        low, high = pixels.min(0), pixels.max(0)
        held = (columns >= low[0]) & (columns < high[0]) & (rows >= low[1]) & (rows < high[1])
        outside.append(1 - float(held.mean()))
        share.append(float(np.ptp(shown.reshape(2, 2), axis=0).max() / max((high - low).max(), 1e-9)))
    cure = "leave the box out, so that it is found by the masks"
    if outside and np.median(outside) > 1 - INSIDE:
        message = (
            f"{np.median(outside):.0%} of what the masks show lies outside of the box: it is too small, or beside it"
        )
        return Finding("box", "error", message, cure)
    if share and np.median(share) < 1 / LARGE:
        message = f"what the masks show takes {np.median(share):.0%} of the box's width, so its voxels are too coarse"
        return Finding("box", "warning", message, cure)
    return None


def _box_by_cameras(views: Views, given: np.ndarray) -> Finding | None:
    """Box that no camera looks at."""
    if (coverage(views, given) > 0).mean() > LOOKED_AT:
        return None
    cure = "give another, or leave it out, so that it is found"
    return Finding("box", "error", "no camera looks at the box: it is beside what they show, or behind them", cure)


def coverage(views: Views, given: np.ndarray, world_from_box: np.ndarray | None = None) -> np.ndarray:
    """Count of views (VIEWED, VIEWED, VIEWED) that see each place of a box of the world, or of what an affine (4, 4)
    takes there."""
    share = (np.arange(VIEWED) + 0.5) / VIEWED
    places = given[0] + np.stack(np.meshgrid(share, share, share, indexing="ij"), -1) * (given[1] - given[0])
    if world_from_box is not None:
        places = places @ world_from_box[:3, :3].T + world_from_box[:3, 3]
    count = np.zeros(VIEWED**3, int)
    for camera in views.cameras:
        pixels, depth = camera.project(places.reshape(-1, 3))
        count += (depth > 0) & (pixels >= 0).all(1) & (pixels < (camera.width, camera.height)).all(1)
    return count.reshape((VIEWED,) * 3)
