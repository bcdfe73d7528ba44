"""The image of one camera to first order in all that shapes it: tangents, adjoints and Jacobians."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.arguments import checked
from raymarch.arrays import array
from raymarch.checks import number, optional, whole
from raymarch.data.views import require_colour
from raymarch.data.volume import VOLUME, Volume
from raymarch.device.grid import Grid
from raymarch.device.owner import Closing
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.pose import exp_rigid
from raymarch.gradients.parameters import (
    EXPOSURE,
    GEOMETRY,
    GROUPS,
    INDEPENDENT,
    NEUTRAL_EXPOSURE,
    Parameters,
    columns_of,
    require_directions,
)
from raymarch.gradients.projection import Projection
from raymarch.gradients.ray_tangents import RayTangents
from raymarch.gradients.volume_tangents import VolumeTangents
from raymarch.kernels.field.transfer import clear_gradients, one_harmonic, shift_grid
from raymarch.kernels.march.geometry import geometry_adjoint, geometry_tangent
from raymarch.kernels.march.march import march, march_adjoint, march_tangent
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.renderer import MARCH, March, skip_invisible

CHUNK = 12  # columns of a Jacobian that one pass carries


class Linearised(Closing):
    """Image, tangents and adjoints of a volume seen by a camera; owns device memory until `close`.

    Args:
        volume, camera: what is seen, and from where.
        exposure: three gains and three offsets on the colour.
        march: how rays are sampled; without early ray termination if not given; a `min_weight` skips empty space.
        pixels: indices of the pixels to look at, row by row; all if not given.
        columns: of a Jacobian that one pass carries; fewer compile faster.

    Raises RaymarchError for no pixels or ones that the camera does not have, an exposure that is not six numbers.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> with Linearised(ball, Camera.look_at((0, -4, 0), width=8, height=8)) as seen:
        ...     seen.adjoint(np.ones((64, 4))).pose.shape
        (6,)
    """

    block = 4  # of the grid's layout

    @checked(volume=VOLUME, camera=CAMERA, exposure=EXPOSURE, march=optional(MARCH), columns=whole(1, 1024))
    def __init__(
        self,
        volume: Volume,
        camera: Camera,
        *,
        background=None,
        exposure=NEUTRAL_EXPOSURE,
        march: March | None = None,
        pixels=None,
        columns: int = CHUNK,
    ):
        self.volume, self.march = volume, March(min_transmittance=0.0, min_weight=0.0) if march is None else march
        self.background = np.array(require_colour(volume.background if background is None else background))
        runtime.start()
        self.pixels, self.columns = pixels, columns
        self._set_viewpoint(camera, exposure)
        self._moved: Grid | None = None
        self._dot_grids: dict[tuple[int, int], VolumeTangents] = {}
        self._motions: dict[int, RayTangents] = {}
        with ExitStack() as owners:
            self.grid = owners.enter_context(Grid(volume.shape, volume.degree, slots=2, block=self.block))
            self.load()
            self.buffer = owners.enter_context(RayBuffer(len(self.rays)))
            self._upload_rays()
            self._owners = owners.pop_all()
        self._first = self.camera, self.exposure, self.background

    def load(self, harmonic: int | None = None) -> None:
        """Put the volume on the device, as is done at first; or one whose colour is a single harmonic, nothing else."""
        self.grid.upload(self.volume)
        if harmonic is not None:
            one_harmonic(self.grid.fields, *self.volume.shape, harmonic)
        if self.march.min_weight > 0:
            skip_invisible(self.grid, self.volume, self.march.mode)
        self._image: np.ndarray | None = None

    def close(self) -> None:
        """Free the device memory."""
        self._owners.close()

    def _set_viewpoint(
        self, camera: Camera, exposure, place: np.ndarray | None = None, step: float | None = None
    ) -> None:
        self.camera, self.exposure = camera, np.array(EXPOSURE("exposure", exposure))
        place = self.volume.world_from_index if place is None else place
        self.projection = Projection(camera, place, self.march.step if step is None else step, self.volume.voxel)
        self.rays = camera.rays(self.pixels)
        self._image = None

    @checked(camera=CAMERA)
    def set_camera(self, camera: Camera, exposure=NEUTRAL_EXPOSURE, pixels=None) -> None:
        """See the same volume from another camera, under another exposure, by no more pixels than there were at first.

        Nothing is compiled again. `pixels` are those of the new camera, all if not given.
        """
        count = camera.width * camera.height if pixels is None else len(camera.require_pixels(pixels))
        if count > self.buffer.capacity:
            raise RaymarchError(f"{count} pixels, the first camera had {self.buffer.capacity}; start with the most")
        self.pixels, self.background = pixels, self._first[2]
        self._set_viewpoint(camera, exposure)
        self._first = camera, self.exposure, self.background
        self.grid.set_level(self.volume.shape, self.volume.world_from_index)
        self._upload_rays()

    def look(self, camera: Camera, exposure=NEUTRAL_EXPOSURE, pixels=None) -> None:
        """`set_camera`, by the name of version 0.1."""
        warnings.warn("Linearised.look is now called set_camera", FutureWarning, stacklevel=2)
        self.set_camera(camera, exposure, pixels)

    def _upload_rays(self) -> None:
        """Rays and their jitter to the device."""
        self.buffer.upload(self.rays)
        if (s := self.march).jittered:
            pixels = np.arange(len(self.rays)) if self.pixels is None else np.asarray(self.pixels)
            jitter_pixels(self.buffer.fields, s.seed, pixels.astype(np.int32), s.jitter, s.step_jitter)

    def move(self, by: Parameters) -> None:
        """Look at everything moved by `by` from where it was made to stand: a pose by exp of it, the rest by adding.

        The volume's own numbers stay; `by` holds none. A step keeps its length in the world.
        """

        def added(to, number):
            return np.add(to, 0 if number is None else number)

        (by,) = require_directions([by], self.volume)
        camera, place = self._first[0], self.volume.world_from_index.copy()
        turned = camera.world_from_camera @ exp_rigid(added(np.zeros(6), by.pose))
        lens = {"focal": added(camera.focal, by.focal), "principal": added(camera.principal, by.principal_point)}
        camera = replace(camera, world_from_camera=turned, **lens)
        place[:3] = added(place[:3], by.box)
        self.background, exposure = added(self._first[2], by.background), added(self._first[1], by.exposure)
        self._set_viewpoint(camera, exposure, place, self.march.step + (0.0 if by.step is None else float(by.step)))
        self.grid.set_level(self.volume.shape, place)
        self.buffer.upload(self.rays)

    def _other(self) -> Grid:
        """A second grid like the volume's, kept."""
        if self._moved is None:
            self._moved = self._owners.enter_context(Grid(self.volume.shape, self.volume.degree))
            self._moved.upload(self.volume)
        return self._moved

    def _loaded(self, dots: list[Parameters]) -> VolumeTangents:
        """The dot grid that holds directions of density and colour."""
        channels = 0 if all(dot.colour is None for dot in dots) else self.volume.features.shape[3]
        columns = VolumeTangents.columns_for(channels, 1 if len(dots) == 1 else self.columns)
        if (channels, columns) not in self._dot_grids:
            made = VolumeTangents(self.volume.shape, channels, columns)
            self._dot_grids[channels, columns] = self._owners.enter_context(made)
        self._dot_grids[channels, columns].upload(dots[:columns])
        return self._dot_grids[channels, columns]

    def _motion(self, columns: int) -> RayTangents:
        if columns not in self._motions:
            self._motions[columns] = self._owners.enter_context(RayTangents(self.buffer.capacity, columns))
        return self._motions[columns]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of parameters that the image depends on."""
        return tuple(name for name in GROUPS if name not in INDEPENDENT.get(self.march.mode, ()))

    def _require(self, names) -> None:
        for name in set(names) & set(GROUPS) - set(self.groups):
            raise RaymarchError(
                f"mode {self.march.mode} has no gradient by {name}, which it does not see; leave it out"
            )

    def _call(self, dt: float | None = None, background: np.ndarray | None = None):
        """What every kernel wants last."""
        s, dt = self.march, self.projection.dt if dt is None else dt
        behind = ti.Vector((self.background if background is None else background).tolist())
        return s.variant(self.grid), len(self.rays), dt, s.min_transmittance, s.min_weight, behind

    def _forward(self) -> np.ndarray:
        """Colour before exposure, and transmittance (ray, 4)."""
        if self._image is None:
            march(self.grid.fields, self.buffer.fields, *self._call())
            self._image = self.buffer.image(len(self.rays)).astype(float)
        return self._image

    def image(self) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4)."""
        seen = self._forward().copy()
        seen[:, :3] = seen[:, :3] * self.exposure[:3] + self.exposure[3:]
        return seen

    def shifted(self, dot: Parameters, h: float) -> np.ndarray:
        """The image (ray, 4) with all moved by h * dot: by the march itself, which tangents are held against."""
        ((dot,), h), camera, grid = (require_directions([dot], self.volume), number()("h", h)), self.camera, self.grid
        if dot.density is not None or dot.colour is not None:
            grid = self._other()
            shift_grid(grid.fields, self.grid.fields, self._loaded([dot]).fields, *grid.shape, h)
        if dot.pose is not None:
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(h * dot.pose))
        if dot.focal is not None:
            camera = replace(camera, focal=tuple(camera.focal + h * dot.focal))
        if dot.principal_point is not None:
            camera = replace(camera, principal=tuple(camera.principal + h * dot.principal_point))
        place = self.projection.world_from_index.copy()
        place[:3] += h * (0 if dot.box is None else dot.box)
        grid.set_level(self.volume.shape, place)
        background, exposure = (
            now + (0 if move is None else h * move)
            for now, move in ((self.background, dot.background), (self.exposure, dot.exposure))
        )
        dt = self.projection.dt + (0 if dot.step is None else h * float(dot.step) * self.projection.voxel)
        self.buffer.upload(camera.rays(self.pixels))
        march(grid.fields, self.buffer.fields, *self._call(dt, background))
        image = self.buffer.image(len(self.rays)).astype(float)
        image[:, :3] = image[:, :3] * exposure[:3] + exposure[3:]
        self.grid.set_level(self.volume.shape, self.projection.world_from_index)
        self.buffer.upload(self.rays)
        return image

    def tangent(self, dot: Parameters) -> np.ndarray:
        """(d image / d parameters) dot: (ray, 4); RaymarchError for a parameter that the mode does not see."""
        return self.tangents([dot])[..., 0]

    def tangents(self, dots: list[Parameters]) -> np.ndarray:
        """(d image / d parameters) of each direction: (ray, 4, direction), as many in one pass as fit a kernel."""
        dots = require_directions(dots, self.volume)
        self._require(name for dot in dots for name in GROUPS if getattr(dot, name) is not None)
        seen, out = self._forward(), np.zeros((len(self.rays), 4, len(dots)))
        self._passes(out, dots, ("density", "colour"), self._grid_tangents)
        self._passes(out, dots, GEOMETRY, self._geometry_tangents)
        for column, dot in enumerate(dots):
            if dot.background is not None:
                out[:, :3, column] += seen[:, 3:] * dot.background
            out[:, :3, column] *= self.exposure[:3]
            if dot.exposure is not None:
                out[:, :3, column] += seen[:, :3] * dot.exposure[:3] + dot.exposure[3:]
        return out

    def _passes(self, out: np.ndarray, dots: list[Parameters], names: tuple[str, ...], carry) -> None:
        """Add to `out` what the directions that move some of `names` do, a chunk of columns at a time."""
        there = [i for i, dot in enumerate(dots) if any(getattr(dot, name) is not None for name in names)]
        while there:
            done = carry([dots[i] for i in there[: self.columns]])
            out[..., there[: done.shape[1]]] += done.transpose(0, 2, 1)
            there = there[done.shape[1] :]

    def _grid_tangents(self, dots: list[Parameters]) -> np.ndarray:
        """(ray, column, 4) of the first directions of density and colour, as many as one pass carries."""
        dot_grid = self._loaded(dots)
        motion = self._motion(dot_grid.columns)
        march_tangent(self.grid.fields, dot_grid.fields, self.buffer.fields, motion.fields.dot_image, *self._call())
        return motion.dot_image(len(self.rays))[:, : len(dots)].astype(float)

    def _geometry_tangents(self, dots: list[Parameters]) -> np.ndarray:
        """(ray, column, 4) of the directions' geometry, all in one pass."""
        motion = self._motion(1 if len(dots) == 1 else self.columns)
        padded = dots + [Parameters()] * (motion.fields.columns - len(dots))  # one kernel for every count
        moves = [self.projection.tangent(self.rays, dot) for dot in padded]
        origin, index_direction, view_direction = (np.stack([move[i] for move in moves], axis=1) for i in range(3))
        motion.upload(origin, index_direction, view_direction, np.array([move[3] for move in moves]))
        geometry_tangent(self.grid.fields, self.buffer.fields, motion.fields, *self._call())
        return motion.dot_image(len(self.rays))[:, : len(dots)].astype(float)

    def adjoint(self, d_image: np.ndarray) -> Parameters:
        """(d image / d parameters)' d_image, for d_image (ray, 4) by colour after exposure and transmittance.

        What the mode does not see is None.
        """
        d_image = array(len(self.rays), 4)("d_image", d_image)
        seen, d = self._forward(), d_image.copy()
        d[:, :3] *= self.exposure[:3]
        march(self.grid.fields, self.buffer.fields, *self._call())
        self.buffer.set_image_gradient(d)
        clear_gradients(self.grid.fields)
        march_adjoint(self.grid.fields, self.buffer.fields, *self._call())
        self.grid.reduce_slots()
        density, colour = self.grid.download_gradient()
        motion = self._motion(1)
        geometry_adjoint(self.grid.fields, self.buffer.fields, motion.fields, *self._call())
        return replace(
            self.projection.adjoint(self.rays, *motion.gradients(len(self.rays))),
            density=density.astype(float),
            colour=colour.astype(float) if "colour" in self.groups else None,
            background=(seen[:, 3:] * d[:, :3]).sum(0) if "background" in self.groups else None,
            exposure=np.concatenate([(seen[:, :3] * d_image[:, :3]).sum(0), d_image[:, :3].sum(0)]),
        )

    def jacobian(self, parameters=("pose",)) -> np.ndarray:
        """d image / d parameters (ray, 4, number): of groups all their numbers, of directions one column each.

        `parameters` are names of small groups or `Parameters`, one after the other.
        """
        return self.tangents(columns_of(parameters))
