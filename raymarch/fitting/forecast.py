"""Forecast of a fit's memory and time, before it is begun: bytes by counting, seconds by a fit in small."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from raymarch import runtime
from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import flag, optional
from raymarch.arguments.declared import checked
from raymarch.device import memory
from raymarch.device.image_store import ImageStore
from raymarch.device.memory import Memory, memory_of_rendering
from raymarch.errors import RaymarchError
from raymarch.fitting.cost import Cost
from raymarch.fitting.plan.plan import plan_fit
from raymarch.fitting.presets import settings_for
from raymarch.fitting.settings.settings import FitSettings
from raymarch.geometry.camera import SIDE as PIXELS
from raymarch.geometry.orbit import orbit_of_volume
from raymarch.geometry.pose import BOX
from raymarch.html.card import ShownRecord
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views
from raymarch.volumes.volume import VOLUME, AnyVolume

SIDE = 128  # pixels a side of the image that a rendering's time is measured on
SIDE_ON_GPU = 512  # the same there, which has hardly begun with fewer


@dataclass(frozen=True)
class Forecast(ShownRecord):
    """Forecast of a fit or a rendering: memory and time.

    Attributes:
        memory: at its peak; the fit itself refuses to begin where that is over the budget.
        free_bytes: what the device had left.
        seconds: of a fit's steps, or of an image; None if it was not asked for. Good to a third.
        steps: of the fit, as many as there is time for; None for a rendering.
        boxes: nested boxes of the grid, as of `Volume`.
        preparation: seconds of loading, planning and compiling before a fit's first step, as measured here; less once
            its kernels were compiled on this machine. None where it was not asked for.
    """

    memory: Memory
    free_bytes: int
    seconds: float | None = None
    steps: int | None = None
    boxes: int = 1
    preparation: float | None = None

    def record(self) -> dict:
        """Forecast as plain numbers, for printing."""
        m = self.memory
        size = {"shape": list(m.shape), "sh_degree": m.sh_degree, "slots": m.slots, "boxes": self.boxes}
        told = {"bytes": m.total, "parts": dict(m.parts), "free_bytes": self.free_bytes, "seconds": self.seconds}
        return {**size, **told, "steps": self.steps, "preparation_seconds": self.preparation}


@checked(box=optional(BOX), clock=flag)
def forecast(
    views: Views,
    settings: FitSettings | str = "default",
    *,
    box: Numbers | None = None,
    clock: bool = True,
    **changes: Any,
) -> Forecast:
    """Forecast of a fit of these views: its grid, bytes and seconds; nothing is kept of it.

    Args:
        views, settings, box, changes: as of `fit`.
        clock: whether to run a fit in small for the time, which takes some seconds and the fit's memory.

    Raises RaymarchError where the fit would: over the memory's budget, without a box, and so on.

    Example:
        >>> forecast(views, "quick").memory.total  # doctest: +SKIP
        1500000000
    """
    settings, began = settings_for(views, settings, **changes), time.perf_counter()
    with ImageStore(views) as store:
        plan = plan_fit(views, settings, box, store)
    free, planned = memory.available_bytes(), time.perf_counter() - began
    if not clock:
        return Forecast(plan.memory, free, None, settings.steps, plan.settings.nested)
    cost, steps = Cost.of(plan), settings.steps or math.inf
    rest = plan.settings.nested, planned + cost.ready
    if settings.seconds and (by_time := cost.steps(settings.seconds)) < steps:
        return Forecast(plan.memory, free, settings.seconds, int(by_time), *rest)
    return Forecast(plan.memory, free, cost.seconds(steps), int(steps), *rest)


@checked(volume=VOLUME, width=PIXELS, height=PIXELS)
def forecast_rendering(volume: AnyVolume, width: int = 800, height: int = 800) -> Forecast:
    """Forecast of rendering one image of the volume, once all is compiled; its time is measured on a smaller one.

    Raises RaymarchError where the memory does not suffice.

    Example:
        >>> forecast_rendering(Volume.from_function(lambda p: 1 - p[..., 0] ** 2, shape=(8, 8, 8))).steps is None
        True
    """
    runtime.start()
    bricks = None if volume.bricks is None else volume.bricks.count
    needed = memory_of_rendering(volume.shape, volume.degree, width * height, bricks, volume.nbytes)
    free = memory.available_bytes()
    if needed.total > free:
        raise RaymarchError(
            f"an image of {width} x {height} pixels takes about {needed.total:,} bytes but {free:,} are free;"
            " take a smaller one"
        )
    side = SIDE if runtime.on_cpu() else SIDE_ON_GPU
    camera = orbit_of_volume(volume.box, 1, size=side)[0]
    with Renderer(volume) as renderer:
        renderer.render(camera, depth=False)
        began = time.perf_counter()
        renderer.render(camera, depth=False)
        seconds = time.perf_counter() - began
    return Forecast(needed, memory.available_bytes(), seconds * width * height / side**2, None, volume.boxes)
