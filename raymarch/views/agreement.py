"""Silhouette consistency of images with alpha: views that dissent, and the camera convention in which all agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import meets_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose_readings import USUAL_READINGS, read_as, reading_text
from raymarch.views.contents import MAX_EMPTY_ALPHA
from raymarch.views.focus import BOX_CURE, faces_away, focus, names_of_mask
from raymarch.views.views import Views

GRID_SIDE = 24  # points a side of the box in which a place is sought that all images can agree on
BLOCKS_A_SIDE = 32  # a side, into which an image is divided to look it up; about a point's share of it
MIN_VIEWS, MAX_VIEWS = 8, 256  # views, of which one can be told from the rest; that are asked
LOOKUP_SIDE = 48  # a side, pixels of an image that are asked whether a box is before them
MIN_IMAGE_SIDE = 8  # pixels a side of images that carve nothing
MIN_DENIED_FRACTION = 0.5


def alternative_convention(views: Views) -> str:
    """Camera convention in which all would look at one place and agree on it, as words after "the poses"; or "".

    Example:
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 8, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> down = np.diag([1.0, -1.0, -1.0, 1.0])
        >>> turned = [replace(c, world_from_camera=c.world_from_camera @ down) for c in ring]
        >>> alternative_convention(Views(turned, np.full((8, 8, 8, 3), 9, np.uint8)))
        "are OpenCV's (y down, z forward): negate columns 1 and 2 of each rotation"
    """
    views = _view_sample(views)
    shown = _shown_blocks(views)
    poses = np.array([camera.world_from_camera for camera in views.cameras])
    for name, axes in USUAL_READINGS:
        turn = np.reshape(axes, (3, 3))
        read = read_as(poses, name, turn)
        cameras = [replace(c, world_from_camera=pose) for c, pose in zip(views.cameras, read, strict=True)]
        try:
            centre, half = focus(cameras)
        except RaymarchError:
            continue
        if faces_away(cameras, centre).any():
            continue
        empty, block = _votes(cameras, shown, np.stack([centre - half, centre + half]))
        if (~empty.any(0) & _majority_sees(block)).any():
            _, what, cure = reading_text(name, turn)
            return f"{what}: {cure}"
    return ""


def no_place_reason(views: Views, centre: np.ndarray, half: float) -> str:
    """Cause and cure where no place in the cube about `centre` is one where all images can show something."""
    width, height = min(views.sizes, key=min)
    if not any((image[..., 3] > MAX_EMPTY_ALPHA).any() for image in views.images):
        return "all of them are transparent all over; export them with the object's alpha, or without alpha"
    if min(width, height) < MIN_IMAGE_SIDE:
        return f"they have only {width} x {height} pixels; take larger ones, or {BOX_CURE}"
    if words := alternative_convention(views):
        return f"maybe the poses {words}"
    if faces_away(views.cameras, centre).all():
        return f"all cameras look away from the point where their axes meet; turn them round, or {BOX_CURE}"
    beside = np.array([not (0 <= c.principal[0] <= c.width and 0 <= c.principal[1] <= c.height) for c in views.cameras])
    if beside.mean() > MIN_DENIED_FRACTION:
        return f"the principal point of {names_of_mask(views, beside)} lies outside of the image; check cx, cy"
    views = _view_sample(views)
    empty, block = _votes(views.cameras, _shown_blocks(views), np.stack([centre - half, centre + half]))
    against = np.where(_majority_sees(block), empty.sum(0), len(views) + 1)
    fewest = int(against.argmin())
    if against[fewest] <= len(views) // 4:
        names = names_of_mask(views, empty[:, fewest])
        return f"view {names} shows nothing where the others agree; check its pose and alpha, or take it out"
    return "check alpha, poses and box"


def dissenters(views: Views, box: np.ndarray) -> np.ndarray:
    """Mask of views (view,) that show nothing in most of the place that most others agree on, or most of what they show
    elsewhere; none where they are fewer than 8, or as many as to be a way of taking pictures."""
    found = np.zeros(len(views), bool)
    if len(views) < MIN_VIEWS:
        return found
    index = _index(len(views))
    few = views[index]
    shown = _shown_blocks(few)
    empty, block = _votes(few.cameras, shown, box)
    agreed = (empty.sum(0) <= max(len(few) // 10, 1)) & _majority_sees(block)
    for k, i in enumerate(index):
        sees = agreed & (block[k] >= 0)
        covered = np.zeros(BLOCKS_A_SIDE * BLOCKS_A_SIDE, bool)
        covered[block[k][sees]] = True
        elsewhere = shown[k] & ~_grown(covered.reshape(BLOCKS_A_SIDE, BLOCKS_A_SIDE))
        denies = (sees & empty[k]).sum() > MIN_DENIED_FRACTION * max(sees.sum(), 1)
        found[i] = denies or elsewhere.sum() > MIN_DENIED_FRACTION * max(shown[k].sum(), 1)
    return found if found.sum() <= len(few) // 4 else np.zeros_like(found)


def fraction_beside(views: Views, box: np.ndarray) -> np.ndarray:
    """Share (view,) of what the alpha of each view that is asked shows that lies beside a box, on a lattice of its
    pixels; 0 of one that shows nothing."""
    index = _index(len(views)).tolist()
    share = np.zeros(len(index))
    for k, i in enumerate(index):
        camera, alpha = views.cameras[i], alpha_of(views, i, masked=0)
        rows, columns = (np.unique((np.arange(LOOKUP_SIDE) + 0.5) * n // LOOKUP_SIDE).astype(int) for n in alpha.shape)
        at = rows[:, None] * camera.width + columns
        shown = at[alpha[rows[:, None], columns] > MAX_EMPTY_ALPHA]
        if len(shown):
            rays = camera.rays(shown)
            share[k] = 1 - meets_box(rays.origin, rays.direction, box).mean()
    return share


def alpha_of(views: Views, view: int, masked: int) -> np.ndarray:
    """Alpha (height, width) of a view, and `masked` where its mask takes pixels out: nobody knows what they show.

    Example:
        >>> alpha_of(views, 0, masked=255).max()  # doctest: +SKIP
        255
    """
    mask, alpha = views.mask(view), views.image(view)[..., 3]
    return alpha if mask is None else np.where(mask, alpha, np.uint8(masked))


def _index(count: int) -> np.ndarray:
    """Indices of the views that are asked, evenly spread where there are too many."""
    return np.linspace(0, count - 1, min(count, MAX_VIEWS)).astype(int)


def _view_sample(views: Views) -> Views:
    return views[_index(len(views))]


def _shown_blocks(views: Views) -> np.ndarray:
    """Which blocks of each image show anything (view, BLOCKS, BLOCKS); all without alpha."""
    shown = np.ones((len(views), BLOCKS_A_SIDE, BLOCKS_A_SIDE), bool)
    for i, image in enumerate(views.images if views.has_alpha else ()):
        height, width = image.shape[:2]
        alpha = alpha_of(views, i, masked=255)  # what is masked may be anything
        rows, columns = (
            np.arange(BLOCKS_A_SIDE) * height // BLOCKS_A_SIDE,
            np.arange(BLOCKS_A_SIDE) * width // BLOCKS_A_SIDE,
        )
        shown[i] = np.maximum.reduceat(np.maximum.reduceat(alpha, rows, axis=0), columns, axis=1) > MAX_EMPTY_ALPHA
    return shown


def _grown(shown: np.ndarray) -> np.ndarray:
    """The blocks and those beside them."""
    wide = np.pad(shown, 1)
    rows, columns = shown.shape
    return np.any([wide[r : r + rows, c : c + columns] for r in range(3) for c in range(3)], axis=0)


def _votes(cameras: Sequence[Camera], shown: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each view shows each point of a box empty, and the block it sees it in or -1: (view, point) twice."""
    share = (np.arange(GRID_SIDE) + 0.5) / GRID_SIDE
    shares = np.stack(np.meshgrid(share, share, share, indexing="ij"), -1).reshape(-1, 3)
    points = box[0] + shares * (box[1] - box[0])
    empty = np.zeros((len(cameras), len(points)), bool)
    block = np.full(empty.shape, -1, np.int16)
    for i, camera in enumerate(cameras):
        pixels, depth = camera.project(points)
        u, v = (pixels / (camera.width, camera.height)).T
        seen = (depth > 0) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        rows, columns = (v[seen] * BLOCKS_A_SIDE).astype(int), (u[seen] * BLOCKS_A_SIDE).astype(int)
        empty[i, seen] = ~_grown(shown[i])[rows, columns]
        block[i, seen] = rows * BLOCKS_A_SIDE + columns
    return empty, block


def _majority_sees(block: np.ndarray) -> np.ndarray:
    """Which points more than half of the views see."""
    return (block >= 0).sum(0) > MIN_DENIED_FRACTION * len(block)
