"""March and adjoint on one workload, in million samples a second: python benchmarks/march.py [--n 128] [--json].

An RGB + sigma grid of n^3 random values (twelve Gaussians of density) on [-1, 1]^3, seen by one camera of 256 x 256
pixels; steps of half a voxel, Beer-Lambert, no early stop, no background; only whole steps are counted. The adjoint
goes from the image's gradient to the one finished gradient of the grid, clearing and adding up included.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from raymarch.camera import Camera
from raymarch.grid import Grid
from raymarch.kernels.march import march, march_adjoint
from raymarch.kernels.transfer import clear_gradients
from raymarch.pose import affine_of_box
from raymarch.raybuffer import RayBuffer
from raymarch.rays import Rays
from raymarch.runtime import start
from raymarch.volume import Y00, Activation, Volume

EYE = (1.7, 1.2, 2.2)


def workload(n: int, resolution: int, seed: int = 0) -> tuple[Volume, Rays, int, np.ndarray]:
    """The volume, the rays, the number of whole steps and the image's gradient."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(-1, 1, n, dtype=np.float32)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    sigma = np.zeros((n, n, n), np.float32)
    for _ in range(12):
        c, r = rng.uniform(-0.6, 0.6, 3), rng.uniform(0.1, 0.35)
        sigma += 4 * np.exp(-((x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2) / (r * r)).astype(np.float32)
    features = rng.uniform(0, 1, (n, n, n, 3)).astype(np.float32) / np.float32(Y00)
    box = [(-1, -1, -1), (1, 1, 1)]
    volume = Volume(sigma, features, affine_of_box(box, (n, n, n)), Activation("relu", 0, 1, "identity"))
    camera = Camera.look_at(EYE, up=(0, 1, 0), fov=np.deg2rad(50), width=resolution, height=resolution)
    rays = camera.rays()
    with np.errstate(divide="ignore"):
        t0, t1 = (-1 - rays.origin) / rays.direction, (1 - rays.origin) / rays.direction
    near = np.maximum(np.minimum(t0, t1).max(1), 0)
    far = np.maximum(np.maximum(t0, t1).min(1), near)
    d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
    d_image[:, 3] = 0
    return volume, rays, int(((far - near) * (n - 1)).astype(int).sum()), d_image


def best(call, repeats: int) -> float:
    """Seconds of the fastest of several calls, after one that compiles."""
    import taichi as ti  # after raymarch, which keeps its banner off stdout

    call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        ti.sync()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--n", type=int, default=128)
    ask.add_argument("--resolution", type=int, default=256)
    ask.add_argument("--repeats", type=int, default=5)
    ask.add_argument("--block", type=int, default=4)
    ask.add_argument("--slots", type=int, default=2)
    ask.add_argument("--arch", default="auto")
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    import taichi as ti

    running = start(a.arch)
    volume, rays, samples, d_image = workload(a.n, a.resolution)
    with Grid(volume.shape, 0, slots=a.slots, block=a.block) as grid, RayBuffer(len(rays)) as buffer:
        grid.upload(volume)
        buffer.upload(rays)
        call = (grid.fields, buffer.fields, grid.reading, len(rays), 0.5 * grid.voxel, 0.0, 0.0, ti.Vector([0.0] * 3))
        forward = best(lambda: march(*call), a.repeats)
        buffer.set_image_gradient(d_image)

        def adjoint() -> None:
            clear_gradients(grid.fields)
            march_adjoint(*call)
            grid.fold()

        backward = best(adjoint, a.repeats)
    report = {
        "samples": samples,
        "march_msamples": samples / forward / 1e6,
        "adjoint_msamples": samples / backward / 1e6,
        "n": a.n,
        "resolution": a.resolution,
        "arch": running.arch,
    }
    if a.json:
        print(json.dumps(report))
    else:
        print(f"{a.n}^3 grid, {a.resolution}^2 rays, {samples / 1e6:.2f} M samples, {running.arch}")
        print(f"march {report['march_msamples']:.1f} Msample/s  adjoint {report['adjoint_msamples']:.1f} Msample/s")


if __name__ == "__main__":
    main()
