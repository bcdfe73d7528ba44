"""Plot of a sweep: the score of each fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.plot.panels import panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from raymarch.fitting.sweep import Sweep


def sweep(found: Sweep, axes: Axes | None = None) -> Axes:
    """PSNR of a sweep's fits on the held-out views, the best one first.

    Example:
        >>> from raymarch.fitting.sweep import Sweep, SweptFit
        >>> found = Sweep((SweptFit("rays-1", {"rays": 1}, psnr=30.0), SweptFit("rays-2", {"rays": 2}, psnr=31.0)), "")
        >>> [label.get_text() for label in sweep(found).get_yticklabels()]
        ['rays-2', 'rays-1']
    """
    scored = sorted((one for one in found.fits if one.psnr is not None), key=lambda one: -(one.psnr or 0.0))
    if not scored:
        raise RaymarchError("no fit of the sweep has a PSNR; give a set with held-out views, or name their split")
    (ax,) = panels(axes, 1, (6.4, 1.0 + 0.3 * len(scored)))
    values = np.array([one.psnr for one in scored])
    margin = max(0.1 * float(np.ptp(values)), 0.1)
    ax.plot(values, range(len(scored)), "o")
    ax.set_yticks(range(len(scored)), [one.name for one in scored])
    ax.set_ylim(len(scored) - 0.5, -0.5)
    ax.set_xlim(values.min() - margin, values.max() + max(0.5 * float(np.ptp(values)), 5 * margin))
    ax.grid(alpha=0.3)
    for i, one in enumerate(scored):
        text = f"{one.psnr:.2f} dB, {one.seconds:.0f} s"
        ax.annotate(text, (values[i], i), (6, 0), textcoords="offset points", va="center")
    ax.set_xlabel("PSNR of held-out views [dB]")
    return ax
