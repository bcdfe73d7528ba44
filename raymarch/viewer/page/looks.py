"""Looks that a page may show of a volume: a record for each mode, with its table, value or window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.default_look import DefaultLook
from raymarch.rendering.march_settings import March, table_of
from raymarch.rendering.shading import Shading
from raymarch.viewer.page.record import DRAWN_MODES, VALUE_MODES, look_record
from raymarch.volumes.default_table import default_table, has_values_alone, range_of
from raymarch.volumes.surface_value import surface_value
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.value_kind import lattice_indices, values_at
from raymarch.volumes.volume import Volume

OF_VALUES = ("transfer", "isosurface", "maximum", "minimum", "average", "x-ray")
OF_COLOURS = ("emission-absorption", "transfer", "isosurface", "maximum", "x-ray")
BINS = 256
BRIGHT = 99.9  # percentile of values, and of their means and integrals along lines, that is white
MAP_OF_COLOURS = "viridis"  # through which the extinction of a fit is shown

Window = tuple[float, float]


def looks_of(volume: Volume, look: DefaultLook, background: Any, window: Window | None) -> dict[str, Any]:
    """Records of the looks that a page offers, by mode, the one that it begins with first.

    `window` is that of the mode it begins with.
    """
    first = DRAWN_MODES[str(look.march.mode)]
    values = has_values_alone(volume)
    windows = default_windows(volume)
    looks = {first: look_record(look.march, background, window or windows.get(first))}
    for mode in OF_VALUES if values else OF_COLOURS:
        rule = MODES[mode]
        able = rule.ndc or volume.ndc_from_world is None
        several = rule.boxes and not rule.classifies
        if mode in looks or not able or (volume.boxes > 1 and not several):
            continue
        march = _march_of(volume, mode, look)
        if march is not None:
            looks[mode] = look_record(march, background, windows.get(mode))
    return looks


def _march_of(volume: Volume, mode: str, look: DefaultLook) -> March | None:
    """March of another mode than the one a page begins with; None where the values have no such look."""
    own: dict[str, Any] = {}
    if MODES[mode].classifies:
        table = _table_of(volume)
        if table is None:
            return None
        lit = has_values_alone(volume) and volume.ndc_from_world is None
        own = {"transfer": table, "shading": Shading() if lit else None}
    elif mode == "isosurface":
        own = {"iso": surface_value(volume, look.kind)}
        if own["iso"] is None:
            return None
    return replace(March(step=look.march.step, mode=mode, **own), clip=look.march.clip)


def _table_of(volume: Volume) -> TransferFunction | None:
    """Table of a volume that none is given for; None of values that single precision does not tell apart."""
    try:
        if (fitted := table_of(volume)) is not None:
            return fitted
        return default_table(volume, None if has_values_alone(volume) else MAP_OF_COLOURS)
    except RaymarchError:
        return None


def default_windows(volume: Volume) -> dict[str, Window]:
    """Window of each mode whose pictures are values, by samples on a lattice: of values themselves, of their means
    along lines of samples, and of their integrals.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(9, 9, 9))
        >>> low, high = default_windows(ball)["maximum"]
        >>> low, high
        (0.0, 9.0)
    """
    axes = lattice_indices(volume)
    values = values_at(volume, axes)
    least, most = float(values.min()), float(np.percentile(values, BRIGHT))
    most = most if most > least else float(values.max())
    sides = np.linalg.norm(volume.world_from_index[:3, :3], axis=0) * (np.array(volume.shape) - 1)
    means = [values.mean(axis) for axis in range(3)]
    sums = np.concatenate([mean.ravel() * side for mean, side in zip(means, sides, strict=True)])
    flat = np.concatenate([mean.ravel() for mean in means])
    found = {
        "maximum": (least, most),
        "minimum": (least, most),
        "average": (float(flat.min()), float(np.percentile(flat, BRIGHT))),
        "x-ray": (min(float(sums.min()), 0.0), float(np.percentile(sums, BRIGHT))),
    }
    return {mode: (low, high if high > low else low + 1.0) for mode, (low, high) in found.items()}


def scene_record(volume: Volume) -> dict[str, Any]:
    """Range of the values, and their histogram on a lattice of samples."""
    low, high = range_of(volume)
    values = values_at(volume, lattice_indices(volume)).ravel()
    if not has_values_alone(volume):
        high = max(float(np.percentile(values, BRIGHT)), low)
    high = high if high > low else low + 1.0
    counts, edges = np.histogram(values.clip(low, high), BINS, (low, high))
    return {"range": [low, high], "histogram": {"edges": edges.tolist(), "counts": counts.tolist()}}


def is_of_values(mode: str) -> bool:
    """Whether a mode's pictures are values, shown over a window."""
    return DRAWN_MODES.get(mode) in VALUE_MODES
