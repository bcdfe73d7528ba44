"""Medium to first order: gradients by the numbers of its volumes, columns of tangents, and finite shifts of it all.

Of one volume, rays and the box move too; of several, the numbers of each volume alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.gradients.parameters import GEOMETRY, OF_VOLUMES, Parameters
from raymarch.gradients.projection import Viewpoint
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.field.copies import fill_harmonic, shift_grid
from raymarch.kernels.integrator.kernel import MarchCall
from raymarch.rendering.march_settings import March, skip_invisible
from raymarch.rendering.medium import AnyMedium, OneVolume, SeveralVolumes, TogetherCall
from raymarch.volumes.bricks import held_samples
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import Volume

SLOTS = 2  # gradient buffers of a grid on the CPU


def volume_gradients(medium: AnyMedium, rays: RayBuffer, launch: Callable[[], None]) -> list[Parameters]:
    """Gradients by density, colour and table of each volume, None for what its march does not see.

    `launch` runs the adjoint. The buffer holds the rays, their image of a march before, and its gradient.
    """
    volumes = list(zip(medium.grids, medium.tables(rays), medium.marches, strict=True))
    for grid, memory, march in volumes:
        grid.begin_gradient()
        if march.transfer is not None:
            memory.clear_table_gradient()
    launch()
    found = []
    for grid, memory, march in volumes:
        grid.reduce_slots()
        density, colour = grid.download_gradient()
        by = Parameters(density.astype(float))
        if march.rule.colour and not march.rule.classifies:
            by = replace(by, colour=colour.astype(float))
        if march.transfer is not None:
            by = replace(by, table=memory.table_gradient(len(march.transfer.values)))
        found.append(by)
    return found


class LinearVolume(OneVolume):
    """One volume to first order, `columns` directions a pass; memory for tangents is taken when first wanted."""

    def __init__(self, volume: Volume, march: March, columns: int, block: int = 4):
        with ExitStack() as owners:
            super().__init__(owners.enter_context(grid_for(volume, slots=SLOTS, block=block)), march)
            self.volume, self.columns = volume, columns
            self.load()
            self._owners = owners.pop_all()
        self._shifted: Grid | None = None
        self._dots: dict[tuple[int, int, bool], VolumeTangents] = {}
        self._motion: dict[int, RayTangents] = {}

    def load(self, harmonic: int | None = None) -> None:
        """Upload the volume, as is done at first; or one whose colour is a single harmonic."""
        self.grid.upload(self.volume)
        if harmonic is not None:
            fill_harmonic(self.grid.fields, *self.volume.shape, harmonic)
        if self.march.min_weight > 0 and not self.march.rule.classifies:  # what is clear now has a slope by the table
            skip_invisible(self.grid, self.volume, self.march)

    def place(self, viewpoint: Viewpoint, rays: RayBuffer, grid: Grid | None = None) -> None:
        """Put rays, their jitter, the march's settings and where the grid lies on the device."""
        (grid or self.grid).set_level(self.volume.shape, viewpoint.world_from_index)
        rays.upload(viewpoint.rays)
        rays.set_behind(viewpoint.background)
        self.set_up(rays, viewpoint.iso)
        self.jitter(rays, viewpoint.pixel_numbers)

    def call_of(self, viewpoint: Viewpoint) -> MarchCall:
        """Last arguments of a march from a viewpoint, whose background lies in the buffer where it is of channels."""
        behind = viewpoint.background if self.channels is None else np.zeros(3)
        return self.call(len(viewpoint.rays), behind, viewpoint.dt)

    def gradients(self, viewpoint: Viewpoint, rays: RayBuffer) -> list[Parameters]:
        """Gradient by the volume and by what moves rays or the box; the buffer holds that of the image."""
        motion, count = self.ray_tangents(rays, 1), len(viewpoint.rays)
        arguments = self.fields, rays.fields, motion.fields, *self.call_of(viewpoint)
        (by_volume,) = volume_gradients(self, rays, lambda: self.passes.both_adjoints(*arguments))
        iso, frame = motion.surface_gradients(count) if self.march.rule.shaded else (None, None)
        cut = motion.place_gradients(count) if self.march.clipped else None
        by_rays = viewpoint.projection.adjoint(viewpoint.rays, *motion.gradients(count), frame, cut)
        rule = self.march.rule
        return [
            replace(
                by_volume,
                pose=by_rays.pose,
                focal=by_rays.focal,
                principal_point=by_rays.principal_point,
                lens=by_rays.lens,
                box=by_rays.box,
                step=by_rays.step if rule.step else None,
                iso=iso if "iso" in rule.parameters else None,
            )
        ]

    def add_tangents(
        self, out: np.ndarray, directions: Sequence[Sequence[Parameters]], viewpoint: Viewpoint, rays: RayBuffer
    ) -> None:
        """Add Jacobian-vector products by the volume and by the geometry to `out` (ray, 4, direction)."""
        dots = [dot for (dot,) in directions]
        _add_in_chunks(out, dots, OF_VOLUMES, self.columns, lambda some: self._of_volume(some, viewpoint, rays))
        _add_in_chunks(out, dots, GEOMETRY, self.columns, lambda some: self._of_rays(some, viewpoint, rays))

    def shifted(
        self, direction: Sequence[Parameters], h: float, viewpoint: Viewpoint, moved: Viewpoint, rays: RayBuffer
    ) -> np.ndarray:
        """Image (ray, 4) from a moved viewpoint, of the volume moved by h times a direction; all is put back."""
        (dot,), grid = direction, self.grid
        if dot.density is not None or dot.colour is not None:
            grid = self._shifted_grid(dot, h)
        self.place(moved, rays, grid)
        if dot.table is not None and self.march.transfer is not None:
            rays.move_table(self.march.transfer, h * dot.table)
        self.passes.march(grid.fields, rays.fields, *self.call_of(moved))
        image = rays.image(len(moved.rays)).astype(float)
        self.place(viewpoint, rays)
        return image

    def _shifted_grid(self, direction: Parameters, h: float) -> Grid:
        """Grid like the first, with density and colour moved by h times a direction."""
        if self._shifted is None:
            self._shifted = self._owners.enter_context(grid_for(self.volume))
            self._shifted.upload(self.volume)
            self._shifted.occupy(self.grid.occupied_cells())  # what the first leaps over, differences do not see either
            self._shifted.measure_occupancy()
        fields = self._loaded([direction]).fields
        shift_grid(self._shifted.fields, self.grid.fields, fields, *self._shifted.shape, h)
        return self._shifted

    def ray_tangents(self, rays: RayBuffer, columns: int) -> RayTangents:
        """Ray tangents of so many columns."""
        if columns not in self._motion:
            self._motion[columns] = self._owners.enter_context(RayTangents(rays.capacity, columns, rays.colours))
        return self._motion[columns]

    def _loaded(self, dots: list[Parameters]) -> VolumeTangents:
        """The first directions of density, colour and table on the device, as many as one pass carries."""
        channels = 0 if all(dot.colour is None for dot in dots) else self.volume.feature_count
        columns = VolumeTangents.columns_for(channels, 1 if len(dots) == 1 else self.columns)
        kind = (channels, columns, all(dot.density is None and dot.colour is None for dot in dots))
        if kind not in self._dots:
            made = VolumeTangents(self.volume.shape, *kind, self.volume.bricks)
            self._dots[kind] = self._owners.enter_context(made)
        self._dots[kind].upload(dots[:columns])
        return self._dots[kind]

    def _of_volume(self, dots: list[Parameters], viewpoint: Viewpoint, rays: RayBuffer) -> np.ndarray:
        """Tangents (ray, column, 4) by the first directions of the volume, as many as one pass carries."""
        loaded, call = self._loaded(dots), self.call_of(viewpoint)
        motion = self.ray_tangents(rays, loaded.columns)
        self.passes.tangent(self.fields, loaded.fields, rays.fields, motion.fields.dot_image, *call)
        return motion.dot_image(call.count)[:, : len(dots)].astype(float)

    def _of_rays(self, dots: list[Parameters], viewpoint: Viewpoint, rays: RayBuffer) -> np.ndarray:
        """Tangents (ray, column, 4) by the directions' geometry, all in one pass."""
        motion, call = self.ray_tangents(rays, 1 if len(dots) == 1 else self.columns), self.call_of(viewpoint)
        padded = dots + [Parameters()] * (motion.fields.columns - len(dots))  # one kernel for every count
        project = viewpoint.projection
        moves = [project.tangent(viewpoint.rays, dot) for dot in padded]
        origin, index_direction, view_direction = (np.stack([move[i] for move in moves], axis=1) for i in range(3))
        motion.upload(origin, index_direction, view_direction, np.array([move[3] for move in moves]))
        if self.march.rule.shaded:
            boxes = [np.zeros((3, 4)) if dot.box is None else dot.box for dot in padded]
            iso = np.array([0.0 if dot.iso is None else float(dot.iso) for dot in padded])
            motion.upload_surface(iso, np.stack([project.frame(box)[:3, :3] for box in boxes]))
        if self.march.clipped:
            places = [project.place_tangent(viewpoint.rays, dot)[:2] for dot in padded]
            motion.upload_place(*(np.stack([place[i] for place in places], axis=1) for i in range(2)))
        self.passes.geometry_tangent(self.fields, rays.fields, motion.fields, *call)
        return motion.dot_image(call.count)[:, : len(dots)].astype(float)


def _add_in_chunks(
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


class LinearVolumes(SeveralVolumes):
    """Several volumes to first order, a direction a pass. Nothing is leapt over, for what is empty has a slope."""

    def __init__(self, volumes: Sequence[Volume], marches: Sequence[March]):
        super().__init__(volumes, marches, SLOTS, skip=False)
        self._dots: list[VolumeTangents] | None = None

    def place(self, viewpoint: Viewpoint, rays: RayBuffer) -> None:
        """Put rays, their jitter and the marches' settings on the device."""
        rays.upload(viewpoint.rays)
        self.set_up(rays)
        self.jitter(rays, viewpoint.pixel_numbers)

    def call_of(self, viewpoint: Viewpoint) -> TogetherCall:
        """Last arguments of a march from a viewpoint."""
        return self.call(len(viewpoint.rays), viewpoint.background)

    def gradients(self, viewpoint: Viewpoint, rays: RayBuffer) -> list[Parameters]:
        """Gradients by each volume; the buffer holds that of the image."""
        arguments = self.fields, rays.fields, *self.call_of(viewpoint)
        return volume_gradients(self, rays, lambda: self.passes.adjoint(*arguments))

    def add_tangents(
        self, out: np.ndarray, directions: Sequence[Sequence[Parameters]], viewpoint: Viewpoint, rays: RayBuffer
    ) -> None:
        """Add Jacobian-vector products by the volumes to `out` (ray, 4, direction)."""
        for column, dots in enumerate(directions):
            if not any(getattr(dot, name) is not None for dot in dots for name in OF_VOLUMES):
                continue
            fields, call = self._loaded(dots, rays), self.call_of(viewpoint)
            self.passes.tangent(self.fields, fields, rays.fields, self._motion.fields.dot_image, *call)
            out[..., column] += self._motion.dot_image(call.count)[:, 0].astype(float)

    def shifted(
        self, direction: Sequence[Parameters], h: float, viewpoint: Viewpoint, moved: Viewpoint, rays: RayBuffer
    ) -> np.ndarray:
        """Image (ray, 4) from a moved viewpoint, of the volumes moved by h times a direction; all is put back."""
        try:
            self.load([_moved_volume(volume, dot, h) for volume, dot in zip(self.volumes, direction, strict=True)])
            self.place(moved, rays)
            for settings, march, dot in zip(self.settings, self.marches, direction, strict=True):
                if march.transfer is not None and dot.table is not None:
                    settings.move_table(march.transfer, h * dot.table)
            self.passes.march(self.fields, rays.fields, *self.call_of(moved))
            return rays.image(len(moved.rays)).astype(float)
        finally:
            self.load(self.volumes)
            self.place(viewpoint, rays)

    def _loaded(self, dots: Sequence[Parameters], rays: RayBuffer) -> tuple:
        """Fields of the directions on the device."""
        if self._dots is None:
            made = [VolumeTangents(one.shape, one.feature_count, 1, bricks=one.bricks) for one in self.volumes]
            self._dots = [self._owners.enter_context(each) for each in made]
            self._motion = self._owners.enter_context(RayTangents(rays.capacity, 1))
        for loaded, dot in zip(self._dots, dots, strict=True):
            loaded.upload([dot])
        return tuple(loaded.fields for loaded in self._dots)


def _moved_volume(volume: Volume, dot: Parameters, h: float) -> Volume:
    """Volume with density and colour moved by h times a direction, sparse if it was, then in no other bricks."""
    density, features = volume.density, volume.features
    held = True if volume.bricks is None else held_samples(volume.bricks, volume.shape)
    if dot.density is not None:
        density = density + h * dot.density * held
    if dot.colour is not None:
        features = features + h * dot.colour * np.asarray(held)[..., None]
    moved = replace(volume, samples=Dense(density, features))
    return moved if volume.bricks is None else moved.sparse()


AnyLinearMedium: TypeAlias = "LinearVolume | LinearVolumes"
