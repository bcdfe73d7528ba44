"""Fit of a volume to views by gradient descent; reads from top to bottom as the data flows.

views -> tiles of rays -> march -> image -> loss -> (Tape) -> gradient -> Adam -> grid -> volume
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from raymarch.arguments.checks import Colour, Numbers, callback, number, optional
from raymarch.arguments.declared import checked
from raymarch.device.image_store import ImagePyramid, ImageStore
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.fitting.clock import Clock
from raymarch.fitting.depth_term import DepthTerm
from raymarch.fitting.level_schedule import Position, Schedule, describe_ending, is_early
from raymarch.fitting.photometry import Photometry
from raymarch.fitting.plan.budget import keeps_colours
from raymarch.fitting.plan.plan import Plan, plan_fit
from raymarch.fitting.pruning import Pruning, narrow, reopen
from raymarch.fitting.report import Report, curves, require_finite, rows_of, volume_of
from raymarch.fitting.settings.optimiser import Rates
from raymarch.fitting.settings.settings import FitSettings, settings_for
from raymarch.fitting.table_activation import march_of
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.html.card import card_html, html_of
from raymarch.kernels.fit import losses
from raymarch.kernels.fit.choice import note_errors
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.kernels.integrator.kernel import Variant
from raymarch.rendering.march_settings import MARCH, March, set_ray_settings
from raymarch.rendering.medium import OneVolume
from raymarch.rendering.renderer import BACKGROUND, render_camera
from raymarch.views.display_values import MAX_SUPERSAMPLE, decibels
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

log = logging.getLogger(__name__)

REPORT_INTERVAL = 25
RAYS_PER_DISTORTION_RAY = 4  # one ray in so many is asked for the distortion loss: tiles come in random order


class Fitter(Holder):
    """Fit that can be stepped; owns the grid and the images on the device until `close`.

    Example:
        >>> with Fitter(views, preset("quick")) as fitter:  # doctest: +SKIP
        ...     for report in fitter.run():
        ...         print(report.step, report.psnr)
    """

    @checked(box=optional(BOX), started=optional(number()))
    def __init__(
        self,
        views: Views,
        settings: FitSettings | str = "default",
        *,
        box: Numbers | None = None,
        started: float | None = None,
        **changes: Any,
    ):
        self.clock = Clock(started)
        settings = settings_for(views, settings, **changes)
        self._begin(views, settings.rays, lambda store: plan_fit(views, settings, box, store))

    @classmethod
    def of_plan(cls, plan: Plan) -> Fitter:
        """Fitter by a plan that was made before."""
        fitter = object.__new__(cls)
        fitter.clock = Clock()
        fitter._begin(plan.views, plan.settings.rays, lambda store: plan)
        return fitter

    def _begin(self, views: Views, rays: int, plan_with: Callable[[ImageStore], Plan]) -> None:
        """Take what the fit needs on the device; where any of it fails, nothing stays there."""
        with ExitStack() as owners:
            self.images = owners.enter_context(ImagePyramid(views, rays))
            self.plan = plan = plan_with(self.images.use(0))
            self.views, self.settings, self.box, self.finest = plan.views, plan.settings, plan.world_box, plan.shape
            self.schedule, self.objective = Schedule.of(plan.settings), plan.settings.minimised
            self.march = march_of(plan.settings)
            self.grid = owners.enter_context(plan.make_grid())
            plan.start(self.grid)
            self.tiles, self.side = max(rays // (area := self.images.use(0).fields.tile ** 2), 1), 1
            self.rays = self.tiles * area
            most = max(self.rays * plan.settings.supersample**2, MAX_SUPERSAMPLE**2)
            channels = plan.views.colours if plan.views.channels else None
            keeps = keeps_colours(plan.settings, plan.views.colours)
            self.buffer = owners.enter_context(RayBuffer(most, keeps, channels))
            if plan.near_gradient > 0:
                self.buffer.set_near(plan.near, plan.near_gradient)
            self.photometry = owners.enter_context(Photometry(self.images, plan.views, plan.settings, self.tiles))
            self.depths = owners.enter_context(DepthTerm(plan)) if plan.settings.depth_weight else None
            self.history: list[Report] = []
            self.rates = Rates(plan.settings.optimiser)
            self._error: float | None = None
            self._told_early = False
            self.steps_done = self._moments_age = self._level = 0
            self._refresh(0.0)  # the hull alone
            self._owners = owners.pop_all()
        self.clock.prepared()

    def _repr_html_(self) -> str | None:
        return html_of(fitter_card, self)

    @property
    def seconds(self) -> float:
        """Seconds of the fit, from the end of its first step on, without compiling and pauses."""
        return self.clock.seconds

    @property
    def preparation(self) -> float:
        """Seconds of loading, planning and compiling, the first step included."""
        return self.clock.preparation

    @property
    def rays_a_step(self) -> int:
        """Rays of the last step: of each pixel as many as it has."""
        return self.rays * self.side**2

    @property
    def progress(self) -> float:
        """Fraction of the fit that is done, 0..1: of steps or of seconds, whichever is further."""
        return self.schedule.progress(self.steps_done, self.seconds)

    @checked(stop=callback)
    def run(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Report]:
        """Step until the end, or until `stop()` says so, with a report every so often and one at the end.

        Raises RaymarchError at the first report after loss or gradient was not finite; the grid keeps what it had.
        """
        since, drawn, over = self.seconds, 0, self.progress >= 1 or stop()
        while not over:
            self.step()
            drawn += self.rays_a_step
            over = self.progress >= 1 or stop()
            if self.steps_done == 1:
                since, drawn = self.seconds, 0  # the first step compiles
            if self.steps_done % REPORT_INTERVAL == 0 or over:
                yield self.report(drawn / max(self.seconds - since, 1e-9))
                since, drawn = self.seconds, 0  # what is done with a report is no time of the fit's rays
        if self.progress >= 1:
            self.ending()  # which says an early one

    def step(self) -> None:
        """Optimisation step: draw rays, march, loss, backward pass, Adam."""
        self.clock.begin_step()
        s, grid, buffer, n = self.settings, self.grid, self.buffer, self.steps_done
        behind = buffer.set_behind(self.photometry.behind)
        set_ray_settings(buffer, grid, self.march)
        self._advance_level(progress := self.progress)
        if self.schedule.looks(self._moments_age):
            self._refresh(self.plan.least_sigma(n))
        self.side = self._side(progress, n)
        self.store.choose(self.tiles, s.seed, s.least_chance)
        if self.depths is not None:
            self.depths.draw(n, grid, self.march)
        self._differentiate(self._draw())
        self._look(behind)
        if self.depths is not None:
            self.depths.look(n)
        self.rates.optimiser.step(grid, self._moments_age, progress, n, self.schedule.even(progress, n))
        self.steps_done, self._moments_age, self._error = n + 1, self._moments_age + 1, None
        self.clock.stepped()

    def _advance_level(self, progress: float) -> None:
        """Go to the level that is due: prune, refine, reopen what is opaque, look which cells are empty."""
        if (level := self.schedule.level(progress, self.steps_done)) > self._level:
            self._level = level
            pruning = Pruning(self.grid, self.store, self.buffer, self.settings, self.plan.near)
            if pruning.next_level(level, self.plan.shape_of(level), self._most_bricks):
                self._moments_age = 0
                reopen(self.grid, self.settings.reopen if self.schedule.is_long(progress, self.steps_done) else 1.0)
            self._refresh(self.plan.least_sigma(self.steps_done))

    def _most_bricks(self, room: int) -> int:
        """Count of bricks that there is memory for now that there is room for so many."""
        return self.plan.most_bricks(room)

    def _side(self, progress: float, steps: int) -> int:
        """Rays along each edge of a pixel, after so many steps."""
        return self.schedule.side(progress, steps * self.tiles / self.store.listed)

    def _draw(self) -> int:
        """Draw the rays of a step; how many of its pixels have a target."""
        store, fields = self.store, self.buffer.fields
        chance = self.settings.seed, self.steps_done, self.schedule.jitter
        draw_tiles(fields, store.fields, self.tiles, self.side, self.plan.near, *chance)
        return losses.count_targets(fields, self.rays) if store.masked else self.rays

    def _differentiate(self, counted: int) -> None:
        """March of a step's rays, its losses, and the gradient of both."""
        s, grid, buffer, objective = self.settings, self.grid, self.buffer, self.objective
        count, ends = self.rays_a_step, (s.step * grid.voxel, s.min_transmittance)
        with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
            self._compare_rays(self.rays, counted, self._variant)
            if weight := objective.distortion_weight:
                differentiable_passes.add_distortion(
                    grid, buffer, max(count // RAYS_PER_DISTORTION_RAY, 1), *ends, self.plan.reach, weight
                )
            if self.depths is not None:
                self.depths.add(grid, buffer, *ends)
            self._regularise()

    @property
    def _variant(self) -> Variant:
        """What a step's march and its adjoint are compiled for."""
        roulette = self.settings.roulette if self.grid.degree > 0 else 0.0
        return self.march.variant(self.grid).replace(jittered=self.schedule.jitter > 0, roulette=roulette)

    def _compare_rays(self, pixels: int, counted: int, variant: Variant) -> None:
        """March of the buffer's rays, and their loss against so many pixels, `counted` of the step's with a target."""
        s, grid, buffer, objective = self.settings, self.grid, self.buffer, self.objective
        behind, parts = buffer.set_behind(self.photometry.behind), self.side**2
        opacity = objective.opacity_weight if self.views.shows_silhouettes else 0.0
        ends = s.step * grid.voxel, s.min_transmittance, s.min_weight
        near_scaled = self.plan.near_gradient > 0
        differentiable_passes.march(grid, buffer, pixels * parts, *ends, behind, variant, near_scaled)
        differentiable_passes.compare(buffer, objective.robust, pixels, behind, opacity, counted, parts)

    def _regularise(self) -> None:
        """Regularisers of a step, whose gradient is added at once."""
        s, at = self.settings, (self.settings.seed, self.steps_done)
        for each in self.objective.regularisers:
            differentiable_passes.regularise(self.grid, self.buffer, each, *at, s.regularised_fraction)

    def _look(self, behind: ti.Vector) -> None:
        """What a step's pixels tell of tiles, exposures and background."""
        note_errors(self.store.fields, self.buffer.fields, self.tiles, self.side**2, behind)
        self.photometry.look(self.buffer, self.steps_done, self.side**2)

    def _refresh(self, least: float | None) -> None:
        self.store = self.images.use(self.plan.halvings_of(self._level))
        s, grid = self.settings, self.grid
        self.occupied = narrow(grid, self.store, least, s.step * grid.voxel, s.transfer)

    def report(self, rays_per_second: float = math.nan) -> Report:
        """Report after the last step's rays; kept in `history`. `run` does this every 25 steps."""
        loss = float(self.buffer.fields.loss[None])
        require_finite(loss, self.grid.fields.nonfinite_step[None], self.steps_done)
        error, progress, seconds = self._error_of_rays(), self.progress, self.seconds
        psnr, left = decibels(max(error, 1e-12)), self.schedule.seconds_left(progress, seconds)
        where = self.grid.shape, self.occupied, seconds, progress
        self.history.append(Report(self.steps_done, loss, psnr, rays_per_second, *where, left, self.settings.nested))
        return self.history[-1]

    def _error_of_rays(self) -> float:
        """Mean squared error of the last step's pixels, measured once a step."""
        if self._error is None:
            behind = self.buffer.set_behind(self.photometry.behind)
            self._error = losses.colour_error(self.buffer.fields, self.rays, self.side**2, behind)
        return self._error

    @checked(camera=CAMERA, background=BACKGROUND, march=optional(MARCH))
    def render(self, camera: Camera, background: Colour | None = None, march: March | None = None) -> np.ndarray:
        """Image (height, width, 3) float32 of the volume as it stands, drawn from the fit's own grid, in its mode; of
        channels (height, width, channel), in their units."""
        self._error_of_rays()  # before another picture takes their place
        march = march or self.march
        march = replace(march, supersample=self.side) if march.supersample is None else march
        medium = OneVolume(self.grid, march)
        if not self.views.channels:
            behind = self.photometry.background if background is None else background
            return render_camera(medium, self.buffer, camera, behind, depth=False).image
        scaled = self.photometry.behind if background is None else self.plan.scaled_background(background)
        image = render_camera(medium, self.buffer, camera, scaled, depth=False).image
        low, high = self.views.ranges.T.astype(np.float32)
        return low + (high - low) * image

    def volume(self, ended: str = "stepped") -> Volume:
        """Volume as it stands, a copy: in the midst of a fit in bricks a fifth more memory than was forecast for it."""
        psnr = self.history[-1].psnr if self.history else None
        told = {"steps": self.steps_done, "seconds": round(self.seconds, 3), "ended": ended, "rays_psnr": psnr}
        told |= {"preparation_seconds": round(self.preparation, 3)}
        told |= {"supersample": self.side, **self.rates.record()}
        told |= {} if self.depths is None else self.depths.record()
        return volume_of(self.grid, self.plan, self.photometry, told)

    def ending(self) -> str:
        """How a fit that is at its end has ended, "done" or more; said in the log where time ended it too early."""
        ended = describe_ending(self.steps_done, self.settings, self._level)
        if is_early(ended) and not self._told_early:
            log.warning("the fit is %s", ended)
            self._told_early = True
        return ended

    def settings_record(self) -> dict[str, Any]:
        """Settings that the fit's bits depend on, as a checkpoint keeps them and compares."""
        return self.settings.record()

    @property
    def position(self) -> Position:
        """Position in the schedule."""
        at = self.steps_done, self._moments_age, self._level, self.store.place
        return Position(*at, self.seconds, self.preparation)

    def go_on(self, at: Position, history: Sequence[Report]) -> None:
        """Set the position in the schedule and the reports until then, once grid and photometry are as they were."""
        self.steps_done, self._moments_age, self._level, drawn, seconds, preparation = astuple(at)
        self.clock.go_on(seconds, preparation)
        self.history = list(history)
        self._refresh(None)
        self.store.go_to(drawn)
        self.side = self._side(self.schedule.progress(last := max(self.steps_done - 1, 0), seconds), last)


def fitter_card(fitter: Fitter) -> str:
    """HTML of a running fit for a notebook: how far, how well, and the curves of loss and PSNR.

    It may be asked for between two steps, on whatever thread, so it does not look at the device.
    """
    last = fitter.history[-1] if fitter.history else None
    of = f" of {fitter.settings.steps}" if fitter.settings.steps else ""
    rows = [
        ("steps", f"{fitter.steps_done}{of}, {100 * fitter.progress:.0f} % of the fit"),
        ("images", fitter.views.count_in_words()),
        *rows_of(last, fitter.box),
        ("seconds", f"{fitter.seconds:.1f}" if last is None else f"{last.seconds:.1f}, left {last.seconds_left:.0f}"),
    ]
    return card_html("Fitter", rows, curves(fitter.history))
