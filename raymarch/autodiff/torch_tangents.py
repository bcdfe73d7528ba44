"""Tangents of marches of rays that are tensors: a direction of all that an image depends on, carried through."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from raymarch.autodiff.torch_rays import Seen, TensorRays, TorchRays, rays_in_numpy
from raymarch.device.owner import Holder
from raymarch.geometry.ndc import ray_slopes
from raymarch.gradients.parameters import Parameters
from raymarch.gradients.volume_tangents import VolumeTangents
from raymarch.kernels.rays import ray_tensors as tensors
from raymarch.torch.tensors import wait_for

if TYPE_CHECKING:
    from torch import Tensor


class TorchTangents(Holder):
    """Tangents of a `TorchRays`'s marches; memory for directions of a volume is taken when first wanted."""

    def __init__(self, marches: TorchRays):
        self.marches = marches
        self._dots: dict[int, VolumeTangents] = {}
        self._owners = ExitStack()

    def tangents(
        self, rays: TensorRays, seen: Seen, dot: Parameters, dot_rays: np.ndarray | None
    ) -> tuple[Tensor, Tensor]:
        """Tangents of image (ray, 4) and depth (ray,) by a direction of the samples, and one of the rays' origin and
        direction in the world (ray, 6)."""
        image, depth = np.zeros(seen.image.shape), np.zeros(seen.depth.shape)
        grid, buffer, passes = self.marches.grid.fields, self.marches.buffer.fields, rays.passes
        by_depth = passes.depth_gradients if len(depth) else None
        wait_for(rays.direction)
        for rows, call in self.marches.batches(rays):
            moved = self.marches.motion.fields
            if by_depth is not None:
                tensors.depth_in(seen.depth[rows], seen.weights[rows], seen.weights[rows], buffer)
            if any(x is not None for x in (dot.density, dot.colour, dot.table)):
                dots = self._loaded(dot).fields
                passes.tangent(grid, dots, buffer, moved.dot_image, *call)
                image[rows] += self.marches.motion.dot_image(call.count)[:, 0]
                if by_depth is not None:
                    by_depth.tangent(grid, dots, buffer, moved.dot_depth, *call[:4])
                    depth[rows] += self.marches.motion.dot_depth(call.count)[:, 0]
            if dot_rays is not None or dot.iso is not None:
                if by_depth is not None:
                    self.marches.require_depth_moves()
                self._move(rays, rows, np.zeros((call.count, 6)) if dot_rays is None else dot_rays[rows], dot)
                passes.geometry_tangent(grid, buffer, moved, *call)
                image[rows] += self.marches.motion.dot_image(call.count)[:, 0]
                if by_depth is not None:
                    by_depth.geometry_tangent(grid, buffer, moved, moved.dot_depth, *call[:4])
                    depth[rows] += self.marches.motion.dot_depth(call.count)[:, 0]
        return seen.image.new_tensor(image), seen.image.new_tensor(depth)

    def _loaded(self, dot: Parameters) -> VolumeTangents:
        """A direction of density and colour on the device."""
        channels = 0 if dot.colour is None else 3 * (self.marches.grid.degree + 1) ** 2
        if channels not in self._dots:
            self._dots[channels] = self._owners.enter_context(VolumeTangents(self.marches.grid.shape, channels, 1))
        self._dots[channels].upload([dot])
        return self._dots[channels]

    def _move(self, rays: TensorRays, rows: slice, dot: np.ndarray, by: Parameters) -> None:
        """A direction of rays (ray, 6) of the world on the device, in index space, and of a surface's level."""
        linear, by_view = np.linalg.inv(self.marches.grid.world_from_index)[:3, :3], dot[:, 3:]
        if self.marches.grid.ndc_from_world is not None:
            dot = np.einsum("rij,rj->ri", ray_slopes(self.marches.grid.ndc_from_world, rays_in_numpy(rays, rows)), dot)
        moves = (dot[:, :3] @ linear.T, dot[:, 3:] @ linear.T, by_view)
        origin, way, view = (each[:, None] for each in moves)
        self.marches.motion.upload(origin, way, view, np.zeros(1))
        if rays.march.clipped:
            self.marches.motion.upload_place(dot[:, None, :3], dot[:, None, 3:])
        if rays.march.rule.shaded:
            self.marches.motion.upload_surface(
                np.array([0.0 if by.iso is None else float(by.iso)]), np.zeros((1, 3, 3))
            )
