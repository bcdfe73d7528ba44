"""The image of one camera to first order in all that shapes it: tangents, adjoints and Jacobians."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.camera import Camera
from raymarch.errors import RaymarchError
from raymarch.grid import Grid
from raymarch.kernels.batch import jitter_rays
from raymarch.kernels.geometry import geometry_adjoint, geometry_tangent
from raymarch.kernels.march import march, march_adjoint, march_tangent
from raymarch.kernels.transfer import clear_gradients, shift_grid
from raymarch.parameters import GROUPS, Parameters, units
from raymarch.pose import exp_rigid
from raymarch.projection import Projection
from raymarch.raybuffer import RayBuffer
from raymarch.raymotion import RayMotion
from raymarch.rays import Rays
from raymarch.renderer import March
from raymarch.view import require_colour
from raymarch.volume import Volume

CHUNK = 12  # columns of a Jacobian that one pass carries
PLAIN = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
UNSEEN = {"x-ray": ("colour", "background")}  # what an image does not depend on, by mode


class Linearised:
    """Image, tangents and adjoints of a volume seen by a camera; owns device memory until `close`.

    Args:
        exposure: three gains and three offsets on the colour.
        march: how rays are sampled; for exact derivatives keep `stop` and `least` at 0.
        pixels: indices of the pixels to look at, row by row; all if not given.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> with Linearised(ball, Camera.look_at((0, -4, 0), width=8, height=8)) as seen:
        ...     seen.adjoint(np.ones((64, 4))).pose.shape
        (6,)
    """

    def __init__(
        self,
        volume: Volume,
        camera: Camera,
        *,
        background=None,
        exposure=PLAIN,
        march: March | None = None,
        pixels=None,
    ):
        self.volume, self.camera = volume, camera
        self.march = March(stop=0.0, least=0.0) if march is None else march
        self.background = np.array(require_colour(volume.background if background is None else background))
        self.exposure = np.asarray(exposure, float)
        if self.exposure.shape != (6,) or not np.isfinite(self.exposure).all():
            raise RaymarchError(f"exposure is {exposure}, want three gains and three offsets")
        self.projection = Projection(camera, volume.world_from_index, self.march.step)
        runtime.start()
        self.pixels = pixels
        self.rays = self._chosen(camera)
        self._image: np.ndarray | None = None
        self._grids: dict[str, Grid] = {}
        self._dot: Parameters | None = None
        self._motions: dict[int, RayMotion] = {}
        with ExitStack() as owners:
            self.grid = owners.enter_context(Grid(volume.shape, volume.degree, slots=2))
            self.grid.upload(volume)
            self.buffer = owners.enter_context(RayBuffer(len(self.rays)))
            self.buffer.upload(self.rays)
            s = self.march
            if s.jittered:
                jitter_rays(self.buffer.fields, s.seed, 0, len(self.rays), s.jitter, s.step_jitter)
            self._owners = owners.pop_all()

    def __enter__(self) -> Linearised:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free the device memory."""
        self._owners.close()

    def _chosen(self, camera: Camera) -> Rays:
        """Rays of the pixels that are looked at."""
        return camera.rays(self.pixels)

    def _grid(self, name: str) -> Grid:
        """A further grid like the volume's, kept."""
        if name not in self._grids:
            self._grids[name] = self._owners.enter_context(Grid(self.volume.shape, self.volume.degree))
            self._grids[name].upload(self.volume)
        return self._grids[name]

    def _loaded(self, dot: Parameters) -> Grid:
        """The grid that holds a direction's density and colour."""
        grid = self._grid("dot")
        if self._dot is not dot:
            volume, self._dot = self.volume, dot
            density = np.zeros(volume.shape) if dot.density is None else dot.density
            features = np.zeros(volume.features.shape) if dot.colour is None else dot.colour
            grid.upload(replace(volume, density=density, features=features))
        return grid

    def _motion(self, columns: int) -> RayMotion:
        if columns not in self._motions:
            self._motions[columns] = self._owners.enter_context(RayMotion(len(self.rays), columns))
        return self._motions[columns]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of parameters that the image depends on."""
        return tuple(name for name in GROUPS if name not in UNSEEN.get(self.march.mode, ()))

    def _require(self, names) -> None:
        for name in names:
            if name in GROUPS and name not in self.groups:
                raise RaymarchError(
                    f"mode {self.march.mode} has no gradient by {name}, which it does not see; leave it out"
                )

    def _how(self):
        """What every kernel wants last."""
        s = self.march
        background = ti.Vector(self.background.tolist())
        return s.reading(self.grid), len(self.rays), self.projection.dt, s.stop, s.least, background

    def _seen(self) -> np.ndarray:
        """Colour before exposure, and transmittance (ray, 4)."""
        if self._image is None:
            march(self.grid.fields, self.buffer.fields, *self._how())
            self._image = self.buffer.image(len(self.rays)).astype(float)
        return self._image

    def image(self) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4)."""
        seen = self._seen().copy()
        seen[:, :3] = seen[:, :3] * self.exposure[:3] + self.exposure[3:]
        return seen

    def shifted(self, dot: Parameters, h: float) -> np.ndarray:
        """The image (ray, 4) with all moved by h * dot: by the march itself, which tangents are held against."""
        camera, grid = self.camera, self.grid
        if dot.density is not None or dot.colour is not None:
            grid = self._grid("moved")
            shift_grid(grid.fields, self.grid.fields, self._loaded(dot).fields, h)
        if dot.pose is not None:
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(h * dot.pose))
        if dot.focal is not None:
            camera = replace(camera, focal=tuple(camera.focal + h * dot.focal))
        if dot.principal_point is not None:
            camera = replace(camera, principal=tuple(camera.principal + h * dot.principal_point))
        place = self.volume.world_from_index.copy()
        place[:3] += h * (0 if dot.box is None else dot.box)
        grid.set_level(self.volume.shape, place)
        background, exposure = (
            now + (0 if move is None else h * move)
            for now, move in ((self.background, dot.background), (self.exposure, dot.exposure))
        )
        dt = self.projection.dt + (0 if dot.step is None else h * float(dot.step) * self.projection.voxel)
        self.buffer.upload(self._chosen(camera))
        where, s = ti.Vector(background.tolist()), self.march
        march(grid.fields, self.buffer.fields, s.reading(grid), len(self.rays), dt, s.stop, s.least, where)
        image = self.buffer.image(len(self.rays)).astype(float)
        image[:, :3] = image[:, :3] * exposure[:3] + exposure[3:]
        self.grid.set_level(self.volume.shape, self.volume.world_from_index)
        self.buffer.upload(self.rays)
        return image

    def tangent(self, dot: Parameters) -> np.ndarray:
        """(d image / d parameters) dot: (ray, 4); RaymarchError for a parameter that the mode does not see."""
        self._require(name for name in GROUPS if getattr(dot, name) is not None)
        seen, out = self._seen(), np.zeros((len(self.rays), 4))
        if dot.density is not None or dot.colour is not None:
            out += self._grid_tangent(dot)
        out += self._few_tangents([dot])[:, 0]
        if dot.background is not None:
            out[:, :3] += seen[:, 3:] * dot.background
        out[:, :3] *= self.exposure[:3]
        if dot.exposure is not None:
            out[:, :3] += seen[:, :3] * dot.exposure[:3] + dot.exposure[3:]
        return out

    def _grid_tangent(self, dot: Parameters) -> np.ndarray:
        dot_grid, motion = self._loaded(dot), self._motion(1)
        march_tangent(self.grid.fields, dot_grid.fields, self.buffer.fields, motion.fields.dot_image, *self._how())
        return motion.dot_image(len(self.rays))[:, 0].astype(float)

    def _few_tangents(self, dots: list[Parameters]) -> np.ndarray:
        """(ray, column, 4) of the directions' geometry, all in one pass."""
        motion = self._motion(1 if len(dots) == 1 else CHUNK)
        dots = dots + [Parameters()] * (motion.fields.columns - len(dots))  # one kernel for every count
        moves = [self.projection.tangent(self.rays, dot) for dot in dots]
        origin, way, heading = (np.stack([move[i] for move in moves], axis=1) for i in range(3))
        motion.upload(origin, way, heading, np.array([move[3] for move in moves]))
        geometry_tangent(self.grid.fields, self.buffer.fields, motion.fields, *self._how())
        return motion.dot_image(len(self.rays)).astype(float)

    def adjoint(self, d_image: np.ndarray) -> Parameters:
        """(d image / d parameters)' d_image, for d_image (ray, 4) by colour after exposure and transmittance.

        What the mode does not see is None.
        """
        d_image = np.asarray(d_image, float)
        seen, d = self._seen(), d_image.copy()
        d[:, :3] *= self.exposure[:3]
        march(self.grid.fields, self.buffer.fields, *self._how())
        self.buffer.set_image_gradient(d)
        clear_gradients(self.grid.fields)
        march_adjoint(self.grid.fields, self.buffer.fields, *self._how())
        self.grid.fold()
        density, colour = self.grid.download_gradient()
        motion = self._motion(1)
        geometry_adjoint(self.grid.fields, self.buffer.fields, motion.fields, *self._how())
        return replace(
            self.projection.adjoint(self.rays, *motion.gradients(len(self.rays))),
            density=density.astype(float),
            colour=colour.astype(float) if "colour" in self.groups else None,
            background=(seen[:, 3:] * d[:, :3]).sum(0) if "background" in self.groups else None,
            exposure=np.concatenate([(seen[:, :3] * d_image[:, :3]).sum(0), d_image[:, :3].sum(0)]),
        )

    def jacobian(self, parameters=("pose",)) -> np.ndarray:
        """d image / d parameters (ray, 4, number): the groups' numbers one after the other, all in few passes."""
        self._require(parameters)
        directions = [unit for group in parameters for unit in units(group)]
        columns = []
        for first in range(0, len(directions), CHUNK):
            columns.append(self._few_tangents(directions[first : first + CHUNK]))
        out = np.concatenate(columns, axis=1)[:, : len(directions)]
        for column, unit in enumerate(directions):
            if unit.background is not None:
                out[:, column, :3] += self._seen()[:, 3:] * unit.background
            out[:, column, :3] *= self.exposure[:3]
            if unit.exposure is not None:
                out[:, column, :3] += self._seen()[:, :3] * unit.exposure[:3] + unit.exposure[3:]
        return out.transpose(0, 2, 1)
