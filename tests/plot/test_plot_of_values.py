"""Law: histograms, projections, profiles, coverage and residuals show the numbers of loops, with their units."""

from __future__ import annotations

from dataclasses import replace

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from raymarch import plot
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import Evaluation, ViewScore
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.plot.panels import picture_of
from raymarch.plot.volumes import trilinear
from raymarch.views.views import Views
from raymarch.volumes.activation import Activation
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

RNG = np.random.default_rng(11)
AFFINE = np.array([[0.5, 0, 0, -1], [0, 0.25, 0, 2], [0, 0, 1.0, 0], [0, 0, 0, 1]])
SCAN = ScalarVolume(RNG.integers(-50, 200, (7, 9, 5), dtype=np.int16), AFFINE, unit="HU", length_unit="mm", slope=2.0)
FITTED = Volume(RNG.normal(size=(7, 9, 5)), RNG.normal(size=(7, 9, 5, 3)), AFFINE, Activation("softplus", 0.3, 0.5))
TURNED = ScalarVolume(SCAN.values, np.array([[0, 0.5, 0, 0], [-0.5, 0, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 1]]))
TABLE = TransferFunction([-50, 0, 300], [(0, 0, 0), (1, 0, 0), (1, 1, 0)], [0, 0.2, 0.8], 3.0)
BOX = np.array([(-0.5, -0.75, -0.25), (0.5, 0.75, 0.5)])
RING = orbit((0, 0, 0), 4.0, 7, like=Camera.look_at((4, 0, 0), fov=0.25, width=12, height=8))
VIEWS = Views(RING, RNG.integers(0, 256, (7, 8, 12, 3), dtype=np.uint8))
LINE = [(-2, 2.2, 1.1), (3, 4.1, 2.7)]


def scored(count):
    return Evaluation(
        30.0, 0.9, tuple(ViewScore(f"$r_{i}", 30 + 3 * np.sin(i), 0.9, lpips=0.1 + 0.01 * i) for i in range(count)), 0.1
    )


DRAWINGS = {
    "histogram": (lambda ax: plot.histogram(SCAN, TABLE, ax), ("value [HU]", "samples")),
    "histogram of sigma": (lambda ax: plot.histogram(FITTED, None, ax), ("sigma [1/world unit]", "samples")),
    "isosurfaces": (
        lambda ax: plot.iso_histogram(SCAN, ax),
        ("isosurface at value [HU]", "cells that the surface crosses"),
    ),
    "profile": (lambda ax: plot.profile(SCAN, LINE, TABLE, ax), ("distance [mm]", "value [HU]")),
    "profile of sigma": (lambda ax: plot.profile(FITTED, LINE, None, ax), ("distance [world unit]",) * 2),
    "residuals": (lambda ax: plot.residuals(scored(5), ax), ("view", "PSNR [dB]")),
    "many residuals": (lambda ax: plot.residuals(scored(60), ax, score="lpips"), ("view", "LPIPS")),
    "frusta": (lambda ax: plot.frusta(VIEWS, BOX, ax), ("x [world unit]", "y [world unit]")),
}
THREE = {
    "projections": (lambda axes: plot.projections(SCAN, axes), "mm", "value [HU]"),
    "projections of sigma": (lambda axes: plot.projections(FITTED, axes), "world unit", "sigma [1/world unit]"),
    "slices": (lambda axes: plot.slices(SCAN, axes=axes), "mm", "value [HU]"),
    "slices of sigma": (lambda axes: plot.slices(FITTED, axes=axes), "world unit", "sigma [1/world unit]"),
    "coverage": (lambda axes: plot.coverage(VIEWS, BOX, axes), "world unit", "views that see it"),
}


@pytest.fixture(autouse=True)
def closed():
    """No figure outlives its test, and no test changes the style."""
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", DRAWINGS)
def test_one_axes_is_taken_and_returned_with_units(name, given):
    draw, (across, up) = DRAWINGS[name]
    plt.close("all")  # what other tests left
    ax = plt.figure().add_subplot(projection="3d" if name == "frusta" else None) if given else None
    drawn = draw(ax)
    assert isinstance(drawn, Axes) and (ax is None or drawn is ax)
    drawn.figure.canvas.draw()
    assert drawn.get_xlabel() == across
    if name != "profile of sigma":
        assert drawn.get_ylabel() == up
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", THREE)
def test_three_axes_are_taken_and_returned_with_units_and_a_bar(name):
    draw, unit, bar = THREE[name]
    given = plt.subplots(1, 3)[1]
    assert draw(given) == tuple(given)
    assert [ax.get_xlabel() for ax in given] == [f"{a} [{unit}]" for a in "xxy"]
    assert [ax.get_ylabel() for ax in given] == [f"{a} [{unit}]" for a in "yzz"]
    assert {ax.get_aspect() for ax in given} == {1.0}
    assert {ax.images[0].cmap.name for ax in given} <= {"viridis", "magma"}
    (colours,) = set(given[0].figure.axes) - set(given)
    assert colours.get_ylabel().startswith(bar)
    with pytest.raises(RaymarchError, match="want 3 Axes"):
        draw(plt.subplots(1, 2)[1])


@pytest.mark.parametrize("volume", [SCAN, FITTED], ids=["scan", "fitted"])
def test_a_histogram_counts_every_sample_once(volume):
    ax = plot.histogram(volume, bins=17)
    counts, edges, _ = ax.patches[0].get_data()
    values = volume.numbers() if volume is SCAN else volume.sigma()
    assert np.nansum(counts) == values.size
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        inside = ((values >= low) & (values < high)).sum()
        assert abs(np.nan_to_num(count) - inside) <= (values == values.max()).sum()
    assert ax.get_yscale() == "log"
    if volume is SCAN:  # as many whole numbers in each: no comb
        assert (edges[1] - edges[0]) % 2 == 0 and (edges[0] / 2) % 1 == 0.5


def test_a_table_is_drawn_as_it_is():
    ax = plot.histogram(SCAN, TABLE)
    right = next(one for one in ax.figure.axes if one.get_ylabel() == "opacity over 3 mm")
    x, y = right.lines[0].get_data()
    np.testing.assert_allclose(y, TABLE(x)[:, 3])
    assert (x.min(), x.max()) == ax.get_xlim() == (-100, 398)
    np.testing.assert_array_equal(right.collections[0].get_offsets(), np.c_[TABLE.values, TABLE.opacities])
    (strip,) = ax.child_axes
    np.testing.assert_allclose(strip.images[0].get_array()[0], TABLE(np.linspace(-100, 398, 512))[:, :3])


def test_an_isosurface_crosses_the_cells_that_have_both_sides():
    ax = plot.iso_histogram(SCAN, bins=23)
    at, counts = ax.lines[0].get_data()
    values = SCAN.numbers()
    cells = np.stack([values[i : i + 6, j : j + 8, k : k + 4] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    for value, count in zip(at, counts, strict=True):
        assert np.nan_to_num(count) == ((cells.min(0) <= value) & (value < cells.max(0))).sum()


def test_slabs_do_not_change_an_isosurfaces_count(monkeypatch):
    whole = plot.iso_histogram(SCAN).lines[0].get_ydata()
    monkeypatch.setattr("raymarch.plot.volumes.SLAB_VALUES", 50)
    np.testing.assert_array_equal(plot.iso_histogram(SCAN).lines[0].get_ydata(), whole)
    (down, *_), values = plot.projections(SCAN), SCAN.numbers()
    np.testing.assert_array_equal(down.images[0].get_array(), values.max(2).T)


def test_projections_are_greatest_values_where_they_are():
    axes, values = plot.projections(SCAN), SCAN.numbers()
    for ax, axis in zip(axes, (2, 1, 0), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), values.max(axis).T)
        assert ax.images[0].get_clim() == (0, values.max())
    np.testing.assert_allclose(axes[1].images[0].get_extent(), (-1.25, 2.25, -0.5, 4.5))


def test_projections_of_a_turned_volume_are_of_the_world():
    axes, values = plot.projections(TURNED), TURNED.numbers()
    np.testing.assert_array_equal(axes[0].images[0].get_array(), values.max(2)[::-1])
    np.testing.assert_array_equal(axes[1].images[0].get_array(), values.max(0).T)
    np.testing.assert_array_equal(axes[2].images[0].get_array(), values.max(1)[::-1].T)


@pytest.mark.parametrize("volume", [SCAN, FITTED], ids=["scan", "fitted"])
def test_a_profile_is_trilinear_and_its_light_what_is_left(volume):
    ax = plot.profile(volume, LINE, TABLE)
    s, values = ax.lines[0].get_data()
    along = np.subtract(LINE[1], LINE[0])
    assert s[0] == 0 and s[-1] == pytest.approx(np.linalg.norm(along))
    points = LINE[0] + s[:, None] * along / np.linalg.norm(along)
    raw = volume.numbers() if volume is SCAN else volume.density
    for point, value in zip(points[::9], values[::9], strict=True):
        index = (point - AFFINE[:3, 3]) / np.diag(AFFINE)[:3]
        if (index < 0).any() or (index > np.array(raw.shape) - 1).any():
            assert np.isnan(value)
            continue
        low, total = np.minimum(index.astype(int), np.array(raw.shape) - 2), 0.0
        for corner in np.ndindex(2, 2, 2):
            total += np.prod(np.where(corner, index - low, 1 - (index - low))) * raw[tuple(low + corner)]
        wanted = total if volume is SCAN else float(volume.activation.sigma(total))
        assert value == pytest.approx(wanted, abs=1e-3)
    light = next(one for one in ax.figure.axes if one is not ax).lines[0].get_ydata()
    sigma = np.where(np.isnan(values), 0, TABLE.sigma(np.nan_to_num(values)))
    tau = sum(0.5 * (a + b) * (t - u) for a, b, u, t in zip(sigma, sigma[1:], s, s[1:], strict=False))
    assert light[0] == 1 and light[-1] == pytest.approx(np.exp(-tau), rel=1e-9)


def test_a_rays_profile_begins_and_ends_at_the_box():
    ball = Volume.from_function(lambda p: 0 * p[..., 0] + 1, shape=(8, 8, 8))
    camera = Camera.look_at((0, -4, 0.2), width=9, height=9)
    ray = camera.rays([40])
    ax = plot.profile(ball, ray)
    ends = ray.origin + np.array(ax.get_xlim())[:, None] * ray.direction
    assert np.abs(ends).max(axis=1) == pytest.approx(1)
    assert np.isnan(trilinear(ball, np.array([[0, 0, 1.1]]))).all()


def test_coverage_counts_the_views_that_see_a_place():
    axes = plot.coverage(VIEWS, BOX)
    shown = np.asarray(axes[0].images[0].get_array())
    rows, columns = shown.shape
    left, right, low, high = axes[0].images[0].get_extent()
    depth = BOX[0, 2] + (24 // 2 + 0.5) / 24 * (BOX[1, 2] - BOX[0, 2])
    for row, column in ((0, 0), (rows // 2, columns // 2), (3, columns - 1), (rows - 1, 5)):
        place = [left + (column + 0.5) / columns * (right - left), low + (row + 0.5) / rows * (high - low), depth]
        seen = 0
        for camera in RING:
            (pixel,), (ahead,) = camera.project([place])
            seen += bool(ahead > 0 and 0 <= pixel[0] < 12 and 0 <= pixel[1] < 8)
        assert shown[row, column] == seen
    assert axes[0].images[0].get_clim() == (0, 7) and shown.min() < shown.max()


@pytest.mark.parametrize(("count", "score"), [(5, "psnr"), (60, "psnr"), (5, "lpips"), (60, "lpips")])
def test_residuals_show_every_view_and_name_the_worst(count, score):
    of = scored(count)
    ax = plot.residuals(of, score=score, worst=2)
    values = np.array([getattr(view, score) for view in of.views])
    np.testing.assert_allclose(ax.collections[1].get_offsets(), np.c_[np.arange(count), values])
    worst = np.argsort(values if score == "psnr" else -values)[:2]
    said = [text.get_text() for text in ax.texts]
    digits = 2 if score == "psnr" else 3
    names = [f"{of.views[i].name} " * (count > 16) + f"{values[i]:.{digits}f}" for i in worst]
    assert said == [*names, f"mean\n{values.mean():.{digits}f}"]
    low, high = ax.get_ylim()
    assert low < values.min() and values.max() < high
    if count <= 16:
        assert [text.get_text() for text in ax.get_xticklabels()] == [view.name for view in of.views]


def test_frusta_have_their_images_on_their_open_ends():
    ax = plot.frusta(VIEWS, BOX, count=3, length=0.5)
    pixels = ax.collections[-1]
    assert len(pixels.get_facecolor()) == 3 * 8 * 12
    wanted = np.concatenate([VIEWS.rgb(i).reshape(-1, 3) for i in (0, 3, 6)])
    shown = pixels.get_facecolor()[:, :3]  # the farthest first
    np.testing.assert_allclose(shown[np.lexsort(shown.T)], wanted[np.lexsort(wanted.T)], atol=1e-6)


@pytest.mark.parametrize("drawn", [plot.histogram, plot.projections])
def test_dollars_in_a_unit_are_dollars(drawn):
    """Units come from files: what lies between two dollars is no formula, and no error."""
    odd = replace(SCAN, unit=r"$\frac$", length_unit=r"$\nothing$")
    drawn(odd)
    plt.gcf().canvas.draw()
    texts = [text.get_text() for ax in plt.gcf().axes for text in (ax.xaxis.label, ax.yaxis.label)]
    assert any(r"\frac" in text or r"\nothing" in text for text in texts)
    plt.close()


def test_a_backend_of_another_environment_keeps_no_figure_from_being_a_picture(monkeypatch):
    """As where a verb is run from a notebook, whose MPLBACKEND is a module that only its own environment has."""
    figure, tried = plt.figure(), []
    monkeypatch.setitem(matplotlib.rcParams, "backend", matplotlib.rcParams["backend"])

    def draw():
        tried.append(matplotlib.get_backend().lower())
        if len(tried) == 1:
            raise ModuleNotFoundError("No module named 'no_such'")
        return figure

    assert picture_of(draw).shape[2] == 3 and tried[1] == "agg"


def test_residuals_leave_out_a_view_without_error_as_the_mean_does():
    views = tuple(ViewScore(name, psnr, 0.9) for name, psnr in (("a", 30.0), ("b", np.inf), ("c", 20.0)))
    ax = plot.residuals(Evaluation(25.0, 0.9, views, 0.1))
    assert ax.texts[-1].get_text() == "mean\n25.00" and [at[0] for at in ax.collections[-1].get_offsets()] == [0, 2]
    with pytest.raises(RaymarchError, match="none of 1 views has"):
        plot.residuals(Evaluation(np.inf, 0.9, views[1:2], 0.1))
