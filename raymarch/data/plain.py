"""Plain samples: densities and colours that are what they say, as the raw numbers of a volume."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from raymarch.arguments import arrays
from raymarch.arguments.arrays import Numbers, channels_cure, mended
from raymarch.arguments.checks import Check, Wrong
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import affine_of_box
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.samples import RAW, require_three_axes, spread_to

Field = Callable[[np.ndarray], Numbers]  # of points (..., 3) in the world
Samples = tuple[np.ndarray, np.ndarray, np.ndarray, Activation]  # density, features, world_from_index, activation
GREY = 0.7  # where no colour is told
FEW = 8  # of bytes: densities of more are values of a scan

log = logging.getLogger(__name__)


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
    density = mended(RAW, _density_cure)("density", density)
    require_three_axes(density)
    if density.dtype == np.uint8 and density.max() > FEW:
        log.warning(
            "density is uint8 up to %d, taken as extinction [1/world unit], which is opaque at once; scale it, or make"
            " an rm.ScalarVolume of a scan's values",
            density.max(),
        )  # fmt: skip
    if box is not None and spacing is not None:
        raise RaymarchError("box and spacing are both given, want one of them; the other follows")
    steps = np.array(density.shape) - 1
    if box is None:
        half = steps * (1 / steps.max() if spacing is None else np.asarray(spacing) / 2)
        box = np.stack([-half, half])
    rgb = GREY if colour is None else arrays.display("colour", _of_colours("colour", colour, density.shape))
    rgb = spread_to((*density.shape, 3), 0, 1)("colour", rgb)
    return _plain(density.astype(np.float32), rgb, affine_of_box(box, density.shape))


def _density_cure(value: object) -> str:
    return "of magnitudes pass np.abs(it)" if np.asarray(value).dtype.kind == "c" else ""


def _of_colours(name: str, value: Numbers, shape: tuple[int, ...]) -> Numbers:
    """Colours as they are: of one for all, or of one a sample; RaymarchError for any other shape, which NumPy would
    spread over samples that nobody meant."""

    def read(value: object) -> object:
        given = arrays.shape_of(value)
        if given is None or given in ((), (3,), (*shape, 3), (*shape, 1)):
            return value
        cure = channels_cure(given, shape)
        if given == shape:
            cure = "of greys pass it[..., None]"
        elif given == (4,):
            cure = "leave the fourth, alpha, out"
        raise Wrong(f"has shape {given}", cure or "give one colour for all, or one a sample")

    return Check(f"(3,) or {(*shape, 3)}", read)(name, value)


def _plain(density: np.ndarray, rgb: np.ndarray, world_from_index: np.ndarray) -> Samples:
    """Of sigma (x, y, z) and colour (x, y, z, 3), float32."""
    features = (rgb - np.float32(0.5)) / np.float32(Y00)
    return np.array(density), features, world_from_index, Activation("relu", 0.0, 1.0, "clamped")
