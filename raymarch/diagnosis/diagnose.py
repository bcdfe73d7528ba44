"""Diagnosis of an image set: faults of poses, lenses, images and box, each with its cure.

`diagnose` asks all it can in some seconds; `in_short`, at the start of each fit, what is quick to tell and certain."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from raymarch.arguments.checks import Numbers, optional
from raymarch.arguments.declared import checked
from raymarch.diagnosis import backgrounds, extent, images, intrinsics
from raymarch.diagnosis import poses as conventions
from raymarch.diagnosis.extent import silhouettes
from raymarch.diagnosis.finding import Finding, by_severity
from raymarch.diagnosis.poses import image_order, single_views, upright
from raymarch.geometry.boxes import BOX
from raymarch.matching import points as matching_points
from raymarch.matching.epipolar import Sight, agreeing, nearness, poses_of, sight
from raymarch.matching.matches import Features, features_of, match, neighbours
from raymarch.views.contents import doubts
from raymarch.views.views import VIEWS, Views

MOST_VIEWS = 160  # that are asked, evenly spread
MIN_MATCHES_A_VIEW = 12  # matches a view, under which they cannot say anything
AGREED = 0.6  # of the matches, under which another reading of the poses is looked for
AT_ODDS = 0.3  # of the matches, under which the poses are wrong in a way that nobody has told
ASKED, EACH = 4, 6  # views, and how many of its neighbours each is compared with
MIN_MATCHES_IN_ALL = 120  # matches in all
QUICK_AT_ODDS, QUICK_AGREED = 0.5, 0.6  # of the matches, with the poses as given; as they are read otherwise


@checked(views=VIEWS, box=optional(BOX))
def diagnose(views: Views, *, box: Numbers | None = None) -> tuple[Finding, ...]:
    """Diagnosis of an image set: what is wrong with it, the worst first; empty where nothing was found.

    Feature points are matched between neighbouring views, and cameras, lens and exposure held against the matches;
    where there are too few, silhouettes are held against each other. Of more than 160 views so many are asked, evenly
    spread. Takes some seconds.

    Args:
        views: the set, as `load_views` gives it.
        box: lower and upper corner (2, 3) of the box that a fit would take [world unit]; the set's own if None.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 8, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> [finding.code for finding in diagnose(Views(ring, np.full((8, 8, 8, 3), 9, np.uint8)))]
        ['contents']
    """
    return examine(views, box).findings


class Examination(NamedTuple):
    """Findings about a set, and the points (point, 3) in the world that its images agree on."""

    findings: tuple[Finding, ...]
    points: np.ndarray


def examine(views: Views, box: np.ndarray | None, points: list[Features] | None = None) -> Examination:
    """Diagnosis as `diagnose` gives it, with what a picture of it needs; feature points may be known already."""
    if len(views) > MOST_VIEWS:
        points, views = None, views[np.linspace(0, len(views) - 1, MOST_VIEWS).astype(int)]
    findings: list[Finding | None] = [
        Finding("contents", "warning", said, "see to how they were exported") for said in doubts(views)
    ]
    points = features_of(views) if points is None else points
    light = images.colour_space(views, points)
    findings += [extent.far_away(views), images.duplicates(views), images.alpha_kind(views), light]
    given = views.box if box is None else np.asarray(box)
    still = backgrounds.standing_still(views)
    findings += [still, backgrounds.masks_alone(views)]
    nothing: tuple[list[Finding | None], np.ndarray] = [], np.zeros((0, 3))
    # what stands still matches itself, and says nothing of the cameras
    of_cameras, crossings = _of_cameras(views, points, given, light is None) if still is None else nothing
    found = [each for each in (*findings, *of_cameras) if each is not None]
    if all(each.severity != "error" for each in found) and (note := upright(views)) is not None:
        found.append(note)
    return Examination(by_severity(found), crossings)


def _of_cameras(
    views: Views, points: list[Features], given: np.ndarray | None, encoded: bool
) -> tuple[list[Finding | None], np.ndarray]:
    """Findings that need more than one view, and points of the scene."""
    nothing = np.zeros((0, 3))
    if len(views) < 2:
        return [Finding("one-view", "error", "there is only one view", "take more, from all around")], nothing
    if images.distinct(views) < len(views) / 2:  # copies match wherever their cameras are
        return [], nothing
    matches = match(points, neighbours(views.cameras))
    parallel = any(camera.lens.parallel for camera in views.cameras)  # whose rays meet in no centre: no epipoles
    if parallel or len(matches) < MIN_MATCHES_A_VIEW * len(views):
        beside = None if given is None else extent.box(views, given, nothing)
        return [*silhouettes(views), images.exposure_by_alpha(views), beside], nothing
    findings: list[Finding | None] = []
    poses, seen, near = poses_of(views.cameras), sight(views.cameras, matches), nearness(views.cameras, matches)
    if agreeing(poses, matches, seen, near).mean() < AGREED:
        found, poses = conventions.convention(poses, matches, seen, near)
        findings.append(found)
        if found is not None:  # neighbours are others now
            read = [replace(camera, world_from_camera=pose) for camera, pose in zip(views.cameras, poses, strict=True)]
            matches = match(points, neighbours(read))
            seen, near = sight(views.cameras, matches), nearness(views.cameras, matches)
    focal, seen = intrinsics.focal(views.cameras, matches, seen, poses)
    findings.append(focal)
    agree = agreeing(poses, matches, seen, near)
    if agree.mean() < AT_ODDS:
        return [*findings, image_order(views, points)], nothing
    good, sure = matches.take(agree), Sight(*(part[agree] for part in seen))
    scene = matching_points.points_of(views, good, sure, poses)
    findings += single_views(views, poses, matches, seen, near)
    lens = intrinsics.lens(views.cameras, good, sure, poses) if focal is None else None
    findings += [lens, images.exposure(views, good, encoded)]
    findings += [images.blur(views, good), None if given is None else extent.box(views, given, scene)]
    return findings, scene


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
    found += [images.alpha_kind(some), images.combed(some), None if found[1] is not None else _convention(views)]
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
    if len(matches) < MIN_MATCHES_IN_ALL:
        return None
    poses, seen, near = poses_of(few.cameras), sight(few.cameras, matches), nearness(few.cameras, matches)
    if agreeing(poses, matches, seen, near).mean() > QUICK_AT_ODDS:
        return None
    found, read = conventions.convention(poses, matches, seen, near)
    if found is None or agreeing(read, matches, seen, near).mean() < QUICK_AGREED:
        return None
    return replace(found, severity="warning")
