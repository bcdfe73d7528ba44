"""Law: a picture shows the numbers it was given, where they are, in the Axes it was given."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from covering import covering
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from raymarch import plot
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import Evaluation, ViewScore
from raymarch.evaluation.metrics import psnr
from raymarch.fitting.report import Report
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.plot.cameras import pyramid
from raymarch.plot.fits import MAX_KEPT_SIDE, reduce_picture
from raymarch.plot.panels import picture_of
from raymarch.system import resources
from raymarch.views.views import Views
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import Activation, Volume

BOX = np.array([(-1, -2, 0.5), (1, 3, 1.5)])
RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def closed():
    """No figure outlives its test, and no test changes the style."""
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


def volume(shape=(9, 21, 5), colour="clamped"):
    """Noise whose voxels are cubes for the shape given; softplus, sh degree 1."""
    density = RNG.normal(size=shape)
    features = RNG.normal(size=(*shape, 12))
    affine = np.diag([*(np.ptp(BOX, axis=0) / (np.array(shape) - 1)), 1.0])
    affine[:3, 3] = BOX[0]
    return Volume(density, features, affine, Activation("softplus", 0.3, 0.5, colour))


def ring(count):
    return orbit((0, 0, 0), 4.0, count, like=Camera.look_at((4, 0, 0), width=12, height=8))


def views(count, alpha=True):
    images = RNG.integers(0, 256, (count, 8, 12, 4 if alpha else 3), dtype=np.uint8)
    return Views(ring(count), images, [f"view {i}" for i in range(count)], (0.2, 0.4, 0.6))


def report(step, shape=(32, 32, 32)):
    return Report(step, 1 / step, 10 + 0.01 * step, 1e6, shape, 1.0, 0.5 * step, step / 200, 1.0)


REPORTS = [report(25), report(50), report(75, (48, 48, 48)), report(100, (48, 48, 48)), report(125, (64, 64, 64))]

DRAWINGS = {
    "slices": (lambda axes=None: plot.slices(volume(), axes=axes), 3),
    "slices of colour": (lambda axes=None: plot.slices(volume(), what="colour", axes=axes), 3),
    "history": (lambda axes=None: plot.history(REPORTS, axes), 2),
    "comparison": (lambda axes=None: plot.comparison(np.zeros((8, 9, 3)), np.ones((8, 9, 3)), axes), 3),
    "images": (lambda axes=None: plot.images(views(5), 4, axes), 4),
}


def test_an_error_picture_shows_the_mean_error_on_one_scale():
    truth = np.full((2, 3, 3), 0.5)
    image = truth + np.array([0.0, 0.125, 0.5])[None, :, None]
    picture = plot.error_picture(image, truth)
    magma = matplotlib.colormaps["magma"]([0.0, 0.5, 1.0], bytes=True)[:, :3]
    np.testing.assert_array_equal(picture, np.broadcast_to(magma, (2, 3, 3)))
    np.testing.assert_array_equal(plot.error_picture(truth + np.array([0, 0.375, 0]), truth)[0, 0], magma[1])
    np.testing.assert_array_equal(plot.error_picture(truth + 0.05, truth, limit=0.1)[0, 0], magma[1])


def test_an_error_sheet_has_a_row_a_view_on_one_scale():
    truths = [RNG.uniform(0, 1, size) for size in ((8, 12, 3), (12, 8, 3), (900, 30, 3))]
    shown = [truth * 0.9 for truth in truths]
    figure = plot.error_sheet(shown, truths, ["a", "b", "a name that is much longer than there is room for here"])
    rows = np.reshape(figure.axes[:9], (3, 3))
    for row, image, truth in zip(rows, shown, truths, strict=True):
        assert row[0].get_ylabel().endswith(f"\n{psnr(image, truth):.2f} dB")
        assert row[2].images[0].get_clim() == (0, 0.25)
    np.testing.assert_array_equal(rows[0][1].images[0].get_array(), truths[0])
    np.testing.assert_array_equal(rows[1][0].images[0].get_array(), shown[1])
    np.testing.assert_allclose(rows[0][2].images[0].get_array(), 0.1 * truths[0].mean(-1))
    assert rows[2][0].images[0].get_array().shape == (300, 10, 3)
    assert rows[2][2].images[0].get_array().mean() == pytest.approx(0.1 * truths[2].mean())
    assert not plt.get_fignums()


def test_what_a_mask_takes_out_is_grey_and_no_part_of_a_sheets_score():
    truth, mask = RNG.uniform(0, 0.9, (8, 12, 3)), np.ones((8, 12), bool)
    mask[:, :4] = False
    image = np.where(mask[..., None], truth + 0.1, 1 - truth)
    assert {tuple(pixel) for pixel in plot.error_picture(image, truth, mask=mask)[:, :4].reshape(-1, 3)} == {(127,) * 3}
    figure = plot.error_sheet([image, image], [truth, truth], masks=[mask, None])
    assert figure.axes[0].get_ylabel() == "0\n20.00 dB"
    assert figure.axes[3].get_ylabel() == f"1\n{psnr(image, truth):.2f} dB"
    np.testing.assert_array_equal(figure.axes[2].images[0].get_array().mask, ~mask)
    assert (figure.axes[1].images[0].get_array()[:, :4] == 0.5).all()


@pytest.mark.parametrize("size", [(8, 12, 3), (12, 8, 3), (8, 8, 3)])
def test_panels_of_a_sheet_are_as_high_and_as_far_apart_as_their_neighbours(size):
    count = 8
    figure = plot.error_sheet([np.zeros(size)] * count, [np.ones(size)] * count, [f"${i}" for i in range(count)])
    FigureCanvasAgg(figure).draw()
    places = [ax.get_position() for ax in figure.axes[: 3 * count]]
    for row in zip(*[iter(places)] * 3, strict=True):
        np.testing.assert_allclose([(one.y0, one.y1) for one in row], [(row[0].y0, row[0].y1)] * 3)
        assert row[1].x0 - row[0].x1 == pytest.approx(row[2].x0 - row[1].x1)
    width, height = figure.get_size_inches()
    assert height < 2 * width
    assert figure.bbox.contains(*figure.axes[0].title.get_window_extent().max)
    assert min(ax.yaxis.label.get_window_extent().x0 for ax in figure.axes[: 3 * count : 3]) >= 0


@pytest.mark.parametrize(
    ("images", "truths", "names"),
    [([], [], []), ([np.zeros((4, 4, 3))], [], []), ([np.zeros((4, 4, 3))] * 2, [np.zeros((4, 4, 3))] * 2, ["a"])],
)
def test_an_error_sheet_wants_as_many_of_each(images, truths, names):
    with pytest.raises(RaymarchError, match="as many of each"):
        plot.error_sheet(images, truths, names)


@pytest.mark.parametrize("image", [np.zeros((4, 4)), np.zeros((4, 5, 3))])
def test_an_error_picture_wants_two_of_one_size(image):
    with pytest.raises(RaymarchError, match="of one size"):
        plot.error_picture(image, np.zeros((4, 4, 3)))


@pytest.mark.parametrize(("draw", "count"), DRAWINGS.values(), ids=DRAWINGS)
def test_draws_into_new_axes(draw, count):
    axes = draw()
    assert len(axes) == count
    assert all(isinstance(ax, Axes) for ax in axes)
    axes[0].figure.canvas.draw()
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(("draw", "count"), DRAWINGS.values(), ids=DRAWINGS)
def test_draws_into_given_axes(draw, count):
    _, given = plt.subplots(2, count)
    assert draw(given[1]) == tuple(given[1])
    assert all(ax.has_data() for ax in given[1])
    assert not any(ax.has_data() for ax in given[0])
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(("draw", "count"), list(DRAWINGS.values())[:4], ids=list(DRAWINGS)[:4])
def test_wrong_axes(draw, count):
    _, given = plt.subplots(1, count + 1)
    with pytest.raises(RaymarchError, match=rf"want {count} Axes; make them with plt.subplots"):
        draw(given)
    with pytest.raises(RaymarchError, match=rf"want {count} Axes"):
        draw(["left"] * count)


@pytest.mark.parametrize("shape", [(9, 21, 5), (5, 4, 9)], ids=["cubes", "bricks"])
def test_slices_show_the_samples_where_they_are(shape):
    v = volume(shape)
    i, j, k = at = (2, 3, 1)
    axes, sigma = plot.slices(v, at), v.sigma()
    x, y, z = point = (v.world_from_index @ [*at, 1])[:3]
    wanted = [
        (sigma[:, :, k].T, (0, 1), f"z = {z:.3g}"),
        (sigma[:, j, :].T, (0, 2), f"y = {y:.3g}"),
        (sigma[i, :, :].T, (1, 2), f"x = {x:.3g}"),
    ]
    for ax, (plane, (across, along), title) in zip(axes, wanted, strict=True):
        (image,) = ax.images
        shown = np.asarray(image.get_array())
        if shape == (9, 21, 5):
            np.testing.assert_array_equal(shown, plane)
        left, right, low, high = image.get_extent()
        rows, columns = shown.shape
        u = left + (np.arange(columns) + 0.5) * (right - left) / columns
        w = low + (np.arange(rows) + 0.5) * (high - low) / rows
        np.testing.assert_allclose([u[0], u[-1], w[0], w[-1]], [*BOX[:, across], *BOX[:, along]], atol=1e-12)
        to_index = np.linalg.inv(v.world_from_index[:3, :3])
        for row, column in [(0, 0), (rows - 1, 0), (rows // 3, columns // 2)]:
            p = point.copy()
            p[[across, along]] = u[column], w[row]
            index = (p - BOX[0]) @ to_index.T
            near = np.abs(np.indices(shape).reshape(3, -1).T - index).max(axis=1) <= 0.5 + 1e-6
            assert shown[row, column] in sigma.reshape(-1)[near]
        assert ax.get_title() == title
        assert (ax.get_xlabel(), ax.get_ylabel()) == (f"{'xyz'[across]} [world unit]", f"{'xyz'[along]} [world unit]")


@pytest.mark.parametrize("what", ["sigma", "colour"])
def test_slices_of_a_sparse_volume_ask_its_bricks_alone(monkeypatch, what):
    dense = Volume.from_array(np.eye(40)[:, :, None] * (np.arange(30) < 3), (0.9, 0.5, 0.1))
    sparse, at = dense.sparse(), (12, 12, 1)
    wanted = [np.asarray(ax.images[0].get_array()) for ax in plot.slices(dense, at, what)]
    monkeypatch.setattr(resources, "free_bytes", lambda: 0)
    for ax, picture in zip(plot.slices(sparse, at, what), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(ax.images[0].get_array())[..., -1], picture[..., -1])
    assert any(picture.any() for picture in wanted)


def test_slices_share_one_scale_and_a_bar():
    v = volume()
    for limit in (None, 0.5):
        axes = plot.slices(v, limit=limit)
        top = limit or max(float(np.max(ax.images[0].get_array())) for ax in axes)
        assert {ax.images[0].get_clim() for ax in axes} == {(0, top)}
        bars = set(axes[0].figure.axes) - set(axes)
        assert [bar.get_ylabel() for bar in bars] == ["sigma [1/world unit]"]


@pytest.mark.parametrize("shift", [-1000, 0, 3000])
def test_slices_of_a_scan_show_its_least_and_greatest_value(shift):
    values = np.arange(5 * 6 * 7).reshape(5, 6, 7) + shift
    axes = plot.slices(ScalarVolume(values.astype(np.int16)))
    drawn = [np.asarray(ax.images[0].get_array()) for ax in axes]
    ends = (min(a.min() for a in drawn), max(a.max() for a in drawn))
    assert all(ax.images[0].get_clim() == pytest.approx(ends) for ax in axes)


@pytest.mark.parametrize("draw", [plot.slices, plot.projections])
def test_floor_limit_and_colormap_are_what_is_asked_for(draw):
    scan = ScalarVolume(np.arange(5 * 6 * 7).reshape(5, 6, 7).astype(np.int16) - 1000)
    axes = draw(scan, floor=-900.0, limit=-850.0, colormap="gray")
    assert {(ax.images[0].get_clim(), ax.images[0].get_cmap().name) for ax in axes} == {((-900, -850), "gray")}


@pytest.mark.parametrize(
    ("half", "flat", "draw"), covering((0.88, 1.0, 37.5, 1234.0), (1.0, 0.3, 3.0), (plot.slices, plot.projections))
)
def test_nothing_of_a_picture_is_cut_at_its_border(draw, half, flat):
    affine = np.diag([half / 8, flat * half / 8, half / 8, 1.0])
    affine[:3, 3] = -half
    scan = ScalarVolume(np.arange(17**3).reshape(17, 17, 17), affine, world="LPS", unit="HU", length_unit="mm")
    seen = picture_of(lambda: draw(scan)[0].figure)
    assert not plt.get_fignums()
    assert np.concatenate([seen[0], seen[-1], seen[:, 0], seen[:, -1]]).min() == 255 and seen.min() < 50


AT_LAST = {plot.slices: {"index": (4, 5, 6)}, plot.projections: {}}


@pytest.mark.parametrize("draw", [plot.slices, plot.projections])
@pytest.mark.parametrize("world", ["RAS", "LPS", "LAS"])
def test_a_body_is_shown_as_radiologists_look_at_it(draw, world):
    """Its right on the left, its front and its head above, whatever the file's world; one bright sample is followed."""
    values = np.zeros((5, 6, 7), np.int16)
    values[4, 5, 6] = 9
    for ax in draw(ScalarVolume(values, np.diag([1.0, 2, 3, 1]), world=world), **AT_LAST[draw]):
        ends = []
        for label, (first, last) in ((ax.get_xlabel(), ax.get_xlim()), (ax.get_ylabel(), ax.get_ylim())):
            begin, axis, end = label[0], "xyz".index(label.split()[1]), label[-1]
            assert (end == world[axis]) == (last > first)
            ends.append(begin + end)
        assert tuple(ends) in (("RL", "PA"), ("RL", "IS"), ("AP", "IS"))
    assert np.asarray(ax.images[0].get_array()).max() == 9


@pytest.mark.parametrize("world", ["", "LPS"])
def test_slices_at_a_point_of_the_world_lie_there(world):
    scan = ScalarVolume(np.arange(5 * 6 * 7).reshape(5, 6, 7), np.diag([2.0, 2, 2, 1]), world=world)
    axes = plot.slices(scan, at=(2.4, 7.5, 8.0))
    assert [ax.get_title() for ax in axes] == ["z = 8", "y = 7.5", "x = 2.4"]
    for ax, plane in zip(axes, (scan.values[:, :, 4], scan.values[:, 4], scan.values[1]), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), plane.T)


@pytest.mark.parametrize("draw", [plot.slices, plot.projections])
@pytest.mark.parametrize("value", [0, -7, 7])
def test_one_value_everywhere_is_drawn(draw, value):
    for ax in draw(ScalarVolume(np.full((4, 5, 6), value, np.int16))):
        assert (np.asarray(ax.images[0].get_array()) == value).all() and np.diff(ax.images[0].get_clim()) > 0


@pytest.mark.parametrize("index", [None, "middle"])
def test_slices_run_through_the_middle(index):
    v = volume()
    np.testing.assert_array_equal(plot.slices(v, index)[0].images[0].get_array(), v.sigma()[:, :, 2].T)


@pytest.mark.parametrize("activation", ["clamped", "sigmoid"])
def test_slices_of_colour(activation):
    v = volume(colour=activation)
    rgba = np.asarray(plot.slices(v, what="colour")[0].images[0].get_array())
    linear = np.swapaxes(v.features[:, :, 2, :3], 0, 1) / np.sqrt(4 * np.pi)
    wanted = np.clip(linear + 0.5, 0, 1) if activation == "clamped" else 1 / (1 + np.exp(-linear))
    np.testing.assert_allclose(rgba[..., :3], wanted, rtol=1e-12)
    assert set(np.unique(rgba[..., 3])) <= {0.0, 1.0}


def test_slices_of_a_turned_volume_are_cut_in_the_world():
    ball = Volume.from_function(lambda p: 1.0 * (p[..., 0] > 0), shape=(21, 21, 21))
    quarter = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    shown = np.asarray(plot.slices(ball.moved(quarter))[0].images[0].get_array())
    np.testing.assert_array_equal(shown, np.repeat(np.arange(21) > 10, 21).reshape(21, 21))
    c = np.sqrt(0.5)
    eighth = np.array([[c, -c, 0, 0], [c, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    shown = np.asarray(plot.slices(ball.moved(eighth))[0].images[0].get_array())
    assert np.isnan(shown[0, 0])
    assert np.isfinite(shown[len(shown) // 2]).all()


def test_cameras_draws_every_frustum_and_the_box():
    ax = plot.cameras(views(5), box=BOX)
    ax.figure.canvas.draw()
    pyramids, edges = ax.collections
    assert len(pyramids.get_segments()) == 5
    assert len(edges.get_segments()) == 12
    for low, high, extent in zip(BOX.min(0), BOX.max(0), (ax.get_xlim(), ax.get_ylim(), ax.get_zlim()), strict=True):
        assert extent[0] <= low
        assert high <= extent[1]
    assert "z [world unit]" == ax.get_zlabel()


@pytest.mark.parametrize("draw", [plot.cameras, plot.frusta])
@pytest.mark.parametrize("height", [0.0, 1.0, 4.0])
def test_no_label_of_a_camera_plot_is_cut(draw, height):
    cameras = orbit((0, 0, 0), 4.0, 12, like=Camera.look_at((4, 0, height), width=12, height=8))
    figure = draw(replace(views(12), cameras=cameras)).figure
    figure.canvas.draw()
    (ax,) = figure.axes
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        corners = axis.label.get_window_extent().get_points()
        assert (corners >= 0).all()
        assert (corners <= figure.bbox.size).all()


def test_cameras_has_equal_aspect():
    ax = plot.cameras(ring(7))
    spans = [np.ptp(limits) for limits in (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())]
    sides = ax.get_box_aspect()
    np.testing.assert_allclose(np.divide(sides, spans), sides[0] / spans[0])


def test_cameras_take_one_or_several_and_share_axes():
    ax = plt.figure().add_subplot(projection="3d")
    assert plot.cameras(ring(3), ax=ax) is ax
    wide = ax.get_xlim()
    assert plot.cameras(Camera.look_at((0.1, 0, 0)), ax=ax, colour="C1") is ax
    assert len(ax.collections) == 2
    assert ax.get_xlim()[0] <= wide[0]
    assert ax.get_xlim()[1] >= wide[1]


def test_a_pyramid_opens_along_the_view_with_its_roof_up():
    line = pyramid(Camera.look_at((0, -4, 0), fov=np.pi / 2, width=8, height=8), 0.5)
    np.testing.assert_allclose(line[1], (0, -4, 0), atol=1e-12)
    np.testing.assert_allclose(line[2], (-0.5, -3.5, 0.5), atol=1e-12)  # upper left
    np.testing.assert_allclose(line[7], (0, -3.5, 0.8), atol=1e-12)  # roof
    edges = {frozenset({tuple(a), tuple(b)}) for a, b in zip(line[:-1].round(9), line[1:].round(9), strict=True)}
    assert len(edges) == 10


def test_parallel_rays_have_a_box_as_wide_as_the_image():
    line = pyramid(Camera.orthographic((0, -4, 0), size=2.0, width=8, height=4), 0.5)
    np.testing.assert_allclose(line.min(0)[:2], (-1, -4), atol=1e-12)
    np.testing.assert_allclose(line.max(0)[:2], (1, -3.5), atol=1e-12)
    corners = {tuple(point) for point in line.round(9) + 0.0}
    assert {(x, y, z) for x in (-1, 1) for y in (-4, -3.5) for z in (-0.5, 0.5)} <= corners
    assert line[:, 2].max() > 0.5  # the roof is up


@pytest.mark.parametrize(("against", "x"), [("steps", [25, 50, 75, 100, 125]), ("seconds", [12.5, 25, 37.5, 50, 62.5])])
def test_history_shows_every_report_and_level(against, x):
    loss, quality = plot.history(REPORTS, against=against)
    for ax, values in ((loss, [r.loss for r in REPORTS]), (quality, [r.psnr for r in REPORTS])):
        curve, *levels = ax.lines
        np.testing.assert_allclose(curve.get_xydata(), np.stack([x, values], axis=1))
        assert [level.get_xdata()[0] for level in levels] == [x[2], x[4]]
    assert loss.get_yscale() == "log"
    assert quality.get_yscale() == "linear"
    assert [text.get_text() for text in loss.texts] == ["48 × 48 × 48", "64 × 64 × 64"]


def test_history_of_a_fit_is_its_reports():
    class Fitted:
        history = tuple(REPORTS)

    assert len(plot.history(Fitted())[0].lines[0].get_xdata()) == len(REPORTS)


@pytest.mark.parametrize("shape", [(8, 9, 3), (8, 9)])
def test_comparison_shows_image_truth_and_error(shape):
    image, truth = RNG.uniform(-0.2, 1.2, shape), RNG.uniform(0, 1, shape)
    axes = plot.comparison(image, truth)
    shown = [np.asarray(ax.images[0].get_array()) for ax in axes]
    error = np.abs(np.clip(image, 0, 1) - truth)
    np.testing.assert_array_equal(shown[0], np.clip(image, 0, 1))
    np.testing.assert_array_equal(shown[1], truth)
    np.testing.assert_allclose(shown[2], error.mean(axis=2) if len(shape) == 3 else error)
    assert axes[2].images[0].get_clim() == (0, shown[2].max())
    assert f"{psnr(image, truth):.2f} dB" in axes[2].get_title()
    assert axes[2].images[0].colorbar is not None


def test_comparison_of_equal_images():
    plot.comparison(np.ones((4, 4)), np.ones((4, 4)))[0].figure.canvas.draw()


@pytest.mark.parametrize("alpha", [True, False])
def test_images_are_spread_over_the_views(alpha):
    v = views(9, alpha)
    axes = plot.images(v, 3)
    for ax, i in zip(axes, (0, 4, 8), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), v.rgb(i))
        assert ax.get_title() == f"view {i}"
    assert len(plot.images(v, 20)) == 9


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: plot.slices(volume(), what="density"), "want one of sigma, colour"),
        (lambda: plot.slices(volume(), at=(0, 0, 90)), "at is 0 0 90, want a point in the volume's box, "),
        (lambda: plot.slices(volume(), colormap="grye"), "colormap is 'grye', want a colour map that matplotlib has"),
        (lambda: plot.slices(volume(), floor=2.0, limit=1.0), "floor is 2 and limit 1, want the floor less"),
        (lambda: plot.projections(volume(), floor=2.0, limit=2.0), "floor is 2 and limit 2, want the floor less"),
        (lambda: plot.slices(volume(), (0, 21, 0)), r"within \(9, 21, 5\)"),
        (lambda: plot.slices(volume(), (-1, 0, 0)), "three whole numbers"),
        (lambda: plot.slices(volume(), (0.5, 0, 0)), "three whole numbers"),
        (lambda: plot.slices(volume(), "top"), "want 'middle' or"),
        (lambda: plot.slices(volume(), limit=0.0), "floor is 0 and limit 0, want the floor less"),
        (lambda: plot.cameras([]), "at least one"),
        (lambda: plot.cameras([np.eye(4)]), "want Views, a Camera or a list"),
        (lambda: plot.cameras(ring(2), box=[(1, 1, 1), (0, 0, 0)]), "box"),
        (lambda: plot.cameras(ring(2), ax=plt.figure().add_subplot()), "projection='3d'"),
        (lambda: plot.history([]), "at least one Report"),
        (lambda: plot.history(REPORTS, against="hours"), "want one of steps, seconds"),
        (lambda: plot.comparison(np.zeros((4, 4, 3)), np.zeros((5, 4, 3))), "resize"),
        (lambda: plot.comparison(np.zeros((4, 4, 4)), np.zeros((4, 4, 4))), "alpha"),
        (lambda: plot.images(views(2), 0), "count is 0"),
        (lambda: plot.images(views(2), axes=plt.subplots(1, 3)[1]), "3 images asked for, want 1 to 2"),
    ],
)
def test_errors_name_the_cure(call, match):
    with pytest.raises(RaymarchError, match=match):
        call()


def test_pyplot_is_loaded_when_first_drawn():
    code = "import sys, raymarch.plot\nassert 'matplotlib' not in sys.modules and 'taichi' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_an_image_set_shows_its_cameras_box_and_coverage():
    ring = orbit((0, 0, 0), 4.0, 6, like=Camera.look_at((4, 0, 0), fov=0.7, width=8, height=6))
    views = Views(ring, RNG.integers(0, 255, (6, 6, 8, 3), dtype=np.uint8))
    figure = plot.image_set(views, box=[(-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)], points=[[0, 0, 0]])
    space, *sides = figure.axes[:4]
    assert space.name == "3d" and len(sides) == 3
    assert all((side.images[0].get_array() == len(views)).all() for side in sides)  # a small box, in all their sights
    assert "0%" in space.get_title()


def test_slices_of_very_long_voxels_are_no_larger_than_a_picture():
    long = Volume(np.ones((8, 8, 8)), np.zeros((8, 8, 8, 3)), np.diag([1e-4, 1.0, 1e-4, 1.0]))
    for ax in plot.slices(long):
        picture = np.asarray(ax.images[0].get_array())
        assert max(picture.shape) <= 2049 and np.isfinite(picture).all()


@pytest.mark.parametrize("name", ["img_$1_$2", r"$\\frac{$ a", "a_b^c"])
def test_a_name_is_no_formula(name):
    v = views(2)
    named = replace(v, names=[name, "other"])
    (ax, _) = plot.images(named)
    assert ax.get_title() == name
    scores = Evaluation(30.0, 0.9, tuple(ViewScore(each, 30.0, 0.9) for each in named.names), 0.1)
    for drawn in (ax, plot.residuals(scores)):
        FigureCanvasAgg(drawn.figure).draw()


@pytest.mark.parametrize(
    "refused",
    [
        lambda: plot.profile(volume(), Camera.look_at((0, -4, 0), (0, -9, 0), width=9, height=9).rays([40])),
        lambda: plot.histogram(volume(), window=(2.0, 1.0)),
        lambda: plot.iso_histogram(volume(), window=(2.0, 1.0)),
    ],
)
def test_what_is_refused_opens_no_figure(refused):
    with pytest.raises(RaymarchError):
        refused()
    assert plt.get_fignums() == []


@pytest.mark.parametrize("shape", [(1, 500), (500, 1), (9, 2000), (37, 1000), (700, 911)])
def test_no_pixel_of_a_large_picture_is_left_out_of_a_sheet(shape):
    picture = np.zeros((*shape, 3))
    assert max(reduce_picture(picture).shape[:2]) <= MAX_KEPT_SIDE and min(reduce_picture(picture).shape[:2]) >= 1
    np.testing.assert_allclose(reduce_picture(picture + 0.3), 0.3)
    for corner in ((0, 0), (-1, -1), (0, -1), (-1, 0)):
        one = picture.copy()
        one[corner] = 1
        assert reduce_picture(one).max() > 0


@pytest.mark.whole
def test_a_name_in_letters_that_no_font_here_has_is_drawn_without_a_word():
    image = RNG.uniform(0, 1, (12, 16, 3))
    assert picture_of(lambda: plot.error_sheet([image], [image], ["\u5199\u771f"])).std() > 0


def test_channels_are_drawn_each_over_its_own_range():
    image = np.stack([np.linspace(0, 1, 12).reshape(3, 4), np.linspace(280, 300, 12).reshape(3, 4)], axis=-1)
    image[0, 0, 1] = np.nan
    grey, thermal = plot.channels(image, ["grey", "thermal"])
    assert (grey.get_title(), thermal.get_title()) == ("grey", "thermal")
    assert thermal.images[0].get_clim() == (image[0, 1, 1], 300)
    assert plot.channels(image, ranges=[[0, 2], [200, 400]])[1].images[0].get_clim() == (200, 400)
    with pytest.raises(RaymarchError, match="names are 1, the image has 2 channels"):
        plot.channels(image, ["one"])
