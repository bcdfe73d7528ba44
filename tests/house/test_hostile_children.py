"""Law: hostile.py leaves no child running, however it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="that the system ends the children of a dead process is Linux's"
)

RUNNER = """
import os, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from hostile_cases.place import Runner
root = Path(sys.argv[2])
runner = Runner(root, Path(sys.argv[1]).parent)
(root / "1").mkdir()
SLEEP = "import os, time\\nopen({name!r}, 'w').write(str(os.getpid()))\\ntime.sleep(100)\\n"
here = runner.environment(root / "1", {})
runner.start(root / "1", here, SLEEP.format(name=str(root / "own")))
thread = threading.Thread(target=runner.fork, args=(root / "1", here, SLEEP.format(name=str(root / "forked")), 100))
thread.start()
while not all((root / name).exists() and (root / name).read_text() for name in ("own", "forked")):
    time.sleep(0.02)
try:
    print("both", flush=True)
    time.sleep(100)
except KeyboardInterrupt:
    runner.kill()
    os._exit(0)
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_child_outlives_it(how, root, tmp_path):
    words = [sys.executable, "-c", RUNNER, str(root / "benchmarks"), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "both\n"
        pids = [int((tmp_path / name).read_text()) for name in ("own", "forked")]
        assert all(map(is_alive, pids))
        os.kill(run.pid, how)
        run.wait(30)
    until = time.monotonic() + 30
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))
