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
from raymarch.autodiff.torch_rays import Seen, TensorRays, TorchRays
from raymarch.autodiff.torch_tensors import require_finite, wait_for
from raymarch.data.volume import Volume
from raymarch.device.grid import Grid
from raymarch.device.owner import Holder
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.field import occupancy, volume_tensors
from raymarch.rendering.march import March
from raymarch.rendering.visibility import skip_invisible

if TYPE_CHECKING:
    from torch import Tensor


class Inputs(NamedTuple):
    """What an image depends on, or tangents of it: raw density (x, y, z), features (x, y, z, channel) or None, origin
    and unit direction (ray, 3) of the rays."""

    density: Tensor
    features: Tensor | None
    origin: Tensor
    direction: Tensor


@dataclass(frozen=True)
class Asked:
    """What a call asks for: how many rays a picture has, by whose numbers they are jittered, and whether depth too."""

    picture: int
    depth: bool


class TorchSamples(Holder):
    """Samples on a grid like a volume's, for one call after the other; owns its memory and that of the rays."""

    def __init__(self, like: Volume, march: March, slots: int):
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
            self.rays = owners.enter_context(TorchRays(self.grid, march, march.batch))
            self._owners = owners.pop_all()

    @property
    def depth_is_held(self) -> bool:
        """Whether depth has no gradient in the mode of the march."""
        return self.rays.passes.depth_gradients is None

    def _load(self, inputs: Inputs) -> None:
        wait_for(inputs.density)
        volume_tensors.density_in(inputs.density, self.grid.fields)
        if inputs.features is not None:
            volume_tensors.features_in(inputs.features, self.grid.fields)
        if self.march.min_weight > 0:
            most = 0.0 if inputs.features is None else float(inputs.features.abs().max())
            occupancy.occupy(self.grid.fields)
            skip_invisible(self.grid, self.like, self.march.rule, most)

    def see(self, inputs: Inputs, asked: Asked) -> Seen:
        """What the rays see."""
        for name, value in (("density", inputs.density), ("features", inputs.features)):
            if value is not None:
                require_finite(name, value)
        self._load(inputs)
        return self.rays.see(_rays(inputs, asked), asked.depth)

    def gradients(
        self, inputs: Inputs, asked: Asked, seen: Seen, d_image: Tensor | None, d_depth: Tensor | None,
        wanted: Sequence[bool],
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """d_ of the inputs that are wanted, None of the others."""
        density, features, *_ = inputs
        of_volume, of_rays = wanted[0] or wanted[1], wanted[2] or wanted[3]
        self._load(inputs)
        if of_volume:
            self.rays.begin_gradient()
        d_rays = self.rays.add_gradients(_rays(inputs, asked), seen, d_image, d_depth, of_volume, of_rays)
        d_density = density.new_empty(density.shape) if wanted[0] else None
        d_features = features.new_empty(features.shape) if features is not None and wanted[1] else None
        if of_volume:
            self.grid.reduce_slots()
        if d_density is not None:
            volume_tensors.density_gradient_out(self.grid.fields, d_density)
        if d_features is not None:
            volume_tensors.features_gradient_out(self.grid.fields, d_features)
        ti.sync()
        return d_density, d_features, *(d_rays or (None, None))

    def tangents(
        self, inputs: Inputs, asked: Asked, seen: Seen, dots: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor | None]:
        """dot_ of image and depth by dot_ of the inputs, None of what stays."""
        density, features, origin, direction = (None if x is None else x.detach().cpu().numpy() for x in dots)
        self._load(inputs)
        dot = Parameters(density=density, colour=features if self.march.rule.colour else None)
        dot_rays = None
        if origin is not None or direction is not None:
            none = np.zeros(inputs.direction.shape)
            dot_rays = np.concatenate([none if x is None else x for x in (origin, direction)], axis=1).astype(float)
        dot_image, dot_depth = self.rays.tangents(_rays(inputs, asked), seen, dot, dot_rays)
        return dot_image, None if self.depth_is_held else dot_depth


def _rays(inputs: Inputs, asked: Asked) -> TensorRays:
    return TensorRays(inputs.origin, inputs.direction, picture=asked.picture)
