"""Read-only arrays of records, which stay so in copies."""

from __future__ import annotations

from typing import Any

import numpy as np

State = tuple[dict[str, Any], dict[str, tuple[int, ...]]]  # what a record holds, and the shapes of read-only arrays


class ReadOnly:
    """Record whose arrays nobody writes to; nor to those of its copies by pickle or `copy`, which could be else.

    An array that is broadcast, and takes no memory, takes none in a copy either.
    """

    def __getstate__(self) -> State:
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        shapes = {name: array.shape for name, array in arrays.items() if not array.flags.writeable}
        return {name: _once(value) if name in shapes else value for name, value in vars(self).items()}, shapes

    def __setstate__(self, state: State) -> None:
        values, shapes = state
        for name, value in values.items():
            # What is broadcast is read-only, to its own shape too.
            vars(self)[name] = np.broadcast_to(value, shapes[name]) if name in shapes else value


def _once(array: np.ndarray) -> np.ndarray:
    """What is not repeated of an array: of an axis along which all is the same, the first."""
    return array[tuple(slice(1) if step == 0 else slice(None) for step in array.strides)]
