"""Benchmark of march, adjoint and fit on this machine: best of several, in million samples a second and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from raymarch import runtime
from raymarch.bench.workload import views_of_blobs, workload
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import MAX_SLOTS
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.report import Fit
from raymarch.fitting.settings.settings import preset
from raymarch.kernels.field.copies import clear_gradients
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint


@dataclass(frozen=True)
class MarchSpeed:
    """Speed of march and adjoint on one `workload`.

    Attributes:
        samples: whole steps in all.
        march_msamples, adjoint_msamples: million samples a second, the fastest of `repeats`; the adjoint goes from the
            image's gradient to the one finished gradient of the grid, clearing and adding up included.
        compile_seconds: of the first march and the first adjoint together, which compile or load what was compiled.
        read_block, block: edge of the layout's blocks, of the grid that is marched, for reading, and of the adjoint's.
        n, resolution, slots, arch, threads, repeats: of what it was measured.
    """

    samples: int
    march_msamples: float
    adjoint_msamples: float
    compile_seconds: float
    n: int
    resolution: int
    read_block: int
    block: int
    slots: int
    arch: str
    threads: int
    repeats: int


@dataclass(frozen=True)
class FitSpeed:
    """Speed of a `quick` fit of views that are made here.

    Attributes:
        step_ms: milliseconds of a step, mean over the last quarter of the steps, at the finest level.
        rays_per_second: of those steps.
        start_seconds: up to the end of the first step: finding the box, compiling or loading.
        seconds: of the whole fit, start included.
        psnr: on views that were not fitted [dB].
        steps, resolution, arch, threads: of what it was measured.
    """

    step_ms: float
    rays_per_second: float
    start_seconds: float
    seconds: float
    psnr: float
    steps: int
    resolution: int
    arch: str
    threads: int


def bench_march(
    n: int = 128, resolution: int = 256, *, repeats: int = 5, block: int | None = None, slots: int | None = None
) -> MarchSpeed:
    """Benchmark of march and adjoint: n^3 samples, resolution^2 pixels, steps of half a voxel, no empty-space skipping.

    The march is that of a volume which is only read, as in a rendering, the adjoint that of one which is fitted.

    Args:
        n, resolution: of the `workload`.
        repeats: timed calls of each, after one that is not.
        block: edge of both layouts' blocks, chosen by size and use if None.
        slots: gradient buffers, as many as threads if None.

    Raises RaymarchError where the grid does not fit the memory or a number is out of bounds.

    Example:
        >>> bench_march(16, 32, repeats=1).samples > 0
        True
    """
    if not isinstance(repeats, int) or repeats < 1:
        raise RaymarchError(f"repeats is {repeats}, want a whole number from 1")
    running, work = runtime.start(), workload(n, resolution)
    slots = (min(runtime.threads(), MAX_SLOTS) if runtime.runs_on_cpu() else 1) if slots is None else slots
    if slots < 1:
        raise RaymarchError(f"slots is {slots}, want 1 to {MAX_SLOTS}")
    with ExitStack() as owners:
        read_grid = owners.enter_context(Grid(work.volume.shape, 0, block=block))
        grid = owners.enter_context(Grid(work.volume.shape, 0, slots=slots, block=block))
        buffer = owners.enter_context(RayBuffer(len(work.rays)))
        read_grid.upload(work.volume)
        grid.upload(work.volume)
        buffer.upload(work.rays)
        buffer.set_image_gradient(work.d_image)
        black = ti.Vector([0.0, 0.0, 0.0])
        call = (buffer.fields, grid.variant, len(work.rays), 0.5 * grid.voxel, 0.0, 0.0, black)

        def adjoint() -> None:
            clear_gradients(grid.fields)
            march_adjoint(grid.fields, *call)
            grid.reduce_slots()

        first, forward = _best_seconds(lambda: march(read_grid.fields, *call), repeats)
        second, backward = _best_seconds(adjoint, repeats)
        read_block, block = read_grid.block, grid.block
    return MarchSpeed(
        samples=work.samples,
        march_msamples=work.samples / forward / 1e6,
        adjoint_msamples=work.samples / backward / 1e6,
        compile_seconds=max(first - forward, 0.0) + max(second - backward, 0.0),
        n=n,
        resolution=resolution,
        read_block=read_block,
        block=block,
        slots=slots,
        arch=running.arch,
        threads=runtime.threads(),
        repeats=repeats,
    )


def bench_fit(resolution: int = 112, *, steps: int = 300) -> FitSpeed:
    """Benchmark of a fit: 35 views of 128 x 128 pixels, preset `quick` with so many steps; PSNR on five more.

    Raises RaymarchError where a number is out of bounds.
    """
    running = runtime.start()
    train, test = views_of_blobs()
    settings = preset("quick", resolution=resolution, steps=steps)
    begin = time.perf_counter()
    with Fitter(train, settings, started=begin) as fitter:
        fitter.step()
        ti.sync()
        start = time.perf_counter() - begin
        while fitter.progress < 0.75:
            fitter.step()
        ti.sync()
        late, done = time.perf_counter(), fitter.steps_done
        while fitter.progress < 1:
            fitter.step()
        ti.sync()
        end = time.perf_counter()
        fitter.report()  # which compiles, and is no time of the steps
        done_in = time.perf_counter() - begin
        result = Fit(fitter.volume(), settings, tuple(fitter.history), fitter.box, "done", done_in)
        psnr = result.evaluate(test).psnr
        per_step = (end - late) / max(fitter.steps_done - done, 1)
        rays = fitter.rays_a_step / per_step
    return FitSpeed(1e3 * per_step, rays, start, done_in, psnr, steps, resolution, running.arch, runtime.threads())


def _best_seconds(call: Callable[[], None], repeats: int) -> tuple[float, float]:
    """Seconds of the first call, and of the fastest of those after it."""
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        call()
        ti.sync()
        times.append(time.perf_counter() - begin)
    return times[0], min(times[1:])
