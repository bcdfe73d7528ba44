"""Exposures: gain and offset a channel of an image against what all images agree on, in closed form from sums."""

from __future__ import annotations

import numpy as np

from raymarch.arguments.checks import Numbers

NEUTRAL_EXPOSURE = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
MOMENTS = 5  # sums a channel: weight, x, y, x^2 and x y
MIN_OPAQUE_ALPHA = 0.999  # alpha from which a pixel tells an exposure
# of an image as it was taken: beyond, a channel of a pixel is clipped
MIN_UNCLIPPED, MAX_UNCLIPPED = 0.5 / 255, 254.5 / 255
MAX_GAIN, MAX_OFFSET = 4.0, 0.5  # two stops; half of all there is


def moments(x: np.ndarray, y: np.ndarray, weight: np.ndarray | float = 1.0) -> np.ndarray:
    """Sums (5, channel) over pixels of weight, x, y, x^2 and x y, for (pixel, channel) seen `y` of a common `x`.

    Example:
        >>> moments(np.ones((4, 3)), np.zeros((4, 3)))[:, 0].tolist()
        [4.0, 4.0, 0.0, 4.0, 0.0]
    """
    w = np.broadcast_to(weight, x.shape)
    return np.stack([w.sum(0), (w * x).sum(0), (w * y).sum(0), (w * x * x).sum(0), (w * x * y).sum(0)])


def exposures_of(sums: np.ndarray, ridge: tuple[float, float]) -> np.ndarray:
    """Exposures (..., 6), three gains and three offsets, of least squares from `moments` (..., 5, 3).

    What is least is the sum of weight (gain x + offset - y)^2, and of ridge[0] (gain - 1)^2 + ridge[1] offset^2, so
    that where little was seen, or all of one brightness, an exposure stays near the neutral one.

    Example:
        >>> x = np.random.default_rng(0).uniform(size=(50, 3))
        >>> exposures_of(moments(x, 2 * x - 0.1), (1e-9, 1e-9)).round(6).tolist()
        [2.0, 2.0, 2.0, -0.1, -0.1, -0.1]
    """
    n, x, y, xx, xy = np.moveaxis(sums, -2, 0)
    xx, xy, n = xx + ridge[0], xy + ridge[0], n + ridge[1]
    determinant = xx * n - x * x
    gain = np.clip((xy * n - x * y) / determinant, 1 / MAX_GAIN, MAX_GAIN)
    offset = (y - gain * x) / n  # the least beside that gain
    return np.concatenate([gain, np.clip(offset, -MAX_OFFSET, MAX_OFFSET)], axis=-1)


def normalise_exposures(exposures: Numbers) -> np.ndarray:
    """Exposures (view, 6) of the same images against a common one so bright that gains have the geometric mean 1 and
    offsets the mean 0 in each channel.

    A common image a x + b in place of x takes gains / a and offsets - gain b / a: nobody could tell the two apart.

    Example:
        >>> normalise_exposures([[2.0, 1, 1, 0, 0, 0], [8.0, 1, 1, 0, 0, 0]])[:, 0].tolist()
        [0.5, 2.0]
    """
    gain, offset = np.split(np.asarray(exposures, float), 2, axis=-1)
    gain = gain / np.exp(np.log(gain).mean(0))
    return np.concatenate([gain, offset - gain * (offset.mean(0) / gain.mean(0))], axis=-1)
