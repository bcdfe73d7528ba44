"""Law: projections by angle are the projector's, with the same bits for any number of workers; transposes stay ones."""

from __future__ import annotations

import jobs
import numpy as np
import pytest

import raymarch as rm
from raymarch.rendering.projections_by_angle import GROUPS, add_in_pairs

SHAPE, VIEWS, SIDE = (9, 8, 7), 11, 6


def projector(executor):
    affine = np.diag([0.2, 0.2, 0.2, 1.0])
    affine[:3, 3] = -0.8
    return rm.Projector(SHAPE, affine, jobs.cameras(VIEWS, SIDE), executor=executor)


@pytest.fixture(scope="module")
def two():
    with projector(2) as two:
        yield two


@pytest.fixture(scope="module")
def here():
    with projector(None) as here:
        yield here


def test_projections_are_those_of_one_process(two, here):
    values = np.random.default_rng(1).normal(size=SHAPE)
    for views in (None, [7, 0, 3], []):
        np.testing.assert_array_equal(two.project(values, views), here.project(values, views))


def test_back_projections_are_sums_of_the_groups(two, here):
    images = np.random.default_rng(2).normal(size=(VIEWS, SIDE, SIDE))
    groups = [here.back(images[g::GROUPS], list(range(VIEWS))[g::GROUPS]) for g in range(GROUPS)]
    np.testing.assert_array_equal(two.back(images), add_in_pairs(groups))
    np.testing.assert_allclose(two.back(images), here.back(images), rtol=0, atol=1e-12)
    assert (two.back(images[:0], []) == 0).all()


def test_back_projection_is_the_transpose(two):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=SHAPE), rng.normal(size=(VIEWS, SIDE, SIDE))
    forward, back = np.vdot(two.project(x), y), np.vdot(x, two.back(y))
    assert abs(forward - back) < 1e-12 * np.linalg.norm(x) * np.linalg.norm(y)


def test_a_reconstruction_has_the_same_bits_whoever_computes(two):
    measured = np.random.default_rng(4).normal(size=(VIEWS, SIDE, SIDE)).reshape(-1)
    with projector(1) as one:
        found = [rm.cgls(p.operator, measured, iterations=3) for p in (one, two)]
    np.testing.assert_array_equal(*found)


def test_who_was_closed_has_no_workers():
    one = projector(1)
    one.close()
    with pytest.raises(rm.RaymarchError, match="the workers were dismissed, as by close"):
        one.project(np.zeros(SHAPE))


@pytest.mark.parametrize("executor", [None, 1])
def test_sources_too_far_for_single_precision_are_told_once(executor, single):
    said, mode = single(jobs.warnings_of_far_projector, executor, 1e5)
    assert [text.split(",")[0] for text in said] == ["sources are 1e+05 voxels away"]
    assert mode == "x-ray-exact"
    assert single(jobs.warnings_of_far_projector, executor, 1e3)[0] == []
