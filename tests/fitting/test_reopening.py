"""Law: no sample begins a level more opaque than it may be, and none but those is changed."""

from __future__ import annotations

import cases
import drive
import numpy as np
import pytest

from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.pruning import reopen
from raymarch.fitting.settings.optimiser import Adam
from raymarch.fitting.settings.settings import preset
from raymarch.registration import refine as refining
from raymarch.volumes.activation import DENSITIES, Activation
from raymarch.volumes.storage import sparse_of

HOW = {"resolution": 16, "steps": 4, "rays": 512, "sh_degree": 0, "slots": 1, "levels": ((0.0, 1.0),)}
DENSE_OR_NOT = pytest.mark.parametrize("bricks", [False, True], ids=["dense", "bricks"])


def grid_with(volume, bricks):
    if bricks:
        count = sparse_of(volume.samples, volume.activation.empty).bricks.count
        grid = BrickGrid(volume.shape, volume.degree, bricks=count, slots=1)
    else:
        grid = Grid(volume.shape, volume.degree, slots=1)
    grid.upload(volume)
    return grid


def opacity(activation, raw):
    """Over the activation's scale, 0..1."""
    return -np.expm1(-activation.sigma(raw) * activation.scale)


@DENSE_OR_NOT
@pytest.mark.parametrize("most", [0.2, 0.5, 0.9])
def test_no_sample_begins_a_level_more_opaque_than_it_may(most, bricks):
    """By NumPy: the lesser of what was and what may be, and colours as they were."""
    volume = cases.volume(degree=1)
    with grid_with(volume, bricks) as grid:
        before, features = grid.download()
        reopen(grid, most)
        after, same = grid.download()
        was, now = opacity(grid.activation, before), opacity(grid.activation, after)
    assert was.min() < most < was.max()
    np.testing.assert_allclose(now, np.minimum(was, most), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(after[was < 0.999 * most], before[was < 0.999 * most])
    np.testing.assert_array_equal(same, features)


@pytest.mark.parametrize("density", [name for name, each in DENSITIES.items() if not each.signed])
def test_whatever_the_activation_it_is_opacity_that_is_bounded(density):
    volume = cases.volume(degree=0)
    with grid_with(volume, bricks=False) as grid:
        grid.set_activation(Activation.of_initial_alpha(0.05, 0.3, density))
        reopen(grid, 0.3)
        assert opacity(grid.activation, grid.download()[0]).max() == pytest.approx(0.3, rel=1e-4)


@DENSE_OR_NOT
def test_levels_begin_as_they_are_where_that_is_asked_for(bricks):
    with grid_with(cases.volume(degree=0), bricks) as grid:
        before = grid.download()[0]
        reopen(grid, 1.0)
        np.testing.assert_array_equal(grid.download()[0], before)


def test_values_seen_through_a_table_begin_a_level_as_they_are():
    """Less of a value is no less opaque."""
    with grid_with(cases.volume(degree=0), bricks=False) as grid:
        grid.set_activation(Activation("identity"))
        before = grid.download()[0]
        reopen(grid, 0.2)
        np.testing.assert_array_equal(grid.download()[0], before)


@pytest.mark.parametrize(("long", "begun"), [(25, [(7, 12, 0.4), (13, 16, 0.4)]), (50, [(10, 12, 1.0), (20, 16, 1.0)])])
def test_a_long_fit_reopens_each_level_but_the_first(long, begun, monkeypatch):
    """And begins it sooner, 1.6 times as long as others; a short one has no time for it. Adam is told how far it is."""
    asked, told, step = [], [], Adam.step

    def noted(self, grid, age, progress, number, even=None):
        told.append((number, even))
        step(self, grid, age, progress, number, even)

    monkeypatch.setattr(Adam, "step", noted)
    monkeypatch.setattr(
        "raymarch.fitting.fitter.reopen", lambda grid, most: asked.append((fitter.steps_done, grid.shape[0], most))
    )
    monkeypatch.setattr("raymarch.fitting.settings.optimiser.LONG_FIT_STEPS", long)
    how = {"levels": ((0.0, 0.5), (0.25, 0.75), (0.5, 1.0)), "steps": 40, "hull": False, "reopen": 0.4}
    with Fitter(drive.ball_views(), preset("quick", **HOW | how), box=drive.BALL_BOX) as fitter:
        for _ in range(40):
            fitter.step()
    assert asked == begun
    assert told == [(n, n) for n in range(40)]


def test_no_level_is_reopened_while_cameras_move(monkeypatch):
    """What is closed anew would be closed elsewhere."""

    class Found(Exception):
        pass

    def fitter(views, settings, **how):
        raise Found(settings)

    monkeypatch.setattr(refining, "Fitter", fitter)
    with pytest.raises(Found) as found:
        refining.refine(drive.ball_views(), ["pose"], preset("quick", **HOW | {"steps": 2000}))
    s = found.value.args[0]
    assert (s.reopen, s.early, s.pyramid) == (1.0, 1.0, 0.0)
    assert (s.optimiser.thinning, s.optimiser.cooldown) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["medium", "photos"])
def test_fits_of_fog_and_of_scenes_have_nothing_of_long_ones(name):
    s = preset(name)
    assert (s.reopen, s.early, s.optimiser.coarse_at(1.0, 30_000)) == (1.0, 1.0, 0.0)
