"""Declaration of argument rules: beside the fields of records, and over functions.

`step: float = held(number(1e-3, 1e6), 0.5)` in a frozen dataclass whose `__post_init__` calls `hold(self)`; over a
function `@checked(volume=VOLUME, camera=CAMERA)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

from raymarch.arguments.checks import Check
from raymarch.arguments.similar_names import unknown_names
from raymarch.errors import ArgumentNameError, RaymarchError


class Record(Protocol):
    """Record: an instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


P = ParamSpec("P")
R = TypeVar("R")


def checked_field(check: Check, default: object) -> Any:
    """Dataclass field with a rule, which `validate_fields` applies to it."""
    return field(default=default, metadata={"check": check})


def validate_fields(record: Record, of: str = "") -> None:
    """Validation of a frozen dataclass by its fields' rules; `of` is what errors call the record, if anything."""
    for each in fields(record):
        if "check" in each.metadata:
            name = f"{of}: {each.name}" if of else each.name
            object.__setattr__(record, each.name, each.metadata["check"](name, getattr(record, each.name)))


def suggest_names(record: type[R]) -> type[R]:
    """Decorator of a record: a field that there is not, or one that is missing, is answered by what may be meant.

    Of a record that is made of another value by its `of`, the message says so.
    """
    init, maker = record.__init__, getattr(record, "of", None)
    made_of = (
        ""
        if maker is None
        else f"; rm.{record.__name__}.of({next(iter(inspect.signature(maker).parameters))}) makes one"
    )

    @wraps(init)
    def by_name(self: R, *args: Any, **values: Any) -> None:
        try:
            call_by_name(init, record.__name__, self, *args, **values)
        except ArgumentNameError as error:
            raise ArgumentNameError(f"{error}{made_of}") from None

    record.__init__ = by_name  # type: ignore[method-assign, assignment]
    return record


def call_by_name(function: Callable, name: str, /, *args: Any, **values: Any) -> Any:
    """Call of a function; ArgumentNameError, with what may be meant, for names that are not its arguments'."""
    try:
        return function(*args, **values)
    except TypeError as error:
        if isinstance(error, RaymarchError):
            raise
        signature = inspect.signature(function)
        try:
            signature.bind(*args, **values)
        except TypeError as misfit:
            raise ArgumentNameError(_name_error(name, signature, values, misfit)) from None
        raise


def _name_error(name: str, signature: inspect.Signature, values: Mapping[str, Any], misfit: TypeError) -> str:
    """What is wrong with the names of a call, and what may be meant."""
    several = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
    known = [n for n, p in signature.parameters.items() if n not in ("self", "cls") and p.kind not in several]
    if unknown := [each for each in values if each not in signature.parameters]:
        return f"{name}: {unknown_names(unknown, known, 'argument')}"
    return f"{name}: {misfit}; its arguments are {', '.join(known)}"


def checked(**rules: Check) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator for argument validation: rules for a function's arguments, applied in order before it is called."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = {name: _with_call_cure(rule, function, signature) for name, rule in rules.items()}

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as misfit:
                raise ArgumentNameError(
                    _name_error(function.__qualname__.removesuffix(".__init__"), signature, kwargs, misfit)
                ) from None
            for name, rule in own.items():
                if name in bound.arguments:
                    bound.arguments[name] = rule(name, bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        call.rules = own  # type: ignore[attr-defined]  # for who asks what is checked
        return call

    return wrap


def _with_call_cure(rule: Check, function: Callable, signature: inspect.Signature) -> Check:
    """A rule that wants a class of the package, with how the function is called as its cure."""
    owner, _, name = function.__qualname__.rpartition(".")
    if rule.kind is None or rule.cure or (owner and name != "__init__"):
        return rule
    needed = [n for n, p in signature.parameters.items() if p.default is p.empty and p.kind != p.VAR_KEYWORD]
    plot = "plot." if function.__module__.startswith("raymarch.plot") else ""
    return replace(rule, cure=f"call rm.{plot}{owner or name}({', '.join(n for n in needed if n != 'self')})")
