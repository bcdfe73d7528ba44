"""Law: in every mode, image and depth have an adjoint and a tangent, each other's transpose, and both their slope."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import cases
import numpy as np
import pytest
from depths import Depths
from whole import whole

from raymarch.geometry.clip import Clip
from raymarch.geometry.rays import Rays
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.kernels.integrator.passes import passes_of
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import TransferFunction

LEVEL = 0.3  # of the surfaces: raw, within the values of every case
CLIP = Clip(planes=[((1, 0.2, -0.3), 0.1), ((-0.3, 1, 0.5), 0.2)])  # both through the middle of the volumes
JITTER = {"jitter": 1.0, "step_jitter": 0.4, "seed": 5}
GLOSSY = Shading(lamp=(1, 2, 0.5), specular=0.7, shininess=3)
HEADLIGHT = Shading(ambient=0.2, specular=0.4, shininess=5)
RNG = np.random.default_rng(1)
TABLE = TransferFunction(  # over the values of the volumes; what is clear in it is lit as soon as it is not
    np.sort(RNG.uniform(0.1, 3, 6)), RNG.uniform(0, 1, (6, 3)), [0, 0.6, 0.3, 0, 0.8, 0.5], unit_length=0.4
)
BENT, STRAIGHT = ("rotated", 0, "softplus", "sigmoid"), ("upright", 0, "identity", "sigmoid")
EVERYWHERE = {"density", "pose", "focal", "principal_point", "exposure", "box"}
OF_TABLE = {"mode": "transfer", "transfer": TABLE}

# Each mode: a volume, its march, and what the image depends on besides density, camera, exposure and box. Jitter where
# there are steps, a clip and an activation that bends where they tell most.
CASES = {
    "emission-absorption": (BENT, JITTER, {"colour", "background", "step"}),
    "additive": (BENT, {}, {"colour", "background", "step"}),
    "x-ray": (STRAIGHT, JITTER, {"step"}),
    "maximum": (BENT, JITTER, {"step"}),
    "minimum": (STRAIGHT, {}, {"step"}),
    "average": (BENT, {"clip": CLIP}, set()),
    "x-ray-exact": (STRAIGHT, {}, set()),
    "x-ray-joseph": (BENT, {"clip": CLIP}, set()),
    "isosurface": (BENT, {"shading": GLOSSY}, {"colour", "background", "iso"}),
    "transfer": (BENT, OF_TABLE, {"table", "background", "step"}),
    "pre-integrated": (BENT, {**OF_TABLE, "preintegrated": True}, {"table", "background"}),
    "lamp": (BENT, {**OF_TABLE, "shading": GLOSSY, **JITTER}, {"table", "background", "step"}),
    "headlight": (BENT, {**OF_TABLE, "shading": HEADLIGHT}, {"table", "background", "step"}),
    "facets": (BENT, {**OF_TABLE, "shading": replace(GLOSSY, smooth=False)}, {"table", "background", "step"}),
    "occlusion": (
        BENT,
        {**OF_TABLE, "shading": replace(HEADLIGHT, ambient=0.9, occlusion=0.6), **JITTER},
        {"table", "background", "step"},
    ),
}
# Those that another stands for: the same integrand along the same traversal, or a mode that the geometry's laws have.
ALIKE = ("emission-absorption", "additive", "x-ray", "minimum", "average", "headlight", "facets")
EACH = [whole(name) if name in ALIKE else name for name in CASES]


def linearised(name) -> Linearised:
    """A case on the device; rays of a camera that is off the planes of samples."""
    place, how, _ = CASES[name]
    volume, how = cases.volume(*place), {"mode": name, **how}
    if name == "additive":  # thick enough for rays to reach their clamp
        volume = replace(volume, activation=replace(volume.activation, scale=0.3))
    if name == "isosurface":
        how["iso"] = float(volume.activation.sigma(LEVEL))
    march = replace(March(step=0.47, min_transmittance=0.0, min_weight=0.0, batch=cases.FEW), **how)
    camera = cases.cameras(volume)[0]
    return Linearised(volume, camera, background=cases.BACKGROUND, march=march, columns=1)


def test_every_mode_has_a_case():
    assert set(MODES) <= set(CASES)


@pytest.mark.parametrize("name", EACH)
def test_every_gradient_passes_the_dot_test_and_the_difference(name):
    with linearised(name) as seen:
        rows = check_rows(seen, pairs=3)
    assert {row.parameter for row in rows} == EVERYWHERE | CASES[name][2]
    for row in rows:
        assert row.dot < 1e-12, row
        assert row.difference < 1e-7, row
        assert row.verdict == "good", row


@pytest.mark.parametrize("name", ["maximum", "x-ray-exact", *map(whole, CASES)])
def test_one_pass_by_volume_and_rays_gives_what_two_give(name):
    d_image = np.random.default_rng(2).normal(size=(30, 4))
    with linearised(name) as seen:
        passes, motion, found = passes_of(seen.march.rule), seen.medium.ray_tangents(seen.buffer, 1), []
        fields, call = (seen.grid.fields, seen.buffer.fields), seen.medium.call_of(seen.viewpoint)
        passes.march(*fields, *call)
        seen.buffer.set_image_gradient(d_image)
        for both in (False, True):
            seen.grid.begin_gradient()
            if both:
                passes.both_adjoints(*fields, motion.fields, *call)
            else:
                passes.adjoint(*fields, *call)
                passes.geometry_adjoint(*fields, motion.fields, *call)
            seen.grid.reduce_slots()
            found.append([*seen.grid.download_gradient(), *motion.gradients(30)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * max(np.abs(other).max(), 1))


def moved_depths(depths, dot_origin, dot_direction, h):
    """Depth (ray,) with the rays moved in the world."""
    rays, seen = depths.seen.rays, depths.seen
    seen.buffer.upload(Rays(rays.origin + h * dot_origin, rays.direction + h * dot_direction))
    return depths.of(seen.volume.density)


@pytest.mark.parametrize("name", [name if name in ("maximum", "x-ray-exact") else whole(name) for name in CASES])
def test_depth_has_the_slopes_of_its_differences_and_their_transpose(name):
    """By the density and by the rays, the rays' own lengths held."""
    rng, h = np.random.default_rng(4), 1e-6
    with linearised(name) as seen, ExitStack() as owners:
        depths, count = Depths(seen, owners), len(seen.rays)
        density, d_depth, dot = seen.volume.density, rng.normal(size=count), rng.normal(size=seen.volume.shape)
        dot_origin, dot_direction = rng.normal(size=(2, count, 3))
        direction = seen.rays.direction
        dot_direction -= direction * (direction * dot_direction).sum(1, keepdims=True)
        by_density = [depths.of(density + step * dot) for step in (h, -h)]
        by_rays = [moved_depths(depths, dot_origin, dot_direction, step) for step in (h, -h)]
        here = moved_depths(depths, dot_origin, dot_direction, 0.0)
        along, back = depths.tangent(dot), depths.adjoint(d_depth)
        along_rays, back_rays = depths.geometry_tangent(dot_origin, dot_direction), depths.geometry_adjoint(d_depth)
    met = np.isfinite(here)
    assert 5 < met.sum()
    for tangent, (ahead, behind), pairs in (
        (along, by_density, [(dot, back)]),
        (along_rays, by_rays, list(zip((dot_origin, dot_direction), back_rays, strict=True))),
    ):
        assert np.isfinite(tangent).all()
        size = max(np.linalg.norm(tangent) * np.linalg.norm(d_depth), 1e-30)
        assert abs(np.vdot(tangent, d_depth) - sum(np.vdot(*pair) for pair in pairs)) < 1e-12 * size
        both = met & np.isfinite(ahead) & np.isfinite(behind)
        difference = (ahead[both] - behind[both]) / (2 * h)
        steepest = max(np.abs(difference).max(), 1)
        sides_differ = np.abs(ahead[both] + behind[both] - 2 * here[both]) / (2 * h)  # a kink between, or a curve
        smooth = sides_differ < 1e-4 * steepest
        assert smooth.mean() > 0.7
        np.testing.assert_allclose(tangent[both][smooth], difference[smooth], rtol=0, atol=2e-7 * steepest)
