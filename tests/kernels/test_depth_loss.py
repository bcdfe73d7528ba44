"""Law: the depth loss is the mean of its penalty over where light ends, and its gradient is the slope of that."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
import reference
from whole import whole

from raymarch.device.brick_grid import grid_for
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.geometry.boxes import affine_of_box
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.geometry.rays import Rays
from raymarch.kernels.rays import ray_arrays
from raymarch.volumes.volume import Volume

WEIGHT = 3.0


def loss_of(tau, t, target, delta, miss):
    """Mean of x^2 / (1 + x^2) over where light ends, `miss` for what does not end."""
    after = np.exp(-np.cumsum(tau))
    weights = np.concatenate([[1.0], after[:-1]]) - after
    x = (t - target) / delta
    return weights @ (x**2 / (1 + x**2)) + after[-1] * miss


def gradient_of(tau, t, target, delta, miss):
    """Gradient (sample,) by optical depths: of one that ends light there, less what that light would have cost."""
    after = np.exp(-np.cumsum(tau))
    weights = np.concatenate([[1.0], after[:-1]]) - after
    x = (t - target) / delta
    cost = x**2 / (1 + x**2)
    behind = np.cumsum((weights * cost)[::-1])[::-1] - weights * cost + after[-1] * miss
    return after * cost - behind


@pytest.mark.parametrize("n", [1, 2, 17])
def test_the_gradient_is_that_of_differences(n):
    rng = np.random.default_rng(n)
    tau, t, h = rng.exponential(0.4, n), np.sort(rng.uniform(0, 3, n)), 1e-5
    found = gradient_of(tau, t, 1.3, 0.2, 1.0)
    for i, unit in enumerate(np.eye(n)):
        ends = (loss_of(tau + s * h * unit, t, 1.3, 0.2, 1.0) for s in (1, -1))
        assert found[i] == pytest.approx((next(ends) - next(ends)) / (2 * h), rel=1e-7, abs=1e-10)


def by_kernels(v: Volume, rays: Rays, targets, dt: float, cut: float):
    """Loss and density's gradient; those of the image are none, by a march whose samples go one by one."""
    n = len(rays)
    with grid_for(v, slots=2) as grid, RayBuffer(n) as buffer, RayBuffer(n) as depths:
        grid.upload(v)
        for each in (buffer, depths):
            each.upload(rays)
        ray_arrays.vectors_in(targets, depths.fields.target)
        buffer.fields.image.grad.fill(0)
        buffer.fields.jitter.from_numpy(np.tile([0.0, 1.0], (*buffer.fields.jitter.shape, 1)))
        with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
            variant, black = grid.variant.replace(jittered=True), ti.Vector([0.0, 0.0, 0.0])
            differentiable_passes.march(grid, buffer, n, dt, cut, 0.0, black, variant)
            differentiable_passes.add_depth(grid, buffer, depths, n, dt, cut, WEIGHT)
        return buffer.fields.loss[None], grid.download_gradient()[0], depths.image(n)


def by_numpy(v: Volume, rays: Rays, targets, dt: float, cut: float):
    loss, gradient = 0.0, np.zeros(v.shape)
    for origin, direction, (target, delta, miss, share) in zip(rays.origin, rays.direction, targets, strict=True):
        met, _ = reference.samples(v, origin, direction, dt, cut, 0.0)
        if not met:
            loss += WEIGHT / len(rays) * share * miss
            continue
        args = np.array([one.tau for one in met]), np.array([one.t for one in met]), target, delta, miss
        loss += WEIGHT / len(rays) * share * loss_of(*args)
        for one, d_tau in zip(met, gradient_of(*args), strict=True):
            reference.scatter(gradient, one.p, WEIGHT / len(rays) * share * d_tau * one.slope * one.width)
    return loss, gradient


@pytest.mark.parametrize("cut", [0.0, 0.5])
@pytest.mark.parametrize(("boxes", "ndc"), [whole(1, False), (3, False), whole(1, True)])
def test_kernels_do_as_numpy(boxes, ndc, cut):
    rng = np.random.default_rng(boxes)
    _, affine = cases.placed("rotated")
    shape = (6 * boxes, 5, 4)
    v = Volume(rng.normal(size=shape), np.zeros((*shape, 3)), affine, cases.volume().activation, boxes=boxes)
    if ndc:
        place, pose = affine_of_box([(-1, -1, -1), (1, 1, 1)], shape), cases.motion((1, 2, 3), 0.5, (0.2, 0, -0.1))
        v = replace(v, world_from_index=place, ndc_from_world=ndc_of_frustum(pose, 0.7))
    middle, reach = v.corners.mean(0), np.linalg.norm(v.corners[-1] - v.corners[0])
    start = middle + reach * rng.uniform(-2, 2, (9, 3))
    rays = Rays(start, middle + reach * rng.uniform(-0.2, 0.2, (9, 3)) - start)
    away = np.linalg.norm(start - middle, axis=1)
    targets = np.stack([away, 0.3 * away, rng.integers(0, 2, 9), rng.uniform(0, 1, 9)], axis=1).astype(float)
    call = rays, targets, 0.4 * v.voxel, cut
    found, wanted = by_kernels(v, *call), by_numpy(v, *call)
    assert found[0] == pytest.approx(wanted[0], rel=1e-12)
    assert np.abs(wanted[1]).max() > 1e-4
    np.testing.assert_allclose(found[1], wanted[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[2][:, 2] + found[2][:, 3], 1, atol=1e-12)  # weights, and what is left
