"""Image pyramid on the device: an image set, and the same made smaller by halves, each put there when first used."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from raymarch.data.smaller_views import smaller
from raymarch.data.views import Views
from raymarch.device.image_store import ImageStore
from raymarch.device.owner import Holder


class ImagePyramid(Holder):
    """Image pyramid, freed by `close`; `store` is the one in use, of the images as they are at first.

    Example:
        >>> with ImagePyramid(views) as images:  # doctest: +SKIP
        ...     images.use(1).tiles  # of half as many pixels a side
    """

    def __init__(self, views: Views, rays: int = 0):
        self._views, self._rays = views, rays
        self._exposures: np.ndarray | None = None
        with ExitStack() as owners:
            self.store = owners.enter_context(ImageStore(views, rays=rays))
            self._owners = owners.pop_all()
        self._stores = {0: self.store}

    def use(self, halvings: int) -> ImageStore:
        """Store of the images halved so many times, in use from now on, with the exposures that were set last.

        Another one than before has no errors yet, whatever it had when it was last in use.
        """
        if self.store is self._stores.get(halvings):
            return self.store
        if halvings not in self._stores:
            views = smaller(self._views, 2**halvings)
            tile = self._stores[0].fields.tile
            self._stores[halvings] = self._owners.enter_context(ImageStore(views, tile, self._rays))
        self.store = self._stores[halvings]
        self.store.forget_errors()
        if self._exposures is not None:
            self.store.set_exposures(self._exposures)
        return self.store

    def set_exposures(self, exposures: np.ndarray) -> None:
        """Set the exposures (view, 6) of the views, whatever size their images have."""
        self._exposures = exposures
        self.store.set_exposures(exposures)
