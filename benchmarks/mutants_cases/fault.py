"""A fault: a piece of a function of the package, changed, and the tests that should notice.

A fault is addressed by the name of what it is in and by the piece's tokens, so it survives moved files and new line
breaks.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from raymarch.errors import RaymarchError

TOKEN = re.compile(r"\w+|[^\w\s]")


class Definition(NamedTuple):
    """Where a function, a class or a constant stands: a file of the package, and its first and last line."""

    file: str
    first: int
    last: int


@dataclass(frozen=True)
class Fault:
    """A piece of the package as somebody might have mistyped it.

    Attributes:
        name: what is wrong with it, in a few words.
        where: the function (`gather`), method (`Volume.crop`), class or constant it is in; `file:gather`, with the stem
            of the file, where the package has two that hold such a piece.
        old, new: a piece that occurs once there, whatever its line breaks, and what stands there instead.
        tests: ids of pytest, of a few seconds together, that run until one fails.
        accepted: why it may survive: it changes no result, or none that is promised.
    """

    name: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]
    accepted: str = ""

    def found(self, package: Path) -> tuple[str, int, int]:
        """The file of the package, and where the piece begins and ends; RaymarchError where it is not there once."""
        stem, _, name = self.where.rpartition(":")
        wanted = [token[0] for token in _tokens(self.old)]
        places = [
            (definition.file, start, end)
            for definition in _definitions(package).get(name, ())
            if stem in ("", Path(definition.file).stem)
            for start, end in _pieces(package / definition.file, definition, wanted)
        ]
        if len(places) != 1 or self.old == self.new:
            raise RaymarchError(
                f"{self.name}: {self.old!r} is {len(places)} times in {self.where}; give a piece that is there once"
            )
        return places[0]

    def planted(self, package: Path) -> tuple[Path, str]:
        """The file that holds the piece, and its text with the fault; RaymarchError where that is no Python."""
        file, start, end = self.found(package)
        text = (package / file).read_text(encoding="utf-8")
        changed = text[:start] + self.new.strip() + text[end:]
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise RaymarchError(f"{self.name}: with {self.new!r} {file} is no Python; write it otherwise") from error
        return package / file, changed


def room_of(fault: Fault, package: Path) -> str:
    """The room of the package that a fault is in, and of kernels the closet."""
    parts = fault.found(package)[0].split("/")
    return "/".join(parts[: 2 if parts[0] == "kernels" else 1]).removesuffix(".py")


def no_longer_match(faults: list[Fault], package: Path) -> list[str]:
    """A line for each fault whose piece is not there once, or that makes no Python."""
    said = []
    for fault in faults:
        try:
            fault.planted(package)
        except RaymarchError as error:
            said.append(str(error))
    return said


@cache
def _definitions(package: Path) -> dict[str, list[Definition]]:
    """By name, where the functions, classes and constants of all files stand."""
    found: dict[str, list[Definition]] = {}
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        for name, node in _named(ast.parse(path.read_text(encoding="utf-8")).body, ""):
            decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
            found.setdefault(name, []).append(Definition(file, min([node.lineno, *decorators]), node.end_lineno))
    return found


def _named(body, prefix: str):
    """Each definition of a body with its qualified name, inner ones too."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + node.name, node
            yield from _named(node.body, f"{prefix}{node.name}.")
            continue
        if not prefix and isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            if isinstance(first, ast.Name):
                yield first.id, node
        for inner in ("body", "orelse", "finalbody", "handlers"):
            yield from _named(getattr(node, inner, ()), prefix)


@cache
def _tokens_of_lines(path: Path) -> tuple[str, list[int], list[re.Match]]:
    """A file's text, where each line begins, and its tokens."""
    text = path.read_text(encoding="utf-8")
    begins = [0, *(match.end() for match in re.finditer("\n", text))]
    return text, begins, _tokens(text)


def _pieces(path: Path, definition: Definition, wanted: list[str]) -> list[tuple[int, int]]:
    """The first and last character of each run of those tokens in a definition."""
    text, begins, tokens = _tokens_of_lines(path)
    begin = begins[definition.first - 1]
    end = begins[definition.last] if definition.last < len(begins) else len(text)
    inside = [token for token in tokens if begin <= token.start() < end]
    words = [token[0] for token in inside]
    size = len(wanted)
    return [
        (inside[i].start(), inside[i + size - 1].end())
        for i in range(len(words) - size + 1)
        if words[i : i + size] == wanted
    ]


def _tokens(text: str) -> list[re.Match]:
    """Words and signs, without the comma before a closing bracket, which a formatter sets and takes away."""
    found = list(TOKEN.finditer(text))
    return [
        token
        for i, token in enumerate(found)
        if not (token[0] == "," and i + 1 < len(found) and found[i + 1][0] in ")]}")
    ]
