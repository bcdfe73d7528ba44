"""A fault: one changed line of the package, and the tests that should notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raymarch.errors import RaymarchError


@dataclass(frozen=True)
class Fault:
    """A line of the package as somebody might have mistyped it.

    Attributes:
        name: what is wrong with it, in a few words.
        file: of the package, from its folder on.
        old, new: text that occurs once in the file, and what stands there instead.
        tests: ids of pytest, of a few seconds together, that run until one fails.
        accepted: why it may survive: it changes no result, or none that is promised.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    accepted: str = ""

    @property
    def room(self) -> str:
        """The room of the package that it is in, and of kernels the closet."""
        parts = self.file.split("/")
        return "/".join(parts[: 2 if parts[0] == "kernels" else 1]).removesuffix(".py")

    def planted(self, package: Path) -> str:
        """The file's text with the fault; RaymarchError where the old text is not there once."""
        path = package / self.file
        if not path.is_file():
            raise RaymarchError(f"{self.name}: there is no {self.file}; give the file that has the line now")
        text = path.read_text(encoding="utf-8")
        if (found := text.count(self.old)) != 1 or self.old == self.new:
            raise RaymarchError(
                f"{self.name}: {self.old!r} is {found} times in {self.file}; give a text that is there once"
            )
        return text.replace(self.old, self.new)


def no_longer_match(faults: list[Fault], package: Path) -> list[str]:
    """A line for each fault whose text is not there once."""
    said = []
    for fault in faults:
        try:
            fault.planted(package)
        except RaymarchError as error:
            said.append(str(error))
    return said
