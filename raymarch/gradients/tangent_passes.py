"""Tangent passes: many directions carried through the march at once, as columns; owner of the memory they take."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.gradients.parameters import GEOMETRY, Parameters
from raymarch.gradients.tangents import RayTangents
from raymarch.gradients.viewpoint import Viewpoint
from raymarch.gradients.volume_tangents import VolumeTangents
from raymarch.kernels.field.transfer import shift_grid
from raymarch.kernels.march.call import MarchCall
from raymarch.kernels.march.passes import passes_of
from raymarch.volumes.volume import Volume


class TangentPasses(Holder):
    """Tangent passes of up to `columns` directions over one grid and its rays; memory is taken when first wanted."""

    def __init__(self, volume: Volume, grid: Grid, buffer: RayBuffer, columns: int):
        self.volume, self.grid, self.buffer, self.columns = volume, grid, buffer, columns
        self._owners = ExitStack()
        self._shifted: Grid | None = None
        self._by_volume: dict[tuple[int, int, bool], VolumeTangents] = {}
        self._by_rays: dict[int, RayTangents] = {}

    def shifted_grid(self, direction: Parameters, h: float) -> Grid:
        """Grid like the first, with density and colour moved by h times a direction, for finite differences."""
        if self._shifted is None:
            self._shifted = self._owners.enter_context(grid_for(self.volume))
            self._shifted.upload(self.volume)
            self._shifted.occupy(self.grid.occupied_cells())  # what the first leaps over, differences do not see either
            self._shifted.measure_occupancy()
        fields = self._loaded([direction]).fields
        shift_grid(self._shifted.fields, self.grid.fields, fields, *self._shifted.shape, h)
        return self._shifted

    def ray_tangents(self, columns: int) -> RayTangents:
        """Ray tangents of so many columns."""
        if columns not in self._by_rays:
            self._by_rays[columns] = self._owners.enter_context(RayTangents(self.buffer.capacity, columns))
        return self._by_rays[columns]

    def add(self, out: np.ndarray, dots: list[Parameters], viewpoint: Viewpoint, call: MarchCall) -> None:
        """Jacobian-vector products by volume and by geometry, added to `out` (ray, 4, direction)."""
        _in_chunks(out, dots, ("density", "colour", "table"), self.columns, lambda some: self._of_volume(some, call))
        _in_chunks(out, dots, GEOMETRY, self.columns, lambda some: self._of_rays(some, viewpoint, call))

    def _loaded(self, dots: list[Parameters]) -> VolumeTangents:
        """The first directions of density and colour on the device, as many as one pass carries."""
        channels = 0 if all(dot.colour is None for dot in dots) else self.volume.channels
        columns = VolumeTangents.columns_for(channels, 1 if len(dots) == 1 else self.columns)
        kind = (channels, columns, all(dot.density is None and dot.colour is None for dot in dots))
        if kind not in self._by_volume:
            self._by_volume[kind] = self._owners.enter_context(
                VolumeTangents(self.volume.shape, *kind, self.volume.bricks)
            )
        self._by_volume[kind].upload(dots[:columns])
        return self._by_volume[kind]

    def _of_volume(self, dots: list[Parameters], call: MarchCall) -> np.ndarray:
        """(ray, column, 4) of the first directions of density and colour, as many as one pass carries."""
        loaded = self._loaded(dots)
        motion = self.ray_tangents(loaded.columns)
        passes_of(call.variant.mode).tangent(
            self.grid.fields, loaded.fields, self.buffer.fields, motion.fields.dot_image, *call
        )
        return motion.dot_image(call.count)[:, : len(dots)].astype(float)

    def _of_rays(self, dots: list[Parameters], viewpoint: Viewpoint, call: MarchCall) -> np.ndarray:
        """(ray, column, 4) of the directions' geometry, all in one pass."""
        motion = self.ray_tangents(1 if len(dots) == 1 else self.columns)
        padded = dots + [Parameters()] * (motion.fields.columns - len(dots))  # one kernel for every count
        moves = [viewpoint.projection.tangent(viewpoint.rays, dot) for dot in padded]
        origin, index_direction, view_direction = (np.stack([move[i] for move in moves], axis=1) for i in range(3))
        motion.upload(origin, index_direction, view_direction, np.array([move[3] for move in moves]))
        if call.variant.mode.shaded:
            boxes = [np.zeros((3, 4)) if dot.box is None else dot.box for dot in padded]
            iso = np.array([0.0 if dot.iso is None else float(dot.iso) for dot in padded])
            motion.upload_surface(iso, np.stack([viewpoint.projection.frame(box)[:3, :3] for box in boxes]))
        if call.variant.clipped:
            moved = [viewpoint.projection.place_tangent(viewpoint.rays, dot)[:2] for dot in padded]
            motion.upload_place(*(np.stack([move[i] for move in moved], axis=1) for i in range(2)))
        passes_of(call.variant.mode).geometry_tangent(self.grid.fields, self.buffer.fields, motion.fields, *call)
        return motion.dot_image(call.count)[:, : len(dots)].astype(float)


def _in_chunks(
    out: np.ndarray,
    dots: list[Parameters],
    names: tuple[str, ...],
    most: int,
    carry: Callable[[list[Parameters]], np.ndarray],
) -> None:
    """Add to `out` what the directions that move some of `names` do, up to `most` columns at a time."""
    there = [i for i, dot in enumerate(dots) if any(getattr(dot, name) is not None for name in names)]
    while there:
        done = carry([dots[i] for i in there[:most]])
        out[..., there[: done.shape[1]]] += done.transpose(0, 2, 1)
        there = there[done.shape[1] :]
