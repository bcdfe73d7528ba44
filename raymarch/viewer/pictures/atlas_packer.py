"""Packer of what a page's own ray marcher draws while something moves: the volume in parts, made in slices of time.

A volume is packed once, when a page first asks for it; a running fit again and again, each time in a small share of its
time. What is too large is thinned on the device.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.fitting.table_activation import clear_raws
from raymarch.geometry.clip import Clip
from raymarch.rendering.shading import Shading
from raymarch.viewer.page.atlas import SIDE, Atlas, Steps, bricks_along, channels_of, packing, seen_bricks
from raymarch.viewer.page.record import packed_bytes, shading_record, unknown_activation, volume_record
from raymarch.viewer.page.thinner import fewer_samples
from raymarch.viewer.pictures.picture_source import FitSource, Source, VolumeSource
from raymarch.volumes.volume import Volume

MEGABYTE = 1 << 20
MAX_BYTES = 32 * MEGABYTE  # of bricks, before they are packed
MAX_FIT_BYTES = 8 * MEGABYTE  # of those of a running fit
ENOUGH = 0.95  # of the samples a side, from which on a volume is not thinned
STEPS: Steps = (1, 3, 15)  # of a byte: of density, colour and harmonics
LEVEL = 1  # of compression: it is fast, and takes a tenth more than the best
PART_BYTES = 1 << 17  # of a part, so that a picture does not wait long behind one
FIT_SHARE = 0.05  # of the time that a running fit is packed in
LAST_PULL = 2.0  # seconds since a page took a part, after which it is not waited for
PLANE_NUMBERS = 1 << 18  # that are thinned at a time
PACK_SHARE, THIN_SHARE = 0.6, 0.3  # of the progress that is told
_keys = itertools.count(1)
Progress = Generator[float, None, Any]


@dataclass(frozen=True, eq=False)
class Packed:
    """Packed volume: its version, its record for the ray marcher, and the parts of its bytes."""

    version: int
    record: dict[str, Any]
    parts: tuple[bytes, ...]

    @property
    def nbytes(self) -> int:
        """Size of all parts [byte]."""
        return sum(map(len, self.parts))

    @property
    def header(self) -> dict[str, Any]:
        """Message that announces it."""
        told = {"version": self.version, "parts": len(self.parts), "bytes": self.nbytes}
        return {"type": "atlas", **told, "record": self.record}

    def part(self, index: int) -> tuple[dict[str, Any], bytes]:
        """Message of one part, and its bytes; RaymarchError for one that there is not."""
        if not 0 <= index < len(self.parts):
            raise RaymarchError(f"atlas: part is {index}, want 0 to {len(self.parts) - 1}; load the page again")
        return {"type": "atlas", "version": self.version, "part": index}, self.parts[index]


class AtlasPacker:
    """Packer of one source for any number of pages, in slices of time that `work` takes.

    Attributes:
        key: number by which pages tell one volume from another.
        max_bytes: of bricks, before they are packed; a volume of more is thinned.
        wanted: whether a page asked for it.
        packed: what was packed last, or None.
        why: why pages cannot draw it, in one line; "" where they can.
    """

    def __init__(self, source: Source, max_bytes: int = MAX_BYTES) -> None:
        self.source, self.max_bytes, self.key = source, max_bytes, next(_keys)
        self.wanted, self.packed = False, None
        self.why = _why_not(source)
        self._work: Progress | None = None
        self._begun_at = self._spent = self._told = 0.0
        self._done_at, self._pulled, self._steps = -math.inf, -math.inf, -1
        self._version = 0

    packed: Packed | None

    @property
    def busy(self) -> bool:
        """Whether there is work to do."""
        return self.wanted and not self.why and (self._work is not None or self._is_due())

    def _is_due(self) -> bool:
        """Whether the volume is to be packed: if it never was, or if a fit has changed it and its share has come."""
        if self.packed is None:
            return True
        if not isinstance(self.source, FitSource) or self.source.fitter.steps_done == self._steps:
            return False
        now = time.monotonic()
        return now - self._done_at > self._spent / FIT_SHARE and now - self._pulled > LAST_PULL

    def work(self) -> list[dict[str, Any]]:
        """Do a slice of work; messages for the pages that asked: how far it is, what came of it, or why nothing did."""
        begun = time.monotonic()
        if self._work is None:
            self._work, self._spent = self._packing(), 0.0
        try:
            share = next(self._work)
        except StopIteration as done:
            self._work, self.packed = None, done.value
            told = [done.value.header]
            self._done_at = time.monotonic()
            if done.value.version == 1:  # the first one compiles, and does not count
                self._spent, begun = 0.0, self._done_at
        except Exception as error:  # memory, or a fitter that was closed: the server goes on drawing
            self._work, self.why = None, one_line(error)
            return [{"type": "atlas", "why": self.why}]
        else:
            told = []
            if self.packed is None and begun - self._told > 0.2:
                self._told = begun
                told = [{"type": "atlas", "packed": round(share, 3)}]
        self._spent += time.monotonic() - begun
        return told

    def part(self, version: int, index: int) -> tuple[dict[str, Any], bytes | None]:
        """Part of a version as a message and bytes; what is there now, if that is another version."""
        if self.packed is None or self.packed.version != version:
            return ({"type": "atlas", "packed": 0.0} if self.packed is None else self.packed.header), None
        last = index == len(self.packed.parts) - 1
        self._pulled = -math.inf if last else time.monotonic()
        return self.packed.part(index)

    def follow(self, other: AtlasPacker) -> None:
        """Stand in for another packer of the same volume: pages that have it keep it."""
        self.key, self.packed, self.wanted, self._version = other.key, other.packed, other.wanted, other._version

    def close(self) -> None:
        """Give up what is not finished."""
        self._work = None

    def _packing(self) -> Generator[float, None, Packed]:
        source, of = self.source, self.source.grid.shape
        if isinstance(source, FitSource):
            self._steps = source.fitter.steps_done
            volume: Volume = yield from _scaled(_of_fit(source, min(self.max_bytes, MAX_FIT_BYTES)), 0.0, THIN_SHARE)
        else:
            assert isinstance(source, VolumeSource)
            volume = yield from _scaled(_of_volume(source, self.max_bytes), 0.0, THIN_SHARE)
        atlas: Atlas = yield from _scaled(packing(volume, STEPS), THIN_SHARE, PACK_SHARE)
        packed: bytes = yield from _scaled(packed_bytes(atlas, LEVEL), PACK_SHARE, 1.0)
        self._version += 1
        parts = tuple(packed[i : i + PART_BYTES] for i in range(0, len(packed), PART_BYTES))
        about = {"samples": list(volume.shape), "of": list(map(int, of)), "steps": max(self._steps, 0)}
        return Packed(self._version, {**volume_record(volume, atlas), **_ground(source), **about}, parts)


def _why_not(source: Source) -> str:
    """Why pages cannot draw a source; "" where they can."""
    activation = source.seen.activation if isinstance(source, VolumeSource) else source.grid.activation
    unknown = unknown_activation(activation)
    return "" if unknown is None else f"activation {unknown[0]!r} is your own, and the page's shader does not have it"


def _ground(source: Source) -> dict[str, Any]:
    """What lies behind, what cuts rays whatever a page clips to, and the light, for the ray marcher."""
    if isinstance(source, FitSource):
        clip = source.fitter.march.clip
    else:
        clip = Clip(None, source.planes) if isinstance(source, VolumeSource) and source.planes else None
    return {
        "background": [float(one) for one in source.background],
        "planes": [] if clip is None else clip.half_spaces.tolist(),
        "shading": shading_record(Shading()),
    }


def _scaled(work: Progress, low: float, high: float) -> Progress:
    """The same work, its share of what is done from `low` to `high`."""
    while True:
        try:
            share = next(work)
        except StopIteration as done:
            return done.value
        yield low + (high - low) * share


def share_of_side(bricks: float, channels: int, max_bytes: int) -> float:
    """Share of the cells a side that leaves so many bricks within so many bytes; 1 where all are.

    Example:
        >>> round(share_of_side(8_000, 4, 8_000 * 4 * 729 // 8), 2), share_of_side(10, 4, 1_000_000)
        (0.5, 1.0)
    """
    share = (max_bytes / max(bricks * channels * SIDE**3, 1.0)) ** (1 / 3)
    return 1.0 if share > ENOUGH else float(share)


def _of_volume(source: VolumeSource, max_bytes: int) -> Generator[float, None, Volume]:
    """Volume of a source, thinned where it has too many bricks."""
    seen = source.seen
    share = share_of_side(seen_bricks(seen), channels_of(seen), max_bytes)
    yield 0.0
    if share == 1.0:
        return seen
    return (yield from _thinned(source, seen, share, False))


def _of_fit(source: FitSource, max_bytes: int) -> Generator[float, None, Volume]:
    """Volume of a running fit as it stands, thinned where it has too many bricks; begun again at another level."""
    fitter = source.fitter
    while True:
        grid = fitter.grid
        occupied = fitter.history[-1].occupied if fitter.history else 1.0
        bricks = math.prod(bricks_along((grid.shape[0] // grid.boxes, *grid.shape[1:]))) * grid.boxes
        share = share_of_side(bricks * min(2 * occupied, 1.0), 1 + min(3 * (grid.degree + 1) ** 2, 12), max_bytes)
        frame = Volume(
            np.full((2 * grid.boxes, 2, 2), grid.activation.empty, np.float32),
            np.zeros((2 * grid.boxes, 2, 2, 3 * (grid.degree + 1) ** 2), np.float32),
            grid.world_from_index, grid.activation, boxes=grid.boxes, ndc_from_world=grid.ndc_from_world,
        )  # fmt: skip
        shape = grid.shape
        made = yield from _thinned(source, frame, share, True)
        if fitter.grid.shape == shape:
            return made


def _thinned(source: Source, frame: Volume, share: float, carved: bool) -> Generator[float, None, Volume]:
    """Volume of what the device holds, with a share of the cells a side; `frame` has all else. A fit may go on between
    two slices; at another level what is made is of no use, and the rest of it is left out."""
    grid, boxes = source.grid, source.grid.boxes
    old, level, placed = (grid.shape[0] // boxes, *grid.shape[1:]), grid.shape, grid.world_from_index.copy()
    shape, channels = fewer_samples(old, share), 3 * (max(grid.degree, 0) + 1) ** 2
    empty = None if source.table is None or not carved else clear_raws(source.table, grid.activation)
    sigma = np.zeros((shape[0] * boxes, *shape[1:]), np.float32)
    features = np.zeros((*sigma.shape, channels), np.float32)
    many = max(PLANE_NUMBERS // (shape[1] * shape[2] * (1 + channels)), 1)
    for box in range(boxes):
        for first in range(0, shape[0], many):
            if grid.shape != level:
                return frame
            last = min(first + many, shape[0])
            at = slice(box * shape[0] + first, box * shape[0] + last)
            sigma[at], features[at] = grid.download_thinned(shape, box, (first, last), carved, empty)
            yield (box + last / shape[0]) / boxes
    stretch = np.diag([*((n - 1) / (m - 1) for n, m in zip(old, shape, strict=True)), 1.0])
    raw = frame.activation.raw(sigma).astype(np.float32)
    how: dict[str, Any] = {"boxes": boxes, "ndc_from_world": frame.ndc_from_world}
    return Volume(raw, features, placed @ stretch, frame.activation, **how)
