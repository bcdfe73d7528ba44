"""Card of a rendering in a notebook: image, opacity, depth and normals."""

from __future__ import annotations

import numpy as np

from raymarch.html.card import Shown, card
from raymarch.html.picture import figure, thumbnail

SIDE = 256  # pixels of its image; the others are half as large


class RenderingCard(Shown):
    """Rendering that shows itself in a notebook; `Rendering` has the fields."""

    image: np.ndarray
    opacity: np.ndarray
    depth: np.ndarray
    normals: np.ndarray | None

    def _card(self) -> str:
        height, width = self.opacity.shape
        met = self.depth[np.isfinite(self.depth)]
        near, far = (float(met.min()), float(met.max())) if met.size else (0.0, 0.0)
        pictures = [figure(thumbnail(self.image, SIDE), "image"), figure(thumbnail(self.opacity, SIDE // 2), "opacity")]
        if met.size:
            nearness = 1 - 0.8 * (self.depth - near) / max(far - near, 1e-12)
            grey = np.where(np.isfinite(self.depth), nearness, 0)
            pictures.append(figure(thumbnail(grey, SIDE // 2), "depth, near is bright"))
        if self.normals is not None:
            pictures.append(figure(thumbnail(0.5 + 0.5 * self.normals, SIDE // 2), "normals"))
        rows = [
            ("image", f"{width} x {height} pixels"),
            ("opacity", f"{self.opacity.mean():.3g} in the mean"),
            ("depth", f"{near:.4g} to {far:.4g} world units" if met.size else "nothing is met"),
            ("normals", None if self.normals is None else "unit vectors in the world"),
        ]
        return card("Rendering", rows, pictures)
