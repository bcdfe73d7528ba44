"""March and adjoint beside PyTorch, Dr.Jit and a C library, in turn, as a table: what is it worth to use raymarch?

python benchmarks/peers.py [--n 128] [--resolution 256] [--repeats 5] [--limit FILE.c] [--tiles] [--arch cuda] [--json]

The workload of `raymarch bench march`: whole steps of half a voxel, nothing empty, no early stop. Raymarch takes the
rays of an image square by square, the others get them row by row; with --tiles they too get them in squares. All run
in this process, one after the other, so that what the machine does meanwhile hits all of them; the fastest of each
counts, and each adjoint goes from the image's gradient to the one finished gradient of the grid. `differs` is that
gradient's relative distance from raymarch's, which comes from the shorter last step that only raymarch's rays take.
Needs `pip install torch`, and `pip install drjit` with LLVM (DRJIT_LIBLLVM_PATH); what is missing is left out, and
said. FILE.c is built with gcc; `others.Limit` says what it has to define.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from others import THREADS, DrJit, Limit, Torch, task_of
from plainly import count, plainly

from raymarch import runtime
from raymarch.bench.workload import workload
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import MAX_SLOTS
from raymarch.device.ray_buffer import RayBuffer
from raymarch.kernels.field.copies import clear_gradients
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.volumes.harmonics import Y00


class Raymarch:
    """This package, through the kernels that `render` and `fit` run: it marches a grid that is only read."""

    def __init__(self, work):
        from raymarch.engine import ti

        self.sync = ti.sync
        self.work, self.slots = work, min(THREADS, MAX_SLOTS) if runtime.runs_on_cpu() else 1
        self.read_grid, self.grid = Grid(work.volume.shape, 0), Grid(work.volume.shape, 0, slots=self.slots)
        self.rays = RayBuffer(len(work.rays))
        self.read_grid.upload(work.volume)
        self.grid.upload(work.volume)
        self.rays.upload(work.rays)
        self.rays.set_image_gradient(work.d_image)
        black, step = ti.Vector([0.0, 0.0, 0.0]), 0.5 * self.grid.voxel
        self.call = (self.rays.fields, self.grid.variant, len(work.rays), step, 0.0, 0.0, black)

    def march(self) -> None:
        march(self.read_grid.fields, *self.call)
        self.sync()

    def adjoint(self) -> None:
        clear_gradients(self.grid.fields)
        march_adjoint(self.grid.fields, *self.call)
        self.grid.reduce_slots()
        self.sync()

    def gradient(self) -> np.ndarray:
        d_density, d_features = self.grid.download_gradient()
        return np.concatenate([d_features / np.float32(Y00), d_density[..., None]], -1)


def compare(n: int, resolution: int, repeats: int, limit: str | None, tiles: bool, arch: str) -> dict:
    """Million samples a second of all that is there, and how far each gradient is from raymarch's."""
    work = workload(n, resolution)
    task = task_of(work, tiles)
    runners = {"raymarch": Raymarch(work)}
    once(runners["raymarch"])  # compiles
    makers = {"torch": lambda: Torch(task, arch), "drjit": lambda: DrJit(task, arch)}
    if limit:
        makers["limit"] = lambda: Limit(task, limit)
    for name, make in makers.items():
        try:
            runners[name] = make()
            once(runners[name])
        except (ImportError, RuntimeError, OSError, AttributeError, subprocess.CalledProcessError) as error:
            runners.pop(name, None)
            print(f"{name} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
    times = {name: [] for name in runners}
    for _ in range(repeats):
        for name, runner in runners.items():
            times[name].append(once(runner))
    best = {name: np.min(taken, 0) for name, taken in times.items()}
    ours = runners["raymarch"].gradient()
    rows = {}
    for name, runner in runners.items():
        differs = float(np.linalg.norm(runner.gradient() - ours) / np.linalg.norm(ours))
        speed = {what: work.samples / s / 1e6 for what, s in zip(("march", "adjoint"), best[name], strict=True)}
        ahead = {f"{what}_ratio": float(s / o) for what, s, o in zip(speed, best[name], best["raymarch"], strict=True)}
        rows[name] = {**speed, **ahead, "differs": differs}
    return {"n": n, "resolution": resolution, "samples": work.samples, "arch": arch, "threads": THREADS, "rows": rows}


def once(runner) -> tuple[float, float]:
    """Seconds of a march and of an adjoint."""
    began = time.perf_counter()
    runner.march()
    marched = time.perf_counter() - began
    if hasattr(runner, "ready"):
        runner.ready()
    began = time.perf_counter()
    runner.adjoint()
    return marched, time.perf_counter() - began


def main() -> None:
    """Time, print."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--n", type=int, default=128)
    ask.add_argument("--resolution", type=int, default=256)
    ask.add_argument("--repeats", type=count, default=5)
    ask.add_argument("--limit", metavar="FILE.c")
    ask.add_argument("--tiles", action="store_true", help="Give the others their rays square by square too.")
    ask.add_argument("--arch", choices=("cpu", "cuda"), default="cpu")
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
    runtime.start(a.arch)
    report = compare(a.n, a.resolution, a.repeats, a.limit, a.tiles, a.arch)
    if a.json:
        print(json.dumps(report))
        return
    print(
        f"{a.n}^3, {a.resolution}^2 rays, {report['samples']:,} samples, {a.arch}, {THREADS} threads;"
        " million samples a second"
    )
    print(f"{'':10}{'march':>8}{'adjoint':>9}   raymarch is faster by   gradient differs by")
    for name, row in report["rows"].items():
        ratio = f"{row['march_ratio']:9.2f} {row['adjoint_ratio']:7.2f}"
        print(f"{name:10}{row['march']:8.1f}{row['adjoint']:9.1f}{ratio}{row['differs']:26.1e}")


if __name__ == "__main__":
    plainly(main)
