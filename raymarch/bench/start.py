"""Benchmark of the first minute: seconds until a first picture, and until a fit's first step.

Each is a process of its own, from an empty cache of kernels, and with the kernels that the first run left there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from raymarch.errors import RaymarchError
from raymarch.runtime.kernel_cache import CACHE_VARIABLE

PICTURE = """
import numpy as np, raymarch as rm
ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(64, 64, 64))
rm.render(ball, rm.Camera.look_at((0, -4, 0), width=256, height=256))
"""
STEP = """
import raymarch as rm
from raymarch.bench.workload import views_of_blobs
with rm.Fitter(views_of_blobs()[0], rm.preset("quick", resolution=112)) as fitter:
    fitter.step()
"""
PROGRAMS = {
    "import": ["-c", "import raymarch"],
    "help": ["-m", "raymarch", "--help"],
    "picture": ["-c", PICTURE],
    "step": ["-c", STEP],
}


@dataclass(frozen=True)
class StartSpeed:
    """Seconds of whole processes.

    Attributes:
        python: an empty one.
        imported, help: `import raymarch`, and `raymarch --help`.
        picture_cold, picture: the first picture, 256 x 256 pixels of 64^3 samples, from an empty cache, and again.
        step_cold, step: the first step of a `quick` fit of small views that are made here, likewise.
    """

    python: float
    imported: float
    help: float
    picture_cold: float
    picture: float
    step_cold: float
    step: float


def bench_start(repeats: int = 3) -> StartSpeed:
    """Benchmark of the start: the fastest of `repeats` processes, but one from each empty cache.

    Raises RaymarchError where one of them fails.
    """
    with tempfile.TemporaryDirectory() as cache:
        cold = {name: _seconds(PROGRAMS[name], 1, cache) for name in ("picture", "step")}
        warm = {name: _seconds(program, repeats, cache) for name, program in PROGRAMS.items()}
        empty = _seconds(["-c", ""], repeats, cache)
    return StartSpeed(empty, warm["import"], warm["help"], cold["picture"], warm["picture"], cold["step"], warm["step"])


def _seconds(program: list[str], repeats: int, cache: str) -> float:
    """Seconds of the fastest run."""
    times, environment = [], {**os.environ, CACHE_VARIABLE: cache}
    for _ in range(repeats):
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, *program], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RaymarchError(f"a process that was timed failed: {done.stderr.strip().splitlines()[-1:]}")
        times.append(time.perf_counter() - begun)
    return min(times)
