"""Empty-space skipping threshold: the extinction that is too thin for anybody to see."""

from __future__ import annotations

import numpy as np

from raymarch.device.grid import Grid
from raymarch.geometry.pose import corners_of
from raymarch.rendering.march_settings import March
from raymarch.volumes.volume import Volume

INVISIBLE = 5e-6  # of the brightest colour, or 1: what a ray may lose by skipping, over the whole box


def skip_invisible(grid: Grid, volume: Volume, march: March, most: float | None = None) -> None:
    """Empty-space skipping of a grid's cells so thin that nobody sees it: none where nothing is too thin to count.

    Through a transfer function those alone whose values all have opacity 0, so that no bit of the image depends on it.
    `most` is the largest of the features, up to their sign, where they are not the volume's own.
    """
    mode = march.rule
    if march.transfer is not None:
        grid.refresh_through(march.transfer)
    elif not volume.activation.density_rule.signed and mode.ends:
        segments = 2 * volume.boxes - 1  # through nested boxes, each as long as one in units of its own
        corners = corners_of(volume.world_from_index, volume.box_shape)  # in NDC, where it lies there
        longest = segments * float(np.linalg.norm(np.ptp(corners, axis=0)))
        grid.refresh_occupancy(INVISIBLE / (longest * brightest(volume, most)))


def brightest(volume: Volume, most: float | None = None) -> float:
    """Upper bound of the volume's colours, 1 or more: by the addition theorem |Y_lm| <= sqrt((2l + 1) / 4 pi)."""
    if most is None:
        features = (volume if volume.bricks is None else volume.bricks).features
        most = max(float(features.max(initial=0)), -float(features.min(initial=0)))
    per_band = (2 * np.arange(volume.degree + 1) + 1) ** 1.5 / np.sqrt(4 * np.pi)
    return max(float(volume.activation.colour_rule.forward(most * float(per_band.sum()))), 1.0)
