"""Differentiable rendering of volumes that are PyTorch tensors, in every mode: `pip install "raymarch[torch]"`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from raymarch.arguments.checks import Colour, describe_value, flag, optional, whole
from raymarch.arguments.declared import checked
from raymarch.device.pool import Holder
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.gradients.parameters import groups_of
from raymarch.rendering.medium import (
    MARCHES_OF_SINGLE_RAYS,
    NO_RAY_GRADIENT,
    VOLUMES,
    AnyVolumes,
    Marches,
    several,
    single_marches_for,
)
from raymarch.torch.cameras import TorchCameras
from raymarch.torch.functions import keep_threads_out, render_function
from raymarch.torch.march_session import Inputs, MarchSession, Request, VolumeTensors
from raymarch.torch.tensors import (
    TorchVolume,
    import_torch,
    require_finite,
    require_shape,
    require_tensor,
    require_tensors,
    tensor_of,
)
from raymarch.views.views import Views
from raymarch.volumes.channels import background_of_channels
from raymarch.volumes.volume import Volume

if TYPE_CHECKING:
    from torch import Tensor

Cameras: TypeAlias = "TorchCameras | Camera | Views | Sequence[Camera]"
# Raw density of one volume, a TorchVolume; or a list of one TorchVolume or (density, features) for each of several.
Samples: TypeAlias = "Tensor | TorchVolume | Sequence[TorchVolume | tuple[Tensor, Tensor | None]]"
Tables: TypeAlias = "Tensor | Sequence[Tensor | None] | None"


@dataclass(frozen=True, eq=False)
class TorchRendering:
    """What `TorchRender` gives, of the shape of the rays: (N, height, width) of cameras.

    Attributes:
        image: (.., 3), background included; of channels (.., channel).
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

    Of several volumes a call is `render([(density, features), ...], cameras)`. Gradients go to density, features and
    table of each volume and to the background. Rays and depth have none there.

    Args:
        volume: whose shape, SH degree, placement and activations count, or a list of one to four as of `Renderer`; the
            numbers are read only where several have no march: for the range of a table.
        march: how rays are sampled and what their samples add up to, for each volume or for all. If not given, each
            sample counts, and several volumes are seen as by `Renderer`. With a `min_weight` the empty space of one
            volume is skipped, as everywhere, and has no gradient.
        slots: gradient buffers on the CPU, one a thread at most, each as large as the volumes; CUDA takes one. 0 for a
            renderer without gradients.

    Tensors have the dtype of the process's precision (`rm.start(precision="f64")` for f64, as `gradcheck` wants it) and
    lie on the device it runs on; nothing is converted. Density and features are copied to the device once a call and
    once more for its gradient, for a ray is replayed: a call keeps no more than its tensors and its image, so any
    number of them may come before a `backward`. Strided ones are copied into rows before. Gradients repeat to the bit
    on the CPU.

    Make one for all calls: kernels are compiled by the first, in seconds. Calls and `backward` belong to the thread and
    process that started raymarch. On CUDA a call that wants gradients therefore turns torch's backward threads off.

    Raises RaymarchError where torch is missing, memory does not suffice, on use after `close`, as `Renderer` does, and
    for tensors of another dtype, device or shape, or with numbers that are not finite.

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
        >>> both = [rm.TorchVolume.of(fog, requires_grad=True) for _ in range(2)]  # doctest: +SKIP
        >>> with rm.TorchRender([fog, fog]) as render:  # doctest: +SKIP
        ...     render(both, cameras).image.square().mean().backward()
        >>> bool((both[0].density.grad == both[1].density.grad).all())  # doctest: +SKIP
        True
    """

    @checked(volume=VOLUMES, march=optional(MARCHES_OF_SINGLE_RAYS), slots=whole(0, 64))
    def __init__(self, volume: AnyVolumes, march: Marches = None, *, slots: int = 4):
        import_torch()
        require_tensors()
        self.alone, self.like, volumes = isinstance(volume, Volume), volume, several(volume)
        self.marches = single_marches_for(volume, march)
        with ExitStack() as owners:
            self._session = owners.enter_context(MarchSession(volumes, self.marches, slots))
            self._owners = owners.pop_all()

    @property
    def _volumes(self) -> list[Volume]:
        """What the tensors of each volume are like."""
        return self._session.volumes

    @checked(depth=flag)
    def __call__(
        self,
        density: Samples,
        features: Tensor | Any | None = None,
        cameras: Cameras | None = None,
        *,
        background: Tensor | Colour | None = None,
        depth: bool = False,
        iso: Tensor | None = None,
        table: Tables = None,
    ) -> TorchRendering:
        """Rendering (N, height, width) of what N cameras see; `render(tensors, cameras)` of a `TorchVolume` or a list.

        Args:
            density: (x, y, z) raw density; or a `TorchVolume`, whose features and background count too; or of several
                volumes a list of a `TorchVolume` or a pair (density, features) for each. The last two are followed by
                the cameras.
            features: (x, y, z, channel) raw colour; None where the mode sees no colours.
            cameras: `TorchCameras`; or rm.Cameras, which have no gradients.
            background: a tensor that goes with (N, height, width, 3) by broadcasting, (3,) say, or a colour; that of
                the (first) volume if not given.
            depth: whether depth is wanted.
            iso: () value of the surface of mode "isosurface", instead of the march's.
            table: (knot, 4) red, green, blue and opacity of the transfer function's knots, in 0..1, instead of its own;
                of several volumes a list of one, or None, for each.
        """
        pairs, (cameras,), background = self._parted(density, features, (cameras,), background)
        several_cameras = cameras if isinstance(cameras, TorchCameras) else TorchCameras.of(cameras)
        request = Request(several_cameras.width * several_cameras.height, depth)
        return self._render(pairs, *several_cameras.rays(), background, request, iso, table)

    @checked(depth=flag)
    def trace(
        self,
        density: Samples,
        features: Tensor | Any | None = None,
        origin: Tensor | None = None,
        direction: Tensor | None = None,
        *,
        background: Tensor | Colour | None = None,
        depth: bool = False,
        iso: Tensor | None = None,
        table: Tables = None,
    ) -> TorchRendering:
        """Rendering (..) along rays: origin and direction (.., 3) go together by broadcasting; directions of any
        length, which are made unit vectors. Of a `TorchVolume` or a list it is `trace(tensors, origin, direction)`."""
        torch = import_torch()
        pairs, (origin, direction), background = self._parted(density, features, (origin, direction), background)
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
        request = Request(max(direction[..., 0].numel(), 1), depth)
        return self._render(pairs, origin, direction, background, request, iso, table)

    def _render(
        self,
        pairs: Sequence[tuple[Tensor, Tensor | None]],
        origin: Tensor,
        direction: Tensor,
        background: Tensor | Colour | None,
        request: Request,
        iso: Tensor | None,
        table: Tables,
    ) -> TorchRendering:
        torch = import_torch()
        self._session.require_open()
        tables = self._tables(table)
        volumes = tuple(self._of_volume(i, *pair, tables[i]) for i, pair in enumerate(pairs))
        if len(volumes) > 1 and (origin.requires_grad or direction.requires_grad):
            raise RaymarchError(NO_RAY_GRADIENT)
        if not (direction.isfinite().all() and origin.isfinite().all()):
            raise RaymarchError("some rays are not finite; a pose, focal, principal or direction has a NaN or is 0")
        self._require_iso(iso)
        flat = Inputs(origin.reshape(-1, 3), direction.reshape(-1, 3), iso, volumes).flat
        wants = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in flat)
        if wants and not self._session.has_gradients:
            raise RaymarchError("this torch render was made with slots=0 and has no gradients; make one with slots=4")
        keep_threads_out(*flat)
        light, distance, _ = render_function().apply(self._session, request, *flat)
        light = light.view(*direction.shape[:-1], light.shape[-1])
        image, left = light[..., :-1], light[..., -1]
        if self.marches[0].rule.background:
            image = image + left[..., None] * _background_for(background, self._volumes[0], image)
        return TorchRendering(image, 1 - left, distance.view(direction.shape[:-1]) if request.depth else None)

    def _parted(
        self, samples: Any, features: Any, rest: tuple[Any, ...], background: Tensor | Colour | None
    ) -> tuple[list[tuple[Any, Any]], tuple[Any, ...], Tensor | Colour | None]:
        """Density and features of each volume, what follows them, and the background, of a call's arguments.

        Raises RaymarchError for a call that has too few, or features beside what has its own.
        """
        own = isinstance(samples, TorchVolume)
        if own or isinstance(samples, (list, tuple)):
            if rest[-1] is None:
                rest = (features, *rest[:-1])
            elif features is not None and not (own and features is samples.features):
                what = "a TorchVolume" if own else "a list"
                raise RaymarchError(f"features are given beside {what}, which has its own; leave them out")
        if rest[-1] is None:
            last = "cameras" if len(rest) == 1 else "origin and direction"
            call = f"render(density, features, {last}), or with an rm.TorchVolume"
            raise RaymarchError(f"{last} are missing; call {call if self.alone else f'render(samples, {last})'}")
        if not self.alone:
            return self._pairs(samples), rest, background
        if own:
            return [(samples.density, samples.features)], rest, samples.background if background is None else background
        return [(samples, features)], rest, background

    def _pairs(self, samples: Any) -> list[tuple[Any, Any]]:
        """Density and features of each of several volumes."""
        found = []
        for i, one in enumerate(self._one_for_each("samples", samples)):
            pair = (one.density, one.features) if isinstance(one, TorchVolume) else one
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise RaymarchError(
                    f"samples[{i}] is {describe_value(one)}, want an rm.TorchVolume or (density, features)"
                )
            found.append((pair[0], pair[1]))
        return found

    def _tables(self, table: Any) -> Sequence[Any]:
        """Table of each volume, None where its march's counts."""
        if self.alone:
            return [table]
        return [None] * len(self._volumes) if table is None else self._one_for_each("table", table)

    def _one_for_each(self, name: str, given: Any) -> Sequence[Any]:
        """A list of as many as there are volumes; else RaymarchError."""
        if not isinstance(given, (list, tuple)) or len(given) != len(self._volumes):
            verb = "are" if name.endswith("s") else "is"
            wanted = f"want a list of {len(self._volumes)}, one for each volume"
            raise RaymarchError(f"{name} {verb} {describe_value(given)}, {wanted}")
        return given

    def _of_volume(self, i: int, density: Tensor, features: Tensor | None, table: Tensor | None) -> VolumeTensors:
        """Tensors of a volume, in its shapes; else RaymarchError."""
        like, march = self._volumes[i], self.marches[i]
        of, at = ("", "table") if self.alone else (f"samples[{i}].", f"table[{i}]")
        require_shape(f"{of}density", density, like.shape)
        if features is not None:
            require_shape(f"{of}features", features, (*like.shape, like.feature_count))
        elif "colour" in groups_of([march.rule]):
            raise RaymarchError(f"{of}features are None but mode {march.rule.name} sees colours; pass them")
        if table is not None:
            if march.transfer is None:
                raise RaymarchError(f"mode {march.rule.name} reads no {at}; leave it out")
            require_shape(at, table, march.transfer.rgba.shape)
            require_finite(at, table)
        return VolumeTensors(density, features, table)

    def _require_iso(self, iso: Tensor | None) -> None:
        """RaymarchError for the value of a surface in a mode that shows none, or of another shape."""
        if iso is None:
            return
        if "iso" not in self.marches[0].rule.parameters:
            raise RaymarchError(f"mode {self.marches[0].rule.name} reads no iso; leave it out")
        require_shape("iso", iso, ())
        require_finite("iso", iso)


def _background_for(background: Tensor | Colour | None, like: Volume, image: Tensor) -> Tensor:
    """Background as a tensor that goes with an image (.., channel): the one given, else a volume's own."""
    torch = import_torch()
    if not isinstance(background, torch.Tensor):
        own = like.background if background is None else background_of_channels(like.channels, background)
        return tensor_of(np.array(own))
    require_tensor("background", background)
    try:
        return background.expand(image.shape)
    except RuntimeError:
        got, want = tuple(background.shape), tuple(image.shape)
        raise RaymarchError(f"background has shape {got}, want ({like.colours},) or what goes with {want}") from None
