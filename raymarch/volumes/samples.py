"""Rules for the samples of volumes: arrays, their shape and spacing, and the range of single precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import numpy as np

from raymarch.arguments.checks import (
    MAX_COORDINATE,
    MAX_NUMBER,
    Check,
    Wrong,
    channels_cure,
    numeric,
    require_within,
    whole,
)
from raymarch.errors import RaymarchError, short_value


def _raw(value: object) -> np.ndarray:
    values = numeric(value, masks=True)
    require_within(values, -MAX_NUMBER, MAX_NUMBER)
    return values.astype(float)


def _samples(value: object) -> np.ndarray:
    values = numeric(value)
    if values.dtype.kind != "f":
        raise Wrong(f"is {values.dtype}", "convert it first; Volume.from_array takes plain densities")
    require_within(values, -MAX_NUMBER, MAX_NUMBER)
    return values


def _shape(value: Iterable[object]) -> tuple[int, ...]:
    shape = tuple(whole(2, 1 << 16).read(n) for n in value)
    if len(shape) != 3:
        raise ValueError
    return shape


def _mapping(value: object) -> dict:
    if not isinstance(value, Mapping):
        raise TypeError
    return dict(value)


def _spacing(value: object) -> np.ndarray:
    values = numeric(value).astype(float)
    if values.shape not in [(), (3,)] or not (values > 0).all() or not (values < MAX_COORDINATE).all():
        raise ValueError
    return values


def _index(value: Iterable[object]) -> tuple[np.ndarray, ...]:
    arrays = tuple(numeric(one) for one in value)
    if len(arrays) != 3 or any(one.dtype.kind not in "iu" for one in arrays):
        raise ValueError
    np.broadcast_shapes(*(one.shape for one in arrays))
    return arrays


INDEX = Check("three arrays i, j, k of whole numbers, of one shape", _index)
RAW = Check(f"numbers from {-MAX_NUMBER:g} to {MAX_NUMBER:g}", _raw)
SAMPLES = Check(f"float32 or float64, from {-MAX_NUMBER:g} to {MAX_NUMBER:g}", _samples)
SHAPE = Check("three whole numbers from 2 to 65536", _shape)
SPACING = Check(f"one number over 0 or three, under {MAX_COORDINATE:g}", _spacing)
MAPPING = Check("a mapping", _mapping)
BOXES = whole(1, 16)
COLOUR_CHANNELS = ("red", "green", "blue")
MAX_CHANNELS = 64
ALPHA = "alpha"  # name of no channel of a volume: of images it says what is there


def _channel_names(value: object) -> tuple[str, ...]:
    if isinstance(value, (str, Set, Mapping)) or not isinstance(value, Iterable):
        raise TypeError  # a set has no order
    names = tuple(value)
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > 80 or not name.isprintable() or "," in name:
            raise Wrong(f"has the name {short_value(name)}")
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise Wrong(f"has {doubled[0]} twice")
    if not 1 <= len(names) <= MAX_CHANNELS:
        raise Wrong(f"has {len(names)} names")
    return names


CHANNEL_NAMES = Check(
    f"a tuple of 1 to {MAX_CHANNELS} names, none twice or with a comma", _channel_names, "one is ('thermal',)"
)
MAX_DEGREE = 3
CHANNELS = [3 * (d + 1) ** 2 for d in range(MAX_DEGREE + 1)]  # of features, by degree


def spread_to(shape: Sequence[int], low: float = -MAX_NUMBER, high: float = MAX_NUMBER) -> Check:
    """Rule for numbers that broadcast to `shape`, as float32 of that shape."""

    def read(value: object) -> np.ndarray:
        values = numeric(value, masks=True)
        require_within(values, low, high)
        try:
            return np.broadcast_to(values.astype(np.float32), shape)
        except ValueError:
            raise Wrong(f"has shape {values.shape}") from None

    return Check(f"{tuple(shape)} numbers from {low:g} to {high:g}", read)


def require_boxes(shape: Sequence[int], boxes: object) -> int:
    """Count of nested boxes: RaymarchError unless the samples along x are as many in each."""
    count: int = BOXES("boxes", boxes)
    if shape[0] % count or shape[0] < 2 * count:
        raise RaymarchError(f"density has {shape[0]} samples along x, want as many in each of {count} boxes")
    return count


def require_inside(index: Sequence[np.ndarray], shape: Sequence[int]) -> None:
    """Bounds check: RaymarchError unless the indices along x, y and z are of samples that there are."""
    for axis, one, n in zip("xyz", index, shape, strict=True):
        for end in (one.min(), one.max()) if one.size else ():
            if not 0 <= end < n:
                raise RaymarchError(f"index is {end} along {axis}, want 0 to {n - 1}")


def samples_text(shape: Sequence[int], boxes: int = 1, times: str = " x ") -> str:
    """Count of samples in words; those of nested boxes lie one behind the other in x, but look like none so long.

    Example:
        >>> samples_text((864, 144, 144), 6), samples_text((864, 144, 144))
        ('6 boxes of 144 x 144 x 144', '864 x 144 x 144')
    """
    size = times.join(str(n) for n in (shape[0] // boxes, *shape[1:]))
    return f"{boxes} boxes of {size}" if boxes > 1 else size


def require_channels(density: np.ndarray, features: np.ndarray) -> None:
    """Shape check: RaymarchError unless features are as many as densities; `require_features` counts them."""
    if features.shape[:3] != density.shape or features.ndim != 4 or not features.shape[3]:
        cure = channels_cure(features.shape, density.shape, CHANNELS)
        raise RaymarchError(
            f"features have shape {features.shape}, want {density.shape} and one of {CHANNELS} channels"
            + (f"; {cure}" if cure else "")
        )


def require_features(count: int, channels: Sequence[str], shape: Sequence[int]) -> None:
    """Count check: RaymarchError unless so many features a sample are harmonics up to degree 3 of the channels."""
    wanted = [n // 3 * len(channels) for n in CHANNELS]
    if count in wanted:
        return
    if tuple(channels) == COLOUR_CHANNELS:
        cure = channels_cure((*shape, count), tuple(shape), CHANNELS)
        cure = cure or "name what other numbers are, as in rm.Volume(.., channels=('a', 'b', ..))"
        have = f"features have shape {(*shape, count)}, want {tuple(shape)} and one of {CHANNELS} channels"
        raise RaymarchError(f"{have}; {cure}")
    names = ", ".join(channels)
    raise RaymarchError(
        f"features have {count} numbers a sample, want one of {wanted} for the {len(channels)} channels {names}; name"
        " as many as there are"
    )


def one_channel_cure(shape: tuple[int, ...]) -> str:
    """What to do with an array of four axes, one of which may be channels, or of two; or ""."""
    if len(shape) == 2:
        return "a slice is no volume: np.stack several along a third axis"
    if len(shape) == 5 and shape[:2] == (1, 1):
        return "pass it[0, 0]"
    if len(shape) != 4:
        return ""
    if min(shape[1:]) > 1 and shape[0] <= 4:
        return "channels, first here, are no axis of it: pass it[0]"
    if min(shape[:3]) > 1 and shape[3] <= 4:
        colours = ", and colours beside densities: it[..., 3] and it[..., :3]" if shape[3] == 4 else ""
        return f"channels, last here, are no axis of it: pass it[..., 0]{colours}"
    return ""


def require_three_axes(density: np.ndarray) -> None:
    """Shape check: RaymarchError unless these are samples along x, y and z."""
    if density.ndim != 3 or min(density.shape) < 2:
        cure = one_channel_cure(density.shape)
        raise RaymarchError(
            f"density has shape {density.shape}, want (x, y, z) with at least 2 samples an axis{cure and f'; {cure}'}"
        )


def require_thin(
    ends: Iterable[tuple[float, tuple[int, ...]]], shape: Sequence[int], affine: np.ndarray, sigma: Callable
) -> None:
    """Range check: RaymarchError where the integral of sigma across the box could leave single precision.

    `ends` are the least and the greatest raw density, each with its index.
    """
    across = float(np.linalg.norm(np.abs(affine[:3, :3]) @ (np.array(shape) - 1)))
    for end, where in ends:
        depth = abs(float(sigma(end))) * across
        if depth > MAX_NUMBER:
            raise RaymarchError(
                f"density is {end} at {where}, an optical depth of {depth:g} across the box, want up to {MAX_NUMBER:g};"
                " lower it, or raise the activation's scale"
            )
