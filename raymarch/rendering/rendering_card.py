"""Card of a rendering in a notebook: image, opacity, depth and normals."""

from __future__ import annotations

import numpy as np

from raymarch.html.card import card_html
from raymarch.html.picture import figure, thumbnail

THUMBNAIL_SIDE = 256  # pixels of its image; the others are half as large


def rendering_card(image: np.ndarray, opacity: np.ndarray, depth: np.ndarray, normals: np.ndarray | None) -> str:
    """HTML of a `Rendering`'s image (height, width, 3), opacity, depth (height, width) and normals for a notebook."""
    height, width = opacity.shape
    met = depth[np.isfinite(depth)]
    near, far = (float(met.min()), float(met.max())) if met.size else (0.0, 0.0)
    pictures = [
        figure(thumbnail(image, THUMBNAIL_SIDE), "image"),
        figure(thumbnail(opacity, THUMBNAIL_SIDE // 2), "opacity"),
    ]
    if met.size:
        nearness = 1 - 0.8 * (depth - near) / max(far - near, 1e-12)
        grey = np.where(np.isfinite(depth), nearness, 0)
        pictures.append(figure(thumbnail(grey, THUMBNAIL_SIDE // 2), "depth, near is bright"))
    if normals is not None:
        pictures.append(figure(thumbnail(0.5 + 0.5 * normals, THUMBNAIL_SIDE // 2), "normals"))
    rows = [
        ("image", f"{width} x {height} pixels"),
        ("opacity", f"{opacity.mean():.3g} in the mean"),
        ("depth", f"{near:.4g} to {far:.4g} world units" if met.size else "nothing is met"),
        ("normals", None if normals is None else "unit vectors in the world"),
    ]
    return card_html("Rendering", rows, pictures)
