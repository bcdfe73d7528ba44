"""Samples and rays that are PyTorch tensors: what an image and its derivatives take of the device, call by call.

Nothing of a call stays: the samples are put on the grid for it and once more for its gradient, and rays are replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.autodiff.torch_parameters import RUN_TIME
from raymarch.autodiff.torch_rays import Seen, TensorRays, TorchRays
from raymarch.autodiff.torch_tangents import TorchTangents
from raymarch.device.grid import Grid
from raymarch.device.owner import Holder
from raymarch.gradients.parameters import Parameters, groups_of
from raymarch.kernels.field import occupancy, volume_tensors
from raymarch.kernels.march.passes import passes_of
from raymarch.rendering.march_settings import March
from raymarch.rendering.ray_settings import level_of, require_seen
from raymarch.rendering.visibility import skip_invisible
from raymarch.torch.tensors import require_finite, wait_for
from raymarch.volumes.volume import Volume

if TYPE_CHECKING:
    from torch import Tensor


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
