"""Colour maps of Matplotlib, by their names."""

from __future__ import annotations

import numpy as np

from raymarch.arguments.checks import Check, Wrong, shown

FEW = "viridis, inferno, bone, gray, coolwarm"


def _colormap(value: object) -> str:
    from matplotlib import colormaps

    if not isinstance(value, str) or value not in colormaps:
        raise Wrong(f"is {shown(value)}", "check its spelling")
    return value


COLORMAP = Check(f"a colour map that matplotlib has, as {FEW}", _colormap)


def colours_along(name: str, share: np.ndarray) -> np.ndarray:
    """Colours (n, 3) of a map at shares (n,) of its way, 0..1.

    Example:
        >>> colours_along("gray", np.array([0.0, 1.0])).tolist()
        [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    from matplotlib import colormaps

    return colormaps[name](share)[:, :3]
