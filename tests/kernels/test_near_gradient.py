"""Law: gradients scaled near the cameras are the sum over samples of their share of what each gives, and no more."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cases
import numpy as np
import pytest
import reference

from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting import differentiable_passes, fitter
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.geometry.rays import Rays
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

BEGIN = 0.3  # of a ray, from its camera
NOISE = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
CASES = {"in pairs": (1, 0, False), "boxes, jitter": (3, 0, True), "in groups": (1, 1, False)}  # boxes, degree, jitter
EACH = [pytest.param(case, id=name) for name, case in CASES.items()]
EACH.append(pytest.param((3, 1, True), id="all", marks=pytest.mark.whole))


@cache
def scene(boxes: int, degree: int) -> tuple[Volume, Rays, np.ndarray, np.ndarray]:
    """Volume, rays from inside and outside, their jitter, and the gradient of their image."""
    rng = np.random.default_rng(boxes)
    _, affine = cases.placed("rotated")
    shape = (6 * boxes, 5, 4)
    features = rng.normal(0, 0.7, (*shape, 3 * (degree + 1) ** 2))
    v = Volume(rng.normal(size=shape), features, affine, replace(cases.volume().activation, scale=1.5), boxes=boxes)
    middle, reach = v.corners.mean(0), np.linalg.norm(v.corners[-1] - v.corners[0])
    start = middle + reach * rng.uniform(-1, 1, (12, 3)) * ([[0.3]] * 4 + [[boxes]] * 8)
    rays = Rays(start, middle + reach * rng.uniform(-0.2, 0.2, (12, 3)) - start)
    jitter = np.stack([rng.uniform(0, 0.9, 12), rng.uniform(0.9, 1.1, 12)], -1)
    return v, rays, jitter, rng.normal(size=(12, 4))


def by_kernels(boxes, degree, jittered, whole):
    """Gradient of density and features; `whole`: distance from which on it is, None for gradients as they are."""
    v, rays, jitter, d_image = scene(boxes, degree)
    with Grid(v.shape, degree, slots=2, boxes=boxes) as grid, RayBuffer(len(rays)) as buffer:
        grid.upload(v)
        buffer.upload(rays)
        for field, value in ((buffer.fields.jitter, jitter), (buffer.fields.image.grad, d_image)):
            field.from_numpy(np.concatenate([value, np.zeros((field.shape[0] - len(value), value.shape[1]))]))
        buffer.set_near(BEGIN, whole or 0.0)
        variant = grid.variant.replace(jittered=jittered)
        call = len(rays), 0.4 * v.voxel, 0.0, 0.0, ti.Vector(list(cases.BACKGROUND)), variant
        differentiable_passes.march(grid, buffer, *call)
        image = buffer.image(len(rays))
        differentiable_passes.march.grad(grid, buffer, *call, whole is not None)
        return image, *grid.download_gradient()


@pytest.mark.parametrize("case", EACH)
def test_each_sample_gives_its_share(case):
    v, rays, jitter, d_image = scene(*case[:2])
    reach = np.linalg.norm(v.corners[-1] - v.corners[0])
    step = 0.4 * v.voxel
    for whole in (0.6 * reach, 50 * reach):
        near = BEGIN, whole
        own = jitter if case[2] else None
        wanted = reference.march_gradient(v, rays, step, cases.BACKGROUND, d_image, jitter=own, near=near)
        for found, want in zip(by_kernels(*case, whole)[1:], wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=0, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("case", EACH)
def test_far_from_the_cameras_gradients_are_as_they_are(case):
    """And images are, wherever. By a factor of 1 the compiler may take products in another order: last bits differ."""
    image, *gradient = by_kernels(*case, 1e-9)
    as_it_is, *whole = by_kernels(*case, None)
    np.testing.assert_array_equal(image, as_it_is)
    for found, want in zip(gradient, whole, strict=True):
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-15 * np.abs(want).max())


def test_a_fit_scales_by_the_distance_of_its_cameras(monkeypatch):
    """The middle of the box is 4 from all cameras; rays begin at the near plane."""
    cameras = orbit((0, 0, 0), 4.0, 3, like=Camera.look_at((4, 0, 0), width=8, height=8))
    views = Views(cameras, NOISE)
    settings = preset("quick", resolution=8, sh_degree=0, rays=64, steps=1, near=0.25, near_gradient=0.5)

    class Asked(Exception):
        pass

    def march(*call):
        raise Asked(call[-1])

    monkeypatch.setattr(fitter.differentiable_passes, "march", march)
    for each in (settings, replace(settings, near_gradient=0.0)):
        with Fitter(views, each, box=((-1, -1, -1), (1, 1, 1))) as one:
            with pytest.raises(Asked, match=str(each.near_gradient > 0)):
                one.step()
            if each.near_gradient:
                np.testing.assert_allclose(one.buffer.fields.near[None], [1, 2])
