"""Plan of a fit: where its grid lies, how fine it is, what it takes; made once, before the grid is allocated."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from raymarch.arguments.checks import Colour, Numbers
from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import cells_of
from raymarch.device.image_store import ImageStore
from raymarch.device.memory import Memory
from raymarch.errors import RaymarchError
from raymarch.fitting.plan.bounds import (
    box_of_scene,
    boxes_of_scene,
    find_box,
    frustum_for,
    near_plane,
    usual_distance,
    visual_hull,
)
from raymarch.fitting.plan.budget import (
    grid_of_boxes,
    require_budget,
    require_cells,
    require_first_level,
    room_for_bricks,
    room_to_grow,
    shape_of_level,
    takes_bricks,
)
from raymarch.fitting.plan.resolution import (
    coarsen,
    count_halvings,
    footprint_of,
    is_least,
    limit_resolution,
    resolution_for,
)
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.objective import check_slopes
from raymarch.fitting.settings.settings import FitSettings
from raymarch.fitting.table_activation import activation_through
from raymarch.geometry.boxes import affine_of_box, voxel_of
from raymarch.geometry.ndc import corners_in_world, near_plane_of
from raymarch.kernels.field.copies import clear_moments
from raymarch.views.contents import require_contents
from raymarch.views.identity import ViewsDigest
from raymarch.views.views import Views
from raymarch.views.world_origin import box_near
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import BRICK_SIDE
from raymarch.volumes.channels import CENTRED, background_of_channels

log = logging.getLogger(__name__)

COARSE_HULL_CELLS = 48  # cells a side of the hull that is looked at before that of all cells
RAW_MARGIN = 4  # times what the fastest sample could have moved: by then most that will be over the threshold are


@dataclass(frozen=True, eq=False)
class Plan:
    """Plan of a fit: box, grid shape, levels and memory.

    Attributes:
        survey: of the views.
        settings: with what was left open found: resolution, boxes.
        box: lower and upper corner (2, 3) of the grid in the world, or in NDC.
        memory: bytes by what takes them, with the grid's shape and its slots.
        hull: (x, y, z) which occupancy cells may hold anything by the images' alpha; None for all.
        ndc_from_world: projective (4, 4) of a fit in NDC, or None.
        bricks: how many there is room for; 0 for a dense grid.
    """

    survey: Survey
    settings: FitSettings
    box: np.ndarray
    memory: Memory
    hull: np.ndarray | None
    ndc_from_world: np.ndarray | None = None
    bricks: int = 0

    @property
    def views(self) -> Views:
        """Views of the fit."""
        return self.survey.views

    @property
    def shape(self) -> tuple[int, int, int]:
        """Samples (x, y, z) at the finest level."""
        return self.memory.shape

    @property
    def box_shape(self) -> tuple[int, int, int]:
        """Samples (x, y, z) of one box at the finest level."""
        x, y, z = self.shape
        return x // self.settings.nested, y, z

    @property
    def samples(self) -> int:
        """Count of samples that there is room for at the finest level: those of its bricks, or all."""
        return self.bricks * BRICK_SIDE**3 or math.prod(self.shape)

    @property
    def slots(self) -> int:
        """Count of gradient buffers."""
        return self.memory.slots

    @property
    def bytes(self) -> int:
        """Peak memory of the fit [byte]."""
        return self.memory.total

    @property
    def activation(self) -> Activation:
        """Activation by which raw 0 is the initial opacity over a finest voxel."""
        s, voxel = self.settings, float((self.box[1] - self.box[0])[0]) / (self.box_shape[0] - 1)
        if s.transfer is not None:
            return activation_through(s.transfer, s.initial_alpha, voxel)
        if self.views.channels:
            return Activation.of_initial_alpha(s.initial_alpha, voxel, s.density, CENTRED)
        return Activation.of_initial_alpha(s.initial_alpha, voxel, s.density, s.colour)

    def least_sigma(self, steps: int) -> float | None:
        """Occupancy threshold after so many steps: extinction [1/world unit] up to which a cell counts as empty; None,
        for cells to stay as they are, while no sample of a start below it can have come over it yet."""
        s, activation = self.settings, self.activation
        voxel = float((self.box[1] - self.box[0])[0]) / (self.box_shape[0] - 1)
        least = -math.log1p(-s.prune_alpha) / (voxel if s.transfer else activation.scale)
        if activation.density_rule.signed:  # values seen through a table, of which more need not be more opaque
            return least
        return least if s.optimiser.farthest(activation, steps) > RAW_MARGIN * activation.raw(least) else None

    @property
    def reach(self) -> float:
        """Half the longest edge of the innermost box, or the near plane's distance in NDC [world unit]."""
        if self.ndc_from_world is not None:
            return near_plane_of(self.ndc_from_world)
        return float((self.box[1] - self.box[0]).max()) / 2

    @cached_property
    def near(self) -> float:
        """Distance from a camera at which rays of the fit begin [world unit]."""
        return near_plane(self.survey, self.box.mean(0), self.settings.near)

    @property
    def near_gradient(self) -> float:
        """Distance from a camera up to which gradients are scaled [world unit]; 0 for none."""
        return self.settings.near_gradient * usual_distance(self.survey, self.box.mean(0))

    @property
    def lies(self) -> dict[str, Any]:
        """Where volume and grid lie, besides their affine."""
        return {"boxes": self.settings.nested, "ndc_from_world": self.ndc_from_world}

    @property
    def world_box(self) -> np.ndarray:
        """Box (2, 3) in the world; of NDC, of what is within four times the near plane."""
        if self.ndc_from_world is None:
            return self.box
        corners = corners_in_world(affine_of_box(self.box, (2, 2, 2)), (2, 2, 2), self.ndc_from_world)
        return np.stack([corners.min(0), corners.max(0)])

    @cached_property
    def views_digest(self) -> ViewsDigest:
        """Checksums of images, cameras and masks, made when they are first asked for."""
        return ViewsDigest.of(self.views, depths=self.settings.depth_weight > 0)

    def scaled_background(self, background: Colour) -> np.ndarray:
        """Background of channels, in their units, as 0..1 over their ranges."""
        ranges = self.views.ranges
        numbers = np.array(background_of_channels(self.views.shown, background))
        return (numbers - ranges[:, 0]) / np.ptp(ranges, axis=1)

    def shape_of(self, level: int) -> tuple[int, int, int]:
        """Samples (x, y, z) at a level."""
        return shape_of_level(self.settings, self.shape, level)

    def affine_of(self, level: int) -> np.ndarray:
        """Affine (4, 4) of the innermost box's samples at a level."""
        x, y, z = self.shape_of(level)
        return affine_of_box(self.box, (x // self.settings.nested, y, z))

    def halvings_of(self, level: int) -> int:
        """Count of times that the images of a level are halved: its voxels are some of their pixels wide all the same.

        The last level sees the images as they are, and so do all in NDC, where a voxel is wider the farther it is.
        """
        if level == len(self.settings.levels) - 1 or self.ndc_from_world is not None:
            return 0
        voxel, pixel = voxel_of(self.affine_of(level)), footprint_of(self.survey, self.box)
        found = count_halvings(voxel, pixel, self.settings.pyramid)
        return min(found, self.survey.halvings)

    def most_bricks(self, room: int) -> int:
        """Count of bricks that memory has room for now that the fit has taken as much as `room` bricks need."""
        return room_to_grow(self.settings, self.shape, self.survey.images, room)

    def make_grid(self) -> Grid:
        """Grid with room for all levels; `start` makes it one to begin with."""
        s = self.settings
        how = {"slots": self.slots, "moments": True, "colours": self.views.colours, **self.lies}
        if self.bricks:
            return BrickGrid(self.shape, s.sh_degree, bricks=self.bricks, **how)
        return Grid(self.shape, s.sh_degree, block=s.block, **how)

    def start(self, grid: Grid) -> None:
        """Initial state of a grid: the first level, faint and grey everywhere."""
        grid.set_activation(self.activation)
        grid.set_level(self.shape_of(0), self.affine_of(0))
        if self.hull is not None:
            grid.allow(self.hull)
        if isinstance(grid, BrickGrid):
            grid.hold(np.ones(grid.cells, bool) if self.hull is None else self.hull)
        clear_moments(grid.fields)
        grid.fill(0.0, 0.0)


MAX_FEATURES = 192  # numbers of a sample: kernels are compiled for each of them


def settings_of_channels(views: Views, settings: FitSettings) -> FitSettings:
    """Settings of a fit, less what photographs alone have where the views are of channels; RaymarchError for what such
    a fit cannot do, and for more features than kernels take."""
    if not views.channels:
        return settings
    default = FitSettings()
    if settings.colour != default.colour:
        raise RaymarchError(
            "colour is set but channels have no bounds, and are fitted as they are; leave it out, or fit"
            " views.in_colour()"
        )
    if settings.transfer is not None:
        raise RaymarchError("mode transfer fits colours by a table, the views have channels; fit views.in_colour()")
    if settings.learn_background:
        raise RaymarchError(
            "learn_background is of colours, the views have channels; leave it out, or give a background"
        )
    features = views.colours * (settings.sh_degree + 1) ** 2
    if features > MAX_FEATURES:
        raise RaymarchError(
            f"{views.colours} channels at SH degree {settings.sh_degree} are {features} numbers a sample, want at most"
            f" {MAX_FEATURES}; lower sh_degree"
        )
    return replace(settings, exposure=False)


def plan_fit(views: Views, settings: FitSettings, box: Numbers | None, store: ImageStore) -> Plan:
    """Plan of a fit to views that lie in the store, in `box` (2, 3), or one that is found if None.

    Raises RaymarchError where the views show nothing, the objective's slopes are wrong, no box is found or the
    memory's budget is exceeded.
    """
    survey, settings = Survey(views), settings_of_channels(views, settings)
    require_contents(views, survey.contents)
    box = None if box is None else box_near(np.asarray(box, float), views.origin)
    if not settings.learn_background and survey.background_doubt:
        log.warning("%s", survey.background_doubt)
    for finding in survey.findings:
        log.warning("%s; %s", finding.message, finding.cure)
    check_slopes(settings.minimised)
    endless = settings.seeks_scene and box is None and not survey.bounded
    frustum = frustum_for(survey, settings, box)
    if frustum is not None:
        settings, box = replace(settings, ndc=True, boxes=1, near=0.0, near_gradient=0.0), frustum.box
    elif settings.boxes is None:
        settings = replace(settings, **({"boxes": boxes_of_scene(survey)} if endless else {"boxes": 1, "near": 0.0}))
    settings = replace(settings, ndc=frustum is not None)
    found = _innermost_box(survey, settings, store) if box is None else np.asarray(box, float)
    free, settings = settings.resolution is None, resolution_for(survey, found, settings)
    ndc = None if frustum is None else frustum.ndc_from_world
    return _plan_in_box(survey, settings, found, free, store, ndc)


def _plan_in_box(
    survey: Survey, settings: FitSettings, box: np.ndarray, free: bool, store: ImageStore, ndc: np.ndarray | None
) -> Plan:
    """Plan in a box that was found; `free` is a resolution that nobody asked for, and is made coarser where it does
    not fit."""
    images = survey.images
    sparse = takes_bricks(settings, box, images)
    settings = limit_resolution(settings, box, images) if free and not sparse else settings
    memory = None if sparse else require_budget(settings, box, images)
    placed, shape = grid_of_boxes(box, settings)
    hull = None
    try:
        if memory is None:
            require_cells(settings, box, images)
        bounded = survey.silhouettes and settings.hull and settings.nested == 1 and ndc is None
        if memory is None and not free:  # a resolution that was asked for is refused before all its cells are looked at
            require_first_level(settings, box, images, _least_share(store, placed) if bounded else 1.0)
        hull = visual_hull(store, placed, cells_of(shape)) >= 0 if bounded else None
        if hull is not None and not hull.any():
            raise RaymarchError("the images are transparent wherever the box is; check box and poses")
        bricks, memory = room_for_bricks(settings, shape, hull, images) if memory is None else (0, memory)
    except RaymarchError:
        if not (free and sparse) or is_least(settings) or (hull is not None and not hull.any()):
            raise
        return _plan_in_box(survey, coarsen(settings), box, free, store, ndc)
    return Plan(survey, settings, placed, memory, hull, ndc, bricks)


def _least_share(store: ImageStore, box: np.ndarray) -> float:
    """Share of the box that the visual hull fills at least: half of the coarse cells in it whose neighbours all are."""
    inside = visual_hull(store, box, (COARSE_HULL_CELLS,) * 3) >= 0
    for _ in range(3):
        inside[1:-1] &= inside[:-2] & inside[2:]
        inside[[0, -1]] = False
        inside = np.moveaxis(inside, 0, -1)
    return float(inside.mean()) / 2


def _innermost_box(survey: Survey, settings: FitSettings, store: ImageStore) -> np.ndarray:
    """Box where none is given: of the scene's middle, of the set's own making, or of what the views show."""
    if settings.nested > 1:
        return box_of_scene(survey)
    if survey.views.box is not None and not survey.silhouettes:
        return survey.views.box
    return find_box(survey, store)
