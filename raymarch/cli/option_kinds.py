"""Kinds of command-line options: numbers in an interval, several numbers, a colour, and records of options."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

LARGEST, LEAST = 1e30, 1e-30  # of numbers, and of what lies between two: single precision ends there


class Numbers(click.ParamType):
    """Option of whole numbers or floats with commas between: one of some counts of them."""

    def __init__(self, kind: type, *counts: int, name: str = ""):
        self.kind, self.counts, self.name = kind, counts, name or ",".join(["n"] * counts[-1])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        with contextlib.suppress(ValueError):
            numbers = [self.kind(part) for part in value.split(",")]
            if len(numbers) in self.counts:
                return numbers[0] if len(numbers) == 1 else numbers
        shape = param.metavar if param is not None and param.metavar else self.name
        self.fail(f"{value!r}: want {' or '.join(map(str, self.counts))} numbers, {shape}", param, ctx)


class Real(click.ParamType):
    """Option of a number in an interval; not a number is in none."""

    name = "number"

    def __init__(self, low: float, high: float, cure: str = ""):
        self.low, self.high, self.cure = low, high, cure

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        with contextlib.suppress(ValueError):
            if self.low <= (number := float(value)) <= self.high:
                return number
        cure = f"; {self.cure}" if self.cure else ""
        self.fail(f"{value!r}: want a number from {self.low:g} to {self.high:g}{cure}", param, ctx)


class Whole(Real):
    """Option of a whole number in an interval."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        if number != int(number):
            self.fail(f"{value!r}: want a whole number{f'; {self.cure}' if self.cure else ''}", param, ctx)
        return int(number)


class Interval(Numbers):
    """Option of two numbers, the first the less."""

    def __init__(self) -> None:
        super().__init__(float, 2)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        low, high = super().convert(value, param, ctx)
        if not (-LARGEST < low < high < LARGEST and high - low > LEAST):
            apart = f", apart by more than {LEAST:g}" if low < high else ""
            self.fail(f"{low:g},{high:g}: want LOW,HIGH, the first the less{apart}, within {LARGEST:g}", param, ctx)
        return [low, high]


class Box(Numbers):
    """Option of a box: six numbers, its lower corner and its upper."""

    def __init__(self) -> None:
        super().__init__(float, 6, name="x0,y0,z0,x1,y1,z1")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        numbers = super().convert(value, param, ctx)
        lower, upper = numbers[:3], numbers[3:]
        if not all(low < high for low, high in zip(lower, upper, strict=True)):
            self.fail(f"{value!r}: want the lower corner, then the upper, {self.name}", param, ctx)
        return [lower, upper]


class Colour(click.ParamType):
    """Option of a colour: a name, or r,g,b."""

    name = "colour"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from raymarch.data.views import require_colour
        from raymarch.errors import RaymarchError

        if value == "":  # as of a variable of the shell that is not set
            return None
        try:
            return require_colour(value)
        except RaymarchError as error:
            self.fail(str(error), param, ctx)


@contextlib.contextmanager
def as_usage() -> Iterator[None]:
    """Within it what a rule of the package refuses is wrong usage, said by the name of the option that gave it."""
    from raymarch.errors import RaymarchError

    try:
        yield
    except RaymarchError as error:
        name, space, rest = str(error).partition(" ")
        options = click.get_current_context().command.params
        said = next((one.opts[0] for one in options if one.name == name), name)
        raise click.UsageError(f"{said}{space}{rest}") from error


def require_not_given(names: Sequence[str], why: str) -> None:
    """UsageError for the first of a command's options that stands on its line, where it would have no effect."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} {why}; leave it out")


def packed(record: type, name: str) -> Callable[[Any], Any]:
    """Decorator of a command that takes one record of the options it has, under a name, in place of the options."""

    def wrapped(command: Any) -> Any:
        @functools.wraps(command)
        def run(**given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in dataclasses.fields(record) if field.name in given}
            return command(**given, **{name: record(**own)})

        return run

    return wrapped
