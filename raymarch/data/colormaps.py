"""Colour maps of Matplotlib, by their names."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from raymarch.arguments.checks import Check, Wrong, shown
from raymarch.arguments.guess import did_you_mean
from raymarch.errors import RaymarchError, one_line

FEW = "viridis, inferno, bone, gray, coolwarm"


def import_matplotlib() -> ModuleType:
    """Matplotlib; RaymarchError where the user's settings keep it from being imported."""
    try:
        import matplotlib
    except ValueError as error:
        raise RaymarchError(
            f"matplotlib cannot be imported ({one_line(error)}); check MPLBACKEND and matplotlibrc"
        ) from None
    return matplotlib


def _colormap(value: object) -> str:
    if not isinstance(value, str) or value not in import_matplotlib().colormaps:
        raise Wrong(f"is {shown(value)}", did_you_mean(value, import_matplotlib().colormaps) or "check its spelling")
    return value


COLORMAP = Check(f"a colour map that matplotlib has, as {FEW}", _colormap)


def colours_along(name: str, share: np.ndarray) -> np.ndarray:
    """Colours (n, 3) of a map at shares (n,) of its way, 0..1.

    Example:
        >>> colours_along("gray", np.array([0.0, 1.0])).tolist()
        [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    colours: np.ndarray = import_matplotlib().colormaps[name](share)[:, :3]
    return colours
