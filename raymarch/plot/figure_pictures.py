"""Figures as pictures, without a window, by Matplotlib's own style."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from raymarch.data.colormaps import import_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_of(draw: Callable[[], Figure]) -> np.ndarray:
    """Image (height, width, 3) uint8 of the figure that `draw` makes, alike whatever the user's matplotlibrc says."""
    matplotlib = import_matplotlib()
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # of names in letters that no font here has: boxes then
        matplotlib.rcdefaults()
        try:
            figure = draw()
        except ImportError:  # MPLBACKEND names a window of another environment, and none is wanted
            plt.switch_backend("agg")
            figure = draw()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    plt.close(figure)
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
