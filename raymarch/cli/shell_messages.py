"""Messages of the package in the words of the shell: an argument of Python's is told as the option of the verb."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection
from pathlib import Path

import click

from raymarch.cli.mistakes import TYPED_KEY

OPTION_OF_PLACE = {"channel": "--channel", "time": "--time-point", "level": "--level"}  # `options.place_options`
PYTHON_WORDS = re.compile(r"\brm\.[A-Za-z]|(?<![-\w<])[a-z][a-z_]*=(?=[\w'\"(\[{]|[,; )]|$)|\bin Python\b")
"""What a message of the shell has not, unless Python alone can do what it says."""

Rule = tuple[str, Callable[[re.Match, str, Collection[str]], str]]


def _drop(match: re.Match, place: str, options: Collection[str]) -> str:
    return ""


def _say(text: str) -> Callable[[re.Match, str, Collection[str]], str]:
    return lambda match, place, options: match.expand(text)


def _place(match: re.Match, place: str, options: Collection[str]) -> str:
    """Which of a file's channels: by the verb's option, or by a volume of that channel alone."""
    option, first, last = OPTION_OF_PLACE[match[1]], match[2], match[3]
    ends = f"{option} {first}" + (f" to {option} {last}" if last else "")
    if option in options:
        return f"choose one by {ends}"
    return f"take one out by raymarch convert {place} one.h5 {ends.split(' to ')[0]}"


def _spacing(match: re.Match, place: str, options: Collection[str]) -> str:
    if "--spacing" in options:
        return "(--spacing says another)"
    return f"(raymarch convert {place} scaled.h5 --spacing 0.5 writes it with another)"


def _nan(match: re.Match, place: str, options: Collection[str]) -> str:
    first = "--nan empty" if "--nan" in options else f"raymarch convert {place} whole.h5 --nan empty"
    return f"{first} takes them as its least value, --nan 0 as that number"


def _format(match: re.Match, place: str, options: Collection[str]) -> str:
    """Which of two formats: that of the name's suffix."""
    from raymarch.io.volumes.volume_file import FORMATS

    named = re.findall(r"format='([^']+)'", match[0])
    if "--format" in options:
        return f"choose by {' or '.join(f'--format {shlex.quote(one)}' for one in named)}"
    suffixes = [one.suffixes[0] for one in FORMATS if one.name in named and one.suffixes]
    return f"end its name in {' or '.join(suffixes)}" if suffixes else "give its name the suffix of one of them"


def _reader(match: re.Match, place: str, options: Collection[str]) -> str:
    return "move the files of one of them to another folder"


RULES: tuple[Rule, ...] = (
    (r"^(--[\w-]+ is .*, want .*), or None$", _say(r"\1")),
    (r" ?\((?:overwrite|resume|follow_links)=True(?: in Python)?\)", _drop),
    (r"follow_links=True, (?=--follow-links)", _drop),
    (r" \(--(?:channel|time-point|level) \d+(?: in the shell)?\)", _drop),
    (r" \(steps=\d+\)(?= alone)", _drop),
    (r"\bformat='[^']+' and channel=\d+ \((raymarch convert [^)]*)\)", _say(r"\1")),
    (r"\bbox=, (?=--box)", _drop),
    (r"; limit=\S+ would show them all", _drop),
    (r" \(rm\.find_cameras\)", _drop),
    (r", up=\([^)]*\) with rm\.orbit", _drop),
    (r", or rm\.start\('cpu'\) before", _drop),
    (r", or for_fit=False where they are not to be fitted", _say(", as by --downscale 2")),
    (r"\(rm\.load takes spacing=\)", _spacing),
    (r"\brm\.load takes spacing=", _say("raymarch convert takes --spacing")),
    (r"\bspacing= gives another place", _say("raymarch convert --spacing gives another place")),
    (r"\bgive steps=(\d+)", _say(r"give --steps \1")),
    (r"rm\.load\(\.\., nan='empty'\) or raymarch convert --nan empty takes them .*", _nan),
    (r"\bchoose one by (channel|time|level)=(\d+)(?: to \w+=(\d+))?", _place),
    (r"\bchoose by format='.*", _format),
    (r"\bchoose by reader='.*", _reader),
    (r", background=\([^)]*\) of rm\.load_views", _drop),
    (r" \(depth_unit of rm\.load_views\)", _drop),
    (
        r"\bgive it transfer=rm\.TransferFunction\.of_colormap\('viridis', low, high\)",
        _say("give it by --table viridis"),
    ),
    (r"\b(say|say it by) mode='([\w-]+)'", _say(r"\1 --mode \2")),
    (
        r"raw values need shape and dtype, both; offset goes",
        _say("raw values need --shape and --dtype, both; --offset goes"),
    ),
    (r"correct shape or dtype, or say by offset", _say("correct --shape or --dtype, or say by --offset")),
    (r"correct shape or dtype$", _say("correct --shape or --dtype")),
    (r", or take the innermost, volume\.nested\(0\)", _drop),
    (r"of plain densities (rm\.)", _say(r"of plain densities, in Python, \1")),
    (r"\brm\.refine moves", _say("raymarch fit --refine moves")),
    (r"\brm\.save writes", _say("raymarch convert writes")),
    (r"\bwith rm\.render\b", _say("with raymarch render")),
    (r"; give both, as in (rm\.fit\(.*)", _say(r"; leave it out here, and in Python \1")),
    (r"; (one of your own|say it there|others, and rm\.Mode)", _say(r"; in Python, \1")),
)


def shell_message(message: str, context: click.Context | None = None) -> str:
    """Message as a verb says it: arguments as options, and of a file that is not there what its name may mean.

    Example:
        >>> shell_message("new.h5: would be lost; choose another name, or --overwrite (overwrite=True in Python)")
        'new.h5: would be lost; choose another name, or --overwrite'
    """
    command = context.command if context is not None else None
    options = {name for one in command.params for name in one.opts} if command is not None else set()
    place = re.match(r"(?:reader '[^']*': read of )?([a-z][a-z0-9+.-]+:/[^:]+|[^:]+)(?=: )", message)
    quoted = shlex.quote(place[1]) if place else "FILE"
    for pattern, rule in RULES:
        message = re.sub(pattern, lambda match, rule=rule: rule(match, quoted, options), message)  # type: ignore[misc]
    start = place.end() + 2 if place else 0
    if named := re.match(r"([a-z][a-z_]*)(?= (?:is|are|has|have) | \[)", message[start:]):
        option = OPTION_OF_PLACE.get(named[1], f"--{named[1].replace('_', '-')}")
        if option in options:
            message = f"{message[:start]}{option}{message[start + named.end() :]}"
    return _path_message(message, place[1] if place else "", context)


def _path_message(message: str, place: str, context: click.Context | None) -> str:
    """Message about a file or a folder, with what its name may mean, or what it is where another was wanted."""
    if not place:
        return message
    from raymarch.io.files.strict import why_missing

    if "no such " in message and (why := why_missing(place)):
        if why.startswith("did you mean"):
            return message.removesuffix("; check the path").removesuffix(f"; {why}") + f"; {why}"
        return f"{_typed_address(place, context)}: {why}"
    if re.match(r"[a-z][a-z0-9+.-]+:/[^/]", place) and "://" in " ".join(_option_words(context)):  # an output's
        return f"{_typed_address(place, context)}: {why_missing(place)}".replace(
            "; download it first", "; write it here first"
        )
    no_volume = any(told in message for told in ("want a volume file", "want one volume", "that are no slices in grey"))
    if no_volume and Path(place).is_dir() and _is_set(Path(place)):
        words = _option_words(context)
        read = [word for before, word in zip(["", *words], words, strict=False) if before != "--out"]
        others = [word for word in read if Path(word).is_file() and word != place]
        swapped = f"; did you mean raymarch {_verb(context)} {shlex.quote(others[0])} ...?" if others else ""
        if others and _verb(context) == "evaluate":
            swapped = f"; did you mean raymarch evaluate {shlex.quote(others[0])} {shlex.quote(place)}?"
        if others and _verb(context) in ("render", "view"):
            swapped = f"; did you mean raymarch {_verb(context)} {shlex.quote(others[0])} --views {shlex.quote(place)}?"
        return (
            f"{place}: is an image set, want a volume file"
            f"{swapped or f'; raymarch fit {shlex.quote(place)} --out volume.h5 makes one'}"
        )
    return message


def _is_set(folder: Path) -> bool:
    from raymarch.errors import RaymarchError
    from raymarch.io.image_sets.load import READERS
    from raymarch.io.image_sets.reader import reader_of

    try:
        return reader_of(folder, READERS) is not None
    except (RaymarchError, OSError):
        return False


def _typed_address(place: str, context: click.Context | None) -> str:
    """An address as it was typed: a path has one slash where there were two."""
    return next((word for word in _option_words(context) if re.sub(r"/+", "/", word).rstrip("/") == place), place)


def _option_words(context: click.Context | None) -> list[str]:
    return list(context.meta.get(TYPED_KEY, ())) if context is not None else []


def _verb(context: click.Context | None) -> str:
    return str(context.command.name) if context is not None else ""
