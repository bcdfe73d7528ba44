"""Pictures with what a mask takes out in grey."""

from __future__ import annotations

import numpy as np

GREY = 0.5


def without(picture: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Picture (height, width, 3), grey where a mask (height, width) is False."""
    return picture if mask is None else np.where(mask[..., None], picture, GREY)
