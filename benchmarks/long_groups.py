"""March by pairs of samples beside the march by long groups, in turn in one process: how many times as fast, by size.

python benchmarks/long_groups.py [--sizes 16,64,128,256] [--times 1] [--least 0] [--repeats 15]
    [--volume FILE --size 400 --step 0.5]

The workload of `raymarch bench march` with `--times` its density, rays that end at a transmittance of `--least`; or a
volume of SH degree 0 from a file, its empty space skipped, as seen by the first camera of an orbit. Both grids lie
flat: one that could take a gradient is marched in pairs, one that is only read in long groups. Images are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from plainly import count, plainly

import raymarch as rm
from raymarch.bench.workload import workload
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.march import march
from raymarch.rendering.march_settings import skip_invisible
from raymarch.rendering.ray_batches import pixels_in_tiles


def compare(volume: rm.Volume, rays: rm.Rays, step: float, least: float, repeats: int, skip: bool) -> str:
    """Milliseconds of both, and the median of their ratios."""
    with (
        Grid(volume.shape, 0, block=1, slots=1) as pairs,
        Grid(volume.shape, 0, block=1) as groups,
        RayBuffer(len(rays)) as buffer,
    ):
        buffer.upload(rays)
        images, calls, taken = [], [], np.empty((repeats, 2))
        for grid in (pairs, groups):
            call = filled(grid, volume, skip), len(rays), step * volume.voxel, least, least, ti.Vector([0.0, 0.0, 0.0])
            calls.append(partial(march, grid.fields, buffer.fields, *call))
            calls[-1]()  # which compiles
            images.append(buffer.image(len(rays)))
        for turn in range(repeats):
            taken[turn] = [seconds_of(run) for run in calls]
    ms, ratio = 1e3 * np.median(taken, 0), np.median(taken[:, 0] / taken[:, 1])
    same = "the same bits" if np.array_equal(*images) else "NOT the same bits"
    return f"pairs {ms[0]:7.1f} ms, long groups {ms[1]:7.1f} ms, {ratio:.2f} times as fast, {same}"


def filled(grid: Grid, volume: rm.Volume, skip: bool) -> Variant:
    """The grid's variant, once it has the volume."""
    grid.upload(volume)
    if skip:
        skip_invisible(grid, volume, rm.March())
    return grid.variant


def seconds_of(run: Callable[[], None]) -> float:
    """Seconds of a kernel's call."""
    began = time.perf_counter()
    run()
    ti.sync()
    return time.perf_counter() - began


def main() -> None:
    """Compare on each size, or on the volume."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="16,64,128,256")
    parser.add_argument("--times", type=float, default=1.0)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--repeats", type=count, default=15)
    parser.add_argument("--volume", metavar="FILE")
    parser.add_argument("--size", type=count, default=400)
    parser.add_argument("--step", type=float, default=0.5)
    asked = parser.parse_args()
    if asked.volume:
        volume = rm.load(asked.volume)
        rays = rm.orbit_of_volume(volume.box, 1, size=asked.size)[0].rays(
            pixels_in_tiles(0, asked.size**2, asked.size, asked.size)
        )
        print(asked.volume, compare(volume, rays, asked.step, asked.least or 1e-3, asked.repeats, True))
        return
    for n in (int(size) for size in asked.sizes.split(",")):
        work = workload(n)
        denser = replace(work.volume, density=work.volume.density * np.float32(asked.times))
        print(f"{n:4}^3", compare(denser, work.rays, asked.step, asked.least, asked.repeats, False), flush=True)


if __name__ == "__main__":
    plainly(main)
