"""How a fit's time a sample grows with the grid: python benchmarks/scaling.py [--sizes 64,128,256] [--limit FILE.c]
    [--density relu] [--colour clamped].

Steps of a fit of SH degree 0 before anything is found empty: rays of 35 views through all of an n^3 grid, loss,
adjoint, adding up, Adam, regularisers. With FILE.c (`others.Limit` says what it defines) the march and adjoint of
those same rays are timed in turn with the steps. The fastest of each counts.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from others import Limit, Task
from plainly import count, plainly

import raymarch as rm
from raymarch import runtime
from raymarch.bench.workload import views_of_blobs

BOX = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))


def rays_of(fitter: rm.Fitter, n: int) -> Task:
    """What the fitter's last step marched: its rays, whole steps of one voxel, on an empty grid."""
    fields, dt = fitter.buffer.fields, 2 / (n - 1) * fitter.settings.step
    drawn = (each.to_numpy()[: fitter.rays_a_step] for each in (fields.origin, fields.direction))
    origin, direction = (each.astype(np.float32) for each in drawn)  # the buffer is larger where images are
    with np.errstate(divide="ignore"):
        one, other = (-1 - origin) / direction, (1 - origin) / direction
    near = np.minimum(one, other).max(1).clip(0).astype(np.float32)
    steps = ((np.maximum(one, other).min(1) - near) / dt).clip(0).astype(np.int32)
    d_colour = np.random.default_rng(0).normal(size=(len(origin), 3)).astype(np.float32)
    return Task(np.zeros((n, n, n, 4), np.float32), origin, direction, near, steps, dt, d_colour)


def measure(n: int, repeats: int, limit: str | None, activation: dict[str, str]) -> dict:
    """Nanoseconds a sample of a fit's step, and of the limit's march and adjoint together."""
    from raymarch.engine import ti

    train, _ = views_of_blobs()
    same = {"sh_degree": 0, "hull": False, "levels": ((0.0, 1.0),), "refresh": 10**6}
    settings = rm.preset("default", resolution=n, **same, **activation)
    taken: dict[str, list[float]] = {"fit": [], "limit": []}
    with rm.Fitter(train, settings, box=BOX) as fitter:
        for k in range(repeats + 2):
            began = time.perf_counter()
            fitter.step()
            ti.sync()
            seconds = time.perf_counter() - began
            task = rays_of(fitter, n)
            samples = int(task.steps.sum())
            if k < 2:
                continue  # compiles, or loads
            taken["fit"].append(seconds / samples)
            if limit:
                if k == 2:
                    peer = Limit(task, limit)
                peer.render_camera(task)
                peer.march()
                began = time.perf_counter()
                peer.march()
                peer.adjoint()
                taken["limit"].append((time.perf_counter() - began) / samples)
    return {"n": n, "samples": samples, **{name: 1e9 * min(all_) for name, all_ in taken.items() if all_}}


def main() -> None:
    """A row a size."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--sizes", default="64,128,256")
    ask.add_argument("--repeats", type=count, default=10)
    ask.add_argument("--limit", metavar="FILE.c")
    ask.add_argument("--density", default="softplus", help="activation of the fit: relu is what FILE.c marches")
    ask.add_argument("--colour", default="sigmoid", help="activation of the fit: clamped is nearest to FILE.c's")
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    runtime.start("cpu")
    rows = [measure(int(n), a.repeats, a.limit, {"density": a.density, "colour": a.colour}) for n in a.sizes.split(",")]
    if a.json:
        print(json.dumps(rows))
        return
    for row in rows:
        told = "".join(
            f"  {name} {row[name]:6.1f} ns a sample ({row[name] / rows[0][name]:.2f} times the first)"
            for name in ("fit", "limit")
            if name in row
        )
        print(f"{row['n']:4}^3 {told}")


if __name__ == "__main__":
    plainly(main)
