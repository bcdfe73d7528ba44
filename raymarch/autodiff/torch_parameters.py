"""Numbers of a mode's own that a call may bring as a tensor: how a march takes them, and where their gradient is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.gradients.tangents import RayTangents
from raymarch.rendering.march_settings import March
from raymarch.torch.tensors import require_finite, require_shape
from raymarch.volumes.transfer_function import TransferFunction

if TYPE_CHECKING:
    from torch import Tensor


class RayMemory(Protocol):
    """Rays on the device: their buffer, and their gradients, whose memory is taken when first asked for."""

    buffer: RayBuffer

    @property
    def motion(self) -> RayTangents:
        """Gradients of the buffer's rays."""


@dataclass(frozen=True)
class RunTime:
    """Numbers that a mode reads at run time.

    Attributes:
        name: argument of a call, field of `Inputs` and of `rm.Parameters`.
        shape: of a march to the shape of its numbers; None where its mode reads none.
        put: a march with other numbers.
        rays: whether their gradient comes from the geometry's adjoint; else from that of the samples.
        clear: before a pass, its gradient to zero.
        take: after it, the gradient (of a shape) by so many rays of the buffer.
    """

    name: str
    shape: Callable[[March], tuple[int, ...] | None]
    put: Callable[[March, np.ndarray], March]
    rays: bool
    clear: Callable[[RayMemory], None]
    take: Callable[[RayMemory, int, tuple[int, ...]], np.ndarray]


ISO = RunTime(
    "iso",
    shape=lambda march: () if "iso" in march.rule.parameters else None,
    put=lambda march, value: replace(march, iso=float(value)),
    rays=True,
    clear=lambda rays: None,  # each ray's is written anew
    take=lambda rays, count, shape: np.asarray(rays.motion.surface_gradients(count)[0]),
)
TABLE = RunTime(
    "table",
    shape=lambda march: None if march.transfer is None else march.transfer.rgba.shape,
    put=lambda march, rgba: replace(march, transfer=_with_rgba(march.transfer, rgba)),
    rays=False,
    clear=lambda rays: rays.buffer.clear_table_gradient(),
    take=lambda rays, count, shape: rays.buffer.table_gradient(shape[0]),
)
RUN_TIME = (ISO, TABLE)  # in the order of `Inputs`


def _with_rgba(table: TransferFunction | None, rgba: np.ndarray) -> TransferFunction:
    """Transfer function with the colours and opacities of a tensor; RaymarchError for any out of 0..1."""
    assert table is not None  # by `shape`
    return replace(table, colours=rgba[:, :3], opacities=rgba[:, 3])


def require_own(march: March, given: Mapping[str, Tensor | None]) -> None:
    """RaymarchError for a tensor of numbers that the march's mode does not read, or of another shape."""
    for each in RUN_TIME:
        value, shape = given[each.name], each.shape(march)
        if value is None:
            continue
        if shape is None:
            raise RaymarchError(f"mode {march.rule.name} reads no {each.name}; leave it out")
        require_shape(each.name, value, shape)
        require_finite(each.name, value)
