"""Wrong usage of the command line: what can only mean one thing is taken so, of the rest the right form is said."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import click

from raymarch.arguments.names_elsewhere import NO_OPTION, OPTIONS, VERBS
from raymarch.arguments.similar_names import is_habit, known_as
from raymarch.cli.option_kinds import MINUS_SIGNS, NUMBER, Numbers, number_question

MIN_SIMILARITY = 0.7  # share of two names that is the same, from which on one may be meant by the other
TYPED_KEY = "raymarch: as typed"  # key of a context's `meta`: words of the command line


def repair_words(command: click.Command, words: Sequence[str]) -> list[str]:
    """Words of a verb with what the shell, a web page or habit made of them mended, where they can mean one thing only.

    A ~ in quotes or behind = is the home folder; a long dash before an option's name is two short ones; numbers of one
    option that stand apart, as in --window -100 300, go together.
    """
    names = {name for option in command.params for name in option.opts if name.startswith("--")}
    done: list[str] = []
    for word in words:
        dashed = re.sub("^[\u2010-\u2015\u2212]-?(?=[a-z])", "--", word)
        word = dashed if dashed.partition("=")[0] in names else word
        done.append(_expand_home(word))
    return _join_numbers(command, done)


def _expand_home(word: str) -> str:
    """A word with ~ as the home folder, unless there is a folder of that name."""
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    if (value != "~" and not value.startswith(("~/", "~\\"))) or os.path.lexists("~"):
        return word
    return f"{option}{equals}{os.path.expanduser(value)}"


def _join_numbers(command: click.Command, words: list[str]) -> list[str]:
    """Words in which the numbers of an option that wants several, each a word of its own, are one word."""
    kinds = {name: one.type for one in command.params if isinstance(one.type, Numbers) for name in one.opts}
    done: list[str] = []
    while words:
        word, *words = words
        done.append(word)
        kind = kinds.get(word)
        if kind is None or max(kind.counts) < 2 or (1 in kind.counts and max(kind.counts) < 3):
            continue
        count = next((i for i, one in enumerate(words) if not _is_number(one.rstrip(","))), len(words))
        if 1 in kind.counts and count != max(kind.counts):  # one will do, and what is behind it may be another word
            continue
        if most := max((n for n in kind.counts if n <= count), default=0):
            done.append(",".join(one.rstrip(",") for one in words[:most]))
            words = words[most:]
    return done


def _is_number(word: str) -> bool:
    return re.fullmatch(NUMBER, word.translate(MINUS_SIGNS)) is not None


def unknown_verb_message(name: str, verbs: Sequence[str]) -> str:
    """Message for a verb that there is not."""
    if other := VERBS.get(name.lower().replace("_", "-")) or next(iter(_close_names(name, verbs)), None):
        return f"No such command {name!r}; did you mean raymarch {other}?"
    if os.path.exists(name):
        quoted = shlex.quote(name)
        if os.path.isdir(name):
            return f"{name!r} is a folder, want a verb before it, such as raymarch fit {quoted} or info {quoted}"
        return f"{name!r} is a file, want a verb before it, such as raymarch info {quoted} or view {quoted}"
    return f"No such command {name!r}, want one of {', '.join(verbs)}"


def explain_error(error: click.UsageError, verbs: Mapping[str, click.Command]) -> click.UsageError:
    """Wrong usage with what may be meant in its message."""
    context = error.ctx
    command = context.command if context is not None else None
    words: Sequence[str] = context.meta.get(TYPED_KEY, ()) if context is not None else ()
    if command is None:
        return error
    if isinstance(error, click.NoSuchOption):
        told = _unknown_option(error.option_name, command, verbs)
    elif isinstance(error, click.MissingParameter):
        told = _missing_message(error, command, words)
    elif isinstance(error, click.BadParameter):
        told = _bad_number(error)
    elif error.message.startswith("Got unexpected extra argument"):
        told = error.message.rstrip(".") + _surplus_message(command, words)
    else:
        return error
    return click.UsageError(told, context) if told else error


def _unknown_option(name: str, command: click.Command, verbs: Mapping[str, click.Command]) -> str:
    own = [one for option in command.params for one in (*option.opts, *option.secondary_opts) if one.startswith("--")]
    told = f"No such option {name!r}"
    if re.fullmatch(NUMBER, name):
        return f"{told}; numbers that begin with - go to an option by =, as in --iso={name}, and several with commas"
    if "--out" in (name, *OPTIONS.get(name.lower(), ())) and any(one.name == "out" for one in _arguments(command)):
        return f"{told}; OUT is given by itself: {_usage(command)}"
    others = [one for one in OPTIONS.get(name.lower(), ()) if one.split()[0].partition("=")[0] in own]
    theirs = [verb for verb, other in verbs.items() if any(name in option.opts for option in other.params)]
    if not others and not theirs and name.lower() not in OPTIONS and name.lower() not in NO_OPTION:
        others = [f"--{one}" for one in known_as(name, [one.removeprefix("--") for one in own])]
    if others:
        return f"{told}; did you mean {others[0]}?"
    known = name.lower() in OPTIONS or name.lower() in NO_OPTION or (is_habit(name) and not theirs)
    if not known and (close := _close_names(name, own)):
        return f"{told}; did you mean {' or '.join(close)}?"
    if name.lower() in NO_OPTION:
        return f"{told}; {NO_OPTION[name.lower()]}"
    if theirs:
        some = ", ".join(theirs[:3]) + (", ..." if len(theirs) > 3 else "")
        return f"{told}; it is an option of raymarch {some}"
    return f"{told}; raymarch {command.name} --help lists them"


def _missing_message(error: click.MissingParameter, command: click.Command, words: Sequence[str]) -> str:
    option = error.param
    if option is None:
        return ""
    if isinstance(option, click.Argument):
        return f"Missing argument {option.human_readable_name!r}: want {_usage(command)}"
    extra = positional_words(command, words)[len(_arguments(command)) :]
    meant_by = f"; did you mean {option.opts[0]} {shlex.quote(extra[0])}?" if extra else ""
    other = next((word for word in words if option.opts[0] in OPTIONS.get(word.partition("=")[0], ())), None)
    if other is not None:
        meant_by = f"; did you mean {option.opts[0]} by {other.partition('=')[0]}?"
    what = f": {option.help.rstrip('.')}" if isinstance(option, click.Option) and option.help else ""
    return f"Missing option {option.opts[0]!r}{what}{meant_by}"


def _surplus_message(command: click.Command, words: Sequence[str]) -> str:
    """What may be meant by words that a verb does not take."""
    wanted = len(_arguments(command))
    found = positional_words(command, words)
    extra = found[wanted:]
    if not extra:
        return ""
    for name, first, *rest in _options_with_values(command, words):
        if rest and rest[0] in extra and _is_number(first) and _is_number(rest[0]):
            return f"; numbers of one option have commas between: {name} {first},{rest[0]}"
    if any(os.path.exists(joined := " ".join(found[i:])) for i in range(wanted)):
        return f"; a name with spaces goes in quotes: {shlex.quote(joined)}"
    if all(map(os.path.exists, found)):
        return f"; raymarch {command.name} takes {'one' if wanted == 1 else wanted} at a time"
    outs = [option.opts[0] for option in command.params if option.name == "out" and isinstance(option, click.Option)]
    if outs and outs[0] not in words:
        return f"; did you mean {outs[0]} {shlex.quote(extra[0])}?"
    return f"; raymarch {command.name} takes {wanted or 'none'}, and options with -- before their names"


def _bad_number(error: click.BadParameter) -> str:
    """Message for what is no number of click's own kinds, in which it says neither what is wanted nor what is meant."""
    option, match = error.param, re.match(r"('.*') is not a valid (integer|float)", error.message)
    if option is None or match is None:
        return ""
    kind = "a whole number" if match[2] == "integer" else "a number"
    low, high = (getattr(option.type, end, None) for end in ("min", "max"))
    ends = f" from {low} to {high}" if None not in (low, high) else f" from {low} on" if low is not None else ""
    text = match[1][1:-1]
    question = number_question(text)
    if match[2] == "integer" and not question:
        try:
            question = f"; did you mean {round(float(text))}?"
        except (ValueError, OverflowError):
            question = ""
    name = option.opts[0] if isinstance(option, click.Option) else option.human_readable_name
    return f"Invalid value for {name!r}: {match[1]}: want {kind}{ends}{question}"


def _usage(command: click.Command) -> str:
    """A verb with its arguments."""
    return " ".join(["raymarch", str(command.name), *(one.human_readable_name for one in _arguments(command))])


def _arguments(command: click.Command) -> list[click.Argument]:
    return [one for one in command.params if isinstance(one, click.Argument)]


def _options_with_values(command: click.Command, words: Sequence[str]) -> Iterable[list[str]]:
    """Options of a line that take a value, each with the words behind it."""
    takes = {name for one in command.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
    for i, word in enumerate(words):
        if word in takes:
            yield [word, *words[i + 1 : i + 3]] if i + 1 < len(words) else [word, ""]


def positional_words(command: click.Command, words: Sequence[str]) -> list[str]:
    """Words of a line that are neither options nor their values."""
    takes = {name for one in command.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
    found: list[str] = []
    value = False
    for word in words:
        if value:
            value = False
        elif word in takes:
            value = True
        elif not word.startswith("-") or word == "-":
            found.append(word)
    return found


def _close_names(name: str, names: Iterable[str]) -> list[str]:
    """Names that may be meant, two at most."""
    return get_close_matches(name.lower(), list(names), n=2, cutoff=MIN_SIMILARITY)[:2]
