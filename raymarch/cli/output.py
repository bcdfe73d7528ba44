"""Output of the command line: one line each, without what would steer a terminal, on streams that are open."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Iterator

import click

from raymarch.errors import decode_names, escape

QUOTED = re.compile(r"'([^']+)'")  # what a usage error is about
MAX_LINE = 800  # characters
NOTES_KEY = "raymarch: notes"  # key of a context's `meta`: those that were said
_words: Callable[[str], str] = str


def set_up_streams() -> None:
    """Make stdout, stderr and the log fit to be written to."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file opened would get its number, and what is printed to it
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            own = stream.encoding or "ascii"
            encoding = "utf-8" if codecs.lookup(own).name == "ascii" else own  # of a shell that says nothing of letters
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    logging.basicConfig(level=logging.WARNING, handlers=[_Notes()])


def drop_output() -> None:
    """Have what is still to be written to stdout go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def printable(text: object) -> str:
    """Text with all that is not printable as escapes: names of files may hold newlines and colour codes.

    Example:
        >>> printable("two\\nlines")
        'two\\\\nlines'
    """
    text = str(text)
    if len(text) > MAX_LINE:  # a name of thousands of characters, which nobody reads
        text = f"{text[: MAX_LINE // 2]} ... {text[-MAX_LINE // 2 :]}"
    return escape(text)


def print_result(text: str) -> None:
    """Result line on stdout."""
    click.echo(printable(text))


def print_note(text: str) -> None:
    """Note on stderr; where that is gone, nothing: the work goes on."""
    with contextlib.suppress(OSError):
        click.echo(printable(text), err=True)


def usage(error: click.UsageError, guess: str = "") -> None:
    """Usage error, in the lines that click makes of it, and what may be meant."""
    text = io.StringIO()
    error.show(file=text)
    *lines, last = text.getvalue().splitlines()
    for line in lines:
        print_note(line)
    print_note(f"{last.removesuffix('.')}; {guess}" if guess else last)


def guess_of(error: click.UsageError) -> str:
    """What may be meant by a choice that there is not; `mistakes` has the verbs and options."""
    from raymarch.arguments.similar_names import did_you_mean

    given = QUOTED.search(error.message)
    if given is None or not error.ctx:
        return ""
    if isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.Choice):
        return did_you_mean(given[1], error.param.type.choices)
    return ""


def translate(words: Callable[[str], str]) -> None:
    """Have the package's messages said in the words of the verb that runs."""
    global _words
    _words = words


def translated(message: str) -> str:
    """Message of the package in the words of the verb that runs."""
    return _words(message)


class _Notes(logging.Handler):
    """Warnings of the package as notes, each once a verb: some read a file twice, its summary first."""

    def emit(self, record: logging.LogRecord) -> None:
        text = translated(record.getMessage())
        context = click.get_current_context(silent=True)
        said: set[str] = context.find_root().meta.setdefault(NOTES_KEY, set()) if context is not None else set()
        if text.strip() and text not in said:
            said.add(text)
            print_note(f"note: {text}")


class _KeptWarnings(logging.Handler):
    """Warnings of the package, kept."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def keep_warnings() -> Iterator[list[str]]:
    """Context whose list gets the warnings that are logged within it, for the JSON of a verb; they are said as well."""
    kept = _KeptWarnings()
    logging.getLogger().addHandler(kept)
    try:
        yield kept.messages
    finally:
        logging.getLogger().removeHandler(kept)


def print_json(record: dict) -> None:
    """JSON output: one line on stdout."""
    click.echo(json.dumps(plain(record), allow_nan=False))


def plain(value: object) -> object:
    """JSON-safe copy of a record: numbers that JSON cannot hold become null, tuples lists."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return decode_names(value) if isinstance(value, str) else value
