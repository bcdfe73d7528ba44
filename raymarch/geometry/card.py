"""Card of a camera in a notebook: pose, intrinsics, and what its lens does to a straight grid."""

from __future__ import annotations

import numpy as np

from raymarch.geometry.lens import Lens, project
from raymarch.html.card import Shown, card, numbers
from raymarch.html.picture import sketch

WIDE = 150  # of the sketch [CSS pixel]
LINES, POINTS = 9, 33


class CameraCard(Shown):
    """Camera that shows itself in a notebook; `Camera` has the fields."""

    world_from_camera: np.ndarray
    focal: tuple[float, float]
    principal: tuple[float, float]
    width: int
    height: int
    lens: Lens

    def _card(self) -> str:
        pose, parallel = self.world_from_camera, self.lens.parallel
        fields = [2 * np.degrees(np.arctan(n / (2 * f))) for n, f in zip(self._size, self.focal, strict=True)]
        across = [n / f for n, f in zip(self._size, self.focal, strict=True)]
        plain = "none" if self.lens.plain else f"{self.lens.model}: {numbers(self.lens.coefficients)}"
        rows = [
            ("position", f"{numbers(pose[:3, 3])} world units"),
            ("looks along", numbers(-pose[:3, 2], 3)),
            ("up", numbers(pose[:3, 1], 3)),
            ("image", f"{self.width} x {self.height} pixels"),
            ("field of view", None if parallel else f"{fields[0]:.4g} x {fields[1]:.4g} degrees"),
            ("parallel rays", f"{across[0]:.4g} x {across[1]:.4g} world units" if parallel else None),
            ("focal length", f"{numbers(self.focal)} pixels" + (" a world unit" if parallel else "")),
            ("principal point", f"{numbers(self.principal)} pixels"),
            ("distortion", plain),
        ]
        return card("Camera", rows, [self._sketch()])

    @property
    def _size(self) -> tuple[int, int]:
        return self.width, self.height

    def _sketch(self) -> str:
        """Image with its principal point, and a grid of straight lines as the lens shows them."""
        scale = WIDE / max(self._size)
        u, v = (scale * n for n in self.principal)
        cross = [np.array([(u - 5, v), (u + 5, v)]), np.array([(u, v - 5), (u, v + 5)])]
        ends = [np.array([0, n]) - p for n, p in zip(self._size, self.principal, strict=True)]
        across, down = (np.array(end) / f for end, f in zip(ends, self.focal, strict=True))
        grid = []
        for t in np.linspace(0, 1, LINES):
            fine = np.linspace(0, 1, POINTS)
            for x, y in ((t + 0 * fine, fine), (fine, t + 0 * fine)):
                place = np.stack([across[0] + np.ptp(across) * x, -(down[0] + np.ptp(down) * y), 0 * x - 1], axis=1)
                grid.append(scale * project(place, self.focal, self.principal, self.lens)[0])
        size = max(round(scale * self.width), 1), max(round(scale * self.height), 1)
        seen = [line for line in grid if np.isfinite(line).all()]
        return sketch(cross, "principal point" + ("" if self.lens.plain else ", a straight grid"), size, faint=seen)
