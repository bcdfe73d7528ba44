"""Benchmark of X-rays: projection and back-projection of both quadratures, one cone beam about a volume."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raymarch import runtime
from raymarch.geometry.camera import Camera
from raymarch.rendering.projector import QUADRATURES, Projector

DISTANCE, FOV = 5.0, 2 * np.arctan(2 / 7)  # of the eye from the axis of a box of edge 2; the box just fits


@dataclass(frozen=True)
class ProjectionSpeed:
    """Speed of a projector.

    Attributes:
        quadrature: one of `Projector`'s.
        project_seconds, back_seconds: wall time of all views, the fastest of `repeats`.
        project_cpu, back_cpu: processor time of all threads in that run.
        n, resolution, views, arch, threads, repeats: of what it was measured.
    """

    quadrature: str
    project_seconds: float
    back_seconds: float
    project_cpu: float
    back_cpu: float
    n: int
    resolution: int
    views: int
    arch: str
    threads: int
    repeats: int


def bench_projections(
    n: int = 128, resolution: int = 128, *, views: int = 90, repeats: int = 3
) -> list[ProjectionSpeed]:
    """Benchmark of X-rays of n^3 values, as many views of resolution^2 pixels all about the axis, by each quadrature.

    Raises RaymarchError where they do not fit the memory.

    Example:
        >>> [speed.quadrature for speed in bench_projections(8, 8, views=3, repeats=1)]
        ['exact', 'joseph']
    """
    running, rng = runtime.start(), np.random.default_rng(0)
    values = rng.random((n, n, n), np.float32)
    place = np.diag([2 / (n - 1)] * 3 + [1.0])
    place[:3, 3] = -1
    cameras = [
        Camera.look_at(
            (DISTANCE * np.cos(a), DISTANCE * np.sin(a), 0), (0, 0, 0), fov=FOV, width=resolution, height=resolution,
            up=(0, 0, 1),
        )
        for a in np.linspace(0, 2 * np.pi, views, endpoint=False)
    ]  # fmt: skip
    found = []
    for quadrature in QUADRATURES:
        with Projector(values.shape, place, cameras, quadrature=quadrature) as projector:
            images = projector.project(values)
            projector.back(images)  # compiled
            (forward, forward_cpu), (backward, backward_cpu) = (
                _fastest(call, repeats)
                for call in (lambda p=projector: p.project(values), lambda p=projector, y=images: p.back(y))
            )
        sizes = n, resolution, views, running.arch, runtime.threads(), repeats
        found.append(ProjectionSpeed(quadrature, forward, backward, forward_cpu, backward_cpu, *sizes))
    return found


def _fastest(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Wall and processor seconds of the fastest call."""
    times = []
    for _ in range(repeats):
        begun, used = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - begun, time.process_time() - used))
    return min(times)
