"""Adam: its settings are a frozen record, its moments live in the grid; and rates that change on a fit's way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from raymarch.arguments.checks import Check, instance_of, number, whole
from raymarch.arguments.declared import checked, checked_field, suggest_names, validate_fields
from raymarch.device.grid import Grid
from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import RESTORE_CURE
from raymarch.kernels import gpu_switches
from raymarch.kernels.fit.adam import adam
from raymarch.kernels.fit.adam_by_sample import adam_by_sample
from raymarch.volumes.activation import Activation

MAX_RATE = 100.0  # in raw units, in which a sample is empty at -20 and opaque at 5
LONG_FIT_STEPS = 1500  # steps, more of which make a fit a long one
MAX_COARSE_FACTOR = 5 / 3  # of what `coarse` says, in fits of 2,500 steps or more
MAX_BETA = 0.99999  # 1 less what is nearer to 1 is far off in single precision, and at last 0: the first step is NaN


def relative_length(progress: float, step: float) -> float:
    """How many times as many steps as the longest of the short ones a fit will have, 1 at least, by how far it is.

    Example:
        >>> [relative_length(0.5, step) for step in (0, 450, 750, 1500)]
        [1.0, 1.0, 1.0, 2.0]
    """
    return max(step / progress / LONG_FIT_STEPS, 1.0) if progress > 0 else 1.0


def raw_unit(activation: Activation) -> float:
    """Raw density that a step of rate 1 goes by: 1, but twice the start's where raw numbers are optical depths.

    Example:
        >>> raw_unit(Activation()), raw_unit(Activation("relu", shift=0.05))
        (1.0, 0.1)
    """
    return 2 * activation.shift if activation.density_rule.linear else 1.0


@suggest_names
@dataclass(frozen=True)
class Adam:
    """Adam optimiser with per-group learning rates, for the voxels that a step touched.

    Attributes:
        lr_density, lr_colour: first step sizes in raw units; of relu's density, whose raw numbers are optical depths,
            in units of twice the start's, so that no step kills a voxel for good.
        final: what both are multiplied by towards the end, exponentially reached; 1 for none of it.
        cooldown: last part of a fit in which both fall along a line to 0 besides; 1 for all of it, 0 for none.
        coarse: part of both rates at which cubes of 4^3 samples are moved as one, by the sum of their gradients, beside
            each sample's own step: what neighbours agree on is found sooner. In fits of more than 1,500 steps it is
            more, up to 5/3 of it from 2,500 on. 0 for none, as in nested boxes.
        harmonics: rate of harmonics above degree 0 at degree 1, in rates of colour; at 2 and 3 it is less, by the root
            of how many more there are. They have no momentum, and share their colour's second moment.
        decay: part of the rate of colour by which coefficients of harmonics above degree 0 fall towards 0 in each step
            that meets them, so that colour turns with the direction only where many rays say so.
        thinning: part of the rate of density by which a sample's falls in each step that meets it, times the share of
            light that passes a voxel of it, so that fog before a surface of its colour, which images hardly tell, goes.
            In fits of more than 1,500 steps it is less, so that all their steps together thin as much as so many. Of
            softplus that share of light is exact. None where densities are values seen through a table, or while
            `rm.refine` moves cameras.
        beta1, beta2, eps: as in Kingma and Ba 2015, but beta2 forgets as soon as beta1, for a sample is met but some
            hundred times, and so no step is longer than its rate. eps is against gradients of a mean over a step's
            rays, which are small: what one ray gives shrinks as 1 / rays, so that with many more than 16,384 a sample
            that few of them meet has gradients near 1e-8 and falls short of its step; take less then.

    Example:
        >>> Adam(lr_density=0.2).rates(0.5)[0] < 0.2
        True
    """

    lr_density: float = checked_field(number(0, MAX_RATE, above=True), 0.5)
    lr_colour: float = checked_field(number(0, MAX_RATE, above=True), 0.3)
    final: float = checked_field(number(0, 1, above=True), 1.0)
    cooldown: float = checked_field(number(0, 1), 1.0)
    coarse: float = checked_field(number(0, 10), 0.3)
    harmonics: float = checked_field(number(0, 10), 1.5)
    decay: float = checked_field(number(0, 1), 0.03)
    thinning: float = checked_field(number(0, 1), 0.06)
    beta1: float = checked_field(number(0, MAX_BETA), 0.9)
    beta2: float = checked_field(number(0, MAX_BETA), 0.9)
    eps: float = checked_field(number(1e-30, 1, below=True), 1e-8)

    def __post_init__(self) -> None:
        validate_fields(self)

    @checked(progress=number(0, 1))
    def rates(self, progress: float) -> tuple[float, float]:
        """Learning rates of density and colour at `progress` in 0..1 (Defazio et al. 2023: along a line to 0)."""
        decay = self.final**progress
        if self.cooldown > 0:
            decay *= min((1 - progress) / self.cooldown, 1.0)
        return self.lr_density * decay, self.lr_colour * decay

    @checked(progress=number(0, 1), step=whole(0, 1 << 62))
    def thinning_at(self, progress: float, step: int) -> float:
        """Thinning of a fit's `step`, from 0, at `progress` in 0..1: both tell how many steps there will be.

        Example:
            >>> Adam().thinning_at(0.5, 450), Adam().thinning_at(0.5, 15_000)
            (0.06, 0.003)
        """
        return self.thinning / relative_length(progress, step)

    def coarse_at(self, progress: float, step: int) -> float:
        """Part of the rates for cubes at `progress` in 0..1 of a fit, in its `step` from 0: more of it in long ones.

        Example:
            >>> [round(Adam().coarse_at(0.5, step), 6) for step in (450, 900, 15_000)]
            [0.3, 0.36, 0.5]
        """
        return self.coarse * min(relative_length(progress, step), MAX_COARSE_FACTOR)

    def farthest(self, activation: Activation, steps: int) -> float:
        """Raw density by which so many steps lift a sample at most, about: each is no longer than its rate, nor is that
        of the sample's cube.

        Example:
            >>> Adam(lr_density=0.5, coarse=0.3).farthest(Activation(), 2)
            1.5
        """
        return steps * self.lr_density * raw_unit(activation) * (1 + self.coarse * MAX_COARSE_FACTOR)

    def step(self, grid: Grid, age: int, progress: float, number: int, even: float | None = None) -> None:
        """Adam step of the grid; clears the gradient: step `number`, `age` steps after the moments began, in place of
        which `even` tells how many steps there will be, if given."""
        expected, (lr_density, lr_colour) = number if even is None else int(even), self.rates(progress)
        lr_density *= raw_unit(grid.activation)
        signed = grid.activation.density_rule.signed  # less of a value is no less opaque
        thinning = 0.0 if signed else self.thinning_at(progress, expected)
        nested = grid.boxes > 1  # where one box ends and the next begins a cube lies in both
        coarse = 0.0 if nested else self.coarse_at(progress, expected)
        above = max((grid.degree + 1) ** 2 - 1, 1)  # harmonics above degree 0
        lr_harmonics = self.harmonics * lr_colour * math.sqrt(3 / above)
        rates = (lr_density, lr_colour, lr_harmonics, self.beta1, self.beta2, self.eps)
        kernel = adam_by_sample if gpu_switches.chosen().adam_by_sample else adam
        kernel(grid.fields, grid.blocks, age, number, *rates, coarse, self.decay, thinning)


ADAM = instance_of(Adam, "rm.Adam(...)", "its settings go by their own names too, such as lr_density")


FACTOR = number(1e-3, 1e3)


def _changes(value: Iterable[Iterable[Any]]) -> list[tuple[int, float]]:
    return [(whole(0, 2**31 - 1).read(step), FACTOR.read(by)) for step, by in value]


CHANGES = Check("pairs of a step and a factor of 0.001 to 1000", _changes, RESTORE_CURE)


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
