"""Suggestions for a name that is not known: *did you mean*, by spelling and by what other programs call it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from raymarch.arguments.names_elsewhere import SYNONYMS

MIN_SIMILARITY = 0.7  # of two spellings, by difflib's ratio


def known_as(given: str, names: Iterable[object]) -> list[str]:
    """Names that are one's own in another spelling, or what others call by it; none where no name is.

    Example:
        >>> known_as("MIP", ["additive", "maximum"]), known_as("X_Ray", ["x-ray"]), known_as("quikc", ["quick"])
        (['maximum'], ['x-ray'], [])
    """
    there = {_key(str(name)): str(name) for name in names}
    asked = _key(given)
    if asked in there:
        return [there[asked]]
    return [there[_key(ours)] for ours, called in SYNONYMS.items() if asked in called.split() and _key(ours) in there]


def is_habit(given: str) -> bool:
    """Whether a name is what others call something here, of this call or of another."""
    return any(_key(given) in called.split() for called in SYNONYMS.values())


def similar_names(given: object, names: Iterable[object]) -> list[str]:
    """Names that may be meant by one that is none of them, the likeliest first; none where nothing is near.

    Example:
        >>> (similar_names("MIP", ["additive", "maximum"]), similar_names("X-Ray", ["x-ray"]),
        ...  similar_names("lr", ["lr_colour", "steps"]))
        (['maximum'], ['x-ray'], ['lr_colour'])
        >>> similar_names("quikc", ["quick", "default"]), similar_names("quick", ["gold"])
        (['quick'], [])
    """
    if not isinstance(given, str) or not given:
        return []
    names = list(names)
    if known := known_as(given, names):
        return [name for name in known if name != "optimiser"] or known  # which has rates, where none is a setting
    there = {_key(str(name)): str(name) for name in names}
    asked = _key(given)
    near = difflib.get_close_matches(asked, list(there), 1, MIN_SIMILARITY)
    if not near and len(asked) >= 3:
        near = [key for key in there if key.startswith(asked) or (len(key) >= 4 and asked.startswith(key))][:1]
    return [there[key] for key in near]


def did_you_mean(given: object, names: Iterable[object]) -> str:
    """Question after a name that is not known, or "" where no name is near.

    Example:
        >>> did_you_mean("Maximum", ["additive", "maximum"])
        "did you mean 'maximum'?"
    """
    found = similar_names(given, names)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else ""


def unknown_names(unknown: Sequence[str], names: Iterable[str], what: str = "setting") -> str:
    """Message about names that are none of those there are: all there are, and what may be meant.

    Example:
        >>> unknown_names(["lr"], ["lr_density", "lr_colour"])
        "unknown setting lr; want some of lr_density, lr_colour; did you mean 'lr_density' or 'lr_colour'?"
        >>> unknown_names(["wings"], ["steps", "seconds"])
        'unknown setting wings; want some of steps, seconds'
    """
    names = list(names)
    near = [did_you_mean(one, names) for one in unknown]
    return "; ".join([f"unknown {what} {', '.join(unknown)}", f"want some of {', '.join(names)}", *filter(None, near)])


def _key(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(" ", "-").removeprefix("--").removeprefix(".")
