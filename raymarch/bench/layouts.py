"""Benchmark of memory layouts: times the same step in each layout, for every kind of grid."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from raymarch.bench.workload import noise, rays_of_image, rays_of_step
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting.settings.optimiser import Adam
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.rendering.ray_batches import TILE_SIDE
from raymarch.volumes.volume import Volume

ROUNDS = 5
MIN_SPEEDUP = 1.05  # times as fast
RAYS_A_STEP = 8192  # of a fit's step
IMAGE_SIDE = 96  # a side of an image that is read
SLOTS = 4


@dataclass(frozen=True)
class Case:
    """Kind of grid (`LayoutChoice`), by one of n^3 samples; its blocks, the default first."""

    kind: str
    n: int
    degree: int
    blocks: tuple[int, ...]

    @contextmanager
    def steps(self) -> Iterator[dict[int, Callable[[], None]]]:
        """Timed step, by block: an image, or march, adjoint and reduction, and Adam where the grid is fitted."""
        fit, volume = self.kind.startswith("fit"), noise(self.n, self.degree)
        differentiated = fit or self.kind == "gradient"
        rays = (
            rays_of_step(self.n // TILE_SIDE * TILE_SIDE, RAYS_A_STEP) if differentiated else rays_of_image(IMAGE_SIDE)
        )
        with ExitStack() as owners:
            buffer = owners.enter_context(RayBuffer(len(rays)))
            buffer.upload(rays)
            if differentiated:
                d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
                buffer.set_image_gradient(1e-3 * d_image)
            yield {block: _step(owners, buffer, volume, block, differentiated, fit) for block in self.blocks}


# The most important first: when time runs out the last ones keep their layout.
CASES = (
    Case("fit_large", 208, 0, (4, 1)),
    Case("read_large", 208, 0, (1, 2)),
    Case("read_above", 160, 1, (4, 1)),
    Case("fit_above", 128, 1, (4, 1)),
    Case("fit", 128, 0, (4, 1)),
    Case("gradient", 128, 0, (1, 4)),
    Case("read", 128, 0, (1, 2)),
)


@dataclass(frozen=True)
class Trial:
    """Outcome of a case: seconds of a step by block, the fastest of several; the default block and the one to keep."""

    kind: str
    seconds: dict[int, float]
    default: int
    kept: int


def compare(case: Case, clock: Callable[[], float] = time.perf_counter) -> Trial:
    """Comparison of a case's layouts in turn; kept is another than the default only where it is clearly faster."""
    times: dict[int, list[float]] = {block: [] for block in case.blocks}
    with case.steps() as steps:
        for step in steps.values():
            step()  # compiles
        for _ in range(ROUNDS):
            for block, step in steps.items():
                begin = clock()
                step()
                times[block].append(clock() - begin)
    return Trial(case.kind, {block: min(each) for block, each in times.items()}, case.blocks[0], fastest_block(times))


def fastest_block(times: dict[int, list[float]]) -> int:
    """Block to keep: the fastest, if by its best and by the median of all rounds it clearly beats the first.

    Example:
        >>> (fastest_block({2: [1.0, 1.1, 1.2], 1: [0.8, 0.9, 0.9]}),
        ...  fastest_block({2: [1.0, 1.1, 1.2], 1: [0.97, 1.1, 1.2]}))
        (1, 2)
    """
    default = next(iter(times))
    best = min(times, key=lambda block: min(times[block]))
    gains = min(times[default]) / min(times[best]), float(np.median(np.divide(times[default], times[best])))
    return best if min(gains) >= MIN_SPEEDUP else default


def _step(
    owners: ExitStack, buffer: RayBuffer, volume: Volume, block: int, differentiated: bool, fit: bool
) -> Callable[[], None]:
    slots = SLOTS if differentiated else 0
    grid = owners.enter_context(Grid(volume.shape, volume.degree, slots=slots, moments=fit, block=block))
    grid.upload(volume)
    black, dt = ti.Vector([0.0, 0.0, 0.0]), grid.voxel * (1.0 if differentiated else 0.5)
    call = (grid.fields, buffer.fields, grid.variant, buffer.capacity, dt, 0.0, 0.0, black)
    adam = Adam()

    def step() -> None:
        march(*call)
        if differentiated:
            march_adjoint(*call)
            grid.reduce_slots()
        if fit:
            adam.step(grid, 0, 0.0, 0)
        ti.sync()

    return step
