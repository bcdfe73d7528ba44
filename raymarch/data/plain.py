"""Plain samples: densities and colours that are what they say, as the raw numbers of a volume."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from raymarch.arguments import arrays
from raymarch.arguments.arrays import Numbers
from raymarch.data.activation import Activation
from raymarch.data.harmonics import Y00
from raymarch.data.samples import RAW, require_three_axes, spread_to
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import affine_of_box

Field = Callable[[np.ndarray], Numbers]  # of points (..., 3) in the world
Samples = tuple[np.ndarray, np.ndarray, np.ndarray, Activation]  # density, features, world_from_index, activation
GREY = 0.7  # where no colour is told


def of_function(sigma: Field, colour: Field | None, shape: Sequence[int], box: Numbers) -> Samples:
    """Samples of functions of the place, as many as `shape` says, the first and the last on the box's faces."""
    try:
        axes = [np.linspace(low, high, n) for low, high, n in zip(*np.asarray(box), shape, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        density = spread_to(shape)("sigma(points)", sigma(points))
        rgb = spread_to((*shape, 3))("colour(points)", GREY if colour is None else colour(points))
        return _plain(density, rgb, affine_of_box(box, shape))
    except MemoryError as error:
        raise RaymarchError(f"a volume of {shape} samples does not fit the memory ({error}); lower it") from error


def of_array(density: Numbers, colour: Numbers | None, box: Numbers | None, spacing: Numbers | None) -> Samples:
    """Samples of an array (x, y, z) and colours that broadcast to it, within `box` or `spacing` apart."""
    density = RAW("density", density)
    require_three_axes(density)
    if box is not None and spacing is not None:
        raise RaymarchError("box and spacing are both given, want one of them; the other follows")
    steps = np.array(density.shape) - 1
    if box is None:
        half = steps * (1 / steps.max() if spacing is None else np.asarray(spacing) / 2)
        box = np.stack([-half, half])
    rgb = GREY if colour is None else arrays.display("colour", colour)
    rgb = spread_to((*density.shape, 3), 0, 1)("colour", rgb)
    return _plain(density.astype(np.float32), rgb, affine_of_box(box, density.shape))


def _plain(density: np.ndarray, rgb: np.ndarray, world_from_index: np.ndarray) -> Samples:
    """Of sigma (x, y, z) and colour (x, y, z, 3), float32."""
    features = (rgb - np.float32(0.5)) / np.float32(Y00)
    return np.array(density), features, world_from_index, Activation("relu", 0.0, 1.0, "clamped")
