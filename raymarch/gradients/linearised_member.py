"""Linearised rendering of one of several volumes: products with the Jacobian by it alone, the others held."""

from __future__ import annotations

import numpy as np

from raymarch.gradients.linearised_together import OF_VOLUMES, LinearisedTogether
from raymarch.gradients.parameters import Parameters


class LinearisedMember:
    """One of the volumes of a `LinearisedTogether`, as a `Linearised` of it; the background is with the first.

    Owns nothing: what it was made of is closed by who made that.
    """

    def __init__(self, together: LinearisedTogether, place: int):
        self._together, self._place = together, place
        self.volume, self.march = together.members.volumes[place], together.members.marches[place]
        self.camera, self.rays = together.camera, together.rays

    @property
    def groups(self) -> tuple[str, ...]:
        """Parameter groups that the image depends on."""
        unseen = "colour" if self.march.transfer else "table"
        return tuple(name for name in (*OF_VOLUMES, *(() if self._place else ("background",))) if name != unseen)

    def image(self) -> np.ndarray:
        """Colour and transmittance (ray, 4) of all volumes."""
        return self._together.image()

    def adjoint(self, d_image: np.ndarray) -> Parameters:
        """Vector-Jacobian product of d_image (ray, 4)."""
        return self._together.adjoint(d_image)[self._place]

    def tangent(self, dot: Parameters) -> np.ndarray:
        """Jacobian-vector product (ray, 4) of a direction of this volume."""
        return self._together.tangent(self._alone(dot))

    def shifted(self, dot: Parameters, h: float) -> np.ndarray:
        """Image (ray, 4) with this volume moved by h * dot."""
        return self._together.shifted(self._alone(dot), h)

    def _alone(self, dot: Parameters) -> list[Parameters]:
        return [dot if i == self._place else Parameters() for i in range(len(self._together.members.volumes))]
