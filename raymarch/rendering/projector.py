"""X-ray projector of computed tomography: line integrals of samples along the rays of cameras, and its transpose."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Check, Numbers, Wrong, array, describe_value, one_of, whole
from raymarch.arguments.declared import checked
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import NO_COLOUR_DEGREE
from raymarch.device.memory import BATCH_RAYS
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import corners_of, voxel_of
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.kernels.field.copies import density_gradient_out, density_in
from raymarch.kernels.integrator.passes import passes_of
from raymarch.rendering.march_settings import March
from raymarch.rendering.projections_by_angle import Geometry, Workers
from raymarch.rendering.ray_batches import rays_of_camera
from raymarch.solvers.linear import Operator
from raymarch.tasks.executors import EXECUTOR, Where, open_crew
from raymarch.tasks.worker import Device
from raymarch.volumes.activation import Activation
from raymarch.volumes.samples import SHAPE
from raymarch.volumes.scalar_volume import AFFINE

if TYPE_CHECKING:
    from concurrent.futures import Executor

QUADRATURES = {"exact": March(mode="x-ray-exact"), "joseph": March(mode="x-ray-joseph")}
QUADRATURE = one_of(*QUADRATURES)
# gradient buffers of a CPU, as many threads; bytes up to which more are taken
SLOT_RANGE, SLOT_BUDGET_BYTES = (2, 8), 1 << 29
MAX_EXACT_VOXELS, INTEGRAL_ERROR = 3e4, 4e-8  # voxels; relative error of a noisy grid's integrals by each
log = logging.getLogger(__name__)


def _cameras(value: Any) -> list[Camera]:
    if not isinstance(value, (list, tuple)) or not value:
        raise Wrong(f"is {describe_value(value)}", "call rm.Projector(shape, world_from_index, [camera, other])")
    cameras = [CAMERA(f"cameras[{i}]", camera) for i, camera in enumerate(value)]
    if len(sizes := sorted({(camera.width, camera.height) for camera in cameras})) > 1:
        raise Wrong("has images of " + " and ".join(f"{w} x {h}" for w, h in sizes[:2]), "make a projector for each")
    return cameras


CAMERAS = Check("a list of cameras whose images are of one size", _cameras)


class Projector(Holder):
    """X-ray projector for reconstruction: line integrals of a grid's values along all pixels' rays, and the transpose.

    The map is linear, has no step, and by default is exact for values that are trilinear between samples, as mode
    "x-ray-exact" is; by Joseph's quadrature, mode "x-ray-joseph", it takes less time. An integral is in units of a
    value times the world's. What lies beyond the outer samples is empty, so that n samples of spacing d are (n - 1) d
    long. Owns device memory until `close`.

    Args:
        shape: count of samples (x, y, z).
        world_from_index: affine (4, 4) from an index (i, j, k, 1) to the world.
        cameras: of one size of images: cone beams by pinholes, whose rays begin at the source, and parallel beams by
            orthographic ones, whose rays go through all of the grid, wherever along them the camera stands.
        quadrature: "exact", or "joseph": the trapezoid rule between the planes of samples that a ray meets across the
            axis that it mostly goes along, which other packages use.
        executor: who computes, as `rm.render_many` takes it, each worker with some of the views; None for this process.
            The values travel to each worker and a back-projection from it, which takes far less time than either pass
            of large images. The bits are the same for any number of workers.

    Raises RaymarchError for cameras of several sizes, an affine that is none, and where memory does not suffice.

    Example:
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 6.0, 12, like=Camera.look_at((6, 0, 0), fov=0.5, width=16, height=16))
        >>> affine = np.array([[0.1, 0, 0, -0.5], [0, 0.1, 0, -0.5], [0, 0, 0.1, -0.5], [0, 0, 0, 1]])
        >>> with Projector((11, 11, 11), affine, ring) as projector:
        ...     sinogram = projector.project(np.ones((11, 11, 11)))
        >>> sinogram.shape, bool(abs(sinogram.max() - 1) < 0.5)
        ((12, 16, 16), True)
    """

    @checked(shape=SHAPE, world_from_index=AFFINE, cameras=CAMERAS, quadrature=QUADRATURE, executor=EXECUTOR)
    def __init__(
        self,
        shape: Sequence[int],
        world_from_index: Numbers,
        cameras: Sequence[Camera],
        quadrature: str = "exact",
        executor: Where = None,
    ):
        self._workers: Workers | None = None
        if executor is None:
            self._begin(shape, world_from_index, cameras, quadrature)
        else:
            self._begin_workers(shape, world_from_index, cameras, quadrature, executor)
        if runtime.single_precision():
            _warn_of_precision(self.cameras, voxel_of(np.asarray(world_from_index)))

    @classmethod
    def of_worker(
        cls, shape: Sequence[int], world_from_index: np.ndarray, cameras: Sequence[Camera], quadrature: str
    ) -> Projector:
        """A worker's projector, of what has been looked at, and warned of, by the process that asks."""
        made = cls.__new__(cls)
        made._workers = None
        made._begin(shape, world_from_index, cameras, quadrature)
        return made

    def _place(
        self, shape: Sequence[int], world_from_index: Numbers, cameras: Sequence[Camera], quadrature: str
    ) -> np.ndarray:
        """What is known before anything is on a device; the affine (4, 4) from the world to where rays are marched."""
        self.march = QUADRATURES[quadrature]
        self.shape, self.images = tuple(shape), (len(cameras), cameras[0].height, cameras[0].width)
        corners = corners_of(np.asarray(world_from_index), self.shape)
        centre = np.eye(4)
        centre[:3, 3] = -corners.mean(0)  # the world's origin from here on, about which rounding is least
        moved = [replace(camera, world_from_camera=centre @ camera.world_from_camera) for camera in cameras]
        self.cameras = tuple(_move_before_grid(camera, corners - corners.mean(0)) for camera in moved)
        return centre

    def _begin(
        self, shape: Sequence[int], world_from_index: Numbers, cameras: Sequence[Camera], quadrature: str
    ) -> None:
        """Take memory of this process's device, until `close`."""
        runtime.start()
        centre = self._place(shape, world_from_index, cameras, quadrature)
        with ExitStack() as owners:
            slots = (
                int(np.clip(SLOT_BUDGET_BYTES // (4 * np.prod(self.shape)), *SLOT_RANGE))
                if runtime.runs_on_cpu()
                else 1
            )
            self.grid = owners.enter_context(Grid(shape, NO_COLOUR_DEGREE, slots=slots))
            self.grid.set_level(shape, centre @ np.asarray(world_from_index))
            self.grid.set_activation(Activation("identity"))
            self.buffer = owners.enter_context(RayBuffer(min(int(np.prod(self.images)), BATCH_RAYS)))
            self.buffer.fields.image.fill(0)  # which the adjoint reads T of
            self._owners = owners.pop_all()

    def _begin_workers(
        self,
        shape: Sequence[int],
        world_from_index: Numbers,
        cameras: Sequence[Camera],
        quadrature: str,
        executor: Executor | int | str,
    ) -> None:
        """Take workers on, until `close`; they compute in this process's precision."""
        self._place(shape, world_from_index, cameras, quadrature)
        running = runtime.started()
        device = Device(precision=None if running is None else running.precision)
        with ExitStack() as owners:
            crew = owners.enter_context(open_crew(executor, device))
            affine = np.array(world_from_index)
            geometry = Geometry(Projector.of_worker, self.shape, affine, tuple(cameras), quadrature)
            self._workers = Workers(geometry, crew)
            self._owners = owners.pop_all()

    def project(self, values: Numbers, views: Sequence[int] | None = None) -> np.ndarray:
        """Line integrals (view, height, width) of values (x, y, z), in all views or in some, by their numbers."""
        values, wanted = array(*self.shape)("values", values), self._views(views)
        if self._workers is not None:
            return self._workers.project(np.ascontiguousarray(values, runtime.dtype()), wanted)
        density_in(np.ascontiguousarray(values, runtime.dtype()), self.grid.fields)
        out = np.zeros((len(wanted), self.images[1] * self.images[2]), runtime.dtype())
        for run, pixels in self._batches(wanted):
            count = len(run) * len(pixels)
            self._pass(passes_of(self.march.rule).march, count)
            out[np.ix_(run, pixels)] = self.buffer.image(count)[:, 0].reshape(len(run), len(pixels))
        return out.reshape(len(wanted), *self.images[1:])

    def back(self, images: Numbers, views: Sequence[int] | None = None) -> np.ndarray:
        """Back-projection (x, y, z) of images (view, height, width), the transpose of `project` in the same views."""
        wanted = self._views(views)
        images = array(len(wanted), *self.images[1:])("images", images)
        if self._workers is not None:
            return self._workers.back(np.ascontiguousarray(images, runtime.dtype()), wanted)
        flat = images.reshape(len(wanted), -1)
        self.grid.begin_gradient()
        for run, pixels in self._batches(wanted):
            d_image = np.zeros((len(run) * len(pixels), 4))
            d_image[:, 0] = flat[np.ix_(run, pixels)].ravel()
            self.buffer.set_image_gradient(d_image)
            self._pass(passes_of(self.march.rule).adjoint, len(d_image))
        self.grid.reduce_slots()
        out = np.empty(self.shape, runtime.dtype())
        density_gradient_out(self.grid.fields, out)
        return out

    @property
    def operator(self) -> Operator:
        """Operator of flat values and images, for `rm.cgls` and the like."""
        return Operator(
            lambda v: self.project(v.reshape(self.shape)).reshape(-1),
            lambda w: self.back(w.reshape(self.images)).reshape(-1),
        )

    def _views(self, views: Sequence[int] | None) -> list[int]:
        if views is None:
            return list(range(len(self.cameras)))
        if np.ndim(views) != 1:
            raise RaymarchError(f"views are {describe_value(views)}, want a list of views' numbers; all if not given")
        return [whole(0, len(self.cameras) - 1)(f"views[{i}]", view) for i, view in enumerate(views)]

    def _batches(self, views: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which of some views, and which of their pixels, have their rays in the buffer, one view after the other."""
        count, room = self.images[1] * self.images[2], self.buffer.capacity
        together = max(room // count, 1)
        for first in range(0, len(views), together):
            run = np.arange(first, min(first + together, len(views)))
            for part in range(0, count, room):
                few = min(room, count - part)
                for i, one in enumerate(run):
                    pixels = rays_of_camera(self.buffer, self.cameras[views[one]], i * few)(part, few)
                yield run, pixels

    def _pass(self, kernel: Any, count: int) -> None:
        kernel(self.grid.fields, self.buffer.fields, *self.march.call(self.grid, count, (0.0, 0.0, 0.0)))


def _move_before_grid(camera: Camera, corners: np.ndarray) -> Camera:
    """A camera of parallel rays moved along them to just before the grid, where they begin; any other as it is."""
    if not camera.lens.parallel:
        return camera
    pose = np.array(camera.world_from_camera)
    ahead = -pose[:3, 2]
    way = (corners - pose[:3, 3]) @ ahead
    pose[:3, 3] += (way.min() - 0.01 * np.ptp(way)) * ahead
    return replace(camera, world_from_camera=pose)


def _warn_of_precision(cameras: Sequence[Camera], voxel: float) -> None:
    """Say where sources are so far away that single precision, in force, shows."""
    far = max(float(np.linalg.norm(camera.position)) for camera in cameras) / voxel
    if far > MAX_EXACT_VOXELS:
        log.warning(
            "sources are %.0e voxels away, where integrals are good to %.0e; take orthographic cameras, or"
            ' rm.start(precision="f64") first',
            *(far, INTEGRAL_ERROR * far),
        )
