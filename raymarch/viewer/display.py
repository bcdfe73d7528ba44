"""Display of a rendering: 8-bit pictures of colours, values, depth, opacity and normals, as JPEG or PNG."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from raymarch.data.value_contents import apart
from raymarch.io.images.write import save_png
from raymarch.rendering.renderer import Rendering
from raymarch.viewer.look import Look
from raymarch.views.display_values import eight_bit

QUALITY = 80  # of JPEG
COVER = 96  # pixels of the longer side of what a picture covers
Range = tuple[float, float]


def colours(seen: Rendering, look: Look, values: bool, window: Range | None) -> np.ndarray:
    """Display values (height, width, channel) of what a look shows of a rendering.

    Args:
        values: whether the image has values, not colours: black where nothing is met, `window` from black to white.
        window: of values or of depth.
    """
    if look.extras == "depth":
        return _grey(seen.depth, window)
    if look.extras == "opacity":
        return seen.opacity[..., None]
    if look.extras == "normals" and seen.normals is not None:
        return np.where(seen.normals.any(-1, keepdims=True), 0.5 * seen.normals + 0.5, 0)
    image = seen.image
    if values:
        low, high = window or (0.0, 1.0)
        image = (image - low) / (high - low) * (seen.opacity != 0)[..., None]
    return image if look.exposure == 0 else image * 2.0**look.exposure


def _grey(depth: np.ndarray, window: Range | None) -> np.ndarray:
    """Depth as `rm` writes it: near white, far dark, nothing met black."""
    near, far = window or (0.0, 1.0)
    grey = 1 - 0.8 * np.clip((depth - near) / max(far - near, 1e-12), 0, 1)
    return np.where(np.isfinite(depth), grey, 0)[..., None]


def window_of(seen: Rendering, look: Look, values: bool) -> Range | None:
    """Window of a rendering's own numbers, where its picture needs one."""
    if look.extras == "depth":
        met = seen.depth[np.isfinite(seen.depth)]
    elif values and look.extras == "image":
        met = seen.image[seen.opacity != 0]
    else:
        return None
    low, high = (float(met.min()), float(met.max())) if met.size else (0.0, 1.0)
    return apart(low, high)


def cover(shown: np.ndarray) -> dict[str, Any]:
    """How much of what lies behind it a picture covers, in few pixels: width, height and bytes 0..255 in base64.

    Args:
        shown: opacity (height, width), or display values (height, width, channel) of what has none.
    """
    flat = shown if shown.ndim == 2 else shown.max(-1)
    flat = np.nan_to_num(np.clip(flat, 0, 1))
    scale = min(1.0, COVER / max(flat.shape))
    size = max(round(flat.shape[1] * scale), 1), max(round(flat.shape[0] * scale), 1)
    small = Image.fromarray(np.rint(255 * flat).astype(np.uint8)).resize(size, Image.Resampling.BOX)
    return {"width": size[0], "height": size[1], "data": base64.b64encode(small.tobytes()).decode()}


def png(picture: np.ndarray) -> bytes:
    """PNG of display values, to the bytes that `rm.write_png` writes."""
    out = io.BytesIO()
    save_png(out, eight_bit(picture))
    return out.getvalue()


def jpeg(picture: np.ndarray, quality: int = QUALITY) -> bytes:
    """JPEG of display values or of uint8."""
    pixels = picture if picture.dtype == np.uint8 else eight_bit(picture)
    out = io.BytesIO()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels[..., :3])
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()
