"""Strict JSON parser: no NaN, no infinities, no key twice."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from raymarch.errors import RaymarchError, one_line

LARGEST_FILE = 32 << 20
MOST_GROUPS = 320_000  # mappings and lists; 20,000 frames with a matrix and its four rows each, and as many again
MOST_VALUES = 1_280_000
BLOCK = 1 << 20  # bytes that are looked at together before any is kept
STRING_OR_COMMENT = re.compile(r'"|//|/\*')
NOT_A_BREAK = re.compile(r"[^\r\n]")


def read_json(path: str | os.PathLike[str], *, comments: bool = False) -> Any:
    """Content of a UTF-8 JSON file of at most 32 MiB, 320,000 mappings and lists and 1,280,000 values.

    With `comments` the text may have those of C++, which instant-ngp takes.

    Raises RaymarchError that names the file where it cannot be read, is over these bounds, which is found before it is
    parsed, and for all that `parse_json` refuses.

    Example:
        >>> read_json("transforms_train.json")["camera_angle_x"]  # doctest: +SKIP
        0.6911112070083618
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise RaymarchError(f"{path}: is no file, want a JSON file; check the path")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise RaymarchError(f"{path}: has {size} bytes, want at most {LARGEST_FILE}; split it")
        _require_few(path)
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    except UnicodeDecodeError as error:
        kind = " (it looks like UTF-16)" if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        if not kind and (b"\0" in error.object[:64] or path.suffix.lower() in (".npy", ".npz", ".h5", ".pt", ".pkl")):
            raise RaymarchError(f"{path}: is a binary file, want a JSON text; name the JSON file") from error
        raise RaymarchError(
            f"{path}: byte {error.start} is not UTF-8{kind}, want a JSON text; save it as UTF-8"
        ) from error
    if not text.strip():
        raise RaymarchError(f"{path}: is empty (line 1, column 1), want a JSON text; export it again")
    return parse_json(without_comments(text) if comments else text, str(path))


def without_comments(text: str) -> str:
    """JSON text with spaces in place of `//` and `/* */` comments, so that lines and columns stay where they were.

    Example:
        >>> without_comments('{"url": "a//b"} // mine')
        '{"url": "a//b"}        '
    """
    if "//" not in text and "/*" not in text:
        return text
    out, kept, at, decoder = list[str](), 0, 0, json.JSONDecoder(strict=False)
    while found := STRING_OR_COMMENT.search(text, at):
        if found[0] == '"':
            try:
                at = decoder.raw_decode(text, found.start())[1]
            except ValueError:
                break  # a text that does not end, of which the parser tells
            continue
        end = text.find("\n" if found[0] == "//" else "*/", found.end())
        at = len(text) if end < 0 else end if found[0] == "//" else end + 2
        out += [text[kept : found.start()], NOT_A_BREAK.sub(" ", text[found.start() : at])]
        kept = at
    return "".join(out) + text[kept:]


def _require_few(path: Path) -> None:
    """Count what a parser would make an object of, each many times as large in memory as on disk."""
    groups = values = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            groups += block.count(b"{") + block.count(b"[")
            values += block.count(b",")
    for count, most, what in [(groups, MOST_GROUPS, "mappings and lists"), (values, MOST_VALUES, "values")]:
        if count > most:
            raise RaymarchError(f"{path}: has {count:,} {what}, want at most {most:,}; split it")


def _reason(error: json.JSONDecodeError) -> str:
    """What is wrong at the place of a syntax error, where it is a habit that JSON does not share."""
    here, before = error.doc[error.pos :].lstrip(), error.doc[: error.pos].rstrip()
    if not here:
        return "it ends too early; was it cut off?"
    if here.startswith(("//", "/*", "#")):
        return "a comment, which JSON has not; take it out"
    if (here[0] in "}]" and before.endswith(",")) or (here[0] == "," and here[1:].lstrip()[:1] in ("}", "]")):
        return "a comma before a closing bracket, which JSON has not; take it out"
    if here[0] == "'":
        return 'single quotes, where JSON has double ones; write "'
    return f"{error.msg}; correct it there"


def parse_record(text: bytes, where: str, most_groups: int, cure: str) -> dict[str, Any]:
    """Mapping that a UTF-8 JSON text inside a binary file holds; empty where it holds something else.

    Raises RaymarchError, with the cure, for other bytes than UTF-8 and for more than so many mappings and lists or
    1,280,000 values, which is found before it is parsed; and for all that `parse_json` refuses.

    Example:
        >>> parse_record(b'{"steps": 3}', "v.h5: record", 10, "make it again")
        {'steps': 3}
    """
    if sum(map(text.count, (b"[", b"{"))) > most_groups or text.count(b",") > MOST_VALUES:
        raise RaymarchError(f"{where}: has too many values; {cure}")
    try:
        record = parse_json(text.decode(), where)
    except UnicodeDecodeError:
        raise RaymarchError(f"{where}: is not UTF-8; {cure}") from None
    return record if isinstance(record, dict) else {}


def parse_json(text: str, where: str) -> Any:
    """Value of a JSON text; `where` opens every message.

    Raises RaymarchError for a syntax error (with its line and column), NaN, Infinity, numbers beyond a double such as
    1e999, a key given twice, and nesting that is too deep.

    Example:
        >>> parse_json('{"a": [1, 2.5]}', "text")
        {'a': [1, 2.5]}
    """

    def constant(name: str) -> NoReturn:
        raise RaymarchError(
            f"{where}: has the number {name}, want finite ones; correct it, or take out the entry that has it"
        )

    def number(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else constant(digits)

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise RaymarchError(f"{where}: key {twice!r} comes twice in one mapping; remove one")
        return seen

    try:
        return json.loads(text, parse_constant=constant, parse_float=number, object_pairs_hook=mapping)
    except json.JSONDecodeError as error:
        raise RaymarchError(
            f"{where}: is not JSON at line {error.lineno}, column {error.colno}: {_reason(error)}"
        ) from error
    except RecursionError as error:
        raise RaymarchError(f"{where}: is nested too deeply, want a few levels; correct what wrote it") from error
    except RaymarchError:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise RaymarchError(f"{where}: has a number that cannot be read ({one_line(error)}); shorten it") from error
