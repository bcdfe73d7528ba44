"""Sketches in HTML: curves and lines as SVG, drawn in the colour of the page's text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from raymarch.html.card import safe
from raymarch.html.picture import CAPTION, FIGURE

MOST_POINTS = 200


def curve(x: Sequence[float], y: Sequence[float], caption: str, size: tuple[int, int] = (180, 80)) -> str:
    """HTML of a curve of y over x with the ends of its range, such as a fit's loss; "" with under two numbers.

    Example:
        >>> "polyline" in curve([0, 1, 2], [1.0, 0.5, 0.2], "loss")
        True
    """
    across, up = np.asarray(x, float), np.asarray(y, float)
    across, up = across[np.isfinite(up)], up[np.isfinite(up)]
    if len(up) < 2:
        return ""
    every = max(len(up) // MOST_POINTS, 1)
    least, most = float(up.min()), float(up.max())
    u = (across - across[0]) / max(float(across[-1] - across[0]), 1e-300)
    v = 1 - (up - least) / max(most - least, 1e-300)
    points = np.stack([2 + u * (size[0] - 4), 2 + v * (size[1] - 4)], axis=1)
    return sketch([np.concatenate([points[::every], points[-1:]])], f"{caption} {least:.4g} to {most:.4g}", size)


def sketch(
    lines: Iterable[np.ndarray], caption: str, size: tuple[int, int], faint: Iterable[np.ndarray] = (), under: str = ""
) -> str:
    """HTML of lines (point, 2) [CSS pixel, y down] in a frame of `size`, over others that are faint.

    `under` is SVG that lies below them.
    """
    width, height = size
    drawn = "".join(_line(each, 0.35) for each in faint) + "".join(_line(each, 1.0) for each in lines)
    frame = f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" fill="none" stroke="currentColor"'
    svg = (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" style="display:block"'
        f'>{under}{frame} stroke-opacity="0.25"/>{drawn}</svg>'
    )
    return f'<figure style="{FIGURE}">{svg}<figcaption style="{CAPTION}">{safe(caption)}</figcaption></figure>'


def _line(points: np.ndarray, opacity: float) -> str:
    text = " ".join(f"{u:.1f},{v:.1f}" for u, v in points)
    return (
        f'<polyline points="{text}" fill="none" stroke="currentColor" stroke-width="1.3" stroke-opacity="{opacity}"/>'
    )
