"""Law: the distortion loss (Barron 2022) of a ray is its sum over pairs, its gradient the slope; kernels do as NumPy.

The twin in NumPy takes one pass each: forward with three running sums, backward with what was left by it.
"""

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
from raymarch.volumes.volume import Volume


def weights(tau):
    """Weights of samples by their optical depths, and the transmittance after each."""
    after = np.exp(-np.cumsum(tau))
    return np.concatenate([[1.0], after[:-1]]) - after, after


def distortion(tau, s, d):
    """(L, W, S): sum over pairs of w_i w_j |s_i - s_j| and over samples of w^2 d / 3, places s rising, widths d."""
    L = W = S = 0.0
    T = 1.0
    for tau_i, s_i, d_i in zip(tau, s, d, strict=True):
        w = T * -np.expm1(-tau_i)
        L += 2 * w * (s_i * W - S) + w * w * d_i / 3
        W, S, T = W + w, S + w * s_i, T * np.exp(-tau_i)
    return L, W, S


def distortion_adjoint(tau, s, d):
    """Gradient (sample,) by optical depths, front to back: L is of degree 2 in w, so sum w g is 2 L."""
    later, W_end, S_end = distortion(tau, s, d)
    later *= 2
    W = S = 0.0
    T, gradient = 1.0, []
    for tau_i, s_i, d_i in zip(tau, s, d, strict=True):
        after = T * np.exp(-tau_i)
        w = T - after
        W_after, S_after = W_end - W - w, S_end - S - w * s_i
        g = 2 * (s_i * (W - W_after) - (S - S_after)) + 2 * w * d_i / 3
        later -= w * g
        gradient.append(g * after - later)
        W, S, T = W + w, S + w * s_i, after
    return np.array(gradient)


@pytest.fixture(params=[1, 2, 17])
def ray(request):
    n, rng = request.param, np.random.default_rng(request.param)
    edges = np.sort(rng.uniform(0, 1, n + 1))
    return rng.exponential(0.4, n), (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def test_one_pass_is_the_sum_over_pairs(ray):
    tau, s, d = ray
    w, after = weights(tau)
    L, W, S = distortion(tau, s, d)
    assert pytest.approx((w[:, None] * w * np.abs(s[:, None] - s)).sum() + (w**2 * d).sum() / 3) == L
    assert pytest.approx(1 - after[-1]) == W
    assert pytest.approx(w @ s) == S


def test_the_gradient_is_that_of_differences(ray):
    tau, s, d = ray
    found, h = distortion_adjoint(tau, s, d), 1e-5
    for i, unit in enumerate(np.eye(len(tau))):
        wanted = (distortion(tau + h * unit, s, d)[0] - distortion(tau - h * unit, s, d)[0]) / (2 * h)
        assert found[i] == pytest.approx(wanted, rel=1e-7, abs=1e-10)


UNIT, WEIGHT = 0.7, 3.0


def by_kernels(v: Volume, rays: Rays, dt: float, cut: float):
    """Loss and density's gradient; those of the image are none, by a march whose samples go one by one."""
    with grid_for(v, slots=2) as grid, RayBuffer(len(rays)) as buffer:
        grid.upload(v)
        buffer.upload(rays)
        buffer.fields.image.grad.fill(0)
        buffer.fields.jitter.from_numpy(np.tile([0.0, 1.0], (*buffer.fields.jitter.shape, 1)))
        black = ti.Vector([0.0, 0.0, 0.0])
        with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
            differentiable_passes.march(
                grid, buffer, len(rays), dt, cut, 0.0, black, grid.variant.replace(jittered=True)
            )
            differentiable_passes.add_distortion(grid, buffer, len(rays), dt, cut, UNIT, WEIGHT)
        return buffer.fields.loss[None], grid.download_gradient()[0]


def by_numpy(v: Volume, rays: Rays, dt: float, cut: float):
    loss, gradient = 0.0, np.zeros(v.shape)
    for origin, direction in zip(rays.origin, rays.direction, strict=True):
        met, _ = reference.samples(v, origin, direction, dt, cut, 0.0)
        ends = np.array([one.ends for one in met]).reshape(-1, 2)
        s = ends / (ends + UNIT)
        args = np.array([one.tau for one in met]), s.mean(1), s[:, 1] - s[:, 0]
        loss += WEIGHT * distortion(*args)[0] / len(rays)
        for one, d_tau in zip(met, distortion_adjoint(*args), strict=True):
            reference.scatter(gradient, one.p, WEIGHT / len(rays) * d_tau * one.slope * one.width)
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
    found, wanted = by_kernels(v, rays, 0.4 * v.voxel, cut), by_numpy(v, rays, 0.4 * v.voxel, cut)
    assert wanted[0] > 1e-3
    assert cut == 0 or wanted[0] != by_numpy(v, rays, 0.4 * v.voxel, 0.0)[0]  # some ray ends early
    assert found[0] == pytest.approx(wanted[0], rel=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=0, atol=1e-12)
