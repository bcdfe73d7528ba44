"""Rays: half lines in the world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, ReadOnly, array, instance_of, shape_of, with_cure
from raymarch.errors import RaymarchError


def _ray_cure(value: object) -> str:
    shape = shape_of(value)
    if shape == (3,):
        return "of one ray pass [it]"
    if shape and len(shape) > 2 and shape[-1] == 3:
        return "pass np.reshape(it, (-1, 3))"
    return "pass np.transpose(it)" if shape and len(shape) == 2 and shape[0] == 3 != shape[1] else ""


ORIGIN = with_cure(array("ray", 3, low=-MAX_COORDINATE, high=MAX_COORDINATE, cure="scale the world"), _ray_cure)
DIRECTION = with_cure(array("ray", 3), _ray_cure)


@dataclass(frozen=True, eq=False)
class Rays(ReadOnly):
    """Half lines `origin + t * direction`, t >= 0; directions are made unit vectors, so t is a distance in the world.

    Attributes:
        origin: (ray, 3) in world units.
        direction: (ray, 3) unit vectors.

    Raises RaymarchError for other shapes, non-finite numbers or a direction of length zero.

    Example:
        >>> Rays([[0, 0, -2]], [[0, 0, 3]]).direction.tolist()
        [[0.0, 0.0, 1.0]]
    """

    origin: np.ndarray
    direction: np.ndarray

    def __post_init__(self) -> None:
        origin, direction = ORIGIN("origin", self.origin), DIRECTION("direction", self.direction)
        if origin.shape != direction.shape:
            raise RaymarchError(
                f"rays have origins {origin.shape} and directions {direction.shape}, want (ray, 3) twice"
            )
        length = np.linalg.norm(direction, axis=1, keepdims=True)
        if not length.all():
            raise RaymarchError(f"ray {int(np.argmin(length))} has a direction of length 0; leave it out")
        for name, value in (("origin", origin), ("direction", direction / length)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.origin)


RAYS = instance_of(Rays, "Rays")
