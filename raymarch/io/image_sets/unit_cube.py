"""Unit cube of instant-ngp: the part of the world that it traces, as our box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, short
from raymarch.io.image_sets.frames import number

SCALE, OFFSET = 0.33, 0.5  # of the world in the cube, where the file tells none
CUBE = ("aabb_scale", "scale", "offset")


def box_of_cube(document: Mapping[str, Any], where: str) -> np.ndarray | None:
    """Box (2, 3) that instant-ngp traces, in the world; None where the file says nothing about it.

    Its cube of side 1 about 0.5 holds `scale` times the world plus `offset`; `aabb_scale` times as much is traced. What
    is given as `aabb` is taken as it is.

    Example:
        >>> box_of_cube({"aabb_scale": 4, "scale": 0.5}, "transforms.json").tolist()
        [[-4.0, -4.0, -4.0], [4.0, 4.0, 4.0]]
    """
    if document.get("aabb") is not None:
        corners = document["aabb"]
        if (
            not isinstance(corners, list)
            or len(corners) != 2
            or any(not isinstance(c, list) or len(c) != 3 for c in corners)
        ):
            raise RaymarchError(f"{where}: aabb is {short(corners)}, want two corners of three numbers; correct it")
        box = np.array([[number(x, f"{where}: aabb") for x in corner] for corner in corners])
        if not (box[0] < box[1]).all():
            raise RaymarchError(f"{where}: aabb has no volume, want the lower corner, then the upper; correct it")
        return box
    if not any(key in document for key in CUBE):
        return None
    scale, side = number(document.get("scale", SCALE), f"{where}: scale"), document.get("aabb_scale", 1)
    side = number(side, f"{where}: aabb_scale")
    told = document.get("offset", OFFSET)
    told = told if isinstance(told, list) and len(told) == 3 else [told] * 3
    offset = np.array([number(one, f"{where}: offset") for one in told])
    if not (1e-9 < scale < 1e9 and 0 < side < 1e9 and (abs(offset) < 1e9).all()):
        raise RaymarchError(f"{where}: scale {scale:g}, aabb_scale {side:g} or offset is out of bounds; correct it")
    return (np.array([[-side / 2], [side / 2]]) + OFFSET - offset) / scale
