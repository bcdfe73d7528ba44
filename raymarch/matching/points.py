"""Extent of what the views show, by the crossings of matches, and the box held against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.matching.epipolar import (
    MatchDirections,
    epipolar_tolerance,
    match_directions,
    matches_agree,
    poses_of,
    ray_crossings,
)
from raymarch.matching.matches import Matches, features_of, match, neighbours
from raymarch.views.views import Views

MIN_ANGLE = np.deg2rad(2.0)  # between two rays, for their crossing to say how far it is
FAR_ANGLE = np.deg2rad(0.5)  # the same where only the order of magnitude matters
MIN_POINTS = 50  # points
POINT_NEIGHBOURS = 6  # of a view, with which its points are matched
MATCHED_VIEWS = 32  # views, evenly spread, whose matches tell how far a scene goes
COVERAGE_SIDE = 24  # points a side of the box at which it is asked who sees them


def points_of(
    views: Views, matches: Matches, seen: MatchDirections, poses: np.ndarray, apart: float = MIN_ANGLE
) -> np.ndarray:
    """Points (point, 3) in the world: the set's own, or where the rays of matches cross that agree with the poses."""
    if (own := _set_points(views)) is not None:
        return own
    found = ray_crossings(poses, matches, seen)
    return found.point[found.angle > apart]


def matched_points(views: Views) -> np.ndarray:
    """Points (point, 3) in the world: the set's own, or by matches of some of its views; takes some seconds then."""
    if (own := _set_points(views)) is not None:
        return own
    if len(views) < 2:
        return np.zeros((0, 3))
    some = views[np.linspace(0, len(views) - 1, min(len(views), MATCHED_VIEWS)).astype(int)]
    matches = match(features_of(some), neighbours(some.cameras))
    if len(matches) < MIN_POINTS:
        return np.zeros((0, 3))
    poses, seen, near = (
        poses_of(some.cameras),
        match_directions(some.cameras, matches),
        epipolar_tolerance(some.cameras, matches),
    )
    agree = matches_agree(poses, matches, seen, near)
    return points_of(some, matches.take(agree), MatchDirections(*(part[agree] for part in seen)), poses, FAR_ANGLE)


def with_matched_points(views: Views) -> Views:
    """Views with the points where the rays of matches cross, each seen by the two views of its match, in place of
    their own; takes some seconds.

    Kept are matches that agree with the cameras, whose rays cross before both at 2 degrees or more.
    """
    none = replace(views, points=None, sightings=None)
    if len(views) < 2:
        return none
    matches = match(features_of(views.in_colour()), neighbours(views.cameras, POINT_NEIGHBOURS))
    if not len(matches):
        return none
    poses, seen = poses_of(views.cameras), match_directions(views.cameras, matches)
    found = ray_crossings(poses, matches, seen)
    good = matches_agree(poses, matches, seen, epipolar_tolerance(views.cameras, matches))
    kept = matches.take(good := good & found.before & (found.angle > MIN_ANGLE))
    if not len(kept):
        return none
    numbers = np.arange(len(kept))
    pairs = np.concatenate([np.stack([one, numbers], axis=1) for one in (kept.first, kept.second)])
    return replace(none, points=found.point[good], sightings=pairs)


def _set_points(views: Views) -> np.ndarray | None:
    """Points (point, 3) of the set, None where they are too few."""
    if views.points is None or len(views.points) < MIN_POINTS:
        return None
    return np.asarray(views.points, float)


def coverage(views: Views, given: np.ndarray, world_from_box: np.ndarray | None = None) -> np.ndarray:
    """Count of views (VIEWED, VIEWED, VIEWED) that see each place of a box of the world, or of what an affine (4, 4)
    takes there."""
    share = (np.arange(COVERAGE_SIDE) + 0.5) / COVERAGE_SIDE
    places = given[0] + np.stack(np.meshgrid(share, share, share, indexing="ij"), -1) * (given[1] - given[0])
    if world_from_box is not None:
        places = places @ world_from_box[:3, :3].T + world_from_box[:3, 3]
    count = np.zeros(COVERAGE_SIDE**3, int)
    for camera in views.cameras:
        pixels, depth = camera.project(places.reshape(-1, 3))
        count += (depth > 0) & (pixels >= 0).all(1) & (pixels < (camera.width, camera.height)).all(1)
    return count.reshape((COVERAGE_SIDE,) * 3)
