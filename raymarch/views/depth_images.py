"""Depth images of a set of views, and which sparse points each view sees: the rules for both, and what they measure.

A depth image holds distances along rays [world unit], as `Rendering.depth` does: NaN where the distance is unknown. It
may be of another size than its view's image, of the same aspect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Check, Wrong, describe_value, numeric
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera

Depths: TypeAlias = "Sequence[np.ndarray | None] | None"
MAX_ASPECT_ERROR = 0.02  # of the ratio of width to height, beyond what a pixel more or less makes
MAX_INDEX = 2**62  # of a view or a point, which there never are
MAX_UNIT_RATIO = 20.0  # of the median depth to the cameras' usual distance, from which on the unit is another


def _depths(value: Iterable[object] | None) -> Depths:
    if value is None:
        return None
    return tuple(None if one is None else _depth(one) for one in value)


def _depth(value: object) -> np.ndarray:
    image = numeric(value)
    if image.ndim == 3 and image.shape[2] == 1:
        raise Wrong(f"has {describe_value(value)}", "pass depth[..., 0]")
    if image.ndim != 2 or not image.size:
        raise Wrong(f"has {describe_value(value)}", "one is [depth]" if image.ndim == 1 else "")
    with np.errstate(all="ignore"):
        depth = np.array(image, np.float32)
        known = (depth > 0) & (depth < MAX_COORDINATE)
    return np.where(known, depth, np.float32(np.nan))


def known_depths(depths: Depths) -> Depths:
    """Depth images as they are, None for one that knows nothing, and for all where none does."""
    several = tuple(None if one is None or np.isnan(one).all() else one for one in depths or ())
    return several if any(one is not None for one in several) else None


def require_aspect(camera: Camera, name: str, depth: np.ndarray) -> None:
    """Shape check of a depth image: RaymarchError where its aspect is not its view's.

    Example:
        >>> require_aspect(Camera.look_at((0, -4, 0), width=64, height=48), "a", np.ones((24, 32)))
    """
    height, width = depth.shape
    wanted, found = camera.width / camera.height, width / height
    if abs(found / wanted - 1) <= MAX_ASPECT_ERROR + 0.5 / min(width, height):
        return
    turned = abs(1 / found / wanted - 1) <= MAX_ASPECT_ERROR + 0.5 / min(width, height)
    cure = "turn it by a quarter, np.rot90(depth)" if turned else "cut it to the image's part, or leave it out"
    raise RaymarchError(
        f"view {name}: depth image is {width} x {height} but its image {camera.width} x {camera.height}, of another"
        f" aspect; {cure}"
    )


def camera_of_depth(camera: Camera, depth: np.ndarray) -> Camera:
    """Camera of a depth image, which covers what its view's image does in pixels of its own.

    Example:
        >>> camera_of_depth(Camera.look_at((0, -4, 0), width=64, height=48), np.ones((24, 32))).principal
        (16.0, 12.0)
    """
    height, width = depth.shape
    sx, sy = width / camera.width, height / camera.height
    return replace(
        camera,
        focal=(camera.focal[0] * sx, camera.focal[1] * sy),
        principal=(camera.principal[0] * sx, camera.principal[1] * sy),
        width=width,
        height=height,
    )


def distance_by_z(camera: Camera, directions: np.ndarray) -> np.ndarray:
    """Distance along rays of unit `directions` (ray, 3) by the depth along the camera's axis: 1 over the cosine between
    both; 1 where a camera has no such depth, as a panorama.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=2, height=2, fov=np.pi / 2)
        >>> distance_by_z(camera, camera.rays().direction).round(6).tolist()
        [1.224745, 1.224745, 1.224745, 1.224745]
    """
    if camera.lens.spherical:
        return np.ones(len(directions))
    cosine = -(directions @ camera.world_from_camera[:3, 2])
    return np.where(cosine > 1e-3, 1 / np.maximum(cosine, 1e-3), np.nan)


DEPTH = Check("numbers (height, width)", lambda value: _depth(value), "depths along the axis, NaN where unknown")


@checked(camera=CAMERA, z=DEPTH)
def distances_of_z(camera: Camera, z: np.ndarray) -> np.ndarray:
    """Depth image of distances along rays, as `Views.depths` takes, of one of depths along the camera's axis, as
    sensors and most programs give them.

    Args:
        camera: of the view; the depth image may have more or fewer pixels than its image.
        z: depths (height, width) along the axis [world unit], NaN or 0 where unknown.

    Returns (height, width) float32, NaN where unknown. Raises RaymarchError for no such array.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=4, height=4, fov=np.pi / 2)
        >>> distances = distances_of_z(camera, np.full((2, 2), 3.0))
        >>> bool(np.allclose(distances, 3.0 * np.sqrt(1 + 0.5**2 + 0.5**2)))
        True
    """
    rays = camera_of_depth(camera, z).rays()
    return (z * distance_by_z(camera, rays.direction).reshape(z.shape)).astype(np.float32)


def mask_of_depth(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Mask of the pixels of a depth image of such a shape (height, width), by those of the image under their centres.

    Example:
        >>> mask_of_depth(np.array([[True, True, False, False]]), (1, 2)).tolist()
        [[True, False]]
    """
    rows, columns = (((np.arange(n) + 0.5) * of / n).astype(int) for n, of in zip(shape, mask.shape, strict=True))
    return mask[np.ix_(rows, columns)]


def _pairs(value: object) -> np.ndarray | None:
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return None
    pairs = numeric(value)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise Wrong(f"is {describe_value(value)}")
    return np.minimum(pairs, MAX_INDEX).astype(np.int64)


DEPTHS = Check(
    "an array (height, width) or None for each view, or None", _depths, "distances along rays, NaN where unknown"
)
SIGHTINGS = Check("whole numbers (sighting, 2), the view and the point of each", _pairs)


def require_sightings(pairs: np.ndarray | None, views: int, points: int) -> np.ndarray | None:
    """Sightings whose views and points there are; else RaymarchError; None where none is."""
    if pairs is None or not len(pairs):
        return None
    if pairs.min() < 0 or pairs[:, 0].max() >= views or pairs[:, 1].max() >= points:
        raise RaymarchError(
            f"sightings are of views up to {pairs[:, 0].max()} and points up to {pairs[:, 1].max()}, there are {views}"
            f" views and {points} points; count both from 0"
        )
    return pairs


def sightings_of(pairs: np.ndarray | None, index: np.ndarray) -> np.ndarray | None:
    """Sightings of the views of an index, by their numbers in it.

    Example:
        >>> sightings_of(np.array([[0, 5], [2, 5], [2, 6]]), np.array([2, 1])).tolist()
        [[0, 5], [0, 6]]
    """
    if pairs is None:
        return None
    several = [pairs[pairs[:, 0] == i, 1] for i in index]
    views = np.repeat(np.arange(len(several)), [len(one) for one in several])
    return np.stack([views, np.concatenate(several)], axis=1)


def median_depth(depths: Depths) -> float:
    """Median of all known depths [world unit]; NaN where there is none."""
    several = [depth[::4, ::4].ravel() for depth in depths or () if depth is not None]
    known = np.concatenate(several or [np.zeros(0)])
    known = known[~np.isnan(known)]
    return float(np.median(known)) if len(known) else float("nan")


def unit_doubt(depths: Depths, usual: float) -> str:
    """Why depth images are of another unit, and the cure, where cameras stand `usual` [world unit] from what they look
    at; "" where there is no doubt.

    Example:
        >>> unit_doubt([np.full((4, 4), 4.5)], 4.0)
        ''
        >>> "about 0.001 times" in unit_doubt([np.full((4, 4), 4500.0)], 4.0)
        True
    """
    median = median_depth(depths)
    if not usual > 0 or not median > 0 or 1 / MAX_UNIT_RATIO < median / usual < MAX_UNIT_RATIO:
        return ""
    times = 10.0 ** round(math.log10(usual / median))
    return (
        f"depth images have a median of {median:.3g} world units, but cameras stand {usual:.3g} from what they look at:"
        f" their unit is another; read them with --depth-unit (depth_unit of rm.load_views), about {times:g} times the"
        " unit that they had, which is 0.001 if nothing said another, or take depth_scale 'per-view' (--set"
        " depth_scale=per-view)"
    )


MAX_ALIGNMENT_ERROR = 0.05  # of the distance, from which on a pixel counts less
ALIGNMENT_ROUNDS = 10  # in which weights follow residuals
SHIFT_RIDGE = 1e-4  # part of the shift's own equation, so that depths that are all alike have a scale alone


def align_depths(given: np.ndarray, ratio: np.ndarray, wanted: np.ndarray) -> tuple[float, float] | None:
    """Scale and shift of relative depths along the axis by which distances are as wanted, by robust least squares.

    The distance of a pixel is `scale given + shift ratio`, as its depth along the axis is `given / ratio`.

    Args:
        given: distances (pixel,) as the relative depths have them.
        ratio: distance by depth along the axis (pixel,), of `distance_by_z`.
        wanted: true distances (pixel,) [world unit].

    Returns None where that is no depth: the scale is not over 0, or there are too few pixels.

    Example:
        >>> given = np.array([1.0, 2.0, 3.0, 4.0])
        >>> np.round(align_depths(given, np.ones(4), 0.5 * given + 1), 3).tolist()
        [0.5, 1.0]
    """
    weight = np.ones(len(given))
    found: tuple[float, float] | None = None
    for _ in range(ALIGNMENT_ROUNDS):
        found = scale_and_shift(moments_of(given, ratio, wanted, weight))
        if found is None:
            return None
        error = np.abs(found[0] * given + found[1] * ratio - wanted) / (MAX_ALIGNMENT_ERROR * wanted)
        weight = 1 / np.maximum(error, 1.0)
    return found


def moments_of(given: np.ndarray, ratio: np.ndarray, wanted: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sums (5,) of which `scale_and_shift` makes both: errors count relative to the distance."""
    w, g, r = weight, given / wanted, ratio / wanted
    return np.array([(w * g * g).sum(), (w * g * r).sum(), (w * r * r).sum(), (w * g).sum(), (w * r).sum()])


def scale_and_shift(moments: np.ndarray) -> tuple[float, float] | None:
    """Scale and shift by their sums; None where there is none, or no scale over 0."""
    gg, gr, rr, g, r = moments.tolist()
    rr *= 1 + SHIFT_RIDGE
    determinant = gg * rr - gr * gr
    if not determinant > 1e-12 * gg * rr > 0:
        return None
    scale, shift = (g * rr - r * gr) / determinant, (r * gg - g * gr) / determinant
    return (scale, shift) if scale > 0 else None
