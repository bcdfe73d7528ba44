"""Engines in turn, their bits and their speed: python benchmarks/engines.py [taichi[=PYTHON] quadrants[=PYTHON] ...]
    [--quick] [--json].

Each engine is run in a process of its own by RAYMARCH_ENGINE, by this Python or by the one that is named, with an empty
kernel cache. Digests are of an image and its gradient at SH degrees 0 and 2, of every mode's picture and of a fit of 40
steps; they must be the same everywhere. Speed is that of `raymarch bench march`, the best of `--repeats` runs in turn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS = 40


def digest(*arrays) -> str:
    """Digest of the bytes of arrays."""
    import numpy as np

    total = hashlib.sha256()
    for each in arrays:
        total.update(np.ascontiguousarray(each).tobytes())
    return total.hexdigest()[:12]


def digests_of_gradients() -> dict[str, str]:
    """Image and gradient of small grids."""
    from dataclasses import replace

    import numpy as np

    import raymarch as rm
    from raymarch.bench.workload import workload
    from raymarch.device.grid import Grid
    from raymarch.device.ray_buffer import RayBuffer
    from raymarch.engine import ti
    from raymarch.kernels.field.copies import clear_gradients
    from raymarch.kernels.integrator.march import march
    from raymarch.kernels.integrator.march_adjoint import march_adjoint
    from raymarch.kernels.integrator.passes import passes_of

    found = {}
    for degree in (0, 2):
        work = workload(24, 48)
        features = np.random.default_rng(0).normal(size=(24, 24, 24, 3 * (degree + 1) ** 2)).astype(np.float32)
        volume = replace(work.volume, features=features, activation=rm.Activation("softplus", -1.0, 1.0, "sigmoid"))
        with Grid(volume.shape, degree, slots=2) as grid, RayBuffer(len(work.rays)) as rays:
            grid.upload(volume)
            rays.upload(work.rays)
            rays.set_image_gradient(work.d_image)
            count = len(work.rays)
            call = (grid.fields, rays.fields, grid.variant, count, grid.voxel, 1e-4, 1e-6, ti.Vector([1.0, 1.0, 1.0]))
            march(*call)
            clear_gradients(grid.fields)
            march_adjoint(*call)
            grid.reduce_slots()
            found[f"gradient of degree {degree}"] = digest(rays.image(count), *grid.download_gradient())
            if degree == 0:  # a march that looks ahead by itself
                passes = passes_of(grid.variant.mode)
                passes.depth(*call[:6])
                rays.fields.depth.grad.fill(1.0)
                clear_gradients(grid.fields)
                passes.depth_gradients.adjoint(*call[:6])
                grid.reduce_slots()
                found["gradient of depth"] = digest(rays.depth(count), grid.download_gradient()[0])
    return found


def digests_of_modes() -> dict[str, str]:
    """Pictures of a small volume by each mode that needs no table."""
    import numpy as np

    import raymarch as rm
    from raymarch.bench.workload import workload

    volume = workload(24, 48).volume
    camera = rm.Camera.look_at(eye=(1.7, 1.2, 2.2), width=48, height=48, fov=0.9)
    modes = ("emission-absorption", "additive", "maximum", "minimum", "average", "isosurface", "x-ray", "x-ray-joseph")
    found = {}
    for mode in modes:
        more = {"iso": 0.5} if mode == "isosurface" else {}
        found[mode] = digest(np.asarray(rm.render(volume, camera, march=rm.March(mode=mode, **more))))
    return found


def digest_of_fit() -> dict[str, str]:
    """Volume of a seeded fit."""
    import raymarch as rm
    from raymarch.bench.workload import views_of_blobs

    train, _ = views_of_blobs()
    fitted = rm.fit(train, rm.preset("quick", resolution=40, steps=STEPS, sh_degree=1)).volume
    return {f"fit of {STEPS} steps": digest(fitted.density, fitted.features)}


def measure(quick: bool) -> dict:
    """What the process of one engine finds."""
    import platform

    import raymarch as rm
    from raymarch import engine
    from raymarch.bench.speed import bench_march

    rm.start("cpu", "f32", 2)
    found = {"engine": engine.NAME, "version": ".".join(map(str, engine.ti.__version__))}
    found["python"] = platform.python_version()
    found["digests"] = {**digests_of_gradients(), **digests_of_modes(), **digest_of_fit()}
    if not quick:
        speed = bench_march(128, 128, repeats=9)
        found |= {"march": speed.march_msamples, "adjoint": speed.adjoint_msamples, "compile": speed.compile_seconds}
    return found


def ask(name: str, python: str, quick: bool) -> dict:
    """What an engine's process prints."""
    with tempfile.TemporaryDirectory() as cache:
        ours = {"RAYMARCH_ENGINE": name, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
        command = [python, __file__, "--one", *(["--quick"] if quick else [])]
        done = subprocess.run(command, env={**os.environ, **ours}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """A row an engine."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("engines", nargs="*", default=["taichi", "quadrants"], metavar="ENGINE[=PYTHON]")
    arguments.add_argument("--quick", action="store_true", help="digests alone")
    arguments.add_argument("--repeats", type=int, default=2, help="processes of each engine, in turn")
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.one:
        print(json.dumps(measure(a.quick)))
        return
    rows: dict[str, dict] = {}
    for _ in range(1 if a.quick else a.repeats):
        for each in a.engines:
            name, _, python = each.partition("=")
            row, best = ask(name, python or sys.executable, a.quick), rows.get(each)
            for key in ("march", "adjoint"):
                if best and not a.quick:
                    row[key] = max(row[key], best[key])
            rows[each] = row
    first = next(iter(rows.values()))["digests"]
    for row in rows.values():
        row["others"] = [name for name, of in row["digests"].items() if of != first[name]]
    if a.json:
        print(json.dumps([*rows.values()]))
        return
    for row in rows.values():
        said = f"{row['engine']:9} {row['version']:7} Python {row['python']:7}"
        if not a.quick:
            said += f" march {row['march']:6.1f} adjoint {row['adjoint']:6.1f} million samples a second,"
            said += f" compiled in {row['compile']:.1f} s;"
        print(said, "same bits" if not row["others"] else f"other bits: {', '.join(row['others'])}")


if __name__ == "__main__":
    main()
