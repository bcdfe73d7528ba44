"""Units of a file's axes, made into one where they differ."""

from __future__ import annotations

from collections.abc import Sequence

METRES = {
    "angstrom": 1e-10, "Å": 1e-10, "nm": 1e-9, "nanometer": 1e-9, "um": 1e-6, "µm": 1e-6, "μm": 1e-6,
    "micron": 1e-6, "micrometer": 1e-6, "mm": 1e-3, "millimeter": 1e-3, "cm": 1e-2, "centimeter": 1e-2,
    "dm": 0.1, "decimeter": 0.1, "m": 1.0, "meter": 1.0,
}  # fmt: skip


def in_one_unit(units: Sequence[str]) -> tuple[list[float], str, tuple[str, ...]]:
    """Factors of the axes' lengths that make them lengths in the first one's unit, that unit, and remarks.

    Units that are not known are kept where they are all the same; else they are remarked on, and there is none.

    Example:
        >>> in_one_unit(["mm", "mm", "um"])[:2]
        ([1.0, 1.0, 0.001], 'mm')
    """
    first = units[0]
    if all(unit == first for unit in units):
        return [1.0] * len(units), first, ()
    if any(unit not in METRES for unit in units):
        told = ", ".join(unit or "none" for unit in units)
        return [1.0] * len(units), "", (f"has axes in several units ({told}); their numbers are taken as they are",)
    return [times(unit, first) for unit in units], first, ()


def times(unit: str, into: str) -> float:
    """Factor that makes a length in one unit one in another; 1 where either is not known.

    Example:
        >>> times("mm", "µm"), times("reference frame", "µm")
        (1000.0, 1.0)
    """
    return float(f"{METRES[unit] / METRES[into]:.12g}") if unit in METRES and into in METRES else 1.0
