"""Fit through a transfer function: the values it begins with, and those that nobody sees."""

from __future__ import annotations

import numpy as np

from raymarch.fitting.settings.settings import FitSettings
from raymarch.kernels.field.copies import MAX_RAW_DENSITY
from raymarch.rendering.march_settings import March
from raymarch.volumes.activation import Activation
from raymarch.volumes.transfer_function import TransferFunction

RAW_UNITS_A_RANGE = 10.0  # of the table's range is a raw unit, in which steps are
INVERSE_VALUES = 4096  # values of the range that are tried


def activation_through(table: TransferFunction, initial_alpha: float, voxel: float) -> Activation:
    """Activation by which raw 0 is the value of opacity `initial_alpha` over a voxel that is nearest the clear one, or
    that of the highest.

    The value is (raw + shift) / scale: as it is, of any sign.

    Example:
        >>> table = TransferFunction([0, 100], [(1, 1, 1)] * 2, [0, 1], unit_length=1.0)
        >>> start = activation_through(table, 0.25, 1.0)
        >>> round(float(start.sigma(0.0)), 1)
        25.0
    """
    values = np.linspace(table.values[0], table.values[-1], INVERSE_VALUES)
    sigma = table.sigma(values)
    enough = values[sigma >= -np.log1p(-initial_alpha) / voxel]
    nearest = enough[np.abs(enough - clear_value(table)).argmin()] if len(enough) else values[sigma.argmax()]
    first = float(nearest)
    scale = RAW_UNITS_A_RANGE / float(table.values[-1] - table.values[0])
    return Activation("identity", first * scale, scale)


def march_of(settings: FitSettings) -> March:
    """March that shows a fit's volume as the fit sees it."""
    return March(mode=settings.mode, transfer=settings.transfer)


def clear_value(table: TransferFunction) -> float:
    """Value of the least opacity, the least of several."""
    return float(table.values[int(table.opacities.argmin())])


def clear_raws(table: TransferFunction, activation: Activation) -> tuple[float, float]:
    """Raw densities, from the least to the largest, that show as little as any: the clear value's, and all beyond it
    where the table ends with it."""
    at, last = int(table.opacities.argmin()), len(table.values) - 1
    raw = float(activation.raw(clear_value(table)))
    return raw if at > 0 else -MAX_RAW_DENSITY, raw if at < last else MAX_RAW_DENSITY
