"""Worker process of structure from motion: starts it, reads its messages and ends it in every case."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.sfm.messages import count_rows
from raymarch.system.child_process import child_command

INSTALL = 'pip install "raymarch[sfm]"'
MIN_PYCOLMAP = (4, 1, 1)  # of pycolmap: before, matching took five times as long
ABORT_MESSAGE = b"*** Aborted at"
POLL_INTERVAL = 0.5  # seconds between looks at how far it is
EXIT_TIMEOUT = 5.0  # seconds for a process to end, and for its last words
ShowProgress = Callable[[str, int, int], None]
log = logging.getLogger("raymarch")


def require_pycolmap() -> None:
    """Check of the extra: RaymarchError where pycolmap is missing or too old; it is not imported, see `mapping`."""
    if importlib.util.find_spec("pycolmap") is None:
        raise RaymarchError(f"cameras are found by pycolmap, which is not installed; {INSTALL}")
    try:
        version = importlib.metadata.version("pycolmap")
    except importlib.metadata.PackageNotFoundError:
        return  # by another name, as its build for CUDA
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < MIN_PYCOLMAP:
        raise RaymarchError(f"pycolmap is {version}, want {'.'.join(map(str, MIN_PYCOLMAP))} or later; {INSTALL}")


def run_worker(folder: Path, job: dict, show: ShowProgress, until: float) -> dict:
    """Result of the worker for a job, done in `folder`; it is over when this returns or raises.

    Args:
        folder: for its files; it may be large.
        job: as `worker` reads it.
        show: told how far it is: what, done, of how many.
        until: time by `time.monotonic` at which it is given up.

    Raises RaymarchError for what the worker found wrong, where it died, and where time is over.
    """
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    said = folder / "stderr.txt"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            child_command("raymarch.sfm.worker", str(folder)),
            cwd=folder,  # what lies where the caller stands must not stand in for Python's modules
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C comes to us, and we end it
        ) as child,
    ):
        lines: queue.Queue[bytes | None] = queue.Queue()
        listener = threading.Thread(target=_listen, args=(child, lines), daemon=True)
        listener.start()
        stage, watched = "starting", None
        try:
            while True:
                if time.monotonic() > until:
                    raise RaymarchError(
                        f"time is over while {stage}; give it more (--seconds), smaller images (--max-size) or fewer"
                        " photographs"
                    )
                try:
                    line = lines.get(timeout=POLL_INTERVAL)
                except queue.Empty:
                    if ABORT_MESSAGE in said.read_bytes():  # and may hang in telling where
                        raise RaymarchError(_death_message("an abort", said, stage)) from None
                    if watched:
                        database, table, what, total = watched
                        done = min(count_rows(Path(database), table), total)
                        stage = _show_progress(show, what, done, total)
                    continue
                if line is None:
                    raise RaymarchError(_death_message(_code(child), said, stage))
                told = json.loads(line)
                watched = told.get("watch")
                if "show" in told:
                    stage = _show_progress(show, *told["show"])
                elif "note" in told:
                    log.warning("%s", told["note"])
                elif "error" in told:
                    raise RaymarchError(told["error"])
                elif "result" in told:
                    return told["result"]
        finally:
            child.kill()
            listener.join(EXIT_TIMEOUT)  # Popen closes the pipe when it leaves, which must not happen under a reader


def _show_progress(show: ShowProgress, what: str, done: int, total: int) -> str:
    show(what, done, total)
    return f"{what} {done} of {total}"


def _listen(child: subprocess.Popen, lines: queue.Queue) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put(None)


def _code(child: subprocess.Popen) -> int:
    """Exit code of a process that has closed its output."""
    try:
        return child.wait(EXIT_TIMEOUT)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def _death_message(code: int | str, said: Path, stage: str) -> str:
    """Message for a worker that ended without a result. COLMAP's own checks may end a process."""
    text = said.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    failed = next((line for line in lines if re.search(r"Check failed|\*\*\* SIG", line)), (lines or [""])[-1])
    failed = "".join(c for c in failed if c.isprintable())[:200]
    return f"COLMAP ended with {code} while {stage} ({failed or 'no message'}); try other settings or fewer photographs"
