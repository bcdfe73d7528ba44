"""Exposures of the views and a constant background, in closed form from the rays of the steps, as the volume comes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raymarch.device.image_store import ImagePyramid
from raymarch.device.photometry_sums import PhotometricSums
from raymarch.device.pool import Closing
from raymarch.device.ray_buffer import RayBuffer
from raymarch.fitting.settings.settings import FitSettings
from raymarch.kernels.fit.photometry import NUMBERS_A_VIEW, add_photometry
from raymarch.views.exposure import NEUTRAL_EXPOSURE, exposures_of, normalise_exposures
from raymarch.views.views import Views

log = logging.getLogger(__name__)

UPDATE_INTERVAL = 25  # steps between two updates
FIRST_STEP = 25  # steps before exposures: what a volume has taken for its own by then it gives back slowly
SUM_DECAY = 0.5  # of the sums, over an update: those of an older volume fade
EXPOSURE_RIDGE = (1.0, 100.0)  # pixels' worth of a gain of 1, of an offset of 0: blur lowers gains and lifts offsets
ROBUST_RESIDUAL = 0.1  # residual from which on a pixel counts less [display value]
BACKGROUND_RIDGE = 1.0  # rays' worth of the background staying as it is


class Photometry(Closing):
    """Photometric state of a fit: exposures (view, 6) and background (3,); owns sums on the device until `close`.

    Where settings ask for neither it holds nothing and both stay as they are, as they do of images of channels.
    """

    def __init__(self, images: ImagePyramid, views: Views, settings: FitSettings, tiles: int):
        self._images, self._views, self._settings, self._tiles = images, views, settings, tiles
        self.exposures = np.tile(NEUTRAL_EXPOSURE, (len(views), 1))
        self.background = views.background
        self._ranges = views.ranges if views.channels else None
        self._learns = settings.learn_background and not views.shows_silhouettes
        if settings.learn_background and views.shows_silhouettes:
            log.warning("images with alpha say themselves where the background is; it is not learned")
        if self._learns:
            self.background = mean_colour(views)
        active = settings.exposure or self._learns
        self._sums = PhotometricSums(len(views), tiles) if active else None

    @property
    def behind(self) -> np.ndarray:
        """The background in the units of the fit: of channels 0..1 over their ranges."""
        background = np.array(self.background, float)
        if self._ranges is None:
            return background
        return (background - self._ranges[:, 0]) / np.ptp(self._ranges, axis=1)

    def close(self) -> None:
        """Free the device memory."""
        if self._sums is not None:
            self._sums.close()

    def look(self, buffer: RayBuffer, step: int, parts: int = 1) -> None:
        """Take in a step's pixels, of `parts` rays each; every so often let exposures and background follow."""
        if self._sums is None:
            return
        store = self._images.store
        call = (store.views, self._tiles, parts, buffer.set_behind(self.behind), ROBUST_RESIDUAL)
        add_photometry(buffer.fields, store.fields, self._sums.fields, *call)
        if (step + 1) % UPDATE_INTERVAL == 0:
            moments, behind = self._sums.take(SUM_DECAY if step + 1 >= FIRST_STEP else 0.0)
            if self._learns:
                self.background = step_background(self.background, behind)
            if self._settings.exposure and step + 1 >= FIRST_STEP:
                self.exposures = normalise_exposures(exposures_of(moments, EXPOSURE_RIDGE))
                self._images.set_exposures(self.exposures)

    def state(self) -> dict[str, np.ndarray]:
        """All that later steps depend on, as arrays by name: what was found, and the sums so far."""
        none = np.zeros((0, NUMBERS_A_VIEW)), np.zeros(0)
        moments, behind = none if self._sums is None else self._sums.numbers()
        found = {"exposures": np.array(self.exposures, float), "background": np.array(self.background, float)}
        return {**found, "moments": moments, "behind": behind}

    def put(self, state: Mapping[str, np.ndarray]) -> None:
        """Set all that `state` gave."""
        self.exposures, self.background = state["exposures"], tuple(state["background"].tolist())
        if self._settings.exposure:
            self._images.set_exposures(self.exposures)
        if self._sums is not None:
            self._sums.put(state["moments"], state["behind"])

    def record(self) -> dict[str, Any]:
        """What was found, in plain numbers, for a volume's provenance."""
        if not self._settings.exposure:
            return {}
        fitted = zip(self._views.names, self.exposures.round(5).tolist(), strict=True)
        return {"exposures": [[name, *numbers] for name, numbers in fitted]}


def mean_colour(views: Views) -> tuple[float, float, float]:
    """Mean colour of the images where they count, 0..1: where a learned background starts."""
    total, count = np.zeros(3), 0
    for i in range(len(views)):
        colours, mask = views.rgb(i)[::4, ::4], views.mask(i)
        some = colours.reshape(-1, 3) if mask is None else colours[mask[::4, ::4]]
        total, count = total + some.sum(0, dtype=float), count + len(some)
    red, green, blue = (total / max(count, 1)).tolist()
    return red, green, blue


def step_background(background: Sequence[float], sums: np.ndarray) -> tuple[float, float, float]:
    """Background after a Newton step, within 0..1.

    The image is linear in it, with the slope T, so the loss has the slope sum w T (image - truth) and the second
    derivative sum w T^2; `sums` (2, 3) are these two.
    """
    red, green, blue = np.clip(np.asarray(background) - sums[0] / (sums[1] + BACKGROUND_RIDGE), 0, 1).tolist()
    return red, green, blue
