"""Differentiable rendering of volumes that are PyTorch tensors, in every mode: `pip install "raymarch[torch]"`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.arguments.checks import Colour, flag, shown, whole
from raymarch.arguments.declared import checked
from raymarch.device.pool import Holder
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import EXACT
from raymarch.gradients.parameters import groups_of
from raymarch.rendering.march_settings import SINGLE_RAYS, March
from raymarch.rendering.renderer import SINGLE_MARCHES, VOLUMES, Marches, single_marches_for
from raymarch.torch.cameras import TorchCameras
from raymarch.torch.functions import keep_threads_out, render_function, require_backward_thread
from raymarch.torch.march_session import (
    TABLE,
    Asked,
    Inputs,
    Member,
    TensorTogether,
    TorchMembers,
    TorchSamples,
    members_of,
    require_own,
)
from raymarch.torch.tensors import TorchVolume, import_torch, require_finite, require_shape, require_tensor, tensor_of
from raymarch.views.views import Views, require_colour
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function

Cameras: TypeAlias = "TorchCameras | Camera | Views | Sequence[Camera]"


@dataclass(frozen=True, eq=False)
class TorchRendering:
    """What `TorchRender` gives, of the shape of the rays: (N, height, width) of cameras.

    Attributes:
        image: (.., 3), background included.
        opacity: (..) in 0..1, one less the transmittance.
        depth: (..) mean distance from the camera [world unit], infinite under 1 % opacity; None if not asked for. Where
            it is infinite it passes no gradient on, whatever a loss makes of it.
    """

    image: Tensor
    opacity: Tensor
    depth: Tensor | None


class TorchRender(Holder):
    """Differentiable renderer of volumes that are PyTorch tensors, in every mode; owns device memory until `close`.

    A call `render(density, features, cameras)` returns a `TorchRendering` of N cameras, `render.trace(density,
    features, origin, direction)` one of any rays. Gradients go to density, features and background, and by the rays to
    whatever made them: poses, focal lengths, principal points and lenses of `TorchCameras`, or a camera model of your
    own. Nothing is done for what wants none; forward mode (`torch.func.jvp`) works too, second derivatives do not.

    Args:
        volume: whose shape, SH degree, placement and activations count; its numbers are not read.
        march: how rays are sampled and what their samples add up to. If not given, each sample counts; with a
            `min_weight` empty space is skipped, as everywhere, and has no gradient.
        slots: gradient buffers on the CPU, one a thread at most, each as large as the volume; CUDA takes one. 0 for a
            renderer without gradients.

    Tensors have the dtype of the process's precision (`rm.start(precision="f64")` for f64, as `gradcheck` wants it) and
    lie on the device it runs on; nothing is converted. Density and features are copied to the device once a call and
    once more for its gradient, for a ray is replayed: a call keeps no more than its tensors and its image, so any
    number of them may come before a `backward`. Strided ones are copied into rows before. Gradients repeat to the bit
    on the CPU.

    Make one for all calls: kernels are compiled by the first, in seconds. Calls and `backward` belong to the thread and
    process that started raymarch. On CUDA a call that wants gradients therefore turns torch's backward threads off.

    Raises RaymarchError where torch is missing, memory does not suffice, on use after `close`, and for tensors of
    another dtype, device or shape, or with numbers that are not finite.

    Example:
        >>> import raymarch as rm  # doctest: +SKIP
        >>> fog = rm.Volume.from_function(lambda p: 1.0 + p[..., 0], shape=(8, 8, 8))  # doctest: +SKIP
        >>> tensors = rm.TorchVolume.of(fog, requires_grad=True)  # doctest: +SKIP
        >>> cameras = rm.TorchCameras.of(rm.orbit_of_volume(fog.box, 3, size=16))  # doctest: +SKIP
        >>> with rm.TorchRender(fog) as render:  # doctest: +SKIP
        ...     seen = render(tensors.density, tensors.features, cameras, depth=True)
        ...     (seen.image.square().mean() + seen.opacity.mean()).backward()
        >>> seen.image.shape, tensors.density.grad.shape  # doctest: +SKIP
        (torch.Size([3, 16, 16, 3]), torch.Size([8, 8, 8]))
    """

    @checked(volume=VOLUME, march=SINGLE_RAYS, slots=whole(0, 64))
    def __init__(self, volume: AnyVolume, march: March = EXACT, *, slots: int = 4):
        import_torch()
        if not ti.lang.util.has_pytorch():
            raise RaymarchError("TI_ENABLE_TORCH=0 keeps Taichi from taking tensors; unset it")
        self.like, self.march, self.shape = volume, march, volume.shape
        with ExitStack() as owners:
            self._samples = owners.enter_context(TorchSamples(volume, march, slots))
            self._owners = owners.pop_all()

    @checked(depth=flag)
    def __call__(
        self, density: Tensor | TorchVolume, features: Tensor | Any | None, cameras: Cameras | None = None, *,
        background: Tensor | Colour | None = None, depth: bool = False, iso: Tensor | None = None,
        table: Tensor | None = None,
    ) -> TorchRendering:  # fmt: skip
        """Rendering (N, height, width) of what N cameras see; `render(tensors, cameras)` of a `TorchVolume`.

        Args:
            density: (x, y, z) raw density; or a `TorchVolume`, whose features and background count too, and which is
                followed by the cameras.
            features: (x, y, z, channel) raw colour; None where the mode sees no colours.
            cameras: `TorchCameras`; or rm.Cameras, which have no gradients.
            background: a tensor that goes with (N, height, width, 3) by broadcasting, (3,) say, or a colour; the
                volume's own if not given.
            depth: whether depth is wanted.
            iso: () value of the surface of mode "isosurface", instead of the march's.
            table: (knot, 4) red, green, blue and opacity of the transfer function's knots, in 0..1, instead of its own.
        """
        density, features, (cameras,), background = parted(density, features, (cameras,), background)
        several = cameras if isinstance(cameras, TorchCameras) else TorchCameras.of(cameras)
        picture = several.width * several.height
        return self._render(density, features, *several.rays(), background, Asked(picture, depth), iso=iso, table=table)

    @checked(depth=flag)
    def trace(
        self, density: Tensor | TorchVolume, features: Tensor | None, origin: Tensor,
        direction: Tensor | None = None, *, background: Tensor | Colour | None = None, depth: bool = False,
        iso: Tensor | None = None, table: Tensor | None = None,
    ) -> TorchRendering:  # fmt: skip
        """Rendering (..) along rays: origin and direction (.., 3) go together by broadcasting; directions of any
        length, which are made unit vectors. Of a `TorchVolume` it is `trace(tensors, origin, direction)`."""
        torch = import_torch()
        density, features, (origin, direction), background = parted(density, features, (origin, direction), background)
        for name, value in (("origin", origin), ("direction", direction)):
            require_tensor(name, value)
            if value.shape[-1:] != (3,):
                raise RaymarchError(f"{name} has shape {tuple(value.shape)}, want (.., 3)")
        direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        try:
            origin, direction = torch.broadcast_tensors(origin, direction)
        except RuntimeError:
            shapes = f"{tuple(origin.shape)} and direction {tuple(direction.shape)}"
            raise RaymarchError(f"origin has shape {shapes}, which do not go together; want (.., 3) twice") from None
        count = max(direction[..., 0].numel(), 1)
        return self._render(density, features, origin, direction, background, Asked(count, depth), iso=iso, table=table)

    def _render(
        self, density: Tensor, features: Tensor | None, origin: Tensor, direction: Tensor,
        background: Tensor | Colour | None, asked: Asked, **own: Tensor | None,
    ) -> TorchRendering:  # fmt: skip
        torch = import_torch()
        grid = self._samples.grid
        _ = grid.fields  # not closed, and the right thread
        self._require_samples(density, features)
        if not (direction.isfinite().all() and origin.isfinite().all()):
            raise RaymarchError("some rays are not finite; a pose, focal, principal or direction has a NaN or is 0")
        require_own(self.march, own)
        inputs = Inputs(density, features, origin.reshape(-1, 3), direction.reshape(-1, 3), **own)
        if not grid.slots and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
            raise RaymarchError("this torch render was made with slots=0 and has no gradients; make one with slots=4")
        keep_threads_out(*inputs)
        light, depth, _ = render_function().apply(self._samples, asked, *inputs)
        light = light.view(*direction.shape[:-1], 4)
        image, left = light[..., :3], light[..., 3]
        if self.march.rule.background:
            image = image + left[..., None] * background_for(background, self.like.background, image)
        return TorchRendering(image, 1 - left, depth.view(direction.shape[:-1]) if asked.depth else None)

    def _require_samples(self, density: Tensor, features: Tensor | None) -> None:
        require_shape("density", density, self.shape)
        if features is not None:
            require_shape("features", features, (*self.shape, self.like.channels))
        elif "colour" in groups_of(self.march.rule):
            raise RaymarchError(f"features are None but mode {self.march.rule.name} sees colours; pass them")


def parted(
    density: Tensor | TorchVolume, features: Any, rest: tuple[Any, ...], background: Tensor | Colour | None
) -> tuple[Tensor, Any, tuple[Any, ...], Tensor | Colour | None]:
    """Arguments of a call with a `TorchVolume` as those of one with density and features.

    Raises RaymarchError for a call that has too few, or features beside a `TorchVolume`.
    """
    if isinstance(density, TorchVolume):
        tensors = density
        if rest[-1] is None:
            rest = (features, *rest[:-1])
        elif features is not None and features is not tensors.features:
            raise RaymarchError("features are given beside a TorchVolume, which has its own; leave them out")
        behind = tensors.background if background is None else background
        return tensors.density, tensors.features, rest, behind
    if rest[-1] is None:
        last = "cameras" if len(rest) == 1 else "origin and direction"
        raise RaymarchError(f"{last} are missing; call render(density, features, {last}), or with an rm.TorchVolume")
    return density, features, rest, background


def background_for(background: Tensor | Colour | None, own: Colour, image: Tensor) -> Tensor:
    """Background as a tensor that goes with an image (.., 3): the one given, else a volume's own."""
    torch = import_torch()
    if not isinstance(background, torch.Tensor):
        colour: Colour = own if background is None else background  # type: ignore[assignment]
        return tensor_of(np.array(require_colour(colour)))
    require_tensor("background", background)
    try:
        return background.expand(image.shape)
    except RuntimeError:
        got, want = tuple(background.shape), tuple(image.shape)
        raise RaymarchError(f"background has shape {got}, want (3,) or what goes with {want}") from None


# Differentiable rendering of several volumes together that are PyTorch tensors: `pip install "raymarch[torch]"`.

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
