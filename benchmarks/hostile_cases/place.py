"""A folder for a case, with a small image set and a volume in it, and the ways to run raymarch there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hostile_cases import child

HERE = Path(__file__).resolve().parent
HANG = 120.0  # seconds after which a case counts as hanging


@dataclass(frozen=True)
class Done:
    """How a run ended: code (negative: the signal), what it said, CPU seconds and bytes beyond the imports."""

    code: int
    out: str
    err: str
    seconds: float
    cpu: float
    peak: int
    hung: bool


class Runner:
    """Runs commands one after another, in forks of a nursery of its own where the system has forks."""

    def __init__(self, root: Path, package: Path, patience: float = 1.0):
        self.root, self.package, self.patience = root, package, patience
        self._nursery: subprocess.Popen | None = None
        self._running: list[Running] = []
        self._lock = threading.Lock()
        for name in ("home", "cache"):
            (root / name).mkdir(exist_ok=True)

    def environment(self, folder: Path, changes: dict[str, str | None]) -> dict[str, str]:
        """What a plain user's process has."""
        kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")
        found = {name: os.environ[name] for name in kept if name in os.environ}
        found |= {
            "HOME": str(self.root / "home"),
            "TI_OFFLINE_CACHE_FILE_PATH": str(self.root / "cache"),
            "TMPDIR": str(temporary_of(folder)),
            "PYTHONPATH": str(self.package),
            "MPLBACKEND": "agg",
            "TERM": "dumb",
        }
        for name, value in changes.items():
            found.pop(name, None)
            if value is not None:
                found[name] = value
        return found

    def fork(self, folder: Path, environment: dict[str, str], do, limit: float, user: int = 0) -> Done:
        """Words or source in a fork of the nursery, as another user if asked."""
        if not hasattr(os, "fork"):
            return self.start(folder, environment, do).wait(limit)
        with self._lock:
            if self._nursery is None or self._nursery.poll() is not None:
                self._nursery = subprocess.Popen(
                    [sys.executable, str(HERE / "child.py"), "--nursery"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=self.environment(folder, {}),
                    start_new_session=True,
                    preexec_fn=_plain_signals(),
                    text=True,
                )
            streams = _streams(folder)
            task = {"folder": str(folder), "environment": environment, "limit": limit * self.patience, "user": user}
            task |= {"source": do} if isinstance(do, str) else {"words": list(do)}
            for name, path in zip(("out", "err"), streams, strict=True):
                path.write_bytes(b"")
                task[name] = str(path)
            assert self._nursery.stdin
            assert self._nursery.stdout
            self._nursery.stdin.write(json.dumps(task) + "\n")
            self._nursery.stdin.flush()
            reply = json.loads(self._nursery.stdout.readline())
            return Done(**reply, out=_read(streams[0]), err=_read(streams[1]))

    def start(self, folder: Path, environment, do, flags=(), script=False, **how) -> Running:
        """Words or source in a process of its own."""
        if isinstance(do, str):
            source = side_of(folder, "source.py")
            source.write_text(do, encoding="utf-8")
            command = [sys.executable, *flags, str(HERE / "child.py"), str(source)]
        elif script:
            program = side_of(folder, "bin") / "raymarch"
            program.parent.mkdir(exist_ok=True)
            lines = f"import sys\nsys.path.insert(0, {str(self.package)!r})\nfrom raymarch.cli import main\nmain()\n"
            program.write_text(lines)
            command = [sys.executable, *flags, str(program), *do]
        else:
            command = [sys.executable, *flags, "-m", "raymarch", *do]
        self._running = [each for each in self._running if each.process.returncode is None]
        self._running.append(Running(command, folder, environment, self.patience, **how))
        return self._running[-1]

    def close(self) -> None:
        """End the nursery."""
        if self._nursery is not None and self._nursery.stdin:
            self._nursery.stdin.close()
            self._nursery.wait(10)

    def kill(self) -> None:
        """End the nursery, and with it its child, and all processes that were begun, with those that they began."""
        running = [] if self._nursery is None else [self._nursery]
        for process in [*running, *(each.process for each in self._running)]:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


class Running:
    """A process of its own, under way."""

    def __init__(self, command, folder: Path, environment, patience: float, *, out=None, err=None, before=None):
        self.streams, self.patience = _streams(folder), patience
        self.began = time.monotonic()
        with open(self.streams[0], "wb") as stdout, open(self.streams[1], "wb") as stderr:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out if out is not None else stdout,
                stderr=err if err is not None else stderr,
                start_new_session=True,
                preexec_fn=_plain_signals(before),
            )

    def said(self) -> str:
        """What it has said so far."""
        return _read(self.streams[0]) + _read(self.streams[1])

    def until(self, found, seconds: float = 60.0) -> bool:
        """Wait until `found()`, or the process ends, or time is over; whether it was found."""
        end = time.monotonic() + seconds * self.patience
        while time.monotonic() < end:
            if found():
                return True
            if self.process.poll() is not None:
                return bool(found())
            time.sleep(0.005)
        return False

    def wait(self, limit: float = HANG) -> Done:
        """How it ended."""
        if self.process.returncode is not None:
            result = {"code": self.process.returncode, "hung": False, "cpu": 0.0, "peak": 0}
        elif hasattr(os, "wait4"):
            result = child.wait(self.process.pid, limit * self.patience)
            self.process.returncode = result["code"]
        else:
            result = {"code": self.process.wait(limit), "hung": False, "cpu": 0.0, "peak": 0}
        result["peak"] = 0  # includes the imports here, which differ by command
        seconds = time.monotonic() - self.began
        return Done(**result, seconds=seconds, out=_read(self.streams[0]), err=_read(self.streams[1]))


class Place:
    """What a probe works with: the folder, and raymarch run in it."""

    def __init__(self, runner: Runner, folder: Path):
        self.runner, self.folder = runner, folder

    def run(self, do, user: int = 0, **environment) -> Done:
        """Words (or one text of them, or source with a newline) in a fork, to its end."""
        found = self.runner.environment(self.folder, environment)
        return self.runner.fork(self.folder, found, _parsed(do), HANG, user)

    def start(self, do, environment=None, **how) -> Running:
        """The same in a process of its own, under way."""
        return self.runner.start(
            self.folder, self.runner.environment(self.folder, environment or {}), _parsed(do), **how
        )


def _plain_signals(before=None):
    """What a child does first: a shell's background ignores Ctrl-C, and children inherit that."""
    if os.name != "posix":
        return None

    def first() -> None:
        child.die_with_parent()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if before is not None:
            before()

    return first


def _parsed(do):
    return tuple(do.split()) if isinstance(do, str) and "\n" not in do else do


def side_of(folder: Path, name: str) -> Path:
    """A path for a case's own things, beside its folder."""
    return folder.with_name(f"{folder.name}.{name}")


def temporary_of(folder: Path) -> Path:
    """The case's TMPDIR, beside its folder."""
    return side_of(folder, "tmp")


def _streams(folder: Path) -> tuple[Path, Path]:
    return side_of(folder, "out"), side_of(folder, "err")


def _read(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")
