"""March session: tensors put on the device for one call after the other, marched, and their derivatives taken back.

Nothing of a call stays: the samples are put on the grids for it and once more for its gradient, and rays are replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.geometry.ndc import ray_slopes
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import OF_VOLUMES, Parameters, groups_of
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.field import occupancy, volume_tensors
from raymarch.kernels.integrator.passes import DepthPasses, Passes
from raymarch.kernels.rays import ray_tensors
from raymarch.rendering.march_settings import March, level_of, skip_invisible
from raymarch.rendering.medium import AnyMedium, OneVolume, SeveralVolumes
from raymarch.torch.tensors import require_finite, wait_for
from raymarch.volumes.volume import Volume

if TYPE_CHECKING:
    from torch import Tensor

BLACK_BACKGROUND = (0.0, 0.0, 0.0)


class VolumeTensors(NamedTuple):
    """What an image depends on of one volume: raw density (x, y, z), features (x, y, z, channel) or None, and table
    (knot, 4) if the call brings one."""

    density: Tensor
    features: Tensor | None
    table: Tensor | None


class Inputs(NamedTuple):
    """What an image depends on: origin and unit direction (ray, 3) of the rays, the value of a surface () if the call
    brings one, and the tensors of each volume."""

    origin: Tensor
    direction: Tensor
    iso: Tensor | None
    volumes: tuple[VolumeTensors, ...]

    @property
    def flat(self) -> tuple[Tensor | None, ...]:
        """All tensors in a row."""
        return self.origin, self.direction, self.iso, *(tensor for volume in self.volumes for tensor in volume)

    @classmethod
    def of(cls, flat: Sequence[Any]) -> Inputs:
        """Inputs of a row as `flat` makes it; of anything that goes with their tensors, such as gradients."""
        of_volumes = [iter(flat[3:])] * len(VolumeTensors._fields)
        return cls(flat[0], flat[1], flat[2], tuple(VolumeTensors(*each) for each in zip(*of_volumes, strict=True)))


@dataclass(frozen=True)
class Request:
    """What a call asks for.

    Attributes:
        picture: how many rays a picture has; a ray is jittered by its number there.
        depth: whether depth is wanted.
    """

    picture: int
    depth: bool


class RayOutputs(NamedTuple):
    """What rays see: (red, green, blue, T) (ray, 4) before black; depth and its weights (ray,), or empty."""

    image: Tensor
    depth: Tensor
    weights: Tensor


class TensorRays(NamedTuple):
    """Rays of a call: `origin` and unit `direction` (ray, 3), how many a picture has, and a length of steps
    [world unit] if not the march's."""

    origin: Tensor
    direction: Tensor
    picture: int = 1 << 30
    dt: float | None = None


class TensorMarch(Holder):
    """March of rays that are tensors through a medium, a batch at a time, with adjoints and tangents; owns the rays'
    device memory."""

    def __init__(self, medium: AnyMedium, batch: int):
        self.medium, self.batch = medium, batch
        self._motion: RayTangents | None = None
        self._dots: dict[tuple[int, ...], list[VolumeTangents]] = {}
        with ExitStack() as owners:
            self.buffer: RayBuffer = owners.enter_context(RayBuffer(batch, channels=medium.channels))
            self.buffer.set_behind(np.zeros(self.buffer.colours))
            self._owners = owners.pop_all()

    @property
    def motion(self) -> RayTangents:
        """Gradients and tangents of the buffer's rays; memory is taken when first wanted."""
        if self._motion is None:
            self._motion = self._owners.enter_context(RayTangents(self.batch, colours=self.buffer.colours))
        return self._motion

    def batches(self, rays: TensorRays) -> Iterator[tuple[slice, Any]]:
        """Rows of each batch, its rays and the march's settings in the buffer, and the arguments of its marches."""
        self.medium.set_up(self.buffer)
        wait_for(rays.direction)
        for first in range(0, len(rays.direction), self.batch):
            rows = slice(first, min(first + self.batch, len(rays.direction)))
            ray_tensors.rays_in(rays.origin[rows].contiguous(), rays.direction[rows].contiguous(), self.buffer.fields)
            self.medium.jitter(self.buffer, np.arange(first, rows.stop) % rays.picture)
            yield rows, self.medium.call(rows.stop - first, BLACK_BACKGROUND, rays.dt)

    def see(self, rays: TensorRays, depth: bool) -> RayOutputs:
        """Image, and depth if wanted, of the volumes as they are."""
        medium, count, new = self.medium, len(rays.direction), rays.direction.new_empty
        seen = RayOutputs(
            new((count, 1 + self.buffer.colours)), new((count if depth else 0,)), new((count if depth else 0,))
        )
        for rows, call in self.batches(rays):
            medium.passes.march(medium.fields, self.buffer.fields, *call)
            ray_tensors.image_out(self.buffer.fields, seen.image[rows])
            if depth:
                medium.passes.depth(medium.fields, self.buffer.fields, *call[:4])
                ray_tensors.depth_out(self.buffer.fields, seen.depth[rows], seen.weights[rows])
        ti.sync()
        return seen

    def begin_gradient(self) -> None:
        """Clear the gradients by the volumes, and what an interrupted call left in their slots."""
        volumes = zip(self.medium.grids, self.medium.tables(self.buffer), self.medium.marches, strict=True)
        for grid, memory, march in volumes:
            grid.begin_gradient()
            if march.transfer is not None:
                memory.clear_table_gradient()

    def add_gradients(
        self,
        rays: TensorRays,
        seen: RayOutputs,
        d_image: Tensor | None,
        d_depth: Tensor | None,
        of_volumes: bool,
        of_rays: bool,
        d_iso: np.ndarray | None = None,
    ) -> tuple[Tensor, Tensor] | None:
        """Add the gradient by the volumes to their slots, and that by a surface's value to `d_iso`; gradients by origin
        and direction (ray, 3) if wanted."""
        if d_depth is not None and of_rays:
            self._require_depth_moves()
        new = rays.direction.new_zeros
        d_rays = (new(rays.direction.shape), new(rays.direction.shape)) if of_rays else None
        d_image = None if d_image is None else d_image.contiguous()  # by torch's stream, before it is waited for
        d_depth = None if d_depth is None else d_depth.contiguous()
        passes = self.medium.passes
        for rows, call in self.batches(rays):
            if d_image is not None:
                ray_tensors.image_in(seen.image[rows], d_image[rows], self.buffer.fields)
                self._adjoint(rays, rows, passes, call, of_volumes, d_rays, d_iso)
            if d_depth is not None and passes.depth_gradients is not None:
                ray_tensors.depth_in(seen.depth[rows], seen.weights[rows], d_depth[rows], self.buffer.fields)
                self._adjoint(rays, rows, passes.depth_gradients, call[:4], of_volumes, d_rays, d_iso)
        ti.sync()
        return d_rays

    def _adjoint(
        self,
        rays: TensorRays,
        rows: slice,
        passes: Passes | DepthPasses,
        call: tuple,
        of_volumes: bool,
        d_rays: tuple[Tensor, Tensor] | None,
        d_iso: np.ndarray | None,
    ) -> None:
        """Adjoints of a batch, by the volumes and by the rays, as far as they are wanted."""
        if of_volumes:
            passes.adjoint(self.medium.fields, self.buffer.fields, *call)
        if d_rays is not None:
            passes.geometry_adjoint(self.medium.fields, self.buffer.fields, self.motion.fields, *call)
            self._add_rays_gradient(rays, rows, d_rays)
            if d_iso is not None:
                d_iso += self.motion.surface_gradients(rows.stop - rows.start)[0]

    def _require_depth_moves(self) -> None:
        """RaymarchError where depth has no slope by rays: in NDC a distance is not their own t."""
        if self.medium.grids[0].ndc_from_world is not None:
            raise RaymarchError(
                "depth in NDC has no gradient by rays; detach the cameras' tensors, or leave depth out of the loss"
            )

    def _add_rays_gradient(self, rays: TensorRays, rows: slice, d_rays: tuple[Tensor, Tensor]) -> None:
        """Add the gradients by rays in index space that the buffer's motion holds, taken to the world."""
        (grid, *_), clipped = self.medium.grids, self.medium.march.clipped
        d_origin, d_direction = (each[rows] for each in d_rays)
        if grid.ndc_from_world is None and not clipped:
            ray_tensors.add_rays_gradient(self.motion.fields, grid.fields, d_origin, d_direction)
            return
        by_origin, by_way, by_view, _ = self.motion.gradients(len(d_origin))
        linear = np.linalg.inv(grid.world_from_index)[:3, :3]
        back = np.concatenate([by_origin @ linear, by_way @ linear], axis=1)
        if clipped:
            back += np.concatenate(self.motion.place_gradients(len(d_origin)), axis=1)
        if grid.ndc_from_world is not None:
            back = np.einsum("rij,ri->rj", ray_slopes(grid.ndc_from_world, _rays_in_numpy(rays, rows)), back)
        d_origin += d_origin.new_tensor(back[:, :3])
        d_direction += d_direction.new_tensor(back[:, 3:] + by_view)

    def tangents(
        self, rays: TensorRays, seen: RayOutputs, dots: Sequence[Parameters], dot_rays: np.ndarray | None
    ) -> tuple[Tensor, Tensor]:
        """Tangents of image (ray, 4) and depth (ray,) by a direction of each volume, and one of the rays' origin and
        direction in the world (ray, 6)."""
        image, depth = np.zeros(seen.image.shape), np.zeros(seen.depth.shape)
        medium, buffer, passes = self.medium, self.buffer.fields, self.medium.passes
        by_depth = passes.depth_gradients if len(depth) else None
        of_volumes = any(getattr(dot, name) is not None for dot in dots for name in OF_VOLUMES)
        for rows, call in self.batches(rays):
            motion = self.motion.fields
            if by_depth is not None:
                ray_tensors.depth_in(seen.depth[rows], seen.weights[rows], seen.weights[rows], buffer)
            if of_volumes:
                fields = self._loaded(dots)
                passes.tangent(medium.fields, fields, buffer, motion.dot_image, *call)
                image[rows] += self.motion.dot_image(call.count)[:, 0]
                if by_depth is not None:
                    by_depth.tangent(medium.fields, fields, buffer, motion.dot_depth, *call[:4])
                    depth[rows] += self.motion.dot_depth(call.count)[:, 0]
            if dot_rays is not None or dots[0].iso is not None:
                if by_depth is not None:
                    self._require_depth_moves()
                self._move(rays, rows, np.zeros((call.count, 6)) if dot_rays is None else dot_rays[rows], dots[0].iso)
                passes.geometry_tangent(medium.fields, buffer, motion, *call)
                image[rows] += self.motion.dot_image(call.count)[:, 0]
                if by_depth is not None:
                    by_depth.geometry_tangent(medium.fields, buffer, motion, motion.dot_depth, *call[:4])
                    depth[rows] += self.motion.dot_depth(call.count)[:, 0]
        return seen.image.new_tensor(image), seen.image.new_tensor(depth)

    def _loaded(self, dots: Sequence[Parameters]) -> Any:
        """Fields of a direction of each volume on the device; memory is taken when first wanted."""
        grids = self.medium.grids
        colourless = len(grids) == 1 and dots[0].colour is None
        channels = tuple(0 if colourless else 3 * (grid.degree + 1) ** 2 for grid in grids)
        if channels not in self._dots:
            made = [VolumeTangents(grid.shape, each, 1) for grid, each in zip(grids, channels, strict=True)]
            self._dots[channels] = [self._owners.enter_context(each) for each in made]
        for loaded, dot in zip(self._dots[channels], dots, strict=True):
            loaded.upload([dot])
        fields = tuple(loaded.fields for loaded in self._dots[channels])
        return fields[0] if isinstance(self.medium, OneVolume) else fields

    def _move(self, rays: TensorRays, rows: slice, dot: np.ndarray, iso: np.ndarray | None) -> None:
        """Put a direction of rays (ray, 6) of the world on the device, in index space, and of a surface's value."""
        (grid, *_), by_view = self.medium.grids, dot[:, 3:]
        linear = np.linalg.inv(grid.world_from_index)[:3, :3]
        if grid.ndc_from_world is not None:
            dot = np.einsum("rij,rj->ri", ray_slopes(grid.ndc_from_world, _rays_in_numpy(rays, rows)), dot)
        moves = (dot[:, :3] @ linear.T, dot[:, 3:] @ linear.T, by_view)
        origin, way, view = (each[:, None] for each in moves)
        self.motion.upload(origin, way, view, np.zeros(1))
        if self.medium.march.clipped:
            self.motion.upload_place(dot[:, None, :3], dot[:, None, 3:])
        if self.medium.march.rule.shaded:
            self.motion.upload_surface(np.array([0.0 if iso is None else float(iso)]), np.zeros((1, 3, 3)))


def _rays_in_numpy(rays: TensorRays, rows: slice) -> Rays:
    """Some of the rays, in f64."""
    return Rays(*(each[rows].cpu().numpy().astype(float) for each in (rays.origin, rays.direction)))


class MarchSession(Holder):
    """March session of volumes that are tensors, for one call after the other; owns their memory and that of the rays.

    Args:
        volumes, marches: what the tensors are like, and how each is read.
        slots: gradient buffers on the CPU; 0 for none.
    """

    def __init__(self, volumes: Sequence[Volume], marches: Sequence[March], slots: int):
        runtime.start()
        self.volumes, self.marches = list(volumes), list(marches)
        slots = slots if runtime.runs_on_cpu() else min(slots, 1)
        with ExitStack() as owners:
            self.medium: AnyMedium
            if len(volumes) == 1:
                self.medium = OneVolume(owners.enter_context(_grid_like(volumes[0], slots)), marches[0])
            else:
                dense = [volume.dense() for volume in volumes]
                self.medium = owners.enter_context(SeveralVolumes(dense, marches, slots, skip=False))
            for grid in self.medium.grids:
                grid.name = "this torch render"
            self.march = owners.enter_context(TensorMarch(self.medium, self.medium.batch))
            self._owners = owners.pop_all()

    @property
    def has_gradients(self) -> bool:
        """Whether there are slots for them."""
        return bool(self.medium.grids[0].slots)

    @property
    def depth_is_held(self) -> bool:
        """Whether depth has no gradient."""
        return self.medium.passes.depth_gradients is None

    def require_open(self) -> None:
        """RaymarchError where it is closed, or in another thread than the one that made it."""
        for grid in self.medium.grids:
            _ = grid.fields

    def see(self, inputs: Inputs, request: Request) -> RayOutputs:
        """What the rays see."""
        return self.march.see(self._load(inputs, request), request.depth)

    def gradients(
        self,
        inputs: Inputs,
        request: Request,
        seen: RayOutputs,
        d_image: Tensor | None,
        d_depth: Tensor | None,
        wanted: Sequence[bool],
    ) -> tuple[Tensor | None, ...]:
        """Gradients by the inputs that are wanted, in their row; None of the others."""
        wants: Any = Inputs.of(wanted)
        of_volumes = any(any(each) for each in wants.volumes)
        d_iso = np.zeros(()) if wants.iso else None
        rays = self._load(inputs, request)
        if of_volumes:
            self.march.begin_gradient()
        of_rays = wants.origin or wants.direction or wants.iso
        d_rays = self.march.add_gradients(rays, seen, d_image, d_depth, of_volumes, of_rays, d_iso)
        by_iso = None if d_iso is None else inputs.origin.new_tensor(d_iso)
        d_origin, d_direction = d_rays or (None, None)
        d_volumes = self._volume_gradients(inputs, wants)
        ti.sync()
        return Inputs(d_origin, d_direction, by_iso, d_volumes).flat  # type: ignore[arg-type]

    def _volume_gradients(self, inputs: Inputs, wants: Any) -> tuple[VolumeTensors, ...]:
        """Gradients by density, features and table of each volume, where they are wanted."""
        found: list[Any] = []
        memory = self.medium.tables(self.march.buffer)
        for volume, want, grid, table in zip(inputs.volumes, wants.volumes, self.medium.grids, memory, strict=True):
            density, features, knots = (
                x.new_empty(x.shape) if x is not None and one else None for x, one in zip(volume, want, strict=True)
            )
            if any(want):
                grid.reduce_slots()
            if density is not None:
                volume_tensors.density_gradient_out(grid.fields, density)
            if features is not None:
                volume_tensors.features_gradient_out(grid.fields, features)
            if knots is not None:
                knots = knots.new_tensor(table.table_gradient(len(knots)))
            found.append(VolumeTensors(density, features, knots))  # type: ignore[arg-type]
        return tuple(found)

    def tangents(
        self, inputs: Inputs, request: Request, seen: RayOutputs, dots: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor | None]:
        """Tangents of image and depth by those of the inputs, None of what stays."""
        moved: Any = Inputs.of([None if x is None else x.cpu().numpy() for x in dots])
        rays = self._load(inputs, request)
        directions = []
        for i, (density, features, table) in enumerate(moved.volumes):
            colour = features if "colour" in groups_of([self.marches[i].rule]) else None
            directions.append(Parameters(density, colour=colour, table=table, iso=None if i else moved.iso))
        dot_rays = None
        if moved.origin is not None or moved.direction is not None:
            none = np.zeros(inputs.direction.shape)
            both = [none if x is None else x for x in (moved.origin, moved.direction)]
            dot_rays = np.concatenate(both, axis=1).astype(float)
        dot_image, dot_depth = self.march.tangents(rays, seen, directions, dot_rays)
        return dot_image, None if self.depth_is_held else dot_depth

    def _load(self, inputs: Inputs, request: Request) -> TensorRays:
        """Put a call's samples on the grids, and its own numbers into the marches; its rays.

        RaymarchError for samples that are not finite, and for colours and opacities of a table out of 0..1.
        """
        several = len(self.volumes) > 1
        wait_for(inputs.volumes[0].density)
        self.medium.marches = [_with_own(*each, inputs.iso) for each in zip(self.marches, inputs.volumes, strict=True)]
        for i, (volume, grid) in enumerate(zip(inputs.volumes, self.medium.grids, strict=True)):
            grid.fields.nonfinite_step[None] = 0
            volume_tensors.density_in(volume.density, grid.fields)
            if volume.features is not None:
                volume_tensors.features_in(volume.features, grid.fields)
            if grid.fields.nonfinite_step[None]:  # or a sum of large ones is not
                for name in ("density", "features"):
                    if getattr(volume, name) is not None:
                        require_finite(f"volumes[{i}].{name}" if several else name, getattr(volume, name))
        if not several:
            self._skip_empty_space(inputs.volumes[0])
        return TensorRays(inputs.origin, inputs.direction, request.picture)

    def _skip_empty_space(self, volume: VolumeTensors) -> None:
        """Mark what of the only volume is not seen, where its march leaps over it."""
        march, (grid, *_) = self.medium.march, self.medium.grids
        if march.iso is not None and "iso" in march.rule.parameters:
            grid.mark_surface(level_of(march.iso, grid.activation))  # what is skipped is not seen at all
        elif march.min_weight > 0:
            most = 0.0 if volume.features is None else float(volume.features.abs().max())
            occupancy.occupy(grid.fields)
            skip_invisible(grid, self.volumes[0], march, most)


def _grid_like(volume: Volume, slots: int) -> Grid:
    """Dense grid of a volume's shape, place and activations, all of it occupied; its numbers are not read."""
    how: dict[str, Any] = {"boxes": volume.boxes, "ndc_from_world": volume.ndc_from_world, "colours": volume.colours}
    grid = Grid(volume.shape, volume.degree, slots=slots, **how)
    try:
        grid.set_level(volume.shape, volume.world_from_index)
        grid.set_activation(volume.activation)
        occupancy.occupy(grid.fields)
    except BaseException:
        grid.close()
        raise
    return grid


def _with_own(march: March, volume: VolumeTensors, iso: Tensor | None) -> March:
    """March with the numbers of its mode that a call brings; RaymarchError for a table's out of 0..1."""
    if iso is not None:
        march = replace(march, iso=float(iso))
    if volume.table is not None and march.transfer is not None:
        rgba = volume.table.cpu().numpy()
        march = replace(march, transfer=replace(march.transfer, colours=rgba[:, :3], opacities=rgba[:, 3]))
    return march
