"""Default look of a volume: what is seen of it, lit how, on which ground and from where, where nothing is said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import Colour
from raymarch.geometry.clip import Clip
from raymarch.rendering.march_settings import March, march_for, table_of
from raymarch.rendering.shading import Shading
from raymarch.volumes.default_table import default_table, has_values_alone, table_of_kind
from raymarch.volumes.file_volume import FileVolume
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.value_kind import MIN_RELATIVE_RANGE, ValueKind, kind_of, lattice_indices, values_at
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

SCAN_BACKGROUND = (0.0, 0.0, 0.0)  # behind a scan, as viewers of radiology have it
VOLUME_BACKGROUND = (1.0, 1.0, 1.0)  # a volume's own ground where nobody chose one
MIN_SEEN_OPACITY = 0.07  # of a table's greatest opacity, from which a sample counts as seen
MIN_NEIGHBOURS = 7  # of 27 samples about one that is seen, itself included, that are no specks of noise
EXTENT_DIRECTIONS = 256  # in which the farthest samples are looked for
MIN_INVERSE_FRACTION = 0.97  # share of the faces over a surface's value from which what is seen lies under it
MIN_FRAMED_POINTS = 8  # points that a picture is framed by
DEFAULT_UP: tuple[float, float, float] = (0.0, 0.0, 1.0)
FRONT_DIRECTIONS = {"RAS": (0.0, 1.0, 0.0), "LAS": (0.0, 1.0, 0.0), "LPS": (0.0, -1.0, 0.0), "": (0.0, -1.0, 0.0)}
SCAN_ELEVATION = 10.0  # degrees above a scan from which it is seen


@dataclass(frozen=True, eq=False)
class DefaultLook:
    """Default look of a volume.

    Attributes:
        march: mode, and its table and light.
        background: colour behind it.
        up: direction of the world that is up.
        front: direction from the middle towards the first camera; None is where orbits begin.
        kind: of its values; None of a volume that is none of values alone.
        table: what its table is called; "" of one that has no name.
    """

    march: March
    background: Colour
    up: tuple[float, float, float] = DEFAULT_UP
    front: tuple[float, float, float] | None = None
    kind: ValueKind | None = None
    table: str = ""


def default_look(volume: AnyVolume, march: March | None = None) -> DefaultLook:
    """Default look of a volume, with its own march unless one is given.

    One of values alone, as a scan is, is lit, through a table by the kind of its values, on a dark ground unless it has
    one of its own, and is seen from the front of a body, head up, where its world is known. One that was fitted through
    a table is seen through that, and others are as their fit left them.

    Raises RaymarchError for values that single precision hardly tells apart.

    Example:
        >>> x = np.linspace(-1, 1, 16)
        >>> ball = ScalarVolume(900.0 * (x[:, None, None] ** 2 + x[:, None] ** 2 + x**2 < 0.5))
        >>> look = default_look(ball)
        >>> look.march.mode, look.table, look.background
        ('transfer', 'solid,450,900', (0.0, 0.0, 0.0))
    """
    seen: Volume = VOLUME("volume", volume)
    if not has_values_alone(seen):
        return DefaultLook(march_for(seen, march), seen.background)
    background = SCAN_BACKGROUND if tuple(seen.background) == VOLUME_BACKGROUND else seen.background
    world, unit = (volume.world, volume.unit) if isinstance(volume, ScalarVolume | FileVolume) else ("", "")
    front = FRONT_DIRECTIONS[world]
    if table_of(seen) is not None:  # as its fit left it
        return DefaultLook(march_for(seen, march), seen.background, DEFAULT_UP, front)
    if march is not None or seen.boxes > 1:
        return DefaultLook(march_for(seen, march), background, DEFAULT_UP, front)
    kind = kind_of(seen, unit)
    if kind.name == "level" and kind.high - kind.low > MIN_RELATIVE_RANGE * max(abs(kind.low), abs(kind.high)):
        return DefaultLook(March(mode="average"), background, DEFAULT_UP, front, kind)
    table, name = table_of_kind(seen, kind)
    light = None if kind.name == "constant" else Shading()  # one value has no slope to light
    march = March(mode="transfer", transfer=table, shading=light)
    return DefaultLook(march, background, DEFAULT_UP, front, kind, name)


def farthest_seen_points(volume: Volume, march: March, clip: Clip | None = None) -> np.ndarray:
    """Farthest points (n, 3) of what a march sees of a volume of values, to frame a picture by [world unit]; the
    corners of its box where that is all, or nothing.

    Specks of noise do not count. What modes of whole rays see is taken for what the default table shows.
    """
    corners: np.ndarray = volume.corners
    if not has_values_alone(volume) or volume.boxes > 1 or volume.ndc_from_world is not None:
        return corners
    axes = lattice_indices(volume)
    values = values_at(volume, axes)
    if march.iso is not None:
        seen = values >= march.iso
        seen = ~seen if np.mean(_faces(seen)) > MIN_INVERSE_FRACTION else seen
    else:
        table = march.transfer or _table_or_none(volume)
        if table is None:
            return corners
        opacity = table(values)[..., 3]
        seen = opacity > MIN_SEEN_OPACITY * table.opacities.max()
    firm = seen & (_neighbours(seen) >= MIN_NEIGHBOURS)
    index = _ends(firm if firm.any() else seen)
    reach = np.array([float(np.diff(axis).max(initial=1)) for axis in axes])  # what is between it and the next, too
    index = np.stack([axis[column] for axis, column in zip(axes, index.T, strict=True)], axis=1)
    steps = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3, indexing="ij"), -1).reshape(-1, 3) * reach
    spread = (index[:, None] + steps).reshape(-1, 3).clip(0, np.array(volume.shape) - 1)
    points = spread @ volume.world_from_index[:3, :3].T + volume.world_from_index[:3, 3]
    if clip is not None and len(clip.half_spaces):
        points = points[(points @ clip.half_spaces[:, :3].T >= clip.half_spaces[:, 3]).all(1)]
    return _farthest_points(points) if len(points) >= MIN_FRAMED_POINTS else corners


def _table_or_none(volume: Volume) -> TransferFunction | None:
    from raymarch.errors import RaymarchError

    try:
        return default_table(volume)
    except RaymarchError:  # values hardly told apart
        return None


def _faces(seen: np.ndarray) -> np.ndarray:
    return np.concatenate([np.take(seen, i, axis).ravel() for axis in range(3) for i in (0, -1)])


def _neighbours(seen: np.ndarray) -> np.ndarray:
    """Count of samples that are seen among the 27 about each; beyond the faces it is as on them."""
    count = np.pad(seen.astype(np.uint8), 1, mode="edge")
    for axis in range(3):
        n = count.shape[axis] - 2
        count = sum(np.take(count, range(i, i + n), axis) for i in range(3))  # type: ignore[assignment]
    return count


def _ends(seen: np.ndarray) -> np.ndarray:
    """Indices (n, 3) of the first and the last sample seen along each line of the third axis."""
    i, j = np.nonzero(seen.any(2))
    lines = seen[i, j]
    first, last = lines.argmax(1), seen.shape[2] - 1 - lines[:, ::-1].argmax(1)
    return np.concatenate([np.stack([i, j, k], 1) for k in (first, last)])


def _farthest_points(points: np.ndarray) -> np.ndarray:
    """Those of points (n, 3) that are farthest in some of many directions, spread evenly by the golden angle."""
    i = np.arange(EXTENT_DIRECTIONS) + 0.5
    z, turn = 1 - 2 * i / EXTENT_DIRECTIONS, np.pi * (1 + 5**0.5) * i
    across = np.sqrt(1 - z**2)
    ways = np.concatenate([np.stack([across * np.cos(turn), across * np.sin(turn), z], 1), np.eye(3), -np.eye(3)])
    scale = np.ptp(points, axis=0)
    scaled = (points - points.min(0)) / np.where(scale > 0, scale, 1.0)
    return points[np.unique([int((scaled @ way).argmax()) for way in ways])]
