"""Kinds of command-line options: numbers in an interval, several numbers, a colour, and records of options."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import click

MAX_NUMBER, MIN_EXTENT = 1e30, 1e-30  # of numbers, and of what lies between two: single precision ends there
# as documents print it
MINUS_SIGNS = str.maketrans(dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d", "-"))
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
SEPARATOR = r"\s*(?:,|;|:|\.\.+|[xX\u00d7*]|\s)\s*"  # numbers of one option, as 1920x1080, 0:100 or -100..300
DEGREE_UNITS = {"degrees": 1.0, "degree": 1.0, "deg": 1.0, "\u00b0": 1.0}
FACTOR_UNITS = {"x": 1.0, "\u00d7": 1.0}  # as in 2x


def number_of(text: str, units: Mapping[str, float] | None = None) -> float:
    """Number as it is typed, with a minus sign of any script and a unit that the option knows; ValueError for others.

    Example:
        >>> number_of("\u221220\u00b0", DEGREE_UNITS)
        -20.0
    """
    text = text.translate(MINUS_SIGNS).strip()
    for unit in sorted(units or {}, key=len, reverse=True):
        if text.lower().endswith(unit):
            return float(text[: -len(unit)]) * (units or {})[unit]
    return float(text)


def number_question(text: str) -> str:
    """Question after the number that a text with a decimal comma, a unit or a per cent sign may mean; else nothing.

    Example:
        >>> number_question("0,5"), number_question("300HU"), number_question("1e9")
        ('; did you mean 0.5?', '; did you mean 300?', '')
    """
    text = text.translate(MINUS_SIGNS).strip()
    if re.fullmatch(NUMBER, text):
        return ""  # a number as it is, such as 1e9
    if match := re.fullmatch(r"([-+]?\d+),(\d+)", text):
        whole, rest = match.groups()
        thousands = f"{whole}{rest} or " if len(rest) == 3 else ""
        return f"; did you mean {thousands}{whole}.{rest}?"
    if len(parts := re.split(SEPARATOR, text)) > 1 and len(set(parts)) == 1 and re.fullmatch(NUMBER, parts[0]):
        return f"; did you mean {parts[0]}?"
    if re.fullmatch(r"[-+]?\d{1,3}([,' \u202f\u00a0]\d{3})+", text):
        return f"; did you mean {re.sub('[^-+0-9]', '', text)}?"
    if match := re.fullmatch(rf"({NUMBER})\s*%", text):
        return f"; did you mean {float(match[1]) / 100:g}?"
    if match := re.fullmatch(rf"({NUMBER})\s*([kKM])", text):
        return f"; did you mean {float(match[1]) * (1e6 if match[2] == 'M' else 1e3):.10g}?"
    if match := re.fullmatch(rf"({NUMBER})\s*[^\W\d]+[.\d]?", text):
        return f"; did you mean {match[1]}?"
    return ""


class Numbers(click.ParamType):
    """Option of whole numbers or floats with commas between: one of some counts of them.

    Spaces, semicolons (then with decimal commas), colons, an x and brackets will do too.
    """

    def __init__(self, kind: type, *counts: int, name: str = "", unit: str = ""):
        self.kind, self.counts, self.name, self.unit = kind, counts, name or ",".join(["n"] * counts[-1]), unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        with contextlib.suppress(ValueError, OverflowError):
            numbers = [self._number(part) for part in self._parts(value)]
            if len(numbers) in self.counts:
                return numbers[0] if len(numbers) == 1 else numbers
        shape = param.metavar if param is not None and param.metavar else self.name
        wanted = f"want {' or '.join(map(str, self.counts))} numbers, {shape}"
        self.fail(f"{value!r}: {wanted}{self.meant(value)}", param, ctx)

    def _parts(self, text: str) -> list[str]:
        text = re.sub(r"[\[\](){}]", " ", text.translate(MINUS_SIGNS)).strip(" ,;\t")
        text = re.sub(rf"(?<=\d)\s*{self.unit}\b", "", text, flags=re.IGNORECASE) if self.unit else text
        text = re.sub(r"\s*,[\s,]*", ",", text)
        if ";" in text and "," in text:
            text = text.replace(",", ".")
        return re.split(SEPARATOR, text)

    def _number(self, text: str) -> Any:
        number = number_of(text)
        if self.kind is int and number != int(number):
            raise ValueError
        return self.kind(number)

    def meant(self, text: str) -> str:
        """Question after the numbers that a text may mean; else nothing."""
        numbers = re.findall(NUMBER, re.sub(r"(?<=\d)-(?=\d)", " ", text.translate(MINUS_SIGNS)))
        broken = self.kind is int and any(not one.lstrip("-+").isdecimal() for one in numbers)
        if len(numbers) in self.counts and len(numbers) > 1 and not broken:
            return f"; did you mean {','.join(numbers)}?"
        if len(numbers) > 1 and max(self.counts) > 2 and not text.strip().startswith("0,"):
            return ""  # too few of several, and no decimal comma
        return number_question(text) if 1 in self.counts and not broken else ""


class Size(Numbers):
    """Option of the size of images: SIDE, WIDTH,HEIGHT or WIDTHxHEIGHT, or a name of screens."""

    NAMED: ClassVar = {
        "480p": [854, 480], "720p": [1280, 720], "1080p": [1920, 1080], "1440p": [2560, 1440], "2160p": [3840, 2160],
        "hd": [1280, 720], "fullhd": [1920, 1080], "4k": [3840, 2160],
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(int, 1, 2, name="SIDE|WIDTH,HEIGHT", unit="px")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        named = self.NAMED.get(value.strip().lower()) if isinstance(value, str) else None
        return named or super().convert(value, param, ctx)


class Direction(Numbers):
    """Option of a direction: three numbers, or an axis with its sign."""

    AXES: ClassVar = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]}

    def __init__(self) -> None:
        super().__init__(float, 3, name="X,Y,Z")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and (
            axis := re.fullmatch(r"([-+]?)([xyzXYZ])", value.translate(MINUS_SIGNS).strip())
        ):
            sign = -1.0 if axis[1] == "-" else 1.0
            return [sign * one + 0.0 for one in self.AXES[axis[2].lower()]]
        return super().convert(value, param, ctx)


class Plane(Numbers):
    """Option of a half-space: NX,NY,NZ,OFFSET, or an axis and its end, as z>0.5."""

    def __init__(self) -> None:
        super().__init__(float, 4, name="NX,NY,NZ,OFFSET")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        form = rf"([xyz])\s*(>=|<=|>|<|=)\s*({NUMBER})"
        if isinstance(value, str) and (given := re.fullmatch(form, value.translate(MINUS_SIGNS).strip().lower())):
            normal, offset = Direction.AXES[given[1]], float(given[3])
            if given[2] == "=":
                self.fail(f"{value!r}: want a side of it; {given[1]}>{offset:g} or {given[1]}<{offset:g}", param, ctx)
            return [*normal, offset] if ">" in given[2] else [*(-one + 0.0 for one in normal), -offset]
        return super().convert(value, param, ctx)


class Real(click.ParamType):
    """Option of a number in an interval; not a number is in none. `units` may stand behind it, each with its factor."""

    name = "number"
    KIND = "a number"

    def __init__(self, low: float, high: float, cure: str = "", units: Mapping[str, float] | None = None):
        self.low, self.high, self.cure, self.units = low, high, cure, units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        with contextlib.suppress(ValueError):
            number = number_of(value, self.units) if isinstance(value, str) else float(value)
            if self.low <= number <= self.high:
                return number
        ends = (
            "" if isinstance(self, Whole) and self.low <= -MAX_NUMBER else f" from {self.low:.10g} to {self.high:.10g}"
        )
        cure = f"; {self.cure}" if self.cure else ""
        self.fail(f"{value!r}: want {self.KIND}{ends}{cure}{number_question(str(value))}", param, ctx)


class Whole(Real):
    """Option of a whole number in an interval."""

    KIND = "a whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        if number != int(number):
            cure = f"; {self.cure}" if self.cure else ""
            self.fail(f"{value!r}: want a whole number{cure}; did you mean {round(number)}?", param, ctx)
        return int(number)


class Duration(click.ParamType):
    """Option of a time: a number of `unit` seconds, or with units of its own, as 90s, 5m or 1h30m."""

    name = "time"
    FACTORS: ClassVar = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    PART = r"(\d+\.?\d*|\.\d+)\s*(ms|s|sec|secs|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"

    def __init__(self, unit: float = 1.0, low: float = -math.inf, high: float = math.inf, cure: str = ""):
        self.unit, self.low, self.high, self.cure = unit, low, high, cure

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        name, short = ("minutes", "m") if self.unit == self.FACTORS["m"] else ("seconds", "s")
        text = str(value).strip().lower()
        with contextlib.suppress(ValueError):
            if re.fullmatch(rf"(?:{self.PART}\s*)+", text):
                parts = re.findall(self.PART, text)
                number = sum(float(n) * self.FACTORS["ms" if u == "ms" else u[0]] for n, u in parts) / self.unit
            else:
                number = number_of(text)
            if self.low <= number <= self.high or not math.isfinite(self.low):
                return number
            name = f"a number from {self.low:g} to {self.high:g}"
            self.fail(f"{value!r}: want {name}{f'; {self.cure}' if self.cure else ''}", param, ctx)
        cure = f"; {self.cure}" if self.cure else ""
        self.fail(f"{value!r}: want {name}, such as 90{short}, 5m or 1h30m{cure}{number_question(text)}", param, ctx)


class Gigabytes(click.ParamType):
    """Option of an amount of memory [GB], or with a unit of its own, as 8GB, 8G, 500MB or 8GiB."""

    name = "GB"
    UNITS: ClassVar = {
        "gb": 1.0, "g": 1.0, "gib": 2**30 / 1e9, "mb": 1e-3, "m": 1e-3, "mib": 2**20 / 1e9, "tb": 1e3, "t": 1e3,
    }  # fmt: skip

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        with contextlib.suppress(ValueError):
            return number_of(value, self.UNITS) if isinstance(value, str) else float(value)
        self.fail(f"{value!r}: want gigabytes, such as 8, 8GB or 500MB{number_question(value)}", param, ctx)


class Interval(Numbers):
    """Option of two numbers, the first the less."""

    def __init__(self) -> None:
        super().__init__(float, 2)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        low, high = super().convert(value, param, ctx)
        if low > high:
            self.fail(f"{value!r}: want LOW,HIGH, the first the less; did you mean {high:g},{low:g}?", param, ctx)
        if not (-MAX_NUMBER < low < high < MAX_NUMBER and high - low > MIN_EXTENT):
            apart = f", apart by more than {MIN_EXTENT:g}" if low < high else ""
            self.fail(f"{low:g},{high:g}: want LOW,HIGH, the first the less{apart}, within {MAX_NUMBER:g}", param, ctx)
        return [low, high]

    def meant(self, text: str) -> str:
        """Question after the two numbers, those of radiology's width and level too."""
        if told := re.fullmatch(rf"W[WL:= ]*({NUMBER})[,;/ ]*[WL]+[L:= ]*({NUMBER})", text.strip(), re.IGNORECASE):
            width, level = float(told[1]), float(told[2])
            return f"; did you mean {level - width / 2:g},{level + width / 2:g}?"
        return super().meant(text)


class Box(Numbers):
    """Option of a box: six numbers, its lower corner and its upper."""

    def __init__(self) -> None:
        super().__init__(float, 6, name="x0,y0,z0,x1,y1,z1")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        numbers = super().convert(value, param, ctx)
        if not _is_box(numbers):
            others = ([*numbers[::2], *numbers[1::2]], [*numbers[3:], *numbers[:3]])
            other = next((one for one in others if _is_box(one)), None)
            question = f"; did you mean {','.join(f'{n:g}' for n in other)}?" if other else ""
            self.fail(f"{value!r}: want the lower corner, then the upper, {self.name}{question}", param, ctx)
        lower, upper = numbers[:3], numbers[3:]
        return [lower, upper]


def _is_box(numbers: Sequence[float]) -> bool:
    return all(low < high for low, high in zip(numbers[:3], numbers[3:], strict=True))


class Crop(Numbers):
    """Option of a part of an array: six whole numbers, the first index of each axis and one past the last."""

    def __init__(self) -> None:
        super().__init__(int, 6, name="X0,X1,Y0,Y1,Z0,Z1")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        numbers = super().convert(value, param, ctx)
        if not all(first < last for first, last in zip(numbers[::2], numbers[1::2], strict=True)):
            other = [numbers[i] for i in (0, 3, 1, 4, 2, 5)]
            question = f"; did you mean {','.join(map(str, other))}?" if _is_box(numbers) else ""
            self.fail(f"{value!r}: want of each axis the first index and one past the last, {self.name}{question}")
        return numbers


class Names(click.ParamType):
    """Option of names with commas between."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        names = tuple(one.strip() for one in value.split(","))
        if not all(names) or len(set(names)) < len(names):
            each = "" if all(names) else ", such as red,green,thermal"
            twice = "" if not all(names) else ", none of them twice"
            self.fail(f"{value!r}: want names with commas between{each}{twice}", param, ctx)
        return names


class Colour(click.ParamType):
    """Option of a colour: a name, r,g,b in 0..1 or #rrggbb; `words` stay as they are, and so do numbers of channels,
    of which there are not three."""

    name = "colour"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from raymarch.errors import RaymarchError
        from raymarch.views.views import require_colour

        if value == "":  # as of a variable of the shell that is not set
            return None
        if value in self.words:
            return value
        try:
            return require_colour(_colour_numbers(value) if isinstance(value, str) else value)
        except RaymarchError as error:
            told = str(error)
            with contextlib.suppress(ValueError):
                numbers = tuple(float(one) for one in str(value).split(","))
                if len(numbers) > 4:  # of a colour, or of one with alpha, it is a mistake
                    return numbers
            if isinstance(value, str):
                words = "".join(f", or {word}" for word in self.words)
                told = f"{value!r}: want white, black, #rrggbb or three numbers in 0..1 such as 0.5,0.5,1{words}"
                told += _colour_question(value)
            self.fail(told, param, ctx)


class Background(Colour):
    """Option of a background: a colour, or finite numbers, one a channel of a set that has others than red, green and
    blue, which is not read yet. White and black stay words, as channels have none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip().lower()
        if text in ("white", "black"):
            return text
        with contextlib.suppress(ValueError):
            numbers = tuple(float(one) for one in text.split(","))
            if all(map(math.isfinite, numbers)):
                return numbers
        return super().convert(value, param, ctx)


def _colour_numbers(value: str) -> Any:
    """A colour that is typed with spaces, brackets or as a web page has it, as numbers; another as it is."""
    from PIL import ImageColor

    text = value.strip().lower()
    if re.fullmatch(r"#[0-9a-f]{3}|#[0-9a-f]{6}|rgb\([^)]*\)|[a-z]+", text) and text not in ("white", "black"):
        with contextlib.suppress(ValueError):
            return tuple(part / 255 for part in ImageColor.getrgb(text)[:3])
    with contextlib.suppress(click.BadParameter):
        return tuple(Numbers(float, 3).convert(value, None, None))
    return text if text in ("white", "black") else value


def _colour_question(value: str) -> str:
    numbers = [float(one) for one in re.findall(NUMBER, value)]
    if len(numbers) == 3 and all(0 <= one <= 255 for one in numbers):
        return f"; did you mean {','.join(f'{one / 255:.3g}' for one in numbers)}?"
    if len(numbers) == 1 and 0 <= numbers[0] <= 1:
        return f"; did you mean {','.join([f'{numbers[0]:g}'] * 3)}?"
    return ""


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
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


def pack_options(record: type, name: str) -> Callable[[Any], Any]:
    """Decorator of a command that takes one record of the options it has, under a name, in place of the options."""

    def wrapped(command: Any) -> Any:
        @functools.wraps(command)
        def run(**given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in dataclasses.fields(record) if field.name in given}
            return command(**given, **{name: record(**own)})

        return run

    return wrapped
