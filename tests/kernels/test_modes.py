"""Law: every way of compositing, with and without jitter, is what tests/reference.py defines, image and gradient."""

from __future__ import annotations

from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
import reference
import single as worker
from whole import whole

from raymarch.errors import RaymarchError
from raymarch.geometry.orbit import orbit_of_volume
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.integrator.mode import MAX_TRANSMITTANCE
from raymarch.kernels.modes.registry import COMPOSITING_MODES as MODES
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer, render
from raymarch.volumes.activation import Activation
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import Volume

DENSE = 4.0  # of the additive mode: most rays reach their clamp
READINGS = [("softplus", "sigmoid"), ("relu", "clamped"), ("identity", "identity")]


def volume_of(mode, variant, degree=1):
    v = cases.volume("upright", degree, *variant)
    return replace(v, activation=replace(v.activation, scale=v.activation.scale / DENSE)) if mode == "additive" else v


def jitter_of(count, jittered):
    rng = np.random.default_rng(4)
    return np.stack([rng.uniform(0, 1, count), rng.uniform(0.6, 1.5, count)], 1) if jittered else None


# Every two values of every two factors meet, as by `covering`, in those that compile fastest: one by one at degree 0.
EACH = [
    ("emission-absorption", READINGS[0], False, 1),
    ("emission-absorption", READINGS[1], True, 0),
    ("emission-absorption", READINGS[2], True, 1),
    ("additive", READINGS[0], True, 0),
    ("additive", READINGS[2], False, 1),
    ("x-ray", READINGS[0], False, 1),
    ("x-ray", READINGS[2], True, 0),
    ("emission-absorption", READINGS[0], False, 0),  # three meet: without jitter the steps of this mode go in pairs
    whole("additive", READINGS[1], False, 1),
    whole("x-ray", READINGS[1], False, 0),
]


@pytest.mark.parametrize(("mode", "variant", "jittered", "degree"), EACH)
def test_image_and_gradient_are_the_reference(mode, variant, jittered, degree):
    v = volume_of(mode, variant, degree)
    rays = cases.rays(v)
    how = {"mode": mode, "jitter": jitter_of(len(rays), jittered)}
    for step, min_transmittance, min_weight in ((0.5, 0.0, 0.0), (0.31, 0.3, 0.02), (100, 0.0, 0.0)):
        wanted = reference.march(v, rays, step * v.voxel, cases.BACKGROUND, min_transmittance, min_weight, **how)
        scale = max(np.abs(wanted).max(), 1)
        got = drive.image(v, rays, step * v.voxel, min_transmittance=min_transmittance, min_weight=min_weight, **how)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 * scale)
        d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
        wanted = reference.march_gradient(
            v, rays, step * v.voxel, cases.BACKGROUND, d_image, min_transmittance, min_weight, **how
        )
        gradients = drive.gradient(
            v, rays, d_image, step * v.voxel, min_transmittance=min_transmittance, min_weight=min_weight, **how
        )
        for got, want in zip(gradients, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * max(np.abs(want).max(), 1e-30))


def test_rays_of_the_additive_cases_are_clamped():
    """Else the laws above said little; with densities of both signs some are clamped more than once."""
    for variant, min_weight in ((("softplus", "sigmoid"), 0.3), (("identity", "identity"), 0.05)):
        v = volume_of("additive", variant)
        rays = cases.rays(v)
        full = [
            sum(s.tau > s.T > 0 for s in reference.samples(v, *ray, 0.5 * v.voxel, 0.0, 0.0, "additive")[0])
            for ray in zip(rays.origin, rays.direction, strict=True)
        ]
        assert np.mean(np.array(full) > 0) > min_weight
        if variant[0] == "identity":
            assert max(full) > 1


def slab(mode, sigma, **march):
    """Image of one ray through a slab of one length, and its T."""
    v = cases.constant(sigma, 0.0, activation=Activation("relu", colour="clamped"), degree=0)
    from raymarch.geometry.rays import Rays

    with Renderer(v, March(mode=mode, batch=cases.FEW, **march)) as renderer:
        image, _ = renderer.trace(Rays([[0.5, 0.5, -3.0]], [[0.0, 0.0, 1.0]]), "black")
    return image[0]


@pytest.mark.parametrize("march", [{}, {"jitter": 1.0}, {"jitter": 0.5, "step_jitter": 0.4}], ids=str)
@pytest.mark.parametrize("sigma", [0.0, 0.3, 0.9, 1.7])
def test_a_slab_is_its_closed_form_in_every_mode_under_any_jitter(sigma, march):
    """Colour 1/2: half of what is met. The line integral is not clamped, and knows no colour."""
    np.testing.assert_allclose(slab("x-ray", sigma, **march), [sigma] * 3 + [np.exp(-sigma)], atol=1e-6)
    full = min(sigma, 1.0)
    np.testing.assert_allclose(slab("additive", sigma, **march), [full / 2] * 3 + [1 - full], atol=1e-6)
    alpha = 1 - np.exp(-sigma)
    np.testing.assert_allclose(slab("emission-absorption", sigma, **march), [alpha / 2] * 3 + [1 - alpha], atol=1e-6)


def test_the_line_integral_of_two_volumes_is_the_sum_of_theirs():
    """So it is linear where the activation is the identity, to the last bits; early stop and floor do not touch it."""
    a, b = (cases.volume("rotated", 0, "identity", "sigmoid", seed=s) for s in (1, 2))
    a, b = (replace(v, activation=Activation("identity")) for v in (a, b))
    rays = cases.rays(a)
    both = replace(a, density=2 * a.density - 3 * b.density)
    image = [
        drive.image(v, rays, 0.2, min_transmittance=0.9, min_weight=0.5, mode="x-ray")[:, :3] for v in (a, b, both)
    ]
    np.testing.assert_allclose(image[2], 2 * image[0] - 3 * image[1], rtol=0, atol=1e-13 * np.abs(image[2]).max())


@pytest.mark.parametrize(
    ("colour", "march"),
    [("identity", March(mode="x-ray", jitter=1.0)), ("sigmoid", March(mode="x-ray-exact"))],
    ids=["x-ray", "x-ray-exact"],
)  # a colour, which none sees, and a jitter as others of these modes have them, whose kernels serve
def test_values_under_0_that_let_any_light_through_make_numbers_with_their_gradients(colour, march, single):
    """As those of a scan in Hounsfield units, whose air is -1000: e to the thousandth is beyond any float."""
    rng = np.random.default_rng(6)
    values = 100.0 * rng.normal(size=(8, 8, 8)) - 600.0
    values[:3] = 0.002 * rng.normal(size=(3, 8, 8))
    scan = ScalarVolume(values.astype(np.float32)).as_volume()
    scan = replace(scan, activation=replace(scan.activation, colour=colour))
    camera = orbit_of_volume(scan.box, 8, size=12)[1]
    way, back = rng.normal(size=scan.shape), rng.normal(size=(144, 4))
    with Linearised(scan, camera, march=march) as seen:
        images = seen.image(), single(worker.image_of_camera, scan, camera, march)
        tangent, gradient = seen.tangent(Parameters(density=way)), seen.adjoint(back)
    for image in images:
        assert np.isfinite(image).all()
        assert image[:, 3].max() == pytest.approx(MAX_TRANSMITTANCE)
        assert image[:, :3].min() < -1000
    assert np.isfinite(tangent).all()
    assert (back * tangent).sum() == pytest.approx((gradient.density * way).sum(), rel=1e-9)


def ball() -> Volume:
    return Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.7), shape=(12, 12, 12))


@pytest.mark.parametrize("mode", MODES)
def test_jitter_is_a_function_of_seed_and_pixel(mode):
    """Whatever the batch; another seed gives another image, close to the one without jitter."""
    from raymarch.geometry.camera import Camera

    camera = Camera.look_at((0, -4, 0.5), width=9, height=7)
    even = render(ball(), camera, march=March(mode=mode, batch=cases.FEW))
    images = [
        render(ball(), camera, march=March(mode=mode, jitter=1.0, step_jitter=0.2, seed=seed, batch=batch))
        for seed, batch in ((3, cases.FEW), (3, 5), (4, cases.FEW))
    ]
    np.testing.assert_array_equal(images[0], images[1])
    assert np.abs(images[0] - images[2]).max() > 1e-4
    assert 0 < np.abs(images[0] - even).max() < 0.3


def test_steps_are_as_much_longer_as_shorter_and_phases_fill_their_share():
    buffer = drive.ray_buffer()
    pixels = np.arange(buffer.capacity, dtype=np.int32)
    jitter_pixels(buffer.fields, 5, pixels, 0.6, 0.3)
    phase, stretch = buffer.fields.jitter.to_numpy().T[:, : len(pixels)]
    for given, low, high in ((phase, 0.0, 0.6), (stretch, 0.7, 1.3)):
        assert low <= given.min() < low + 0.01
        assert high - 0.01 < given.max() <= high
        assert abs(given.mean() - (low + high) / 2) < 4 * (high - low) / np.sqrt(12 * len(pixels))


@pytest.mark.parametrize(
    ("march", "said"),
    [
        ({"mode": "mip"}, "mode is 'mip', want one of emission-absorption, additive, x-ray"),
        ({"jitter": 1.5}, "jitter is 1.5"),
        ({"jitter": float("nan")}, "jitter is nan"),
        ({"step_jitter": 1.0}, "step_jitter is 1.0"),
    ],
)
def test_bad_marches_are_refused(march, said):
    with pytest.raises(RaymarchError, match=said):
        March(**march)
