"""PyTorch autograd function of the march: what it saves, how it is called and what it gives back."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from raymarch import runtime
from raymarch.autodiff.torch_tensors import import_torch
from raymarch.errors import RaymarchError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function


@cache
def autograd_function() -> type[Function]:
    """Image as a `torch.autograd.Function` of (template, campos, direction, march, dt)."""
    import torch

    class MarchFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, template: Tensor, campos: Tensor, direction: Tensor, march: Any, dt: float) -> Tensor:
            ctx.save_for_backward(template, campos, direction)
            ctx.march, ctx.dt = march, dt
            n, height, width, _ = direction.shape
            image = march._image(*_bare(template, campos, direction), dt)
            return image.view(n, 4, height, width)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, d_image: Tensor) -> tuple[Tensor | None, ...]:
            template, campos, direction = ctx.saved_tensors
            try:
                runtime.require_owner()
            except RaymarchError as error:
                cure = "torch.autograd.set_multithreading_enabled(False) keeps torch's own threads out"
                raise RaymarchError(f"backward was {error}; {cure}") from None
            n, _, height, width = d_image.shape
            d_image = d_image.contiguous().view(n, 4, height * width)
            bare = _bare(template, campos, direction)
            gradients = ctx.march._gradients(*bare, d_image, ctx.dt, ctx.needs_input_grad)
            d_template, d_campos, d_direction = gradients
            return d_template, d_campos, None if d_direction is None else d_direction.view(direction.shape), None, None

    return MarchFunction


def _bare(template: Tensor, campos: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As kernels take them: without autograd (Taichi would give leaves a gradient), rays in a row, small ones dense."""
    n, height, width, _ = direction.shape
    direction = direction.detach().contiguous().view(n, height * width, 3)
    return template.detach(), campos.detach().contiguous(), direction


def wait_for(tensor: Tensor) -> None:
    """Synchronisation with torch's CUDA stream: Taichi has a queue of its own."""
    if tensor.is_cuda:
        import_torch().cuda.current_stream(tensor.device).synchronize()
