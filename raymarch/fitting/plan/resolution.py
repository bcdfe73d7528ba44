"""Resolution of a fit: voxels as fine as the pictures show, and as its rays can settle."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch import runtime
from raymarch.fitting.plan.budget import ASSUMED_RESOLUTION, is_within, memory_of_fit
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import FitSettings
from raymarch.system.resources import cores

log = logging.getLogger(__name__)

VOXEL_PIXELS = 1.2  # width of a voxel in pixels that a default fit ends with, if it has the rays
# width that it goes on to, up to `MAX_DENSE_RESOLUTION`, where `_resolution_by_rays` has so many times the rays
FINE_VOXEL_PIXELS, FINE_RAY_FACTOR = 0.85, 2.0
MIN_VOXEL_PIXELS = 0.7  # width in pixels under which finer voxels show nothing more
RAYS_A_SAMPLE = 130.0  # of each sample of the surface: fewer leave fine voxels to chance
# times as many for what is finer than `MAX_DENSE_RESOLUTION`: it lies in bricks, whose steps take twice as long
SPARSE_RAY_FACTOR = 3.0
RAYS_A_SECOND, GPU_RAYS_A_SECOND = 90_000.0, 4e6  # a core, about, and an H200; only says how fine a fit by seconds is
MIN_RESOLUTION, MAX_DENSE_RESOLUTION, MAX_RESOLUTION = 64, 400, 640
MIN_SURFACE = 1e-6  # of a speck, in squares of the longest side: what is less asks for no more
MIN_FOOTPRINT = 1e-30  # of a voxel: what is under it, a product at last 0, is no width to divide by


def resolution_for(survey: Survey, box: np.ndarray, settings: FitSettings) -> FitSettings:
    """Settings with the resolution of a fit in `box` (2, 3), where they leave it to the pictures and the time given.

    A resolution that was asked for stays; one far finer than the pictures is said. In NDC, whose voxels are wider the
    farther they are, it is `ASSUMED_RESOLUTION`.
    """
    if settings.ndc:
        return replace(settings, resolution=settings.resolution or ASSUMED_RESOLUTION)
    longest, pixel = float((box[1] - box[0]).max()), footprint_of(survey, box)
    if settings.resolution is None:
        wide, fine = longest / (VOXEL_PIXELS * pixel) + 1, longest / (FINE_VOXEL_PIXELS * pixel) + 1
        found = _resolution_by_rays(survey, box, settings)
        if found > wide:
            found = max(wide, min(found / np.sqrt(FINE_RAY_FACTOR), fine, MAX_DENSE_RESOLUTION))
        return replace(settings, resolution=int(np.clip(found, MIN_RESOLUTION, MAX_RESOLUTION)))
    pays = int(np.ceil(longest / (MIN_VOXEL_PIXELS * pixel))) + 1
    if settings.resolution > pays and settings.nested == 1:
        log.warning(
            "%d samples a side are finer than the pictures: a voxel is %.2g pixels wide; more than %d gain little",
            settings.resolution,
            longest / (settings.resolution - 1) / pixel,
            pays,
        )
    return settings


def limit_resolution(settings: FitSettings, box: np.ndarray, images: Sequence[int]) -> FitSettings:
    """Settings with a resolution, coarser by tenths until a dense grid is within the memory's budget, `MIN_RESOLUTION`
    at least.

    For one that nobody asked for: a person's own is refused where it does not fit.
    """
    while not is_least(settings) and not is_within(settings, memory_of_fit(settings, box, images)):
        settings = coarsen(settings)
    return settings


def is_least(settings: FitSettings) -> bool:
    """Whether a resolution is as coarse as one gets that nobody asked for."""
    return (settings.resolution or MIN_RESOLUTION) <= MIN_RESOLUTION


def coarsen(settings: FitSettings) -> FitSettings:
    """Settings with a resolution coarser by a tenth, `MIN_RESOLUTION` at least."""
    return replace(settings, resolution=max(int(0.9 * (settings.resolution or MIN_RESOLUTION)), MIN_RESOLUTION))


def _resolution_by_rays(survey: Survey, box: np.ndarray, settings: FitSettings) -> float:
    """Samples along the longest side with `RAYS_A_SAMPLE` for each of the surface's, more beyond
    `MAX_DENSE_RESOLUTION`.
    """
    steps = settings.steps * settings.rays if settings.steps else np.inf
    rate = RAYS_A_SECOND * min(runtime.threads(), cores()) if runtime.runs_on_cpu() else GPU_RAYS_A_SECOND
    seconds = settings.seconds * rate if settings.seconds else np.inf
    found = np.sqrt(min(steps, seconds) / RAYS_A_SAMPLE / _surface(survey, box))
    return float(
        found if found <= MAX_DENSE_RESOLUTION else max(MAX_DENSE_RESOLUTION, found / np.sqrt(SPARSE_RAY_FACTOR))
    )


def _surface(survey: Survey, box: np.ndarray) -> float:
    """Surface of what is in a box, in squares of its longest side: by the silhouettes, at most three of its faces.

    What is thin has little of it, and its rays are as many: they settle finer voxels, which it needs.
    """
    longest = (box[1] - box[0]).max()
    x, y, z = (box[1] - box[0]) / longest
    return float(max(min(x * y + y * z + z * x, 4 * silhouette_of(survey, box) / longest**2), MIN_SURFACE))


def footprint_of(survey: Survey, box: np.ndarray) -> float:
    """Footprint of a pixel: the median over the views of its width at a box's (2, 3) middle [world unit].

    Voxels are coarse or fine against it.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.views.views import Views
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=64)
        >>> views = Views([camera], np.zeros((1, 64, 64, 3), np.uint8))
        >>> footprint_of(Survey(views), np.array([(-1, -1, -1), (1, 1, 1)])) == 4 / camera.focal[0]
        True
    """
    return float(np.median(survey.pixel_sizes(box)))


def silhouette_of(survey: Survey, box: np.ndarray) -> float:
    """Mean over the views of the area that is not empty by their alpha, at a box's (2, 3) middle [world unit^2].

    Infinite of images without alpha, or with one that masks nothing: they do not tell. A convex body's surface is four
    times the mean over all directions (Cauchy 1841).

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.views.views import Views
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=64)
        >>> half = np.full((1, 64, 64, 4), 255, np.uint8)
        >>> half[:, :32] = 0
        >>> area = silhouette_of(Survey(Views([camera], half)), np.array([(-1, -1, -1), (1, 1, 1)]))
        >>> round(area * (camera.focal[0] / 4) ** 2)
        2048
    """
    if not survey.silhouettes:
        return math.inf
    return float(np.mean(survey.shown_pixels * np.square(survey.pixel_sizes(box))))


def count_halvings(voxel: float, footprint: float, pixels: float) -> int:
    """Count of times that images can be halved with a voxel still `pixels` of their pixels wide, 0 at least.

    Example:
        >>> [count_halvings(voxel, 1.0, 1.25) for voxel in (1.0, 2.0, 2.5, 5.0)]
        [0, 0, 1, 2]
    """
    wide = max(footprint * pixels, MIN_FOOTPRINT * voxel)
    return max(math.floor(math.log2(voxel / wide)), 0) if pixels > 0 else 0
