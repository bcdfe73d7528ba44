"""Disks that are full, read-only or gone: said before the work where that can be known, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from hostile_cases.case import EITHER, FIT, REFUSED, WORKS, Area, Bad, Case, Poor
from hostile_cases.judge import hold
from hostile_cases.place import Place
from hostile_cases.small_disk import fill_up, immutable, make_read_only, small_disk

area = Area("disks")
FULL = r"full|No space|space"
READ_ONLY = r"[Rr]ead-only|denied|permitted|may write"
PNGS = "render ball.h5 --orbit 2 --size 256 --out disk/pics"
EVALUATE = "evaluate ball.h5 set --images disk/pics"
LONG = "fit set --preset quick --steps 100000 --resolution 32 --out disk/out.h5"


def to(out: str, steps: int = 3) -> tuple[str, ...]:
    """A small fit to another file."""
    return ("fit", "set", "--preset", "quick", "--steps", str(steps), "--resolution", "8", "--out", out)


def _early(done, what: str) -> str:
    """Refused before the first step."""
    text = hold(done, REFUSED, what)
    if "step " in done.err:
        raise Poor(f"said only after the work: {text}")
    return text


def on_full(name: str, do, python: bool = False) -> Case:
    """On a full disk with an older file: refused at once, the older file whole."""

    def probe(place: Place) -> str:
        with small_disk(place) as disk:
            shutil.copy(place.folder / "ball.h5", disk / "old.h5")
            before = (disk / "old.h5").read_bytes()
            fill_up(disk)
            done = place.run(do)
            if (disk / "old.h5").read_bytes() != before:
                raise Bad("the older file is hurt")
            if list(disk.glob(".raymarch-*")):
                raise Bad("a temporary file is left over")
            if any(path.stat().st_size == 0 for path in disk.rglob("*") if path.is_file()):
                raise Bad("an empty file is left over")
            return _early(done, FULL) if not python else hold(done, REFUSED, FULL, python=True)

    return area.probe(name, probe, needs=("mount",))


def on_read_only(name: str, do, python: bool = False) -> Case:
    """On a disk that cannot be written to."""

    def probe(place: Place) -> str:
        with small_disk(place, "size=1m") as disk:
            shutil.copy(place.folder / "ball.h5", disk / "old.h5")
            make_read_only(disk)
            done = place.run(do)
            return _early(done, READ_ONLY) if not python else hold(done, REFUSED, READ_ONLY, python=True)

    return area.probe(name, probe, needs=("mount",))


def immutable_file(name: str, do, target: str, ready: Callable | None = None) -> Case:
    """Something that may not be changed where the result shall go."""

    def probe(place: Place) -> str:
        before = set(os.listdir(place.folder))
        with immutable(place.folder / target):
            done = place.run(do)
        left = set(os.listdir(place.folder)) - before
        if left:
            raise Bad(f"left over: {', '.join(sorted(left))}")
        return _early(done, READ_ONLY)

    return area.probe(name, probe, set_up=ready, needs=("immutable",))


def _during(name: str, change: Callable[[Path], object], spoilt: str) -> Case:
    """Something happens to the disk during a fit that is then stopped: the result is saved elsewhere, and said."""

    def probe(place: Place) -> str:
        with small_disk(place, "size=1m") as disk:
            run = place.start(LONG)
            if not run.until(lambda: "step " in run.said(), 90):
                raise Bad(f"the fit did not begin: {run.said()[-200:]}")
            change(disk)
            os.kill(run.process.pid, signal.SIGINT)
            done = run.wait()
            if "Traceback" in done.err or done.hung or done.code < 0:
                raise Bad(f"exit {done.code}: {done.err.strip().splitlines()[-1]}")
            if spoilt == "writable" and (disk / "out.h5").exists():
                return f"saved, exit {done.code}"
            places = [place.folder, place.runner.root / "home", Path(str(place.folder) + ".tmp"), disk]
            found = [p for top in places for p in top.glob("*.h5") if p.name != "ball.h5" and p.name != "ballast"]
            if not found:
                raise Poor(f"the fit is lost: {done.err.strip().splitlines()[-1][:100]}")
            told = found[0].name in done.err + done.out
            for path in found:
                path.unlink()
            if not told:
                raise Poor(f"saved as {found[0]}, without a word")
            return f"saved as {found[0].name}, exit {done.code}"

    return area.probe(name, probe, makes=("*.h5",), needs=("mount",))


def _checkpoints(place: Place) -> str:
    """The disk fills during a fit that is saved every so often: the older checkpoint is whole and goes on."""
    fit = LONG.replace("100000", "400")
    with small_disk(place, "size=40m") as disk:
        run, checkpoint = place.start(fit + " --checkpoint-every 1e-9"), disk / "out.h5.checkpoint"
        if not run.until(checkpoint.exists, 90):
            raise Bad(f"no checkpoint: {run.said()[-200:]}")
        fill_up(disk)
        done = run.wait()
        if "Traceback" in done.err or done.hung or done.code < 0:
            raise Bad(f"exit {done.code}: {done.err.strip().splitlines()[-1]}")
        if "no checkpoint at step" not in done.err:
            raise Poor("a checkpoint that could not be written is not told")
        (disk / "ballast").unlink()
        done = place.run(fit + " --resume")
        if done.code or not (disk / "out.h5").exists():
            raise Bad(f"the older checkpoint does not go on: {done.err.strip().splitlines()[-1]}")
        return "said, and the older one goes on"


def _file_size(size: int, do, says: str) -> Callable:
    """Under a limit of a file's size, whose signal Python ignores."""

    def probe(place: Place) -> str:
        import resource

        run = place.start(do, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        done = run.wait()
        if list(place.folder.glob(".raymarch-*")):
            raise Bad("a temporary file is left over")
        return _early(done, says)

    return probe


def _across(place: Place) -> str:
    """The output is a link to another disk."""
    with small_disk(place, "size=1m") as disk:
        (place.folder / "out.h5").symlink_to(disk / "real.h5")
        text = hold(place.run(FIT), WORKS)
        if not (disk / "real.h5").is_file():
            raise Bad("not written where the link leads")
    return text


def _no_names(place: Place) -> str:
    """A disk with room, but for no more files."""
    with small_disk(place, "size=1m,nr_inodes=3") as disk:
        for i in range(3):
            try:
                (disk / f"f{i}").touch()
            except OSError:
                break
        return _early(place.run(to("disk/out.h5")), FULL)


def _cache_full(place: Place) -> str:
    """Kernels cannot be kept; the image is made."""
    with small_disk(place, fill=True):
        run = place.start(
            "render ball.h5 --orbit 1 --size 8 --out pics", {"TI_OFFLINE_CACHE_FILE_PATH": str(place.folder / "disk")}
        )
        return hold(run.wait(), WORKS)


def _temporary_full(place: Place) -> str:
    """check-gradients sends its volume to another process by way of TMPDIR."""
    with small_disk(place, fill=True):
        done = place.run("check-gradients ball.h5 set --rays 4", TMPDIR=str(place.folder / "disk"))
        return hold(done, EITHER, FULL)


def _removed(place: Place) -> str:
    """The folder of the result is taken away during the fit."""
    (place.folder / "inner").mkdir()
    run = place.start(LONG.replace("disk/", "inner/"))
    if not run.until(lambda: "step " in run.said(), 90):
        raise Bad(f"the fit did not begin: {run.said()[-200:]}")
    (place.folder / "inner").rmdir()
    os.kill(run.process.pid, signal.SIGINT)
    done = run.wait()
    if "Traceback" in done.err or done.code < 0:
        raise Bad(f"exit {done.code}: {done.err.strip().splitlines()[-1]}")
    places = [place.folder, place.runner.root / "home", Path(str(place.folder) + ".tmp"), place.folder / "inner"]
    found = [path for top in places for path in top.glob("*.h5") if path.name != "ball.h5"]
    if not found:
        raise Poor(f"the fit is lost: {done.err.strip().splitlines()[-1][:100]}")
    if found[0].name not in done.err + done.out:
        raise Poor(f"saved as {found[0]}, without a word")
    for path in found:
        path.unlink()
    return f"saved as {found[0].name}"


def _volume_there(folder: Path) -> None:
    shutil.copy(folder / "ball.h5", folder / "out.h5")


def _folder_there(folder: Path) -> None:
    (folder / "inner").mkdir()


def _save_limited(place: Place) -> str:
    import resource

    run = place.start(
        'rm.save(ball, "out.h5")\n', before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    )
    return hold(run.wait(), REFUSED, "limit|large", python=True)


SAVE = 'rm.save(ball, "disk/old.h5")\n'
PICTURE = 'rm.write_png("disk/a.png", np.zeros((400, 400, 3)))\n'

CASES = [
    on_full("fit to a full disk", to("disk/out.h5")),
    on_full("fit over a volume on a full disk", to("disk/old.h5")),
    on_full("render to a full disk", PNGS),
    on_full("evaluate --images to a full disk", EVALUATE),
    on_full("rm.save to a full disk", SAVE, python=True),
    on_full("write_png to a full disk", PICTURE, python=True),
    on_read_only("fit to a read-only disk", to("disk/out.h5")),
    on_read_only("fit over a volume on a read-only disk", to("disk/old.h5")),
    on_read_only("render to a read-only disk", PNGS),
    on_read_only("evaluate --images to a read-only disk", EVALUATE),
    on_read_only("rm.save to a read-only disk", SAVE, python=True),
    on_read_only("write_png to a read-only disk", PICTURE, python=True),
    immutable_file("fit over an immutable volume", FIT, "out.h5", _volume_there),
    immutable_file("fit into an immutable folder", to("inner/out.h5"), "inner", _folder_there),
    immutable_file("render into an immutable folder", PNGS.replace("disk", "inner"), "inner", _folder_there),
    area.probe("a file-size limit of 4 KB: fit", _file_size(4096, FIT, "limit|large"), needs=("posix",)),
    area.probe("a file-size limit of 2 KB: render", _file_size(2000, PNGS.replace("disk/", ""), "limit|large"),
               makes=("pics",), needs=("posix",)),
    area.probe("a file-size limit of 4 KB: rm.save", _save_limited, needs=("posix",)),
    _during("the disk fills during the fit", fill_up, "full"),
    area.probe("the disk fills while checkpoints are written", _checkpoints, makes=("*.h5",), needs=("mount",)),
    _during("the disk becomes read-only during the fit", make_read_only, "read-only"),
    area.probe("the folder is removed during the fit", _removed, makes=("*.h5",), needs=("posix",)),
    area.probe("a disk with no names left", _no_names, needs=("mount",)),
    area.probe("the result is a link to another disk", _across, makes=("out.h5",), needs=("mount",)),
    area.probe("the cache's disk is full", _cache_full, makes=("pics", "pics/*.png"), needs=("mount",)),
    area.probe("TMPDIR's disk is full: check-gradients", _temporary_full, needs=("mount",)),
]  # fmt: skip
