"""Extent of what the views show: a box held against points, masks or cameras, and silhouettes against each other.

Of silhouettes it is how much of what masks show lies where all agree, in each reading of the poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.errors import RaymarchError
from raymarch.geometry.alignment import nearest_to_lines
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import unproject
from raymarch.geometry.pose_readings import READINGS, axis_rotations, read_as, reading_text
from raymarch.matching.epipolar import poses_of
from raymarch.matching.points import MIN_POINTS, coverage
from raymarch.views.agreement import alpha_of, dissenters
from raymarch.views.depth_images import unit_doubt
from raymarch.views.focus import faces_away, focus, names_of_mask
from raymarch.views.views import Views
from raymarch.views.world_origin import far_middle

MIN_INSIDE_FRACTION = 0.3  # of the points, under which a box is not about them
MIN_UNIT_RATIO = 100.0  # times too small, as no part of a scene is, but a box in another unit
MAX_BOX_RATIO = 7.0  # times as wide as what is seen, on every axis
MIN_SEEN_FRACTION = 0.01  # of a box, that some camera sees


def distant_cameras(views: Views) -> Finding | None:
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


def depth_unit(views: Views) -> Finding | None:
    """Depth images of another unit than the cameras' world, as far as the cameras look at one place."""
    if views.depths is None:
        return None
    try:
        centre, _ = focus(views.cameras)
    except RaymarchError:
        return None
    usual = float(np.median([np.linalg.norm(camera.position - centre) for camera in views.cameras]))
    doubt = unit_doubt(views.depths, usual)
    said, _, cure = doubt.partition("; ")
    return Finding("depth-unit", "warning", said, cure) if doubt else None


def box(views: Views, given: np.ndarray, points: np.ndarray) -> Finding | None:
    """Box that is not about what the images show: too small, too large or beside it."""
    if len(points) < MIN_POINTS:
        return _box_by_alpha(views, given) or _box_by_cameras(views, given)
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    size, wide = float(np.linalg.norm(high - low)), float(np.linalg.norm(given[1] - given[0]))
    inside = float(((points >= given[0]) & (points <= given[1])).all(1).mean())
    corners = ",".join(f"{v:.3g}" for v in (*(low - 0.05 * (high - low)), *(high + 0.05 * (high - low))))
    cure = f"--box {corners} holds most of it; or leave the box out, so that it is found"
    if inside < MIN_INSIDE_FRACTION:
        held = f"the box holds {inside:.0%} of the points that images agree on: it is"
        middle = given.mean(0)
        if (middle < low).any() or (middle > high).any():
            return Finding("box", "error", f"{held} beside most of them", cure)
        times = f"{size / wide:.1f} times " if 3 * wide < size else ""  # a part of the scene, if that is meant
        severity = "error" if MIN_UNIT_RATIO * wide < size else "warning"
        return Finding("box", severity, f"{held} {times}too small for all of them", cure)
    if wide > MAX_BOX_RATIO * size:
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
    if outside and np.median(outside) > 1 - MIN_INSIDE_FRACTION:
        message = (
            f"{np.median(outside):.0%} of what the masks show lies outside of the box: it is too small, or beside it"
        )
        return Finding("box", "error", message, cure)
    if share and np.median(share) < 1 / MAX_BOX_RATIO:
        message = f"what the masks show takes {np.median(share):.0%} of the box's width, so its voxels are too coarse"
        return Finding("box", "warning", message, cure)
    return None


def _box_by_cameras(views: Views, given: np.ndarray) -> Finding | None:
    """Box that no camera looks at."""
    if (coverage(views, given) > 0).mean() > MIN_SEEN_FRACTION:
        return None
    cure = "give another, or leave it out, so that it is found"
    return Finding("box", "error", "no camera looks at the box: it is beside what they show, or behind them", cure)


MAX_MASKED_VIEWS = 24  # views
GRID_SIDE = 20  # a side of the box, that may be full
BLOCKS_A_SIDE = 24  # a side, into which an image is divided
# of what masks show, that all agree on: where poses are right; where they are not
GOOD_AGREEMENT, POOR_AGREEMENT = 0.85, 0.6
MIN_IMAGE_SIDE = 8  # pixels a side, of images that outline nothing
MAX_EMPTY_ALPHA = 8  # of 255: alpha up to that counts as empty
OPAQUE_ALPHA = 255
MIN_MASKED_VIEWS = 6  # views, of which one can be told from the rest
SHUFFLES = 20  # orders of the images, that the one given is held against
MIN_MISS_RATIO, MIN_MISS_ANGLE = 0.7, np.deg2rad(0.1)  # of the others' misses; of which there must be that much


def silhouettes(views: Views) -> list[Finding]:
    """Findings about poses, by masks alone."""
    if not views.shows_silhouettes or len(views) < 4 or min(map(min, views.sizes)) < MIN_IMAGE_SIDE:
        return []
    few = views[np.linspace(0, len(views) - 1, min(len(views), MAX_MASKED_VIEWS)).astype(int)]
    shown = np.stack(
        [[_shown_blocks(alpha_of(few, i, masked)) for masked in (0, OPAQUE_ALPHA)] for i in range(len(few))]
    )
    if not shown[:, 0].any((1, 2)).mean() > 0.5:  # there is nothing to agree on
        return []
    poses = poses_of(few.cameras)
    given = silhouette_agreement(few.cameras, poses, shown)
    if given > GOOD_AGREEMENT:
        return _centre_findings(few) or _dissenting_views(views)
    best, words = given, None
    for name, turn in product(READINGS, axis_rotations()):
        share = silhouette_agreement(few.cameras, read_as(poses, name, turn), shown)
        if share > best:
            best, words = share, reading_text(name, turn)
    if words is not None and best > max(GOOD_AGREEMENT, given + 0.25):
        code, what, cure = words
        message = f"the poses {what}: so read the masks agree on {best:.0%} of what they show, as given on {given:.0%}"
        return [Finding(code, "error", message, cure)]
    if given < POOR_AGREEMENT:
        message = f"the masks agree on {given:.0%} of what they show, in no reading of the poses on much more"
        cure = "check that each image is that of its camera: order, names, sorting; then poses and focal length"
        return [Finding("images-shuffled", "error", message, cure)]
    return _dissenting_views(views)


def _centre_findings(views: Views) -> list[Finding]:
    """Findings by the middles of what the masks show, whose rays pass close to one point where all is well."""
    if any(camera.lens.parallel for camera in views.cameras):
        return []
    rays = [_middle(views, i) for i in range(len(views))]
    if min(len(views), sum(ray is not None for ray in rays)) < max(MIN_MASKED_VIEWS, len(views)):
        return []
    local, poses = np.array(rays, float), poses_of(views.cameras)
    off, rng = _miss_angles(poses, local), np.random.default_rng(0)
    if off is None:
        return []
    shuffled = [_miss_angles(poses[rng.permutation(len(poses))], local) for _ in range(SHUFFLES)]
    others = [np.inf if each is None else float(np.median(each)) for each in shuffled]
    if _is_translucent(views) and np.median(off) > MIN_MISS_RATIO * np.median(others) > MIN_MISS_RATIO * MIN_MISS_ANGLE:
        message = "what the masks show lies no nearer to one place than if the images were given to any other cameras"
        cure = "check that each image is that of its camera: order, names, sorting"
        return [Finding("images-shuffled", "error", message, cure)]
    bad = off > max(0.035, 5 * float(np.median(off)))
    if not bad.any() or bad.mean() > 0.25:
        return []
    message = (
        f"view {names_of_mask(views, bad)} shows the object {np.rad2deg(off.max()):.1f} degrees from where others do"
    )
    return [Finding("camera-off", "warning", message, "correct its pose or take it out")]


def _is_translucent(views: Views) -> bool:
    """Whether nothing in the images is opaque: then the middles are those of the matter, whatever the direction."""
    return all((views.image(i)[..., 3] > 0.95 * OPAQUE_ALPHA).mean() < 1e-3 for i in range(len(views)))


def _middle(views: Views, view: int) -> np.ndarray | None:
    """Direction (3,) in camera axes of the middle of what an image's mask shows; None where that is nothing."""
    alpha, camera = alpha_of(views, view, masked=0).astype(float), views.cameras[view]
    if alpha.sum() < OPAQUE_ALPHA:
        return None
    alpha = -np.log1p(-np.minimum(alpha / OPAQUE_ALPHA, 0.995))  # optical depth, whose middle is that of the matter
    row, column = (
        (alpha.sum(axis) @ (np.arange(n) + 0.5)) / alpha.sum() for axis, n in ((1, camera.height), (0, camera.width))
    )
    direction = unproject(np.array([column, row]), camera.focal, camera.principal, camera.lens)
    return direction / np.linalg.norm(direction)


def _miss_angles(poses: np.ndarray, local: np.ndarray) -> np.ndarray | None:
    """Angles (view,) [radian] by which directions in camera axes miss the point nearest to all; None if parallel."""
    eye, ray = poses[:, :3, 3], np.einsum("nab,nb->na", poses[:, :3, :3], local)
    weight = np.ones(len(ray))
    for _ in range(5):  # a few that are off shall not move it
        point = nearest_to_lines(eye, ray, weight)
        if point is None:
            return None
        toward = point - eye
        toward /= np.maximum(np.linalg.norm(toward, axis=1, keepdims=True), 1e-12)
        off = np.arccos(np.clip((toward * ray).sum(1), -1, 1))
        weight = 1 / (1 + (off / max(float(np.median(off)), 1e-6)) ** 2)
    return off


def _dissenting_views(views: Views) -> list[Finding]:
    """Views that dissent from the rest."""
    try:
        centre, half = focus(views.cameras)
        dissent = dissenters(views, np.stack([centre - half, centre + half]))
    except RaymarchError:
        return []
    if not dissent.any():
        return []
    message = (
        f"view {names_of_mask(views, dissent)} shows something where the others show nothing, or the other way round"
    )
    return [Finding("camera-off", "warning", message, "check its pose, and that the image is that camera's")]


def _shown_blocks(alpha: np.ndarray) -> np.ndarray:
    """Which blocks of an image show something."""
    height, width = alpha.shape
    rows, columns = (
        np.arange(BLOCKS_A_SIDE) * height // BLOCKS_A_SIDE,
        np.arange(BLOCKS_A_SIDE) * width // BLOCKS_A_SIDE,
    )
    return np.maximum.reduceat(np.maximum.reduceat(alpha, rows, axis=0), columns, axis=1) > MAX_EMPTY_ALPHA


def silhouette_agreement(cameras: Sequence[Camera], poses: np.ndarray, shown: np.ndarray) -> float:
    """Share of the blocks that masks show which a body that no mask denies would cover; 0 where axes meet nowhere.

    shown (view, 2, BLOCKS, BLOCKS): blocks that show something; and those that may, for they are not known.
    """
    moved = [replace(camera, world_from_camera=pose) for camera, pose in zip(cameras, poses, strict=True)]
    try:
        centre, half = focus(moved)
    except RaymarchError:
        return 0.0
    if faces_away(moved, centre).mean() > 0.25:
        return 0.0
    share = (np.arange(GRID_SIDE) + 0.5) / GRID_SIDE * 2 - 1
    places = centre + 0.6 * half * np.stack(np.meshgrid(share, share, share, indexing="ij"), -1).reshape(-1, 3)
    denied, sees = np.zeros(len(places), int), np.zeros(len(places), int)
    blocks = []
    for camera, (_, mask) in zip(moved, shown, strict=True):
        pixels, depth = camera.project(places)
        u, v = pixels[:, 0] / camera.width, pixels[:, 1] / camera.height
        inside = (depth > 0) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        block = np.full(len(places), -1)
        block[inside] = (v[inside] * BLOCKS_A_SIDE).astype(int) * BLOCKS_A_SIDE + (u[inside] * BLOCKS_A_SIDE).astype(
            int
        )
        denied += inside & ~mask.ravel()[block]
        sees += inside
        blocks.append(block)
    full = (denied <= len(moved) // 12) & (sees > 0.5 * len(moved))
    covered = []
    for block, (mask, _) in zip(blocks, shown, strict=True):
        hit = np.zeros(BLOCKS_A_SIDE * BLOCKS_A_SIDE, bool)
        hit[block[full & (block >= 0)]] = True
        wide = np.pad(hit.reshape(BLOCKS_A_SIDE, BLOCKS_A_SIDE), 1)
        near = np.any([wide[r : r + BLOCKS_A_SIDE, c : c + BLOCKS_A_SIDE] for r in range(3) for c in range(3)], axis=0)
        covered.append((mask & near).sum() / max(mask.sum(), 1))
    return float(np.mean(covered))
