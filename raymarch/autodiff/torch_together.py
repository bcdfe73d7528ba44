"""Differentiable rendering of several volumes together that are PyTorch tensors: `pip install "raymarch[torch]"`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import taichi as ti

from raymarch import runtime
from raymarch.arguments.arrays import Colour
from raymarch.arguments.checks import shown, whole
from raymarch.arguments.declared import checked
from raymarch.autodiff.torch_members import Member, TensorTogether, TorchMembers, members_of
from raymarch.autodiff.torch_parameters import TABLE
from raymarch.autodiff.torch_volume import TorchVolume
from raymarch.device.owner import Holder
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.rendering.together_settings import SINGLE_MARCHES, VOLUMES, Marches, single_marches_for
from raymarch.torch.cameras import TorchCameras
from raymarch.torch.functions import keep_threads_out, require_backward_thread
from raymarch.torch.render import TorchRendering, background_for
from raymarch.torch.tensors import import_torch, require_finite, require_shape
from raymarch.views.views import Views
from raymarch.volumes.volume import AnyVolume, Volume

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function

Samples: TypeAlias = "TorchVolume | tuple[Tensor, Tensor | None]"


class TorchTogether(Holder):
    """Differentiable renderer of several volumes together that are tensors; owns device memory until `close`.

    A call `render([(density, features), ...], cameras)` returns a `TorchRendering` of N cameras, as `TogetherRenderer`
    composites. Gradients go to density, features and table of each volume and to the background; cameras and depth have
    none here. Second derivatives and forward mode there are none.

    Args:
        volumes: one to four, whose shapes, placements and activations count; their numbers are read only where no
            march is given: whether they are values alone, and then the range of their table.
        marches: one for each, or one for all, as of `TogetherRenderer`; each sample counts if not given. Nothing is
            leapt over.
        slots: gradient buffers on the CPU, one a thread at most, each as large as the volumes.

    What is said of tensors, memory, threads and the first call of `TorchRender` holds here too.

    Raises RaymarchError as `TorchRender` and `TogetherRenderer` do.

    Example:
        >>> import raymarch as rm  # doctest: +SKIP
        >>> fog = rm.Volume.from_function(lambda p: 1.0 + p[..., 0], shape=(8, 8, 8))  # doctest: +SKIP
        >>> both = [rm.TorchVolume.of(fog, requires_grad=True) for _ in range(2)]  # doctest: +SKIP
        >>> with rm.TorchTogether([fog, fog]) as render:  # doctest: +SKIP
        ...     render(both, rm.orbit_of_volume(fog.box, 3, size=16)).image.square().mean().backward()
        >>> bool((both[0].density.grad == both[1].density.grad).all())  # doctest: +SKIP
        True
    """

    @checked(volumes=VOLUMES, marches=SINGLE_MARCHES, slots=whole(1, 64))
    def __init__(self, volumes: Sequence[AnyVolume], marches: Marches = None, *, slots: int = 4):
        import_torch()
        if not ti.lang.util.has_pytorch():
            raise RaymarchError("TI_ENABLE_TORCH=0 keeps Taichi from taking tensors; unset it")
        runtime.start()
        self.like: list[Volume] = list(volumes)
        self.marches = single_marches_for(self.like, marches)
        with ExitStack() as owners:
            of_device = slots if runtime.on_cpu() else 1
            self._members = owners.enter_context(TorchMembers(self.like, self.marches, of_device))
            self._owners = owners.pop_all()

    def __call__(
        self, samples: Sequence[Samples], cameras: TorchCameras | Camera | Views | Sequence[Camera], *,
        background: Tensor | Colour | None = None, tables: Sequence[Tensor | None] | None = None,
    ) -> TorchRendering:  # fmt: skip
        """Rendering (N, height, width) of what N cameras see.

        Args:
            samples: of each volume a `TorchVolume`, or density (x, y, z) and features (x, y, z, channel), None of one
                that a table classifies.
            cameras: `TorchCameras` without gradients, or rm.Cameras.
            background: a tensor that goes with (N, height, width, 3), or a colour; that of the first volume if None.
            tables: of each volume (knot, 4) colours and opacities in 0..1 instead of its march's, or None.
        """
        several = cameras if isinstance(cameras, TorchCameras) else TorchCameras.of(cameras)
        _ = self._members.members.grids[0].fields  # not closed, and the right thread
        of = [self._member(i, *one) for i, one in enumerate(self._pairs(samples, tables))]
        origin, direction = several.rays()
        if origin.requires_grad or direction.requires_grad:
            raise RaymarchError("volumes together have no gradient by cameras; detach the tensors of cameras")
        if not (direction.isfinite().all() and origin.isfinite().all()):
            raise RaymarchError("some rays are not finite; a pose, focal or principal has a NaN or is 0")
        rays = TensorTogether(origin.reshape(-1, 3), direction.reshape(-1, 3), several.width * several.height)
        flat = [tensor for member in of for tensor in member]
        keep_threads_out(*flat)
        light, depth = together_function().apply(self._members, rays, *flat)
        light = light.view(*direction.shape[:-1], 4)
        image, left = light[..., :3], light[..., 3]
        image = image + left[..., None] * background_for(background, self.like[0].background, image)
        return TorchRendering(image, 1 - left, depth.view(direction.shape[:-1]))

    def _pairs(
        self, samples: Sequence[Samples], tables: Sequence[Tensor | None] | None
    ) -> list[tuple[Tensor, Tensor | None, Tensor | None]]:
        """Density, features and table of each volume, as many as there are."""
        count, found = len(self.like), []
        tables = [None] * count if tables is None else tables
        for name, given in (("samples", samples), ("tables", tables)):
            if not isinstance(given, (list, tuple)) or len(given) != count:
                raise RaymarchError(f"{name} are {shown(given)}, want a list of {count}, one for each volume")
        for i, (one, table) in enumerate(zip(samples, tables, strict=True)):
            pair = (one.density, one.features) if isinstance(one, TorchVolume) else one
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise RaymarchError(f"samples[{i}] is {shown(one)}, want an rm.TorchVolume or (density, features)")
            found.append((*pair, table))
        return found

    def _member(self, i: int, density: Tensor, features: Tensor | None, table: Tensor | None) -> Member:
        """Tensors of a volume, in its shapes; features that nobody sees are left out."""
        like, march = self.like[i], self.marches[i]
        require_shape(f"samples[{i}].density", density, like.shape)
        if march.transfer is not None:
            features = None
        elif features is None:
            raise RaymarchError(f"samples[{i}] has no features but its march sees colours; pass them")
        if features is not None:
            require_shape(f"samples[{i}].features", features, (*like.shape, like.channels))
        if table is not None:
            if (shape := TABLE.shape(march)) is None:
                raise RaymarchError(f"tables[{i}]: mode {march.rule.name} reads no table; leave it out")
            require_shape(f"tables[{i}]", table, shape)
            require_finite(f"tables[{i}]", table)
        return Member(density, features, table)


@cache
def together_function() -> type[Function]:
    """Image (ray, 4) and depth (ray,): a function of (members, rays) and the tensors of each `Member`."""
    import torch

    class TogetherFunction(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, members: TorchMembers, rays: TensorTogether, *flat: Tensor | None
        ) -> tuple[Tensor, Tensor]:
            bare = [None if each is None else each.detach().contiguous() for each in flat]
            bare_rays = rays._replace(origin=rays.origin.contiguous(), direction=rays.direction.contiguous())
            image, depth = members.see(members_of(bare), bare_rays)
            ctx.members, ctx.rays = members, bare_rays
            ctx.save_for_backward(*flat, image)
            ctx.mark_non_differentiable(depth)
            return image, depth

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, d_image: Tensor, _: Any) -> tuple[Tensor | None, ...]:
            require_backward_thread()
            *flat, image = ctx.saved_tensors
            bare = [None if each is None else each.detach().contiguous() for each in flat]
            found = ctx.members.gradients(members_of(bare), ctx.rays, image, d_image.contiguous())
            wanted = ctx.needs_input_grad[2:]
            return None, None, *(x if want else None for x, want in zip(found, wanted, strict=True))

    return TogetherFunction
