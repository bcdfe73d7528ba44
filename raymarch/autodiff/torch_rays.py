"""Rays that are PyTorch tensors, marched through a grid: image and depth, their adjoints and tangents, in batches.

The grid holds what its owner put there; a ray is replayed, so what a call keeps is its own results alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import taichi as ti

from raymarch.autodiff.torch_parameters import RUN_TIME
from raymarch.device.grid import Grid
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.ndc import ray_slopes
from raymarch.geometry.rays import Rays
from raymarch.gradients.tangents import RayTangents
from raymarch.kernels.march.call import MarchCall
from raymarch.kernels.march.passes import DepthPasses, Passes, passes_of
from raymarch.kernels.rays import ray_tensors as tensors
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import March
from raymarch.rendering.ray_settings import set_ray_settings
from raymarch.torch.tensors import wait_for

if TYPE_CHECKING:
    from torch import Tensor

BLACK = (0.0, 0.0, 0.0)
EMPTY: Mapping = MappingProxyType({})


class TensorRays(NamedTuple):
    """Rays of a call: `origin` and unit `direction` (ray, 3), how they are marched, a length of steps [world unit] if
    not the march's, and how many a picture has: by its number there a ray has its jitter."""

    origin: Tensor
    direction: Tensor
    march: March
    dt: float | None = None
    picture: int = 1 << 30

    @property
    def passes(self) -> Passes:
        """Kernels of the march's mode."""
        return passes_of(self.march.rule)


class Seen(NamedTuple):
    """What rays see: (red, green, blue, T) (ray, 4) before black; depth and its weights (ray,), or empty."""

    image: Tensor
    depth: Tensor
    weights: Tensor


class TorchRays(Holder):
    """Marches of rays that are tensors through one grid; owns the rays' device memory."""

    def __init__(self, grid: Grid, batch: int):
        self.grid, self.batch = grid, batch
        self._motion: RayTangents | None = None
        with ExitStack() as owners:
            self.buffer: RayBuffer = owners.enter_context(RayBuffer(batch))
            self._owners = owners.pop_all()

    @property
    def motion(self) -> RayTangents:
        """Gradients and tangents of the buffer's rays; memory is taken when first wanted."""
        if self._motion is None:
            self._motion = self._owners.enter_context(RayTangents(self.batch))
        return self._motion

    def batches(self, rays: TensorRays) -> Iterator[tuple[slice, MarchCall]]:
        """Rows of each batch, its rays and the mode's own settings in the buffer, and the arguments of its marches."""
        march = rays.march
        set_ray_settings(self.buffer, self.grid, march)
        for first in range(0, len(rays.direction), self.batch):
            rows = slice(first, min(first + self.batch, len(rays.direction)))
            count = rows.stop - first
            tensors.rays_in(rays.origin[rows].contiguous(), rays.direction[rows].contiguous(), self.buffer.fields)
            if march.jittered:
                pixels = (np.arange(first, rows.stop) % rays.picture).astype(np.int32)
                jitter_pixels(self.buffer.fields, march.seed, pixels, march.jitter, march.step_jitter)
            yield rows, march.call(self.grid, count, BLACK, rays.dt)

    def see(self, rays: TensorRays, depth: bool) -> Seen:
        """Image, and depth if wanted, of the grid as it is."""
        count, new = len(rays.direction), rays.direction.new_empty
        seen = Seen(new((count, 4)), new((count if depth else 0,)), new((count if depth else 0,)))
        wait_for(rays.direction)
        for rows, call in self.batches(rays):
            rays.passes.march(self.grid.fields, self.buffer.fields, *call)
            tensors.image_out(self.buffer.fields, seen.image[rows])
            if depth:
                rays.passes.depth(self.grid.fields, self.buffer.fields, *call[:4])
                tensors.depth_out(self.buffer.fields, seen.depth[rows], seen.weights[rows])
        ti.sync()
        return seen

    def begin_gradient(self) -> None:
        """Clear the grid's gradient, and what an interrupted call left in its slots."""
        self.grid.begin_gradient()

    def add_gradients(
        self, rays: TensorRays, seen: Seen, d_image: Tensor | None, d_depth: Tensor | None,
        of_volume: bool, of_rays: bool, own: Mapping[str, np.ndarray] = EMPTY,
    ) -> tuple[Tensor, Tensor] | None:  # fmt: skip
        """Add to the grid's slots the gradient by its samples, and to `own` that by a mode's own numbers; gradients by
        origin and direction (ray, 3) if wanted."""
        if d_depth is not None and of_rays:
            self.require_depth_moves()
        d_rays = (rays.direction.new_zeros(rays.direction.shape), rays.direction.new_zeros(rays.direction.shape))
        d_image = None if d_image is None else d_image.contiguous()  # by torch's stream, before it is waited for
        d_depth = None if d_depth is None else d_depth.contiguous()
        wait_for(rays.direction)
        for rows, call in self.batches(rays):
            if d_image is not None:
                tensors.image_in(seen.image[rows], d_image[rows], self.buffer.fields)
                self._adjoint(rays, rows, rays.passes, call, of_volume, d_rays if of_rays else None, own)
            gradients = rays.passes.depth_gradients
            if d_depth is not None and gradients is not None:
                tensors.depth_in(seen.depth[rows], seen.weights[rows], d_depth[rows], self.buffer.fields)
                self._adjoint(rays, rows, gradients, call[:4], of_volume, d_rays if of_rays else None, own)
        ti.sync()
        return d_rays if of_rays else None

    def _adjoint(
        self, rays: TensorRays, rows: slice, passes: Passes | DepthPasses, call: tuple, of_volume: bool,
        d_rays: tuple[Tensor, Tensor] | None, own: Mapping[str, np.ndarray],
    ) -> None:  # fmt: skip
        """Adjoints of a batch, by the samples and by the rays, as far as they are wanted."""
        grid, buffer, numbers = self.grid.fields, self.buffer.fields, [each for each in RUN_TIME if each.name in own]
        for each in numbers:
            each.clear(self)
        if of_volume:
            passes.adjoint(grid, buffer, *call)
        if d_rays is not None:
            passes.geometry_adjoint(grid, buffer, self.motion.fields, *call)
            self._add_rays_gradient(rays, rows, d_rays)
        for each in numbers:
            own[each.name][...] += each.take(self, rows.stop - rows.start, own[each.name].shape)

    def require_depth_moves(self) -> None:
        """RaymarchError where depth has no slope by rays: in NDC a distance is not their own t."""
        if self.grid.ndc_from_world is not None:
            raise RaymarchError(
                "depth in NDC has no gradient by rays; detach the cameras' tensors, or leave depth out of the loss"
            )

    def _add_rays_gradient(self, rays: TensorRays, rows: slice, d_rays: tuple[Tensor, Tensor]) -> None:
        d_origin, d_direction = (each[rows] for each in d_rays)
        if self.grid.ndc_from_world is None and not rays.march.clipped:
            tensors.add_rays_gradient(self.motion.fields, self.grid.fields, d_origin, d_direction)
            return
        by_origin, by_way, by_view, _ = self.motion.gradients(len(d_origin))
        linear = np.linalg.inv(self.grid.world_from_index)[:3, :3]
        back = np.concatenate([by_origin @ linear, by_way @ linear], axis=1)
        if rays.march.clipped:
            back += np.concatenate(self.motion.place_gradients(len(d_origin)), axis=1)
        if self.grid.ndc_from_world is not None:
            back = np.einsum("rij,ri->rj", ray_slopes(self.grid.ndc_from_world, rays_in_numpy(rays, rows)), back)
        d_origin += d_origin.new_tensor(back[:, :3])
        d_direction += d_direction.new_tensor(back[:, 3:] + by_view)


def rays_in_numpy(rays: TensorRays, rows: slice) -> Rays:
    """Some of the rays, in f64."""
    return Rays(*(each[rows].cpu().numpy().astype(float) for each in (rays.origin, rays.direction)))
