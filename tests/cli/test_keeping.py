"""Laws: what raymarch did not write it does not write over unasked, finished volumes stay, and no fit is lost.

The command line runs in this process, on volumes and images of a few samples.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import logging
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from covering import covering
from PIL import Image
from rich.console import Console
from rich.progress import Progress

from raymarch import cli, runtime
from raymarch.cli import output, progress
from raymarch.cli.output import print_json
from raymarch.device.memory import Memory
from raymarch.errors import RaymarchError
from raymarch.evaluation import held_out
from raymarch.fitting import fit as fitting
from raymarch.fitting import save_fit
from raymarch.fitting.level_schedule import describe_ending
from raymarch.fitting.plan.plan import Plan
from raymarch.fitting.report import NOT_FINITE, Fit, Report
from raymarch.fitting.save_fit import save_volume
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.boxes import affine_of_box, grid_of_box
from raymarch.geometry.camera import Camera
from raymarch.io.files import temporary
from raymarch.io.files.atomic import replace_file, replace_folder, require_writable
from raymarch.io.images.write import folder_for, write_png
from raymarch.io.volumes.volume_file import load, save
from raymarch.system.interrupt import catch_first_interrupt, hold_interrupts, interrupt_on_end_signals
from raymarch.viewer.server.open_browser import announce
from raymarch.volumes.volume import Volume

INTERRUPTED = "interrupted at step 16"
RUN_AWAY = f"{NOT_FINITE} at step 3; the volume from before it is kept"
HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)
posix = pytest.mark.skipif(os.name != "posix", reason="locks, limits and signals of POSIX")
CUT_SHORT = [INTERRUPTED, RUN_AWAY]
FINISHED = ["done", "done after only 9 steps; give more seconds", "stepped", None]


def volume(ended=None, level=0.5) -> Volume:
    provenance = {"steps": 9, **({} if ended is None else {"ended": ended})}
    return Volume(np.full((3, 3, 3), level), np.zeros((3, 3, 3, 3)), np.eye(4), provenance=provenance)


def image_set(folder: Path) -> Path:
    """Two views of 4 x 4 as split test, written by another program."""
    (folder / "test").mkdir(parents=True)
    frames = []
    for i in range(2):
        pose = Camera.look_at((0, -4 - i, 0), width=4, height=4).world_from_camera.tolist()
        frames.append({"file_path": f"./test/r_{i}", "transform_matrix": pose})
        Image.fromarray(np.full((4, 4, 4), 200 + i, np.uint8)).save(folder / "test" / f"r_{i}.png")
    (folder / "transforms_test.json").write_text(json.dumps({"camera_angle_x": 0.7, "frames": frames}))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder: a volume, two image sets, a folder with somebody's picture."""
    monkeypatch.chdir(tmp_path)
    save(volume(), "v.h5")
    for name in ("A", "B"):
        image_set(tmp_path / name)
    (tmp_path / "mine").mkdir()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "mine" / "0001.png")
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def ran(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


# Nothing of others is written over.

REFUSED = {
    "render v.h5 --views A --split test --out B/test": "B/test/r_0.png: is no picture of raymarch's and would be lost,"
    " and so would 1 more; choose another folder, or --overwrite",
    "evaluate v.h5 A --images B/test": "B/test/r_0.png: is no picture of raymarch's",
    "render v.h5 --orbit 3 --out mine": "mine/0001.png: is no picture of raymarch's and would be lost; choose another",
    "render v.h5 --views A --out A/test --overwrite": "A/test: lies in the image set A",
    "render v.h5 --orbit 1 --out v.h5": "v.h5: folder cannot be made",
    "render v.h5 --orbit 1 --out ''": "'': is no folder",
    "evaluate v.h5 A --images ''": "'': is no folder",
    "fit A --split test --out ''": "'': volumes are saved as HDF5; end the name in .h5",
}


def require_refusal(line, said, here, capsys):
    """Assertion that a command is refused in one line that begins so, and that all files are as they were."""
    before = contents(here)
    code, out, err = ran(capsys, *shlex.split(line))
    assert (code, out, contents(here)) == (1, "", before)
    assert err.startswith(f"raymarch: {said}") and err.count("\n") == 1


@pytest.mark.parametrize("line", REFUSED)
def test_files_of_others_are_refused_before_anything_is_done(line, here, capsys, monkeypatch):
    monkeypatch.setattr("raymarch.rendering.renderer.Renderer.__init__", lambda *_: pytest.fail("begun"))
    require_refusal(line, REFUSED[line], here, capsys)


NAMES = {
    "fit A --split test --out v.xdmf": "v.xdmf: volumes are saved as HDF5; end the name in .h5 or .hdf5",
    "fit A --split test --refine --out v.nrrd": "v.nrrd: volumes are saved as HDF5; end the name in .h5",
    "fit A --split test --resume --out nowhere/v.h5": "nowhere/v.h5: there is no folder",
    "evaluate v.h5 A --sheet sheet.jpg": "sheet.jpg: pictures are written as PNG",
    "evaluate v.h5 A --sheet nowhere/sheet.png": "nowhere/sheet.png: there is no folder",
    "evaluate v.h5 A --images one.png": "one.png: is the name of a picture",
    "evaluate v.h5 A --errors A/errors": "A/errors: lies in the image set A",
    "evaluate v.h5 A --images new --errors ./new": "./new: is the folder of --images too",
    "evaluate v.h5 A --images new/images --errors new": "new/images: folder cannot be made (No such file or directory)",
    "evaluate v.h5 A --images new --errors new/sub/errors": "new/sub/errors: folder cannot be made",
    "evaluate v.h5 A --images new --sheet new/sheet.jpg": "new/sheet.jpg: pictures are written as PNG",
    "evaluate v.h5 A --images new --sheet new/sub/sheet.png": "new/sub/sheet.png: there is no folder",
    "render v.h5 --views A --out nowhere/new": "nowhere/new: folder cannot be made (No such file or directory)",
    "render v.h5 --views A --out v.h5": "v.h5: folder cannot be made (File exists)",
    "render v.h5 --views A --out clip.avi": "clip.avi: videos are .mp4",
    "doctor A --volume v.h5 --plot plot.jpg": "plot.jpg: pictures are written as PNG",
    "slices v.h5 --out slices.jpg": "slices.jpg: pictures are written as PNG",
    "export v.h5 mesh.txt": "mesh.txt: meshes are written as .ply",
    "convert v.h5 v.zip": "v.zip: volumes are saved as HDF5, NRRD",
    "convert v.h5 w.xdmf": "w.h5: is there, and w.xdmf would put its own values in its place",
    "convert v.h5 v.xdmf": "v.h5: is what is read, and would be lost",
    "convert A views.txt": "views.txt: image sets are written as HDF5",
    "cameras mine --out nowhere/new": "nowhere/new: there is no folder",
}


@pytest.mark.parametrize("line", NAMES)
def test_a_name_that_cannot_be_written_is_refused_before_anything_is_read(line, here, capsys, monkeypatch):
    save(volume(), "w.h5")
    for read in ("volumes.volume_file.read_volume", "image_sets.frames.read_headers"):
        monkeypatch.setattr(f"raymarch.io.{read}", lambda *_, **__: pytest.fail("read"))
    require_refusal(line, NAMES[line], here, capsys)


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("--images out --sheet out/sheet.png", ["out"]),
        ("--images out --errors ./out/errors", ["out", "out/errors"]),
        ("--images out --errors out/errors --sheet ./mine/../out/errors/sheet.png", ["out", "out/errors"]),
    ],
)
def test_pictures_may_go_into_a_folder_that_the_same_command_makes(line, made, here, capsys, monkeypatch):
    def begun(*_, **__):
        raise RaymarchError("begun")

    monkeypatch.setattr(held_out, "evaluate", begun)
    before = contents(here)
    code, _, err = ran(capsys, "evaluate", "v.h5", "A", *line.split())
    assert (code, err.splitlines()[-1]) == (1, "raymarch: begun")
    assert contents(here) == {**before, **{here / folder: None for folder in made}}


def test_pictures_of_ours_are_replaced_and_others_only_if_asked(here):
    white, black = np.ones((4, 4, 3)), np.zeros((4, 4, 3))
    for name in ("own.png", "mine/0001.png"):
        theirs = name.startswith("mine")
        if theirs:
            with pytest.raises(RaymarchError, match=r"mine/0001.png: is no picture of raymarch's .*overwrite=True"):
                write_png(name, white)
            assert np.asarray(Image.open(name)).max() == 0
        write_png(name, white, overwrite=theirs)
        assert np.asarray(Image.open(name)).min() == 255
        write_png(name, black)
    assert np.asarray(Image.open("own.png")).max() == 0
    names = ["0000", "0001"]
    for _ in range(2):
        folder = folder_for("mine", names)
        for name in names:
            write_png(folder / f"{name}.png", white)


def test_two_pictures_of_one_name_are_refused(here):
    with pytest.raises(RaymarchError, match="new/a.png: 2 pictures would have this name"):
        folder_for("new", ["a", "b", "a"])
    assert not Path("new").exists()


@pytest.mark.parametrize("name", ["../a", "/tmp/a", "b/a", "..", "", "a\0", "C:\\a", "a" * 300])
def test_a_picture_stays_in_its_folder_whatever_a_view_is_named(here, name):
    with pytest.raises(RaymarchError, match="picture"):
        folder_for("new", [name])
    assert not Path("new").exists()


def test_images_that_a_set_lists_are_kept_whoever_made_them(here):
    file, link = Path("B/test/r_0.png"), Path("elsewhere")
    write_png(file, np.ones((4, 4, 3)), overwrite=True)
    write_png("B/test/other.png", np.ones((4, 4, 3)))
    write_png("B/test/other.png", np.zeros((4, 4, 3)))
    link.symlink_to(here / "B" / "test", target_is_directory=True)
    for path in (file, link / "r_0.png"):
        with pytest.raises(RaymarchError, match=r"r_0.png: is an image of the set .*B/transforms_test.json and would"):
            write_png(path, np.zeros((4, 4, 3)))
    write_png(file, np.zeros((4, 4, 3)), overwrite=True)


def test_a_broken_set_beside_them_hides_no_picture(here):
    for text in ("{", "[]", '{"frames": [{"file_path": 3}, {}]}', '{"frames": [{"file_path": "\\u0000"}]}'):
        Path("transforms_x.json").write_text(text)
        write_png("own.png", np.ones((4, 4, 3)))


def test_volumes_replace_other_files_only_if_asked(here, capsys):
    Path("text.h5").write_text("mine")
    with pytest.raises(RaymarchError, match="text.h5: is no volume of raymarch's and would be lost; .*overwrite=True"):
        save(volume(), "text.h5")
    assert Path("text.h5").read_text() == "mine"
    code, _, err = ran(capsys, "fit", "A", "--split", "test", "--out", "text.h5")
    assert code == 1
    assert "is no volume of raymarch's" in err
    save(volume(), "text.h5", overwrite=True)
    assert load("text.h5").shape == (3, 3, 3)


# Finished volumes stay.


@pytest.mark.parametrize(
    ("old", "new", "overwrite"), covering((*FINISHED, *CUT_SHORT, "missing"), (*FINISHED, *CUT_SHORT), (False, True))
)
def test_what_was_cut_short_never_replaces_what_was_not(old, new, overwrite, tmp_path):
    path, beside = tmp_path / "good.h5", tmp_path / "good.interrupted.h5"
    if old != "missing":
        save(volume(old, level=1.0), path)
    before = path.read_bytes() if path.exists() else b""
    stays = old in FINISHED and new in CUT_SHORT
    for _ in range(2):
        kept = save_volume(volume(new), path, overwrite)
        assert kept.path == (beside if stays else path)
        assert bool(kept.why) == stays
    assert load(kept.path).provenance.get("ended") == new
    assert sorted(tmp_path.iterdir()) == ([path, beside] if stays else [path])
    assert (path.read_bytes() == before) == stays


def test_what_has_the_name_beside_stays_too(tmp_path):
    for name in ("good.h5", "good.interrupted.h5"):
        save(volume("done", level=1.0), tmp_path / name)
    (tmp_path / "good.interrupted-2.h5").write_text("mine")
    before = contents(tmp_path)
    assert save_volume(volume(INTERRUPTED), tmp_path / "good.h5").path == tmp_path / "good.interrupted-3.h5"
    assert {path: data for path, data in contents(tmp_path).items() if path in before} == before


def fits_to(result: Volume, monkeypatch) -> None:
    """Make every fit come to this volume at once."""
    ended = result.provenance["ended"]
    report = Report(9, 0.1, 20.0, 1e6, result.shape, 1.0, 0.5, 1.0, 0.0)
    fit = Fit(result, preset("quick"), (report,), result.box, ended, 0.5)
    monkeypatch.setattr(fitting, "fit", lambda *_, **__: fit)


@pytest.mark.parametrize("ended", ["done", *CUT_SHORT])
@pytest.mark.parametrize("there", [False, True])
def test_a_fit_says_where_it_is(ended, there, here, capsys, monkeypatch):
    if there:
        save(volume("done", level=1.0), "good.h5")
    fits_to(volume(ended), monkeypatch)
    code, out, err = ran(capsys, "fit", "A", "--split", "test", "--out", "good.h5", "--json")
    beside = there and ended != "done"
    name = "good.interrupted.h5" if beside else "good.h5"
    assert json.loads(out)["out"] == name
    assert load(name).provenance["ended"] == ended
    assert ("good.h5 is finished and stays as it was" in err) == beside
    assert code == (1 if beside or ended == RUN_AWAY else 0)


# No fit is lost.


def test_a_fit_that_cannot_be_written_goes_elsewhere(here, capsys, monkeypatch, tmp_path_factory):
    """The folder asked for refuses, then the working folder too."""
    (here / "full").mkdir()
    (here / "good.h5").write_text("mine")
    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    fits_to(volume("done"), monkeypatch)
    replace, full = os.replace, [here / "full"]

    def refuse(source, target):
        if Path(target).parent in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    for where in ("cwd", "spare"):
        code, out, err = ran(capsys, "fit", "A", "--split", "test", "--out", "full/good.h5", "--json")
        found = Path(json.loads(out)["out"])
        assert code == 1
        assert load(found).shape == (3, 3, 3)
        assert "full/good.h5: cannot be written (No space left on device)" in err
        assert f"saved as {found}" in err
        assert found == here / "good-2.h5" if where == "cwd" else found.is_relative_to(spare)
        full.append(here)
    assert (here / "good.h5").read_text() == "mine"
    assert list((here / "full").iterdir()) == []
    monkeypatch.setattr(save_fit, "_saved_in", lambda *_: None)
    with pytest.raises(RaymarchError, match="No space left"):
        save_volume(volume(), "full/good.h5")


@posix
def test_room_and_limits_are_asked_for_first(tmp_path, monkeypatch):
    import resource

    path = tmp_path / "v.h5"
    require_writable(path, 1 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(RaymarchError, match="File too large.*raise the limit"):
            require_writable(path, 1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1 << 30, free=1000))
    with pytest.raises(RaymarchError, match="about 1,048,576 bytes are to be written but 1,000 are free; free disk"):
        require_writable(path, 1 << 20)
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_file_that_cannot_be_replaced_is_refused_first(tmp_path, monkeypatch):
    path = tmp_path / "v.h5"
    save(volume(), path)
    path.chmod(0o444)
    require_writable(path)  # read-only, but it may be replaced
    opened, status = os.open, Path.stat

    def immutable(name, flags, *more, **how):
        if Path(name) == path and flags & os.O_WRONLY:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return opened(name, flags, *more, **how)

    with monkeypatch.context() as patched, pytest.raises(RaymarchError, match="v.h5: .*not permitted.*another name"):
        patched.setattr(os, "open", immutable)
        require_writable(path)

    def sticky(self, **how):
        found = status(self, **how)
        return SimpleNamespace(st_mode=found.st_mode | stat.S_ISVTX, st_uid=1, st_size=found.st_size)

    with monkeypatch.context() as patched, pytest.raises(RaymarchError, match="v.h5: .*another user's.*sticky"):
        patched.setattr(os, "geteuid", lambda: 12345)
        patched.setattr(Path, "stat", sticky)
        require_writable(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("bricks", "room"), [(0, False), (1000, True), (1_000_000, False)])
def test_a_fit_asks_for_room_before_its_first_step(bricks, room, here, capsys, monkeypatch):
    """For what it keeps: in bricks that is less than a grid that is as fine."""
    plan = Plan(None, preset("quick"), np.zeros((2, 3)), Memory((1000, 1000, 1000), 0, 1, {}), None, bricks=bricks)

    def begun(views, settings, *, ready, **_):
        ready(SimpleNamespace(plan=plan, settings=plan.settings))
        raise RaymarchError("begun")

    monkeypatch.setattr(fitting, "fit", begun)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1 << 40, free=1 << 30))
    code, out, err = ran(capsys, "fit", "A", "--split", "test", "--out", "new.h5")
    assert (code, out) == (1, "")
    assert ("begun" if room else "bytes are to be written") in err
    assert not Path("new.h5").exists()


@pytest.mark.parametrize("reach", [1e-9, 3e-9, 1e-7, 1.0, 1e8, 9.9e8, 1e9])
def test_a_grid_that_a_volume_cannot_have_is_refused_as_a_box(reach):
    try:
        box, shape = grid_of_box([(-reach,) * 3, (reach,) * 3], 16)
    except RaymarchError as error:
        assert reach in (1e-9, 3e-9, 1e9)
        assert "scale the world" in str(error)
        return
    Volume(np.zeros(shape), np.zeros((*shape, 3)), affine_of_box(box, shape))


# Temporary files of the dead.


@posix
def test_what_a_killed_process_left_is_removed_and_no_other(tmp_path):
    code = """
import os, signal, sys
from raymarch.io.files.atomic import replace_file
with replace_file(sys.argv[1]) as temporary:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "killed.txt")], check=False)
    (dead,) = tmp_path.iterdir()
    elsewhere = tmp_path / dead.name.replace(temporary._prefix(), ".raymarch-00000000-")
    elsewhere.write_text("of another machine")
    (tmp_path / f"{temporary._prefix()}folder.tmp").mkdir()
    with replace_file(tmp_path / "live.txt") as live:
        live.write_text("live")
        save(volume(), tmp_path / "v.h5")
        assert not dead.exists()
        assert live.exists()
        assert elsewhere.exists()
    assert (tmp_path / "live.txt").read_text() == "live"
    assert len(list(tmp_path.iterdir())) == 4


@pytest.fixture
def binding_locks(monkeypatch):
    """`open` of a disk on which no other may write to what is locked, as on one that Windows shares: SMB."""

    def opened(path, mode):
        with open(path, "rb") as other:
            try:
                temporary.fcntl.flock(other, temporary.fcntl.LOCK_EX | temporary.fcntl.LOCK_NB)
            except BlockingIOError:
                raise PermissionError(errno.EACCES, "Permission denied", str(path)) from None
        return open(path, mode)

    monkeypatch.setattr(temporary, "open", opened, raising=False)
    return opened


@posix
def test_where_locks_bind_everybody_a_file_is_written_all_the_same(tmp_path, binding_locks):
    with replace_file(tmp_path / "v.h5") as made:
        assert made.stat().st_size == 0
        with binding_locks(made, "wb") as file:
            file.write(b"all of it")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"all of it"]


@posix
def test_where_locks_bind_everybody_a_day_tells_the_dead(tmp_path, binding_locks):
    with replace_file(tmp_path / "v.h5") as made:
        made.write_text("on its way")
        temporary.remove_stale(tmp_path)
        assert made.exists()
        os.utime(made, (1e9, 1e9))
        temporary.remove_stale(tmp_path)
        assert not made.exists()
        made.write_text("once more")
    with temporary.temporary_folder(tmp_path) as folder:  # nobody writes to its lock, which says that it lives
        temporary.remove_stale(tmp_path)
        assert (tmp_path / (folder.name + temporary.LOCK_SUFFIX)).exists()


# Signals.


def test_a_scheduler_asks_as_often_as_it_likes():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, HANGUP)]
    with catch_first_interrupt() as outer:
        with catch_first_interrupt() as asked:
            assert not asked()
            for number in (signal.SIGTERM, signal.SIGTERM, HANGUP):
                signal.raise_signal(number)
            assert asked()
            assert not outer()
        signal.raise_signal(signal.SIGTERM)
        with catch_first_interrupt() as asked:
            assert asked()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, HANGUP)] == before


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_who_ignores_or_handles_a_signal_keeps_it(handler):
    before = signal.signal(HANGUP, handler)
    try:
        for taking in (catch_first_interrupt, interrupt_on_end_signals):
            with taking():
                assert signal.getsignal(HANGUP) is handler
    finally:
        signal.signal(HANGUP, before)


def test_ctrl_c_that_is_ignored_stays_so():
    """As a script's shell has it for what runs in its background: it is meant for what runs in front."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupt_on_end_signals(), catch_first_interrupt() as asked:
            signal.raise_signal(signal.SIGINT)
            assert not asked() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
            assert asked()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "ignored"),
    [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True), (HANGUP, False), (HANGUP, True)],
)
def test_a_signal_that_a_library_loses_counts_in_what_is_asked_next(number, ignored):
    """Also where Ctrl-C is ignored, as a shell has it for what runs in its background."""
    of_ctrl_c = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)  # who starts the tests may have them ignore it
    try:
        with interrupt_on_end_signals():
            with catch_first_interrupt() as asked:
                assert not asked()
            with contextlib.suppress(BaseException):  # as bare excepts do
                signal.raise_signal(number)
            for _ in range(2):
                with catch_first_interrupt() as asked:
                    assert asked()
        with catch_first_interrupt() as asked:
            assert not asked()
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)
        signal.signal(signal.SIGINT, of_ctrl_c)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_library_loses_keeps_what_is_written_from_its_name(number, tmp_path):
    """Until somebody asked whether one came: a fit that was stopped is saved."""
    of_ctrl_c = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with interrupt_on_end_signals():
            with pytest.raises(KeyboardInterrupt), replace_file(tmp_path / "v.h5") as half:
                half.write_text("all of it")
                with contextlib.suppress(BaseException):
                    signal.raise_signal(number)
            with pytest.raises(KeyboardInterrupt), replace_folder(tmp_path / "v.zarr"):
                pass
            assert not list(tmp_path.iterdir())
            with catch_first_interrupt() as asked:
                assert asked()
            with replace_file(tmp_path / "v.h5") as half:
                half.write_text("all of it")
            assert (tmp_path / "v.h5").read_text() == "all of it"
    finally:
        signal.signal(number, before)
        signal.signal(signal.SIGINT, of_ctrl_c)


def test_an_interrupt_leaves_no_temporary_file_wherever_it_comes(tmp_path, monkeypatch):
    true = os.open

    def open_interrupted(*words):
        descriptor = true(*words)
        signal.raise_signal(signal.SIGINT)
        return descriptor

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr("raymarch.io.files.temporary.os.open", open_interrupted)
        with pytest.raises(KeyboardInterrupt), replace_file(tmp_path / "v.h5"):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, HANGUP])
def test_an_interrupt_that_is_held_comes_afterwards(number):
    done = []
    own = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    of_ctrl_c, before = signal.getsignal(signal.SIGINT), signal.signal(number, own)
    try:
        with interrupt_on_end_signals(), pytest.raises(KeyboardInterrupt), hold_interrupts():
            signal.raise_signal(number)
            done.append(1)
        assert done and signal.getsignal(number) is own
    finally:
        signal.signal(number, before)
        signal.signal(signal.SIGINT, of_ctrl_c)


def test_a_command_that_was_interrupted_is_not_so_again_as_it_ends(monkeypatch, capsys):
    def work(**_):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(cli.cli.commands["info"], "callback", work)
    monkeypatch.setattr(sys, "argv", ["raymarch", "info", "v.h5"])
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 1
        assert capsys.readouterr().err == "interrupted\n"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_between_the_two_renames_of_a_folder_leaves_the_older_one(at, tmp_path, monkeypatch):
    (tmp_path / "v.zarr").mkdir()
    (tmp_path / "v.zarr" / "values").write_text("of before")
    true, calls = os.replace, []

    def replace_once(source, to):
        calls.append(to)
        true(source, to) if len(calls) < at or len(calls) > 2 else None
        if len(calls) == at:
            raise KeyboardInterrupt

    monkeypatch.setattr("raymarch.io.files.atomic.os.replace", replace_once)
    with pytest.raises(KeyboardInterrupt), replace_folder(tmp_path / "v.zarr") as made:
        (made / "values").write_text("of now")
    assert (tmp_path / "v.zarr" / "values").read_text() == "of before"
    assert [each.name for each in tmp_path.iterdir()] == ["v.zarr"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, HANGUP])
def test_a_signal_ends_a_verb_in_one_line_and_tidies_up(number, here, capsys, monkeypatch):
    def work(**_):
        with replace_file("half.txt") as half:
            try:
                signal.raise_signal(number)
            finally:
                half.write_text("half")
                signal.raise_signal(number)  # they come in pairs

    monkeypatch.setattr(cli.cli.commands["info"], "callback", work)
    own = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before, handler = contents(here), signal.signal(number, own)  # a job may ignore it
    try:
        assert ran(capsys, "info", "v.h5") == (1, "", "interrupted\n")
    finally:
        signal.signal(number, handler)
    assert contents(here) == before


# What is said.


def test_names_of_files_steer_no_terminal(here, capsys):
    code, out, err = ran(capsys, "info", "\x1b[31mred\n\u202e.h5")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert r"\x1b[31mred\n\u202e.h5" in err
    output.set_up_streams()
    logging.getLogger("raymarch").warning("of %s", "\x1b[0m")
    handler = output._Notes()
    handler.emit(logging.makeLogRecord({"msg": "of %s", "args": ("\x1b[0m",)}))
    assert capsys.readouterr().err.splitlines()[-1] == r"note: of \x1b[0m"


@posix
def test_without_stderr_mistakes_do_not_land_in_stdout(here):
    command = f"{sys.executable} -m raymarch info missing.h5 2>&- <&-"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "")


def test_a_page_is_announced_where_there_is_no_stdout(monkeypatch):
    """As under pythonw, which is Python on Windows without a console."""
    said: list[str] = []
    monkeypatch.setattr(sys, "stdout", None)
    announce(SimpleNamespace(url="http://127.0.0.1:8080/?token=a"), said.append, said.append, browser=False)
    assert said[0] == "http://127.0.0.1:8080/?token=a" and said[-1] == "Ctrl-C ends it"


@pytest.mark.parametrize(("behind", "code"), [(KeyboardInterrupt(), 1), (None, None), (ValueError(), None)])
def test_ctrl_c_while_a_module_loads_is_an_interruption(behind, code, monkeypatch):
    """Modules in C then say that they could not be loaded."""
    from raymarch import cli

    def load(**_):
        raise ImportError("initialization failed") from behind

    monkeypatch.setattr(cli.cli, "main", load)
    with pytest.raises(SystemExit if code else ImportError) as ended:
        cli.main([])
    assert code is None or ended.value.code == code


@pytest.mark.parametrize(
    ("system", "error", "ended"),
    [
        ("posix", BrokenPipeError(errno.EPIPE, "Broken pipe"), SystemExit),
        ("nt", OSError(errno.EINVAL, "Invalid argument"), SystemExit),
        ("nt", OSError(errno.EINVAL, "Invalid argument", "a?b"), OSError),
        ("posix", OSError(errno.EINVAL, "Invalid argument"), OSError),
    ],
)
def test_a_reader_that_leaves_ends_it_without_a_word_on_windows_too(system, error, ended, monkeypatch):
    """There it is an invalid argument, as is a name that no file can have."""

    def write(**_):
        raise error

    noted = io.StringIO()
    monkeypatch.setattr(cli.cli, "main", write)
    monkeypatch.setattr(cli, "os", SimpleNamespace(name=system))
    monkeypatch.setattr(sys, "stderr", noted)
    with pytest.raises(ended) as caught:
        cli.main([])
    assert noted.closed == (ended is SystemExit)
    assert caught.value is error or caught.value.code == 1


def test_numbers_over_1_are_told_or_scaled(tmp_path, caplog):
    xray = np.array([[0.0, 5.3], [10.6, 1.0]])
    write_png(tmp_path / "x.png", xray)
    assert "2 of 4 numbers are over 1 (up to 10.6)" in caplog.text
    assert "limit=10.6" in caplog.text
    assert np.asarray(Image.open(tmp_path / "x.png")).tolist() == [[0, 255], [255, 255]]
    caplog.clear()
    write_png(tmp_path / "x.png", xray, limit=10.6)
    write_png(tmp_path / "one.png", np.full((2, 2, 3), 1 + 1e-6))
    write_png(tmp_path / "alpha.png", np.full((1, 1, 4), [2.0, 4.0, 0.0, 1.0]), limit=4)
    assert caplog.text == ""
    assert np.asarray(Image.open(tmp_path / "x.png")).tolist() == [[0, 128], [255, 24]]
    assert np.asarray(Image.open(tmp_path / "alpha.png")).tolist() == [[[128, 255, 0, 255]]]
    for limit in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(RaymarchError, match="limit is .*, want a number"):
            write_png(tmp_path / "x.png", xray, limit=limit)


def test_info_says_what_its_quality_is_of(here, capsys):
    result = volume("done")
    save(
        Volume(
            *[getattr(result, n) for n in ("density", "features", "world_from_index")],
            provenance={**result.provenance, "rays_psnr": 30.94},
        ),
        "v.h5",
    )
    _, out, _ = ran(capsys, "info", "v.h5")
    assert "30.94 dB on training rays that meet the box; raymarch evaluate tells it on whole images" in out


@pytest.mark.parametrize("name", ["quick", "default", "photos"])
def test_a_fit_of_few_steps_gets_advice_that_helps(name):
    told = describe_ending(5, preset(name, seconds=1.0))
    assert told.endswith("give more seconds, smaller images (downscale), or a lower resolution")


def test_a_limit_on_addresses_is_said_before_taichi_meets_it(monkeypatch):
    monkeypatch.setattr(runtime, "addresses_left", lambda: 10**9)
    with pytest.raises(RaymarchError, match="1,000,000,000 are left to this process; lift the limit"):
        runtime._require_addresses()


def test_a_verb_told_two_places_to_look_from_is_wrong_usage(here, capsys):
    """Or none: exit code 2, before anything is read."""
    for more in ([], ["--orbit", "3", "--views", "A"]):
        code, out, err = ran(capsys, "render", "missing.h5", "--out", "new", *more)
        assert (code, out) == (2, "")
        assert "--views DATA, --orbit COUNT or --path spiral" in err
    assert not Path("new").exists()


def test_a_box_of_the_shell_is_its_lower_corner_then_its_upper(here, capsys, monkeypatch):
    def begun(views, settings, *, box, **_):
        assert box == [[-1.0, -2.0, -3.0], [4.0, 5.0, 6.5]]
        raise RaymarchError("begun")

    monkeypatch.setattr(fitting, "fit", begun)
    code, _, err = ran(capsys, "fit", "A", "--split", "test", "--out", "new.h5", "--box=-1,-2,-3,4,5,6.5")
    assert code == 1
    assert err.endswith("raymarch: begun\n")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_printed_as_json_is_json(value, capsys):
    """Which knows no infinities: equal images are of an infinite PSNR."""
    print_json({"psnr": float(value), "views": ({"psnr": float(value)}, 1.5)})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "psnr": None,
        "views": [{"psnr": None}, 1.5],
    }


@pytest.mark.parametrize("bar", [progress.FitProgress, partial(progress.CountProgress, "x", 3), progress.StageProgress])
def test_a_terminal_that_is_gone_loses_nothing_of_what_was_made(bar, monkeypatch):
    """The bar's end cannot be drawn, and what comes after it, the saving, is done all the same."""
    monkeypatch.setattr(Console, "is_terminal", True)

    def gone(self):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Progress, "stop", gone)
    with bar():
        pass
