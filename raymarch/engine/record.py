"""Records that kernels see: frozen dataclasses to Python, plain objects to an engine.

Quadrants flattens each dataclass that a function is called with into arguments, one a field, and refuses what cannot be
one. What a record holds is looked up while a kernel is compiled, as in Taichi.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda decorator: decorator


This = TypeVar("This")
Class = TypeVar("Class", bound=type)
DATACLASS, RECORD = "__dataclass_fields__", "__record_fields__"


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(*, eq: bool = True) -> Callable[[Class], Class]:
    """Decorator of a class: `dataclass(frozen=True, eq=eq)`, by no attribute of which an engine knows it as one.

    `dataclasses.replace` and `dataclasses.fields` refuse it; `replace` and `record_fields` of this module take it.

    Example:
        >>> @record()
        ... class Place:
        ...     x: float
        ...     y: float = 0.0
        >>> replace(Place(1.0), y=2.0), dataclasses.is_dataclass(Place)
        (Place(x=1.0, y=2.0), False)
    """

    def decorate(cls: Class) -> Class:
        bases = [base for base in cls.__mro__[1:] if RECORD in vars(base)]
        for base in bases:  # whose fields are inherited
            setattr(base, DATACLASS, vars(base)[RECORD])
        made: Any = dataclasses.dataclass(frozen=True, eq=eq)(cls)
        setattr(made, RECORD, vars(made)[DATACLASS])
        made.__replace__ = replace  # of copy.replace
        for each in (made, *bases):
            delattr(each, DATACLASS)
        return cls

    return decorate


def replace(value: This, /, **changes: Any) -> This:
    """Copy of a record with some fields changed."""
    kept = {name: getattr(value, name) for name, field in getattr(value, RECORD).items() if field.init}
    return type(value)(**{**kept, **changes})


def record_fields(kind: Any) -> tuple[dataclasses.Field, ...]:
    """Fields of a record or of its class, as `dataclasses.fields` tells those of a dataclass."""
    return tuple(getattr(kind, RECORD).values())
