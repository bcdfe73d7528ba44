"""Seconds an image and bytes of a large grid: python benchmarks/render.py [--n 256] [--size 400] [--json].

The cloud of scenes/, its true density on n^3 samples and one colour (SH degree 0), seen by its first test camera at
size^2 pixels; best of several once all is compiled, and the peak of the process beyond `import raymarch` where Linux
tells it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from plainly import plainly

import raymarch as rm

SCENES = Path(__file__).resolve().parent.parent / "scenes"


def resident(field: str) -> int:
    """Bytes of this process by a field of Linux's /proc/self/status, 0 where there is none."""
    status = Path("/proc/self/status")
    rows = dict(line.split(":", 1) for line in status.read_text().splitlines()) if status.exists() else {}
    return int(rows.get(field, "0 kB").split()[0]) * 1024


def main() -> None:
    """Make the volume, render, print."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--n", type=int, default=256)
    ask.add_argument("--size", type=int, default=400)
    ask.add_argument("--repeats", type=int, default=5)
    ask.add_argument("--step", type=float, default=rm.March().step, help="Of the march [voxel].")
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    before = resident("VmRSS")
    sys.path.insert(0, str(SCENES))
    from make_cloud import density

    camera = rm.load_views(SCENES / "cloud", "test").cameras[0]
    camera = camera.scaled(a.size / camera.width)
    axis = np.linspace(-1, 1, a.n, dtype=np.float32)
    raw, square = np.empty((a.n,) * 3, np.float32), np.stack(np.meshgrid(axis, axis, indexing="ij"), -1)
    for i, x in enumerate(axis):  # a slab at a time, so that making the volume is not what takes the memory
        raw[i] = density(np.concatenate([np.full((a.n, a.n, 1), x), square], -1))
    features = np.full((a.n,) * 3 + (3,), 0.8 / 0.28209479, np.float32)
    step = 2 / (a.n - 1)
    place = np.diag([step, step, step, 1.0])
    place[:3, 3] = -1
    volume = rm.Volume(raw, features, place, rm.Activation("relu", 0.0, 1.0, "identity"))
    taken = []
    with rm.Renderer(volume, rm.March(step=a.step)) as renderer:
        for _ in range(a.repeats + 1):
            began = time.perf_counter()
            renderer.render(camera, depth=False)
            taken.append(time.perf_counter() - began)
    row = {"n": a.n, "size": a.size, "seconds": min(taken[1:]), "peak_bytes": resident("VmHWM") - before}
    told = (
        f"{a.n}^3, {a.size} x {a.size}: {row['seconds']:.3f} s an image, {row['peak_bytes'] / 1e9:.2f} GB at the peak"
    )
    print(json.dumps(row) if a.json else told)


if __name__ == "__main__":
    plainly(main)
