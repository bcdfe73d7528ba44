"""Shading of a surface: the lamp that lights it and how it takes the light, or a picture of a lit ball in its place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from raymarch.arguments.checks import (
    MAX_COORDINATE,
    Colour,
    Numbers,
    array,
    colour,
    flag,
    instance_of,
    number,
    optional,
    vector,
)
from raymarch.arguments.declared import checked_field, suggest_names, validate_fields
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.kernels.modes.isosurface import ISOSURFACE

MATCAP = array("row", "column", 3, low=0, high=1)


@suggest_names
@dataclass(frozen=True)
class Shading:
    """Shading settings of a surface: ambient, diffuse and specular light of one lamp, after Blinn and Phong.

    What is seen is colour (ambient + diffuse max(n l, 0)) + specular max(n h, 0)^shininess: n the unit normal that
    faces the eye, l towards the lamp, h halfway between l and the eye (Blinn 1977).

    Attributes:
        ambient, diffuse: shares of the colour that are seen everywhere, and where the lamp is straight above.
        specular: brightness of the highlight, white.
        shininess: the highlight's power, 1 or more; larger is smaller.
        lamp: direction (3,) in the world from the scene towards a distant lamp; None is a headlight, at the eye.
        colour: of the surface, three numbers in 0..1, "white" or "black"; None is the volume's own, which is grey where
            it has no colours.
        smooth: whether normals are those of central differences, interpolated between samples, which are continuous; if
            not, of the trilinear field's own slope, which jumps from cell to cell.
        occlusion: ambient occlusion of mode "transfer": how far around a sample is looked for what keeps ambient light
            off [world unit], a few voxels; 0 for none.
        matcap: of mode "isosurface": picture (row, column, 3) in 0..1 of a lit ball, whose colour where its normal is
            the surface's is taken instead of all other light; None for none.

    Raises RaymarchError for numbers out of range and a direction of length zero.

    Example:
        >>> Shading(lamp=(0, 0, 2)).lamp
        (0.0, 0.0, 2.0)
    """

    ambient: float = checked_field(number(0, 8), 0.1)
    diffuse: float = checked_field(number(0, 8), 0.9)
    specular: float = checked_field(number(0, 8), 0.2)
    shininess: float = checked_field(number(1, 1000), 20.0)
    lamp: Numbers | None = checked_field(optional(vector(3, -MAX_COORDINATE, MAX_COORDINATE)), None)
    colour: Colour | None = checked_field(optional(colour), None)
    smooth: bool = checked_field(flag, True)
    occlusion: float = checked_field(number(0, 1e9, unit="world unit"), 0.0)
    matcap: Numbers | None = field(default=None, compare=False, metadata={"check": optional(MATCAP)})

    def __post_init__(self) -> None:
        validate_fields(self)
        if self.lamp is not None and not any(self.lamp):
            raise RaymarchError("lamp is (0.0, 0.0, 0.0), want a direction; leave it out for a headlight")

    def numbers(self) -> list[float]:
        """What kernels read, in the order of `kernels.light.shading`."""
        lamp = np.array((0.0, 0.0, 1.0) if self.lamp is None else self.lamp)
        own = (0.0, 0.0, 0.0) if self.colour is None else self.colour
        light = (float(self.lamp is None), self.ambient, self.diffuse, self.specular, self.shininess)
        return [
            *(lamp / np.linalg.norm(lamp)).tolist(),
            *light,
            *own,
            float(self.colour is not None),
            float(self.smooth),
            self.occlusion,
        ]


SHADING = instance_of(Shading, "rm.Shading(...)", "with rm.Shading() for its defaults")


NO_GRADIENT = "shading has a matcap, which is of a camera's picture alone and has no gradient; leave matcap out"

# A matcap is seen by a camera only. This stands for its mode wherever there is none.
WITHOUT_GRADIENT = replace(ISOSURFACE, no_image=NO_GRADIENT, no_gradient=NO_GRADIENT)


def matcap_colours(normals: np.ndarray, camera: Camera, matcap: np.ndarray) -> np.ndarray:
    """Colours (..., 3) of unit normals (..., 3) in the world by a matcap (row, column, 3), bilinear between pixels.

    Its ball fills it from edge to edge: the normal (x, y) in camera axes, x to the right and y up, is read at column
    (x + 1) / 2 and row (1 - y) / 2 of it. Sloan et al. 2001, "The lit sphere: a model for capturing NPR shading from
    art".

    Example:
        >>> ball = np.linspace(0, 1, 3)[:, None, None] * np.ones((3, 3, 3))
        >>> matcap_colours(np.array([0.0, 0, 1]), Camera.look_at((0, 0, 4), up=(0, 1, 0)), ball).round(3).tolist()
        [0.5, 0.5, 0.5]
    """
    seen = normals @ camera.world_from_camera[:3, :2]
    size = np.array(matcap.shape[1::-1])
    place = (np.array([1, -1]) * seen + 1) / 2 * size - 0.5
    place = np.clip(place, 0, size - 1)
    low = np.minimum(place.astype(int), np.maximum(size - 2, 0))
    (x, y), (u, v) = np.moveaxis(low, -1, 0), np.moveaxis((place - low)[..., None, :], -1, 0)
    x2, y2 = np.minimum(x + 1, size[0] - 1), np.minimum(y + 1, size[1] - 1)
    above, below = matcap[y, x] * (1 - u) + matcap[y, x2] * u, matcap[y2, x] * (1 - u) + matcap[y2, x2] * u
    return above * (1 - v) + below * v
