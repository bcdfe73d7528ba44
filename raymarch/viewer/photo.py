"""Photographs of an image set for pages: JPEGs no wider than asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from raymarch.arguments.checks import whole
from raymarch.errors import RaymarchError
from raymarch.viewer.display import jpeg
from raymarch.viewer.pictures.eye import MOST_SIDE
from raymarch.views.views import Views

WIDTH = whole(1, MOST_SIDE)


def photo(views: Views | None, message: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Photograph that a page asks for: the message that goes with it, and a JPEG; RaymarchError where there is none."""
    if views is None:
        raise RaymarchError("photo: no image set is shown; give one by --views, or rm.view(volume, views)")
    index = whole(0, len(views) - 1)("photo: index", message.get("index"))
    width = min(WIDTH("photo: width", message.get("width", 256)), views.cameras[index].width)
    pixels = np.rint(255 * views.rgb(index)).astype(np.uint8)
    height = max(round(width * pixels.shape[0] / pixels.shape[1]), 1)
    small = np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX))
    return {"type": "photo", "index": index, "width": width, "height": height}, jpeg(small, 85)
