"""Volume as PyTorch tensors, and back: raw density, features and background, with the volume that says the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import flag
from raymarch.arguments.declared import checked, named
from raymarch.torch.tensors import import_torch, require_finite, require_shape, tensor_of
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

if TYPE_CHECKING:
    from torch import Tensor


@named
@dataclass(frozen=True, eq=False)
class TorchVolume:
    """Volume as PyTorch tensors: what an optimiser moves, beside the volume that says where it lies and how it is read.

    `TorchVolume.of(volume)` makes one, `volume()` makes a `Volume` of it again. Both copy each number once: a volume is
    not to be written to, so no memory is shared with one. Numbers are in the precision and on the device that run
    (`rm.start`); a sparse volume becomes dense.

    Attributes:
        density: (x, y, z) raw density. features: (x, y, z, channel) raw colour. background: (3,).
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
        require_shape("features", self.features, (*self.like.shape, self.like.channels))
        require_shape("background", self.background, (3,))

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
        behind = tuple(np.clip(background, 0.0, 1.0).tolist())
        return replace(self.like, samples=Dense(density, features), background=behind, provenance={})
