"""Depth term of a fit: known distances along rays, as targets beside the colours.

Each step draws some of all known distances, whichever view they are of, and marches their rays in a buffer of their
own. Where depth images are relative, as a network's of one picture are, a scale and a shift of each view are fitted to
what is known otherwise: to the sparse points that the view sees, else to the volume as it stands.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from raymarch.device.grid import Grid
from raymarch.device.pool import Closing
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.fitting import differentiable_passes
from raymarch.fitting.depth_targets import RAYS_PER_DEPTH_RAY, alignments_by_points, targets_of
from raymarch.fitting.plan.bounds import usual_distance
from raymarch.fitting.plan.plan import Plan
from raymarch.geometry.boxes import meet_box
from raymarch.geometry.rays import Rays
from raymarch.kernels.rays import ray_arrays
from raymarch.matching.points import MIN_POINTS, with_matched_points
from raymarch.rendering.march_settings import March, set_ray_settings
from raymarch.views.depth_images import MAX_ALIGNMENT_ERROR, scale_and_shift, unit_doubt
from raymarch.views.views import Views

log = logging.getLogger(__name__)

RELATIVE_DELTA = 0.02  # of a distance: its error from which on it counts less, where none is given
UPDATE_INTERVAL = 25  # steps between two updates of scales and shifts by the volume
FIRST_UPDATE = 200  # steps before the first, until which a volume is fog
SUM_DECAY = 0.5  # of the sums, over an update
MAX_TRANSMITTANCE = 0.5  # of a ray whose mean distance tells a scale


class DepthTerm(Closing):
    """Depth term of a fit by a plan; owns the depths' rays on the device until `close`.

    Attributes:
        alignment: (view, 2) scale and shift of each view's depth image; NaN where it is not known yet.
    """

    def __init__(self, plan: Plan):
        s = plan.settings
        self._plan, self._weight, self._seed = plan, s.depth_weight, s.seed
        self._relative = s.depth_scale == "per-view"
        known = with_matched_points(plan.views) if s.depth_from == "matches" else plan.views
        require_targets(plan, known)
        self._targets = targets_of(known, s.depth_from, s.seed)
        if not len(self._targets):
            raise RaymarchError(
                f"depth_weight is {s.depth_weight:g} but no depth of the views counts: masks take out all pixels whose"
                " depth is known, and points lie where a camera stands or are seen by orthographic ones alone; check"
                " the masks and points, or leave depth_weight 0"
            )
        views = len(plan.views)
        self.alignment = np.tile([1.0, 0.0], (views, 1))
        self._fixed = np.ones(views, bool)
        self._sums = np.zeros((views if self._relative else 0, 5))
        if self._relative:
            found = alignments_by_points(plan.views)
            self._fixed = np.array([one is not None for one in found])
            self.alignment = np.array([(np.nan, np.nan) if one is None else one for one in found])
            _say_what_comes_late(known, self._fixed, s.steps)
        self._count = max(s.rays // RAYS_PER_DEPTH_RAY, 1)
        self._drawn = np.zeros(0, np.int64)
        self._buffer = RayBuffer(self._count)

    def close(self) -> None:
        """Free the device memory."""
        self._buffer.close()

    def draw(self, step: int, grid: Grid, march: March) -> None:
        """Draw the rays of a step, and their targets."""
        known, rng = self._targets, np.random.default_rng((self._seed, step))
        index = rng.integers(0, len(known), self._count)
        if 0 < known.images < len(known):  # half are of points, which are few, and better
            half = self._count // 2
            index[:half] = rng.integers(0, known.images, half)
            index[half:] = rng.integers(known.images, len(known), self._count - half)
        self._drawn = index
        near, origin = self._plan.near, known.origin[index].astype(float)
        direction = known.direction[index].astype(float)
        rays = Rays(origin + near * direction, direction)
        set_ray_settings(self._buffer, grid, march)
        self._buffer.upload(rays)
        ray_arrays.vectors_in(self._targets_of(index, rays, grid.voxel), self._buffer.fields.target)

    def _targets_of(self, index: np.ndarray, rays: Rays, voxel: float) -> np.ndarray:
        """Targets (ray, 4) as of `kernels.integrator.depth_loss`."""
        known, plan = self._targets, self._plan
        whole = known.aligned(index, self.alignment)
        begins, ends, width = np.zeros(len(index)), np.full(len(index), np.inf), np.zeros(len(index))
        if plan.ndc_from_world is None:
            middle, half = plan.box.mean(0), (plan.box[1] - plan.box[0]) / 2
            reach = half * 2 ** (plan.settings.nested - 1)
            begins, ends = meet_box(rays.origin, rays.direction, np.stack([middle - reach, middle + reach]))
            with np.errstate(invalid="ignore"):
                place = rays.origin + (whole - plan.near)[:, None] * rays.direction
                boxes = np.ceil(np.log2(np.maximum((np.abs(place - middle) / half).max(1), 1.0)))
            width = voxel * 2 ** np.clip(np.nan_to_num(boxes), 0, plan.settings.nested - 1)
        target = whole - plan.near
        delta = np.hypot(plan.settings.depth_delta or RELATIVE_DELTA * whole, width)
        counts = (target > np.maximum(begins, 0)) & (ends > begins) & (delta > 0)  # nor what lies before the volume
        rows = np.stack([target, delta, target < ends, counts], axis=1)
        rows[~counts] = (1.0, 1.0, 0.0, 0.0)
        return rows

    def add(self, grid: Grid, buffer: RayBuffer, dt: float, min_transmittance: float) -> None:
        """Depth loss of the rays that were drawn, added to the loss of the fit's buffer, within a Tape."""
        call = (self._count, dt, min_transmittance, self._weight)
        differentiable_passes.add_depth(grid, buffer, self._buffer, *call)

    def look(self, step: int) -> None:
        """Take in what a step saw; every so often let scales and shifts of relative depths follow."""
        if self._fixed.all():
            return
        known, index = self._targets, self._drawn
        _, distance, weights, T = self._buffer.image(self._count).astype(float).T
        view = known.view[index]
        told = (index < known.images) & ~self._fixed[view] & (T < MAX_TRANSMITTANCE) & (weights > 0)
        index, view = index[told], view[told]
        wanted = distance[told] / weights[told] + self._plan.near
        g, r = known.distance[index] / wanted, known.ratio[index] / wanted
        scale, shift = self.alignment[view].T
        error = np.nan_to_num(np.abs(scale * g + shift * r - 1) / MAX_ALIGNMENT_ERROR)
        w = 1 / np.maximum(error, 1.0)
        for k, part in enumerate((w * g * g, w * g * r, w * r * r, w * g, w * r)):
            self._sums[:, k] += np.bincount(view, part, len(self._sums))
        if (step + 1) % UPDATE_INTERVAL == 0:
            for i in np.flatnonzero(~self._fixed) if step + 1 >= FIRST_UPDATE else ():
                self.alignment[i] = scale_and_shift(self._sums[i]) or (np.nan, np.nan)
            self._sums *= SUM_DECAY if step + 1 >= FIRST_UPDATE else 0.0

    def state(self) -> dict[str, np.ndarray]:
        """All that later steps depend on, as arrays by name: scales and shifts, and the sums so far."""
        if not self._relative:
            return {}
        return {"depth_alignment": np.array(self.alignment, float), "depth_sums": np.array(self._sums, float)}

    def put(self, state: Mapping[str, np.ndarray]) -> None:
        """Set all that `state` gave."""
        if state:
            self.alignment, self._sums = state["depth_alignment"].copy(), state["depth_sums"].copy()

    def record(self) -> dict[str, Any]:
        """What was found, in plain numbers, for a volume's provenance."""
        if not self._relative:
            return {}
        known = np.isfinite(self.alignment).all(1) & [depth is not None for depth in self._plan.views.depths or ()]
        names = zip(self._plan.views.names, self.alignment.round(7).tolist(), known.tolist(), strict=True)
        return {"depth_alignment": [[name, *numbers] for name, numbers, told in names if told]}


def _say_what_comes_late(views: Views, fixed: np.ndarray, steps: int | None) -> None:
    """A line where a fit has too few steps for its volume to tell scales of depth images."""
    late = sum(views.depth(i) is not None for i in np.flatnonzero(~fixed).tolist())
    if late and steps is not None and steps < FIRST_UPDATE:
        log.warning(
            "depth images of %d views count for nothing: the volume tells their scale from step %d on, and the fit has"
            " %d; take more steps, or depth_scale 'metric' (--set depth_scale=metric)",
            late,
            FIRST_UPDATE,
            steps,
        )


def require_targets(plan: Plan, views: Views) -> None:
    """RaymarchError where views have no depth that a fit could use, or one of another unit."""
    s = plan.settings
    if s.depth_from == "matches":
        if (count := 0 if views.points is None else len(views.points)) < MIN_POINTS:
            raise RaymarchError(
                f"depth_from is 'matches' but only {count} points of the images match, want {MIN_POINTS} or more; leave"
                " depth_weight 0"
            )
        return
    has = {"images": views.depths is not None, "points": views.sightings is not None}
    if not (any(has.values()) if s.depth_from == "all" else has[s.depth_from]):
        lacking = {"images": "depth images", "points": "sparse points with the views that see them"}
        lack = lacking.get(s.depth_from, " or ".join(lacking.values()))
        raise RaymarchError(
            f"depth_weight is {s.depth_weight:g} but the views have no {lack}; give some (docs/fit-my-photos.md), take"
            " depth_from 'matches' (--set depth_from=matches), or leave depth_weight 0"
        )
    if s.depth_scale != "metric" or s.depth_from == "points" or plan.ndc_from_world is not None:
        return
    if doubt := unit_doubt(views.depths, usual_distance(plan.survey, plan.box.mean(0))):
        raise RaymarchError(doubt)
