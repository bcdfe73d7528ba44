"""PyTorch autograd function of lenses: plane points to unit directions in camera axes, by `geometry/lens` in NumPy."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.geometry.lens import Lens
from raymarch.torch.functions import once_function
from raymarch.torch.tensors import import_torch, one_by_one

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function

LENS = "a lens that distorts"


@cache
def lens_function() -> type[Function]:
    """Directions (N, .., 3) of (model, plane (N, .., 2), coefficients (N, number)), and their slopes by both.

    What the slopes are slopes at goes along with them to `once_function`: so it is told where a second derivative is
    asked for, of which they are constants.
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
            return None, *once_function(LENS).apply(_gradients, d_local, *ctx.saved_tensors)

        @staticmethod
        def jvp(ctx: Any, _: None, dot_plane: Tensor | None, dot_numbers: Tensor | None) -> tuple[Tensor | None, ...]:
            (dot,) = once_function(LENS).apply(_tangent, dot_plane, dot_numbers, *ctx.saved_tensors)
            return dot, None, None

        @staticmethod
        def vmap(info: Any, in_dims: tuple, *inputs: Any) -> tuple[tuple, tuple]:
            return one_by_one(LensFunction, info, in_dims, inputs)

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
