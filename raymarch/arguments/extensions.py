"""Extension points: records of a user's own (readers, formats) beside ours, checks of their parts, calls of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import Check, describe_value
from raymarch.arguments.declared import Record, validate_fields
from raymarch.errors import PROGRAM_FAULTS, RaymarchError, one_line, program_fault

MAX_NAME_LENGTH, MAX_MESSAGE_LENGTH = 60, 300  # characters of a name, and of what an exception says


class NamedRecord(Record, Protocol):
    """Extension record: a frozen dataclass with a name, and functions as fields."""

    @property
    def name(self) -> str: ...


T = TypeVar("T")
N = TypeVar("N", bound=NamedRecord)


def _name(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MAX_NAME_LENGTH:
        raise TypeError
    return value


NAME = Check(f"a text of one line, 1 to {MAX_NAME_LENGTH} characters", _name)


def callback_rule(call: str, gives: str) -> Check:
    """Rule for a callback that a record must have, called as `call`, that returns `gives`.

    Example:
        >>> callback_rule("detect(path)", "True or False")("detect", None)
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: detect is None, want a function detect(path) that returns True or False
    """
    return replace(checks.callback, wanted=f"a function {call} that returns {gives}")


def record_label(record: NamedRecord) -> str:
    """Name of a record for messages: its class and its own name.

    Example:
        >>> record_label(Reader("my set", lambda folder: True, lambda folder, split, **_: None))
        "reader 'my set'"
    """
    return f"{type(record).__name__.lower()} {describe_value(record.name)}"


def hold_parts(record: NamedRecord) -> None:
    """Validation of an extension record by its fields' rules; errors open with the record's class and name."""
    try:
        validate_fields(record)
    except RaymarchError as error:
        raise RaymarchError(f"{record_label(record)}: {error}") from None


def call_callback(
    record: NamedRecord,
    what: str,
    where: Path,
    *arguments: Any,
    kind: type[T] | tuple[type[T], ...],
    wanted: str,
    **options: Any,
) -> T:
    """Call of a record's callback, for an instance of `kind`; whatever it raises becomes one line that names it.

    Args:
        record: the object, with the function `what` as a field.
        where: the path that it is called for; errors of ours that open with it, and so say where, stay as they are.
        kind, wanted: the class of what it must give, and that in words.

    Raises RaymarchError from the exception of the function, or where it gives something else. An exception in a
    function of raymarch's own that no file is to blame for is told as a fault of raymarch's.
    """
    function: Callable[..., Any] = getattr(record, what)
    owner = record_label(record)
    try:
        value = function(*arguments, **options)
    except RaymarchError as error:
        if str(error).startswith(str(where)):
            raise
        raise RaymarchError(f"{owner}: {what} of {where}: {' '.join(str(error).split())}") from error
    except MemoryError as error:
        raise RaymarchError(f"{where}: there is no memory to {what} it; free some, or ask for less of it") from error
    except Exception as error:  # whatever a user's function raises
        if is_of_raymarch(function):
            if isinstance(error, PROGRAM_FAULTS):
                raise RaymarchError(f"{where}: {program_fault(error, what)}") from error
            raise RaymarchError(
                f"{where}: cannot {what} it ({one_line(error)[:MAX_MESSAGE_LENGTH]}); check it"
            ) from error
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:MAX_MESSAGE_LENGTH]}".removesuffix(": ")
        raise RaymarchError(f"{owner}: {what} of {where} raised {said}; mend it or check the path") from error
    if not isinstance(value, kind):
        raise RaymarchError(f"{owner}: {what} gave {describe_value(value)}, want {wanted}; return that from it")
    return value


def is_of_raymarch(function: object) -> bool:
    """Whether a record's function is one of raymarch's own."""
    return str(getattr(function, "__module__", "")).split(".")[0] == __name__.split(".")[0]


def call_detect(record: NamedRecord, path: Path) -> bool:
    """Answer of a record's `detect` for a path."""
    return bool(call_callback(record, "detect", path, path, kind=(bool, np.bool_), wanted="True or False"))


def choice_of_records(kind: type, records: Sequence[NamedRecord], public: str) -> Check:
    """Rule for a choice of records: one of ours by its name, in letters of either case, or one of a user's own.

    Args:
        kind: the records' class.
        records: ours.
        public: what users call the class, such as "rm.Reader".
    """

    def read(value: object) -> object:
        if isinstance(value, str):
            value = next((record for record in records if record.name.casefold() == value.casefold()), None)
        if not isinstance(value, kind):
            raise TypeError
        return value

    return Check(f"{', '.join(record.name for record in records)}, or an {public}", read)


def require_one(records: Sequence[N], where: object, argument: str) -> N | None:
    """Choice among the records that claim a path: the only one, or None where none does.

    Raises RaymarchError for two or more, with their names and how to choose one by an argument.
    """
    if len(records) > 1:
        names = [repr(record.name) for record in records]
        choices = " or ".join(f"{argument}={name}" for name in names)
        raise RaymarchError(f"{where}: {argument}s {' and '.join(names)} claim it alike; choose by {choices}")
    return records[0] if records else None
