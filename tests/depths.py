"""Depth along a viewed volume's rays in the mode of its march, and what the mode's kernels say of its slopes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.integrator.passes import passes_of


class Depths:
    """Depths of a `Linearised`'s rays; what it takes of the device is given back by `owners`."""

    def __init__(self, seen: Linearised, owners: ExitStack):
        self.seen, self.passes = seen, passes_of(seen.march.rule)
        self.call = seen.march.call(seen.grid, len(seen.rays), (0, 0, 0))[:4]
        self.motion = owners.enter_context(RayTangents(seen.buffer.capacity, 1))
        self.dots = owners.enter_context(VolumeTangents(seen.volume.shape, 0, 1))

    def of(self, density):
        """Depth (ray,) of the volume with another raw density, which stays on the device."""
        self.seen.grid.upload(replace(self.seen.volume, density=density))
        self.passes.depth(self.seen.grid.fields, self.seen.buffer.fields, *self.call)
        return self.seen.buffer.depth(len(self.seen.rays)).astype(float)

    def tangent(self, dot):
        """(ray,) by a direction of the density."""
        self.dots.upload([Parameters(density=dot)])
        fields = self.seen.grid.fields, self.dots.fields, self.seen.buffer.fields, self.motion.fields.dot_depth
        self.passes.depth_gradients.tangent(*fields, *self.call)
        return self.motion.dot_depth(len(self.seen.rays))[:, 0]

    def adjoint(self, d_depth):
        """(x, y, z) by the density."""
        self._set(d_depth)
        self.seen.grid.begin_gradient()
        self.passes.depth_gradients.adjoint(self.seen.grid.fields, self.seen.buffer.fields, *self.call)
        self.seen.grid.reduce_slots()
        return self.seen.grid.download_gradient()[0]

    def geometry_tangent(self, dot_origin, dot_direction):
        """(ray,) by a direction of the rays in the world."""
        linear = np.linalg.inv(self.seen.volume.world_from_index)[:3, :3].T
        moved = ((dot_origin @ linear)[:, None], (dot_direction @ linear)[:, None], np.zeros((len(dot_origin), 1, 3)))
        self.motion.upload(*moved, np.zeros(1))
        self.motion.upload_place(dot_origin[:, None], dot_direction[:, None])
        self.motion.upload_surface(np.zeros(1), np.zeros((1, 3, 3)))
        fields = self.seen.grid.fields, self.seen.buffer.fields, self.motion.fields, self.motion.fields.dot_depth
        self.passes.depth_gradients.geometry_tangent(*fields, *self.call)
        return self.motion.dot_depth(len(self.seen.rays))[:, 0]

    def geometry_adjoint(self, d_depth):
        """Origin and direction (ray, 3) in the world."""
        self._set(d_depth)
        fields = self.seen.grid.fields, self.seen.buffer.fields, self.motion.fields
        self.passes.depth_gradients.geometry_adjoint(*fields, *self.call)
        linear, count = np.linalg.inv(self.seen.volume.world_from_index)[:3, :3], len(self.seen.rays)
        gradients = [gradient @ linear for gradient in self.motion.gradients(count)[:2]]
        if self.seen.march.clip is not None:
            gradients = [one + cut for one, cut in zip(gradients, self.motion.place_gradients(count), strict=True)]
        return gradients

    def _set(self, d_depth):
        padded = np.zeros(self.seen.buffer.fields.depth.shape)
        padded[: len(d_depth)] = d_depth
        self.seen.buffer.fields.depth.grad.from_numpy(padded)
