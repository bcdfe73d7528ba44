"""Seconds, kernels compiled and memory of the same call again: python benchmarks/again.py [--calls 300].

Images are of volumes of other shapes each time, Jacobians and small fits of the same. What was closed is kept for the
next of its kind, so that the second call should compile nothing and memory stay flat.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from plainly import count, plainly

import raymarch as rm
from raymarch import engine
from raymarch.rendering.march_settings import skip_invisible

compiled = 0
_compile = engine.kernel_class().materialize


def _counted(kernel, key=None, *rest, **how):
    global compiled
    compiled += key is not None and key not in engine.made_of(kernel)
    return _compile(kernel, key, *rest, **how)


def ball(shape, degree: int = 0) -> rm.Volume:
    """A soft ball; above degree 0 with as many harmonics, of nothing."""
    v = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=shape)
    more = np.zeros((*v.shape, 3 * ((degree + 1) ** 2 - 1)), np.float32)
    return rm.Volume(v.density, np.concatenate([v.features, more], -1), v.world_from_index, v.activation)


def resident() -> float:
    """Memory of this process [MB]; where the system does not tell, nan."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 / 1e6 if status.exists() else float("nan")


def timed(name: str, calls: int, call: Callable[[int], object]) -> None:
    """Print a row: the first call, the second, the median of the rest, kernels compiled by each, memory."""
    seconds, kernels, memory = [], [], []
    for i in range(calls):
        before, start = compiled, time.perf_counter()
        call(i)
        seconds.append(time.perf_counter() - start)
        kernels.append(compiled - before)
        memory.append(resident())
    later = memory[min(5, calls - 1) :]
    print(
        f"{name:30} {calls:5d} {seconds[0]:8.2f} {seconds[1]:8.3f} {np.median(seconds[1:]):8.3f} {kernels[0]:8d}"
        f" {sum(kernels[1:]):8d} {later[0]:8.0f} {max(later):8.0f}"
    )


def beside_an_open_renderer(volumes: list[rm.Volume], camera: rm.Camera) -> None:
    """Print how much longer a call takes than an open renderer given the same volume: best of fifteen, in turn."""
    ratios = []
    for volume in volumes:
        with rm.Renderer(volume) as renderer:
            calls: list[Callable[[], object]] = [
                lambda v=volume: rm.render(v, camera),
                lambda v=volume, r=renderer: (
                    r.grid.upload(v),
                    skip_invisible(r.grid, v, r.march),
                    r.render(camera, depth=False),
                ),
            ]
            best = [float("inf")] * 2
            for _ in range(15):
                for i, call in enumerate(calls):
                    start = time.perf_counter()
                    call()
                    best[i] = min(best[i], time.perf_counter() - start)
        ratios.append(best[0] / best[1])
    print(
        f"a call beside upload and image of an open renderer: {np.median(ratios):.2f} times, at most {max(ratios):.2f}"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=count, default=300, help="of render")
    calls = parser.parse_args().calls
    engine.kernel_class().materialize = _counted
    rm.start("cpu")
    camera = rm.Camera.look_at((0.3, -4, 0.5), width=128, height=128)
    shapes = np.random.default_rng(0).integers(20, 65, (calls, 3))
    volumes = [ball(shape) for shape in shapes[:40]]
    views = rm.load_views("scenes/tower")
    one = ball((32, 32, 32), 1)
    print(f"{'':30} calls  1st [s]  2nd [s]  median  kernels in 1st and later   MB at 6th    most")
    timed("render, another shape a call", calls, lambda i: rm.render(volumes[i % len(volumes)], camera))
    beside_an_open_renderer(volumes[1:20], camera)
    timed("jacobian by pose and focal", 5, lambda i: rm.jacobian(one, camera, ["pose", "focal"]))
    timed("fit, 30 steps, 48 samples", 4, lambda i: rm.fit(views, "quick", steps=30, resolution=48))
    print(f"{rm.release() / 1e6:.0f} MB were kept for the next call")


if __name__ == "__main__":
    plainly(main)
