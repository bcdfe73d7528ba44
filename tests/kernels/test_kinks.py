"""Law: at every kink that docs/gradients.md names, the tangent is the slope to the side it says; early stop's bias is
bounded."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
from drive import volume_adjoint

from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import look_at
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

EXACT = March(min_transmittance=0.0, min_weight=0.0)
ADDITIVE = replace(EXACT, mode="additive")
CLAMPED = Activation("relu", colour="clamped")
H = 1e-6


def along_x(y: float, z: float, size: int = 1) -> Camera:
    """A camera whose middle ray runs along x, from outside, at a height of y and z [index]."""
    return Camera(look_at((-3.0, y, z), (0.0, y, z)), (1000.0 * size,) * 2, (size / 2, size / 2), size, size)


def world_shift(camera: Camera, way) -> Parameters:
    """The pose that moves a camera along `way` in the world."""
    return Parameters(pose=np.concatenate([camera.world_from_camera[:3, :3].T @ np.asarray(way, float), np.zeros(3)]))


def slopes(seen: Linearised, dot: Parameters):
    """Tangent, of which the adjoint is the transpose here too, and one-sided differences ahead and behind."""
    here, tangent = seen.image(), seen.tangent(dot)
    w = np.random.default_rng(2).normal(size=tangent.shape)
    back = volume_adjoint(seen, w) if dot.density is not None or dot.colour is not None else seen.adjoint(w)
    np.testing.assert_allclose(back.dot(dot), np.vdot(w, tangent), rtol=1e-10, atol=1e-12)
    return tangent, (seen.shifted(dot, H) - here) / H, (here - seen.shifted(dot, -H)) / H


def box(density, activation=None) -> Volume:
    """A volume in index space."""
    features = np.random.default_rng(1).normal(size=(*density.shape, 3))
    return Volume(np.asarray(density, float), features, np.eye(4), activation or Activation("softplus"))


BOX = box(np.random.default_rng(0).normal(size=(5, 5, 5)))


def differ(a, b) -> bool:
    return np.abs(a - b).max() > 1e-3 * max(np.abs(a).max(), np.abs(b).max())


def test_on_a_cells_face_it_is_the_slope_towards_greater_indices():
    camera = along_x(2.0, 1.7)
    with Linearised(BOX, camera, march=EXACT) as seen:
        tangent, ahead, behind = slopes(seen, world_shift(camera, (0, 1, 0)))
    assert differ(ahead, behind)
    np.testing.assert_allclose(tangent, ahead, atol=1e-5)


@pytest.mark.parametrize(("y", "inside"), [(0.0, 1), (4.0, -1)])
def test_on_a_face_of_the_box_it_is_the_slope_from_inside(y, inside):
    """Outside the image jumps to the background, by what the face shows: that no derivative holds."""
    camera = along_x(y, 1.7)
    with Linearised(BOX, camera, march=EXACT, background="black") as seen:
        tangent, ahead, behind = slopes(seen, world_shift(camera, (0, 1, 0)))
    within, without = (ahead, behind) if inside > 0 else (behind, ahead)
    np.testing.assert_allclose(tangent, within, atol=1e-5)
    assert np.abs(without).max() > 1e3


@pytest.mark.parametrize(("y", "z"), [(0.0, 0.0), (4.0, 0.0), (0.0, 4.0), (4.0, 4.0)])
def test_on_an_edge_of_the_box_it_is_the_slope_from_inside(y, z):
    """Across either of the two faces; outside of each the image jumps."""
    camera, inwards = along_x(y, z), np.sign([0, 2 - y, 2 - z])
    with Linearised(BOX, camera, march=EXACT, background="black") as seen:
        for way in np.diag(inwards)[1:]:
            tangent, within, without = slopes(seen, world_shift(camera, way))
            np.testing.assert_allclose(tangent, within, atol=1e-5)
            assert np.abs(tangent).max() > 1e-2 and np.abs(without).max() > 1e3


@pytest.mark.parametrize(("group", "longer"), [("step", -1), ("box", 1)])
def test_at_a_whole_number_of_steps_it_is_the_slope_to_one_more(group, longer):
    """One step of three voxels: a shorter one, or a longer box, leaves room for a second, of no width so far; the image
    goes on without a jump to either side."""
    by = {"step": np.ones(()), "box": np.diag([1.0, 0, 0, 0])[:3]}[group]
    with Linearised(box(BOX.density[:4]), along_x(1.3, 1.7), march=replace(EXACT, step=3.0)) as seen:
        tangent, *aside = slopes(seen, Parameters(**{group: by}))
    more, fewer = aside if longer > 0 else aside[::-1]
    assert differ(more, fewer)
    np.testing.assert_allclose(tangent, more, atol=1e-5)
    assert max(np.abs(more).max(), np.abs(fewer).max()) < 10


@pytest.mark.parametrize("mode", ["maximum", "minimum"])
def test_where_samples_are_alike_it_is_the_slope_of_the_first(mode):
    """Of eight, a half apart, the first is a quarter from the face."""
    v = box(np.ones((5, 5, 5)), Activation("identity"))
    with Linearised(v, along_x(1.3, 1.7), march=replace(EXACT, mode=mode, step=0.5), columns=1) as seen:
        tangent, ahead, behind = slopes(seen, Parameters(density=np.indices((5, 5, 5))[0].astype(float)))
    np.testing.assert_allclose(tangent[:, :3], 0.25, rtol=1e-12)
    last, first = (ahead, behind) if mode == "maximum" else (behind, ahead)
    np.testing.assert_allclose([first[0, 0], last[0, 0]], [0.25, 3.75], rtol=1e-6)


def surface_of(values, camera, level=0.0, **shading) -> Linearised:
    """A matt white surface where raw values are at a level, lit as it is said."""
    matt = Shading(**{"ambient": 0.0, "diffuse": 1.0, "specular": 0.0, "colour": (1, 1, 1)} | shading)
    v = box(values)
    march = replace(EXACT, mode="isosurface", iso=float(v.activation.sigma(level)), shading=matt)
    return Linearised(v, camera, march=march, background="black", columns=1)


def test_where_a_lamp_grazes_a_surface_it_is_the_slope_of_the_dark_side():
    x, _, z = np.indices((5, 5, 5), float)
    with surface_of(x - 2, along_x(1.3, 1.7), lamp=(0, 0, 1)) as seen:
        tangent, ahead, behind = slopes(seen, Parameters(density=z - 1.7))
    dark, bright = sorted((ahead, behind), key=lambda each: np.abs(each).max())
    assert not dark.any() and np.abs(bright).max() > 0.5 and not tangent.any()


@pytest.mark.parametrize(("y", "hits"), [(2.01, True), (1.99, False)])
def test_beside_an_isosurfaces_silhouette_it_is_the_slope_of_what_is_hit_or_nothing(y, hits):
    """A wedge y > 2 + |x - 2| whose edge the ray passes at a hundredth: the image jumps between the two."""
    x, height, _ = np.indices((5, 5, 5), float)
    camera = along_x(y, 1.7)
    with surface_of(height - np.abs(x - 2), camera, 2.0, lamp=(-1, -1, 0)) as seen:
        assert (seen.image()[0, 3] == 0) == hits and (seen.image()[0, 0] > 0.1) == hits
        tangent, ahead, behind = slopes(seen, world_shift(camera, (0, 1, 0)))
    np.testing.assert_allclose(tangent, (ahead + behind) / 2, atol=1e-5)
    assert tangent.any() == hits


def test_where_an_isosurface_is_hit_on_a_cells_face_it_is_the_slope_to_one_side():
    """Of a field that is twice as steep behind the face, by its value."""
    x, y, _ = np.indices((5, 5, 5), float)
    values = np.where(x > 2, 2, 1) * (x - 2) + 0.1 * (y - 1.3)
    with surface_of(values, along_x(1.3, 1.7)) as seen:
        tangent, ahead, behind = slopes(seen, Parameters(iso=np.ones(())))
    assert differ(ahead, behind)
    assert min(np.abs(tangent - each).max() for each in (ahead, behind)) < 1e-5


def test_at_relus_kink_it_is_the_slope_from_below():
    raw = np.zeros((4, 4, 4))
    v, camera = box(raw, CLAMPED), along_x(1.3, 1.7)
    with Linearised(v, camera, march=EXACT) as seen:
        tangent, ahead, behind = slopes(seen, Parameters(density=np.ones(raw.shape)))
    np.testing.assert_allclose(tangent, behind, atol=1e-12)
    assert np.abs(ahead).max() > 0.1
    assert (tangent == 0).all()


def test_at_the_clamp_of_the_colour_it_is_the_slope_from_below():
    v, camera = box(np.ones((4, 4, 4)), CLAMPED), along_x(1.3, 1.7)
    v = replace(v, features=np.full((4, 4, 4, 3), -0.5 / 0.28209479177387814))
    with Linearised(v, camera, march=EXACT, background="black") as seen:
        assert np.abs(seen.image()[:, :3]).max() < 1e-15
        dot = Parameters(colour=np.ones(v.features.shape))
        tangent, ahead, behind = slopes(seen, dot)
    assert np.abs(ahead).max() > 0.1
    np.testing.assert_allclose(tangent, behind, atol=1e-9)


def test_at_exponentials_bound_it_is_the_slope_from_below():
    raw, thin = np.full((4, 4, 4), 15.0), Activation("exponential", scale=1.5e7)  # the light is not all taken
    with Linearised(box(raw, thin), along_x(1.3, 1.7), march=ADDITIVE, background="black") as seen:
        tangent, ahead, behind = slopes(seen, Parameters(density=np.ones(raw.shape)))
    assert (ahead == 0).all()
    assert np.abs(behind).max() > 0.1
    np.testing.assert_allclose(tangent, behind, rtol=1e-4)


def test_where_opacity_just_fills_up_it_is_the_slope_from_below():
    """Additive: four steps of 1/4 make exactly 1; one more of density cannot add, one less can."""
    v = box(np.zeros((2, 2, 2)), Activation("exponential"))
    camera = along_x(0.4, 0.6)
    with Linearised(v, camera, march=replace(ADDITIVE, step=0.25), background="white") as seen:
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
        assert not seen.adjoint(np.ones((1, 4))).density.any()
