"""Where cases run: forks of one process that has imported everything, or processes of their own.

As a program it is either the nursery, which forks a child for each line of JSON that it reads (`--nursery`), or runs
one file of Python source (`child.py FILE`). A fork costs hundredths of a second where a start costs one to two.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path


def run_source(source: str) -> None:
    """Run Python source with `rm`, `np`, and the folder's `ball`, `views` and `camera`; a RaymarchError is one line."""
    import numpy as np

    import raymarch as rm

    names = {"__name__": "case", "np": np, "rm": rm}
    try:
        if Path("ball.h5").is_file() and Path("set").is_dir():
            names |= {
                "ball": rm.load("ball.h5"),
                "views": rm.load_views("set"),
                "camera": rm.load_views("set").cameras[0],
            }
        exec(compile(source, "<case>", "exec"), names)
    except rm.RaymarchError as error:
        print(f"raymarch: {error}", file=sys.stderr)
        sys.exit(1)
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        traceback.print_exc()
        sys.exit(1)


def die_with_parent() -> None:
    """Have the system kill this process once the one that began it is gone, however that ends; on Linux alone."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _child(task: dict) -> None:
    """Become the case: its folder, environment and streams; ends as any Python process ends."""
    os.setpgid(0, 0)
    os.chdir(task["folder"])
    os.environ.clear()
    os.environ.update(task["environment"])
    for number, (name, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), (task["out"], os.O_WRONLY), (task["err"], os.O_WRONLY)]
    ):
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")
    if task.get("user"):
        os.setgid(task["user"])
        os.setuid(task["user"])
    die_with_parent()  # after that, which forgets it
    import raymarch.cli.options as options

    options.STARTED = time.perf_counter()  # of this command, not of the nursery
    if "source" in task:
        run_source(task["source"])
        sys.exit(0)
    from raymarch.cli import main

    main(task["words"])


def _resident() -> int:
    """Bytes of memory that this process has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def wait(pid: int, seconds: float) -> dict:
    """The end of a child: code, CPU seconds and peak bytes; killed with its own children after `seconds`."""
    end, hung = time.monotonic() + seconds, False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if not hung and time.monotonic() > end:
            hung = True
            _kill(pid)
        time.sleep(0.01)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "code": os.waitstatus_to_exitcode(status),
        "hung": hung,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * unit,
    }


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
            return
        except ProcessLookupError:
            pass


def _nursery() -> None:
    import click  # noqa: F401
    import h5py  # noqa: F401
    import numpy  # noqa: F401
    import PIL.Image  # noqa: F401
    import rich.progress  # noqa: F401

    import raymarch.cli
    import raymarch.evaluation.held_out
    import raymarch.fitting.fit
    import raymarch.fitting.forecast
    import raymarch.gradients.linearised
    import raymarch.io.image_sets.load
    import raymarch.registration.register  # noqa: F401

    replies = os.fdopen(os.dup(1), "w")
    os.set_inheritable(replies.fileno(), False)
    base = _resident()
    for line in iter(sys.stdin.readline, ""):
        task = json.loads(line)
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            replies.close()
            _child(task)
            return
        result = wait(pid, task["limit"])
        result |= {"peak": max(result["peak"] - base, 0), "seconds": time.monotonic() - began}
        replies.write(json.dumps(result) + "\n")
        replies.flush()


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules are no one's numpy
    if sys.argv[1] == "--nursery":
        _nursery()
    else:
        run_source(Path(sys.argv[1]).read_text(encoding="utf-8"))
