"""Numbers of an owner of device memory that are set one by one: those that come together are one launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from raymarch.kernels.field.numbers import numbers_in


def set_numbers(fields: Any, **values: Any) -> None:
    """Set fields that have one scalar, vector or matrix each, by name.

    The same names in the same order are one kernel for each tree of fields.
    """
    flat = np.concatenate([np.ravel(np.asarray(value, float)) for value in values.values()])
    numbers_in(flat, fields, tuple(values))
