"""Voxel grid on the device, the only owner of its SNode tree: samples up and down, levels, and empty cells."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Numbers
from raymarch.device.activation_functions import colour_functions, density_functions
from raymarch.device.grid_layout import (
    NO_COLOUR_DEGREE,
    ROOM_STEP,
    Fields,
    block_for,
    build,
    cells_of,
    place_level,
    require_layout,
)
from raymarch.device.memory import (
    BLOCK_EDGE,
    MAX_CELLS,
    grid_bytes,
    index_bytes,
    padded_shape,
    pool_shape,
    require_memory,
)
from raymarch.device.pool import Owner
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import voxel_of
from raymarch.kernels.field import copies, occupancy, thinning
from raymarch.kernels.field.occupancy import MAX_DISTANCE
from raymarch.kernels.fit.reduce import reduce_slots
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.light.gradient import slopes_in
from raymarch.kernels.modes.registry import MODES
from raymarch.volumes.activation import Activation
from raymarch.volumes.storage import Dense, Sparse
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

MIN_WEIGHT = 1e-3  # over a voxel, of a sample that shows nothing, in the mean of colours
SLAB_CELLS = 1 << 15  # cells whose values are looked up in a table at a time, if that holds one row of them
MAX_EXACT_VOXELS = 1e5  # voxels from the origin beyond which single precision shows in the image
log = logging.getLogger(__name__)


class Grid(Owner[Fields]):
    """Voxel grid of density and colour on the device, dense in blocks of `block`^3, allocated once at the finest shape.

    Args:
        shape: the finest count of samples (x, y, z); coarser levels use a part of the same memory.
        degree: of the spherical harmonics, 0 to 3; or `COLOURLESS`, of density alone.
        slots: gradient buffers that are written side by side without atomics; 0 for a grid that is only read.
        moments: whether Adam's moments are there.
        block: edge of a block in voxels, 1 (flat), 2, 4 or 8; None takes the choice in force for the size
            (`raymarch tune`).
        boxes: nested boxes, each twice the last, whose samples lie one behind the other along x.
        ndc_from_world: projective (4, 4) as of `Volume`, or None.
        places: bricks that there is room for, of a `BrickGrid`; 0 for a dense one.
        colours: channels of a sample's colour.

    Raises RaymarchError before allocating where memory does not suffice, and on use after `close`.

    Example:
        >>> with Grid((16, 16, 16), degree=0) as grid:
        ...     grid.shape
        (16, 16, 16)
    """

    cells: tuple[int, ...]
    shape: tuple[int, int, int]
    mark: int
    activation = Activation()
    pairwise = False  # whether slots are added along a tree of pairs, as ranks that share a fit want it

    name = "this grid"

    def __init__(
        self,
        shape: Sequence[int],
        degree: int,
        *,
        slots: int = 0,
        moments: bool = False,
        block: int | None = None,
        boxes: int = 1,
        ndc_from_world: np.ndarray | None = None,
        places: int = 0,
        colours: int = 3,
        slopes: bool = False,
    ):
        shape = tuple(int(n) for n in shape)
        require_layout(shape, slots, 1 if block is None else block, boxes)
        runtime.start()
        block = block_for(shape, degree, slots, moments) if block is None else block
        self.boxes, self.ndc_from_world, self.colours, self.slopes = boxes, ndc_from_world, colours, slopes
        self.finest, self.degree, self.slots, self.moments, self.block = shape, degree, slots, moments, block
        self.mark = max(block, BLOCK_EDGE)
        self.cells, self.moments_begun = cells_of(shape), 0  # how often, by `begin_anew`
        self._allocate(places)
        self.world_from_index = np.eye(4)
        self.set_level(shape, np.eye(4))

    def _allocate(self, places: int) -> None:
        """Take the memory, of as many bricks; a sparse grid does so again to grow."""
        shape, degree, slots, moments, block = self.finest, self.degree, self.slots, self.moments, self.block
        room = (*shape, places) if places else shape
        lies = (block, self.boxes, self.ndc_from_world is not None, places > 0, self.slopes)
        kind = (degree, self.colours, slots, moments, *lies)
        how: dict[str, Any] = {"room": room, "step": ROOM_STEP, "require": lambda: require_room(self, room)}
        new = self._own(kind, lambda room: build(room, *kind), lambda room: size_of(self, room), **how)
        occupancy.prepare(self.fields)
        if slots and not new:
            copies.clear_slots(self.fields)
            copies.clear_gradients(self.fields)

    @property
    def variant(self) -> Variant:
        """Kernel variant of a march over this grid that is not told another mode."""
        activation = self.activation
        return Variant(density_functions(activation), colour_functions(activation), MODES["emission-absorption"])

    @property
    def voxel(self) -> float:
        """Voxel size of the level: the shortest edge [world unit]."""
        return voxel_of(self.world_from_index)

    @property
    def max_index(self) -> np.ndarray:
        """Index (3,) of the last sample of a box."""
        return np.array([self.shape[0] // self.boxes, *self.shape[1:]]) - 1.0

    @property
    def blocks(self) -> ti.Vector:
        """Blocks of marks that the level's samples lie in."""
        return ti.Vector([-(-n // self.mark) for n in self.shape])

    def set_level(self, shape: Sequence[int], world_from_index: Numbers) -> None:
        """Set the level, the part of the memory in use: `shape` samples, placed in the world by the affine (4, 4)."""
        x, y, z = (int(n) for n in shape)
        shape = (x, y, z)
        if min(shape) < 2 or any(n > m for n, m in zip(shape, self.finest, strict=True)) or x % self.boxes:
            raise RaymarchError(f"level shape {shape} does not fit a grid of {self.finest}")
        self.shape, self.world_from_index = shape, np.array(world_from_index, float)
        far = np.abs(self.world_from_index[:3, 3]).max() / self.voxel
        if far > MAX_EXACT_VOXELS and runtime.single_precision():
            log.warning("the volume lies %.0e voxels from the world's origin; subtract its centre from all poses", far)
        self._put_numbers()

    def set_activation(self, activation: Activation) -> None:
        """Set the activation by which raw numbers are read."""
        self.activation = activation
        self._put_numbers()

    def _put_numbers(self) -> None:
        """Put where the level's boxes lie, which its last sample is, its cells, and how raw numbers are read."""
        where = self.world_from_index, self.max_index, self.shape, self.cells, self.ndc_from_world
        place_level(self.fields, *where, self.activation)

    def upload(self, volume: Volume) -> None:
        """Upload a volume as the current level, its activation with it; every cell counts as occupied."""
        for name, mine, its in (
            ("SH degree", self.degree, NO_COLOUR_DEGREE if self.degree == NO_COLOUR_DEGREE else volume.degree),
            ("nested boxes", self.boxes, volume.boxes),
            ("channels", self.colours, volume.colours),
        ):
            if mine != its:
                raise RaymarchError(f"volume has {name} {its}, the grid {mine}; make it alike")
        self.set_level(volume.shape, volume.world_from_index)
        self.set_activation(volume.activation)
        self._upload_samples(volume)

    def _upload_samples(self, volume: Volume) -> None:
        if self.degree == NO_COLOUR_DEGREE or self.slopes:
            copies.density_in(np.array(volume.density, runtime.dtype(), order="C"), self.fields)
            if self.slopes:
                slopes_in(self.fields, *self.shape, self.shape[0] // self.boxes)
            return
        arrays = (np.array(a, runtime.dtype(), order="C") for a in (volume.density, volume.features))
        copies.upload(*arrays, self.fields)

    def fill(self, density: float, feature: float) -> None:
        """Constant values on the level's samples."""
        copies.fill(self.fields, *self.shape, density, feature)

    def download(self) -> tuple[np.ndarray, np.ndarray]:
        """Raw density (x, y, z) and features (x, y, z, channel) of the level."""
        return _read(self, copies.download)

    def download_gradient(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradient with respect to density and features, shaped like `download`."""
        return _read(self, copies.download_gradient)

    def refine(self, shape: Sequence[int]) -> None:
        """Resample the values to a finer level over the same box; moments and gradients start from zero."""
        require_gradient(self)
        old_top = self.max_index
        copies.save_level(self.fields, *self.shape)
        stretch(self, shape)
        copies.refine(self.fields, ti.Vector(old_top.tolist()), *self.shape)
        begin_anew(self)

    def begin_gradient(self) -> None:
        """Gradient to zero, and what a call that was interrupted left in the slots."""
        self.reduce_slots()
        copies.clear_gradients(self.fields)

    def reduce_slots(self) -> None:
        """Gradient reduction: add up what the slots hold."""
        reduce_slots(self.fields, self.blocks, self.pairwise)

    def carved_samples(self, empty: tuple[float, float] | None = None) -> Dense | Sparse:
        """Samples of the level as `download_carved` gives them."""
        return Dense(*self.download_carved(empty))

    def download_carved(self, empty: tuple[float, float] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """As `download`, with the samples that no occupied cell reads made empty.

        Then a reader that skips nothing sees what the march saw, within the opacity that counted as empty, but for the
        layer of cells along the visual hull, whose samples cells that it allows read too. `empty`: a raw low and high.
        """
        density, features = self.download()
        copies.empty_unoccupied(self.fields, density, *(empty or (-copies.MAX_RAW_DENSITY, self.activation.empty)))
        return density, features

    def download_thinned(
        self,
        shape: Sequence[int],
        box: int,
        planes: tuple[int, int],
        carved: bool = False,
        empty: tuple[float, float] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Extinctions and features of a box of the level at `shape` samples, those of `planes` along x, from one to
        before the other, as `thinning.thin_out` has them.

        `carved`: whether samples that no occupied cell reads count as `download_carved` gives them.
        """
        per_box = (self.shape[0] // self.boxes, *self.shape[1:])
        spacing = [(n - 1) / (m - 1) for n, m in zip(per_box, shape, strict=True)]
        size = (planes[1] - planes[0], *shape[1:])
        sigma = np.empty(size, runtime.dtype())
        features = np.empty((*size, 3 * (max(self.degree, 0) + 1) ** 2), sigma.dtype)
        rule = self.activation
        faint = -1.0 if rule.density_rule.signed else MIN_WEIGHT / self.voxel
        thinning.thin_out(
            self.fields, self.variant, ti.Vector([box * per_box[0], planes[0], int(carved)]),
            ti.Vector([n - 1.0 for n in per_box]), ti.Vector(spacing),
            ti.Vector(list(empty or (-copies.MAX_RAW_DENSITY, rule.empty))),
            ti.Vector([rule.shift, 1 / rule.scale, faint]), sigma, features,
        )  # fmt: skip
        return sigma, features

    # Occupancy: which cells may hold anything, and which do; what is marked as empty, marches leap over.

    def allow(self, cells: np.ndarray) -> None:
        """Set the hull mask, the cells (`self.cells`) that may ever count as occupied: all do at first."""
        occupancy.cells_in(np.ascontiguousarray(cells, np.uint8), self.fields.hull_mask)

    def occupied_cells(self) -> np.ndarray:
        """Marks (x, y, z) bool of the cells that count as occupied."""
        return self.numbers_of_cells("empty_distance") == 0

    def allowed_cells(self) -> np.ndarray:
        """Marks (x, y, z) bool of the cells that may ever count as occupied."""
        return self.numbers_of_cells("hull_mask") != 0

    def occupy(self, cells: np.ndarray) -> None:
        """Mark cells (x, y, z) bool as occupied, and the others as empty; `measure_occupancy` makes distances of it."""
        occupancy.cells_in(np.where(cells, np.uint8(0), np.uint8(MAX_DISTANCE)), self.fields.empty_distance)

    def refresh_occupancy(self, least: float, margin: int = 0) -> float:
        """Mark cells with sigma over `least` [1/world unit], `margin` voxels wider; the fraction occupied."""
        occupancy.mark_occupied(self.fields, float(self.activation.raw(least)), margin, *self.shape)
        return self.measure_occupancy()

    def refresh_through(self, table: TransferFunction, most: float = 0.0, margin: int = 0) -> float:
        """Mark cells with a value of an opacity over `most`, `margin` voxels wider; the fraction occupied."""
        self._occupy_through(table, most, margin)
        return self.measure_occupancy()

    def _occupy_through(self, table: TransferFunction, most: float, margin: int) -> None:
        """Marks of `refresh_through`, slab by slab: what is looked up in a table takes a dozen numbers a cell."""
        marks = self.numbers_of_cells("hull_mask")
        rows, thick = marks.reshape(-1, self.cells[-1]), max(SLAB_CELLS // self.cells[-1], 1)
        for first in range(0, len(rows), thick):
            slab = rows[first : first + thick]
            raw = np.empty((2, *slab.shape), runtime.dtype())
            occupancy.raw_ranges(self.fields, first, raw, margin, *self.shape)
            low, high = self.activation.sigma(raw)
            slab[...] = np.where((slab != 0) & ~table.is_clear(low, high, most), 0, MAX_DISTANCE)
        occupancy.cells_in(marks, self.fields.empty_distance)

    def mark_surface(self, level: float) -> float:
        """Mark the cells that the isosurface of a raw level may go through; the fraction occupied."""
        occupancy.mark_straddling(self.fields, level, *self.shape)
        return self.measure_occupancy()

    def measure_occupancy(self) -> float:
        """Distance transform and occupied blocks of the cells marked so far; returns the fraction of cells occupied."""
        to_occupied = self.numbers_of_cells("empty_distance")
        count = np.count_nonzero(to_occupied == 0)
        to_empty = occupancy.spread(to_occupied)
        blocks = np.empty([-(-n // self.mark) + 1 for n in self.shape], np.uint8)
        per_index = ti.Vector([c / (n - 1.0) for c, n in zip(self.cells, self.shape, strict=True)])
        occupancy.reach_blocks(to_occupied, blocks, ti.Vector(list(self.cells)), per_index, self.mark)
        occupancy.occupancy_in(to_occupied, to_empty, blocks, self.fields)
        return float(count / np.prod(self.cells))

    def numbers_of_cells(self, name: str) -> np.ndarray:
        """Numbers (x, y, z) u8 of a field that has one for each cell."""
        numbers = np.empty(self.cells, np.uint8)
        occupancy.cells_out(getattr(self.fields, name), numbers)
        return numbers


def size_of(grid: Grid, room: Sequence[int]) -> int:
    """Bytes of a grid's tree of so many samples (x, y, z), or with room for so many bricks, the fourth."""
    sparse, width = len(room) > 3, 4 if runtime.single_precision() else 8
    how: dict[str, Any] = {
        "slots": grid.slots,
        "moments": grid.moments,
        "width": width,
        "merged": sparse,
        "colours": grid.colours,
    }
    samples = grid_bytes(_memory_shape(grid, room), grid.degree, **how)
    return samples + (index_bytes(room[:3], room[3])[0] if sparse else 0)


def require_room(grid: Grid, room: Sequence[int], freed: int = 0) -> None:
    """RaymarchError where there is no memory for such a tree, `freed` bytes more than now being free by then."""
    sparse, channels = len(room) > 3, grid.colours * (grid.degree + 1) ** 2
    cure = "lower the resolution or the SH degree"
    # A GPU is handed arrays whole, and has them beside the grid until they are copied.
    beside = (
        index_bytes(room[:3], room[3])[1]
        if sparse
        else 0
        if runtime.runs_on_cpu()
        else grid_bytes(room, grid.degree, colours=grid.colours)
    )
    needed, numbers = size_of(grid, room) + beside, max(grid.slots, 1) * max(channels, 1)
    require_memory(room[:3], needed, numbers, cure, freed, _memory_shape(grid, room))


def _memory_shape(grid: Grid, room: Sequence[int]) -> tuple[int, ...]:
    """Shape in memory of samples (x, y, z), or of a pool with room for so many bricks, the fourth."""
    return pool_shape(room[3]) if len(room) > 3 else padded_shape(room, grid.block)


def _read(grid: Grid, kernel: Callable[..., None]) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of the level, density's and features', that a kernel fills."""
    channels = grid.colours * (grid.degree + 1) ** 2
    if math.prod(grid.shape) * channels > MAX_CELLS:  # a sparse grid may be
        size = " x ".join(str(n) for n in grid.shape)
        raise RaymarchError(
            f"dense arrays of {size} samples have {channels} numbers each, more than the {MAX_CELLS} that kernels can"
            " index; lower the resolution"
        )
    density = np.empty(grid.shape, runtime.dtype())
    features = np.empty((*grid.shape, channels), density.dtype)
    kernel(grid.fields, density, features)
    return density, features


def require_gradient(grid: Grid) -> None:
    """RaymarchError where a grid has no gradient, in whose place its values are kept while it is refined."""
    if not grid.slots:
        raise RaymarchError("this grid has no gradient, whose memory refining needs; make it with slots=1")


def stretch(grid: Grid, shape: Sequence[int]) -> None:
    """Set another level of a grid over the same box."""
    extent, old_top = grid.world_from_index, grid.max_index
    grid.set_level(shape, extent)
    extent[:3, :3] *= old_top / grid.max_index
    grid.set_level(shape, extent)


def begin_anew(grid: Grid) -> None:
    """Moments and gradients of a grid to zero."""
    grid.moments_begun += 1
    if grid.moments:
        copies.clear_moments(grid.fields)
    if grid.slots:
        copies.clear_gradients(grid.fields)
