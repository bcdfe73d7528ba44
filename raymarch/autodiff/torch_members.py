"""Volumes that are PyTorch tensors and are marched together: what an image and its gradients take of the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import taichi as ti

from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.kernels.field import volume_tensors
from raymarch.kernels.march.together import march_together
from raymarch.kernels.march.together_adjoint import march_together_adjoint
from raymarch.kernels.rays import ray_tensors as tensors
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import March
from raymarch.rendering.members import Members
from raymarch.torch.tensors import require_finite, wait_for
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

if TYPE_CHECKING:
    from torch import Tensor

BLACK = (0.0, 0.0, 0.0)
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
