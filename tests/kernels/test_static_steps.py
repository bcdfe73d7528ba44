"""Law: the hand-written adjoints are what Taichi's own autodiff makes of static steps, in every mode."""

import cases
import numpy as np
import pytest
from drive import grid_of, ray_buffer, reading_of
from whole import whole

from raymarch.engine import ti
from raymarch.geometry.rays import Rays
from raymarch.gradients.tangents import RayTangents
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.kernels.integrator.passes import passes_of
from raymarch.kernels.modes.registry import COMPOSITING_MODES as MODES
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

STEPS, RAYS = 3, 6  # a first, one between and a last, which is shorter
STEP = (cases.FINEST[0] - 1) / (STEPS - 0.5)
Y00 = 0.28209479177387814


@ti.kernel
def static_steps(
    grid: ti.template(),
    origin: ti.template(),
    image: ti.template(),
    variant: ti.template(),
    dt: float,
    far: float,
    background: ti.math.vec3,
):
    """Rays along x through the box 0..far, written out; all in one loop, so that Taichi can differentiate it."""
    for r in range(RAYS):
        T, tau_sum = 1.0, 0.0
        colour = ti.Vector([0.0, 0.0, 0.0])
        for k in ti.static(range(STEPS)):
            width = ti.static(1.0 if k < STEPS - 1 else 0.5) * dt
            p = ti.Vector([k * dt + 0.5 * width, origin[r][1], origin[r][2]])
            cell = ti.cast(p, ti.i32)
            f = p - cell
            tau = activation.density(variant, gather(grid.density, cell, f)) * width
            c = activation.colour(variant, Y00 * gather(grid.features, cell, f))
            if ti.static(variant.mode.name == "additive"):
                weight = ti.min(tau, T)
                colour += weight * c
                T = T - weight
            elif ti.static(variant.mode.name == "x-ray"):
                tau_sum += tau
            else:
                colour += T * (1.0 - ti.exp(-tau)) * c
                T = T * ti.exp(-tau)
        if ti.static(variant.mode.name == "x-ray"):
            image[r] = ti.Vector([tau_sum, tau_sum, tau_sum, ti.exp(-tau_sum)])
        else:
            colour += T * background
            image[r] = ti.Vector([colour[0], colour[1], colour[2], T])


@pytest.mark.parametrize("mode", [mode if mode == "emission-absorption" else whole(mode) for mode in MODES])
def test_adjoints_are_taichis_of_static_steps(mode):
    rng = np.random.default_rng(0)
    density = rng.uniform(0.02, 0.3 if mode == "additive" else 0.6, cases.FINEST)
    v = Volume(density, rng.normal(size=(*cases.FINEST, 3)), np.eye(4), Activation("softplus", -1.0))
    grid, buffer = grid_of(0), ray_buffer()
    grid.upload(v)
    grid.set_activation(Activation("identity") if mode == "x-ray" else Activation("relu", colour="clamped"))
    variant, background = reading_of(grid, buffer, mode), ti.Vector(list(cases.BACKGROUND))
    start = np.stack([np.zeros(RAYS), rng.uniform(0, 6, RAYS), rng.uniform(0, 5, RAYS)], 1)
    rays = Rays(start, np.tile([1.0, 0.0, 0.0], (RAYS, 1)))
    d_image = rng.normal(size=(RAYS, 4))
    origin = ti.Vector.field(3, float, RAYS, needs_grad=True)
    image = ti.Vector.field(4, float, RAYS, needs_grad=True)
    origin.from_numpy(start)
    far = float(cases.FINEST[0] - 1)

    for field in (grid.fields.density.grad, grid.fields.features.grad):
        field.fill(0)
    static_steps(grid.fields, origin, image, variant, STEP, far, background)
    image.grad.from_numpy(d_image)
    static_steps.grad(grid.fields, origin, image, variant, STEP, far, background)
    wanted = [*(a.copy() for a in grid.download_gradient()), origin.grad.to_numpy()[:, 1:]]

    for field in (grid.fields.density.grad, grid.fields.features.grad):
        field.fill(0)
    buffer.upload(rays)
    how = (variant, RAYS, STEP, 0.0, 0.0, background)
    march(grid.fields, buffer.fields, *how)
    np.testing.assert_allclose(buffer.image(RAYS), image.to_numpy(), rtol=0, atol=1e-13)
    buffer.set_image_gradient(d_image)
    march_adjoint(grid.fields, buffer.fields, *how)
    grid.reduce_slots()
    with RayTangents(RAYS) as motion:
        passes_of(variant.mode).geometry_adjoint(grid.fields, buffer.fields, motion.fields, *how)
        got = [*grid.download_gradient(), motion.gradients(RAYS)[0][:, 1:]]
    for name, a, b in zip(("density", "colour", "origin"), got, wanted, strict=True):
        if mode == "x-ray" and name == "colour":
            assert (a == 0).all()
            assert (b == 0).all()
            continue
        assert np.linalg.norm(a - b) < 1e-10 * np.linalg.norm(b), name
