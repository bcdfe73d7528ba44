"""Hostile and clumsy uses of raymarch, by area: what is done, and what must come of it.

`case` says what a case is, `place` where it happens, `child` runs it, `judge` rules; the other modules are the list.
"""

from __future__ import annotations

import importlib

from hostile_cases.case import Case

AREAS = (
    "transforms",
    "poses",
    "images",
    "sets",
    "hdf5",
    "sparse",
    "volumes",
    "scans",
    "words",
    "outputs",
    "surroundings",
    "limits",
    "values",
    "own",
    "results",
    "lifetimes",
    "signals",
    "disks",
)


def all_cases() -> list[Case]:
    """Every case, in the order of the areas."""
    return [case for area in AREAS for case in importlib.import_module(f"hostile_cases.{area}").CASES]
