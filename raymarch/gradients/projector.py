"""X-ray projector of computed tomography: line integrals of samples along the rays of cameras, and its transpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.arrays import Numbers, array
from raymarch.arguments.checks import Check, Wrong, shown
from raymarch.arguments.declared import checked
from raymarch.data.activation import Activation
from raymarch.data.samples import SHAPE
from raymarch.data.scalar_volume import AFFINE
from raymarch.device.grid import Grid
from raymarch.device.memory import BATCH
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.kernels.field.transfer import clear_gradients, density_gradient_out, density_in
from raymarch.kernels.march.passes import passes_of
from raymarch.rendering.march import March
from raymarch.rendering.ray_batches import rays_of_camera
from raymarch.solvers.krylov import Operator

EXACT = March(mode="x-ray-exact")
SLOTS = 2  # gradient buffers of a CPU


def _cameras(value: Any) -> list[Camera]:
    if not isinstance(value, (list, tuple)) or not value:
        raise Wrong(f"is {shown(value)}", "call rm.Projector(shape, world_from_index, [camera, other])")
    cameras = [CAMERA(f"cameras[{i}]", camera) for i, camera in enumerate(value)]
    if len(sizes := sorted({(camera.width, camera.height) for camera in cameras})) > 1:
        raise Wrong("has images of " + " and ".join(f"{w} x {h}" for w, h in sizes[:2]), "make a projector for each")
    return cameras


CAMERAS = Check("a list of cameras whose images are of one size", _cameras)


class Projector(Holder):
    """X-ray projector for reconstruction: line integrals of a grid's values along all pixels' rays, and the transpose.

    The map is linear, has no step, and is exact for values that are trilinear between samples, as mode "x-ray-exact"
    is: an integral is in units of a value times the world's. Owns device memory until `close`.

    Args:
        shape: count of samples (x, y, z).
        world_from_index: affine (4, 4) from an index (i, j, k, 1) to the world.
        cameras: of one size of images: cone beams by pinholes, parallel beams by parallel cameras, fans by rows.

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

    @checked(shape=SHAPE, world_from_index=AFFINE, cameras=CAMERAS)
    def __init__(self, shape: Sequence[int], world_from_index: Numbers, cameras: Sequence[Camera]):
        runtime.start()
        self.shape, self.cameras = tuple(shape), tuple(cameras)
        self.images = (len(cameras), cameras[0].height, cameras[0].width)
        with ExitStack() as owners:
            slots = SLOTS if runtime.on_cpu() else 1
            self.grid = owners.enter_context(Grid(shape, degree=0, slots=slots))
            self.grid.set_level(shape, world_from_index)
            self.grid.set_activation(Activation("identity"))
            self.buffer = owners.enter_context(RayBuffer(min(self.images[1] * self.images[2], BATCH)))
            self.buffer.fields.image.fill(0)  # which the adjoint reads T of
            self._owners = owners.pop_all()

    def project(self, values: Numbers) -> np.ndarray:
        """Line integrals (view, height, width) of values (x, y, z)."""
        values = array(*self.shape)("values", values)
        density_in(np.ascontiguousarray(values, runtime.dtype()), self.grid.fields)
        out = np.zeros((len(self.cameras), self.images[1] * self.images[2]), runtime.dtype())
        for view, pixels in self._batches():
            self._pass(passes_of(EXACT.rule).march, len(pixels))
            out[view, pixels] = self.buffer.image(len(pixels))[:, 0]
        return out.reshape(self.images)

    def back(self, images: Numbers) -> np.ndarray:
        """Back-projection (x, y, z) of images (view, height, width): the transpose of `project`."""
        flat = array(*self.images)("images", images).reshape(len(self.cameras), -1)
        clear_gradients(self.grid.fields)
        for view, pixels in self._batches():
            d_image = np.zeros((len(pixels), 4))
            d_image[:, 0] = flat[view, pixels]
            self.buffer.set_image_gradient(d_image)
            self._pass(passes_of(EXACT.rule).adjoint, len(pixels))
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

    def _batches(self) -> Iterator[tuple[int, np.ndarray]]:
        """Views and pixels whose rays are in the buffer."""
        count = self.images[1] * self.images[2]
        for view, camera in enumerate(self.cameras):
            fill = rays_of_camera(self.buffer, camera)
            for first in range(0, count, self.buffer.capacity):
                yield view, fill(first, min(self.buffer.capacity, count - first))

    def _pass(self, kernel: Any, count: int) -> None:
        kernel(self.grid.fields, self.buffer.fields, *EXACT.call(self.grid, count, (0.0, 0.0, 0.0)))
