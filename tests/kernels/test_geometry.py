"""Law: everything that shapes an image has a tangent and an adjoint, each other's transpose, and both are its slope."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
import single as worker
from lenses import LENSES
from whole import whole

import raymarch as rm
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import exp_rigid
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import GROUPS, SHAPES, SMALL_GROUPS, Parameters, units
from raymarch.rendering.march_settings import March

EXPOSURE = (1.1, 0.9, 1.2, 0.1, 0.0, -0.1)
EXACT = March(step=0.47, min_transmittance=0.0, min_weight=0.0)
JITTERED = {"jitter": 1.0, "step_jitter": 0.4, "seed": 5}
# Each place, camera and mode, with jitter and without; degrees 0 and 1. Other activations wait. Modes beside the first
# have the activations that tests/kernels/test_modes.py has them with, whose kernels they share.
SEEN = [
    ("rotated", 0, "softplus", "sigmoid", 0, {}),
    ("rotated", 0, "softplus", "sigmoid", 0, {"min_transmittance": 0.3, "min_weight": 0.02}),
    ("upright", 1, "softplus", "sigmoid", 1, {}),
    ("upright", 0, "softplus", "sigmoid", 0, {"mode": "additive", **JITTERED}),
    ("one cell", 0, "identity", "identity", 1, {"mode": "x-ray", **JITTERED}),
]
LATER = [
    ("rotated", 1, "softplus", "sigmoid", 0, {"mode": "additive"}),
    ("upright", 0, "relu", "sigmoid", 0, {}),
    ("rotated", 1, "exponential", "clamped", 1, {}),
    ("rotated", 3, "exponential", "clamped", 1, {}),  # the highest degree, which PyTorch's gradients have too
    ("rotated", 0, "identity", "sigmoid", 0, {"mode": "x-ray"}),
    ("one cell", 0, "softplus", "sigmoid", 1, JITTERED),
    ("upright", 0, "identity", "identity", 1, {"mode": "additive", **JITTERED}),
]


def linearised(place, degree, density, colour, which, march, columns=2) -> Linearised:
    volume = cases.volume(place, degree, density, colour)
    if march.get("mode") == "additive":  # thick enough for rays to reach their clamp
        volume = replace(volume, activation=replace(volume.activation, scale=0.3))
    camera = cases.cameras(volume)[which]
    how = replace(EXACT, **march)
    return Linearised(volume, camera, background=cases.BACKGROUND, exposure=EXPOSURE, march=how, columns=columns)


@pytest.fixture(params=[*SEEN, *(whole(case) for case in LATER)], ids=lambda case: "-".join(map(str, case)))
def seen(request):
    """One of the cases; closed after each test, so that the next stands on the same trees."""
    with linearised(*request.param) as seen:
        yield seen


def test_every_parameter_passes_the_dot_test_and_the_difference(seen):
    """20 random pairs a group, and a random direction; the camera is outside in some cases, inside in others."""
    rows = check_rows(seen, pairs=20)
    unseen = ("colour", "background") if seen.march.mode == "x-ray" else ()
    assert [row.parameter for row in rows] == [name for name in GROUPS if name not in unseen]
    for row in rows:
        assert row.dot < 1e-12, row
        assert row.difference < 1e-7, row
        assert row.kinks < 0.3, row


def test_every_lens_passes_the_dot_test_and_the_difference():
    """By pose, focal length, principal point and its own numbers; kernels see no lens: they are the first case's."""
    with linearised(*SEEN[0]) as seen:
        plain = seen.camera
        for lens in (rm.Lens("orthographic"), *LENSES):
            seen.set_camera(replace(plain, lens=lens), EXPOSURE)
            rows = check_rows(seen, ["pose", "focal", "principal_point", *(["lens"] if lens.names else [])], pairs=3)
            assert seen.groups[-1] == ("lens" if lens.names else "box")
            for row in rows:
                assert row.dot < 1e-12, (lens, row)
                assert row.difference < 1e-7, (lens, row)
                assert row.verdict == "good", (lens, row)
        columns = seen.jacobian(["pose", "lens"])
        assert columns.shape == (len(seen.rays), 4, 6 + len(LENSES[-1].names))
        seen.set_camera(plain)
        for ask in (lambda: seen.jacobian("lens"), lambda: seen.tangent(Parameters(lens=np.zeros(1)))):
            with pytest.raises(RaymarchError, match="the camera is a pinhole, whose lens has no numbers"):
                ask()


def test_a_jacobian_is_its_tangents():
    """All columns, more than one pass carries, as one by one."""
    directions = [unit for group in SMALL_GROUPS for unit in units(group)]
    with linearised(*SEEN[0]) as seen:
        every = seen.jacobian(SMALL_GROUPS)
        assert every.shape == (len(seen.rays), 4, len(directions))
        assert len(directions) > 2 * seen.columns
        for column in range(0, len(directions), 5):
            np.testing.assert_allclose(every[..., column], seen.tangent(directions[column]), atol=1e-12)


@pytest.mark.parametrize(
    ("mode", "degree"),
    [("emission-absorption", 0), whole("emission-absorption", 1), whole("additive", 0), whole("x-ray", 0)],
)
def test_in_single_precision_the_dot_test_holds_and_gradients_are_those_of_double(single, mode, degree):
    v = cases.volume("rotated", degree)
    camera = cases.cameras(v)[0]
    march = replace(EXACT, mode=mode, **JITTERED)
    wanted = worker.adjoint(v, camera, march)
    rows, gradients = single(worker.checked, v, camera, march), single(worker.adjoint, v, camera, march)
    assert [name for name, _ in rows] == list(gradients) == list(wanted)
    for name, dot in rows:
        assert dot < 1e-5, name
        assert np.linalg.norm(gradients[name] - wanted[name]) < 1e-3 * np.linalg.norm(wanted[name]), name


@pytest.mark.whole
def test_flat_in_memory_and_in_blocks_gradients_are_the_same(monkeypatch):
    """By every parameter, and along a direction of all at once, whose tangent is the adjoint's transpose."""
    rng = np.random.default_rng(0)
    d_image, found = rng.normal(size=(30, 4)), []
    for block in (Linearised.block, 1):
        monkeypatch.setattr(Linearised, "block", block)
        with linearised(*SEEN[0]) as seen:
            of_volume = {"density": seen.volume.density.shape, "colour": seen.volume.features.shape}
            every = Parameters(**{name: rng.normal(size=shape) for name, shape in {**SHAPES, **of_volume}.items()})
            gradient, along = seen.adjoint(d_image), seen.tangent(every)
        found.append(gradient)
        assert abs((along * d_image).sum() - gradient.dot(every)) < 1e-12 * np.linalg.norm(along) * np.linalg.norm(
            d_image
        )
    for name in GROUPS:
        np.testing.assert_allclose(getattr(found[1], name), getattr(found[0], name), rtol=1e-12, atol=1e-13)


def test_directions_of_the_volume_are_columns_too():
    """More than one pass carries, among groups; each is its own tangent."""
    v = cases.volume("rotated", 0)
    rng = np.random.default_rng(0)
    both = [
        Parameters(density=rng.normal(size=v.shape), colour=rng.normal(size=v.features.shape), pose=rng.normal(size=6))
        for _ in range(3)
    ]
    alone = [Parameters(density=rng.normal(size=v.shape)) for _ in range(4)]
    with linearised(*SEEN[0]) as seen:
        columns = seen.jacobian([*both, "focal", *alone])
        wanted = np.stack([seen.tangent(one) for one in [*both, *units("focal"), *alone]], -1)
    np.testing.assert_allclose(columns, wanted, rtol=0, atol=1e-12)


def test_what_was_moved_stays_moved_until_it_looks_elsewhere():
    v = cases.volume("rotated", 0)
    one, other = cases.cameras(v)[0], Camera.look_at((1, -4, 1), (0, 0, 0), width=6, height=5)
    by = Parameters(box=0.02 * np.ones((3, 4)), background=0.1 * np.ones(3), pose=0.05 * np.ones(6))
    dot = Parameters(density=np.ones(v.shape))
    march = replace(EXACT, jitter=1.0)
    with Linearised(v, one, background=cases.BACKGROUND, march=march) as seen:
        seen.move(by)
        moved, tangent = seen.image(), seen.tangent(dot)
        np.testing.assert_array_equal(seen.shifted(Parameters(), 1.0), moved)
        np.testing.assert_array_equal(seen.image(), moved)
        dot.density[:] *= 2
        np.testing.assert_allclose(seen.tangent(dot), 2 * tangent, rtol=1e-12)
        seen.set_camera(other, pixels=[5, 7, 20])
        few = seen.image()
        seen.move(Parameters())
        np.testing.assert_allclose(seen.image(), few, rtol=0, atol=1e-14)
        with pytest.raises(RaymarchError, match="10000 pixels, the first camera had 30"):
            seen.set_camera(Camera.look_at((0, -4, 0), width=100, height=100))
        np.testing.assert_allclose(seen.image(), few, rtol=0, atol=1e-14)
        with pytest.raises(RaymarchError, match=r"shape \(1, 4\), want \(3, 4\)"):
            seen.adjoint(np.ones((1, 4)))
    with Linearised(v, other, background=cases.BACKGROUND, march=march) as seen:
        np.testing.assert_allclose(seen.image()[[5, 7, 20]], few, rtol=0, atol=1e-14)


@pytest.mark.parametrize("pixels", [[], [-1], [30], [0.5], [[1]], [True]])
def test_pixels_that_a_camera_does_not_have_are_refused(pixels):
    with pytest.raises(RaymarchError, match="whole numbers of 0 to 29"):
        cases.cameras(cases.volume())[0].rays(pixels)


def test_nothing_moved_is_the_image(seen):
    np.testing.assert_array_equal(seen.shifted(Parameters(), 1.0), seen.image())


@pytest.mark.parametrize("name", ["poses", "", "density", "colour"])
def test_what_is_no_column_is_refused(name):
    with pytest.raises(RaymarchError, match="want one of background, pose"):
        units(name)


def test_unknown_groups_are_refused(seen):
    with pytest.raises(RaymarchError, match="'tilt': want some of density"):
        check_rows(seen, ("pose", "tilt"))


def test_a_pose_moved_there_and_back_is_itself():
    rng = np.random.default_rng(0)
    for size in (1e-9, 1e-5, 1e-3, 1.0, 3.0):
        twist = size * rng.normal(size=6)
        np.testing.assert_allclose(exp_rigid(twist) @ exp_rigid(-twist), np.eye(4), atol=1e-14)
        np.testing.assert_allclose(exp_rigid(twist / 2) @ exp_rigid(twist / 2), exp_rigid(twist), atol=1e-14)


def test_shapes_are_those_of_gradients(seen):
    gradient = seen.adjoint(np.ones((len(seen.rays), 4)))
    for name in set(SHAPES) & set(seen.groups):
        assert np.shape(getattr(gradient, name)) == SHAPES[name]
    assert gradient.density.shape == seen.volume.density.shape
    if seen.march.mode != "x-ray":
        assert gradient.colour.shape == seen.volume.features.shape


def test_what_a_mode_does_not_see_is_refused_and_not_zero():
    with linearised(*SEEN[-1]) as seen:
        gradient = seen.adjoint(np.ones((len(seen.rays), 4)))
        assert gradient.colour is None
        assert gradient.background is None
        for ask in (
            lambda: check_rows(seen, ["background"]),
            lambda: seen.jacobian(["background"]),
            lambda: seen.tangent(Parameters(background=np.ones(3))),
        ):
            with pytest.raises(RaymarchError, match="mode x-ray has no gradient by background"):
                ask()
