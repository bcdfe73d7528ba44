"""Law: depth has an adjoint and a tangent, by density and by the rays, each other's transpose, both its slope."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
import reference

from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import Parameters
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.field.copies import clear_gradients
from raymarch.kernels.integrator.passes import passes_of
from raymarch.kernels.modes.registry import MODES

STEP = 0.11
CASES = [("emission-absorption", True), ("additive", False)]  # mode, jitter


class Depths:
    """Depth of a random volume along the rays of two cameras, and what its kernels say of its slopes."""

    def __init__(self, mode, jittered, owners):
        self.mode, volume, rng = mode, cases.volume("rotated", 0), np.random.default_rng(2)
        self.volume = replace(volume, activation=replace(volume.activation, scale=1.5))
        every = [camera.rays() for camera in cases.cameras(volume)]
        self.rays = Rays(*(np.concatenate([getattr(r, name) for r in every]) for name in ("origin", "direction")))
        count = len(self.rays)
        self.jitter = np.stack([rng.uniform(0, 1, count), rng.uniform(0.8, 1.2, count)], 1) if jittered else None
        self.grid, self.buffer = drive.grid_of(0), drive.ray_buffer()
        self.motion = owners.enter_context(RayTangents(self.buffer.capacity, 1))
        self.dots = owners.enter_context(VolumeTangents(self.volume.shape, 0, 1))
        self.grid.upload(self.volume)
        self.buffer.upload(self.rays)
        variant = drive.reading_of(self.grid, self.buffer, mode, self.jitter)
        self.call = (variant, count, STEP, 0.0)
        self.passes = passes_of(variant.mode)
        self.gradients = self.passes.depth_gradients
        self.passes.depth(self.grid.fields, self.buffer.fields, *self.call)

    def reference(self, volume=None, rays=None):
        return reference.depth(volume or self.volume, rays or self.rays, STEP, 0.0, self.mode, self.jitter)

    def set_gradient(self, d_depth):
        padded = np.zeros(self.buffer.fields.depth.shape)
        padded[: len(d_depth)] = d_depth
        self.buffer.fields.depth.grad.from_numpy(padded)

    def adjoint(self, d_depth):
        """d_density."""
        self.set_gradient(d_depth)
        clear_gradients(self.grid.fields)
        self.gradients.adjoint(self.grid.fields, self.buffer.fields, *self.call)
        self.grid.reduce_slots()
        return self.grid.download_gradient()[0]

    def tangent(self, dot_density):
        self.dots.upload([Parameters(density=dot_density)])
        where = self.motion.fields.dot_depth
        self.gradients.tangent(self.grid.fields, self.dots.fields, self.buffer.fields, where, *self.call)
        return where.to_numpy()[: len(self.rays), 0]

    def geometry_adjoint(self, d_depth):
        """Gradients by index-space origin and way (ray, 3), and dt (ray,)."""
        self.set_gradient(d_depth)
        self.gradients.geometry_adjoint(self.grid.fields, self.buffer.fields, self.motion.fields, *self.call)
        origin, way, _, dt = self.motion.gradients(len(self.rays))
        return origin, way, dt

    def geometry_tangent(self, dot_origin, dot_direction):
        """By the rays in the world."""
        linear = np.linalg.inv(self.volume.world_from_index)[:3, :3]
        moved = [(dot @ linear.T)[:, None] for dot in (dot_origin, dot_direction)]
        self.motion.upload(*moved, dot_direction[:, None], np.zeros(1))
        motion = self.motion.fields
        self.gradients.geometry_tangent(self.grid.fields, self.buffer.fields, motion, motion.dot_depth, *self.call)
        return motion.dot_depth.to_numpy()[: len(self.rays), 0]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{'jittered' if case[1] else 'plain'}")
def depths(request):
    with ExitStack() as owners:
        yield Depths(*request.param, owners)


def test_depth_and_its_gradient_by_density_are_the_references(depths):
    """Not finite where a ray meets nothing, and what comes for such a ray goes nowhere, NaN included."""
    wanted = depths.reference()
    met = np.isfinite(wanted)
    assert 0 < np.count_nonzero(~met) < np.count_nonzero(met)
    np.testing.assert_allclose(depths.buffer.depth(len(wanted)), wanted, rtol=1e-10)
    d_depth = np.where(met, np.random.default_rng(0).normal(size=len(met)), np.nan)
    want = reference.depth_gradient(depths.volume, depths.rays, d_depth, STEP, depths.mode, depths.jitter)
    np.testing.assert_allclose(depths.adjoint(d_depth), want, rtol=0, atol=1e-11 * np.abs(want).max())


def test_the_adjoint_by_density_is_the_tangents_transpose(depths):
    rng = np.random.default_rng(1)
    dot, d_depth = rng.normal(size=depths.volume.shape), rng.normal(size=len(depths.rays))
    along = depths.tangent(dot)
    gap = np.vdot(along, d_depth) - np.vdot(dot, depths.adjoint(d_depth))
    assert abs(gap) < 1e-12 * np.linalg.norm(along) * np.linalg.norm(d_depth)


def test_the_slope_by_rays_is_that_of_differences(depths):
    """And adjoint and tangent are each other's transpose."""
    rng = np.random.default_rng(3)
    rays, met = depths.rays, np.isfinite(depths.reference())
    dot_origin, dot_direction = rng.normal(size=(2, *rays.origin.shape))
    dot_direction -= rays.direction * (rays.direction * dot_direction).sum(1, keepdims=True)

    def moved(h):
        return depths.reference(rays=Rays(rays.origin + h * dot_origin, rays.direction + h * dot_direction))[met]

    along = depths.geometry_tangent(dot_origin, dot_direction)
    difference = (moved(1e-6) - moved(-1e-6)) / 2e-6
    smooth = np.abs(moved(1e-6) + moved(-1e-6) - 2 * moved(0)) < 1e-7 * np.abs(difference).max()  # no kink between
    assert smooth.mean() > 0.9
    np.testing.assert_allclose(along[met][smooth], difference[smooth], rtol=0, atol=1e-7 * np.abs(difference).max())
    d_depth = rng.normal(size=len(rays))
    linear = np.linalg.inv(depths.volume.world_from_index)[:3, :3]
    by_origin, by_way, _ = depths.geometry_adjoint(d_depth)
    back = np.vdot(by_origin, dot_origin @ linear.T) + np.vdot(by_way, dot_direction @ linear.T)
    assert abs(np.vdot(along, d_depth) - back) < 1e-12 * np.linalg.norm(along) * np.linalg.norm(d_depth)


def test_what_clips_a_surface_does_not_move_how_deep_it_is():
    """Its gradient is written, for the memory may be that of another run."""
    with ExitStack() as owners:
        depths = Depths("emission-absorption", False, owners)
        variant = drive.reading_of(depths.grid, depths.buffer, "isosurface", None)
        depths.set_gradient(np.ones(len(depths.rays)))
        motion = depths.motion.fields
        for field in (motion.d_place_origin, motion.d_place_way):
            field.fill(7.0)
        call = (variant.replace(clipped=True), *depths.call[1:])
        passes_of(MODES["isosurface"]).depth_gradients.geometry_adjoint(
            depths.grid.fields, depths.buffer.fields, motion, *call
        )
        for moved in depths.motion.place_gradients(len(depths.rays)):
            np.testing.assert_array_equal(moved, 0.0)
