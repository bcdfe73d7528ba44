"""Digest of an HDF5 file whose datasets are too large to be held together: of those of its parts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

Part = tuple[str, list[int], str]  # type, shape and SHA-256 in hexadecimal of a dataset


def digest_of(parts: Mapping[str, Part], notes: Mapping[tuple[str, str], np.ndarray]) -> bytes:
    """SHA-256, in hexadecimal, of the type, shape and SHA-256 of every dataset, then of every attribute but itself.

    Args:
        parts: of a dataset by its name.
        notes: attributes by owner, which is / or a dataset, and name.
    """
    lines = [f"dataset {name} {kind} {shape} {digest}\n" for name, (kind, shape, digest) in sorted(parts.items())]
    for (owner, name), value in sorted(notes.items()):
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        lines.append(f"attribute {owner} {name} {value.dtype.str} {list(value.shape)} {digest}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest().encode()
