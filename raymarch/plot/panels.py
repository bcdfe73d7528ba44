"""Axes to draw into, and figures as pictures without a window."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.volumes.transfer_function import import_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panels(
    given: Axes | Sequence[Axes] | np.ndarray | None,
    count: int,
    size: tuple[float, float],
    *,
    width_ratios: Sequence[float] | None = None,
    projection: str | None = None,
    layout: str = "constrained",
) -> tuple[Any, ...]:
    """`count` Axes: those given, or new ones of `size` [inch], up to four a row."""
    from matplotlib.axes import Axes

    if given is None:
        import matplotlib.pyplot as plt

        rows, columns = -(-count // 4), min(count, 4)
        figure = plt.figure(figsize=(columns * size[0], rows * size[1]), layout=layout)
        grid = figure.add_gridspec(rows, columns, width_ratios=width_ratios)
        return tuple(figure.add_subplot(grid[divmod(i, columns)], projection=projection) for i in range(count))
    axes = tuple(np.ravel(np.asarray(given, dtype=object)))
    if len(axes) != count or not all(isinstance(ax, Axes) for ax in axes):
        raise RaymarchError(f"axes are {given!r:.60}, want {count} Axes; make them with plt.subplots(1, {count})")
    return axes


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
