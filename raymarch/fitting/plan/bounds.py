"""Bounds of a fit: the box of an object, the nested boxes of a scene, a frustum, and where its rays begin.

An object's box is that of its visual hull, by alpha. Without alpha it is the cube that the fields of view span. A scene
without end has nested boxes about what its cameras look at, or, seen from one side, a frustum.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import Numbers
from raymarch.device.image_store import ImageStore
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import FitSettings
from raymarch.geometry.boxes import camera_in_box
from raymarch.geometry.camera import border_points
from raymarch.geometry.lens import unproject
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.kernels.fit import hull
from raymarch.views.agreement import dissenters, fraction_beside, no_place_reason
from raymarch.views.focus import BOX_CURE, faces_away, names_of_mask, require_near
from raymarch.views.views import Views

log = logging.getLogger(__name__)

SEARCH_CELLS = 64
MIN_VIEWS = 8
# of the cameras that may look away from the rest and be named; more are a way of taking pictures
MAX_AWAY_FRACTION = 0.25
MAX_GROWTHS = 3  # of the cube in which the hull is sought
# of the views that see the best seen cell: more than so many see one that counts
HULL_FRACTION, LOWER_HULL_FRACTIONS = 0.5, (0.25, 0.1)
MIN_HULL_VIEWS = 5  # views, more of which have to see it where fewer do
# of what a view shows, beside a box; of the views, that show so much there: it is too small
MIN_BESIDE_FRACTION, MAX_MISSED_FRACTION = 0.1, 0.05


def find_box(survey: Survey, store: ImageStore) -> np.ndarray:
    """Bounding box in the world of what the views show: lower and upper corner (2, 3).

    With alpha, the bounds of the visual hull; without, the cube that the cameras' fields of view span about the
    point nearest to all their axes. Raises RaymarchError, with the views and the cause as far as these can be told,
    where the axes meet nowhere, a camera is far from all others, or no place shows something in all images. What
    speaks against the cameras without ruling them out is said in the log.
    """
    views = survey.views
    require_near(views)
    centre, half = _focus_of(survey)
    if not survey.silhouettes:
        _doubt_directions(survey, centre, half)
        again = f" --set boxes={MIN_SCENE_BOXES}" if survey.bounded else ""  # else the preset takes one box too
        log.warning(
            "the images have no alpha that masks anything, so the box is all that the cameras see; a tighter box fits"
            " better, and --preset photos%s a scene without end",
            again,
        )
        return np.stack([centre - half, centre + half])
    if len(views) < MIN_VIEWS:
        log.warning("%d views carve the box badly; a tighter box fits better", len(views))
    try:
        box = _box_of_silhouettes(views, store, centre, half)
    except RaymarchError as error:
        raise RaymarchError(f"{error}: {no_place_reason(views, centre, half)}") from None
    _doubt_directions(survey, centre, half)
    if (dissent := dissenters(views, box)).any():
        log.warning(
            "view %s shows something where the others show nothing, or nothing where they agree; is its pose right?",
            names_of_mask(views, dissent),
        )
    return box


def _box_of_silhouettes(views: Views, store: ImageStore, centre: np.ndarray, half: float) -> np.ndarray:
    """Bounds of the hull about a point, of cells that half as many views see as the best seen one; where that leaves
    out what many views show, as among close-ups of a part, of cells that fewer see, if these hold it and no camera."""
    first = _box_of_hull(store, centre, half, HULL_FRACTION)
    missed = fraction_beside(views, first) > MIN_BESIDE_FRACTION
    if missed.mean() <= MAX_MISSED_FRACTION:
        return first
    within = camera_in_box(views.cameras, first)
    for share in LOWER_HULL_FRACTIONS:
        with suppress(RaymarchError):
            box = _box_of_hull(store, centre, half, share, MIN_HULL_VIEWS, bounded=True)
            if (fraction_beside(views, box) > MIN_BESIDE_FRACTION).mean() <= MAX_MISSED_FRACTION and (
                within or not camera_in_box(views.cameras, box)
            ):
                return box
    log.warning(
        "the box leaves out some of what %d of %d views show that were asked; if that belongs to it, %s",
        *(missed.sum(), len(missed), BOX_CURE),
    )
    return first


def _box_of_hull(
    store: ImageStore, centre: np.ndarray, half: float, share: float, least: int = 0, bounded: bool = False
) -> np.ndarray:
    """Bounds of the hull about a point, of cells as of `_bounds_of_hull`; RaymarchError where it is to be `bounded` but
    no cube holds it."""
    box = np.stack([centre - half, centre + half])
    tight = _bounds_of_hull(store, box, share, least)
    for _ in range(MAX_GROWTHS):  # grow the cube until the hull stays clear of its faces
        if _is_clear(tight, box):
            break
        half *= 1.6
        box = np.stack([centre - half, centre + half])
        tight = _bounds_of_hull(store, box, share, least)
    if bounded and not _is_clear(tight, box):
        raise RaymarchError("the images bound nothing")
    return _bounds_of_hull(store, tight, share, least)


def _is_clear(tight: np.ndarray, box: np.ndarray) -> bool:
    """Whether bounds stay clear of a box's faces."""
    return bool((tight[0] > box[0]).all() and (tight[1] < box[1]).all())


def _focus_of(survey: Survey) -> tuple[np.ndarray, float]:
    """Focus of the cameras; where there is none, the error also says in what convention there would be one."""
    try:
        return survey.focus
    except RaymarchError as error:
        words = survey.convention
        raise RaymarchError(f"{error}; maybe the poses {words}" if words else str(error)) from None


def _doubt_directions(survey: Survey, centre: np.ndarray, half: float) -> None:
    """Say which cameras look away from the rest; RaymarchError where all do and no ray can meet the cube."""
    views = survey.views
    away = faces_away(views.cameras, centre)
    if 0 < away.sum() <= MAX_AWAY_FRACTION * len(views):
        log.warning("%d of %d cameras look away from the rest (%s)", away.sum(), len(views), names_of_mask(views, away))
    words = survey.convention if away.sum() > MAX_AWAY_FRACTION * len(views) else ""
    if not words:
        return
    some = "all cameras" if away.all() else f"{away.sum()} of {len(views)} cameras"
    said = f"{some} look away from the point where the axes meet; maybe the poses {words}"
    nearest = float(survey.distances(centre).min())
    if away.all() and nearest > np.sqrt(3) * half:
        raise RaymarchError(f"{said}; if the cameras do look outwards, the box cannot be found, {BOX_CURE}")
    log.warning("%s; all is well if they do look outwards", said)


def visual_hull(store: ImageStore, box: np.ndarray, cells: Sequence[int]) -> np.ndarray:
    """(x, y, z) int32 for `cells` cells of the box: how many views see it wholly, or -1 where one
    shows that it is empty, or none looks."""
    lower, upper = np.asarray(box, float)
    seen = np.zeros(tuple(cells), np.int32)
    size = (upper - lower) / np.array(seen.shape)
    hull.visual_hull(store.fields, store.views, ti.Vector(lower.tolist()), ti.Vector(size.tolist()), seen)
    return seen


def _bounds_of_hull(store: ImageStore, box: np.ndarray, share: float, least: int) -> np.ndarray:
    """Bounds of the hull within the box, one cell wider where there is room.

    A cell that few views see, such as one right before a camera, has had little chance to be found empty: it counts
    only if more than this share of those that see the best seen one see it, and more than `least`.
    """
    seen = visual_hull(store, box, (SEARCH_CELLS,) * 3)
    allowed = (seen >= 0) & (seen > max(share * seen.max(), least))
    if not allowed.any():
        raise RaymarchError("the images are transparent wherever the views agree")
    index = np.argwhere(allowed)
    size = (box[1] - box[0]) / SEARCH_CELLS
    first, last = np.maximum(index.min(0) - 1, 0), np.minimum(index.max(0) + 2, SEARCH_CELLS)
    return np.stack([box[0] + first * size, box[0] + last * size])


MIN_SCENE_BOXES = 6  # at least: the outermost is 32 times as large as the innermost
MAX_BOXES = 8  # boxes where points tell of more
HELD_FRACTION = 0.99  # of the points, which say how far the scene reaches; a wild one in a hundred does not count
BACKGROUND_BOXES = 3  # boxes more: what is far, or without texture, is seen and has no points; fewer lost up to 4 dB
INNER_FRACTION = 0.5  # of the points, by the innermost box, where the cameras' axes meet nowhere
MIN_COMMON_DIRECTION = 0.5  # length of the mean of the axes, from which on depth along it means something
NEAR_FRACTION = 0.5  # of the distance of half the cameras from what they look at: half a side of the box
# extents of the cameras' places before them that the middle lies at, where their axes meet nowhere
CENTRE_DISTANCE = 1.0
INNER_EXTENT = 0.8  # of that extent


def box_of_scene(survey: Survey) -> np.ndarray:
    """Innermost box (2, 3) of nested ones: a cube about what the cameras look at, half as wide as they are far from it.

    Of cameras that look one way, as in a forward-facing capture, or outwards, it is a cube about the middle half of the
    set's points; without points it lies ahead of them (Sun et al. 2024, "Sparse voxels rasterization", has both rules
    for cameras). Raises RaymarchError for one camera, or a camera far from all others.
    """
    require_near(survey.views)
    eyes, axes = survey.eyes, survey.axes
    try:
        centre, _ = survey.focus
        ahead = ((centre - eyes) * axes).sum(1)
        if np.mean(ahead > 0) > 0.5:
            half = NEAR_FRACTION * float(np.median(np.linalg.norm(centre - eyes, axis=1)))
            return np.stack([centre - half, centre + half])
    except RaymarchError:
        pass
    if (points := survey.points) is not None:
        centre = _middle(points, eyes, axes)
        if (half := _reach(points, centre, INNER_FRACTION)) > 0:
            return np.stack([centre - half, centre + half])
    extent = float(np.linalg.norm(np.ptp(eyes, axis=0)))
    if extent == 0:
        raise RaymarchError(
            "all cameras stand in one point, so the box of the scene cannot be found; give it: box=, --box"
        )
    centre, half = eyes.mean(0) + CENTRE_DISTANCE * extent * axes.mean(0), INNER_EXTENT * extent
    return np.stack([centre - half, centre + half])


def boxes_of_scene(survey: Survey) -> int:
    """Count of nested boxes: the fewest that hold 99 % of the set's points and three more for what is behind them, from
    6, which it is without points, to 8.

    Raises RaymarchError as `box_of_scene` does.
    """
    if (points := survey.points) is None:
        return MIN_SCENE_BOXES
    lower, upper = box_of_scene(survey)
    times = 2 * _reach(points, (lower + upper) / 2, HELD_FRACTION) / float((upper - lower).max())
    fewest = 1 + math.ceil(math.log2(max(times, 1.0)))
    return min(max(fewest + BACKGROUND_BOXES, MIN_SCENE_BOXES), MAX_BOXES)


def _middle(points: np.ndarray, eyes: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Median point; of cameras that look one way, at the median of inverse depths, for near things show the most."""
    centre, eye, axis = np.median(points, axis=0), eyes.mean(0), axes.mean(0)
    if (length := float(np.linalg.norm(axis))) < MIN_COMMON_DIRECTION:
        return centre
    axis = axis / length
    depth = (points - eye) @ axis
    if not (depth > 0).any():
        return centre
    return centre + (1 / np.median(1 / depth[depth > 0]) - (centre - eye) @ axis) * axis


def _reach(points: np.ndarray, centre: np.ndarray, share: float) -> float:
    """Half the side of the cube about a centre that holds this share of the points."""
    return float(np.quantile(np.abs(points - centre).max(1), share, method="lower"))


MIN_RAY_STEEPNESS = 0.2  # depth by distance: rays that are flatter than that to the near plane look another way
MAX_FRUSTUM_TANGENT = 3.0  # tangent of half the frustum's width
MAX_FRUSTUM_SPREAD = 2.0  # times the width of one camera's frustum, up to which NDC were better than nested boxes
NEAREST_QUANTILE = 0.01  # of the scene's points lie nearer than what the near plane goes by
NEAR_MARGIN = 0.8  # of their depth
AHEAD = 0.5  # of the cameras' extent lies the near plane before them where no points are known
MAX_SAMPLES_ACROSS = 2.5  # samples across for one along depth
LEAVE_NDC_OUT = "leave ndc out (--set ndc=False)"


@dataclass(frozen=True, eq=False)
class Frustum:
    """Frustum of a fit in NDC: `ndc_from_world` (4, 4), the box (2, 3) there, z from -1 to 1, and how many times as
    wide as one camera's own it is."""

    ndc_from_world: np.ndarray
    box: np.ndarray
    spread: float


def frustum_for(survey: Survey, settings: FitSettings, box: Numbers | None = None) -> Frustum | None:
    """Frustum of a fit: where settings ask for NDC, or leave them to views of a scene without end and it is not much
    wider than what one camera sees; else None.

    Raises RaymarchError where NDC are asked for that the views, or a box beside it, do not allow.
    """
    if settings.ndc:
        if box is not None:
            raise RaymarchError("ndc is True beside a box, which it takes from the cameras; leave one out")
        return frustum_of_views(survey)
    if settings.ndc is False or settings.boxes is not None or box is not None or survey.bounded:
        return None
    try:
        found = frustum_of_views(survey)
    except RaymarchError:
        return None
    return found if found.spread <= MAX_FRUSTUM_SPREAD else None


def frustum_of_views(survey: Survey) -> Frustum:
    """Frustum that holds what all cameras see from its near plane on: about their mean pose, as wide as it must be.

    The near plane is at 0.8 of the depth of the nearest hundredth of the scene's points, or half as far before the
    cameras as they are apart. A sample is as deep as it is wide, where width is what the cameras' places shift it by
    against what is behind.

    Raises RaymarchError where the cameras do not look one way, stand in one point, or beyond the near plane.
    """
    require_near(survey.views)
    pose = _mean_pose(survey.views)
    turn, place = pose[:3, :3], pose[:3, 3]
    eyes = (survey.eyes - place) @ turn
    extent = float(np.linalg.norm(np.ptp(eyes, axis=0)))
    if extent == 0:
        raise RaymarchError(f"all cameras stand in one point, which NDC tell no depth for; {LEAVE_NDC_OUT}")
    near, foremost = _near_plane_of_frustum(survey, pose, extent), float(-eyes[:, 2].min())
    if near <= foremost:
        raise RaymarchError(
            f"a camera stands {foremost:.3g} before the mean one, beyond the near plane at {near:.3g}; {LEAVE_NDC_OUT}"
        )
    tangents, own = np.zeros(2), np.zeros(2)
    for camera, eye in zip(survey.views.cameras, eyes, strict=True):
        edge = border_points(camera.width, camera.height)
        local = unproject(edge, camera.focal, camera.principal, camera.lens)
        ways = local @ camera.world_from_camera[:3, :3].T @ turn
        if not (-ways[:, 2] > MIN_RAY_STEEPNESS * np.linalg.norm(ways, axis=1)).all():
            raise RaymarchError(f"the cameras do not all look one way, as NDC need it; {LEAVE_NDC_OUT}")
        slopes = ways[:, :2] / -ways[:, 2:]
        own = np.maximum(own, np.abs(local[:, :2] / local[:, 2:]).max(0))
        at_near = (eye[:2] + slopes * (near + eye[2])) / near
        tangents = np.maximum(tangents, np.abs(np.concatenate([slopes, at_near])).max(0))
    if tangents.max() > MAX_FRUSTUM_TANGENT:
        raise RaymarchError(
            f"what the cameras see is {tangents.max():.1f} times as wide to a side as far at the near plane, want"
            f" {MAX_FRUSTUM_TANGENT:g} at most for NDC; {LEAVE_NDC_OUT}"
        )
    focal = float(np.clip(2 * near / extent, 1 / tangents.max(), MAX_SAMPLES_ACROSS / tangents.max()))
    half = np.array([*(focal * tangents), 1.0])
    return Frustum(ndc_of_frustum(pose, near, focal), np.stack([-half, half]), float((tangents / own).max()))


def _mean_pose(views: Views) -> np.ndarray:
    """Pose (4, 4) in the middle of all: mean place, and the rotation nearest to the mean of theirs."""
    mean = np.mean([camera.world_from_camera for camera in views.cameras], axis=0)
    u, _, vt = np.linalg.svd(mean[:3, :3])
    if np.linalg.det(u @ vt) < 0:
        raise RaymarchError(f"the cameras do not all look one way, as NDC need it; {LEAVE_NDC_OUT}")
    mean[:3, :3] = u @ vt
    return mean


def _near_plane_of_frustum(survey: Survey, pose: np.ndarray, extent: float) -> float:
    """Near plane's distance before the mean camera [world unit]."""
    points = survey.own_points if survey.points is None else survey.points
    if points is not None and len(points):
        depth = -((points - pose[:3, 3]) @ pose[:3, 2])
        return NEAR_MARGIN * float(np.quantile(depth, NEAREST_QUANTILE))
    return AHEAD * extent


MAX_NEARER_CAMERAS = 0.05  # of the cameras, which may stand nearer
MAX_START_FRACTION = 0.5  # to the middle, where rays of the nearest camera begin at the latest


def near_plane(survey: Survey, middle: np.ndarray, share: float) -> float:
    """Distance before each camera [world unit]: a share of what half of them are from the middle (3,), but half the way
    there of the nearest at most, of those that look at it: what close-ups show is not to lie before where rays begin.
    One in twenty may stand nearer, as one that walks by.

    Example:
        >>> far, close = (Camera.look_at((0, y, 0), width=8, height=8) for y in (-4, -1))
        >>> sets = ([far], [far, far, close])
        >>> surveys = [Survey(Views(cameras, np.zeros((len(cameras), 8, 8, 3), np.uint8))) for cameras in sets]
        >>> [near_plane(survey, np.zeros(3), 0.25) for survey in surveys]
        [1.0, 0.5]
    """
    usual = share * usual_distance(survey, middle)
    away = survey.distances(middle)[~faces_away(survey.views.cameras, middle)]
    nearest = float(np.quantile(away, MAX_NEARER_CAMERAS, method="lower")) if len(away) else np.inf
    if MAX_START_FRACTION * nearest < usual:
        log.warning(
            "rays begin %.3g before their cameras in place of %.3g, for close-ups", MAX_START_FRACTION * nearest, usual
        )
    return min(usual, MAX_START_FRACTION * nearest)


def usual_distance(survey: Survey, middle: np.ndarray) -> float:
    """Distance of half the cameras from the middle (3,) of what they look at [world unit]."""
    return float(np.median(survey.distances(middle)))
