"""Pictures in HTML: small images as PNG, curves and sketches as SVG, all inside of it, so that no server is asked."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence

import numpy as np

from raymarch.html.card import safe_text

FIGURE_STYLE = "margin:0;text-align:left;color:inherit"
CAPTION_STYLE = "font-size:0.85em;opacity:0.7"
MAX_POINTS = 200


def figure(image: np.ndarray, caption: str = "", height: int | None = None, width: int | None = None) -> str:
    """HTML of an image (height, width), or (height, width, 3 or 4), uint8 or floats in 0..1, over its caption.

    Its `height` and `width` on the page [CSS pixel] are its own where they are not given.

    Example:
        >>> figure(np.zeros((4, 4, 3)), "black").startswith('<figure')
        True
    """
    shown = data_uri(png(to_bytes(image)))
    wide = "auto" if width is None else f"{width}px"
    style = f"height:{height or image.shape[0]}px;width:{wide};max-width:none;display:block;border-radius:2px"
    below = f'<figcaption style="{CAPTION_STYLE}">{safe_text(caption)}</figcaption>' if caption else ""
    return (
        f'<figure style="{FIGURE_STYLE}"><img alt="{safe_text(caption)}" src="{shown}" style="{style}">{below}</figure>'
    )


def thumbnail(image: np.ndarray, side: int) -> np.ndarray:
    """Image (height, width, ...) of at most `side` pixels a side: every few pixels of a larger one.

    Example:
        >>> thumbnail(np.zeros((100, 60, 3)), 50).shape
        (50, 30, 3)
    """
    every = max(-(-max(image.shape[:2]) // side), 1)
    return image[every // 2 :: every, every // 2 :: every]


def to_bytes(image: np.ndarray) -> np.ndarray:
    """Image as uint8, from floats of which 0..1 is shown; what is not finite is 0.

    Example:
        >>> to_bytes(np.array([[0.5, 2.0, np.nan]])).tolist()
        [[128, 255, 0]]
    """
    if image.dtype == np.uint8:
        return image
    return np.rint(np.clip(np.nan_to_num(image, nan=0.0), 0, 1) * 255).astype(np.uint8)


def png(image: np.ndarray) -> bytes:
    """PNG of an image (height, width, 1 to 4 channels or none) uint8."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, format="PNG")
    return file.getvalue()


def data_uri(file: bytes, kind: str = "image/png") -> str:
    """URI that holds the file itself.

    Example:
        >>> data_uri(b"abc", "text/plain")
        'data:text/plain;base64,YWJj'
    """
    return f"data:{kind};base64,{base64.b64encode(file).decode()}"


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
    every = max(len(up) // MAX_POINTS, 1)
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
    return (
        f'<figure style="{FIGURE_STYLE}">{svg}<figcaption '
        f'style="{CAPTION_STYLE}">{safe_text(caption)}</figcaption></figure>'
    )


def _line(points: np.ndarray, opacity: float) -> str:
    text = " ".join(f"{u:.1f},{v:.1f}" for u, v in points)
    return (
        f'<polyline points="{text}" fill="none" stroke="currentColor" stroke-width="1.3" stroke-opacity="{opacity}"/>'
    )
