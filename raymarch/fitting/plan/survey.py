"""Survey of a fit's views: what they tell of the scene, each measured once, for all that is planned by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raymarch.diagnosis.diagnose import quick_findings
from raymarch.diagnosis.finding import Finding
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import unproject
from raymarch.matching.points import MIN_POINTS, matched_points
from raymarch.system.resources import workers
from raymarch.views.agreement import alternative_convention
from raymarch.views.contents import Contents, background_doubt, contents, is_bounded
from raymarch.views.focus import focus
from raymarch.views.resize import max_halvings
from raymarch.views.views import Views


class ImagesOfChannels(tuple):
    """Images as a budget has them, of channels: pixels, pixels at once, numbers a pixel; and how many are colours."""

    colours: int

    @classmethod
    def of(cls, pixels: int, at_once: int, numbers: int, colours: int) -> ImagesOfChannels:
        """Images of channels."""
        made = cls((pixels, at_once, numbers))
        made.colours = colours
        return made


@dataclass(frozen=True, eq=False)
class Survey:
    """What the views of a fit tell; each is measured when it is first asked for.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=32)
        >>> survey = Survey(Views([camera], np.zeros((1, 32, 64, 3), np.uint8)))
        >>> survey.bounded, survey.images, survey.contents.plain
        (True, (2048, 2048, 3), [0])
    """

    views: Views

    @cached_property
    def contents(self) -> Contents:
        """Images that show nothing, or all over the same."""
        return contents(self.views)

    @cached_property
    def findings(self) -> list[Finding]:
        """What is certainly wrong with the views, by a few of them; of channels nothing is known."""
        return [] if self.views.channels else quick_findings(self.views)

    @cached_property
    def background_doubt(self) -> str:
        """Warning about the background that the images are said to have, or ""."""
        return "" if self.views.channels else background_doubt(self.views)

    @cached_property
    def bounded(self) -> bool:
        """Whether all that the views show lies in one box."""
        return is_bounded(self.views)

    @cached_property
    def silhouettes(self) -> bool:
        """Whether alpha tells what the views show from what is around."""
        return self.views.shows_silhouettes

    @cached_property
    def eyes(self) -> np.ndarray:
        """Places of the cameras (view, 3)."""
        return np.array([camera.position for camera in self.views.cameras])

    @cached_property
    def axes(self) -> np.ndarray:
        """Unit vectors (view, 3) along which the cameras look."""
        return -np.array([camera.world_from_camera[:3, 2] for camera in self.views.cameras])

    @cached_property
    def focus(self) -> tuple[np.ndarray, float]:
        """Point (3,) nearest to all optical axes, and the reach of the fields of view there [world unit].

        Raises RaymarchError where the axes meet in no point, or all cameras stand in one.
        """
        return focus(self.views.cameras)

    @cached_property
    def convention(self) -> str:
        """Camera convention in which all would look at one place and agree on it, as words after "the poses"; or ""."""
        return "" if self.views.channels else alternative_convention(self.views)

    @cached_property
    def own_points(self) -> np.ndarray | None:
        """Points (point, 3) that the set tells: its sparse points, or those of its near and far planes; or None."""
        if self.views.points is not None:
            return np.asarray(self.views.points)
        return None if self.views.bounds is None else corners_of_bounds(self.views)

    @cached_property
    def points(self) -> np.ndarray | None:
        """Points (point, 3) by which a scene is placed: the set's own, or else, of a scene without end, those that some
        of its images agree on, which takes seconds; None where these are too few to tell anything."""
        own = self.own_points
        if own is not None and len(own) >= MIN_POINTS:
            return own
        found = np.zeros((0, 3)) if self.bounded else matched_points(self.views.in_colour())
        return found if len(found) >= MIN_POINTS else None

    @cached_property
    def shown_pixels(self) -> np.ndarray:
        """Count (view,) of the pixels of each view that are not empty by its alpha."""
        return np.array([np.count_nonzero(self.views.image(i)[..., -1]) for i in range(len(self.views))])

    @cached_property
    def halvings(self) -> int:
        """Count of times at most that the images can be halved."""
        return max_halvings(self.views)

    @cached_property
    def images(self) -> Sequence[int]:
        """The images as a budget has them: pixels of all, of as many as are made smaller at once, and channels."""
        largest = max(width * height for width, height in self.views.sizes) if self.halvings else 0
        at_once = pixels_at_once(len(self.views), largest)
        if self.views.channels:
            return ImagesOfChannels.of(self.views.pixels, at_once, len(self.views.channels), self.views.colours)
        return self.views.pixels, at_once, 4 if self.views.has_alpha else 3

    def distances(self, middle: np.ndarray) -> np.ndarray:
        """Distances (view,) of the cameras from the middle (3,) of what they look at [world unit]."""
        return np.linalg.norm(self.eyes - middle, axis=1)

    def pixel_sizes(self, box: np.ndarray) -> np.ndarray:
        """Widths (view,) of what a pixel of each view sees at a box's (2, 3) middle [world unit].

        Cameras in the box, which see its walls, count as half its longest side away.
        """
        away = np.maximum(self.distances(box.mean(0)), (box[1] - box[0]).max() / 2)
        return np.array([_pixel_size(camera, each) for camera, each in zip(self.views.cameras, away, strict=True)])


def _pixel_size(camera: Camera, distance: float) -> float:
    """Size of a pixel [world unit] on the axis at a distance from the camera: the same at all of parallel rays."""
    focal = math.sqrt(camera.focal[0] * camera.focal[1])
    return 1 / focal if camera.lens.parallel else distance / focal


def corners_of_bounds(views: Views) -> np.ndarray:
    """Points (18 view, 3) on the near and far planes of views that have them: nine each, an image's corners, the
    middles of its sides and its own."""
    assert views.bounds is not None
    found = []
    for camera, bounds in zip(views.cameras, views.bounds, strict=True):
        u, v, depth = np.meshgrid((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), bounds, indexing="ij")
        pixels = np.stack([u * camera.width, v * camera.height], axis=-1).reshape(-1, 2)
        local = unproject(pixels, camera.focal, camera.principal, camera.lens)
        local = local / -local[:, 2:] * depth.reshape(-1, 1)
        found.append(local @ camera.world_from_camera[:3, :3].T + camera.position)
    return np.concatenate(found)


def pixels_at_once(count: int, largest: int) -> int:
    """Pixels of as many of `count` images as are made smaller at once, each as large as the largest."""
    return min(workers(), count) * largest
