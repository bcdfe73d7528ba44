"""Depth targets of a fit: rays whose distance is known, those of depth images and those to sparse points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.views.depth_images import align_depths, camera_of_depth, distance_by_z, mask_of_depth
from raymarch.views.views import Views

RAYS_PER_DEPTH_RAY = 4  # pixels of a step for each known distance that is drawn beside them
MAX_TARGETS = 1 << 22  # that are kept of depth images, at random: more than a fit draws
BYTES_A_TARGET = 40
MIN_ALIGNMENT_POINTS = 8  # sparse points of a view, from which on they tell its scale and shift


@dataclass(frozen=True, eq=False)
class DepthTargets:
    """Rays of known distance, (target,) each, first those of images.

    Attributes:
        view: which view a ray is of.
        origin, direction: (target, 3) in the world.
        distance: along the ray, as it was given [world unit].
        ratio: distance by depth along the camera's axis.
        images: how many are of depth images; the others are of sparse points.
    """

    view: np.ndarray
    origin: np.ndarray
    direction: np.ndarray
    distance: np.ndarray
    ratio: np.ndarray
    images: int

    def __len__(self) -> int:
        return len(self.view)

    def aligned(self, index: np.ndarray, alignment: np.ndarray) -> np.ndarray:
        """Distances (ray,) [world unit] of some, by a scale and a shift of each view (view, 2); NaN where those are.

        Those of points are as they are, and so are those without a depth along the axis, such as a fisheye sees beside
        it, where the shift is 0.
        """
        scale, shift = alignment[self.view[index]].T
        of_points = index >= self.images
        scale, shift = np.where(of_points, 1.0, scale), np.where(of_points, 0.0, shift)
        moved: np.ndarray = scale * self.distance[index] + shift * np.where(shift == 0, 0.0, self.ratio[index])
        return moved


def targets_of(views: Views, of: str, seed: int) -> DepthTargets:
    """Targets of views: "all" that is known, of "images" or of "points" alone; "matches" are points too."""
    depths = dict(enumerate(views.depths or ()))
    known = sum(int((~np.isnan(depth)).sum()) for depth in depths.values() if depth is not None)
    share, rng = min(MAX_TARGETS / max(known, 1), 1.0), np.random.default_rng(seed)
    parts = [
        _of_image(views, i, depth, share, rng)
        for i, depth in depths.items()
        if of in ("all", "images") and depth is not None
    ]
    images = sum(len(part[0]) for part in parts)
    if of != "images" and views.sightings is not None:
        seen = np.unique(views.sightings[:, 0])
        parts += [_of_points(views, int(i)) for i in seen if not views.cameras[i].lens.parallel]
    shapes: tuple[tuple[int, ...], ...] = ((0,), (0, 3), (0, 3), (0,), (0,))
    whole = [np.concatenate([np.zeros(shape), *(part[k] for part in parts)]) for k, shape in enumerate(shapes)]
    view, origin, direction, distance, ratio = (one.astype(np.float32) for one in whole)
    return DepthTargets(view.astype(np.int64), origin, direction, distance, ratio, images)


def _of_image(
    views: Views, i: int, depth: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Rays of the pixels of a depth image whose distance is known, which no mask takes out: a share of them."""
    camera, mask = camera_of_depth(views.cameras[i], depth), views.mask(i)
    known = ~np.isnan(depth)
    if mask is not None:
        known &= mask_of_depth(mask, depth.shape)
    pixels = np.flatnonzero(known)
    if share < 1:
        pixels = np.sort(rng.choice(pixels, int(len(pixels) * share), replace=False))
    if not len(pixels):
        return np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0)
    rays = camera.rays(pixels)
    ratio = distance_by_z(camera, rays.direction)
    return np.full(len(pixels), i), rays.origin, rays.direction, depth.ravel()[pixels], ratio


def _of_points(views: Views, i: int) -> tuple[np.ndarray, ...]:
    """Rays of a view to the sparse points that it sees."""
    camera, (origin, direction, distance) = views.cameras[i], rays_to_points(views, i)
    return np.full(len(distance), i), origin, direction, distance, distance_by_z(camera, direction)


def rays_to_points(views: Views, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Origins, directions and lengths of the rays of a view to the sparse points that it sees."""
    if views.sightings is None or views.points is None:
        return np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0)
    places = views.points[views.sightings[views.sightings[:, 0] == i, 1]]
    origin = np.broadcast_to(views.cameras[i].position, places.shape)
    distance = np.linalg.norm(places - origin, axis=1)
    apart = distance > 0
    return origin[apart], (places - origin)[apart] / distance[apart, None], distance[apart]


def alignments_by_points(views: Views) -> list[tuple[float, float] | None]:
    """Scale and shift of each view's depth image by the sparse points that it sees; None where they do not tell."""
    return [_alignment_by_points(views, i, views.cameras[i]) for i in range(len(views))]


def _alignment_by_points(views: Views, i: int, camera: Camera) -> tuple[float, float] | None:
    depth = views.depth(i)
    if depth is None or views.sightings is None or camera.lens.parallel:
        return None
    origin, direction, distance = rays_to_points(views, i)
    pixels, ahead = camera_of_depth(camera, depth).project(origin + distance[:, None] * direction)
    column, row = np.floor(pixels).T
    inside = (ahead > 0) & (column >= 0) & (row >= 0) & (column < depth.shape[1]) & (row < depth.shape[0])
    given = np.full(len(distance), np.nan)
    given[inside] = depth[row[inside].astype(int), column[inside].astype(int)]
    ratio = distance_by_z(camera, direction)
    known = ~np.isnan(given) & ~np.isnan(ratio)
    if known.sum() < MIN_ALIGNMENT_POINTS:
        return None
    return align_depths(given[known], ratio[known], distance[known])
