"""Lenses: pixels to directions in camera axes and back, and the slopes of both; `kernels/rays/lens.py` beside it.

A lens takes a direction of the camera (x right, y up, looking along -z) to a point of the image plane in focal lengths,
x right and y down as OpenCV has them; pixel = principal point + focal * point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raymarch.arguments.checks import Check, Numbers, instance_of, numeric, one_of
from raymarch.arguments.declared import checked_field, suggest_names, validate_fields
from raymarch.errors import RaymarchError
from raymarch.geometry.lens_distortion import (
    ANGLES,
    FOV,
    LENS_NUMBERS,
    PARALLEL,
    PINHOLE,
    SPHERE,
    TANGENTS,
    distort,
    distortion_slopes,
    fold_radius,
    project_to_plane,
    project_to_plane_slope,
    undistort,
)

VIEW_AXIS = np.array([0.0, 0.0, -1.0])  # of a camera, in its own axes
OPENCV_FROM_CAMERA = np.array([1.0, -1.0, -1.0])  # camera axes to those of OpenCV: y down, z ahead
SPHERE_EDGE = np.array([np.pi, np.pi / 2]) * 1.01  # longitude and latitude [radian], and a little for focals that move
MAX_RESIDUAL = 1e-10  # of what is left of a direction's equation, in focal lengths


@dataclass(frozen=True)
class LensModel:
    """Lens model: the names of its numbers, in order, their places among the nine of `distortion`, and its kind."""

    kind: int
    names: tuple[str, ...]
    places: tuple[int, ...]


MODELS = {
    "pinhole": LensModel(PINHOLE, (), ()),
    "simple_radial": LensModel(TANGENTS, ("k1",), (0,)),
    "radial": LensModel(TANGENTS, ("k1", "k2"), (0, 1)),
    "opencv": LensModel(TANGENTS, ("k1", "k2", "k3", "p1", "p2"), (0, 1, 2, 3, 4)),
    "full_opencv": LensModel(TANGENTS, ("k1", "k2", "k3", "p1", "p2", "k4", "k5", "k6"), (0, 1, 2, 3, 4, 5, 6, 7)),
    "radial8": LensModel(TANGENTS, ("k1", "k2", "k3", "k4", "p1", "p2"), (0, 1, 2, 8, 3, 4)),
    "fisheye": LensModel(ANGLES, ("k1", "k2", "k3", "k4"), (0, 1, 2, 8)),
    "fov": LensModel(FOV, ("omega",), (0,)),
    "orthographic": LensModel(PARALLEL, (), ()),
    "equirectangular": LensModel(SPHERE, (), ()),
}
MAX_COEFFICIENT = 1e6  # of a coefficient


def _several(value: object) -> tuple[float, ...]:
    given = numeric(value if np.size(value) else np.zeros(0))  # type: ignore[arg-type]
    if given.ndim != 1 or given.size > LENS_NUMBERS or not (abs(given) <= MAX_COEFFICIENT).all():
        raise ValueError
    return tuple(given.astype(float).tolist())


COEFFICIENTS = Check("a few numbers within 1e+06 of 0, in the order of the lens's model", _several)


@suggest_names
@dataclass(frozen=True)
class Lens:
    """Lens distortion of a camera, by the coefficients of OpenCV: they act on (X / Z, Y / Z), x right, y down.

    Attributes:
        model: "pinhole" has no coefficients, "simple_radial" k1, "radial" k1 k2, "opencv" k1 k2 k3 p1 p2, "full_opencv"
            k1 k2 k3 p1 p2 k4 k5 k6 (rational), "radial8" k1 k2 k3 k4 p1 p2 (k4 r^8 in the numerator), "fisheye" k1 k2
            k3 k4 (equidistant; angles of 90 degrees and more too), "fov" omega [radian], "orthographic" none:
            rays are parallel, and a focal length is in pixels per world unit; "equirectangular" none: u is longitude, v
            latitude, of up to 360 x 180 degrees, and a focal length is in pixels per radian.
        coefficients: in this order, no units.

    Raises RaymarchError for a model that there is not, too many or too few coefficients.

    Example:
        >>> lens = Lens("opencv", (0.05, -0.1, 0, 0.001, 0))
        >>> lens.directions([[0.3, 0.2]]).round(4).tolist()
        [[0.2809, -0.1872, -0.9413]]
    """

    model: str = checked_field(one_of(*MODELS), "pinhole")
    coefficients: tuple[float, ...] = checked_field(COEFFICIENTS, ())

    def __post_init__(self) -> None:
        validate_fields(self, "lens")
        names = self.names
        if len(self.coefficients) != len(names):
            wanted = f"{len(names)}: {', '.join(names)}" if names else "none"
            raise RaymarchError(f"lens: coefficients are {self.coefficients}, {self.model} wants {wanted}")
        if self.kind == FOV and not 0 <= self.coefficients[0] < np.pi:
            raise RaymarchError(f"lens: omega is {self.coefficients[0]:g}, want 0 or more and less than pi [radian]")

    @property
    def kind(self) -> int:
        """Kind of the model: one of `distortion`'s."""
        return MODELS[self.model].kind

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return MODELS[self.model].names

    @property
    def plain(self) -> bool:
        """Whether nothing is distorted, straight lines staying straight: a pinhole, or parallel rays."""
        return self.kind in (PINHOLE, PARALLEL)

    @property
    def spherical(self) -> bool:
        """Whether pixels are longitude and latitude: an equirectangular image, which sees all around."""
        return self.kind == SPHERE

    @property
    def parallel(self) -> bool:
        """Whether rays are parallel (orthographic projection): they differ in where they begin."""
        return self.kind == PARALLEL

    @property
    def special(self) -> bool:
        """Whether kernels have a branch of its own for its rays: parallel ones, and those of longitude and latitude."""
        return self.parallel or self.spherical

    @cached_property
    def numbers(self) -> np.ndarray:
        """The coefficients in their places among the nine of `distortion`."""
        out = np.zeros(LENS_NUMBERS)
        out[list(MODELS[self.model].places)] = self.coefficients
        return out

    @cached_property
    def reach(self) -> float:
        """Radius of the undistorted plane up to which the lens can be inverted: a tangent, of a fisheye an angle."""
        return np.inf if not self.names else fold_radius(self.kind, tuple(self.numbers))

    def plane(self, directions: Numbers) -> np.ndarray:
        """Plane points (..., 2) [focal length] of directions (..., 3) in camera axes, of any length.

        Raises RaymarchError for an orthographic lens, whose rays all have one direction.
        """
        if self.parallel:
            raise RaymarchError("lens: an orthographic one has one direction for all pixels; project points instead")
        q = np.asarray(directions, float) * OPENCV_FROM_CAMERA
        undone = project_to_plane(self.kind, q)
        return undone if self.plain or self.spherical else distort(self.kind, self.numbers, self.reach, undone)

    def directions(self, plane: Numbers) -> np.ndarray:
        """Unit directions (..., 3) in camera axes of plane points (..., 2).

        Raises RaymarchError for a point that no direction goes to, as the polynomial turns back before it.
        """
        if self.parallel:
            return np.broadcast_to(VIEW_AXIS, (*np.shape(plane)[:-1], 3)).copy()
        a, lost = self.flattened(np.asarray(plane, float).reshape(-1, 2))
        if lost.any():
            raise RaymarchError(self.folds(f"{np.hypot(*np.reshape(plane, (-1, 2))[np.argmax(lost)]):.3g}"))
        if self.spherical:
            (longitude, latitude), level = a.T, np.cos(a[:, 1])
            q = np.stack([level * np.sin(longitude), np.sin(latitude), level * np.cos(longitude)], axis=1)
        elif self.kind == ANGLES:
            angle = np.linalg.norm(a, axis=1, keepdims=True)
            q = np.concatenate([a * np.sinc(angle / np.pi), np.cos(angle)], axis=1)
        else:
            q = np.concatenate([a, np.ones_like(a[:, :1])], axis=1)
            q /= np.linalg.norm(q, axis=1, keepdims=True)
        return (q * OPENCV_FROM_CAMERA).reshape(*np.shape(plane)[:-1], 3)

    def flattened(self, plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 2) of the undistorted plane, and whether (n,) there is none: the polynomial turns back before."""
        if self.plain:
            return plane, np.zeros(len(plane), bool)
        if self.spherical:
            return plane, (np.abs(plane) > SPHERE_EDGE).any(1)
        a, left = undistort(self.kind, self.numbers, self.reach, plane)
        return a, ~(left <= MAX_RESIDUAL * (1 + np.abs(plane).max(1, initial=0)))

    def folds(self, there: str) -> str:
        """Message for a place of the plane that no direction goes to."""
        if self.spherical:
            return (
                f"lens equirectangular: there is no direction at {there} radian off the centre, as an image has at most"
                " 360 x 180 degrees; give width / (2 pi) as the focal length, or rm.Camera.panorama"
            )
        numbers = ", ".join(f"{n} {x:g}" for n, x in zip(self.names, self.coefficients, strict=True))
        return (
            f"lens {self.model} ({numbers}) cannot be inverted at {there} focal lengths off the centre, as it folds"
            f" over at {self.edge:.3g}; check the coefficients, their order and the focal length, or crop the images"
        )

    @cached_property
    def edge(self) -> float:
        """Radius of the plane [focal length] that `reach` is seen at."""
        if not self.reach:
            return 0.0
        a = np.array([[self.reach, 0.0], [0.0, self.reach], [-self.reach, 0.0], [0.0, -self.reach]])
        return float(np.linalg.norm(distort(self.kind, self.numbers, self.reach, a), axis=1).min())

    def slopes(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """d plane / d direction (n, 2, 3), and d plane / d coefficient (n, 2, number), at directions (n, 3)."""
        q = directions * OPENCV_FROM_CAMERA
        undone, by_direction = project_to_plane(self.kind, q), project_to_plane_slope(self.kind, q) * OPENCV_FROM_CAMERA
        if not self.names:
            return by_direction, np.zeros((len(q), 2, 0))
        by_point, by_number = distortion_slopes(self.kind, self.numbers, self.reach, undone)
        return by_point @ by_direction, by_number[..., list(MODELS[self.model].places)]

    def inverse_slopes(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """d direction / d plane (n, 3, 2) and d direction / d coefficient (n, 3, number), at unit directions (n, 3).

        By the implicit function: a direction moves across itself, so that its plane point stays as the lens changes.
        """
        by_direction, by_number = self.slopes(directions)
        square = by_direction @ by_direction.transpose(0, 2, 1)
        inverse = by_direction.transpose(0, 2, 1) @ np.linalg.inv(square)
        return inverse, -inverse @ by_number


LENS = instance_of(Lens, "an rm.Lens", 'give rm.Lens("opencv", (k1, k2, k3, p1, p2)) or the like')
PINHOLE_LENS = Lens()


PLANE_SIGNS = np.array([1.0, -1.0])  # v runs down, y up


def unproject(
    pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float], lens: Lens = PINHOLE_LENS
) -> np.ndarray:
    """Directions (..., 3) in camera axes of pixels (..., 2): of a pinhole with their z at -1, of others unit vectors.

    Example:
        >>> unproject(np.array([30.0, 0.0]), (10, 10), (20, 20)).tolist()
        [1.0, 2.0, -1.0]
    """
    if not lens.plain or lens.parallel:
        return lens.directions((pixels - np.asarray(principal)) / np.asarray(focal))
    plane = PLANE_SIGNS * (pixels - np.asarray(principal)) / np.asarray(focal)
    return np.concatenate([plane, -np.ones_like(plane[..., :1])], axis=-1)


def ray_starts(
    pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float], lens: Lens = PINHOLE_LENS
) -> np.ndarray:
    """Origins (..., 3) of the rays of pixels (..., 2) in camera axes: 0, but for parallel rays beside each other.

    Example:
        >>> ray_starts(np.array([30.0, 0.0]), (10, 10), (20, 20), Lens("orthographic")).tolist()
        [1.0, 2.0, 0.0]
    """
    plane = (
        PLANE_SIGNS * (pixels - np.asarray(principal)) / np.asarray(focal) if lens.parallel else np.zeros_like(pixels)
    )
    return np.concatenate([plane, np.zeros_like(plane[..., :1])], axis=-1)


def require_invertible(lens: Lens, pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float]) -> None:
    """Fold check: RaymarchError, naming the farthest, for pixels (n, 2) that no direction goes to."""
    plane = (pixels - np.asarray(principal)) / np.asarray(focal)
    lost = lens.flattened(plane)[1]
    if lost.any():
        off = np.where(lost, np.linalg.norm(plane, axis=1), 0.0)
        u, v = pixels[np.argmax(off)]
        raise RaymarchError(lens.folds(f"pixel ({u:.1f}, {v:.1f}), {off.max():.3g}"))


def project(
    local: np.ndarray, focal: Sequence[float], principal: Sequence[float], lens: Lens = PINHOLE_LENS
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (..., 2) and depths (...) of points (..., 3) in camera axes; those behind the camera have depths under 0.

    Depth is along the axis, but of a fisheye the distance, which is under 0 beyond the angle that it can see, and of an
    equirectangular image the distance.

    Example:
        >>> pixels, depth = project(np.array([2.0, 4.0, -2.0]), (10, 10), (20, 20))
        >>> pixels.tolist(), float(depth)
        ([30.0, 0.0], 2.0)
    """
    depth = -local[..., 2]
    if lens.parallel:
        return principal + focal * PLANE_SIGNS * local[..., :2], depth
    if lens.plain:
        with np.errstate(divide="ignore", invalid="ignore"):
            return principal + focal * PLANE_SIGNS * local[..., :2] / depth[..., None], depth
    if lens.spherical:
        depth = np.linalg.norm(local, axis=-1)
    elif lens.kind == ANGLES:
        distance = np.linalg.norm(local, axis=-1)
        depth = np.where(depth >= distance * np.cos(lens.reach), distance, -distance)
    return np.asarray(principal) + np.asarray(focal) * lens.plane(local), depth


def project_slope(local: np.ndarray, focal: Sequence[float], lens: Lens = PINHOLE_LENS) -> np.ndarray:
    """d pixels / d points (point, 2, 3) in camera axes."""
    if lens.parallel:
        return np.broadcast_to(
            np.asarray(focal, float)[:, None] * PLANE_SIGNS[:, None] * np.eye(2, 3), (len(local), 2, 3)
        )
    return np.asarray(focal, float)[:, None] * lens.slopes(local)[0]
