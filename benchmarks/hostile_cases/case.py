"""One case: what is done in a folder of its own, and what must come of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FIT = "fit set --preset quick --steps 3 --resolution 8 --out out.h5"
REFUSED, WORKS, EITHER = "refused", "works", "either"


class Bad(Exception):
    """A probe found something lost, wrong, hanging or crashed."""


class Poor(Exception):
    """A probe found something right, but unhelpful."""


@dataclass(frozen=True)
class Case:
    """What is done and expected.

    Attributes:
        area, name: where it stands in the list.
        do: words of the command line (tuple), Python source (text), or a function of a `Place` that says what
            happened, and raises Bad or Poor.
        expect: "refused", "works", or "either": works and is right, or is refused plainly.
        says: pattern of what must be said: in a refusal the name of what is wrong, else of stdout and stderr.
        set_up: function of the folder, before.
        check: function of the folder and the `Done`, after; an AssertionError means a wrong result.
        makes: patterns of files that may come; changes: of files that may change.
        fresh: a Python process of its own, with `flags`, not a fork of one that has imported everything; `script` as
            an installed program, whose folder is not on Python's path.
        environment: variables that differ; None takes one out.
        seconds: of CPU that it may take. memory: MB beyond the imports that it may take.
        needs: what it needs of the system: "linux", "root", "mount", "immutable", "pty".
        foreign: exceptions besides RaymarchError that are right, as Python's own TypeError for an unknown keyword is.
        known: why it is poor, where that is known and will stay.
    """

    area: str
    name: str
    do: tuple[str, ...] | str | Callable
    expect: str = WORKS
    says: str = ""
    set_up: Callable | None = None
    check: Callable | None = None
    makes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    fresh: bool = False
    script: bool = False
    flags: tuple[str, ...] = ()
    environment: dict[str, str | None] = field(default_factory=dict)
    seconds: float = 20.0
    memory: float = 1500.0
    needs: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    known: str = ""


@dataclass(frozen=True)
class Area:
    """Builders of the cases of one area; `do` may be one text of words for the shell, or a tuple of them."""

    name: str

    def refused(self, name: str, do, says: str, set_up=None, **more: Any) -> Case:
        """A command that must be refused in a line that matches `says`."""
        more.setdefault("memory", 200.0)
        return Case(self.name, name, words(do), REFUSED, says, set_up, **more)

    def works(self, name: str, do, set_up=None, **more: Any) -> Case:
        """A command that must work."""
        return Case(self.name, name, words(do), WORKS, set_up=set_up, **more)

    def either(self, name: str, do, says: str, set_up=None, **more: Any) -> Case:
        """A command that must work, or be refused in a line that matches `says`."""
        return Case(self.name, name, words(do), EITHER, says, set_up, **more)

    def python_refused(self, name: str, source: str, says: str, **more: Any) -> Case:
        """Python that must end in a RaymarchError of one line that matches `says`."""
        more.setdefault("memory", 200.0)
        return Case(self.name, name, source, REFUSED, says, **more)

    def python_works(self, name: str, source: str, **more: Any) -> Case:
        """Python that must run to its end; its assertions say what is right."""
        return Case(self.name, name, source, WORKS, **more)

    def python_either(self, name: str, source: str, says: str, **more: Any) -> Case:
        """Python that must run to its end, or end in a RaymarchError that matches `says`."""
        return Case(self.name, name, source, EITHER, says, **more)

    def probe(self, name: str, do: Callable, **more: Any) -> Case:
        """A function that does it all by itself."""
        return Case(self.name, name, do, **more)


def words(do) -> tuple[str, ...]:
    """The words of a command line."""
    return tuple(shlex.split(do)) if isinstance(do, str) else tuple(do)
