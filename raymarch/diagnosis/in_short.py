"""Diagnosis in short, at the start of each fit: only what is quick to tell and certain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.diagnosis import backgrounds, encoding, extent
from raymarch.diagnosis import poses as conventions
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import features_of, match, neighbours
from raymarch.matching.epipolar import agreeing, nearness, poses_of, sight
from raymarch.views.views import Views

ASKED, EACH = 4, 6  # views, and how many of its neighbours each is compared with
FEWEST = 120  # matches in all
AT_ODDS, AGREED = 0.5, 0.6  # of the matches, with the poses as given; as they are read otherwise


def in_short(views: Views) -> list[Finding]:
    """Findings about what is certain by a few views: places, backgrounds, kind of alpha, linear light, poses.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 8, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> in_short(Views(ring, np.full((8, 8, 8, 3), 9, np.uint8)))
        []
    """
    some = views[np.linspace(0, len(views) - 1, min(len(views), ASKED)).astype(int)]
    found = [extent.far_away(views), backgrounds.standing_still(views), backgrounds.masks_alone(views)]
    found += [encoding.alpha_kind(some), encoding.combed(some), None if found[1] is not None else _convention(views)]
    return [each for each in found if each is not None]


def _convention(views: Views) -> Finding | None:
    """Convention of the poses, where the matches of a few pairs of views leave no doubt."""
    if len(views) < 3:
        return None
    asked = sorted(set(np.linspace(0, len(views) - 1, ASKED).astype(int).tolist()))
    pairs = neighbours(views.cameras, EACH, asked)
    met = sorted({view for pair in pairs for view in pair})
    few, place = views[met], {view: k for k, view in enumerate(met)}
    matches = match(features_of(few), [(place[i], place[j]) for i, j in pairs])
    if len(matches) < FEWEST:
        return None
    poses, seen, near = poses_of(few.cameras), sight(few.cameras, matches), nearness(few.cameras, matches)
    if agreeing(poses, matches, seen, near).mean() > AT_ODDS:
        return None
    found, read = conventions.convention(poses, matches, seen, near)
    if found is None or agreeing(read, matches, seen, near).mean() < AGREED:
        return None
    return replace(found, severity="warning")
