"""What is written over: nothing that raymarch did not write, and never a good result by a worse one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

from hostile_cases.case import FIT, Area, Bad, Case, Poor
from hostile_cases.judge import faults_of_refusal
from hostile_cases.place import Place

area = Area("outputs")
VIEWS = "render ball.h5 --views set --split test --out "
ONE = "render ball.h5 --orbit 1 --size 8 --out "
RENDER = "render ball.h5 --orbit 2 --size 8 --out pics"
EVALUATE = "evaluate ball.h5 set --images pics"
PICTURES = ("pics", "pics/*.png")
OVER = r"--overwrite|choose another|already|would be lost|own|not.*raymarch"


def to(out: str) -> tuple[str, ...]:
    """A small fit to another file."""
    return (*FIT.split()[:-1], out)


def _copied(folder: Path) -> None:
    shutil.copytree(folder / "set", folder / "copy")


def _picture(name: str):
    def set_up(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((5, 7, 3), 200, np.uint8)).save(path)

    return set_up


def _text(name: str):
    return lambda folder: (folder / name).write_text("my notes\n")


def _foreign(name: str):
    def set_up(folder: Path) -> None:
        with h5py.File(folder / name, "w") as file:
            file["mine"] = np.arange(9)

    return set_up


def twice(name: str, do: str, makes: tuple[str, ...]) -> Case:
    """The same command two times: the second replaces what the first wrote."""

    def probe(place: Place) -> str:
        for turn in ("first", "second"):
            done = place.run(do)
            if done.code:
                raise Poor(f"the {turn} time: {done.err.strip().splitlines()[-1]}")
        return "works twice"

    return area.probe(name, probe, makes=makes)


def _stale(place: Place) -> str:
    """A temporary file of a process that was killed is gone after the next write beside it."""
    stale = place.folder / ".raymarch-0123456789abcdef.tmp"
    stale.write_bytes(b"half a volume")
    os.utime(stale, (1e9, 1e9))
    place.run('rm.save(ball, "out.h5")\n')
    if stale.exists():
        stale.unlink()
        raise Poor("a temporary file of a killed process stays for ever")
    return "swept by the next write"


def _young(place: Place) -> str:
    """A temporary file of a process that is still writing stays."""
    young = place.folder / ".raymarch-0123456789abcdef.tmp"
    young.write_bytes(b"half a volume")
    place.run('rm.save(ball, "out.h5")\n')
    if not young.exists():
        raise Bad("a temporary file of another process was removed while it was new")
    young.unlink()
    return "left alone"


def _symlink(place: Place) -> str:
    (place.folder / "real").mkdir()
    (place.folder / "out.h5").symlink_to("real/out.h5")
    done = place.run(FIT)
    if done.code or not (place.folder / "out.h5").is_symlink() or not (place.folder / "real/out.h5").is_file():
        raise Bad(f"the link was replaced, or its target not written: {done.err[-100:]}")
    return "the target is written, the link stays"


def _hard_link(place: Place) -> str:
    shutil.copy(place.folder / "ball.h5", place.folder / "out.h5")
    os.link(place.folder / "out.h5", place.folder / "other.h5")
    before = (place.folder / "other.h5").read_bytes()
    done = place.run(FIT)
    if (place.folder / "other.h5").read_bytes() != before:
        raise Bad("the file was changed under its other name")
    return f"the other name keeps the old volume, exit {done.code}"


def _mode(place: Place) -> str:
    os.umask(old := os.umask(0))
    place.run('rm.save(ball, "out.h5")\n')
    mode = (place.folder / "out.h5").stat().st_mode & 0o777
    if mode != 0o666 & ~old:
        raise Poor(f"the file has mode {mode:o}, want {0o666 & ~old:o} as the umask says")
    return f"mode {mode:o}"


def _at_once(place: Place) -> str:
    """Two fits to one file: one of them whole."""
    both = [place.start(FIT + f" --seed {seed}") for seed in (1, 2)]
    codes = [one.wait().code for one in both]
    read = place.run('rm.load("out.h5")\n')
    if read.code:
        raise Bad(f"unreadable after two fits at once: {read.err[-100:]}")
    return f"a whole volume; exits {codes}"


def _reader(place: Place) -> str:
    """A reader while a writer saves 60 times sees the old or the new one."""
    writer = place.start("for i in range(60):\n    rm.save(ball, 'out.h5')\n")
    writer.until(lambda: (place.folder / "out.h5").exists())
    reader = place.run("for i in range(60):\n    rm.load('out.h5')\n")
    writer.wait()
    if reader.code:
        raise Bad(f"a reader met a half-written file: {reader.err[-100:]}")
    return "60 readings, each whole"


def _onto_itself(place: Place) -> str:
    done = place.run("render ball.h5 --orbit 1 --size 8 --out ball.h5")
    faults = faults_of_refusal(done, "ball.h5") if done.code else [("bad", "a file as a folder was accepted")]
    if faults:
        raise Poor(faults[0][1])
    return "refused"


def over(name: str, do, says: str, set_up, **more) -> Case:
    """What must be refused because something would be lost; the digests of all files are compared."""
    return area.refused(name, do, says, set_up, **more)


CASES = [
    over("render into another copy of the set", VIEWS + "copy/test", OVER, _copied),
    over("evaluate --images into another copy of the set", "evaluate ball.h5 set --images copy/test", OVER, _copied),
    over("render into the set", VIEWS + "set/test", "image set", None),
    over("render into the set's top folder", VIEWS + "set", "image set", None),
    over("evaluate --images into the set", "evaluate ball.h5 set --images set/test", "image set", None),
    over("evaluate --images into the set through a link", "evaluate ball.h5 set --images link", "image set|own",
         lambda f: (f / "link").symlink_to("set/test"), needs=("posix",)),
    over("render over one's own 0000.png", RENDER.replace("pics", "mine"), OVER, _picture("mine/0000.png")),
    over("render over one's own second picture", RENDER.replace("pics", "mine"), OVER, _picture("mine/0001.png")),
    over("render --extras over one's own depth", RENDER.replace("pics", "mine") + " --extras", OVER,
         _picture("mine/0000_depth.png")),
    over("evaluate over one's own picture", "evaluate ball.h5 set --images mine", OVER, _picture("mine/r_0.png")),
    area.works("render beside one's own files", RENDER.replace("pics", "mine"), _picture("mine/cat.png"),
               makes=("mine/000?.png",)),
    twice("render twice", RENDER, PICTURES),
    twice("evaluate twice", EVALUATE, PICTURES),
    twice("fit twice", FIT, ("out.h5",)),
    area.python_works("write_png twice", 'for i in range(2):\n    rm.write_png("a.png", np.zeros((4, 4, 3)))',
                      makes=("a.png",)),
    over("fit over a text called .h5", to("notes.h5"), "notes.h5.*(no volume|lost|raymarch)", _text("notes.h5")),
    over("fit over another program's HDF5", to("mine.h5"), "mine.h5.*(no volume|lost|raymarch)", _foreign("mine.h5")),
    over("fit over an image of the set", to("set/train/r_0.png"), "r_0.png.*h5", None),
    over("fit over the set's json", to("set/transforms_train.json"), "json.*h5", None),
    area.python_refused("rm.save over another program's HDF5", 'rm.save(ball, "mine.h5")', "mine.h5",
                        set_up=_foreign("mine.h5")),
    area.python_refused("rm.save over a text", 'rm.save(ball, "notes.h5")', "notes.h5", set_up=_text("notes.h5")),
    area.python_refused("rm.save over a picture", 'rm.save(ball, "set/train/r_0.png")', "r_0.png"),
    area.works("fit over an empty file", to("new.h5"), lambda f: (f / "new.h5").touch(), changes=("new.h5",)),
    area.works("fit over a volume of raymarch's", to("ball.h5"), changes=("ball.h5",)),
    area.refused("fit without an end to its name", to("out"), "out.*h5"),
    area.refused("fit to no name", to(""), "out|h5|name"),
    area.refused("fit to a dot", to("."), "h5|folder"),
    area.refused("fit to a folder", to("set"), "h5|folder"),
    area.refused("fit to a folder called .h5", to("dir.h5"), "dir.h5.*folder", lambda f: (f / "dir.h5").mkdir()),
    area.refused("fit into a folder that is not there", to("nix/out.h5"), "nix"),
    area.refused("fit into a file", to("ball.h5/out.h5"), "ball.h5"),
    area.refused("fit to a name of 300 characters", to("a" * 300 + ".h5"), "long"),
    area.refused("fit to /dev/full", to("/dev/full"), "/dev/full", needs=("linux",)),
    area.refused("fit to a link to /dev/full", to("out.h5"), "out.h5.*device",
                 lambda f: (f / "out.h5").symlink_to("/dev/full"), needs=("linux",)),
    area.either("fit to a link to itself", to("out.h5"), "out.h5",
                lambda f: (f / "out.h5").symlink_to("out.h5"), changes=("out.h5",), needs=("posix",)),
    area.refused("fit to a link into nowhere", to("out.h5"), "out.h5.*folder",
                 lambda f: (f / "out.h5").symlink_to("nix/out.h5"), needs=("posix",)),
    area.refused("fit to /proc", to("/proc/out.h5"), "/proc/out.h5", needs=("linux",)),
    area.refused("fit to a pipe", to("out.h5"), "out.h5.*pipe", lambda f: os.mkfifo(f / "out.h5"), needs=("posix",)),
    area.works("fit to a name of other scripts", to("ergebnis-集合 ü.h5"), makes=("ergebnis*",)),
    area.works("fit to a name with a new line", to("a\nb.h5"), makes=("a*",), needs=("posix",)),
    area.works("fit to a name with a dash in front", (*FIT.split()[:-2], "--out=-x.h5"), makes=("-x.h5",)),
    area.refused("render to no name", ("render", "ball.h5", "--orbit", "1", "--size", "8", "--out", ""), "out|folder"),
    area.refused("evaluate --images to no name", ("evaluate", "ball.h5", "set", "--images", ""), "images|folder"),
    area.refused("render to a file", ONE + "set/transforms_test.json", "transforms_test"),
    area.either("render to a video", ONE + "clip.mp4", "clip.mp4", makes=("clip.mp4",)),
    area.refused("render to one picture", ONE + "one.png", "one.png.*folder"),
    area.refused("render into a folder of a folder that is not there", ONE + "nix/pics", "nix"),
    area.refused("render to /dev/null", ONE + "/dev/null", "/dev/null",
                 needs=("posix",)),
    area.probe("render's folder is the volume", _onto_itself),
    area.probe("a link is followed", _symlink, makes=("out.h5", "real", "real/out.h5"), needs=("posix",)),
    area.probe("a hard link keeps the old volume", _hard_link, makes=("out.h5", "other.h5"), needs=("posix",)),
    area.probe("the umask is kept", _mode, makes=("out.h5",), needs=("posix",)),
    area.probe("a killed process's temporary file is swept", _stale, makes=("out.h5",)),
    area.probe("a running process's temporary file is left", _young, makes=("out.h5",)),
    area.probe("two fits to one file at once", _at_once, makes=("out.h5",)),
    area.probe("a reader while a writer saves", _reader, makes=("out.h5",)),
]  # fmt: skip
