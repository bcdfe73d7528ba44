"""Learning rates of a running fit: those that it was given, and what they were multiplied by on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from raymarch.arguments.checks import Check, number, whole
from raymarch.errors import RaymarchError
from raymarch.fitting.settings.optimiser import Adam
from raymarch.io.files.hdf5 import CURE

FACTOR = number(1e-3, 1e3)


def _changes(value: Iterable[Iterable[Any]]) -> list[tuple[int, float]]:
    return [(whole(0, 2**31 - 1).read(step), FACTOR.read(by)) for step, by in value]


CHANGES = Check("pairs of a step and a factor of 0.001 to 1000", _changes, CURE)


class Rates:
    """Learning rates of a running fit, which may be changed between two steps.

    Attributes:
        given: optimiser that the fit began with.
        changes: (step, factor) of each change: what the given rates were multiplied by from that step on.

    Example:
        >>> rates = Rates(Adam(lr_density=0.5))
        >>> rates.multiply(100, 0.1)
        >>> rates.optimiser.lr_density, rates.record()
        (0.05, {'rates_multiplied': [[100, 0.1]]})
    """

    def __init__(self, given: Adam) -> None:
        self.given, self.changes = given, list[tuple[int, float]]()

    @property
    def factor(self) -> float:
        """Factor of the rates that were given."""
        return self.changes[-1][1] if self.changes else 1.0

    @property
    def optimiser(self) -> Adam:
        """Optimiser of the next step; RaymarchError where its rates are out of bounds."""
        given, by = self.given, self.factor
        return replace(given, lr_density=given.lr_density * by, lr_colour=given.lr_colour * by)

    def multiply(self, step: int, by: float) -> None:
        """Multiply the given rates from a step on; RaymarchError where they would be out of bounds, and stay."""
        before, self.changes = self.changes, [*self.changes, (step, by)]
        try:
            self.optimiser  # noqa: B018
        except RaymarchError:
            self.changes = before
            raise

    def record(self) -> dict[str, list[list[float]]]:
        """Changes in plain numbers, by the name that a volume's provenance has them by; {} if there were none."""
        return {"rates_multiplied": [[step, by] for step, by in self.changes]} if self.changes else {}
