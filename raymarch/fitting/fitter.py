"""The fit: views in, a volume out. Reads from top to bottom as the data flows.

views -> tiles of rays -> march -> image -> loss -> (Tape) -> gradient -> Adam -> grid -> volume
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.arguments import checked
from raymarch.checks import callback, number, optional
from raymarch.data.activation import Activation
from raymarch.data.contents import require_contents
from raymarch.data.views import VIEWS, Views
from raymarch.data.volume import Volume
from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import Evaluation, evaluate
from raymarch.fitting import tape
from raymarch.fitting.bounds import find_box, visual_hull
from raymarch.fitting.budget import require_budget
from raymarch.fitting.interrupt import asked_to_stop
from raymarch.fitting.report import INTERRUPTED, NOT_FINITE, NotFinite, Report, versions
from raymarch.fitting.settings import FitSettings, ending, settings_for
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.pose import BOX, affine_of_box, grid_of_box
from raymarch.kernels.field.transfer import clear_moments, fill
from raymarch.kernels.fit import losses
from raymarch.kernels.rays.camera import draw_tiles, list_tiles
from raymarch.rendering.march import MARCH, March
from raymarch.rendering.renderer import BACKGROUND, render_camera

log = logging.getLogger(__name__)

REPORT_EVERY = 25


@dataclass(frozen=True, eq=False)
class Fit:
    """What came of a fit: the volume, the settings, the reports on the way, the box and how it ended."""

    volume: Volume
    settings: FitSettings
    history: tuple[Report, ...]
    box: np.ndarray
    ended: str
    seconds: float

    def __repr__(self) -> str:
        steps = self.volume.provenance["steps"]
        return f"Fit({self.volume!r}, {steps} steps in {self.seconds:.0f} s, ended={self.ended!r})"

    @checked(views=VIEWS)
    def evaluate(self, views: Views) -> Evaluation:
        """PSNR and SSIM against views, best ones the fit has not seen."""
        return evaluate(self.volume, views)


class Fitter:
    """A fit that can be stepped: it owns the grid and the images on the device until `close`.

    Example:
        >>> with Fitter(views, preset("quick")) as fitter:  # doctest: +SKIP
        ...     for report in fitter.run():
        ...         print(report.step, report.psnr)
        ...     volume = fitter.volume()
    """

    @checked(box=optional(BOX), started=optional(number()))
    def __init__(
        self, views: Views, settings: FitSettings | str = "default", *, box=None, started: float | None = None
    ):
        self.started = time.perf_counter() if started is None else started
        settings = settings_for(views, settings)
        runtime.start()
        require_contents(views)
        if doubt := views.background_doubt():
            log.warning("%s", doubt)
        self.views, self.settings = views, settings
        self.history: list[Report] = []
        self.steps_done = self._moments_age = self._level = 0
        self._background = ti.Vector(list(views.background))
        with ExitStack() as owners:
            self.store = owners.enter_context(ImageStore(views))
            found = find_box(views, self.store) if box is None else box
            self.box, self.finest = grid_of_box(found, settings.resolution)
            self.memory = require_budget(settings, found, views.images.shape)
            self.grid = owners.enter_context(self._make_grid())
            self.tiles = max(settings.rays // self.store.fields.tile**2, 1)
            self.rays = self.tiles * self.store.fields.tile**2
            self.buffer = owners.enter_context(RayBuffer(self.rays))
            self._refresh(hull_only=True)
            self._owners = owners.pop_all()
        self._ready = self.seconds

    def _make_grid(self) -> Grid:
        s = self.settings
        voxel = float((self.box[1] - self.box[0])[0]) / (self.finest[0] - 1)
        grid = Grid(self.finest, s.sh_degree, slots=self.memory.slots, moments=True, block=s.block)
        grid.set_activation(Activation.of_initial_alpha(s.initial_alpha, voxel, s.density, s.colour))
        shape = self._shape_of(s.levels[0][1])
        grid.set_level(shape, affine_of_box(self.box, shape))
        clear_moments(grid.fields)
        fill(grid.fields, *shape, 0.0, 0.0)
        if self.views.has_alpha and s.hull:
            grid.allow(visual_hull(self.store, self.box, grid.cells) >= 0)
        return grid

    def _shape_of(self, scale: float) -> tuple[int, int, int]:
        x, y, z = (max(round((n - 1) * scale) + 1, 4) if scale < 1 else n for n in self.finest)
        return x, y, z

    def __enter__(self) -> Fitter:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free the device memory."""
        self._owners.close()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def progress(self) -> float:
        """Share of the fit that is done, 0..1: of steps or of seconds, whichever is further."""
        by_steps = self.steps_done / self.settings.steps if self.settings.steps else 0.0
        budget = (self.settings.seconds or math.inf) - self._ready
        by_seconds = (self.seconds - self._ready) / budget if budget > 0 else 1.0
        return min(max(by_steps, by_seconds), 1.0)

    @checked(stop=callback)
    def run(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Report]:
        """Step until the end, or until `stop()` says so, with a report every so often and one at the end.

        Raises RaymarchError at the first report after a loss or gradient was not finite; the grid keeps the values
        from before that step.
        """
        since, drawn = self.seconds, 0
        over = self.progress >= 1 or stop()
        while not over:
            self.step()
            drawn += self.rays
            over = self.progress >= 1 or stop()
            if self.steps_done % REPORT_EVERY == 0 or over:
                report = self.report(drawn / max(self.seconds - since, 1e-9))
                since, drawn = self.seconds, 0
                yield report

    def step(self) -> None:
        """One step: draw rays, march, compare, differentiate, move."""
        s, grid, buffer, count = self.settings, self.grid, self.buffer, self.rays
        progress = self.progress
        self._advance_level(progress)
        if self.steps_done % s.refresh == 0 and self.steps_done > 0:
            self._refresh()
        draw_tiles(buffer.fields, self.store.fields, self.store.listed, self.tiles, self.steps_done, s.seed)
        buffer.fields.image.grad.fill(0)
        opacity = s.opacity_weight if self.views.has_alpha else 0.0
        with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
            tape.march(grid, buffer, count, s.step * grid.voxel, s.min_transmittance, s.min_weight, self._background)
            if s.loss == "squared":
                losses.squared_error(buffer.fields, count, self._background, opacity)
            else:
                losses.huber(buffer.fields, count, self._background, opacity, s.huber_delta)
            if s.tv_density or s.tv_colour or s.sparsity:
                tape.regularise(
                    grid, buffer, s.seed, self.steps_done, s.regularised_fraction, s.tv_density, s.tv_colour, s.sparsity
                )
        s.optimiser.step(grid, self._moments_age, progress, self.steps_done)
        self.steps_done += 1
        self._moments_age += 1
        if self.steps_done == 1:
            self._ready = self.seconds  # the schedule's time begins when all is compiled

    def _advance_level(self, progress: float) -> None:
        level = max(i for i, (start, _) in enumerate(self.settings.levels) if progress >= start)
        if level > self._level:
            self._level, self._moments_age = level, 0
            self.grid.refine(self._shape_of(self.settings.levels[level][1]))
            self._refresh()

    def _refresh(self, hull_only: bool = False) -> None:
        s, scale = self.settings, self.grid.activation.scale
        least = 0.0 if hull_only else -math.log1p(-s.prune_alpha) / scale
        self.occupied = self.grid.refresh_occupancy(least, margin=1)
        if self.occupied == 0:
            raise RaymarchError(
                "nothing is left of the volume: every cell became empty; check poses, box and background"
            )
        self.store.listed = list_tiles(self.store.fields, self.grid.fields, s.step * self.grid.voxel)
        if self.store.listed == 0:
            raise RaymarchError("no ray of any view meets the box; check the box and the poses")

    def report(self, rays_per_second: float = math.nan) -> Report:
        """Where the fit stands, after the last step's rays; kept in `history`. `run` does this every 25 steps."""
        nonfinite_step = self.grid.fields.nonfinite_step[None]
        loss = float(self.buffer.fields.loss[None])
        if nonfinite_step or not math.isfinite(loss):
            step = nonfinite_step - 2 if nonfinite_step else self.steps_done - 1
            raise NotFinite(f"{NOT_FINITE} at step {step}; the volume from before it is kept; lower the learning rates")
        error = losses.colour_error(self.buffer.fields, self.rays, self._background)
        progress, seconds = self.progress, self.seconds
        report = Report(
            step=self.steps_done,
            loss=loss,
            psnr=-10 * math.log10(max(error, 1e-12)),
            rays_per_second=rays_per_second,
            shape=self.grid.shape,
            occupied=self.occupied,
            seconds=seconds,
            progress=progress,
            seconds_left=self._seconds_left(progress, seconds),
        )
        self.history.append(report)
        return report

    def _seconds_left(self, progress: float, seconds: float) -> float:
        if self.settings.seconds and self.settings.steps is None:
            return max(self.settings.seconds - seconds, 0.0)
        return (seconds - self._ready) * (1 - progress) / max(progress, 1e-9)

    @checked(camera=CAMERA, background=BACKGROUND, march=MARCH)
    def render(self, camera: Camera, background=None, march: March = March()) -> np.ndarray:
        """Image (height, width, 3) float32 of the volume as it stands, drawn from the fit's own grid."""
        behind = self.views.background if background is None else background
        return render_camera(self.grid, self.buffer, camera, behind, march, depth=False).image

    def volume(self, ended: str = "stepped") -> Volume:
        """The volume as it stands; samples that the fit skipped as empty are made empty for every reader."""
        density, features = self.grid.download_carved()
        made = {
            "settings": asdict(self.settings),
            "views": {"source": self.views.source, "count": len(self.views)},
            "steps": self.steps_done,
            "seconds": round(self.seconds, 3),
            "ended": ended,
            "rays_psnr": self.history[-1].psnr if self.history else None,
            "versions": versions(),
        }
        place, how = self.grid.world_from_index, self.grid.activation
        return Volume(density, features, place, how, self.views.background, made)

    def how_it_ended(self) -> str:
        """ "done", or what a person should know about a fit that had too little time."""
        return ending(self.steps_done, self.settings)


@checked(box=optional(BOX), show=optional(callback), started=optional(number()), ready=optional(callback))
def fit(
    views: Views,
    settings: FitSettings | str = "default",
    *,
    box=None,
    show: Callable[[Report], None] | None = None,
    started: float | None = None,
    ready: Callable[[Fitter], None] | None = None,
    **changes,
) -> Fit:
    """Recover a volume from views.

    Args:
        views: cameras and images.
        settings: a `FitSettings`, or the name of a preset with `changes` by name (`seconds=60`, `sh_degree=2`).
        box: lower and upper corner (2, 3) in the world; found from masks and cameras if not given.
        show: called with each `Report`, for progress.
        started: `time.perf_counter()` from which `seconds` count; now if not given.
        ready: called with the `Fitter` before its first step, to refuse what it would come to.

    Ctrl-C ends it early and keeps the volume, as do SIGTERM and SIGHUP where the program does not handle them itself;
    `ended` tells. Raises RaymarchError where the views or settings cannot be fitted.

    Example:
        >>> fit(views, "quick", seconds=60).volume.shape  # doctest: +SKIP
        (128, 97, 113)
    """
    settings = settings_for(views, settings, **changes)
    with asked_to_stop() as asked, Fitter(views, settings, box=box, started=started) as fitter:
        if ready is not None:
            ready(fitter)
        try:
            for report in fitter.run(asked):
                if show is not None:
                    show(report)
            ended = f"{INTERRUPTED} at step {fitter.steps_done}" if asked() else fitter.how_it_ended()
        except NotFinite as error:
            ended = str(error)
        volume = fitter.volume(ended)
        return Fit(volume, settings, tuple(fitter.history), fitter.box, ended, fitter.seconds)
