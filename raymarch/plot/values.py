"""Values of a volume for plots: what they are called, and slabs of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

SLAB = 1 << 21  # values at a time
FEW = 1 << 22  # values that tell how all are spread


def _plain(text: str) -> str:
    """Text of a file for Matplotlib, to which what lies between two dollars is a formula."""
    return text.replace("$", r"\$")


def values_label(volume: AnyVolume) -> str:
    """Name and unit of a volume's values, for an axis."""
    if isinstance(volume, ScalarVolume):
        return f"value [{_plain(volume.unit)}]" if volume.unit else "value"
    unit = "world unit" if volume.ndc_from_world is None else "NDC"
    return f"sigma [1/{unit}]"


def length_unit(volume: AnyVolume) -> str:
    """Unit of the world that a volume lies in, for an axis."""
    if isinstance(volume, ScalarVolume):
        return _plain(volume.length_unit) or "world unit"
    return "world unit" if volume.ndc_from_world is None else "NDC"


def world_of(volume: AnyVolume) -> str:
    """World that a volume lies in, as RAS or LPS; "" for one that says none."""
    return volume.world if isinstance(volume, ScalarVolume) else ""


def innermost(volume: AnyVolume) -> Volume:
    """Volume whose values are plotted: of nested boxes the innermost; in NDC as if that were the world."""
    return replace(VOLUME("volume", volume).nested(0), ndc_from_world=None)


def some_values(volume: Volume) -> np.ndarray:
    """Values (n,) of evenly spread samples, at most some millions."""
    stride = max(int(np.ceil((np.prod(volume.shape) / FEW) ** (1 / 3))), 1)
    return volume.activation.sigma(volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0]).ravel()


def slabs(volume: Volume, overlap: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """Slabs (few, y, z) of a volume's values along x with the index of their first, `overlap` samples shared."""
    x, y, z = volume.shape
    count = max(SLAB // (y * z), 1 + overlap)
    for first in range(0, x - overlap, count - overlap):
        index = np.ix_(np.arange(first, min(first + count, x)), np.arange(y), np.arange(z))
        yield first, volume.activation.sigma(volume.at(index)[0])


def upright(volume: Volume) -> bool:
    """Whether a volume's axes are the world's, in their direction."""
    linear = volume.world_from_index[:3, :3]
    return bool((np.diag(linear) > 0).all() and np.allclose(linear, np.diag(np.diag(linear)), atol=1e-9 * volume.voxel))
