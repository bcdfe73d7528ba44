"""World axes of a body: the sides that x, y and z point to, in the letters of medical images.

Letters: right or left, anterior or posterior, superior or inferior, each the side that an axis points to.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from raymarch.arguments.checks import Check

WORLDS = ("RAS", "LPS", "LAS")
DOWN_SIDES, LEFT_SIDES = "PI", "RA"  # sides that are shown below and on the left, as radiologists look at a body
OPPOSITE_SIDE = dict(zip("RLAPSI", "LRPAIS", strict=True))


def shown_right(side: str) -> tuple[bool, str, str]:
    """Whether a picture's axis to a side is turned around to lie as radiologists look at it, and the sides at its left
    and right end.

    Example:
        >>> shown_right("R"), shown_right("L")
        ((True, 'R', 'L'), (False, 'R', 'L'))
    """
    return _opposite_side(side, LEFT_SIDES)


def shown_up(side: str) -> tuple[bool, str, str]:
    """As `shown_right`, of the axis that goes up: whether it is turned, and the sides below and above."""
    return _opposite_side(side, DOWN_SIDES)


def right_and_up(across: int, sides: str) -> tuple[int, int]:
    """Axes that go to the right and upwards in a picture across one of three: where `sides` tells the body's, right or
    left goes across before anterior or posterior, and that before superior or inferior, which goes up.

    Example:
        >>> right_and_up(0, "PIL"), right_and_up(0, "")
        ((2, 1), (1, 2))
    """
    first, second = (axis for axis in range(3) if axis != across)
    turned = bool(sides) and "RLAPSI".index(sides[first]) > "RLAPSI".index(sides[second])
    return (second, first) if turned else (first, second)


def _opposite_side(side: str, backwards: str) -> tuple[bool, str, str]:
    far = OPPOSITE_SIDE[side] if side in backwards else side
    return side in backwards, OPPOSITE_SIDE[far], far


def _world(value: object) -> str:
    if not isinstance(value, str) or value.upper() not in (*WORLDS, ""):
        raise ValueError
    return value.upper()


WORLD_AXES = Check(f"one of {', '.join(WORLDS)}, or an empty text", _world)


def world_from_world(source: str, target: str) -> np.ndarray:
    """Affine (4, 4) that takes points of one world to another: x and y change sign between RAS and LPS.

    Where either is unknown, the numbers stay as they are.

    Example:
        >>> world_from_world("RAS", "LPS").diagonal().tolist()
        [-1.0, -1.0, 1.0, 1.0]
    """
    if not (source and target):
        return np.eye(4)
    return np.diag([1.0 if a == b else -1.0 for a, b in zip(source, target, strict=True)] + [1.0])


def sides_of(world_from_index: np.ndarray, world: str) -> str:
    """Sides that the array's axes point to, one letter each, by the world axis nearest to it; "" where it is unknown.

    Example:
        >>> sides_of(np.diag([-1.0, 1, 2, 1]), "RAS")
        'LAS'
    """
    if not world:
        return ""
    edges = world_from_index[:3, :3] / np.linalg.norm(world_from_index[:3, :3], axis=0)
    best = max(permutations(range(3)), key=lambda order: sum(abs(edges[order[j], j]) for j in range(3)))
    return "".join(world[row] if edges[row, j] > 0 else OPPOSITE_SIDE[world[row]] for j, row in enumerate(best))
