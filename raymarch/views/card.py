"""Card of views in a notebook: a contact sheet, sizes, masks, where they come from and what they are of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.html.card import Shown, card, numbers
from raymarch.html.picture import figure, thumbnail
from raymarch.views.image_arrays import Masks

MOST, SIDE = 8, 96  # pictures, and pixels of each
GREY = np.array([128, 128, 128], np.uint8)


class ViewsCard(Shown):
    """Views that show themselves in a notebook; `Views` has the fields."""

    cameras: Sequence[Camera]
    images: Sequence[np.ndarray] | np.ndarray
    names: Sequence[str]
    background: tuple[float, float, float]
    source: str
    masks: Masks
    points: np.ndarray | None
    box: np.ndarray | None
    downscale: float
    holdout: int | None
    origin: tuple[float, float, float] | None

    def size_in_words(self) -> str:
        """Sizes of the images in words."""
        raise NotImplementedError

    def _card(self) -> str:
        count, places = len(self.cameras), np.stack([camera.position for camera in self.cameras])
        alpha = self.images[0].shape[2] == 4
        masked = 0 if self.masks is None else sum(mask is not None for mask in self.masks)
        rows = [
            ("images", f"{count} {'RGBA' if alpha else 'RGB'} of {self.size_in_words()} pixels"),
            ("source", self.source),
            ("masks", masked or None),
            ("background", numbers(self.background, 3) if alpha else None),
            ("cameras from", f"{numbers(places.min(0))} to {numbers(places.max(0))} world units"),
            ("lenses", ", ".join(sorted({camera.lens.model for camera in self.cameras}))),
            ("box", None if self.box is None else f"{numbers(self.box[0])} to {numbers(self.box[1])}"),
            ("sparse points", None if self.points is None else f"{len(self.points):,}"),
            ("downscale", None if self.downscale == 1 else f"{self.downscale:g}"),
            ("holdout", self.holdout),
            ("origin", None if self.origin is None else f"{numbers(self.origin, 12)} of the set"),
        ]
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST)).astype(int))
        return card("Views", rows, [self._picture(int(i)) for i in chosen])

    def _picture(self, view: int) -> str:
        """Picture of one view on the background, grey where a mask takes it out."""
        small = thumbnail(self.images[view], SIDE)
        colour = small[..., :3].astype(float)
        if small.shape[2] == 4:
            alpha = small[..., 3:] / 255.0
            colour = colour * alpha + 255 * np.asarray(self.background) * (1 - alpha)
        mask = None if self.masks is None else self.masks[view]
        if mask is not None:
            colour = np.where(thumbnail(mask, SIDE)[..., None], colour, GREY)
        return figure(np.rint(colour).astype(np.uint8), self.names[view])
