"""Laws of the X-ray projector: its images are the mode's, its back-projection is their transpose, solvers invert it."""

from __future__ import annotations

import cases
import numpy as np
import pytest
from lenses import CAMERAS, ORTHOGRAPHIC

import raymarch as rm
from raymarch import runtime
from raymarch.device import memory
from raymarch.device.grid import Grid, size_of
from raymarch.device.memory import padded_shape
from raymarch.rendering import projector

TURNED = np.array([[0.3, -0.05, 0.02, -0.5], [0.06, 0.25, 0.01, -0.8], [0, 0.02, 0.4, -0.6], [0, 0, 0, 1]])
BEAMS = {"cone": CAMERAS[0], "lens": CAMERAS[3], "parallel": ORTHOGRAPHIC}
BEAMS = {name: camera.scaled(0.5) for name, camera in BEAMS.items()}  # a few of them fit a buffer of few rays
VALUES = np.random.default_rng(5).normal(size=(5, 7, 4))


@pytest.fixture
def rng():
    """Random numbers of one test, the same whichever ran before it."""
    return np.random.default_rng(6)


def ring(count, like):
    return rm.orbit((0, 0, 0), 5.0, count, elevation=15, like=like)


@pytest.mark.parametrize("quadrature", projector.QUADRATURES)
@pytest.mark.parametrize("beam", BEAMS)
def test_images_are_those_of_the_mode(beam, quadrature):
    cameras = ring(3, BEAMS[beam])
    volume = rm.Volume(VALUES, np.zeros((5, 7, 4, 3)), TURNED, rm.Activation("identity"))
    with rm.Projector(VALUES.shape, TURNED, cameras, quadrature) as made:
        seen = made.project(VALUES)
    for image, camera in zip(seen, cameras, strict=True):
        wanted = rm.render(volume, camera, march=rm.March(mode=f"x-ray-{quadrature}", batch=cases.FEW))[..., 0]
        np.testing.assert_allclose(image, wanted, atol=1e-6)
    assert np.ptp(seen) > 0.5


def test_what_is_one_everywhere_gives_the_length_of_rays_in_the_box():
    """By slabs, in NumPy."""
    (camera,) = ring(1, CAMERAS[0])
    with rm.Projector((3, 4, 5), np.diag([0.5, 0.4, 0.3, 1.0]), [camera]) as made:
        seen = made.project(np.ones((3, 4, 5)))[0].ravel()
    rays, top = camera.rays(), np.array([0.5, 0.4, 0.3]) * (2, 3, 4)
    ends = np.sort([-rays.origin / rays.direction, (top - rays.origin) / rays.direction], axis=0)
    wanted = np.maximum(ends[1].min(-1) - np.maximum(ends[0].max(-1), 0), 0)
    np.testing.assert_allclose(seen, wanted, atol=1e-9)
    assert wanted.max() > 1


@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("batch", [projector.BATCH_RAYS, 250], ids=["whole images", "parts of them"])
@pytest.mark.parametrize("quadrature", projector.QUADRATURES)
def test_back_projection_is_the_transpose(beam, batch, quadrature, rng, monkeypatch):
    monkeypatch.setattr(projector, "BATCH_RAYS", batch)
    with rm.Projector(VALUES.shape, TURNED, ring(3, BEAMS[beam]), quadrature) as made:
        for _ in range(2):  # nothing of one is left in the next
            images = rng.normal(size=made.images)
            seen, back = made.project(VALUES), made.back(images)
            inner = float((seen * images).sum()), float((VALUES * back).sum())
            assert abs(inner[0] - inner[1]) < 1e-12 * np.linalg.norm(seen) * np.linalg.norm(images)


def test_the_matrix_of_each_is_that_of_the_other():
    shape, count = (2, 3, 2), 12
    affine = np.array([[1.5, 0, 0, -0.8], [0, 0.7, 0.1, -0.7], [0, 0, 1.4, -0.7], [0, 0, 0, 1]])
    with rm.Projector(shape, affine, ring(4, BEAMS["parallel"].scaled(0.4))) as made:
        operator, pixels = made.operator, int(np.prod(made.images))
        forward = np.stack([operator.tangent(each) for each in np.eye(count)], axis=1)
        back = np.stack([operator.adjoint(each) for each in np.eye(pixels)], axis=0)
    np.testing.assert_allclose(forward, back, atol=1e-12)
    assert np.linalg.matrix_rank(forward) > count / 2


@pytest.mark.parametrize("beam", ["cone", "parallel"])
def test_cgls_finds_what_was_projected(beam, rng):
    shape = (6, 6, 6)
    affine = np.diag([0.4, 0.4, 0.4, 1.0])
    affine[:3, 3] = -0.2 * 5
    truth = rng.uniform(size=shape)
    with rm.Projector(shape, affine, ring(5, BEAMS[beam])) as made:
        found = rm.cgls(made.operator, made.project(truth), iterations=200).reshape(shape)
    assert np.linalg.norm(found - truth) < 0.01 * np.linalg.norm(truth)


@pytest.mark.parametrize("z", [0.0, 0.03, -0.41, 11.7])
@pytest.mark.parametrize("spacing", [0.1, 0.07, 1.0])
def test_rows_of_a_detector_in_the_outer_slices_are_in_the_grid(spacing, z):
    """In f64 rounding puts such rays on either side of the face that they run along."""
    n, rows, views = 9, 2, 24
    affine = np.diag([spacing, spacing, spacing, 1.0])
    affine[:3, 3] = -spacing * (n - 1) / 2, -spacing * (n - 1) / 2, z - spacing / 2
    like = rm.Camera.orthographic((10, 0, z), (0, 0, z), size=16 * spacing, width=16, height=rows)
    with rm.Projector((n, n, rows), affine, rm.orbit((0, 0, z), 10, views, elevation=0, like=like)) as made:
        sums = made.project(np.ones((n, n, rows))).sum(-1) / spacing
    np.testing.assert_allclose(sums[:, 0], sums[:, 1], rtol=1e-9)
    assert sums.min() > 0.9 * (n - 1) ** 2


def test_parallel_rays_go_through_all_of_the_grid_wherever_their_camera_stands():
    seen = []
    for radius in (1e-6, 3.0, 1e4):
        cameras = rm.orbit((0, 0, 0), radius, 4, elevation=20, like=rm.Camera.orthographic((9, 0, 0), size=4, width=12))
        with rm.Projector(VALUES.shape, TURNED, cameras) as made:
            seen.append(made.project(VALUES))
    np.testing.assert_allclose(seen[1], seen[0], atol=1e-5)
    np.testing.assert_allclose(seen[2], seen[0], atol=1e-5)
    assert np.ptp(seen[0]) > 0.5


def test_some_views_are_those_of_all(rng):
    views = [4, 0, 2]
    with rm.Projector(VALUES.shape, TURNED, ring(5, BEAMS["cone"].scaled(0.5))) as made:
        seen, some = made.project(VALUES), made.project(VALUES, views)
        images = rng.normal(size=made.images)
        parts = [made.back(images[[i]], [i]) for i in range(5)]
        whole, few = made.back(images), made.back(images[views], views)
        with pytest.raises(rm.RaymarchError, match=r"views\[1\] is 5, want a whole number from 0 to 4"):
            made.project(VALUES, [0, 5])
        with pytest.raises(rm.RaymarchError, match="views are 3, want a list of views' numbers"):
            made.project(VALUES, 3)
        with pytest.raises(rm.RaymarchError, match="images have shape"):
            made.back(images, views)
    np.testing.assert_array_equal(some, seen[views])
    np.testing.assert_allclose(sum(parts), whole, atol=1e-12)
    np.testing.assert_allclose(sum(parts[i] for i in views), few, atol=1e-12)


def test_a_projector_has_no_colours():
    """Values, their gradient and its slots: a number a sample each."""
    with rm.Projector((6, 7, 8), np.eye(4), ring(2, BEAMS["cone"])) as made:
        grid = made.grid
        numbers = size_of(grid, grid.finest) / np.dtype(runtime.dtype()).itemsize
        assert numbers == (2 + grid.slots) * np.prod(padded_shape(grid.finest, grid.block))
        parts = ("features", "packed", "d_features", "d_packed", "g_features", "feature_cells", "feature_samples")
        assert [name for name in parts if getattr(grid.fields, name) is not None] == []


@pytest.mark.parametrize("kind", ["Projector", "Linearised"])
def test_what_an_interrupted_adjoint_left_is_in_no_other(kind, rng, monkeypatch):
    def interrupted(self):
        """As it is at the adjoint's beginning; not at its end, when the slots hold what its rays gave."""
        reduced.append(None)
        if len(reduced) > 1:
            raise KeyboardInterrupt
        reduce_slots(self)

    reduced, reduce_slots = [], Grid.reduce_slots
    if kind == "Projector":
        made = rm.Projector(VALUES.shape, TURNED, ring(2, BEAMS["cone"].scaled(0.5)))
        images = rng.normal(size=made.images)
        adjoint = lambda: made.back(images)  # noqa: E731
    else:
        volume = rm.Volume(VALUES, np.zeros((5, 7, 4, 3)), TURNED, rm.Activation("identity"))
        made = rm.Linearised(volume, BEAMS["cone"].scaled(0.5), march=rm.March(mode="x-ray-exact"))
        images = rng.normal(size=(len(made.rays), 4))
        adjoint = lambda: made.adjoint(images).density  # noqa: E731
    with made:
        wanted = adjoint()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Grid, "reduce_slots", interrupted)
            adjoint()
        assert len(reduced) == 2
        np.testing.assert_array_equal(adjoint(), wanted)


REFUSED = {
    "no camera": (lambda: rm.Projector((4, 4, 4), np.eye(4), []), "cameras are \\[\\], want a list of cameras"),
    "one camera": (lambda: rm.Projector((4, 4, 4), np.eye(4), CAMERAS[0]), "want a list of cameras"),
    "two sizes": (
        lambda: rm.Projector((4, 4, 4), np.eye(4), [CAMERAS[0], CAMERAS[0].scaled(0.5)]),
        "cameras have images of 32 x 24 and 64 x 48, want a list of cameras whose images are of one size",
    ),
    "no shape": (lambda: rm.Projector((4, 4), np.eye(4), CAMERAS[:1]), "shape is"),
    "no affine": (lambda: rm.Projector((4, 4, 4), np.zeros((4, 4)), CAMERAS[:1]), "world_from_index"),
    "far too many": (lambda: rm.Projector((4000, 4000, 4000), np.eye(4), CAMERAS[:1]), "bytes|index"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_by_name(case, monkeypatch):
    monkeypatch.setattr(memory, "make_room", lambda *_: None)  # what is kept for the tests to come would go
    call, words = REFUSED[case]
    with pytest.raises(rm.RaymarchError, match=words):
        call()


def test_values_and_images_of_other_shapes_are_refused_and_so_is_use_after_close():
    with rm.Projector((4, 4, 4), np.eye(4), CAMERAS[:1]) as made:
        with pytest.raises(rm.RaymarchError, match="values"):
            made.project(np.zeros((4, 4, 5)))
        with pytest.raises(rm.RaymarchError, match="images"):
            made.back(np.zeros((2, 48, 64)))
        with pytest.raises(rm.RaymarchError, match="values"):
            made.project(np.full((4, 4, 4), np.nan))
    with pytest.raises(rm.RaymarchError, match="closed"):
        made.project(np.zeros((4, 4, 4)))
