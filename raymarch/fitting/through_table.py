"""Fit through a transfer function: the values it begins with, and those that nobody sees."""

from __future__ import annotations

import numpy as np

from raymarch.data.activation import Activation
from raymarch.data.transfer_function import TransferFunction
from raymarch.fitting.settings import FitSettings
from raymarch.rendering.march import March

PARTS = 10.0  # of the table's range is a raw unit, in which steps are
FINE = 4096  # values of the range that are tried


def activation_through(table: TransferFunction, initial_alpha: float, voxel: float) -> Activation:
    """Activation by which raw 0 is the least value of opacity `initial_alpha` over a voxel, or that of the highest.

    The value is (raw + shift) / scale: as it is, of any sign.

    Example:
        >>> table = TransferFunction([0, 100], [(1, 1, 1)] * 2, [0, 1], unit_length=1.0)
        >>> start = activation_through(table, 0.25, 1.0)
        >>> round(float(start.sigma(0.0)), 1)
        25.0
    """
    values = np.linspace(table.values[0], table.values[-1], FINE)
    sigma = table.sigma(values)
    enough = np.flatnonzero(sigma >= -np.log1p(-initial_alpha) / voxel)
    first = float(values[enough[0] if len(enough) else int(sigma.argmax())])
    scale = PARTS / float(table.values[-1] - table.values[0])
    return Activation("identity", first * scale, scale)


def march_of(settings: FitSettings) -> March:
    """March that shows a fit's volume as the fit sees it."""
    return March(mode=settings.mode, transfer=settings.transfer)


def clear_value(table: TransferFunction) -> float:
    """Value of the least opacity."""
    return float(table.values[int(table.opacities.argmin())])
