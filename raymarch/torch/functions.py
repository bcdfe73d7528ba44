"""PyTorch autograd functions of the march: what they save, how they are called and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.torch.march_session import Inputs, MarchSession, RayOutputs, Request
from raymarch.torch.tensors import import_torch, vmap_one_by_one

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function

NO_SECOND = "has no second derivatives; leave create_graph out, or take differences of its gradient"


def require_backward_thread() -> None:
    """Thread check of a backward pass, which torch may run in threads of its own."""
    try:
        runtime.require_owner()
    except RaymarchError as error:
        cure = "torch.autograd.set_multithreading_enabled(False) keeps torch's own threads out"
        raise RaymarchError(f"backward was {error}; {cure}") from None


def keep_threads_out(*inputs: Tensor | None) -> None:
    """Have backward run in the thread that calls it, which on the CPU it does anyway, where gradients are wanted."""
    torch = import_torch()
    if not runtime.runs_on_cpu() and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
        torch.autograd.set_multithreading_enabled(False)


@cache
def render_function() -> type[Function]:
    """Image (ray, 4), depth (ray,) and its weights: a function of (session, request) and the row of `Inputs`."""
    import torch

    class RenderFunction(torch.autograd.Function):
        @staticmethod
        def forward(session: MarchSession, request: Request, *inputs: Tensor | None) -> RayOutputs:
            return session.see(Inputs.of(bare(inputs)), request)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: RayOutputs) -> None:
            ctx.session, ctx.request, *tensors = inputs
            ctx.save_for_backward(*tensors, *output)
            ctx.save_for_forward(*tensors, *output)
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*output[1 if ctx.session.depth_is_held else 2 :])

        @staticmethod
        def backward(ctx: Any, d_image: Tensor | None, d_depth: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
            require_backward_thread()
            wanted = tuple(ctx.needs_input_grad[2:])
            if not any(wanted) or (d_image is None and d_depth is None):
                return (None,) * len(ctx.needs_input_grad)
            work = partial(_gradients, ctx.session, ctx.request, wanted)
            return None, None, *no_second_derivative_function().apply(work, d_image, d_depth, *ctx.saved_tensors)

        @staticmethod
        def jvp(ctx: Any, _session: None, _request: None, *dots: Tensor | None) -> tuple[Tensor | None, ...]:
            work = partial(_tangents, ctx.session, ctx.request, len(dots))
            return *no_second_derivative_function().apply(work, *dots, *ctx.saved_tensors), None

        @staticmethod
        def vmap(info: Any, in_dims: tuple, *inputs: Any) -> tuple[tuple, tuple]:
            return vmap_one_by_one(RenderFunction, info, in_dims, inputs)

    return RenderFunction


@cache
def no_second_derivative_function(what: str = "a march") -> type[Function]:
    """What `work` makes of tensors, without derivatives: of `what` it is there are no second ones.

    A function of its own, so that `torch.func` hands plain tensors to it.
    """
    import torch

    class OnceFunction(torch.autograd.Function):
        @staticmethod
        def forward(work: Callable, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
            return work(*bare(tensors))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *_: Tensor) -> None:
            raise RaymarchError(f"{what} {NO_SECOND}")

        @staticmethod
        def jvp(ctx: Any, *_: Tensor) -> None:
            raise RaymarchError(f"{what} {NO_SECOND}")

        @staticmethod
        def vmap(info: Any, in_dims: tuple, *inputs: Any) -> tuple[tuple, tuple]:
            return vmap_one_by_one(OnceFunction, info, in_dims, inputs)

    return OnceFunction


def _gradients(
    session: MarchSession,
    request: Request,
    wanted: Sequence[bool],
    d_image: Tensor | None,
    d_depth: Tensor | None,
    *saved: Tensor | None,
) -> tuple[Tensor | None, ...]:
    inputs, seen = Inputs.of(saved[:-3]), RayOutputs(*saved[-3:])  # type: ignore[arg-type]
    return session.gradients(inputs, request, seen, d_image, d_depth, wanted)


def _tangents(
    session: MarchSession, request: Request, count: int, *tensors: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    inputs, seen = Inputs.of(tensors[count:-3]), RayOutputs(*tensors[-3:])  # type: ignore[arg-type]
    return session.tangents(inputs, request, seen, tensors[:count])


def bare(tensors: Sequence[Tensor | None]) -> list:
    """As kernels take them: without autograd (Taichi would give leaves a gradient), and dense."""
    return [None if each is None else each.detach().contiguous() for each in tensors]
