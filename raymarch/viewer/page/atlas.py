"""Atlas of a volume for a GPU's 3D texture: its bricks of 8^3 cells as bytes, each with its border and its scale.

A brick holds the 9^3 samples that its 8^3 cells read, so that a texture filtered trilinearly interpolates as we do: no
cell reaches into another brick. A number is `low + span * byte / 255`, with low and span of the brick and the channel.
Bricks of one value alone have no bytes. What shows nothing is left out. Numbers that no cell reads where something is
seen are free, and colours of what is nearly clear are coarse: they become what packs best.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.geometry.boxes import corners_of
from raymarch.volumes.samples import CHANNELS
from raymarch.volumes.storage import Sparse
from raymarch.volumes.volume import Volume

CELLS = 8  # cells along an edge of a brick
SIDE = CELLS + 1  # samples, the border included
MAX_DEGREE = 1  # of harmonics; higher ones are cut
LEVELS = 255  # steps of a byte
# How many steps of a byte one of density, of colour and of the harmonics above the first is; 255 is a multiple of each.
Steps = tuple[int, int, int]
FINE: Steps = (1, 1, 1)
# What a ray may lose of the light by all that is left out, over the whole box: less than a level of a display shows.
MAX_LOSS = 1e-3
# Greatest opacity over a voxel of a sample and those beside it, under which its colour is free, or coarse.
FAINT, DIM = 1 / 1024, 1 / 32
COARSE = 51  # steps of a byte that a coarse colour is rounded to
LIMIT = np.float32(3e38)
SLAB_NUMBERS = 1 << 20  # of a part of a slab, which is worked on at a time
GROUP_NUMBERS = 1 << 19  # of bricks that are quantised at a time


@dataclass(frozen=True, eq=False)
class Atlas:
    """Atlas of bricks.

    Attributes:
        table: (boxes, bricks along z, y, x) uint32: 0 where no brick is, else the number of its range, and one.
        ranges: (entry, channel, 2) float32, low and span of each channel; entries from `count` on have no bytes.
        planes: (channel, brick, z, y, x) uint8 of 9^3 samples; raw density first, then features.
        degree: of the harmonics; None where the volume has no colours.
    """

    table: np.ndarray
    ranges: np.ndarray
    planes: np.ndarray
    degree: int | None

    @property
    def count(self) -> int:
        """Count of bricks that have bytes."""
        return self.planes.shape[1]


def channels_of(volume: Volume) -> int:
    """Count of channels of an atlas: raw density, and the features up to degree 1 where the volume has colours."""
    if not volume.samples.coloured():
        return 1
    return 1 + CHANNELS[min(volume.degree, MAX_DEGREE)]


def bricks_along(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Count of bricks along x, y and z for so many samples of one box.

    Example:
        >>> bricks_along((9, 10, 2))
        (1, 2, 1)
    """
    x, y, z = (max(-(-(n - 1) // CELLS), 1) for n in shape)
    return x, y, z


def least_raw(volume: Volume) -> float:
    """Raw density at or under which samples show nothing; -inf of values of any sign, of which all may be shown."""
    if volume.activation.density_rule.signed:
        return -math.inf
    across = float(np.linalg.norm(np.ptp(corners_of(volume.world_from_index, volume.box_shape), axis=0)))
    return float(volume.activation.raw(MAX_LOSS / (across * (2 * volume.boxes - 1))))


def seen_bricks(volume: Volume) -> int:
    """Count of bricks of a volume that show something, about."""
    least = least_raw(volume)
    if isinstance(volume.samples, Sparse):
        density = volume.samples.bricks.density
        return int((density.reshape(len(density), -1).max(1) > least).sum()) if len(density) else 0
    most = volume.density
    for axis in (2, 1, 0):
        most = np.maximum.reduceat(most, np.arange(0, most.shape[axis], CELLS), axis)
    return int((most > least).sum())


def pack_atlas(volume: Volume, steps: Steps = FINE) -> Atlas:
    """Atlas of a volume, dense or in bricks, of one box or nested ones, its numbers in `steps` of a byte.

    Example:
        >>> fog = Volume.from_function(lambda p: 9.0 * (p[..., 0] < -0.5), shape=(33, 9, 9))
        >>> atlas = pack_atlas(fog)
        >>> atlas.count, atlas.table[0, 0, 0].tolist(), atlas.planes.shape
        (1, [1, 0, 0, 0], (4, 1, 9, 9, 9))
    """
    return finish(packing(volume, steps))


def finish(work: Generator[float, None, Any]) -> Any:
    """What work in slices returns, done at once."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def packing(volume: Volume, steps: Steps = FINE) -> Generator[float, None, Atlas]:
    """`pack_atlas` in slices of some milliseconds; yields the share that is done."""
    channels, least = channels_of(volume), least_raw(volume)
    bx, by, bz = bricks_along(volume.box_shape)
    table = np.zeros((volume.boxes, bz, by, bx), np.uint32)
    ranges: list[np.ndarray] = []
    planes: list[np.ndarray] = []
    flat: list[tuple[tuple[int, ...], np.ndarray]] = []  # bricks of one value: where they are, and their ranges
    count, group = 0, max(GROUP_NUMBERS // (channels * SIDE**3), 1)
    for (box, a, rows), values in _slabs(volume, channels):
        kept = np.argwhere(values[0].max((2, 3, 4)) > least) if math.isfinite(least) else _every(values.shape[1:3])
        kept = np.array([one for one in kept if not _is_hidden(volume, box, (a, one[0] + rows, one[1]))], int)
        kept = kept.reshape(-1, 2)
        yield (box + (a + rows / by) / bx) / volume.boxes
        for part in np.split(kept, range(group, len(kept), group)):
            if not len(part):
                continue
            low, span, levels = _quantised(volume, values[:, part[:, 0], part[:, 1]], least, steps)
            both = np.stack([low, span], -1).transpose(1, 0, 2)
            uniform = (span == 0).all(0)
            for (b, c), one in zip(part[uniform], both[uniform], strict=True):
                flat.append(((box, c, b + rows, a), one))
            b, c = part[~uniform].T
            table[box, c, b + rows, a] = count + 1 + np.arange(len(b))
            count += len(b)
            ranges.append(both[~uniform])
            planes.append(levels[:, ~uniform].transpose(0, 1, 4, 3, 2))
            yield (box + (a + rows / by) / bx) / volume.boxes
    for number, (place, one) in enumerate(flat):
        table[place] = count + number + 1
        ranges.append(one[None])
    none = np.zeros((0, channels, 2), np.float32), np.zeros((channels, 0, SIDE, SIDE, SIDE), np.uint8)
    degree = None if channels == 1 else round(((channels - 1) / 3) ** 0.5) - 1
    return Atlas(table, np.concatenate([none[0], *ranges]), np.concatenate([none[1], *planes], axis=1), degree)


def _quantised(
    volume: Volume, bricks: np.ndarray, least: float, steps: Steps
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low, span and bytes of bricks (channel, brick, x, y, z), those that are not seen as what packs best."""
    low, span, levels = quantise(bricks[:1], needed_samples(bricks[0], least), steps[:1])
    if len(bricks) == 1:
        return low, span, levels
    opacity = opacity_beside(volume, bricks[0])
    colours = quantise(bricks[1:], opacity >= FAINT, steps[1:])
    levels_of_dim = np.rint(colours[2] / COARSE).astype(np.uint8) * np.uint8(COARSE)
    seen = _repeat_before(np.where(opacity < DIM, levels_of_dim, colours[2]), opacity >= FAINT)
    low, span, levels = (np.concatenate(pair) for pair in zip((low, span, levels), (*colours[:2], seen), strict=True))
    return low, span, levels


def needed_samples(density: np.ndarray, least: float) -> np.ndarray:
    """Samples (brick, 9, 9, 9) bool of bricks of raw density that cells read which show something, and those beside
    them, which normals read."""
    if not math.isfinite(least):
        return np.ones(density.shape, bool)
    return _grown(_grown(density > least))


def opacity_beside(volume: Volume, density: np.ndarray) -> np.ndarray:
    """Greatest opacity (brick, 9, 9, 9) over a voxel of each sample of bricks of raw density and the 26 about it."""
    sigma = volume.activation.sigma(density.astype(np.float32))
    opacity: np.ndarray = _grown(-np.expm1(-np.abs(sigma) * volume.voxel))
    return opacity


def quantise(
    bricks: np.ndarray, needed: np.ndarray, steps: Sequence[int] = (1,)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low and span (channel, brick) float32, and bytes of bricks (channel, brick, x, y, z), 0 where a sample is not
    needed.

    Of colours `steps` has two numbers; harmonics above the first share one range, so that few numbers of a brick are
    read.

    Example:
        >>> brick = np.linspace(2, 4, 8).reshape(1, 1, 2, 2, 2)
        >>> low, span, levels = quantise(brick, np.ones((1, 2, 2, 2), bool), (85,))
        >>> low.tolist(), span.tolist(), levels.ravel().tolist()
        ([[2.0]], [[2.0]], [0, 0, 85, 85, 170, 170, 255, 255])
    """
    values = bricks.astype(np.float32)
    axes = (2, 3, 4)
    low = np.where(needed, values, LIMIT).min(axes)
    high = np.where(needed, values, -LIMIT).max(axes)
    low, high = np.where(low > high, np.float32(0), low), np.where(low > high, np.float32(0), high)
    if len(values) > 3:
        low[3:], high[3:] = low[3:].min(0), high[3:].max(0)
    span = high - low
    share = (values - low[..., None, None, None]) / np.where(span > 0, span, 1)[..., None, None, None]
    step = np.repeat(steps, (3, 9)[: len(steps)] if len(steps) > 1 else 1)[: len(values), None, None, None, None]
    levels = (np.rint(np.clip(share, 0, 1) * (LEVELS / step)) * step).astype(np.uint8)
    return low, span, np.where(needed, levels, np.uint8(0))


def differences(planes: np.ndarray) -> np.ndarray:
    """Bytes as what each is more than the one before it in its brick, modulo 256, which packs better.

    Example:
        >>> differences(np.full((1, 1, 1, 1, 3), 7, np.uint8)).ravel().tolist()
        [7, 0, 0]
    """
    flat = planes.reshape(*planes.shape[:2], math.prod(planes.shape[2:]))
    return np.diff(flat, axis=-1, prepend=np.uint8(0))


def _slabs(volume: Volume, channels: int) -> Iterator[tuple[tuple[int, int, int], np.ndarray]]:
    """Box, place along x and first place along y of each part of a slab of bricks, and the numbers (channel, brick y,
    brick z, 9, 9, 9) of its bricks."""
    empty, count = volume.activation.empty, volume.box_shape[0]
    ends = [np.minimum(np.arange(n * CELLS + 1), m - 1) for n, m in _axes(volume)]
    along = len(ends[1]) // CELLS
    many = max(SLAB_NUMBERS // (channels * SIDE * len(ends[2]) * CELLS), 1)
    for box in range(volume.boxes):
        for a in range(len(ends[0]) // CELLS):
            i = ends[0][a * CELLS : a * CELLS + SIDE] + box * count
            for rows in range(0, along, many):
                j = ends[1][rows * CELLS : min(rows + many, along) * CELLS + 1]
                density, features = volume.samples.at(np.ix_(i, j, ends[2]), empty)
                slab = np.concatenate([density[None], np.moveaxis(features[..., : channels - 1], -1, 0)])
                windows = np.lib.stride_tricks.sliding_window_view(slab, (SIDE, SIDE), (2, 3))
                yield (box, a, rows), windows[:, :, ::CELLS, ::CELLS].transpose(0, 2, 3, 1, 4, 5)


def _axes(volume: Volume) -> list[tuple[int, int]]:
    """Bricks and samples along each axis of one box."""
    return list(zip(bricks_along(volume.box_shape), volume.box_shape, strict=True))


def _every(counts: Sequence[int]) -> np.ndarray:
    return np.argwhere(np.ones(counts, bool))


def _is_hidden(volume: Volume, box: int, brick: tuple[int, ...]) -> bool:
    """Whether a brick lies within the box inside its own, where rays never read it."""
    if box == 0:
        return False
    top = np.array(volume.box_shape) - 1
    first = np.array(brick) * CELLS
    return bool((first > 0.25 * top + 1).all() and (first + CELLS < 0.75 * top - 1).all())


def _grown(samples: np.ndarray) -> np.ndarray:
    """Greatest of each sample (brick, x, y, z) and the 26 about it; of marks whether any is."""
    for axis in (1, 2, 3):
        there = np.moveaxis(samples, axis, 0)
        most = there.copy()
        most[1:] = np.maximum(most[1:], there[:-1])
        most[:-1] = np.maximum(most[:-1], there[1:])
        samples = np.moveaxis(most, 0, axis)
    return samples


def _repeat_before(levels: np.ndarray, needed: np.ndarray) -> np.ndarray:
    """Bytes (channel, brick, x, y, z) with what was needed last before it, along x, then y, then z, in the place of
    what is not needed."""
    order = needed.transpose(0, 3, 2, 1).reshape(len(needed), -1)
    last = np.maximum.accumulate(np.where(order, np.arange(order.shape[1]), -1), axis=1)
    last = np.where(last < 0, order.argmax(1)[:, None], last)
    flat = levels.transpose(0, 1, 4, 3, 2).reshape(*levels.shape[:2], -1)
    found = np.take_along_axis(flat, np.broadcast_to(last, flat.shape), axis=2)
    repeated: np.ndarray = found.reshape(*levels.shape[:2], SIDE, SIDE, SIDE).transpose(0, 1, 4, 3, 2)
    return repeated
