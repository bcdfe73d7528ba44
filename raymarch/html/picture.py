"""Pictures in HTML: small images as PNG inside of it, so that nothing is asked of any server."""

from __future__ import annotations

import base64
import io

import numpy as np

from raymarch.html.card import safe

FIGURE = "margin:0;text-align:left;color:inherit"
CAPTION = "font-size:0.85em;opacity:0.7"


def figure(image: np.ndarray, caption: str = "", height: int | None = None, width: int | None = None) -> str:
    """HTML of an image (height, width), or (height, width, 3 or 4), uint8 or floats in 0..1, over its caption.

    Its `height` and `width` on the page [CSS pixel] are its own where they are not given.

    Example:
        >>> figure(np.zeros((4, 4, 3)), "black").startswith('<figure')
        True
    """
    shown = data_uri(png(as_bytes(image)))
    wide = "auto" if width is None else f"{width}px"
    style = f"height:{height or image.shape[0]}px;width:{wide};max-width:none;display:block;border-radius:2px"
    below = f'<figcaption style="{CAPTION}">{safe(caption)}</figcaption>' if caption else ""
    return f'<figure style="{FIGURE}"><img alt="{safe(caption)}" src="{shown}" style="{style}">{below}</figure>'


def as_bytes(image: np.ndarray) -> np.ndarray:
    """Image as uint8, from floats of which 0..1 is shown; what is not finite is 0.

    Example:
        >>> as_bytes(np.array([[0.5, 2.0, np.nan]])).tolist()
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


def thumbnail(image: np.ndarray, side: int) -> np.ndarray:
    """Image (height, width, ...) of at most `side` pixels a side: every few pixels of a larger one.

    Example:
        >>> thumbnail(np.zeros((100, 60, 3)), 50).shape
        (50, 30, 3)
    """
    every = max(-(-max(image.shape[:2]) // side), 1)
    return image[every // 2 :: every, every // 2 :: every]
