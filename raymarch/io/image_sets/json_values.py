"""Values of the JSON documents of image sets: numbers, flags and matrices, each refused in one line."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from raymarch.errors import RaymarchError, short_value


def read_number(value: object, where: str) -> float:
    """Number of a file as a float; booleans are none, though Python says so; else RaymarchError.

    Example:
        >>> read_number(3, "frame 0: fl_x")
        3.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        cure = "export it again"
        if isinstance(value, str):
            with suppress(ValueError):
                cure = f"write {float(value):.10g} without quotation marks"
        raise RaymarchError(f"{where} is {short_value(value)}, want a number; {cure}")
    try:
        return float(value)
    except OverflowError:
        raise RaymarchError(f"{where} is over 1e308, want a number that a double holds; export it again") from None


def read_flag(value: object, where: str) -> bool:
    """Boolean of a file, or 0, 1 or null; a text is none, though Python takes "false" for true; else RaymarchError.

    Example:
        >>> read_flag(1, "frame 0: is_fisheye")
        True
    """
    if value is not None and (not isinstance(value, (bool, int, float)) or value not in (0, 1)):
        raise RaymarchError(f"{where} is {short_value(value)}, want true or false; export it again")
    return bool(value)


def read_matrix(value: object, where: str) -> np.ndarray:
    """Matrix (4, 4) f64 of four lists of four numbers, as a file has them, or of the first three; else RaymarchError.

    Example:
        >>> read_matrix([[1, 0, 0, 0]] * 4, "frame 0: pose").shape
        (4, 4)
        >>> read_matrix([[1, 0, 0, 5], [0, 1, 0, 6], [0, 0, 1, 7]], "frame 0: pose")[:, 3].tolist()
        [5.0, 6.0, 7.0, 1.0]
    """
    rows = isinstance(value, list) and len(value) in (3, 4) and all(isinstance(r, list) and len(r) == 4 for r in value)
    if not isinstance(value, list) or not rows:
        flat = isinstance(value, list) and len(value) == 16 and not any(isinstance(one, list) for one in value)
        cure = "write it in rows, as [[..], [..], [..], [0, 0, 0, 1]]" if flat else "export it again"
        raise RaymarchError(f"{where} is {short_value(value)}, want 4 rows of 4 numbers; {cure}")
    if len(value) == 3:  # as instant-ngp and nerfstudio take it too
        value = [*value, [0, 0, 0, 1]]
    return np.array([[read_number(x, f"{where}, row {i}") for x in row] for i, row in enumerate(value)])
