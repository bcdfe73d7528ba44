"""Image pyramid on the device: an image set, or the same made smaller by halves, in one store."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from raymarch.data.smaller_views import smaller
from raymarch.device.image_store import ImageStore
from raymarch.device.owner import Holder
from raymarch.views.views import Views


class ImagePyramid(Holder):
    """Image pyramid, freed by `close`; `store` has the images of one size, as they are at first.

    One size at a time: kernels are compiled for each store anew, and a fit goes through the sizes once.

    Example:
        >>> with ImagePyramid(views) as images:  # doctest: +SKIP
        ...     images.use(1).tiles  # of half as many pixels a side
    """

    def __init__(self, views: Views, rays: int = 0):
        self._views, self._halvings = views, 0
        self._exposures: np.ndarray | None = None
        with ExitStack() as owners:
            self.store = owners.enter_context(ImageStore(views, rays=rays))
            self._owners = owners.pop_all()

    def use(self, halvings: int) -> ImageStore:
        """Store with the images halved so many times, from now on, and the exposures that were set last.

        Of images that were not in use before no errors are known, whatever they had when they last were.
        """
        if halvings != self._halvings:
            self._halvings = halvings
            self.store.put(smaller(self._views, 2**halvings) if halvings else self._views)
            if self._exposures is not None:
                self.store.set_exposures(self._exposures)
        return self.store

    def set_exposures(self, exposures: np.ndarray) -> None:
        """Set the exposures (view, 6) of the views, whatever size their images have."""
        self._exposures = exposures
        self.store.set_exposures(exposures)
