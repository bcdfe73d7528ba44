"""Cameras: pixel column u, row v, centres at +0.5; camera axes x right, y up, looking along -z."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from raymarch.arguments.checks import (
    MAX_COORDINATE,
    Check,
    Numbers,
    ReadOnly,
    Wrong,
    array,
    describe_value,
    instance_of,
    number,
    numeric,
    optional,
    shape_of,
    vector,
    whole,
    with_cure,
)
from raymarch.arguments.declared import checked, suggest_names
from raymarch.errors import RaymarchError
from raymarch.geometry.lens import LENS, PINHOLE_LENS, Lens, project, ray_starts, require_invertible, unproject
from raymarch.geometry.pose import POSITION, look_at, require_rigid
from raymarch.geometry.rays import Rays
from raymarch.html.card import card_html, html_of, numbers_text
from raymarch.html.picture import sketch

MAX_SIDE = 1 << 20  # pixels
PIXELS_A_SIDE = whole(1, MAX_SIDE, cure="an image has pixels, and not so many")
MAX_PIXELS = 2**31 - 1  # that can be counted on the device
FOV = replace(number(0, np.pi, above=True, below=True), wanted="a field of view between 0 and pi [rad]")
FOV = with_cure(FOV, lambda fov: f"{fov:g} degrees are math.radians({fov:g})" if _in_degrees(fov) else "")

EXTENT = number(1 / MAX_COORDINATE, MAX_COORDINATE, unit="world unit")
RIGID_ROUNDING = 1e-9  # up to which a pose that is made rigid is the one it was made of
# Right, up and back of the cameras of a cube map, in the axes of the one that looks ahead, by the names of OpenGL's
# faces (OpenGL 4.6, table 8.19), whose x is right, y up and z ahead.
CUBE_FACES = {
    "px": ((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
    "nx": ((0, 0, -1), (0, 1, 0), (1, 0, 0)),
    "py": ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    "ny": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "pz": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "nz": ((-1, 0, 0), (0, 1, 0), (0, 0, -1)),
}
MOTION = array(4, 4, low=-MAX_COORDINATE, high=MAX_COORDINATE)


def _in_degrees(fov: object) -> bool:
    return isinstance(fov, (int, float)) and not isinstance(fov, bool) and np.pi <= fov < 180


def _points(value: object) -> np.ndarray:
    points = numeric(value)
    if points.shape[-1:] != (3,):
        raise Wrong(f"has shape {points.shape}")
    return points


def _focal_cure(value: object) -> str:
    shape = shape_of(value)
    if shape == (3, 3):
        return "of a matrix K pass (K[0, 0], K[1, 1]), and as principal (K[0, 2], K[1, 2])"
    return "of one for both pass (f, f)" if shape in ((), (1,)) else ""


FOCAL = with_cure(vector(2, 1 / MAX_COORDINATE, MAX_COORDINATE), _focal_cure)
POINTS = Check("(point, 3) numbers", _points)


@suggest_names
@dataclass(frozen=True, eq=False)
class Camera(ReadOnly):
    """Camera: pose (extrinsics), focal length, principal point and lens (intrinsics), image size.

    Attributes:
        world_from_camera: (4, 4) rigid transform, translation in world units.
        focal: (horizontal, vertical) focal length [pixel], positive; of an orthographic camera pixels per world unit,
            of a panorama pixels per radian.
        principal: (u, v) of the principal point [pixel], the image's corner being (0, 0).
        width, height: size of the image [pixel].
        lens: its distortion; a pinhole has none.

    Raises RaymarchError for a pose that is not rigid, a focal that is not positive, an empty image, and a lens that
    cannot be inverted for all of the image, as its polynomial turns back before the edge.

    Example:
        >>> camera = Camera.look_at(eye=(0, -4, 0), width=64, height=48, fov=0.7)
        >>> camera.rays().direction.shape
        (3072, 3)
    """

    world_from_camera: np.ndarray
    focal: tuple[float, float]
    principal: tuple[float, float]
    width: int
    height: int
    lens: Lens = PINHOLE_LENS

    def __post_init__(self) -> None:
        pose = require_rigid(self.world_from_camera)
        pose.setflags(write=False)
        focal = FOCAL("focal", self.focal)
        principal = vector(2, -MAX_COORDINATE, MAX_COORDINATE)("principal", self.principal)
        width, height = PIXELS_A_SIDE("width", self.width), PIXELS_A_SIDE("height", self.height)
        if width * height > MAX_PIXELS:
            raise RaymarchError(f"image is {width} x {height} pixels, want at most {MAX_PIXELS} in all; scale it")
        values = {"world_from_camera": pose, "focal": focal, "principal": principal, "width": width, "height": height}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        LENS("lens", self.lens)
        if not self.lens.plain:
            require_invertible(self.lens, border_points(width, height), focal, principal)

    def _repr_html_(self) -> str | None:
        return html_of(camera_card, self)

    def exactly(self, world_from_camera: Numbers) -> Camera:
        """Camera with a pose that one had before, to the last bit: made rigid once more, it may differ there.

        A pose that is further from rigid is made so.
        """
        pose = np.array(world_from_camera, float)
        camera = replace(self, world_from_camera=pose)
        if np.abs(camera.world_from_camera - pose).max() < RIGID_ROUNDING:
            pose.setflags(write=False)
            object.__setattr__(camera, "world_from_camera", pose)
        return camera

    @classmethod
    @checked(fov=FOV, width=PIXELS_A_SIDE, height=PIXELS_A_SIDE)
    def from_fov(cls, world_from_camera: Numbers, fov: float, width: int, height: int) -> Camera:
        """Camera by pose and horizontal field of view [radian, between 0 and pi], its principal point in the middle."""
        focal = 0.5 * width / np.tan(0.5 * fov)
        return cls(world_from_camera, (focal, focal), (width / 2, height / 2), width, height)

    @classmethod
    @checked()
    def look_at(
        cls,
        eye: Numbers,
        target: Numbers = (0, 0, 0),
        up: Numbers = (0, 0, 1),
        *,
        fov: float = 0.7,
        width: int = 256,
        height: int = 256,
    ) -> Camera:
        """Camera at `eye` that looks at `target` (world units) with a horizontal field of view `fov` [radian]."""
        return cls.from_fov(look_at(eye, target, up), fov, width, height)

    @classmethod
    @checked(size=EXTENT, width=PIXELS_A_SIDE, height=PIXELS_A_SIDE)
    def orthographic(
        cls,
        eye: Numbers,
        target: Numbers = (0, 0, 0),
        up: Numbers = (0, 0, 1),
        *,
        size: float = 2.0,
        width: int = 256,
        height: int = 256,
    ) -> Camera:
        """Camera of parallel rays at `eye` that looks at `target`, its image `size` [world unit] wide.

        Rays begin in the plane through `eye` across the axis, from which depths count; what is behind is not seen.

        Example:
            >>> camera = Camera.orthographic(eye=(0, -4, 0), size=3.0, width=64, height=48)
            >>> pixels, depth = camera.project([(1.5, 0.0, 0.0), (0.0, 3.0, 0.0)])
            >>> pixels.round(6).tolist(), depth.tolist()
            ([[64.0, 24.0], [32.0, 24.0]], [4.0, 7.0])
        """
        focal = (width / size, width / size)
        return cls(look_at(eye, target, up), focal, (width / 2, height / 2), width, height, Lens("orthographic"))

    @classmethod
    @checked(eye=POSITION, target=optional(POSITION), up=POSITION, width=whole(2, MAX_SIDE))
    def panorama(
        cls, eye: Numbers, target: Numbers | None = None, up: Numbers = (0, 0, 1), *, width: int = 2048
    ) -> Camera:
        """Camera at `eye` that sees all around: an equirectangular image, `width` by half as many pixels.

        Its middle looks at `target`, if not given across `up` along the axis that is most so; columns are longitude,
        rows latitude.

        Example:
            >>> camera = Camera.panorama((0, 0, 1), width=8)
            >>> pixels, distance = camera.project([(3.0, 0.0, 1.0), (0.0, -2.0, 1.0)])
            >>> pixels.round(6).tolist(), distance.tolist()
            ([[4.0, 2.0], [6.0, 2.0]], [3.0, 2.0])
        """
        if target is None:
            target = _level_target(eye, up)
        height = width // 2
        focal = (width / (2 * np.pi), height / np.pi)
        return cls(look_at(eye, target, up), focal, (width / 2, height / 2), width, height, Lens("equirectangular"))

    @classmethod
    @checked(eye=POSITION, target=optional(POSITION), up=POSITION, size=whole(1, MAX_SIDE))
    def cubemap(
        cls, eye: Numbers, target: Numbers | None = None, up: Numbers = (0, 0, 1), *, size: int = 512
    ) -> list[Camera]:
        """Six cameras at `eye` that see all around: faces of a cube map, `size` pixels a side, as OpenGL orders them.

        They are px, nx, py, ny, pz, nz, which look right, left, up, down, ahead and back, each turned as in OpenGL's
        specification: what is above is at the top of four of them, what is ahead at the bottom of the upper face and at
        the top of the lower. Ahead is towards `target`, as the middle of `panorama` is.

        Example:
            >>> right, *_, ahead, back = Camera.cubemap((0, 0, 1), size=4)
            >>> pixels, depth = ahead.project([(3.0, 0.0, 1.0), (3.0, -1.5, 2.5)])
            >>> pixels.round(6).tolist(), depth.tolist(), right.project([(0.0, -2.0, 1.0)])[0].round(6).tolist()
            ([[2.0, 2.0], [3.0, 1.0]], [3.0, 3.0], [[2.0, 2.0]])
        """
        if target is None:
            target = _level_target(eye, up)
        faces, ahead = [], look_at(eye, target, up)
        for turn in CUBE_FACES.values():
            pose = ahead.copy()
            pose[:3, :3] = ahead[:3, :3] @ np.array(turn, float).T
            faces.append(cls(pose, (size / 2, size / 2), (size / 2, size / 2), size, size))
        return faces

    @property
    def position(self) -> np.ndarray:
        """Centre of projection (3,) in the world; parallel rays begin in the plane through it."""
        return self.world_from_camera[:3, 3]

    @checked(factor=number(0, above=True))
    def scaled(self, factor: float) -> Camera:
        """Camera with `factor` times as many pixels a side."""
        width, height = (round(min(n * factor, MAX_PIXELS)) for n in (self.width, self.height))
        if min(width, height) < 1 or max(width, height) > MAX_SIDE:
            cure = "a larger factor" if factor < 1 else "a smaller factor"
            raise RaymarchError(f"factor is {factor:g}, which makes {width} x {height} pixels; choose {cure}")
        sx, sy = width / self.width, height / self.height
        return replace(
            self,
            focal=(self.focal[0] * sx, self.focal[1] * sy),
            principal=(self.principal[0] * sx, self.principal[1] * sy),
            width=width,
            height=height,
        )

    @checked(world_from_world=MOTION)
    def moved(self, world_from_world: Numbers) -> Camera:
        """Camera carried along by a rigid motion (4, 4) of the world."""
        return replace(self, world_from_camera=world_from_world @ self.world_from_camera)

    def rays(self, pixels: Numbers | None = None) -> Rays:
        """Rays through pixel centres, row by row, (height * width) of them, or of those whose indices are given."""
        total = self.height * self.width
        index = np.arange(total) if pixels is None else self.require_pixels(pixels)
        v, u = np.divmod(index, self.width)
        seen, turn = (np.stack([u, v], axis=-1) + 0.5, self.focal, self.principal, self.lens), self.world_from_camera
        direction = unproject(*seen) @ turn[:3, :3].T
        if not self.lens.parallel:
            return Rays(np.broadcast_to(self.position, direction.shape), direction)
        return Rays(self.position + ray_starts(*seen) @ turn[:3, :3].T, direction)

    @checked(points=POINTS)
    def project(self, points: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Projection of points (point, 3) of the world: (point, 2) [pixel], and depths (point,) [world unit].

        What lies behind the camera has a depth under 0. Of a fisheye depth is the distance, under 0 beyond the angle
        that the lens can see; of a panorama the distance. What is beyond another lens lies outside of the image.

        Example:
            >>> pixels, depth = Camera.look_at((0, -4, 0), width=8, height=6).project(np.zeros((1, 3)))
            >>> pixels.round(6).tolist(), depth.tolist()
            ([[4.0, 3.0]], [4.0])
        """
        local = (points - self.position) @ self.world_from_camera[:3, :3]
        return project(local, self.focal, self.principal, self.lens)

    def require_pixels(self, pixels: Numbers) -> np.ndarray:
        """Indices of pixels as an array; else RaymarchError."""
        return _indices(pixels, self.height * self.width)


def _level_target(eye: Numbers, up: Numbers) -> np.ndarray:
    """Point (3,) that is seen level from `eye`: across `up`, along the axis that is most so."""
    axis = np.eye(3)[np.argmin(np.abs(up))]
    target: np.ndarray = eye + axis - np.dot(axis, up) / max(np.dot(up, up), 1e-300) * np.asarray(up)
    return target


def _indices(pixels: Numbers, total: int) -> np.ndarray:
    """Indices of some of `total` pixels as an array; else RaymarchError."""
    try:
        index = numeric(pixels)
    except Wrong:
        index = np.zeros(0)
    if index.ndim != 1 or index.size == 0 or index.dtype.kind == "f" or index.min() < 0 or index.max() >= total:
        raise RaymarchError(
            f"pixels are {describe_value(pixels)}, want one or more whole numbers of 0 to {total - 1}, row by row"
        )
    return index.astype(np.int64)


def border_points(width: int, height: int, count: int = 17) -> np.ndarray:
    """Points (4 * count, 2) [pixel] around the edge of an image, its corners among them.

    Example:
        >>> border_points(4, 3, 2).tolist()[:4]
        [[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [4.0, 3.0]]
    """
    along = np.linspace(0, 1, count)
    none, full = np.zeros(count), np.ones(count)
    sides = [(along, none), (along, full), (none, along), (full, along)]
    return np.concatenate([np.stack(side, axis=1) for side in sides]) * (width, height)


CAMERA = instance_of(Camera, "a Camera")

SKETCH_SIDE = 150  # CSS pixels of the longer side of a card's sketch
GRID_LINES, POINTS_A_LINE = 9, 33  # of the sketch


def camera_card(camera: Camera) -> str:
    """HTML of a camera for a notebook: pose, intrinsics, and what its lens does to a straight grid."""
    pose, lens, size = camera.world_from_camera, camera.lens, (camera.width, camera.height)
    fields = [2 * np.degrees(np.arctan(n / (2 * f))) for n, f in zip(size, camera.focal, strict=True)]
    across = [n / f for n, f in zip(size, camera.focal, strict=True)]
    if lens.spherical:
        fields = [float(np.degrees(angle)) for angle in across]
    unit = " a world unit" if lens.parallel else " a radian" if lens.spherical else ""
    rows = [
        ("position", f"{numbers_text(pose[:3, 3])} world units"),
        ("looks along", numbers_text(-pose[:3, 2], 3)),
        ("up", numbers_text(pose[:3, 1], 3)),
        ("image", f"{camera.width} x {camera.height} pixels"),
        ("field of view", None if lens.parallel else f"{fields[0]:.4g} x {fields[1]:.4g} degrees"),
        ("parallel rays", f"{across[0]:.4g} x {across[1]:.4g} world units" if lens.parallel else None),
        ("focal length", f"{numbers_text(camera.focal)} pixels{unit}"),
        ("principal point", f"{numbers_text(camera.principal)} pixels"),
        ("distortion", f"{lens.model}: {numbers_text(lens.coefficients)}" if lens.names else "none"),
        ("projection", "longitude and latitude" if lens.spherical else None),
    ]
    return card_html("Camera", rows, [_image_sketch(camera)])


def _image_sketch(camera: Camera) -> str:
    """Image of a camera with its principal point, and a grid of straight lines as the lens shows them."""
    size = camera.width, camera.height
    scale = SKETCH_SIDE / max(size)
    u, v = (scale * n for n in camera.principal)
    cross = [np.array([(u - 5, v), (u + 5, v)]), np.array([(u, v - 5), (u, v + 5)])]
    ends = [np.array([0, n]) - p for n, p in zip(size, camera.principal, strict=True)]
    across, down = (np.array(end) / f for end, f in zip(ends, camera.focal, strict=True))
    grid = []
    for t in np.linspace(0, 1, GRID_LINES):
        fine = np.linspace(0, 1, POINTS_A_LINE)
        for x, y in ((t + 0 * fine, fine), (fine, t + 0 * fine)):
            place = np.stack([across[0] + np.ptp(across) * x, -(down[0] + np.ptp(down) * y), 0 * x - 1], axis=1)
            grid.append(scale * project(place, camera.focal, camera.principal, camera.lens)[0])
    shown_size = max(round(scale * camera.width), 1), max(round(scale * camera.height), 1)
    seen = [line for line in grid if np.isfinite(line).all()]
    caption = "principal point" + ("" if camera.lens.plain else ", a straight grid")
    return sketch(cross, caption, shown_size, faint=seen)
