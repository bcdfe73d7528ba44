"""Law: as a level begins nothing is more opaque than it may be, what no ray sees is faint, and what is seen stays."""

from __future__ import annotations

from contextlib import contextmanager

import cases
import drive
import numpy as np
import pytest
import reference

from raymarch.data.activation import DENSITIES, Activation
from raymarch.data.storage import sparse_of
from raymarch.data.volume import Volume
from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.presets import preset
from raymarch.fitting.reopening import FAINT, LOOKED, raw_of_alpha, reopen
from raymarch.kernels.fit.bound import bound_density
from raymarch.kernels.march.seen import mark_seen
from raymarch.registration import refine as refining

HOW = {"resolution": 16, "steps": 4, "rays": 512, "sh_degree": 0, "slots": 1, "levels": ((0.0, 1.0),)}
DENSE_OR_NOT = pytest.mark.parametrize("bricks", [False, True], ids=["dense", "bricks"])
OPAQUE = 8.0  # raw: one such sample ends a ray


@contextmanager
def ball(**changes):
    """A fit that has found the ball of its views, solid within."""
    how = preset("quick", **HOW | {"resolution": 24, "unseen": 0.01, "reopen": 1.0} | changes)
    with Fitter(drive.ball_views(), how, box=drive.BALL_BOX) as fitter:
        grid = fitter.grid
        at = np.stack(np.meshgrid(*(np.linspace(-0.8, 0.8, n) for n in grid.shape), indexing="ij"), -1)
        raw = np.where(np.linalg.norm(at, axis=-1) < 0.5, OPAQUE, grid.activation.empty)
        features = np.zeros((*grid.shape, 3))
        grid.upload(Volume(raw, features, grid.world_from_index, grid.activation))
        yield fitter


def begun(fitter, drawn=LOOKED):
    """Opacities over a voxel before a level begins, and after."""
    before = opacity(fitter.grid)
    reopen(fitter.grid, fitter.store, fitter.buffer, fitter.settings, fitter.plan.near, drawn)
    return before, opacity(fitter.grid)


def opacity(grid):
    return -np.expm1(-grid.activation.sigma(grid.download()[0]) * grid.activation.scale)


def grid_with(volume, bricks):
    """A grid that holds a volume, with moments."""
    how = {"slots": 1, "moments": True}
    if not bricks:
        grid = Grid(volume.shape, volume.degree, **how)
    else:
        count = sparse_of(volume.samples, volume.activation.empty).bricks.count
        grid = BrickGrid(volume.shape, volume.degree, bricks=count, **how)
    grid.upload(volume)
    return grid


@DENSE_OR_NOT
@pytest.mark.parametrize("degree", [0, 1])
def test_samples_are_seen_that_a_ray_has_more_than_the_least_of_its_light_from(degree, bricks):
    """By the slow twin: the eight around each place of a ray whose weight is over it, and no others."""
    v, least, step, low = cases.volume(degree=degree), 0.05, 0.11, -50.0
    rays, buffer = cases.rays(v), drive.ray_buffer()
    surely, maybe = np.zeros(v.shape, bool), np.zeros(v.shape, bool)
    for origin, direction, jitter in reference.each(rays, None):
        for s in reference.samples(v, origin, direction, step, 1e-3, 0.0, jitter=jitter)[0]:
            for index, _ in reference.corners(s.p, v.shape):
                surely[index] |= s.weight > 1.001 * least
                maybe[index] |= s.weight > 0.999 * least
    with grid_with(v, bricks) as grid:
        buffer.upload(rays)
        mark_seen(grid.fields, buffer.fields, grid.variant, len(rays), step, 1e-3, least, True)
        bound_density(grid.fields, grid.blocks, np.inf, low)
        seen = grid.download()[0] > low
    assert 0.05 < surely.mean() < 0.95
    assert np.all(surely <= seen) and np.all(seen <= maybe)


@DENSE_OR_NOT
def test_what_no_ray_sees_is_faint_and_what_the_cameras_see_stays(bricks):
    with ball(bricks=bricks) as fitter:
        cameras = drive.ball_cameras()[::4]
        seen = [fitter.render(camera) for camera in cameras]
        before, after = begun(fitter)
        changed, inside = after < before, before > 0.9
        np.testing.assert_allclose(after[changed], FAINT, rtol=1e-3)
        assert 0.1 < changed[inside].mean() < 0.9 and changed[12, 12, 12] and not changed[before < FAINT].any()
        for camera, image in zip(cameras, seen, strict=True):
            np.testing.assert_allclose(fitter.render(camera), image, atol=0.02)
        assert not fitter.grid.fields.m_density.to_numpy().any()  # the marks were there, and Adam begins with zeros


@DENSE_OR_NOT
@pytest.mark.parametrize("most", [0.2, 0.5])
def test_no_sample_begins_a_level_more_opaque_than_it_may(most, bricks):
    """Where no ray is asked what nobody sees is treated as all else: a fit too short to look takes nothing away."""
    for changes, drawn in (({}, 0.9 * LOOKED), ({"unseen": 0.0}, LOOKED)):
        with ball(bricks=bricks, reopen=most, **changes) as fitter:
            before, after = begun(fitter, drawn)
        np.testing.assert_allclose(after, np.minimum(before, most), rtol=1e-4, atol=1e-7)


def test_levels_begin_as_they_are_where_that_is_asked_for():
    with ball(unseen=0.0) as fitter:
        np.testing.assert_array_equal(*begun(fitter))


@pytest.mark.parametrize("density", [name for name, each in DENSITIES.items() if not each.signed])
def test_an_opacity_has_the_raw_density_that_shows_it(density):
    """Over the length that an activation is of, whatever its rule."""
    activation = Activation.of_initial_alpha(0.05, 0.3, density)
    for alpha in (FAINT, 0.5, 0.9):
        shown = -np.expm1(-activation.sigma(raw_of_alpha(activation, alpha)) * activation.scale)
        assert shown == pytest.approx(alpha, rel=1e-9)
    assert raw_of_alpha(activation, 1.0) == np.inf


def test_values_seen_through_a_table_begin_a_level_as_they_are():
    """Less of a value is no less opaque."""
    with ball(reopen=0.2) as fitter:
        fitter.grid.set_activation(Activation("identity"))
        before = fitter.grid.download()[0]
        reopen(fitter.grid, fitter.store, fitter.buffer, fitter.settings, fitter.plan.near, LOOKED)
        np.testing.assert_array_equal(fitter.grid.download()[0], before)


def test_a_fit_reopens_each_level_but_the_first(monkeypatch):
    """With what was drawn of each pixel in the level before, in the mean."""
    asked = []
    monkeypatch.setattr("raymarch.fitting.fitter.reopen", lambda grid, *rest: asked.append((grid.shape[0], rest[-1])))
    how = {"levels": ((0.0, 0.5), (0.25, 0.75), (0.5, 1.0)), "steps": 40, "hull": False, "pyramid": 0.0}
    with Fitter(drive.ball_views(), preset("quick", **HOW | how), box=drive.BALL_BOX) as fitter:
        for _ in range(40):
            fitter.step()
        pixels = len(drive.ball_views()) * 24 * 24
    assert [shape for shape, _ in asked] == [12, 16]
    assert all(drawn >= 10 * 512 / pixels for _, drawn in asked)  # of the pixels whose rays meet anything


def test_no_level_is_reopened_while_cameras_move(monkeypatch):
    """What is closed anew would be closed elsewhere."""

    class Found(Exception):
        pass

    def fitter(views, settings, **how):
        raise Found(settings)

    monkeypatch.setattr(refining, "Fitter", fitter)
    with pytest.raises(Found) as found:
        refining.refine(drive.ball_views(), ["pose"], preset("quick", **HOW | {"steps": 2000}))
    assert (found.value.args[0].reopen, found.value.args[0].unseen) == (1.0, 0.0)
