"""What surrounds the process: homes, caches, languages, terminals, limits, other files of Python's names."""

from __future__ import annotations

import os
from pathlib import Path

from hostile_cases.case import EITHER, FIT, REFUSED, WORKS, Area, Bad, Case, Poor
from hostile_cases.judge import hold
from hostile_cases.place import Place

area = Area("surroundings")
RENDER = "render ball.h5 --orbit 1 --size 8 --out pics"
PICTURES = ("pics", "pics/*.png")
POSIX, LINUX = ("posix",), ("linux",)


def renders(name: str, set_up=None, **more) -> Case:
    """A rendering that must work, in a process of its own."""
    return area.works(name, RENDER, set_up, fresh=True, makes=(*PICTURES, *more.pop("makes", ())), **more)


def shadowed(name: str) -> Case:
    """A user's own file of a library's name beside the volume, the installed program run there."""
    return area.works(
        f"a {name} in the working folder",
        "info ball.h5",
        lambda f: (f / name).write_text("raise SystemExit('the wrong file')\n"),
        script=True,
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
    )


def _closed(which: int, do: str = "info ball.h5"):
    """A probe: stdin, stdout or stderr closed."""

    def probe(place: Place) -> str:
        done = place.start(do, before=lambda: os.close(which)).wait()
        if done.code not in (0, 1):
            raise Bad(f"exit {done.code}: {done.err[-100:]}")
        if "Traceback" in done.err:
            raise Bad(f"traceback: {done.err.strip().splitlines()[-1]}")
        return f"exit {done.code}"

    return probe


def _full(do: str):
    """A probe: stdout on a full disk."""

    def probe(place: Place) -> str:
        with open("/dev/full", "w") as full:
            return hold(place.start(do, out=full).wait(), REFUSED, "full|stdout|space")

    return probe


def _gone(do: str, expect: str = EITHER):
    """A probe: nobody reads stdout any more."""

    def probe(place: Place) -> str:
        read, write = os.pipe()
        os.close(read)
        run = place.start(do, out=write)
        os.close(write)
        done = run.wait()
        if (done.code < 0 and done.code != -13) or done.hung:
            raise Bad(f"exit {done.code}")
        if "Traceback" in done.err or "Exception ignored" in done.err:
            raise Poor(f"{done.err.strip().splitlines()[-1]}")
        return f"exit {done.code}"

    return probe


def _terminal(do: str, term: str = "xterm", columns: int = 80, **environment):
    """A probe: all streams are a terminal of so many columns."""

    def probe(place: Place) -> str:
        import fcntl
        import pty
        import struct
        import termios

        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        run = place.start(do, {"TERM": term, **environment}, out=slave, err=slave)
        os.close(slave)
        os.set_blocking(master, False)
        seen = b""

        def read() -> bool:
            nonlocal seen
            try:
                seen += os.read(master, 1 << 16)
            except OSError:
                pass
            return False

        run.until(read, 120)
        done = run.wait()
        read()
        os.close(master)
        if done.code != 0 or b"Traceback" in seen:
            raise Bad(f"exit {done.code}: {seen[-100:]!r}")
        if term == "dumb" and b"\x1b" in seen:
            raise Poor("escape codes on a terminal that knows none")
        return f"works, {len(seen)} bytes shown"

    return probe


def _deleted(place: Place) -> str:
    """The working folder is removed under the process."""
    gone = place.folder / "gone"
    gone.mkdir()

    def before() -> None:
        os.chdir(gone)
        gone.rmdir()

    return hold(place.start(("info", str(place.folder / "ball.h5")), before=before).wait(), WORKS)


def _read_only_folder(name: str):
    """Set up: a folder that cannot be written to, also by root: a file stands there."""
    return lambda folder: (folder / name).write_text("")


def _utf8(folder: Path) -> None:
    (folder / "ball.h5").rename(folder / "bäll-集.h5")


KEPT = "Taichi writes its kernels there as the process ends; one folder a user, used again"

HERE = [
    renders("HOME is not set", environment={"HOME": None, "TI_OFFLINE_CACHE_FILE_PATH": None}, needs=POSIX),
    renders("HOME is no folder", _read_only_folder("home"),
            environment={"HOME": "home", "TI_OFFLINE_CACHE_FILE_PATH": None}, needs=POSIX, known=KEPT),
    renders("HOME does not exist", environment={"HOME": "/nonexistent", "TI_OFFLINE_CACHE_FILE_PATH": None},
            needs=("posix", "root"), makes=()),
    renders("HOME is empty", environment={"HOME": "", "TI_OFFLINE_CACHE_FILE_PATH": None}, needs=POSIX),
    renders("HOME is relative", lambda f: (f / "h").mkdir(), makes=("h*",),
            environment={"HOME": "h", "TI_OFFLINE_CACHE_FILE_PATH": None}, needs=POSIX),
    renders("the cache folder is a file", _read_only_folder("cache"),
            environment={"TI_OFFLINE_CACHE_FILE_PATH": "cache"}, known=KEPT),
    renders("the cache folder is /proc", environment={"TI_OFFLINE_CACHE_FILE_PATH": "/proc/cache"}, needs=LINUX,
            known=KEPT),
    renders("the cache folder is new", environment={"TI_OFFLINE_CACHE_FILE_PATH": "fresh"}, makes=("fresh*",),
            seconds=60),
    renders("the cache holds noise", lambda f: [(f / "c").mkdir(), (f / "c/ticache.tcb").write_bytes(b"\0" * 99)],
            environment={"TI_OFFLINE_CACHE_FILE_PATH": "c"}, makes=("c/*",), changes=("c/*",), seconds=60),
    renders("TMPDIR does not exist", environment={"TMPDIR": "/nonexistent"}),
    renders("TMPDIR is a file", _read_only_folder("t"), environment={"TMPDIR": "t"}),
    renders("locale C", environment={"LC_ALL": "C", "PYTHONUTF8": "0"}),
    area.works("a name of other scripts in locale C", ("info", "bäll-集.h5"), _utf8, fresh=True,
               environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, needs=LINUX),
    area.refused("a missing name of other scripts in locale C", ("info", "fehlt-集.h5"), "no such file", fresh=True,
                 environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, needs=LINUX),
    area.works("stdout that takes ASCII alone", ("info", "bäll-集.h5"), _utf8, fresh=True,
               environment={"PYTHONIOENCODING": "ascii"}, needs=LINUX),
    renders("PYTHONOPTIMIZE=2", environment={"PYTHONOPTIMIZE": "2", "PYTHONPYCACHEPREFIX": "pyc"}, makes=("pyc*",)),
    area.works("--help under PYTHONOPTIMIZE=2", "fit --help", fresh=True, says="Recover a volume",
               known="Python itself takes the texts away",
               environment={"PYTHONOPTIMIZE": "2", "PYTHONPYCACHEPREFIX": "pyc"}, makes=("pyc*",)),
    area.works("info under -W error", "info ball.h5", flags=("-W", "error")),
    renders("render under -W error", flags=("-W", "error")),
    area.works("fit under -W error", FIT, flags=("-W", "error"), makes=("out.h5",)),
    renders("-X dev", flags=("-X", "dev")),
    area.works("-s -B", "info ball.h5", flags=("-s", "-B")),
    area.works("python -I, the installed program", "info ball.h5", script=True, flags=("-I",)),
    *[shadowed(name) for name in ("numpy.py", "random.py", "json.py", "taichi.py", "click.py", "raymarch.py")],
    renders("PYTHONHASHSEED=1", environment={"PYTHONHASHSEED": "1"}),
    renders("OMP_NUM_THREADS is a word", environment={"OMP_NUM_THREADS": "many"}),
    renders("TI_ARCH=cuda", environment={"TI_ARCH": "cuda"}),
    renders("TI_ARCH is no arch", environment={"TI_ARCH": "toaster"}),
    renders("TI_OFFLINE_CACHE=0", environment={"TI_OFFLINE_CACHE": "0"}, seconds=60),
    renders("MPLBACKEND is no backend", environment={"MPLBACKEND": "toaster"}),
    renders("COLUMNS=20", environment={"COLUMNS": "20"}),
    renders("COLUMNS=0", environment={"COLUMNS": "0"}),
    renders("COLUMNS is a word", environment={"COLUMNS": "wide"}),
    renders("NO_COLOR", environment={"NO_COLOR": "1"}),
    area.works("--help in 20 columns", "fit --help", fresh=True, environment={"COLUMNS": "20"}, says="--out"),
    renders("TERM is not set", environment={"TERM": None}),
    renders("CUDA_VISIBLE_DEVICES is nonsense", environment={"CUDA_VISIBLE_DEVICES": "99,x"}),
    renders("HDF5_PLUGIN_PATH is nonsense", environment={"HDF5_PLUGIN_PATH": "/proc"}),
    renders("HDF5_USE_FILE_LOCKING is nonsense", environment={"HDF5_USE_FILE_LOCKING": "perhaps"}),
]  # fmt: skip

STREAMS = [
    *[area.probe(f"{name} is closed", _closed(i), needs=POSIX) for i, name in enumerate(("stdin", "stdout", "stderr"))],
    area.probe("stderr is closed in a rendering", _closed(2, RENDER), makes=PICTURES, needs=POSIX),
    area.probe("stdout is a full disk: info", _full("info ball.h5"), needs=LINUX),
    area.probe("stdout is a full disk: --help", _full("fit --help"), needs=LINUX),
    area.probe("stdout is a full disk: evaluate --json", _full("evaluate ball.h5 set --json"), needs=LINUX),
    area.probe("nobody reads info", _gone("info ball.h5"), needs=POSIX),
    area.probe("nobody reads a fit's result", _gone(FIT), makes=("out.h5",), needs=POSIX),
    area.probe("nobody reads evaluate --json", _gone("evaluate ball.h5 set --json"), needs=POSIX),
    area.probe("a terminal", _terminal(FIT), makes=("out.h5",), needs=POSIX),
    area.probe("a terminal of 20 columns", _terminal(FIT, columns=20), makes=("out.h5",), needs=POSIX),
    area.probe("a terminal of 0 columns", _terminal(RENDER, columns=0), makes=PICTURES, needs=POSIX),
    area.probe("a terminal that knows nothing", _terminal(FIT, term="dumb"), makes=("out.h5",), needs=POSIX),
    area.probe("a terminal of an unknown kind", _terminal(RENDER, term="toaster"), makes=PICTURES, needs=POSIX),
    area.probe("the working folder is gone", _deleted, needs=LINUX),
]

CASES = [*HERE, *STREAMS]
