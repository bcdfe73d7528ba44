"""Samples and rays that are PyTorch tensors: what an image and its derivatives take of the device, call by call.

Nothing of a call stays: the samples are put on the grid for it and once more for its gradient, and rays are replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.ndc import ray_slopes
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import Parameters, groups_of
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.field import occupancy, volume_tensors
from raymarch.kernels.integrator.kernel import MarchCall
from raymarch.kernels.integrator.passes import DepthPasses, Passes, passes_of
from raymarch.kernels.modes.together import march_together, march_together_adjoint
from raymarch.kernels.rays import ray_tensors as tensors
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import March, level_of, require_seen, set_ray_settings, skip_invisible
from raymarch.rendering.renderer import Members
from raymarch.torch.tensors import require_finite, require_shape, wait_for
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

if TYPE_CHECKING:
    from torch import Tensor

# Numbers of a mode's own that a call may bring as a tensor: how a march takes them, and where their gradient is.


class RayMemory(Protocol):
    """Rays on the device: their buffer, and their gradients, whose memory is taken when first asked for."""

    buffer: RayBuffer

    @property
    def motion(self) -> RayTangents:
        """Gradients of the buffer's rays."""


@dataclass(frozen=True)
class RunTime:
    """Numbers that a mode reads at run time.

    Attributes:
        name: argument of a call, field of `Inputs` and of `rm.Parameters`.
        shape: of a march to the shape of its numbers; None where its mode reads none.
        put: a march with other numbers.
        rays: whether their gradient comes from the geometry's adjoint; else from that of the samples.
        clear: before a pass, its gradient to zero.
        take: after it, the gradient (of a shape) by so many rays of the buffer.
    """

    name: str
    shape: Callable[[March], tuple[int, ...] | None]
    put: Callable[[March, np.ndarray], March]
    rays: bool
    clear: Callable[[RayMemory], None]
    take: Callable[[RayMemory, int, tuple[int, ...]], np.ndarray]


ISO = RunTime(
    "iso",
    shape=lambda march: () if "iso" in march.rule.parameters else None,
    put=lambda march, value: replace(march, iso=float(value)),
    rays=True,
    clear=lambda rays: None,  # each ray's is written anew
    take=lambda rays, count, shape: np.asarray(rays.motion.surface_gradients(count)[0]),
)
TABLE = RunTime(
    "table",
    shape=lambda march: None if march.transfer is None else march.transfer.rgba.shape,
    put=lambda march, rgba: replace(march, transfer=_with_rgba(march.transfer, rgba)),
    rays=False,
    clear=lambda rays: rays.buffer.clear_table_gradient(),
    take=lambda rays, count, shape: rays.buffer.table_gradient(shape[0]),
)
RUN_TIME = (ISO, TABLE)  # in the order of `Inputs`


def _with_rgba(table: TransferFunction | None, rgba: np.ndarray) -> TransferFunction:
    """Transfer function with the colours and opacities of a tensor; RaymarchError for any out of 0..1."""
    assert table is not None  # by `shape`
    return replace(table, colours=rgba[:, :3], opacities=rgba[:, 3])


def require_own(march: March, given: Mapping[str, Tensor | None]) -> None:
    """RaymarchError for a tensor of numbers that the march's mode does not read, or of another shape."""
    for each in RUN_TIME:
        value, shape = given[each.name], each.shape(march)
        if value is None:
            continue
        if shape is None:
            raise RaymarchError(f"mode {march.rule.name} reads no {each.name}; leave it out")
        require_shape(each.name, value, shape)
        require_finite(each.name, value)


# Rays that are PyTorch tensors, marched through a grid: image and depth, their adjoints and tangents, in batches.
#
# The grid holds what its owner put there; a ray is replayed, so what a call keeps is its own results alone.

BLACK = (0.0, 0.0, 0.0)
EMPTY: Mapping = MappingProxyType({})


class TensorRays(NamedTuple):
    """Rays of a call: `origin` and unit `direction` (ray, 3), how they are marched, a length of steps [world unit] if
    not the march's, and how many a picture has: by its number there a ray has its jitter."""

    origin: Tensor
    direction: Tensor
    march: March
    dt: float | None = None
    picture: int = 1 << 30

    @property
    def passes(self) -> Passes:
        """Kernels of the march's mode."""
        return passes_of(self.march.rule)


class Seen(NamedTuple):
    """What rays see: (red, green, blue, T) (ray, 4) before black; depth and its weights (ray,), or empty."""

    image: Tensor
    depth: Tensor
    weights: Tensor


class TorchRays(Holder):
    """Marches of rays that are tensors through one grid; owns the rays' device memory."""

    def __init__(self, grid: Grid, batch: int):
        self.grid, self.batch = grid, batch
        self._motion: RayTangents | None = None
        with ExitStack() as owners:
            self.buffer: RayBuffer = owners.enter_context(RayBuffer(batch))
            self._owners = owners.pop_all()

    @property
    def motion(self) -> RayTangents:
        """Gradients and tangents of the buffer's rays; memory is taken when first wanted."""
        if self._motion is None:
            self._motion = self._owners.enter_context(RayTangents(self.batch))
        return self._motion

    def batches(self, rays: TensorRays) -> Iterator[tuple[slice, MarchCall]]:
        """Rows of each batch, its rays and the mode's own settings in the buffer, and the arguments of its marches."""
        march = rays.march
        set_ray_settings(self.buffer, self.grid, march)
        for first in range(0, len(rays.direction), self.batch):
            rows = slice(first, min(first + self.batch, len(rays.direction)))
            count = rows.stop - first
            tensors.rays_in(rays.origin[rows].contiguous(), rays.direction[rows].contiguous(), self.buffer.fields)
            if march.jittered:
                pixels = (np.arange(first, rows.stop) % rays.picture).astype(np.int32)
                jitter_pixels(self.buffer.fields, march.seed, pixels, march.jitter, march.step_jitter)
            yield rows, march.call(self.grid, count, BLACK, rays.dt)

    def see(self, rays: TensorRays, depth: bool) -> Seen:
        """Image, and depth if wanted, of the grid as it is."""
        count, new = len(rays.direction), rays.direction.new_empty
        seen = Seen(new((count, 4)), new((count if depth else 0,)), new((count if depth else 0,)))
        wait_for(rays.direction)
        for rows, call in self.batches(rays):
            rays.passes.march(self.grid.fields, self.buffer.fields, *call)
            tensors.image_out(self.buffer.fields, seen.image[rows])
            if depth:
                rays.passes.depth(self.grid.fields, self.buffer.fields, *call[:4])
                tensors.depth_out(self.buffer.fields, seen.depth[rows], seen.weights[rows])
        ti.sync()
        return seen

    def begin_gradient(self) -> None:
        """Clear the grid's gradient, and what an interrupted call left in its slots."""
        self.grid.begin_gradient()

    def add_gradients(
        self, rays: TensorRays, seen: Seen, d_image: Tensor | None, d_depth: Tensor | None,
        of_volume: bool, of_rays: bool, own: Mapping[str, np.ndarray] = EMPTY,
    ) -> tuple[Tensor, Tensor] | None:  # fmt: skip
        """Add to the grid's slots the gradient by its samples, and to `own` that by a mode's own numbers; gradients by
        origin and direction (ray, 3) if wanted."""
        if d_depth is not None and of_rays:
            self.require_depth_moves()
        d_rays = (rays.direction.new_zeros(rays.direction.shape), rays.direction.new_zeros(rays.direction.shape))
        d_image = None if d_image is None else d_image.contiguous()  # by torch's stream, before it is waited for
        d_depth = None if d_depth is None else d_depth.contiguous()
        wait_for(rays.direction)
        for rows, call in self.batches(rays):
            if d_image is not None:
                tensors.image_in(seen.image[rows], d_image[rows], self.buffer.fields)
                self._adjoint(rays, rows, rays.passes, call, of_volume, d_rays if of_rays else None, own)
            gradients = rays.passes.depth_gradients
            if d_depth is not None and gradients is not None:
                tensors.depth_in(seen.depth[rows], seen.weights[rows], d_depth[rows], self.buffer.fields)
                self._adjoint(rays, rows, gradients, call[:4], of_volume, d_rays if of_rays else None, own)
        ti.sync()
        return d_rays if of_rays else None

    def _adjoint(
        self, rays: TensorRays, rows: slice, passes: Passes | DepthPasses, call: tuple, of_volume: bool,
        d_rays: tuple[Tensor, Tensor] | None, own: Mapping[str, np.ndarray],
    ) -> None:  # fmt: skip
        """Adjoints of a batch, by the samples and by the rays, as far as they are wanted."""
        grid, buffer, numbers = self.grid.fields, self.buffer.fields, [each for each in RUN_TIME if each.name in own]
        for each in numbers:
            each.clear(self)
        if of_volume:
            passes.adjoint(grid, buffer, *call)
        if d_rays is not None:
            passes.geometry_adjoint(grid, buffer, self.motion.fields, *call)
            self._add_rays_gradient(rays, rows, d_rays)
        for each in numbers:
            own[each.name][...] += each.take(self, rows.stop - rows.start, own[each.name].shape)

    def require_depth_moves(self) -> None:
        """RaymarchError where depth has no slope by rays: in NDC a distance is not their own t."""
        if self.grid.ndc_from_world is not None:
            raise RaymarchError(
                "depth in NDC has no gradient by rays; detach the cameras' tensors, or leave depth out of the loss"
            )

    def _add_rays_gradient(self, rays: TensorRays, rows: slice, d_rays: tuple[Tensor, Tensor]) -> None:
        d_origin, d_direction = (each[rows] for each in d_rays)
        if self.grid.ndc_from_world is None and not rays.march.clipped:
            tensors.add_rays_gradient(self.motion.fields, self.grid.fields, d_origin, d_direction)
            return
        by_origin, by_way, by_view, _ = self.motion.gradients(len(d_origin))
        linear = np.linalg.inv(self.grid.world_from_index)[:3, :3]
        back = np.concatenate([by_origin @ linear, by_way @ linear], axis=1)
        if rays.march.clipped:
            back += np.concatenate(self.motion.place_gradients(len(d_origin)), axis=1)
        if self.grid.ndc_from_world is not None:
            back = np.einsum("rij,ri->rj", ray_slopes(self.grid.ndc_from_world, rays_in_numpy(rays, rows)), back)
        d_origin += d_origin.new_tensor(back[:, :3])
        d_direction += d_direction.new_tensor(back[:, 3:] + by_view)


def rays_in_numpy(rays: TensorRays, rows: slice) -> Rays:
    """Some of the rays, in f64."""
    return Rays(*(each[rows].cpu().numpy().astype(float) for each in (rays.origin, rays.direction)))


# Tangents of marches of rays that are tensors: a direction of all that an image depends on, carried through.


class TorchTangents(Holder):
    """Tangents of a `TorchRays`'s marches; memory for directions of a volume is taken when first wanted."""

    def __init__(self, marches: TorchRays):
        self.marches = marches
        self._dots: dict[int, VolumeTangents] = {}
        self._owners = ExitStack()

    def tangents(
        self, rays: TensorRays, seen: Seen, dot: Parameters, dot_rays: np.ndarray | None
    ) -> tuple[Tensor, Tensor]:
        """Tangents of image (ray, 4) and depth (ray,) by a direction of the samples, and one of the rays' origin and
        direction in the world (ray, 6)."""
        image, depth = np.zeros(seen.image.shape), np.zeros(seen.depth.shape)
        grid, buffer, passes = self.marches.grid.fields, self.marches.buffer.fields, rays.passes
        by_depth = passes.depth_gradients if len(depth) else None
        wait_for(rays.direction)
        for rows, call in self.marches.batches(rays):
            moved = self.marches.motion.fields
            if by_depth is not None:
                tensors.depth_in(seen.depth[rows], seen.weights[rows], seen.weights[rows], buffer)
            if any(x is not None for x in (dot.density, dot.colour, dot.table)):
                dots = self._loaded(dot).fields
                passes.tangent(grid, dots, buffer, moved.dot_image, *call)
                image[rows] += self.marches.motion.dot_image(call.count)[:, 0]
                if by_depth is not None:
                    by_depth.tangent(grid, dots, buffer, moved.dot_depth, *call[:4])
                    depth[rows] += self.marches.motion.dot_depth(call.count)[:, 0]
            if dot_rays is not None or dot.iso is not None:
                if by_depth is not None:
                    self.marches.require_depth_moves()
                self._move(rays, rows, np.zeros((call.count, 6)) if dot_rays is None else dot_rays[rows], dot)
                passes.geometry_tangent(grid, buffer, moved, *call)
                image[rows] += self.marches.motion.dot_image(call.count)[:, 0]
                if by_depth is not None:
                    by_depth.geometry_tangent(grid, buffer, moved, moved.dot_depth, *call[:4])
                    depth[rows] += self.marches.motion.dot_depth(call.count)[:, 0]
        return seen.image.new_tensor(image), seen.image.new_tensor(depth)

    def _loaded(self, dot: Parameters) -> VolumeTangents:
        """A direction of density and colour on the device."""
        channels = 0 if dot.colour is None else 3 * (self.marches.grid.degree + 1) ** 2
        if channels not in self._dots:
            self._dots[channels] = self._owners.enter_context(VolumeTangents(self.marches.grid.shape, channels, 1))
        self._dots[channels].upload([dot])
        return self._dots[channels]

    def _move(self, rays: TensorRays, rows: slice, dot: np.ndarray, by: Parameters) -> None:
        """A direction of rays (ray, 6) of the world on the device, in index space, and of a surface's level."""
        linear, by_view = np.linalg.inv(self.marches.grid.world_from_index)[:3, :3], dot[:, 3:]
        if self.marches.grid.ndc_from_world is not None:
            dot = np.einsum("rij,rj->ri", ray_slopes(self.marches.grid.ndc_from_world, rays_in_numpy(rays, rows)), dot)
        moves = (dot[:, :3] @ linear.T, dot[:, 3:] @ linear.T, by_view)
        origin, way, view = (each[:, None] for each in moves)
        self.marches.motion.upload(origin, way, view, np.zeros(1))
        if rays.march.clipped:
            self.marches.motion.upload_place(dot[:, None, :3], dot[:, None, 3:])
        if rays.march.rule.shaded:
            self.marches.motion.upload_surface(
                np.array([0.0 if by.iso is None else float(by.iso)]), np.zeros((1, 3, 3))
            )


class Inputs(NamedTuple):
    """What an image depends on: raw density (x, y, z), features (x, y, z, channel) or None, origin and unit direction
    (ray, 3) of the rays, and of a mode's own numbers, as `RUN_TIME` names them, those that the call brings."""

    density: Tensor
    features: Tensor | None
    origin: Tensor
    direction: Tensor
    iso: Tensor | None = None
    table: Tensor | None = None


@dataclass(frozen=True)
class Asked:
    """What a call asks for: how many rays a picture has, by whose numbers they are jittered, and whether depth too."""

    picture: int
    depth: bool


class TorchSamples(Holder):
    """Samples on a grid like a volume's, for one call after the other; owns its memory and that of the rays."""

    def __init__(self, like: Volume, march: March, slots: int):
        require_seen(like, march)
        runtime.start()
        self.like, self.march = like, march
        how: dict[str, Any] = {"boxes": like.boxes, "ndc_from_world": like.ndc_from_world}
        with ExitStack() as owners:
            slots = slots if runtime.on_cpu() else min(slots, 1)
            self.grid = owners.enter_context(Grid(like.shape, like.degree, slots=slots, **how))
            self.grid.name = "this torch render"
            self.grid.set_level(like.shape, like.world_from_index)
            self.grid.set_activation(like.activation)
            occupancy.occupy(self.grid.fields)
            self.rays = owners.enter_context(TorchRays(self.grid, march.batch))
            self._dots = owners.enter_context(TorchTangents(self.rays))
            self._owners = owners.pop_all()

    @property
    def depth_is_held(self) -> bool:
        """Whether depth has no gradient in the mode of the march."""
        return passes_of(self.march.rule).depth_gradients is None

    def _load(self, inputs: Inputs, march: March) -> None:
        """Put a call's samples on the grid, and mark what is not seen; RaymarchError for what is not finite."""
        wait_for(inputs.density)
        self.grid.fields.nonfinite_step[None] = 0
        volume_tensors.density_in(inputs.density, self.grid.fields)
        if inputs.features is not None:
            volume_tensors.features_in(inputs.features, self.grid.fields)
        if self.grid.fields.nonfinite_step[None]:  # or a sum of large ones is not
            for name in ("density", "features"):
                if getattr(inputs, name) is not None:
                    require_finite(name, getattr(inputs, name))
        if march.iso is not None and "iso" in march.rule.parameters:
            self.grid.mark_surface(level_of(march.iso, self.grid.activation))  # what is skipped is not seen at all
        elif march.min_weight > 0:
            most = 0.0 if inputs.features is None else float(inputs.features.abs().max())
            occupancy.occupy(self.grid.fields)
            skip_invisible(self.grid, self.like, march, most)

    def see(self, inputs: Inputs, asked: Asked) -> Seen:
        """What the rays see."""
        rays = self._rays(inputs, asked)
        self._load(inputs, rays.march)
        return self.rays.see(rays, asked.depth)

    def gradients(
        self, inputs: Inputs, asked: Asked, seen: Seen, d_image: Tensor | None, d_depth: Tensor | None,
        wanted: Sequence[bool],
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """d_ of the inputs that are wanted, None of the others."""
        (density, features, *_), wants = inputs, dict(zip(Inputs._fields, wanted, strict=True))
        own = {each: np.zeros(tuple(getattr(inputs, each.name).shape)) for each in RUN_TIME if wants[each.name]}
        of_volume = wants["density"] or wants["features"] or any(not each.rays for each in own)
        of_rays = wants["origin"] or wants["direction"] or any(each.rays for each in own)
        rays = self._rays(inputs, asked)
        self._load(inputs, rays.march)
        if of_volume:
            self.rays.begin_gradient()
        by_name = {each.name: total for each, total in own.items()}
        d_rays = self.rays.add_gradients(rays, seen, d_image, d_depth, of_volume, of_rays, by_name)
        d_density = density.new_empty(density.shape) if wants["density"] else None
        d_features = features.new_empty(features.shape) if features is not None and wants["features"] else None
        if of_volume:
            self.grid.reduce_slots()
        if d_density is not None:
            volume_tensors.density_gradient_out(self.grid.fields, d_density)
        if d_features is not None:
            volume_tensors.features_gradient_out(self.grid.fields, d_features)
        ti.sync()
        d_own = (density.new_tensor(by_name[each.name]) if each in own else None for each in RUN_TIME)
        return d_density, d_features, *(d_rays or (None, None)), *d_own

    def tangents(
        self, inputs: Inputs, asked: Asked, seen: Seen, dots: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor | None]:
        """dot_ of image and depth by dot_ of the inputs, None of what stays."""
        density, features, origin, direction, *own = (None if x is None else x.cpu().numpy() for x in dots)
        moved = {each.name: value for each, value in zip(RUN_TIME, own, strict=True)}
        colour = features if "colour" in groups_of(self.march.rule) else None
        rays, dot = self._rays(inputs, asked), Parameters(density=density, colour=colour, **moved)
        self._load(inputs, rays.march)
        dot_rays = None
        if origin is not None or direction is not None:
            none = np.zeros(inputs.direction.shape)
            dot_rays = np.concatenate([none if x is None else x for x in (origin, direction)], axis=1).astype(float)
        dot_image, dot_depth = self._dots.tangents(rays, seen, dot, dot_rays)
        return dot_image, None if self.depth_is_held else dot_depth

    def _rays(self, inputs: Inputs, asked: Asked) -> TensorRays:
        """Rays of a call, marched by the mode's numbers that it brings."""
        march = self.march
        for each in RUN_TIME:
            value = getattr(inputs, each.name)
            if value is not None:
                march = each.put(march, value.cpu().numpy())
        return TensorRays(inputs.origin, inputs.direction, march, picture=asked.picture)


# Volumes that are PyTorch tensors and are marched together: what an image and its gradients take of the device.

PER_VOLUME = 3  # tensors


class Member(NamedTuple):
    """What an image depends on of one volume: raw density (x, y, z), features (x, y, z, channel) of one that shows its
    own colour, table (knot, 4) of one whose call brings it."""

    density: Tensor
    features: Tensor | None
    table: Tensor | None


def members_of(flat: Sequence[Tensor | None]) -> list[Member]:
    """Volumes of a row of their tensors, one after the other."""
    return [Member(*flat[i : i + PER_VOLUME]) for i in range(0, len(flat), PER_VOLUME)]  # type: ignore[arg-type]


class TensorTogether(NamedTuple):
    """Rays of a call: `origin` and unit `direction` (ray, 3), and how many a picture has, as jitter is by them."""

    origin: Tensor
    direction: Tensor
    picture: int


class TorchMembers(Holder):
    """Volumes on grids of their own, for one call after the other; owns their memory and that of the rays."""

    def __init__(self, volumes: Sequence[Volume], marches: Sequence[March], slots: int):
        with ExitStack() as owners:
            dense = [volume.dense() for volume in volumes]
            self.members = owners.enter_context(Members(dense, list(marches), slots))
            self.buffer = owners.enter_context(RayBuffer(self.members.batch))
            self._owners = owners.pop_all()
        for grid in self.members.grids:
            grid.name = "this torch render"

    def see(self, of: Sequence[Member], rays: TensorTogether) -> tuple[Tensor, Tensor]:
        """(red, green, blue, T) (ray, 4) before black, and depth (ray,)."""
        self._load(of)
        new, count = rays.direction.new_empty, len(rays.direction)
        image, depth, weights = new((count, 4)), new((count,)), new((count,))
        for rows, call in self._batches(rays):
            march_together(self.members.fields, self.buffer.fields, *call)
            tensors.image_out(self.buffer.fields, image[rows])
            tensors.depth_out(self.buffer.fields, depth[rows], weights[rows])
        ti.sync()
        return image, depth

    def gradients(
        self, of: Sequence[Member], rays: TensorTogether, image: Tensor, d_image: Tensor
    ) -> list[Tensor | None]:
        """d_ of density, features and table of each volume, in the order of `members_of`."""
        d_image = d_image.contiguous()  # by torch's stream, before it is waited for
        self._load(of)
        members = self.members
        for grid, settings in zip(members.grids, members.settings, strict=True):
            grid.begin_gradient()
            settings.clear_table_gradient()
        for rows, call in self._batches(rays):
            tensors.image_in(image[rows], d_image[rows], self.buffer.fields)
            march_together_adjoint(members.fields, self.buffer.fields, *call)
        found: list[Tensor | None] = []
        for one, grid, settings in zip(of, members.grids, members.settings, strict=True):
            grid.reduce_slots()
            d_density = one.density.new_empty(one.density.shape)
            volume_tensors.density_gradient_out(grid.fields, d_density)
            d_features = None if one.features is None else one.features.new_empty(one.features.shape)
            if d_features is not None:
                volume_tensors.features_gradient_out(grid.fields, d_features)
            d_table = None if one.table is None else one.table.new_tensor(settings.table_gradient(len(one.table)))
            found += [d_density, d_features, d_table]
        ti.sync()
        return found

    def _load(self, of: Sequence[Member]) -> None:
        """Put a call's samples and tables on the device; RaymarchError for what is not finite."""
        members = self.members
        wait_for(of[0].density)
        for i, (one, grid) in enumerate(zip(of, members.grids, strict=True)):
            grid.fields.nonfinite_step[None] = 0
            volume_tensors.density_in(one.density, grid.fields)
            if one.features is not None:
                volume_tensors.features_in(one.features, grid.fields)
            if grid.fields.nonfinite_step[None]:  # or a sum of large ones is not
                for name in ("density", "features"):
                    if getattr(one, name) is not None:
                        require_finite(f"volumes[{i}].{name}", getattr(one, name))
        for one, settings, march in zip(of, members.settings, members.marches, strict=True):
            planes = np.zeros((0, 4)) if march.clip is None else march.clip.half_spaces
            settings.upload(_table_of(march, one), planes, True)

    def _batches(self, rays: TensorTogether) -> Iterator[tuple[slice, tuple]]:
        """Rows of each batch, its rays in the buffer, and the last arguments of its marches."""
        first = self.members.first
        wait_for(rays.direction)
        for begin in range(0, len(rays.direction), self.buffer.capacity):
            rows = slice(begin, min(begin + self.buffer.capacity, len(rays.direction)))
            tensors.rays_in(rays.origin[rows].contiguous(), rays.direction[rows].contiguous(), self.buffer.fields)
            if first.jittered:
                pixels = (np.arange(rows.start, rows.stop) % rays.picture).astype(np.int32)
                jitter_pixels(self.buffer.fields, first.seed, pixels, first.jitter, first.step_jitter)
            yield rows, self.members.call(rows.stop - begin, BLACK)


def _table_of(march: March, one: Member) -> TransferFunction | None:
    """Transfer function by which a volume is seen; RaymarchError for colours and opacities out of 0..1."""
    if march.transfer is None or one.table is None:
        return march.transfer
    rgba = one.table.cpu().numpy()
    return replace(march.transfer, colours=rgba[:, :3], opacities=rgba[:, 3])
