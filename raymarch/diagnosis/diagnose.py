"""Diagnosis of an image set: faults of poses, lenses, images and box, each with its cure.

`diagnose` asks all it can in some seconds; `quick_findings`, at the start of each fit, what is quick to tell and
certain."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from raymarch.arguments.checks import Numbers, optional
from raymarch.arguments.declared import checked
from raymarch.diagnosis import backgrounds, extent, images, intrinsics
from raymarch.diagnosis import poses as conventions
from raymarch.diagnosis.extent import silhouettes
from raymarch.diagnosis.finding import Finding, sort_findings
from raymarch.diagnosis.poses import image_order, single_views, upright_finding
from raymarch.geometry.boxes import BOX
from raymarch.matching import points as matching_points
from raymarch.matching.epipolar import MatchDirections, epipolar_tolerance, match_directions, matches_agree, poses_of
from raymarch.matching.matches import Features, features_of, match, neighbours
from raymarch.views.contents import doubts
from raymarch.views.views import COLOUR_VIEWS, Views

MAX_VIEWS = 160  # that are asked, evenly spread
MIN_MATCHES_A_VIEW = 12  # matches a view, under which they cannot say anything
MIN_AGREEMENT = 0.6  # of the matches, under which another reading of the poses is looked for
MIN_CONSISTENT_AGREEMENT = 0.3  # of the matches, under which the poses are wrong in a way that nobody has told
QUICK_VIEWS, QUICK_NEIGHBOURS = 4, 6  # views, and how many of its neighbours each is compared with
MIN_MATCHES = 120  # matches in all
# of the matches, with the poses as given; as they are read otherwise
QUICK_MAX_AGREEMENT, QUICK_MIN_AGREEMENT = 0.5, 0.6


@checked(views=COLOUR_VIEWS, box=optional(BOX))
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
    if len(views) > MAX_VIEWS:
        points, views = None, views[np.linspace(0, len(views) - 1, MAX_VIEWS).astype(int)]
    findings: list[Finding | None] = [
        Finding("contents", "warning", said, "see to how they were exported") for said in doubts(views)
    ]
    points = features_of(views) if points is None else points
    light = images.colour_space(views, points)
    findings += [
        extent.distant_cameras(views),
        extent.depth_unit(views),
        images.duplicate_images(views),
        images.alpha_kind(views),
        light,
    ]
    given = views.box if box is None else np.asarray(box)
    still = backgrounds.static_background(views)
    findings += [still, backgrounds.isolating_masks(views)]
    nothing: tuple[list[Finding | None], np.ndarray] = [], np.zeros((0, 3))
    # what stands still matches itself, and says nothing of the cameras
    of_cameras, crossings = _camera_findings(views, points, given, light is None) if still is None else nothing
    found = [each for each in (*findings, *of_cameras) if each is not None]
    if all(each.severity != "error" for each in found) and (note := upright_finding(views)) is not None:
        found.append(note)
    return Examination(sort_findings(found), crossings)


def _camera_findings(
    views: Views, points: list[Features], given: np.ndarray | None, encoded: bool
) -> tuple[list[Finding | None], np.ndarray]:
    """Findings that need more than one view, and points of the scene."""
    nothing = np.zeros((0, 3))
    if len(views) < 2:
        return [Finding("one-view", "error", "there is only one view", "take more, from all around")], nothing
    if images.count_distinct(views) < len(views) / 2:  # copies match wherever their cameras are
        return [], nothing
    matches = match(points, neighbours(views.cameras))
    parallel = any(camera.lens.parallel for camera in views.cameras)  # whose rays meet in no centre: no epipoles
    if parallel or len(matches) < MIN_MATCHES_A_VIEW * len(views):
        beside = None if given is None else extent.box(views, given, nothing)
        return [*silhouettes(views), images.exposure_by_alpha(views), beside], nothing
    findings: list[Finding | None] = []
    poses, seen, near = (
        poses_of(views.cameras),
        match_directions(views.cameras, matches),
        epipolar_tolerance(views.cameras, matches),
    )
    if matches_agree(poses, matches, seen, near).mean() < MIN_AGREEMENT:
        found, poses = conventions.pose_convention(poses, matches, seen, near)
        findings.append(found)
        if found is not None:  # neighbours are others now
            read = [replace(camera, world_from_camera=pose) for camera, pose in zip(views.cameras, poses, strict=True)]
            matches = match(points, neighbours(read))
            seen, near = match_directions(views.cameras, matches), epipolar_tolerance(views.cameras, matches)
    focal, seen = intrinsics.focal(views.cameras, matches, seen, poses)
    findings.append(focal)
    agree = matches_agree(poses, matches, seen, near)
    if agree.mean() < MIN_CONSISTENT_AGREEMENT:
        return [*findings, image_order(views, points)], nothing
    good, sure = matches.take(agree), MatchDirections(*(part[agree] for part in seen))
    scene = matching_points.points_of(views, good, sure, poses)
    findings += single_views(views, poses, matches, seen, near)
    lens = intrinsics.lens(views.cameras, good, sure, poses) if focal is None else None
    findings += [lens, images.exposure(views, good, encoded)]
    findings += [images.blurred_views(views, good), None if given is None else extent.box(views, given, scene)]
    return findings, scene


def quick_findings(views: Views) -> list[Finding]:
    """Findings about what is certain by a few views: places, backgrounds, kind of alpha, linear light, poses.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 8, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> quick_findings(Views(ring, np.full((8, 8, 8, 3), 9, np.uint8)))
        []
    """
    some = views[np.linspace(0, len(views) - 1, min(len(views), QUICK_VIEWS)).astype(int)]
    found = [extent.distant_cameras(views), backgrounds.static_background(views), backgrounds.isolating_masks(views)]
    found += [
        images.alpha_kind(some),
        images.linear_encoding(some),
        None if found[1] is not None else _convention(views),
    ]
    return [each for each in found if each is not None]


def _convention(views: Views) -> Finding | None:
    """Convention of the poses, where the matches of a few pairs of views leave no doubt."""
    if len(views) < 3:
        return None
    asked = sorted(set(np.linspace(0, len(views) - 1, QUICK_VIEWS).astype(int).tolist()))
    pairs = neighbours(views.cameras, QUICK_NEIGHBOURS, asked)
    met = sorted({view for pair in pairs for view in pair})
    few, place = views[met], {view: k for k, view in enumerate(met)}
    matches = match(features_of(few), [(place[i], place[j]) for i, j in pairs])
    if len(matches) < MIN_MATCHES:
        return None
    poses, seen, near = (
        poses_of(few.cameras),
        match_directions(few.cameras, matches),
        epipolar_tolerance(few.cameras, matches),
    )
    if matches_agree(poses, matches, seen, near).mean() > QUICK_MAX_AGREEMENT:
        return None
    found, read = conventions.pose_convention(poses, matches, seen, near)
    if found is None or matches_agree(read, matches, seen, near).mean() < QUICK_MIN_AGREEMENT:
        return None
    return replace(found, severity="warning")
