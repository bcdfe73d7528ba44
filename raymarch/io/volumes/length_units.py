"""Units of length: how files spell them, and those of a file's axes made into one where they differ."""

from __future__ import annotations

from collections.abc import Sequence

UNIT_METRES = {  # by short name
    "pm": 1e-12, "angstrom": 1e-10, "nm": 1e-9, "um": 1e-6, "mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0, "km": 1e3,
    "inch": 0.0254, "foot": 0.3048, "yard": 0.9144, "mile": 1609.344,
}  # fmt: skip
UNIT_WORDS = {
    "pm": "picometer", "angstrom": "angstrom", "nm": "nanometer", "um": "micrometer", "mm": "millimeter",
    "cm": "centimeter", "dm": "decimeter", "m": "meter", "km": "kilometer", "inch": "inch", "foot": "foot",
    "yard": "yard", "mile": "mile",
}  # fmt: skip
UNIT_SPELLINGS = {
    **{short: short for short in UNIT_METRES},
    **{word + end: short for short, word in UNIT_WORDS.items() for end in ("", "s")},
    **{word.replace("meter", "metre") + end: short for short, word in UNIT_WORDS.items() for end in ("", "s")},
    **dict.fromkeys(("µm", "μm", "micron", "microns", "\\u00b5m"), "um"),  # the last as ImageJ escapes it
    **dict.fromkeys(("Å", "å", "ångström", "ångstrom", "\u212b"), "angstrom"),
    **dict.fromkeys(("in", '"', "inches"), "inch"),
    **dict.fromkeys(("ft", "feet"), "foot"),
    "yd": "yard",
    "mi": "mile",
}


def short_unit(unit: str) -> str:
    """Short name of a unit of length, such as "um" of "microns" or "µm"; what is not known stays as it is.

    Example:
        >>> short_unit("Micrometers"), short_unit("pixel")
        ('um', 'pixel')
    """
    told = unit.strip()
    return UNIT_SPELLINGS.get(told) or UNIT_SPELLINGS.get(told.lower(), unit)


def common_unit(units: Sequence[str]) -> tuple[list[float], str, tuple[str, ...]]:
    """Factors of the axes' lengths that make them lengths in the first one's unit, that unit, and remarks.

    Units that are not known are kept where they are all the same; else they are remarked on, and there is none.

    Example:
        >>> common_unit(["mm", "millimeter", "um"])[:2]
        ([1.0, 1.0, 0.001], 'mm')
    """
    short = [short_unit(unit) for unit in units]
    first = short[0]
    if all(unit == first for unit in short):
        return [1.0] * len(units), first, ()
    if any(unit not in UNIT_METRES for unit in short):
        told = ", ".join(unit or "none" for unit in units)
        return [1.0] * len(units), "", (f"has axes in several units ({told}); their numbers are taken as they are",)
    return [unit_factor(unit, first) for unit in short], first, ()


def unit_factor(unit: str, into: str) -> float:
    """Factor that makes a length in one unit one in another; 1 where either is not known.

    Example:
        >>> unit_factor("mm", "µm"), unit_factor("reference frame", "µm")
        (1000.0, 1.0)
    """
    unit, into = short_unit(unit), short_unit(into)
    return (
        float(f"{UNIT_METRES[unit] / UNIT_METRES[into]:.12g}") if unit in UNIT_METRES and into in UNIT_METRES else 1.0
    )
