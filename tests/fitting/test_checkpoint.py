"""Law: a fit that goes on from a checkpoint ends with the bytes of one that was never cut, or is told why it cannot."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import drive
import h5py
import numpy as np
import pytest
from whole import whole

from raymarch import engine
from raymarch.device.brick_grid import BrickGrid
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints import saver as module
from raymarch.fitting.checkpoints.checkpoint import load_checkpoint, require_same, samples_of, save_checkpoint
from raymarch.fitting.checkpoints.checkpoint_file import MAX_NOTE_LENGTH, Stream, read_record, write_streamed
from raymarch.fitting.checkpoints.saver import Checkpoints
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import REPORT_INTERVAL, Fitter
from raymarch.fitting.plan import resolution
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.pruning import narrow
from raymarch.fitting.report import NoStep
from raymarch.fitting.settings.settings import preset
from raymarch.views.views import Views

STEPS = 56
SETTINGS = preset(
    "quick",
    resolution=16,
    rays=512,
    sh_degree=0,
    slots=1,
    steps=STEPS,
    refresh=10,
    exposure=True,
    learn_background=True,
    levels=((0.0, 0.5), (0.3, 0.7), (0.6, 1.0)),
)
LEVELS_BEGIN = (17, 34)
BETWEEN = set(np.random.default_rng(0).integers(1, STEPS, 5).tolist()) - {*LEVELS_BEGIN, LEVELS_BEGIN[0] + 1}
CUTS = [*LEVELS_BEGIN, LEVELS_BEGIN[0] + 1, min(BETWEEN), *map(whole, sorted(BETWEEN)[1:])]
ALL = slice(None)


@cache
def views() -> Views:
    """A ball without alpha, each image a little darker than the last."""
    seen = drive.ball_views()
    images = [255 * (1 - 0.01 * i) * seen.rgb(i) for i in range(len(seen))]
    return replace(seen, images=np.round(images).astype(np.uint8))


def fitter(seen=None, settings=SETTINGS, box=drive.BALL_BOX) -> Fitter:
    return Fitter(seen or views(), settings, box=box)


def step_to(one: Fitter, step: int) -> None:
    """Step as `run` does, reports included."""
    while one.steps_done < step:
        one.step()
        if one.steps_done % REPORT_INTERVAL == 0:
            one.report()


def result_of(volume, history) -> tuple:
    """All that a fit comes to, but for times."""
    reports = [(r.step, r.loss, r.psnr, r.shape, r.occupied, r.progress, r.boxes) for r in history]
    told = volume.provenance["exposures"], volume.background, volume.provenance["steps"]
    return volume.density.tobytes(), volume.features.tobytes(), volume.world_from_index.tobytes(), told, reports


@cache
def uncut() -> tuple:
    result = fit(views(), SETTINGS, box=drive.BALL_BOX)
    return result_of(result.volume, result.history)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint on the second level, and the plan of its fit."""
    path = tmp_path_factory.mktemp("saved") / "v.h5.checkpoint"
    with fitter() as one:
        step_to(one, 27)
        save_checkpoint(one, path)
        return SimpleNamespace(path=path, plan=one.plan)


@pytest.mark.parametrize("cut", CUTS)
def test_a_fit_that_was_cut_ends_as_one_that_was_not(cut, tmp_path):
    uninterrupted = uncut()  # before another fitter is open: one after the other they take one tree
    with fitter() as first:
        step_to(first, cut)
        save_checkpoint(first, tmp_path / "c")
    with fitter() as second:
        load_checkpoint(second, tmp_path / "c")
        assert second.steps_done == cut
        list(second.run())
        assert result_of(second.volume(), second.history) == uninterrupted


def test_learning_rates_that_were_changed_go_on_too(tmp_path):
    ends = []
    with fitter() as first:
        step_to(first, 20)
        first.rates.multiply(20, 0.5)
        step_to(first, 27)
        save_checkpoint(first, tmp_path / "c")
        list(first.run())
        ends.append((result_of(first.volume(), first.history), first.volume().provenance["rates_multiplied"]))
    with fitter() as second:
        load_checkpoint(second, tmp_path / "c")
        list(second.run())
        ends.append((result_of(second.volume(), second.history), second.volume().provenance["rates_multiplied"]))
    assert ends[0] == ends[1]
    assert ends[0][0] != uncut()
    assert ends[0][1] == [[20, 0.5]]


IN_BRICKS = replace(SETTINGS, bricks=True, resolution=40, prune_weight=0.05)
WIDE = 4 * np.array(drive.BALL_BOX)


@pytest.fixture
def pool_kept(monkeypatch):
    """Growing frees no tree: the next that grows takes one that there was, and compiles nothing again."""
    monkeypatch.setattr("raymarch.device.brick_grid.release", lambda: 0)


def test_a_fit_in_bricks_that_was_cut_ends_as_one_that_was_not(tmp_path, pool_kept):
    """Cut on the middle level, whose bricks and cells are those that a ray saw; the second has to grow for them."""
    seen = drive.ball_views()
    with fitter(seen, IN_BRICKS, WIDE) as first:
        step_to(first, 20)
        save_checkpoint(first, tmp_path / "c")
        step_to(first, STEPS)
        assert first.grid.bricks < first.grid.table().size
        wanted = [*first.grid.download(), *drive.distances(first.grid), first.grid.table()]
    with fitter(seen, IN_BRICKS, WIDE) as second:
        second.grid.room = 9
        load_checkpoint(second, tmp_path / "c")
        assert second.grid.room > 9
        step_to(second, STEPS)
        found = [*second.grid.download(), *drive.distances(second.grid), second.grid.table()]
    assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]


def test_a_fit_in_bricks_gives_back_what_only_it_needs_before_its_volume_is_made(monkeypatch):
    """The two together were its peak."""
    told: list[str] = []
    for owner, name in ((BrickGrid, "end_fit"), (BrickGrid, "carved_samples")):
        monkeypatch.setattr(owner, name, noting(getattr(owner, name), told))
    fit(drive.ball_views(), replace(IN_BRICKS, steps=2), box=WIDE)
    assert told == ["end_fit", "carved_samples"]


def noting(method, told):
    """The method, that notes its name as it is called."""

    def called(*args, **how):
        told.append(method.__name__)
        return method(*args, **how)

    return called


def test_a_fit_whose_bricks_run_out_says_so_once_and_goes_on_at_the_level_it_has(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("raymarch.fitting.plan.plan.room_to_grow", lambda *_: 27)
    with fitter(drive.ball_views(), IN_BRICKS, WIDE) as one:
        one.grid.room = 27
        step_to(one, 30)
        save_checkpoint(one, tmp_path / "c")
        step_to(one, STEPS)
        shape = one.grid.shape
        wanted = one.grid.download()
        assert shape == one.plan.shape_of(0)
        assert one.volume().shape == shape
    said = [record.message for record in caplog.records if "room for 27" in record.message]
    assert (
        len(said) == 2
        and "bricks are wanted for 28 x 28 x 28 samples" in said[0]
        and "goes on with 21 x 21 x 21" in said[0]
    )
    with fitter(drive.ball_views(), IN_BRICKS, WIDE) as other:
        other.grid.room = 27
        load_checkpoint(other, tmp_path / "c")
        step_to(other, STEPS)
        assert [a.tobytes() for a in other.grid.download()] == [a.tobytes() for a in wanted]


def test_saving_changes_nothing_and_every_number_comes_back(tmp_path):
    """Cells that the density as it stands would not mark, zeros with a sign, gradients that Adam passes over, as their
    square is 0."""
    with fitter() as first:
        step_to(first, 20)
        first.grid.fields.features.grad[1, 2, 3] = (1e-200, 0.0, -1e-200)
        first.grid.fields.m_density[2, 1, 0] = -0.0
        marked = np.zeros(first.grid.cells, bool)
        marked[:2, 1, 2:] = True
        drive.set_occupied(first.grid, marked)  # by a density of some steps ago
        narrow(first.grid, first.store, None, first.grid.voxel)
        save_checkpoint(first, tmp_path / "c")
        state = [numbers.tobytes() for numbers in samples_of(first.grid)]
        cells = drive.distances(first.grid)
        listed = first.store.fields.list.to_numpy()[: first.store.listed]
    with fitter() as second:
        load_checkpoint(second, tmp_path / "c")
        assert [numbers.tobytes() for numbers in samples_of(second.grid)] == state
        np.testing.assert_array_equal(drive.distances(second.grid), cells)
        np.testing.assert_array_equal(second.store.fields.list.to_numpy()[: second.store.listed], listed)


def test_seconds_that_were_used_count_on(tmp_path):
    with fitter() as first:
        first.clock.go_on(1000.0, 0.0)
        first.step()
        save_checkpoint(first, tmp_path / "c")
    with fitter() as second:
        load_checkpoint(second, tmp_path / "c")
        assert 1000 <= second.seconds < 1500
        assert second.position.preparation >= read_record(tmp_path / "c")["ready"]
        before = second.position.preparation
        second.step()
        assert second.position.preparation > before


def test_slabs_of_any_thickness_make_one_file(monkeypatch, tmp_path):
    digests = []
    with fitter() as one:
        step_to(one, 5)
        for size in (1, 30_000, 1 << 30):
            monkeypatch.setattr("raymarch.fitting.checkpoints.checkpoint.SLAB_BYTES", size)
            save_checkpoint(one, tmp_path / "c")
            with h5py.File(tmp_path / "c") as file:
                digests.append(file["samples"][()].tobytes())
            load_checkpoint(one, tmp_path / "c")
    assert digests[0] == digests[1] == digests[2] != b""


# In one call


def interrupted(at, **how):
    """A fit that ends, as by kill -9, when it has reported step `at`."""

    class Killed(Exception):
        pass

    def show(report):
        if report.step >= at:
            raise Killed

    with pytest.raises(Killed):
        fit(views(), SETTINGS, box=drive.BALL_BOX, show=show, **how)


def test_a_fit_goes_on_after_it_was_killed(tmp_path):
    path = tmp_path / "v.h5.checkpoint"
    interrupted(50, checkpoints=Checkpoints(path, every=1e-9))
    assert (read_record(path)["steps"], os.listdir(tmp_path)) == (25, [path.name])
    result = fit(views(), SETTINGS, box=drive.BALL_BOX, checkpoints=Checkpoints(path, resume=True))
    assert result_of(result.volume, result.history) == uncut()
    assert result.resumed_from == result.volume.provenance["resumed_from"] == 25
    assert read_record(path)["every"] == 1e-9
    assert read_record(path)["steps"] == 50  # how often it saves was kept too


def test_ctrl_c_loses_nothing(tmp_path):
    path = tmp_path / "v.h5.checkpoint"

    def stop(report):
        if report.step == 25:
            signal.raise_signal(signal.SIGINT)

    first = fit(views(), SETTINGS, box=drive.BALL_BOX, checkpoints=Checkpoints(path), show=stop)
    assert first.ended == "interrupted at step 26"
    assert read_record(path)["steps"] == 26
    second = fit(views(), SETTINGS, box=drive.BALL_BOX, checkpoints=Checkpoints(path, resume=True))
    assert result_of(second.volume, second.history) == uncut()


def test_a_stop_after_the_last_step_cuts_nothing(tmp_path):
    def stop(report):
        if report.step == STEPS:
            signal.raise_signal(signal.SIGINT)

    result = fit(views(), SETTINGS, box=drive.BALL_BOX, checkpoints=Checkpoints(tmp_path / "c"), show=stop)
    assert (result.ended, os.listdir(tmp_path)) == ("done", [])
    assert result_of(result.volume, result.history) == uncut()


def test_a_fit_that_was_stopped_before_its_first_step_leaves_no_checkpoint(tmp_path):
    how = {"checkpoints": Checkpoints(tmp_path / "c"), "between": lambda fitter: True}
    with pytest.raises(NoStep, match="nothing was fitted: interrupted before the first step; begin anew"):
        fit(views(), SETTINGS, box=drive.BALL_BOX, **how)
    assert os.listdir(tmp_path) == []


def test_the_note_of_a_checkpoint_stays_until_another_is_given(tmp_path):
    path = tmp_path / "c"
    with fitter() as one:
        save_checkpoint(one, path, note="mine")
    for given, kept in (("", "mine"), ("another", "another")):
        with fitter() as two:
            saving = module.CheckpointSaver(Checkpoints(path, resume=True, note=given))
            saving.begin(two)
            two.step()
            saving.save(two)
        record = read_record(path)
        assert (record["note"], record["steps"]) == (kept, 1 + len(given) // 7)


def test_a_note_that_no_reader_takes_is_not_written(saved, tmp_path):
    """And the older checkpoint stays as it was."""
    path = tmp_path / "c"
    shutil.copy(saved.path, path)
    before, longest = path.read_bytes(), "x" * MAX_NOTE_LENGTH
    said = "note has 1,048,577 letters, want a text of at most 1,048,576 letters; shorten it"
    with fitter() as one:
        for save in (save_checkpoint, lambda one, path, note: Checkpoints(path, note=note)):
            with pytest.raises(RaymarchError, match=said):
                save(one, path, note=longest + "x")
        assert path.read_bytes() == before
        save_checkpoint(one, path, note=longest)
    assert read_record(path)["note"] == longest


def test_a_full_disk_is_said_and_the_fit_goes_on(monkeypatch, tmp_path, caplog, saved):
    """With the older checkpoint kept as it was."""
    path = tmp_path / "v.h5.checkpoint"
    shutil.copy(saved.path, path)
    before = path.read_bytes()

    def full(file, at, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("raymarch.fitting.checkpoints.checkpoint_file._write_all", full)
    with caplog.at_level(logging.WARNING):
        result = fit(views(), SETTINGS, box=drive.BALL_BOX, checkpoints=Checkpoints(path, every=1e-9, resume=True))
    assert result_of(result.volume, result.history) == uncut()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    said = [r.getMessage() for r in caplog.records if "no checkpoint" in r.getMessage()]
    assert len(said) == 1
    assert "no checkpoint at step 50, that of step 27 is kept: " in said[0]
    assert "No space left on device" in said[0]


def test_a_fit_that_ran_away_keeps_the_checkpoint_from_before(monkeypatch, tmp_path):
    path, step = tmp_path / "v.h5.checkpoint", Fitter.step

    def spoilt(self):
        if self.steps_done == 30:
            self.grid.fields.d_density[0, 3, 3, 3] = np.nan
            self.grid.fields.block_written[0, 0, 0] = 1
        step(self)
        if self.steps_done == 31:
            with pytest.raises(RaymarchError, match="not finite at step 30"):
                save_checkpoint(self, path)

    monkeypatch.setattr(Fitter, "step", spoilt)
    result = fit(views(), SETTINGS, box=drive.BALL_BOX, checkpoints=Checkpoints(path, every=1e-9))
    assert "not finite at step 30" in result.ended
    assert read_record(path)["steps"] == 25


# What is refused


def test_a_disk_without_room_is_refused_before_the_first_step(monkeypatch, tmp_path):
    def usage(folder):
        return SimpleNamespace(total=1 << 40, free=1000)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    with fitter() as one, pytest.raises(RaymarchError, match="bytes are to be written but 1,000 are free"):
        module.CheckpointSaver(Checkpoints(tmp_path / "c")).begin(one)


def turned_a_bit(seen):
    """By as much as the last bit of another machine's arithmetic."""
    cameras = [c.exactly(c.world_from_camera * (1 + 2e-16)) for c in seen.cameras]
    assert any((a.world_from_camera != b.world_from_camera).any() for a, b in zip(cameras, seen.cameras, strict=True))
    return replace(seen, cameras=cameras)


def changed_image(seen):
    images = seen.images.copy()
    images[3, 5, 5, 0] ^= 1
    return replace(seen, images=images)


def moved_camera(seen):
    pose = seen.cameras[2].world_from_camera.copy()
    pose[0, 3] += 1e-6
    moved = [replace(c, world_from_camera=pose) if i == 2 else c for i, c in enumerate(seen.cameras)]
    return replace(seen, cameras=moved)


def zoomed(seen):
    return replace(seen, cameras=[replace(c, focal=(c.focal[0] + 1, c.focal[1])) for c in seen.cameras])


def masked(seen):
    mask = np.ones(seen.images.shape[1:3], bool)
    mask[0] = False
    return replace(seen, masks=[mask if i in (1, 4) else None for i in range(len(seen))])


OTHERS = [
    (changed_image, "is of a fit to other views: the image of 003 differs"),
    (moved_camera, "the camera of 002 differs"),
    (zoomed, r"15 of 15 cameras differ \(000, 001, 002, ...\)"),
    (masked, r"2 of 15 masks differ \(001, 004\)"),
    (lambda seen: seen[:-1], "there were 15 views, now 14"),
    (lambda seen: replace(seen, background="black"), "the background was 1,1,1, is 0,0,0"),
]


@pytest.mark.parametrize(("change", "said"), OTHERS)
def test_other_views_are_refused_by_name(change, said, saved):
    with pytest.raises(RaymarchError, match=said):
        require_same(read_record(saved.path), replace(saved.plan, survey=Survey(change(views()))), saved.path)


CHANGES = [
    ({"seed": 3, "steps": 99}, "other settings: steps was 56, is 99, seed was 0, is 3; give what it had, or begin"),
    ({"lr_density": 0.25}, "lr_density was 0.5, is 0.25"),
    ({"levels": ((0.0, 1.0),)}, r"levels was \[\[0.0, 0.5\], .*\], is \[\[0.0, 1.0\]\]"),
    ({"density": "relu"}, "density was 'softplus', is 'relu'"),
    ({"seconds": 60.0, "steps": None}, "steps was 56, is None, seconds was None, is 60.0"),
]


@pytest.mark.parametrize(("changes", "said"), CHANGES)
def test_other_settings_are_refused_by_name(changes, said, saved):
    from raymarch.fitting.settings.settings import change_settings

    with pytest.raises(RaymarchError, match=said):
        require_same(
            read_record(saved.path), replace(saved.plan, settings=change_settings(SETTINGS, **changes)), saved.path
        )


def test_another_box_is_refused_and_another_budget_is_not(saved):
    record = read_record(saved.path)
    with pytest.raises(RaymarchError, match=r"another grid: box was \[-0.8.*\], is \[-1.8"):
        require_same(record, replace(saved.plan, box=saved.plan.box - 1), saved.path)
    same = replace(saved.plan, settings=replace(SETTINGS, memory=3.0), box=saved.plan.box * (1 + 2e-16))
    require_same(record, replace(same, survey=Survey(turned_a_bit(views()))), saved.path)


def test_a_grid_in_bricks_is_another(saved):
    record = read_record(saved.path)
    sparse = replace(saved.plan, bricks=5, settings=replace(SETTINGS, bricks=True))
    with pytest.raises(RaymarchError, match="another grid: sparse was False, is True"):
        require_same(record, sparse, saved.path)


@pytest.mark.parametrize("asked", [None, 20])
def test_a_resolution_that_was_found_is_that_of_the_fit_gone_on_with(asked, monkeypatch, tmp_path):
    """By fewer threads, or with less memory, another would be found."""
    how = {"steps": 6, "resolution": asked, "rays": 256, "sh_degree": 0, "slots": 1}
    monkeypatch.setattr(resolution, "MIN_RESOLUTION", 8)
    monkeypatch.setattr(resolution, "RAYS_A_SAMPLE", 0.02 * resolution.RAYS_A_SAMPLE)
    with Fitter(views(), "default", box=drive.BALL_BOX, **how) as one:
        one.step()
        found = one.settings.resolution
        save_checkpoint(one, tmp_path / "c")
    monkeypatch.setattr(resolution, "RAYS_A_SAMPLE", 1e9)
    with Fitter(views(), "default", box=drive.BALL_BOX, **how) as one:
        assert one.settings.resolution == (asked or 8)
    result = fit(views(), "default", box=drive.BALL_BOX, checkpoints=Checkpoints(tmp_path / "c", resume=True), **how)
    assert result.resumed_from == 1 and result.settings.resolution == found == (asked or found) > 8


@pytest.fixture(scope="module")
def target():
    """A fitter that damaged checkpoints are put into."""
    with fitter() as one:
        yield one


def test_no_flipped_bit_goes_unseen(saved, target, tmp_path):
    rng, data, path = np.random.default_rng(1), saved.path.read_bytes(), tmp_path / "c"
    load_checkpoint(target, saved.path)
    for at in rng.integers(0, len(data), 40):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.integers(8))]) + data[at + 1 :])
        try:
            load_checkpoint(target, path)
        except RaymarchError as error:
            assert "\n" not in str(error)
            assert str(path) in str(error)
        else:  # between what HDF5 has written
            with h5py.File(path) as flipped, h5py.File(saved.path) as kept:
                assert all(flipped[name][()].tobytes() == kept[name][()].tobytes() for name in kept)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_no_cut_goes_unseen(share, saved, target, tmp_path):
    data, path = saved.path.read_bytes(), tmp_path / "c"
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(RaymarchError, match=f"{path}: is (damaged|empty|not HDF5)"):
        load_checkpoint(target, path)


def rewritten(saved, path, **changes):
    """The checkpoint with some datasets changed, its digest right."""
    with h5py.File(saved.path) as file:
        arrays = {name: np.asarray(file[name][()], file[name].dtype) for name in file if name != "digest"}
        notes = {name: np.asarray(file.attrs[name]) for name in file.attrs}
    arrays |= {name: change(arrays[name]) for name, change in changes.items()}
    write_streamed(path, notes, {name: Stream.of(array) for name, array in arrays.items()})
    return path


def put(value):
    def change(array):
        array = array.copy()
        array.reshape(-1)[0] = value
        return array

    return change


HOSTILE = [
    ({"samples": put(np.nan)}, "samples have numbers that are not finite"),
    ({"samples": lambda a: a[:-1]}, "samples is float64 "),
    ({"samples": lambda a: a.astype("<f4")}, "samples is float32 "),
    ({"touched": lambda a: a[:-1]}, "touched is uint8 "),
    ({"occupied": lambda a: np.tile(a, 100)}, "occupied is uint8 "),
    ({"world_from_index": put(np.inf)}, "inf"),
    ({"exposures": put(np.inf)}, "exposures has numbers that are not finite"),
    ({"moments": lambda a: a[:2]}, "moments is float64"),
    ({"history": lambda a: a[:, :3]}, "history is float64"),
    ({"record": lambda a: np.array(b"{}")}, "record: steps is missing, want 0 to 2147483647"),
    ({"record": lambda a: np.array(b'{"steps": NaN}')}, "has the number NaN"),
    ({"record": lambda a: np.array(b"[" * 100_000)}, "has too many values"),
    ({"record": lambda a: np.array(a.tolist().replace(b'"note": ""', b'"note": 3'))}, "note is 3, want a text"),
    (
        {"record": lambda a: np.array(a.tolist().replace(b'"cameras": [[', b'"cameras": [[[], '))},
        "cameras is a list of",
    ),
    ({"record": lambda a: np.array(a.tolist().replace(b'"level": 1', b'"level": 9'))}, "level is 9 of 3"),
    ({"record": lambda a: np.array(a.tolist().replace(b'"steps": 27', b'"steps": -1'))}, "steps is -1, want 0 to"),
]


@pytest.mark.parametrize(("changes", "said"), HOSTILE)
def test_what_no_checkpoint_has_is_refused(changes, said, saved, target, tmp_path):
    with pytest.raises(RaymarchError, match=said) as error:
        load_checkpoint(target, rewritten(saved, tmp_path / "c", **changes))
    assert "\n" not in str(error.value)


def test_there_must_be_one_to_resume_and_none_to_begin_anew(saved, tmp_path):
    path = tmp_path / "v.h5.checkpoint"
    with pytest.raises(RaymarchError, match="there is no checkpoint to resume from"):
        Checkpoints(path, resume=True).require()
    Checkpoints(path).require()
    shutil.copy(saved.path, path)
    with pytest.raises(RaymarchError, match="has a fit of 27 steps and .* s that did not come to its end; go on with"):
        Checkpoints(path).require()
    Checkpoints(path, overwrite=True).require()
    path.write_text("mine")
    for resume in (False, True):
        with pytest.raises(RaymarchError, match="is not HDF5|is no checkpoint of raymarch's and would be lost"):
            Checkpoints(path, resume=resume).require()
    assert path.read_text() == "mine"


def test_other_software_is_said(saved, target, tmp_path, caplog):
    said, other = (f'"{engine.NAME}": "{of}'.encode() for of in ("", "0."))
    path = rewritten(saved, tmp_path / "c", record=lambda a: np.array(a.tolist().replace(said, other)))
    with caplog.at_level(logging.WARNING):
        load_checkpoint(target, path)
    assert f"was made by {engine.NAME} 0." in caplog.text
