"""Law: at every kink that docs/gradients.md names, the tangent is the slope to the side it says; early stop's bias is
bounded."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest

from raymarch.data.activation import Activation
from raymarch.data.volume import Volume
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import look_at
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march import March

EXACT = March(min_transmittance=0.0, min_weight=0.0)
H = 1e-6


def along_x(y: float, z: float, size: int = 1) -> Camera:
    """A camera whose middle ray runs along x, from outside, at a height of y and z [index]."""
    return Camera(look_at((-3.0, y, z), (0.0, y, z)), (1000.0 * size,) * 2, (size / 2, size / 2), size, size)


def world_shift(camera: Camera, way) -> Parameters:
    """The pose that moves a camera along `way` in the world."""
    return Parameters(pose=np.concatenate([camera.world_from_camera[:3, :3].T @ np.asarray(way, float), np.zeros(3)]))


def slopes(seen: Linearised, dot: Parameters):
    """Tangent, and one-sided differences ahead and behind."""
    here = seen.image()
    return seen.tangent(dot), (seen.shifted(dot, H) - here) / H, (here - seen.shifted(dot, -H)) / H


def box(density, activation=None) -> Volume:
    """A volume in index space."""
    features = np.random.default_rng(1).normal(size=(*density.shape, 3))
    return Volume(np.asarray(density, float), features, np.eye(4), activation or Activation("softplus"))


def differ(a, b) -> bool:
    return np.abs(a - b).max() > 1e-3 * max(np.abs(a).max(), np.abs(b).max())


def test_on_a_cells_face_it_is_the_slope_towards_greater_indices():
    v = box(np.random.default_rng(0).normal(size=(5, 5, 5)))
    camera = along_x(2.0, 1.7)
    with Linearised(v, camera, march=EXACT) as seen:
        tangent, ahead, behind = slopes(seen, world_shift(camera, (0, 1, 0)))
    assert differ(ahead, behind)
    np.testing.assert_allclose(tangent, ahead, atol=1e-5)


@pytest.mark.parametrize(("y", "inside"), [(0.0, 1), (4.0, -1)])
def test_on_a_face_of_the_box_it_is_the_slope_from_inside(y, inside):
    """Outside the image jumps to the background, by what the face shows: that no derivative holds."""
    v = box(np.random.default_rng(0).normal(size=(5, 5, 5)))
    camera = along_x(y, 1.7)
    with Linearised(v, camera, march=EXACT, background="black") as seen:
        tangent, ahead, behind = slopes(seen, world_shift(camera, (0, 1, 0)))
    within, without = (ahead, behind) if inside > 0 else (behind, ahead)
    np.testing.assert_allclose(tangent, within, atol=1e-5)
    assert np.abs(without).max() > 1e3


def test_at_relus_kink_it_is_the_slope_from_below():
    raw = np.zeros((4, 4, 4))
    v, camera = box(raw, Activation("relu")), along_x(1.3, 1.7)
    with Linearised(v, camera, march=EXACT) as seen:
        tangent, ahead, behind = slopes(seen, Parameters(density=np.ones(raw.shape)))
    np.testing.assert_allclose(tangent, behind, atol=1e-12)
    assert np.abs(ahead).max() > 0.1
    assert (tangent == 0).all()


def test_at_the_clamp_of_the_colour_it_is_the_slope_from_below():
    v, camera = box(np.ones((4, 4, 4)), Activation("relu", colour="clamped")), along_x(1.3, 1.7)
    v = replace(v, features=np.full((4, 4, 4, 3), -0.5 / 0.28209479177387814))
    with Linearised(v, camera, march=EXACT, background="black") as seen:
        assert np.abs(seen.image()[:, :3]).max() < 1e-15
        dot = Parameters(colour=np.ones(v.features.shape))
        tangent, ahead, behind = slopes(seen, dot)
    assert np.abs(ahead).max() > 0.1
    np.testing.assert_allclose(tangent, behind, atol=1e-9)


def test_at_exponentials_bound_it_is_the_slope_from_below():
    raw, thin = np.full((4, 4, 4), 15.0), Activation("exponential", scale=1e7)
    camera = along_x(1.3, 1.7)
    with Linearised(box(raw, thin), camera, march=EXACT, background="black") as seen:
        tangent, ahead, behind = slopes(seen, Parameters(density=np.ones(raw.shape)))
    assert (ahead == 0).all()
    assert np.abs(behind).max() > 0.1
    np.testing.assert_allclose(tangent, behind, rtol=1e-4)


def test_where_opacity_just_fills_up_it_is_the_slope_from_below():
    """Additive: four steps of 1/4 make exactly 1; one more of density cannot add, one less can."""
    v = box(np.full((2, 2, 2), 1.0), Activation("identity"))
    camera = along_x(0.4, 0.6)
    with Linearised(v, camera, march=replace(EXACT, mode="additive", step=0.25), background="white") as seen:
        assert seen.image()[0, 3] == 0
        tangent, ahead, behind = slopes(seen, Parameters(density=np.ones((2, 2, 2))))
    assert differ(ahead, behind)
    np.testing.assert_allclose(tangent, behind, atol=1e-5)


@pytest.mark.parametrize("min_transmittance", [1e-1, 1e-2, 1e-3])
def test_early_stop_darkens_and_biases_by_no_more_than_its_threshold(min_transmittance):
    """The image by stop * (largest - least colour); a directional slope by a bound that goes to zero with it."""
    v = cases.volume("rotated", 1)
    v = replace(v, activation=replace(v.activation, scale=0.05))
    camera = cases.cameras(v)[0]
    dot = Parameters(density=np.random.default_rng(0).normal(size=v.shape))
    with Linearised(v, camera, march=EXACT, background="white") as seen:
        image, slope = seen.image(), seen.tangent(dot)
    with Linearised(
        v, camera, march=March(min_transmittance=min_transmittance, min_weight=0.0), background="white"
    ) as seen:
        stopped, biased = seen.image(), seen.tangent(dot)
    assert 0 < np.abs(stopped - image).max() <= min_transmittance
    # What is hidden is T times a colour of 0..1, and tau moves by no more than the largest slope along the whole ray.
    reach = np.abs(dot.density).max() / v.activation.scale * np.linalg.norm(v.corners[-1] - v.corners[0])
    assert 0 < np.abs(biased - slope).max() <= min_transmittance * (1 + 2 * reach)


@pytest.mark.parametrize("y", [9.0, 3 + 1e-6, -1e-6])
def test_a_ray_that_misses_moves_nothing(y):
    """Also just beside the box."""
    v = box(np.ones((4, 4, 4)))
    camera = along_x(y, 1.5)
    with Linearised(v, camera, march=EXACT, columns=1) as seen:
        assert (seen.jacobian(["pose", "focal", "step", "box"]) == 0).all()
