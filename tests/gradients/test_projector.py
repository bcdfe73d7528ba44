"""Laws of the X-ray projector: its images are the mode's, its back-projection is their transpose, solvers invert it."""

from __future__ import annotations

import numpy as np
import pytest
from lenses import CAMERAS, ORTHOGRAPHIC

import raymarch as rm
from raymarch.gradients import projector

TURNED = np.array([[0.3, -0.05, 0.02, -0.5], [0.06, 0.25, 0.01, -0.8], [0, 0.02, 0.4, -0.6], [0, 0, 0, 1]])
BEAMS = {"cone": CAMERAS[0], "lens": CAMERAS[3], "parallel": ORTHOGRAPHIC}
RNG = np.random.default_rng(5)
VALUES = RNG.normal(size=(5, 7, 4))


def ring(count, like):
    return rm.orbit((0, 0, 0), 5.0, count, elevation=15, like=like)


@pytest.mark.parametrize("beam", BEAMS)
def test_images_are_those_of_the_exact_x_ray(beam):
    cameras = ring(3, BEAMS[beam])
    volume = rm.Volume(VALUES, np.zeros((5, 7, 4, 3)), TURNED, rm.Activation("identity"))
    with rm.Projector(VALUES.shape, TURNED, cameras) as made:
        seen = made.project(VALUES)
    for image, camera in zip(seen, cameras, strict=True):
        wanted = rm.render(volume, camera, march=rm.March(mode="x-ray-exact"))[..., 0]
        np.testing.assert_allclose(image, wanted, atol=1e-6)
    assert np.ptp(seen) > 0.5


def test_what_is_one_everywhere_gives_the_length_of_rays_in_the_box():
    """By slabs, in NumPy."""
    (camera,) = ring(1, BEAMS["cone"])
    with rm.Projector((3, 4, 5), np.diag([0.5, 0.4, 0.3, 1.0]), [camera]) as made:
        seen = made.project(np.ones((3, 4, 5)))[0].ravel()
    rays, top = camera.rays(), np.array([0.5, 0.4, 0.3]) * (2, 3, 4)
    ends = np.sort([-rays.origin / rays.direction, (top - rays.origin) / rays.direction], axis=0)
    wanted = np.maximum(ends[1].min(-1) - np.maximum(ends[0].max(-1), 0), 0)
    np.testing.assert_allclose(seen, wanted, atol=1e-9)
    assert wanted.max() > 1


@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("batch", [projector.BATCH, 1000], ids=["whole images", "parts of them"])
def test_back_projection_is_the_transpose(beam, batch, monkeypatch):
    monkeypatch.setattr(projector, "BATCH", batch)
    with rm.Projector(VALUES.shape, TURNED, ring(3, BEAMS[beam])) as made:
        for _ in range(2):  # nothing of one is left in the next
            images = RNG.normal(size=made.images)
            seen, back = made.project(VALUES), made.back(images)
            inner = float((seen * images).sum()), float((VALUES * back).sum())
            assert abs(inner[0] - inner[1]) < 1e-12 * np.linalg.norm(seen) * np.linalg.norm(images)


def test_the_matrix_of_each_is_that_of_the_other():
    shape, count = (2, 3, 2), 12
    affine = np.array([[1.5, 0, 0, -0.8], [0, 0.7, 0.1, -0.7], [0, 0, 1.4, -0.7], [0, 0, 0, 1]])
    with rm.Projector(shape, affine, ring(4, BEAMS["parallel"].scaled(0.2))) as made:
        operator, pixels = made.operator, int(np.prod(made.images))
        forward = np.stack([operator.tangent(each) for each in np.eye(count)], axis=1)
        back = np.stack([operator.adjoint(each) for each in np.eye(pixels)], axis=0)
    np.testing.assert_allclose(forward, back, atol=1e-12)
    assert np.linalg.matrix_rank(forward) > count / 2


@pytest.mark.parametrize("beam", ["cone", "parallel"])
def test_cgls_finds_what_was_projected(beam):
    shape = (8, 8, 8)
    affine = np.diag([0.3, 0.3, 0.3, 1.0])
    affine[:3, 3] = -0.15 * 7
    truth = RNG.uniform(size=shape)
    with rm.Projector(shape, affine, ring(12, BEAMS[beam].scaled(0.5))) as made:
        found = rm.cgls(made.operator, made.project(truth), iterations=200).reshape(shape)
    assert np.linalg.norm(found - truth) < 0.01 * np.linalg.norm(truth)


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
def test_what_cannot_be_is_refused_by_name(case):
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
