"""Cameras as PyTorch tensors: poses, focal lengths, principal points and lenses of a batch, and their rays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.declared import checked, suggest_names
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import MODELS, VIEW_AXIS, Lens
from raymarch.geometry.lens_distortion import PARALLEL, PINHOLE
from raymarch.torch.functions import no_second_derivative_function
from raymarch.torch.tensors import import_torch, require_finite, require_shape, tensor_of, vmap_one_by_one
from raymarch.views.views import CAMERAS, Views

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function

DISTORTING_LENS = "a lens that distorts"


@cache
def lens_function() -> type[Function]:
    """Lenses as a `torch.autograd.Function`, by `geometry/lens` in NumPy: unit directions (N, .., 3) in camera axes of
    (model, plane points (N, .., 2), coefficients (N, number)), and their slopes by both.

    What the slopes are slopes at goes along with them to `no_second_derivative_function`: so it is told where a second
    derivative is asked for, of which they are constants.
    """
    import torch

    class LensFunction(torch.autograd.Function):
        @staticmethod
        def forward(model: str, plane: Tensor, coefficients: Tensor) -> tuple[Tensor, ...]:
            found = []
            for points, numbers in zip(plane.detach(), coefficients.detach(), strict=True):
                lens = Lens(model, tuple(numbers.tolist()))
                local = lens.directions(points.cpu().numpy().astype(float).reshape(-1, 2))
                found.append((local, *lens.inverse_slopes(local)))
            return tuple(
                plane.new_tensor(np.stack(each)).view(*plane.shape[:-1], *each[0].shape[1:])
                for each in zip(*found, strict=True)
            )

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
            (_, *at), (_, *slopes) = inputs, output
            ctx.save_for_backward(*slopes, *at)
            ctx.save_for_forward(*slopes, *at)
            ctx.mark_non_differentiable(*slopes)

        @staticmethod
        def backward(ctx: Any, d_local: Tensor, *_: None) -> tuple[Tensor | None, ...]:
            return None, *no_second_derivative_function(DISTORTING_LENS).apply(_gradients, d_local, *ctx.saved_tensors)

        @staticmethod
        def jvp(ctx: Any, _: None, dot_plane: Tensor | None, dot_numbers: Tensor | None) -> tuple[Tensor | None, ...]:
            (dot,) = no_second_derivative_function(DISTORTING_LENS).apply(
                _tangent, dot_plane, dot_numbers, *ctx.saved_tensors
            )
            return dot, None, None

        @staticmethod
        def vmap(info: Any, in_dims: tuple, *inputs: Any) -> tuple[tuple, tuple]:
            return vmap_one_by_one(LensFunction, info, in_dims, inputs)

    return LensFunction


def _gradients(d_local: Tensor, *saved: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by plane points and coefficients."""
    torch = import_torch()
    by_plane, by_number = (torch.einsum("n...ik,n...i->n...k", s, d_local) for s in saved[:2])
    return by_plane, by_number.flatten(1, -2).sum(1)


def _tangent(dot_plane: Tensor | None, dot_numbers: Tensor | None, *saved: Tensor) -> tuple[Tensor]:
    """Tangent of directions."""
    torch, (by_plane, by_number) = import_torch(), saved[:2]
    dot = by_plane.new_zeros(by_plane.shape[:-1])
    if dot_plane is not None:
        dot = dot + torch.einsum("n...ik,n...k->n...i", by_plane, dot_plane)
    if dot_numbers is not None:
        dot = dot + torch.einsum("n...ik,nk->n...i", by_number, dot_numbers)
    return (dot,)


@suggest_names
@dataclass(frozen=True, eq=False)
class TorchCameras:
    """Cameras of N images of one size as PyTorch tensors, all of which may want gradients.

    `TorchCameras.of(cameras)` makes them; `dataclasses.replace(cameras, focal=...)` puts tensors of your own in, and
    `moved` turns and shifts them by six numbers each, which is how a pose is optimised. Numbers are in the precision
    and on the device that run.

    Attributes:
        world_from_camera: (N, 4, 4); read entry by entry, so it need not be a rotation; the last row is not read.
        focal, principal: (N, 2) [pixel]; the focal of orthographic cameras in pixels per world unit.
        width, height: of the images [pixel].
        lens: the model of all (see `rm.Lens`). coefficients: (N, number) of it; a pinhole has none.

    Raises RaymarchError for cameras of several sizes or lens models, tensors of another dtype, device or shape, and, as
    rays are made, for lenses that cannot be inverted.

    Example:
        >>> from raymarch.geometry.camera import Camera  # doctest: +SKIP
        >>> cameras = TorchCameras.of(Camera.look_at((0, -4, 0), width=8, height=6))  # doctest: +SKIP
        >>> pose = torch.zeros(1, 6, requires_grad=True)  # doctest: +SKIP
        >>> origin, direction = cameras.moved(pose).rays()  # doctest: +SKIP
        >>> direction.shape, direction.requires_grad  # doctest: +SKIP
        (torch.Size([1, 6, 8, 3]), True)
    """

    world_from_camera: Tensor
    focal: Tensor
    principal: Tensor
    width: int
    height: int
    lens: str = "pinhole"
    coefficients: Tensor | None = None

    def __post_init__(self) -> None:
        torch = import_torch()
        count = len(self.world_from_camera) if isinstance(self.world_from_camera, torch.Tensor) else 1
        require_shape("world_from_camera", self.world_from_camera, (count, 4, 4))
        for name in ("focal", "principal"):
            require_shape(name, getattr(self, name), (count, 2))
        if self.lens not in MODELS:
            raise RaymarchError(f"lens is {self.lens!r}, want one of {', '.join(MODELS)}")
        if self.coefficients is None:
            object.__setattr__(self, "coefficients", self.focal.new_zeros((count, 0)))
        require_shape("coefficients", self.coefficients, (count, len(MODELS[self.lens].names)))

    def __len__(self) -> int:
        return len(self.world_from_camera)

    @classmethod
    @checked(cameras=CAMERAS)
    def of(cls, cameras: Camera | Views | Sequence[Camera]) -> TorchCameras:
        """Tensors of a camera, several or those of views; numbers are copied."""
        import_torch()
        runtime.start()
        several: list[Camera] = list(cameras)  # type: ignore[arg-type]  # as CAMERAS reads them
        first = several[0]
        for camera in several:
            if (camera.width, camera.height, camera.lens.model) != (first.width, first.height, first.lens.model):
                raise RaymarchError(
                    f"cameras have images of {first.width} x {first.height} ({first.lens.model}) and of {camera.width} "
                    f"x {camera.height} ({camera.lens.model}), want one size and one lens model; make one of each kind"
                )
        arrays = (
            np.stack([camera.world_from_camera for camera in several]),
            np.array([camera.focal for camera in several]),
            np.array([camera.principal for camera in several]),
            np.array([camera.lens.coefficients for camera in several]).reshape(len(several), -1),
        )
        pose, focal, principal, coefficients = (tensor_of(each) for each in arrays)
        return cls(pose, focal, principal, first.width, first.height, first.lens.model, coefficients)

    def cameras(self) -> list[Camera]:
        """Cameras of the numbers as they are now; RaymarchError for poses that are not rigid."""
        pose, focal, principal, numbers = (
            each.detach().cpu().numpy().astype(float)
            for each in (self.world_from_camera, self.focal, self.principal, self._numbers)
        )
        return [
            Camera(
                pose[n],
                tuple(focal[n]),
                tuple(principal[n]),
                self.width,
                self.height,
                Lens(self.lens, tuple(numbers[n])),
            )
            for n in range(len(self))
        ]

    def moved(self, pose: Tensor) -> TorchCameras:
        """Cameras moved by `pose` (N, 6), translation [world unit] and rotation [radian] in camera axes: by the
        exponential of these numbers, as `rm.Parameters` has them."""
        torch = import_torch()
        require_shape("pose", pose, (len(self), 6))
        x, y, z = pose[:, 3:].unbind(1)
        zero = torch.zeros_like(x)
        turn = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).view(-1, 3, 3)
        twist = torch.cat([torch.cat([turn, pose[:, :3, None]], 2), pose.new_zeros((len(self), 1, 4))], 1)
        return replace(self, world_from_camera=self.world_from_camera @ torch.linalg.matrix_exp(twist))

    @property
    def _numbers(self) -> Tensor:
        assert self.coefficients is not None
        return self.coefficients

    def rays(self) -> tuple[Tensor, Tensor]:
        """Origin and unit direction (N, height, width, 3) in the world of rays through pixel centres."""
        torch = import_torch()
        for name in ("world_from_camera", "focal", "principal", "coefficients"):
            require_finite(name, getattr(self, name))
        u = torch.arange(self.width, dtype=self.focal.dtype, device=self.focal.device) + 0.5
        v = torch.arange(self.height, dtype=self.focal.dtype, device=self.focal.device) + 0.5
        pixel = torch.stack(torch.meshgrid(u, v, indexing="xy"), -1)
        plane = (pixel - self.principal[:, None, None]) / self.focal[:, None, None]
        turn, position = self.world_from_camera[:, None, None, :3, :3], self.world_from_camera[:, None, None, :3, 3]
        start, local = self._local(plane)
        direction = (turn @ local[..., None])[..., 0]
        direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        origin = position if start is None else position + (turn @ start[..., None])[..., 0]
        return origin.expand(direction.shape), direction

    def _local(self, plane: Tensor) -> tuple[Tensor | None, Tensor]:
        """Origins, None for 0, and directions (N, height, width, 3) in camera axes of plane points (.., 2)."""
        torch, kind = import_torch(), MODELS[self.lens].kind
        if kind not in (PINHOLE, PARALLEL):
            return None, lens_function().apply(self.lens, plane, self._numbers)[0]
        x, y = plane[..., 0], -plane[..., 1]
        if kind == PINHOLE:
            return None, torch.stack([x, y, torch.full_like(x, -1.0)], -1)
        start = torch.stack([x, y, torch.zeros_like(x)], -1)
        return start, plane.new_tensor(VIEW_AXIS).expand(start.shape)
