"""Law: a fit recovers what it is shown, the same bytes from the same seed, and whatever ends it, the volume is kept."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import drive
import numpy as np
import pytest
import single as worker
from covering import covering
from whole import whole

from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import evaluate
from raymarch.evaluation.metrics import psnr
from raymarch.fitting import clock as clock_module
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import REPORT_INTERVAL, Fitter
from raymarch.fitting.pruning import Pruning
from raymarch.fitting.settings.objective import LOSSES
from raymarch.fitting.settings.settings import preset
from raymarch.fitting.table_activation import activation_through, clear_value
from raymarch.geometry.boxes import grid_of_box
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import render
from raymarch.views.views import Views
from raymarch.volumes.activation import FIT_COLOURS, FIT_DENSITIES
from raymarch.volumes.transfer_function import TransferFunction

QUICK = {"resolution": 16, "steps": 40, "rays": 512, "sh_degree": 0, "slots": 1}
HELD_OUT = 2


@cache
def views(background="white", channels=4) -> Views:
    """What is fitted: all but the last two views, or the same without alpha."""
    if channels == 4 and background == "white":
        return drive.ball_views()[:-HELD_OUT]
    seen = replace(views(), background=background)
    if channels == 4:
        return seen
    return replace(seen, images=np.round([255 * seen.rgb(i) for i in range(len(seen))]).astype(np.uint8))


def fitted(seen=None, show=None, **changes):
    """A quick fit of the ball."""
    return fit(seen or views(), preset("quick", **QUICK | changes), box=drive.BALL_BOX, show=show)


def test_a_step_is_ten_launches_and_waits_for_the_device_nowhere(monkeypatch):
    """No number comes back, no array of the host goes there, nothing is read: the host runs ahead of a GPU."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "benchmarks")
    from launches import counted

    with Fitter(views(), preset("quick", **QUICK), box=drive.BALL_BOX) as fitter:
        fitter.step()
        with counted() as found:
            for _ in range(3):
                fitter.step()
            assert not found.waits
            assert len(found.kernels) == 3 * 10
            fitter.report()
        assert found.waits  # a report is of numbers


def stepped(seen=None, **changes):
    """The losses of all steps."""
    with Fitter(seen or views(), preset("quick", **QUICK | changes), box=drive.BALL_BOX) as fitter:
        losses = []
        for _ in range(fitter.settings.steps):
            fitter.step()
            losses.append(fitter.buffer.fields.loss[None])
    return np.array(losses)


def bytes_of(volume):
    return volume.density.tobytes() + volume.features.tobytes()


def test_a_ball_is_recovered():
    """The loss falls tenfold, and views the fit has not seen look better than the start does."""
    held_out = drive.ball_views()[-HELD_OUT:]
    start, end = fitted(steps=1), fitted(steps=80)
    assert end.ended == "done"
    assert end.volume.provenance["steps"] == 80
    assert end.history[-1].loss < start.history[-1].loss / 10
    assert end.history[-1].psnr > start.history[-1].psnr + 8
    assert end.evaluate(held_out).psnr > start.evaluate(held_out).psnr + 8


def test_same_seed_same_bytes():
    first, again, other = (fitted(seed=seed) for seed in (4, 4, 5))
    assert bytes_of(first.volume) == bytes_of(again.volume)
    assert [r.loss for r in first.history] == [r.loss for r in again.history]
    assert bytes_of(first.volume) != bytes_of(other.volume)


LAYOUTS = [(0, 1, (4, 1)), whole(0, 2, (4, 1, 2)), whole(1, 2, (4, 1, 2))]


@pytest.mark.parametrize(("degree", "slots", "blocks"), LAYOUTS, ids=str)
def test_any_layout_same_bytes(degree, slots, blocks):
    """So that it may be chosen by the processor: through two levels, with regularisers and empty space."""
    changes = {"seed": 4, "steps": 12, "refresh": 4, "sh_degree": degree, "slots": slots}  # of two each has 256 rays
    one, *others = (fitted(block=block, **changes) for block in blocks)
    for other in others:
        assert bytes_of(one.volume) == bytes_of(other.volume)
        assert [r.loss for r in one.history] == [r.loss for r in other.history]


def test_what_a_mask_takes_out_shapes_nothing():
    """Other colours there give the same volume, byte by byte; without the mask they do not."""
    seen = views()
    masks = np.zeros((len(seen), *seen.images.shape[1:3]), bool)
    masks[:, :, :20] = True
    spoilt = np.where(masks[..., None], seen.images, 255 - seen.images)
    plain, other = (fitted(replace(seen, images=images, masks=masks)) for images in (seen.images, spoilt))
    assert bytes_of(plain.volume) == bytes_of(other.volume)
    assert [r.psnr for r in plain.history] == [r.psnr for r in other.history]
    assert bytes_of(plain.volume) != bytes_of(fitted(replace(seen, images=spoilt)).volume)


def test_alpha_that_is_opaque_everywhere_is_fitted_as_none():
    """Byte by byte: it does not say that the background is matter."""
    seen = views(channels=3)
    opaque = np.concatenate([seen.images, np.full_like(seen.images[..., :1], 255)], -1)
    plain, other = (fitted(each, steps=8) for each in (seen, replace(seen, images=opaque)))
    assert bytes_of(plain.volume) == bytes_of(other.volume)


PLAIN = {"slots": 4}
DENSE = PLAIN | {"resolution": 24, "hull": False, "prune_alpha": 0.0, "tv_density": 0.0}
# Above degree 0 rays are jittered; of more tiles than there are listed some are drawn twice in a step, by two threads.
SEVERAL = {"supersample": 2, "supersample_from": 0.5, "supersample_seen": 0.0}
TURNING = {"sh_degree": 1, "rays": 6144, "steps": 12, **SEVERAL}
BRICKS = DENSE | {"bricks": True}  # a regulariser is rounded with slot 0 there
SERVED = {"sh_degree": 0, "slots": 1, "rays": 512, "resolution": 16}  # by kernels of other tests


def few_images():
    """Of a few views, 180 tiles in all."""
    return views().images[:5]


@pytest.fixture
def hashes(root, tmp_path):
    """`hashes({threads: settings})`: of the fit of each in f32, in a process of its own."""
    images = tmp_path / "images.npz"
    np.savez(images, few_images())

    def printed(of: dict[int, dict]) -> list[str]:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", f"import single; single.print_fit({str(images)!r}, {threads}, {changes})"],
                stdout=subprocess.PIPE,
                text=True,
                cwd=root / "tests",
            )
            for threads, changes in of.items()
        ]
        lines = [process.communicate()[0].strip() for process in processes]
        assert not any(process.returncode for process in processes)
        assert all(len(line) == 64 for line in lines)
        return lines

    return printed


def test_a_fit_in_bricks_is_the_dense_fit():
    """Bit for bit, while nothing counts as empty."""
    dense, bricks = (fitted(steps=12, **changes) for changes in (DENSE | SERVED, BRICKS | SERVED))
    assert bytes_of(dense.volume) == bytes_of(bricks.volume)
    assert [r.loss for r in dense.history] == [r.loss for r in bricks.history]


def test_no_cell_is_ruled_out_by_the_first_level(monkeypatch):
    """What is thinner than its voxels has yet to form there, and where no brick may be nothing comes back."""
    how, asked, shapes = {"bricks": True, "hull": False, "levels": ((0.0, 0.5), (0.3, 0.7), (0.6, 1.0))}, [], []
    monkeypatch.setattr(Pruning, "prune", lambda self: asked.append(self.grid.shape))
    with Fitter(views(), preset("quick", **QUICK | how), box=drive.BALL_BOX) as fitter:
        for _ in range(fitter.settings.steps):
            fitter.step()
            shapes.append(fitter.grid.shape)
    assert list(dict.fromkeys(shapes))[1:2] == asked


def test_in_single_precision_a_fit_scores_as_in_double(single):
    """On whichever device: a tenth of a decibel is what two seeds differ by."""
    seen, held_out = views(), drive.ball_views()[-HELD_OUT:]
    ours = worker.score_of_fit(seen, held_out, {})
    assert ours > 15
    assert single(worker.score_of_fit, seen, held_out, {}) == pytest.approx(ours, abs=0.1)


@pytest.mark.whole
def test_a_fit_in_bricks_is_the_dense_fit_in_single_precision_on_any_number_of_threads(hashes, single):
    """The dense one on a thread a core."""
    dense = single(worker.hash_of_fit, few_images(), DENSE | TURNING)
    one, four = hashes({1: BRICKS | TURNING, 4: BRICKS | TURNING})
    assert dense == one == four


@pytest.mark.whole
def test_any_number_of_threads_same_bytes(hashes):
    """Also where the hull and pruning leave parts of the grid empty."""
    one, other, four = hashes({1: PLAIN, 2: DENSE, 4: PLAIN})
    assert one == four != other


EACH = list(zip(FIT_DENSITIES, itertools.cycle(FIT_COLOURS), LOSSES, strict=False))
IN_PAIRS = [row for row in covering(tuple(FIT_DENSITIES), tuple(FIT_COLOURS), tuple(LOSSES)) if row not in EACH]


@pytest.mark.parametrize(("density", "colour", "loss"), EACH + [whole(*row) for row in IN_PAIRS])
def test_every_reading_and_loss_comes_down(density, colour, loss):
    lr = {"lr_density": 0.1} if density == "relu" else {}
    losses = stepped(density=density, colour=colour, loss=loss, steps=30, **lr)
    assert np.isfinite(losses).all()
    assert losses[-3:].mean() < 0.7 * losses[:3].mean()


@pytest.mark.parametrize(("pyramid", "halved"), [(0.0, (0, 0, 0)), (1.0, (2, 1, 0))])
def test_coarse_levels_see_images_made_smaller(pyramid, halved):
    """Of 64 pixels a side, and voxels of 9.3, 3.3 and 2.4 pixels: by halves while a voxel is a pixel wide."""
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 4), dtype=np.uint8)
    levels = {"levels": ((0.0, 0.25), (1 / 3, 0.75), (2 / 3, 1.0)), "steps": 6, "resolution": 24}
    settings = preset("quick", **QUICK | levels | {"hull": False, "pyramid": pyramid})
    with Fitter(Views(drive.ball_cameras(64)[::5], images), settings, box=drive.BALL_BOX) as fitter:
        tiles = []
        for _ in range(6):
            fitter.step()
            tiles.append(fitter.store.tiles)
    assert tiles == [3 * (16 >> n) ** 2 for n in halved for _ in range(2)]


@pytest.mark.parametrize("weight", ["tv_density", "tv_colour", "sparsity", "distortion_weight"])
def test_every_regulariser_changes_the_fit(weight):
    """And adds to the loss from the second step on, where there is something to regularise."""
    without, with_it = stepped(steps=12), stepped(steps=12, regularised_fraction=1.0, **{weight: 0.3})
    assert np.isfinite(with_it).all()
    assert (with_it[-3:] > without[-3:]).all()


@pytest.mark.parametrize(
    ("background", "channels"), [("white", 3), ("black", 4), ((0.2, 0.5, 0.9), 4), ((0.2, 0.5, 0.9), 3)]
)
def test_any_background_with_and_without_alpha(background, channels):
    result = fitted(views(background, channels))
    assert result.volume.background == views(background).background
    assert result.history[-1].psnr > 20


# What a fit does on its way


@pytest.mark.parametrize(("steps", "wanted"), [(60, [25, 50, 60]), (50, [25, 50]), (7, [7])])
def test_reports_come_every_so_often_and_at_the_end(steps, wanted):
    assert REPORT_INTERVAL == 25
    shown = []
    result = fitted(steps=steps, show=shown.append)
    assert [r.step for r in shown] == wanted
    assert result.history == tuple(shown)
    assert [r.progress for r in shown] == [step / steps for step in wanted]
    for report in shown:
        assert np.isfinite([report.loss, report.psnr, report.rays_per_second, report.seconds_left]).all()
        assert 0 < report.occupied <= 1
    assert shown[-1].seconds_left == 0
    assert shown[-1].shape == result.volume.shape


def test_levels_refine_in_order_within_the_box_that_is_found():
    """The box comes from masks and cameras, and holds the ball."""
    levels = ((0.0, 0.4), (0.25, 0.6), (0.5, 1.0))
    shapes = []
    with Fitter(views(), preset("quick", **QUICK | {"steps": 20, "levels": levels})) as fitter:
        assert (fitter.box[0] <= -0.5).all()
        assert (fitter.box[1] >= 0.5).all()
        for _ in range(20):
            fitter.step()
            shapes.append(fitter.grid.shape)
        np.testing.assert_allclose(fitter.volume().box, fitter.box, atol=1e-12)  # every level spans the box
        finest = np.array(grid_of_box(fitter.box, 16)[1])
    coarse = [tuple(np.round((finest - 1) * scale).astype(int) + 1) for scale in (0.4, 0.6)]
    assert shapes == [coarse[0]] * 5 + [coarse[1]] * 5 + [tuple(finest)] * 10


# What ends a fit


def test_stop_stops():
    """Asked once before the first step and once after each."""
    asked = iter([False] * 8)
    with Fitter(views(), preset("quick", **QUICK), box=drive.BALL_BOX) as fitter:
        reports = list(fitter.run(lambda: next(asked, True)))
        assert fitter.steps_done == 8
        assert [r.step for r in reports] == [8]
        assert list(fitter.run(lambda: True)) == []
        assert fitter.steps_done == 8


def test_ctrl_c_keeps_the_volume():
    before = signal.getsignal(signal.SIGINT)
    shown = []

    def show(report):
        shown.append(report)
        if len(shown) == 1:
            signal.raise_signal(signal.SIGINT)

    result = fitted(show=show)
    assert result.ended == "interrupted at step 26" == result.volume.provenance["ended"]
    assert [r.step for r in shown] == [25, 26]
    assert np.isfinite(result.volume.density).all()
    assert np.ptp(result.volume.density) > 0
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("steps", [None, 40])
def test_seconds_end_a_fit(monkeypatch, steps):
    """By a clock that moves a hundredth of a second whenever it is read; the schedule follows it."""
    clock = itertools.count()
    monkeypatch.setattr(
        clock_module, "time", SimpleNamespace(perf_counter=lambda: next(clock) / 100, process_time=float)
    )
    monkeypatch.setattr(clock_module, "seconds_compiling", float)
    result = fitted(seconds=0.5, steps=steps)
    taken = result.volume.provenance["steps"]
    assert 0 < taken < 40
    assert result.ended.startswith(f"done after only {taken} steps")
    assert [r.step for r in result.history] == [taken]
    assert result.history[-1].progress == 1
    assert result.volume.shape == grid_of_box(drive.BALL_BOX, 16)[1]


def test_time_until_somebody_takes_the_first_step_is_no_part_of_the_fit(monkeypatch):
    shown = [0.0]
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(perf_counter=lambda: shown[0], process_time=float))
    with Fitter(views(), preset("quick", **QUICK | {"seconds": 100.0, "steps": None}), box=drive.BALL_BOX) as fitter:
        shown[0] += 90  # the next cell of a notebook
        assert fitter.progress == 0
        fitter.step()
        assert (fitter.position.level, fitter.seconds) == (0, 0)
        shown[0] += 90
        fitter.step()
        assert (fitter.position.level, fitter.seconds) == (len(fitter.settings.levels) - 1, 90)


def test_a_fit_makes_a_step_however_short_its_time_and_says_that_they_are_few(caplog):
    """The first compiles, and is no time of the fit."""
    result = fitted(seconds=1e-9, steps=None)
    assert result.volume.provenance["steps"] == 1 == result.history[-1].step
    assert result.ended.startswith("done after only 1 step, at level 1 of ") and "give more seconds" in result.ended
    assert result.ended in caplog.text
    assert result.seconds < 60 and result.preparation > 0


def spoil(monkeypatch, bad, after):
    """Make the gradient of one step `bad`; returns a list that gets the volume from before that step."""
    good, step = [], Fitter.step

    def spoilt(self):
        if self.steps_done == after:
            good.append(self.volume())
            self.grid.fields.d_density[0, 3, 3, 3] = bad
            self.grid.fields.block_written[0, 0, 0] = 1
        step(self)

    monkeypatch.setattr(Fitter, "step", spoilt)
    return good


@pytest.mark.parametrize("levels", [((0, 1),), ((0, 0.6), (0.5, 1))])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_keeps_the_last_good_volume(monkeypatch, bad, levels):
    good = spoil(monkeypatch, bad, 30)
    result = fitted(levels=levels)
    assert bytes_of(result.volume) == bytes_of(good[0])
    assert np.isfinite(result.volume.density).all()
    assert np.isfinite(result.volume.features).all()
    assert "not finite at step" in result.ended
    assert "\n" not in result.ended
    assert [r.step for r in result.history] == [25]


@pytest.mark.parametrize(
    ("bad", "levels"),
    [
        (np.inf, ((0, 1),)),
        (np.nan, ((0, 1),)),
        (np.inf, ((0, 0.6), (0.5, 1))),
    ],
)
def test_the_step_that_was_not_finite_is_named(monkeypatch, bad, levels):
    spoil(monkeypatch, bad, 30)
    assert "not finite at step 30" in fitted(levels=levels).ended


# What a fit refuses


@pytest.mark.parametrize("channels", [3, 4])
def test_rays_that_miss_the_box_are_an_error(channels):
    with pytest.raises(RaymarchError, match="check"):
        fit(views(channels=channels), preset("quick", **QUICK), box=[(-0.8, -0.8, 30), (0.8, 0.8, 31.6)])


def test_a_closed_fitter_says_so():
    fitter = Fitter(views(), preset("quick", **QUICK), box=drive.BALL_BOX)
    fitter.close()
    fitter.close()
    for use in (fitter.step, fitter.volume, lambda: next(fitter.run())):
        with pytest.raises(RaymarchError, match="is closed"):
            use()


def test_a_report_after_a_picture_is_of_the_rays_that_were_drawn():
    reports = []
    for pictures in (0, 1):
        with Fitter(views(), preset("quick", **QUICK), box=drive.BALL_BOX) as fitter:
            for _ in range(3):
                fitter.step()
            for camera in views().cameras[:pictures]:
                fitter.render(camera, "black")
            reports.append(fitter.report())
            fitter.step()
            reports.append(fitter.report())
    assert [r.psnr for r in reports[:2]] == [r.psnr for r in reports[2:]]
    assert reports[0].psnr != reports[1].psnr


@pytest.mark.parametrize("side", [1, 2])
def test_render_shows_the_volume_as_it_stands(side):
    """From the fit's own grid: what the volume, taken out, gives, of as many rays a pixel."""
    how = preset("quick", **QUICK, supersample=side, supersample_from=0.0, supersample_seen=0.0)
    with Fitter(views(), how, box=[(-1, -1, -1), (1, 1, 1)]) as fitter:
        for _ in range(5):
            fitter.step()
        camera = views().cameras[1]
        shown, single = (fitter.render(camera, "black", march) for march in (None, March(supersample=1)))
        taken = render(fitter.volume(), camera, background="black")
        fitter.step()  # and the fit goes on
    np.testing.assert_allclose(shown, taken, atol=1e-5)
    assert shown.max() > 0.05
    assert (single == shown).all() == (side == 1)


@pytest.mark.parametrize(("share", "seen"), [(0.5, 0.0), (0.0, 1.0), (0.0, 1e6)])
def test_pixels_are_of_several_rays_from_a_share_of_the_fit_on_if_each_was_drawn_often_enough(share, seen):
    """What was fitted last is what the volume tells; a fit that ends before is one of single rays."""
    how = {"supersample": 2, "supersample_from": share, "supersample_seen": seen}
    said, wanted = {}, {}
    with Fitter(views(), preset("quick", **QUICK, **how)) as fitter:
        for step in range(QUICK["steps"] // 2 + 1):
            fitter.step()
            said[step] = fitter.volume().provenance["supersample"]
            drawn = step * fitter.rays / (fitter.store.listed * fitter.store.fields.tile**2)
            wanted[step] = 2 if step >= share * QUICK["steps"] and drawn >= seen else 1
    assert said == wanted
    assert set(said.values()) == ({1} if seen == 1e6 else {1, 2})


def test_a_volume_taken_out_is_as_good_as_the_fit():
    """But for the samples that cells along the hull share, see `Grid.download_carved`."""
    seen = views()
    with Fitter(seen, preset("quick", **QUICK)) as fitter:
        list(fitter.run())
        own = [fitter.render(camera) for camera in seen.cameras[:4]]
        volume = fitter.volume()
    taken = [render(volume, camera) for camera in seen.cameras[:4]]
    quality = [np.mean([psnr(image, seen.rgb(i)) for i, image in enumerate(images)]) for images in (own, taken)]
    assert abs(quality[0] - quality[1]) < 0.1
    assert np.abs(np.array(own) - taken).max() < 0.2


def table_of(opacities):
    """A grey table of values from -1 to 1."""
    knots = np.linspace(-1, 1, len(opacities))
    return TransferFunction(knots, [(0.5, 0.5, 0.5)] * len(knots), opacities, 0.2)


TABLES = [(0.0, 0.5), (0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.0), (0.3, 0.3, 0.02, 0.02, 0.6)]


@pytest.mark.parametrize("opacities", TABLES)
def test_a_fit_through_a_table_begins_faint_wherever_the_table_is_clear(opacities):
    """At the nearest value to the clear one that is as opaque as the start is to be."""
    table, enough = table_of(opacities), -np.log1p(-0.05) / 0.1
    first = float(activation_through(table, 0.05, 0.1).sigma(0.0))
    assert table.sigma(first) == pytest.approx(enough, rel=0.01)
    assert (table.sigma(np.linspace(clear_value(table), first, 99)[:-1]) < enough).all()


@pytest.mark.parametrize("opacities", TABLES)
def test_outside_of_the_hull_a_fit_through_a_table_is_saved_as_clear_as_the_table_gets(opacities):
    small = views().images.copy()
    small[:, np.hypot(*np.indices((24, 24)) - 11.5) > 3, 3] = 0  # the middle of the ball alone
    table = table_of(opacities)
    how = {"resolution": 32, "mode": "transfer", "transfer": table, "levels": ((0.0, 1.0),)}
    settings = preset("quick", **QUICK | how)
    with Fitter(replace(views(), images=small), settings, box=drive.BALL_BOX) as fitter:
        whole, volume = fitter.grid.download()[0], fitter.volume()
    outside = volume.density != whole
    assert 0.3 < outside.mean() < 0.9
    np.testing.assert_allclose(table(volume.activation.sigma(volume.density[outside]))[:, 3], min(opacities), atol=1e-6)


@pytest.mark.parametrize("initial_alpha", [1e-5, 5e-4])
@pytest.mark.parametrize("refresh", [1, 100])
def test_a_fit_that_begins_fainter_than_what_counts_as_empty_is_not_ended_by_that(initial_alpha, refresh):
    """It is asked what is empty no sooner than most of what is seen can have come over the threshold."""
    result = fitted(steps=60, initial_alpha=initial_alpha, refresh=refresh, levels=((0.0, 0.5), (0.1, 1.0)))
    assert result.ended == "done" and result.history[-1].psnr > 15


def test_images_without_alpha_are_held_against_the_volume_before_its_own_background():
    """Which may have been learned: a set's own says nothing of images that are whole."""
    volume = replace(fitted(steps=12).volume, background=(0.1, 0.3, 0.2))
    cameras = drive.ball_cameras(32)[:2]
    images = np.stack([np.round(255 * np.clip(render(volume, camera), 0, 1)).astype(np.uint8) for camera in cameras])
    assert evaluate(volume, Views(cameras, images)).psnr > 45
    opaque = np.concatenate([images, np.full_like(images[..., :1], 255)], -1)
    opaque[..., 3][(images == images[0, 0, 0]).all(-1)] = 0
    assert evaluate(volume, Views(cameras, opaque, background=(0.1, 0.3, 0.2))).psnr > 45
