"""Jacobian of one image in one call."""

from __future__ import annotations

import numpy as np

from raymarch.arguments.arrays import Colour, Numbers
from raymarch.arguments.declared import checked
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import EXPOSURE, NEUTRAL_EXPOSURE, Columns, columns_of
from raymarch.rendering.march_settings import SINGLE_RAYS, March
from raymarch.rendering.renderer import BACKGROUND
from raymarch.volumes.volume import VOLUME, AnyVolume


@checked(volume=VOLUME, camera=CAMERA, march=SINGLE_RAYS, background=BACKGROUND, exposure=EXPOSURE)
def jacobian(
    volume: AnyVolume,
    camera: Camera,
    parameters: Columns = ("pose",),
    *,
    march: March = March(),
    background: Colour | None = None,
    exposure: Numbers = NEUTRAL_EXPOSURE,
    pixels: Numbers | None = None,
) -> np.ndarray:
    """Jacobian d image / d parameters by forward mode, all columns in one pass over the rays, a dozen at a time.

    Args:
        volume, camera: what is seen, and from where.
        parameters: names of small groups, "background", "pose", "focal", "principal_point", "exposure", "step", "box",
            "lens", of each of which every number is a column; and `Parameters`, directions of whatever they hold, the
            volume's own numbers included, each of which is a column. Units as in `Parameters`.
        march: how rays are sampled.
        background, exposure: as in `Linearised`.
        pixels: indices of the pixels to look at, row by row; all if not given.

    Returns (pixel, 4, column): red, green, blue after exposure, and transmittance.

    Raises RaymarchError for a parameter that does not exist or that the mode of `march` does not see.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> jacobian(ball, Camera.look_at((0, -4, 0), width=8, height=8), ["pose", "focal"]).shape
        (64, 4, 8)
    """
    columns = columns_of(parameters, camera.lens)
    with Linearised(volume, camera, background=background, exposure=exposure, march=march, pixels=pixels) as seen:
        return seen.jacobian(columns)
