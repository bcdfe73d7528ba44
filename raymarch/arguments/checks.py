"""Argument rules: what a value must be, and the one-line error that says so; `arguments.declared` applies them."""

from __future__ import annotations

import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, SupportsInt, TypeAlias

import numpy as np

from raymarch.arguments.similar_names import did_you_mean
from raymarch.errors import RaymarchError

MAX_NUMBER = 1e30  # of any number: kernels compute in single precision, and what they sum up must stay finite there
MAX_COORDINATE = 1e9  # world units from the origin, and pixels of a focal length: single precision is at its end there
PLAIN_TYPES = (int, float, complex, str, bytes, list, tuple, dict, set, type(None))
PLURAL_VERBS = {"is": "are", "has": "have"}


class Wrong(Exception):
    """Refusal of a value: what came, in words that follow the name, from "is" or "has" on, and a cure of its own."""

    def __init__(self, came: str, cure: str = ""):
        self.came, self.cure = came, cure


class MisreadValue(ValueError):
    """Refusal of a value that is shown as it came, with what to do instead."""

    def __init__(self, cure: str):
        super().__init__(cure)
        self.cure = cure


@dataclass(frozen=True)
class Check:
    """Argument rule: called with a name and a value it returns the value as it is used, or raises RaymarchError.

    Attributes:
        wanted: in words.
        read: the value as it is used; raises Wrong, TypeError, ValueError or OverflowError for what cannot be.
        cure: what to do instead.
        kind: the class, of a rule that wants one of the package; `checked` says how the function is called.

    Example:
        >>> number(0, 1)("share", 2)
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: share is 2, want a number from 0 to 1
    """

    wanted: str
    read: Callable[[Any], Any]
    cure: str = ""
    kind: type | None = None

    def __call__(self, name: str, value: object) -> Any:
        try:
            return self.read(value)
        except RaymarchError:
            raise
        except Wrong as wrong:
            verb, rest = wrong.came.split(" ", 1)
            several = name.endswith("s") and not name.endswith("ss")
            came, cure = f"{PLURAL_VERBS[verb] if several else verb} {rest}", wrong.cure or self.cure
        except MisreadValue as meant:
            cures = (self.cure, meant.cure) if self.kind else (meant.cure,)
            came, cure = f"is {describe_value(value)}", "; ".join(filter(None, cures))
        except (TypeError, ValueError, OverflowError):
            came, cure = f"is {describe_value(value)}", self.cure
        raise RaymarchError(f"{name} {came}, want {self.wanted}" + (f"; {cure}" if cure else ""))


def describe_value(value: object) -> str:
    """Short description of a value for a message, on one line.

    Example:
        >>> describe_value(np.zeros((2, 4))), describe_value("wide"), describe_value(len)
        ('a float64 array (2, 4)', "'wide'", 'a function')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and value.size <= 6:
        value = value.tolist()
    if isinstance(value, np.ndarray):
        return f"{_with_article(str(value.dtype))} array {value.shape}"
    if isinstance(value, np.generic):
        return str(value)[:60]
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], PLAIN_TYPES):
        more = f" and {len(value) - 1} more" if len(value) > 1 else ""
        return f"a {type(value).__name__} of {describe_value(value[0])}{more}"
    if isinstance(value, PLAIN_TYPES):
        return " ".join(reprlib.repr(value).split())
    return "a function" if inspect.isroutine(value) else _with_article(type(value).__name__)


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeio" else f"a {noun}"


def _real(value: object) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError
    return float(value)


def interval_text(low: float, high: float, above: bool, below: bool) -> str:
    """Interval in words, `above` without its lower end, `below` without its upper."""
    lower, upper = (str(n) if isinstance(n, int) else f"{n:g}" for n in (low, high))
    if above:
        return f"between {lower} and {upper}" if below else f"over {lower} and at most {upper}"
    return f"{lower} or more and less than {upper}" if below else f"from {lower} to {upper}"


def in_interval(
    x: float | np.ndarray, low: float, high: float, above: bool, below: bool
) -> bool | np.bool_ | np.ndarray:
    """Interval test of numbers; NaN is in none."""
    return ((x > low) if above else (x >= low)) & ((x < high) if below else (x <= high))


def number(
    low: float = -MAX_NUMBER,
    high: float = MAX_NUMBER,
    *,
    above: bool = False,
    below: bool = False,
    unit: str = "",
    cure: str = "",
) -> Check:
    """Rule for a number of an interval, as float."""

    def read(value: object) -> float:
        x = _real(value)
        if not in_interval(x, low, high, above, below):
            raise ValueError
        return x

    words = f"a number {interval_text(low, high, above, below)}" + (f" [{unit}]" if unit else "")
    return Check(words, read, cure)


def whole(low: int, high: int, *, cure: str = "") -> Check:
    """Rule for a whole number of an interval, as int; 64.0 is one too, as it comes from a file."""

    def read(value: SupportsInt) -> int:
        x = _real(value)
        if not (x.is_integer() and low <= int(value) <= high):
            raise ValueError
        return int(value)

    return Check(f"a whole number {interval_text(low, high, False, False)}", read, cure)


def one_of(*names: str | int, cure: str = "") -> Check:
    """Rule for a choice: one of some names or whole numbers."""

    def read(value: object) -> str | int:
        if not isinstance(value, str):
            value = _real(value)
        if value not in names:
            raise MisreadValue("; ".join(filter(None, (did_you_mean(value, names), cure))))
        return names[names.index(value)]

    return Check(f"one of {', '.join(map(str, names))}", read, cure)


def some_of(*names: str) -> Check:
    """Rule for a selection: one or more of some names, as a tuple; a name alone is one."""

    def read(value: Iterable[str]) -> tuple[str, ...]:
        several = (value,) if isinstance(value, str) else tuple(value)
        for one in several:
            if not isinstance(one, str) or one not in names:
                raise Wrong(f"has {describe_value(one)}", did_you_mean(one, names))
        if not several:
            raise ValueError
        return several

    return Check(f"some of {', '.join(names)}", read)


def _flag(value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _callable(value: object) -> Callable:
    if not callable(value) or isinstance(value, type):
        raise TypeError
    return value


def _path(value: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if isinstance(value, list | tuple):
        raise Wrong(
            f"is {describe_value(value)}", "give one; slices and images are read by the folder that they lie in"
        )
    if hasattr(value, "read") and hasattr(value, "name"):
        raise Wrong(f"is {describe_value(value)}", "give its name")
    if not isinstance(os.fspath(value), str):
        raise TypeError
    if "\0" in os.fspath(value):
        raise Wrong("has a null character", "choose another name")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # halves of a surrogate pair
        raise Wrong("has a character that no file's name can have", "choose another name") from None
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


flag = Check("True or False", _flag)
callback = Check("a function", _callable)
path = Check("a path, text or pathlib.Path", _path)
text = Check("a text", _text)


def instance_of(kind: type, wanted: str, cure: str = "") -> Check:
    """Rule for an instance of one class of the package."""

    def read(value: object) -> object:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return Check(wanted, read, cure, kind)


def optional(check: Check) -> Check:
    """Rule for an optional value: what another rule says, or None."""
    return replace(check, wanted=f"{check.wanted}, or None", read=lambda x: None if x is None else check.read(x))


# What a user may give as an array: nested lists and tuples of numbers too. A union with Any, not ArrayLike, as the
# body of a checked function sees what its rule has made of it: an array.
Numbers: TypeAlias = "np.ndarray | Any"
Colour: TypeAlias = "str | Sequence[float] | np.ndarray"  # as the rule `colour` reads it
NAMED_COLOURS = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}
MAX_DISPLAY_VALUE = 8.0  # of display values: what is beyond it counts to 255


def array(
    *shape: int | str,
    low: float = -MAX_NUMBER,
    high: float = MAX_NUMBER,
    above: bool = False,
    below: bool = False,
    cure: str = "",
) -> Check:
    """Rule for an array of a shape, as float64: numbers of an interval; letters of the shape stand for one or more."""

    def read(value: object) -> np.ndarray:
        given = numeric(value)
        fits = [n == m if isinstance(m, int) else n > 0 for n, m in zip(given.shape, shape, strict=False)]
        if given.ndim == 0 and shape:
            raise TypeError
        if given.ndim != len(shape) or not all(fits):
            raise Wrong(f"has shape {given.shape}")
        require_within(given, low, high, above, below, cure)
        return given.astype(float)

    size = str(shape[0]) if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    what = f"{size} numbers" if shape else "a number"
    return Check(f"{what} {interval_text(low, high, above, below)}", read)


def vector(count: int, low: float = -MAX_NUMBER, high: float = MAX_NUMBER, *, above: bool = False) -> Check:
    """Rule for a vector: so many numbers of an interval, as a tuple."""
    check = array(count, low=low, high=high, above=above)

    def read(value: object) -> tuple[float, ...]:
        try:
            return tuple(check.read(value).tolist())
        except Wrong:
            raise ValueError from None  # so few are shown as they came

    return Check(check.wanted, read)


def numeric(value: object, masks: bool = False) -> np.ndarray:
    """Array of real numbers of whatever type; Wrong for texts, ragged lists, objects and the like.

    With `masks` booleans are taken too, as uint8 0 and 1.
    """
    if type(value).__module__.split(".")[0] in ("SimpleITK", "nibabel"):  # of which NumPy makes something, but no array
        raise Wrong(f"is {describe_value(value)}", _as_array(value))
    try:
        given = np.asarray(value)
    except Exception:  # whatever a foreign __array__ raises
        raise Wrong(f"is {describe_value(value)}", _as_array(value)) from None
    if masks and given.dtype.kind == "b":
        given = given.view(np.uint8)
    if given.dtype.kind not in "iuf":
        raise Wrong(f"is {describe_value(value)}")
    if np.ma.is_masked(value):  # NumPy would take what lies under the mask
        raise Wrong(f"has {int(np.ma.count_masked(value)):,} masked", "put numbers there by filled(number)")
    return given


def _as_array(value: object) -> str:
    """What makes an array of another library's object; or ""."""
    library = type(value).__module__.split(".")[0]
    if library == "torch":
        single = ".float()" if "bfloat16" in str(getattr(value, "dtype", "")) else ""
        return f"pass it.detach().cpu(){single}.numpy()"
    if library == "nibabel" and hasattr(value, "dataobj"):
        return "pass np.asanyarray(it.dataobj) and it.affine, or rm.load its file"
    if library == "SimpleITK":
        return "pass SimpleITK.GetArrayFromImage(it).T, or SimpleITK.WriteImage(it, 'a.nrrd') and rm.load that"
    return ""


def with_cure(check: Check, cure_of: Callable[[Any], str]) -> Check:
    """Rule that says, of what another refuses, what that may have been meant as: `cure_of(value)`, or ""."""

    def read(value: object) -> Any:
        try:
            return check.read(value)
        except (Wrong, TypeError, ValueError, OverflowError) as error:
            cure = cure_of(value)
            if isinstance(error, RaymarchError) or not cure:
                raise
            raise (Wrong(error.came, cure) if isinstance(error, Wrong) else MisreadValue(cure)) from None

    return replace(check, read=read)


def shape_of(value: object) -> tuple[int, ...] | None:
    """Shape of an array of numbers, however given; None of what is none."""
    try:
        return numeric(value).shape
    except Wrong:
        return None


def channels_cure(shape: tuple[int, ...] | None, spatial: tuple[int, ...], channels: Sequence[int] = (3,)) -> str:
    """What to do with an array whose channels lie elsewhere than behind the axes of space, or are too many; or ""."""
    if shape is None or len(shape) != len(spatial) + 1:
        return ""
    if shape[1:] == spatial and shape[0] in channels:
        return "its channels come first: pass np.moveaxis(it, 0, -1)"
    if shape[:-1] == spatial[::-1] and shape[-1] in channels and spatial != spatial[::-1]:
        return "its axes are z, y, x: pass np.swapaxes(it, 0, 2)"
    if shape[:-1] == spatial and shape[-1] == 4 and 3 in channels:
        return "it has a fourth channel, alpha: pass it[..., :3]"
    return ""


def _display(value: object) -> np.ndarray:
    given = numeric(value)
    if given.size == 0:
        raise Wrong(f"has shape {given.shape}", "an image of no pixels cannot be compared")
    if given.dtype == np.uint8:
        return given / 255.0
    require_within(given, -MAX_NUMBER, MAX_NUMBER)
    if given.max() > MAX_DISPLAY_VALUE:
        raise Wrong(f"has {given.max():.3g} at its brightest", "divide it by 255, or give it as uint8")
    return given.astype(float)


display = Check("numbers in 0..1, or uint8", _display)


def require_within(
    given: np.ndarray, low: float, high: float, above: bool = False, below: bool = False, cure: str = ""
) -> None:
    """Bounds check of an array: Wrong, with the number and its index, unless all are within."""
    with np.errstate(all="ignore"):
        ends = (given.min(), given.max()) if given.size else ()
        if all(in_interval(end, low, high, above, below) for end in ends):  # NaN is one of them
            return
        where = tuple(int(i) for i in np.argwhere(~in_interval(given, low, high, above, below))[0])
    place = f" at {where[0] if len(where) == 1 else where}" if where else ""
    raise Wrong(f"is {given[where]}{place}", cure if np.isfinite(given[where]) else "")


def _colour_cure(value: object) -> str:
    shape = shape_of(value)
    if isinstance(value, str):
        try:
            from matplotlib.colors import to_rgb

            return f"say {','.join(f'{c:.3g}' for c in to_rgb(value))}"
        except ValueError:
            return ""
    if shape == (4,):
        return "leave the fourth, alpha, out"
    three = np.asarray(value).tolist() if shape == (3,) else [0.0]
    if 1 < max(three) <= 255 and min(three) >= 0:
        return f"of 0..255 it is {','.join(f'{c / 255:.3g}' for c in three)}"
    if shape == () and isinstance(value, (int, float)) and 0 <= value <= 1:
        return f"a grey is {','.join([f'{value:g}'] * 3)}"
    return ""


def _colour(value: object) -> tuple[float, ...]:
    if isinstance(value, str):
        value = NAMED_COLOURS.get(value) or [float(part) for part in value.split(",")]
    return vector(3, 0, 1).read(value)


colour = with_cure(Check("white, black or three numbers in 0..1 such as 0.5,0.5,1", _colour), _colour_cure)
# what a record holds, and the shapes of read-only arrays
RecordState = tuple[dict[str, Any], dict[str, tuple[int, ...]]]


class ReadOnly:
    """Record whose arrays nobody writes to; nor to those of its copies by pickle or `copy`, which could be else.

    An array that is broadcast, and takes no memory, takes none in a copy either.
    """

    def __getstate__(self) -> RecordState:
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        shapes = {name: array.shape for name, array in arrays.items() if not array.flags.writeable}
        return {name: _unrepeated(value) if name in shapes else value for name, value in vars(self).items()}, shapes

    def __setstate__(self, state: RecordState) -> None:
        values, shapes = state
        for name, value in values.items():
            # What is broadcast is read-only, to its own shape too.
            vars(self)[name] = np.broadcast_to(value, shapes[name]) if name in shapes else value


def _unrepeated(array: np.ndarray) -> np.ndarray:
    """What is not repeated of an array: of an axis along which all is the same, the first."""
    return array[tuple(slice(1) if step == 0 else slice(None) for step in array.strides)]
