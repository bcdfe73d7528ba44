"""Card of a scalar volume in a notebook: its middle slices, its maxima, where it lies and its units."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raymarch.data.world_axes import right_and_up, shown_right, shown_up
from raymarch.errors import figures
from raymarch.html.card import Shown, card, count_of_bytes, numbers
from raymarch.html.picture import figure, thumbnail
from raymarch.volumes import cards
from raymarch.volumes.placement import PlacedValues

ACROSS = (2, 1, 0)  # the axis across each slice


class ScalarCard(PlacedValues, Shown):
    """Values that show themselves in a notebook; `ScalarVolume` has the fields."""

    slope: float
    intercept: float
    unit: str
    length_unit: str
    name: str

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value."""
        raise NotImplementedError

    def _card(self) -> str:
        low, high = self.range
        length = self.length_unit or "world unit"
        lower, upper = self.box
        scaled = (self.slope, self.intercept) != (1.0, 0.0)
        rows = [
            ("name", self.name),
            ("samples (x, y, z)", " x ".join(map(str, self.shape))),
            ("stored as", f"{self.values.dtype}, value = {self.slope:g} * stored + {self.intercept:g}" * scaled),
            ("stored as", f"{self.values.dtype}" * (not scaled)),
            ("values", f"{' to '.join(figures(low, high, least=5))} {self.unit}".strip()),
            ("spacing", f"{numbers(self.spacing)} {length}"),
            ("box", f"{numbers(lower, step=self.voxel)} to {numbers(upper, step=self.voxel)} {length}"),
            ("sides", f"{self.sides} in {self.world}" if self.world else ""),
            ("memory", count_of_bytes(self.nbytes)),
        ]
        sign = -1.0 if self.slope < 0 else 1.0
        most = figure(cards.of_values(self.values, self.world_from_index, sign), "maxima along rays")
        return card("ScalarVolume", rows, [*self._slices(), most])

    def _slices(self) -> Iterator[str]:
        """Pictures of the three slices through the middle, with their sides where the world is a body's."""
        middle = [n // 2 for n in self.shape]
        cuts = [thumbnail(np.take(self.values, middle[axis], axis), cards.SIDE) for axis in ACROSS]
        shown = self.slope * np.concatenate([cut.ravel() for cut in cuts]).astype(float)
        window = tuple(np.percentile(shown, cards.RANGE))
        for cut, axis in zip(cuts, ACROSS, strict=True):
            right, up = right_and_up(axis, self.sides)
            upright = cut.T if right < up else cut
            picture = cards.windowed(self.slope * upright.astype(float), window)  # type: ignore[arg-type]
            sides, caption = self.sides, f"{'ijk'[axis]} = {middle[axis]}: {'ijk'[right]} right, {'ijk'[up]} up"
            across = upside = False
            if sides:
                (across, _, at_right), (upside, _, above) = shown_right(sides[right]), shown_up(sides[up])
                caption = f"{'ijk'[axis]} = {middle[axis]}: {at_right} right, {above} up"
            picture = picture if upside else picture[::-1]
            picture = picture[:, ::-1] if across else picture
            wide, tall = self.spacing[right] * self.shape[right], self.spacing[up] * self.shape[up]
            height = round(cards.SIDE * min(tall / wide, 1.0))
            yield figure(picture, caption, max(height, 8), max(round(height * wide / tall), 8))
