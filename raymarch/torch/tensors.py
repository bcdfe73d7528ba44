"""PyTorch tensors as a march takes them, of one precision and on one device; and those of a volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch import engine, runtime
from raymarch.arguments.checks import flag
from raymarch.arguments.declared import checked, suggest_names
from raymarch.errors import RaymarchError
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

INSTALL = 'pip install "raymarch[torch]"'


def import_torch() -> ModuleType:
    """PyTorch; a RaymarchError where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise RaymarchError(f"PyTorch is not installed ({error}); {INSTALL}") from error
    return torch


def require_tensors() -> None:
    """RaymarchError where the user's own variable keeps the engine from taking tensors."""
    if not engine.ti.lang.util.has_pytorch():
        raise RaymarchError(
            f"{engine.VARIABLE_PREFIX}ENABLE_TORCH=0 keeps {engine.TITLE} from taking tensors; unset it"
        )


def require_tensor(name: str, value: Any) -> None:
    """Tensor check: RaymarchError unless a plain tensor of the process's precision on its device."""
    torch, precision = import_torch(), "f32" if runtime.single_precision() else "f64"
    wanted, other = (torch.float32, "f64") if precision == "f32" else (torch.float64, "f32")
    mend = f"{name}.float()" if precision == "f32" else f"{name}.double()"
    device = _device_type()
    if not isinstance(value, torch.Tensor):
        raise RaymarchError(f"{name} is a {type(value).__name__}, want a tensor; pass torch.as_tensor({name})")
    if value.layout != torch.strided or value.is_neg():
        raise RaymarchError(f"{name} is no plain strided tensor; pass {name}.to_dense().resolve_neg()")
    if value.dtype != wanted:
        start = f'rm.start(precision="{other}")' if value.dtype in (torch.float32, torch.float64) else ""
        cure = f"pass {mend}" + (f", or call {start} first in a new process" if start else "")
        raise RaymarchError(f"{name} is {value.dtype} but this process runs {precision}; {cure}")
    if value.device.type != device or value.device.index not in (None, 0):
        to = f"{name}.cpu()" if device == "cpu" else f'{name}.to("cuda:0")'
        start = f", or call rm.start({value.device.type!r}) first in a new process"
        cure = f"pass {to}" + (start if value.device.type in ("cpu", "cuda") and value.device.type != device else "")
        raise RaymarchError(f"{name} is on {value.device} but this process runs on {device}; {cure}")


def _device_type() -> str:
    """Device of tensors: that of the kernels, where PyTorch and Taichi share it, else the CPU."""
    running = runtime.started()
    return "cuda" if running is not None and running.arch == "cuda" else "cpu"


def require_shape(name: str, value: Any, shape: Sequence[int]) -> None:
    """Tensor check: RaymarchError unless `require_tensor` takes it and it has this shape."""
    require_tensor(name, value)
    if tuple(value.shape) != tuple(shape):
        raise RaymarchError(f"{name} has shape {tuple(value.shape)}, want {tuple(shape)}; see {name}.expand, .reshape")


def require_finite(name: str, value: Tensor) -> None:
    """Finiteness check: RaymarchError where a number of a tensor is not finite."""
    if not bool(value.detach().isfinite().all()):
        raise RaymarchError(f"{name} has a number that is not finite; find it with {name}.isfinite()")


def tensor_of(array: np.ndarray) -> Tensor:
    """Tensor of the process's precision on its device, a copy of an array."""
    torch = import_torch()
    dtype = torch.float32 if runtime.single_precision() else torch.float64
    return torch.tensor(np.asarray(array), dtype=dtype, device="cuda:0" if _device_type() == "cuda" else "cpu")


def vmap_one_by_one(function: Any, info: Any, in_dims: Sequence, inputs: Sequence) -> tuple[tuple, tuple]:
    """`torch.func.vmap` of an autograd function that takes no batches: call after call, their results stacked."""
    torch = import_torch()

    def at(n: int) -> list:
        return [x if dim is None else x.select(dim, n) for x, dim in zip(inputs, in_dims, strict=True)]

    if all(dim is None for dim in in_dims):
        found = function.apply(*inputs)
        return found, (None,) * len(found)
    several = list(zip(*(function.apply(*at(n)) for n in range(info.batch_size)), strict=True))
    stacked = tuple(None if each[0] is None else torch.stack(each) for each in several)
    return stacked, tuple(None if each is None else 0 for each in stacked)


def wait_for(tensor: Tensor) -> None:
    """Synchronisation with torch's CUDA stream: Taichi has a queue of its own."""
    if tensor.is_cuda:
        import_torch().cuda.current_stream(tensor.device).synchronize()


@suggest_names
@dataclass(frozen=True, eq=False)
class TorchVolume:
    """Volume as PyTorch tensors: what an optimiser moves, beside the volume that says where it lies and how it is read.

    `TorchVolume.of(volume)` makes one, `volume()` makes a `Volume` of it again. Both copy each number once: a volume is
    not to be written to, so no memory is shared with one. Numbers are in the precision and on the device that run
    (`rm.start`); a sparse volume becomes dense.

    Attributes:
        density: (x, y, z) raw density. features: (x, y, z, feature) raw colour. background: (3,), or a
            number a channel.
        like: the volume whose placement and activations count.

    Raises RaymarchError where torch is missing, for tensors of another dtype, device or shape, and in `volume()` for
    numbers that no volume may hold.

    Example:
        >>> from raymarch.volumes.volume import Volume  # doctest: +SKIP
        >>> fog = Volume.from_function(lambda p: 1.0 + p[..., 0], shape=(4, 5, 6))  # doctest: +SKIP
        >>> tensors = TorchVolume.of(fog, requires_grad=True)  # doctest: +SKIP
        >>> tensors.density.shape, tensors.features.requires_grad  # doctest: +SKIP
        (torch.Size([4, 5, 6]), True)
        >>> tensors.volume()  # doctest: +SKIP
        Volume(4 x 5 x 6 samples, SH degree 0, box -1 -1 -1 to 1 1 1)
    """

    density: Tensor
    features: Tensor
    background: Tensor
    like: Volume

    def __post_init__(self) -> None:
        import_torch()
        object.__setattr__(self, "like", VOLUME("like", self.like))
        require_shape("density", self.density, self.like.shape)
        require_shape("features", self.features, (*self.like.shape, self.like.feature_count))
        require_shape("background", self.background, (self.like.colours,))

    @classmethod
    @checked(volume=VOLUME, requires_grad=flag)
    def of(cls, volume: AnyVolume, requires_grad: bool = False) -> TorchVolume:
        """Tensors of a volume's numbers; with `requires_grad` density and features are leaves that want a gradient."""
        import_torch()
        runtime.start()
        volume = volume.dense()
        arrays = (volume.density, volume.features, np.array(volume.background))
        density, features, background = (tensor_of(each) for each in arrays)
        if requires_grad:
            density.requires_grad_(), features.requires_grad_()
        return cls(density, features, background, volume)

    def as_volume(self) -> Volume:
        """`volume()`, by the name under which `rm.render`, `rm.save`, `rm.plot` and all else that takes volumes ask."""
        return self.volume()

    def volume(self) -> Volume:
        """Volume of the numbers as they are now, copied once, without what is known of the making of `like`."""
        for name in ("density", "features", "background"):
            require_finite(name, getattr(self, name))
        density, features, background = (
            np.array(each.detach().cpu().numpy()) for each in (self.density, self.features, self.background)
        )
        behind = tuple((np.clip(background, 0.0, 1.0) if self.like.is_colour else background).tolist())
        return replace(self.like, samples=Dense(density, features), background=behind, provenance={})
