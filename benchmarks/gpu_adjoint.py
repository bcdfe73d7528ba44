"""What makes a step of a fit faster on a GPU: python benchmarks/gpu_adjoint.py [--arch cuda] [--json].

The adjoint adds by atomics, and is 40 times as slow as its march on the GPU that was measured. This times march,
adjoint, Adam and a whole step of a fit of scenes/tower with each of `kernels/gpu_switches` alone and with all, at SH
degrees 0 and 1 and for 1 and 2 x 2 rays a pixel. Volume and rays are those of a short fit on the CPU, and the gradient
is held against its gradient. Each row is a process of its own. `--arch cpu` and `--arch vulkan` run the same; take it
small there: --n 24 --rays 256 --repeats 2 --sides 1.

Columns: milliseconds, the median of `--repeats`, adding up included in the adjoint; then the relative L2 distances of
the gradient, of density and of colour.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from plainly import count, plainly

SWITCHES = ("", "turned_corners", "adam_by_sample", "turned_corners,adam_by_sample")
ROOT = Path(__file__).resolve().parent.parent
STEPS = 30  # of the fit on the CPU
STEPS_TOGETHER = 10  # that are timed together: the host runs ahead of a GPU, as in a fit
LIMIT = {"f32": 1e-4, "f64": 1e-12}  # of the gradient's distance


@dataclass(frozen=True)
class Row:
    """What a process is asked for; `switches` by name, separated by commas."""

    arch: str
    precision: str
    switches: str
    degree: int
    side: int
    n: int
    rays: int
    repeats: int

    @property
    def name(self) -> str:
        """Switches in words."""
        return self.switches.replace(",", " + ").replace("_", " ") or "as it is"


def median_ms(what: Callable[[], object], before: Callable[[], object], repeats: int) -> float:
    """Milliseconds of a call, with all that it launched; `before` each, something else is called."""
    from raymarch.engine import ti

    found = []
    for _ in range(repeats + 1):  # the first compiles
        before()
        ti.sync()
        began = time.perf_counter()
        what()
        ti.sync()
        found.append(time.perf_counter() - began)
    return 1e3 * float(np.median(found[1:]))


def fitter_of(row: Row, box: np.ndarray | None):
    """A fit at its finest level from the first step on, in one dense box."""
    import raymarch as rm

    views = rm.load_views(ROOT / "scenes" / "tower", split="train")
    changes = {"steps": 10**6, "resolution": row.n, "rays": row.rays, "sh_degree": row.degree, "bricks": False}
    schedule = {"levels": ((0.0, 1.0),), "supersample": row.side, "supersample_from": 0.0}
    return rm.Fitter(views, rm.preset("default", **changes, **schedule), box=box)


def measure(row: Row, folder: Path, reference: bool) -> dict[str, float]:
    """Times of a row; the reference leaves volume, rays and gradient in the folder, others are held against these."""
    import raymarch as rm
    from raymarch import runtime
    from raymarch.engine import ti
    from raymarch.geometry.rays import Rays
    from raymarch.kernels import gpu_switches
    from raymarch.kernels.field import copies
    from raymarch.kernels.integrator.passes import passes_of

    gpu_switches.choose(gpu_switches.GpuSwitches(**{name: True for name in row.switches.split(",") if name}))
    rm.start(row.arch, row.precision)
    file, known = folder / f"{row.degree}-{row.side}.npz", {}
    if not reference:
        with np.load(file) as arrays:
            known = dict(arrays)
    with fitter_of(row, known.get("box")) as fitter:
        grid, buffer, real = fitter.grid, fitter.buffer, runtime.dtype()
        for _ in range(STEPS if reference else 1):
            fitter.step()
        rays, count = buffer.fields, fitter.rays_a_step
        if reference:
            known |= {"box": fitter.box, "origin": rays.origin.to_numpy()[:count]}
            known |= {"direction": rays.direction.to_numpy()[:count], "jitter": rays.jitter.to_numpy()}
            known["draw"] = rays.draw.to_numpy()
            known["density"], known["features"] = grid.download()
        copies.upload(known["density"].astype(real), known["features"].astype(real), grid.fields)
        grid.refresh_occupancy(fitter.plan.least_sigma(STEPS))
        buffer.upload(Rays(known["origin"], known["direction"]))
        rays.jitter.from_numpy(known["jitter"].astype(real))
        rays.draw.from_numpy(known["draw"])
        buffer.set_image_gradient(np.random.default_rng(0).normal(size=(count, 4)) / count)
        s, variant, passes = fitter.settings, fitter._variant, passes_of(grid.variant.mode)
        call = (count, s.step * grid.voxel, s.min_transmittance, s.min_weight, ti.Vector([1.0, 1.0, 1.0]))

        def march() -> None:
            passes.march(grid.fields, rays, variant.replace(roulette=0.0), *call)

        def adjoint() -> None:
            passes.adjoint(grid.fields, rays, variant, *call)
            grid.reduce_slots()

        def steps() -> None:
            for _ in range(STEPS_TOGETHER):
                fitter.step()

        march()
        copies.clear_gradients(grid.fields)
        adjoint()
        gradient = dict(zip(("d_density", "d_features"), grid.download_gradient(), strict=True))
        if reference:
            np.savez(file, **known, **gradient)
            known |= gradient
        found = {
            name: float(np.linalg.norm(gradient[name] - known[name]) / np.linalg.norm(known[name])) for name in gradient
        }
        found["march"] = median_ms(march, lambda: None, row.repeats)
        found["adjoint"] = median_ms(adjoint, lambda: None, row.repeats)
        age = iter(range(10**6))
        found["adam"] = median_ms(
            lambda: fitter.rates.optimiser.step(grid, at := next(age), 0.0, at), adjoint, row.repeats
        )
        found["step"] = median_ms(steps, lambda: None, row.repeats) / STEPS_TOGETHER
    return found


def ask(row: Row, folder: Path, reference: bool = False) -> dict[str, float]:
    """What the process of a row finds."""
    words = [json.dumps(asdict(row)), str(folder), *(["reference"] if reference else [])]
    print(f"{row.arch}, degree {row.degree}, {row.side} x {row.side} rays, {row.name}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, __file__, "--one", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers from 0, for argparse."""
    return tuple(int(each) for each in text.split(","))


def main() -> None:
    """Measure all rows, and print each as it comes: those of a run that was cut are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=("cpu", "cuda", "vulkan"), default="cuda")
    parser.add_argument("--precision", choices=tuple(LIMIT), default="f32")
    parser.add_argument("--n", type=count, default=208, help="samples along the longest side")
    parser.add_argument("--rays", type=count, default=16384)
    parser.add_argument("--repeats", type=count, default=20)
    parser.add_argument("--degrees", type=numbers, default=(0, 1))
    parser.add_argument("--sides", type=numbers, default=(1, 2))
    parser.add_argument("--json", action="store_true", help="one record in place of the table")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.one:
        print(json.dumps(measure(Row(**json.loads(a.one[0])), Path(a.one[1]), len(a.one) > 2)))
        return
    columns, rows = ("march", "adjoint", "adam", "step"), []
    if not a.json:
        print(f"{'':42}{''.join(f'{name:>9}' for name in columns)} {'density':>9} {'colour':>9}")
    with tempfile.TemporaryDirectory() as name:
        for degree, side in itertools.product(a.degrees, a.sides):
            plain = Row("cpu", a.precision, "", degree, side, a.n, a.rays, 1)
            ask(plain, Path(name), reference=True)
            for switches in SWITCHES:
                row = replace(plain, arch=a.arch, switches=switches, repeats=a.repeats)
                found = ask(row, Path(name))
                rows.append({"row": asdict(row), **found})
                if not a.json:
                    times = "".join(f"{found[each]:9.3f}" for each in columns)
                    title = f"degree {degree}, {side} x {side}, {row.name}"
                    print(f"{title:42}{times} {found['d_density']:9.1e} {found['d_features']:9.1e}", flush=True)
    if a.json:
        print(json.dumps(rows))
    wrong = [row for row in rows if not max(row["d_density"], row["d_features"]) < LIMIT[a.precision]]
    if wrong:
        sys.exit(f"{len(wrong)} gradients are not the CPU's: {wrong[0]['row']}")


if __name__ == "__main__":
    plainly(main)
