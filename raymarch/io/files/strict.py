"""Strict reading of small files, within bounds: JSON, text tables, NumPy's files, XML; the memory a file may take."""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import numpy as np

from raymarch.errors import PROGRAM_FAULTS, RaymarchError, one_line, program_fault, short_value
from raymarch.system.resources import total_bytes

MEMORY_BUDGET = 16 << 30  # bytes that one file may ask for
MEMORY_VARIABLE = "RAYMARCH_FILE_GB"
MAX_JSON_BYTES = 32 << 20
MAX_GROUPS = 320_000  # mappings and lists of JSON; 20,000 frames with a matrix and its four rows each, twice
MAX_VALUES = 1_280_000  # of JSON
BLOCK_BYTES = 1 << 20  # bytes that are looked at together before any is kept
MIN_SIMILARITY = 0.7  # share of two names that is the same, from which on one may be meant by the other
STRING_OR_COMMENT = re.compile(r'"|//|/\*')
NON_LINE_BREAK = re.compile(r"[^\r\n]")
MAX_TEXT = 32 << 20  # bytes of a table, or of XML
EXPORT_CURE = "export it again"
MAX_NPY_BYTES = 64 << 20  # 20,000 poses are 3 MB
MAX_MEMBERS = 200_000  # of an archive
MAX_HEADER = 10_000  # bytes of an array's header
DECLARED_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]{1,40})["']""")
XML_CHARACTERS = re.compile(
    r"utf-?8|utf-16|us-ascii|latin-?1|iso-8859-(1[0-6]?|[2-9])|windows-125[0-8]|cp125[0-8]|shift_jis|cp932|euc-(jp|kr)"
    r"|gb2312|gbk|gb18030|big5|koi8-[ru]"
)
MAX_TAGS = 1_000_000  # of XML
MAX_DEPTH = 100  # elements within elements


def memory_budget() -> int:
    """Memory budget of one file [byte]: what the environment's RAYMARCH_FILE_GB says, else `MEMORY_BUDGET`, or the
    memory there is, if less. It is checked against what a file's header declares, before anything is read.

    Raises RaymarchError where the variable is no positive number.
    """
    text = os.environ.get(MEMORY_VARIABLE)
    if text is None:
        return min(MEMORY_BUDGET, total_bytes())
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = math.nan
    if not 0 < gigabytes < 1e9:
        raise RaymarchError(
            f"{MEMORY_VARIABLE} is {text[:60]!r}, want a positive number of gigabytes; correct or unset it"
        )
    return int(gigabytes * 1e9)


def require_file_budget(wanted: int, what: str) -> None:
    """Budget check: RaymarchError if `wanted` bytes for `what` are over the budget of one file.

    Example:
        >>> require_file_budget(8 * 400**2, "lego: its images")
    """
    budget = memory_budget()
    if wanted > budget:
        raise RaymarchError(
            f"{what} declare {wanted} bytes, over the budget of {budget} bytes; make them smaller, or set the"
            f" environment variable {MEMORY_VARIABLE} to {math.ceil(wanted / 1e8) / 10:g} (gigabytes) or more"
        )


def why_missing(place: str) -> str:
    """What is wrong with the name of a file that is not there: an address, a pattern, a slip; else nothing.

    Example:
        >>> why_missing("https://example.org/head.nii.gz")
        'is an address, want a file or folder of this machine; download it first'
    """
    if re.match(r"[a-z][a-z0-9+.-]+:/", place) and not re.match(r"[a-zA-Z]:", place[:2]):
        return "is an address, want a file or folder of this machine; download it first"
    if place == "-":
        return "is stdin for other programs, want the name of a file; write it to one first"
    path = Path(place)
    if re.search(r"[*?]|\[.+\]", path.name) and path.parent.is_dir():
        found = sorted(one.name for one in path.parent.glob(path.name))
        told = f"one of {len(found)}, such as {path.parent / found[0]}" if found else "there is none of that kind"
        return f"is a pattern, want the name of a file; {told}"
    if path.parent.is_dir():
        there = [one.name for one in path.parent.iterdir() if not one.name.startswith(".")]
        alike = get_close_matches(path.name, there, n=1, cutoff=MIN_SIMILARITY) or [
            one for one in there if Path(one).stem == path.name or one.lower() == path.name.lower()
        ]
        if alike:
            return f"did you mean {path.parent / alike[0]}?"
    return ""


def require_file(path: str | os.PathLike[str], wanted: str, cure: str = "check the path") -> Path:
    """Path of an existing file that may be read and is not empty; else RaymarchError that tells what is there.

    Args:
        path: of the file.
        wanted: what it should be, "an HDF5 file" say.
        cure: what to do about an empty one.

    Example:
        >>> require_file("none.h5", "a volume file")
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: none.h5: no such file, want a volume file; check the path
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise RaymarchError(f"{path}: is a folder, want {wanted}; name the file in it")
        if not path.exists():
            raise RaymarchError(f"{path}: no such file, want {wanted}; {why_missing(str(path)) or 'check the path'}")
        if not path.is_file():
            raise RaymarchError(f"{path}: is a device or pipe, want {wanted}; copy it to a file first")
        if path.stat().st_size == 0:
            raise RaymarchError(f"{path}: is empty, want {wanted}; {cure}")
        with path.open("rb"):
            pass
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    return path


def require_folder(path: str | os.PathLike[str]) -> Path:
    """Path of an existing folder; else RaymarchError that tells a missing one from a file.

    Example:
        >>> require_folder(".")
        PosixPath('.')
    """
    folder = Path(path)
    try:
        if folder.is_dir():
            return folder
        if folder.exists():
            raise RaymarchError(f"{folder}: is a file, want the folder that holds it; try {folder.parent}")
    except OSError as error:
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check the path") from error
    raise RaymarchError(f"{folder}: no such folder, want an existing one; check the path")


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
        if size > MAX_JSON_BYTES:
            raise RaymarchError(f"{path}: has {size} bytes, want at most {MAX_JSON_BYTES}; split it")
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
    return parse_json(strip_comments(text) if comments else text, str(path))


def strip_comments(text: str) -> str:
    """JSON text with spaces in place of `//` and `/* */` comments, so that lines and columns stay where they were.

    Example:
        >>> strip_comments('{"url": "a//b"} // mine')
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
        out += [text[kept : found.start()], NON_LINE_BREAK.sub(" ", text[found.start() : at])]
        kept = at
    return "".join(out) + text[kept:]


def _require_few(path: Path) -> None:
    """Count what a parser would make an object of, each many times as large in memory as on disk."""
    groups = values = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            groups += block.count(b"{") + block.count(b"[")
            values += block.count(b",")
    for count, most, what in [(groups, MAX_GROUPS, "mappings and lists"), (values, MAX_VALUES, "values")]:
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
    if sum(map(text.count, (b"[", b"{"))) > most_groups or text.count(b",") > MAX_VALUES:
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


def read_bytes(path: str | os.PathLike[str], wanted: str, most: int = MAX_TEXT) -> bytes:
    """Content of a file of at most `most` bytes; else RaymarchError that names it, with what was wanted.

    Example:
        >>> Path("a.txt").write_bytes(b"1 2")
        3
        >>> read_bytes("a.txt", "a table")
        b'1 2'
    """
    path = require_file(path, wanted, EXPORT_CURE)
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    if len(data) > most:
        raise RaymarchError(f"{path}: has over {most:,} bytes, want {wanted} of fewer; split it")
    return data


def read_text(path: str | os.PathLike[str], wanted: str, most: int = MAX_TEXT) -> str:
    """Content of a UTF-8 file of at most `most` bytes, without null characters; else RaymarchError.

    Example:
        >>> Path("a.txt").write_bytes(b"1 2")
        3
        >>> read_text("a.txt", "a table")
        '1 2'
    """
    data = read_bytes(path, wanted, most)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RaymarchError(f"{path}: byte {error.start} is not UTF-8, want {wanted}; save it as UTF-8") from error
    if "\0" in text:
        raise RaymarchError(f"{path}: has null characters, want {wanted}; {EXPORT_CURE}")
    return text


def finite_number(word: object, where: str) -> float:
    """Finite number of a word of a text; else RaymarchError, opened by `where`.

    Example:
        >>> finite_number("1e-002", "a.txt, line 3: k1")
        0.01
    """
    try:
        if not isinstance(word, str) or "_" in word:  # which Python takes inside numbers, and no format has
            raise ValueError
        value = float(word)
    except ValueError:
        raise RaymarchError(f"{where} is {short_value(word)}, want a number; {EXPORT_CURE}") from None
    if not math.isfinite(value):
        raise RaymarchError(f"{where} is {word}, want a finite number; {EXPORT_CURE}")
    return value


def finite_numbers(text: str | Sequence[str], count: int, where: str) -> list[float]:
    """Finite numbers of a text, exactly `count`, separated by spaces or lines; else RaymarchError.

    Example:
        >>> finite_numbers("1 2\\n3", 3, "a.txt")
        [1.0, 2.0, 3.0]
    """
    words = text.split(maxsplit=count + 1) if isinstance(text, str) else text
    if len(words) != count:
        came = f"more than {count}" if len(words) > count else str(len(words))
        raise RaymarchError(f"{where}: has {came} numbers, want {count}; {EXPORT_CURE}")
    return [finite_number(word, f"{where}, number {i + 1}") for i, word in enumerate(words)]


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Array of a .npy file as float64.

    Raises RaymarchError that names the file for one that is damaged or over 64 MiB, for objects, and for numbers that
    are not finite.

    Example:
        >>> np.save("a.npy", np.arange(3))
        >>> read_npy("a.npy").tolist()
        [0.0, 1.0, 2.0]
    """
    return _array(read_bytes(path, "a NumPy array", MAX_NPY_BYTES), str(path))


def read_npz(path: str | os.PathLike[str], wanted: str) -> dict[str, np.ndarray]:
    """Arrays of an .npz file whose names begin with `wanted`, as float64; others are not looked at.

    Raises RaymarchError as `read_npy` does, and for members that are packed over 64 MiB in all or are not what their
    sizes say.

    Example:
        >>> np.savez("a.npz", pose_0=np.eye(2), other=3)
        >>> read_npz("a.npz", "pose_")["pose_0"].shape
        (2, 2)
    """
    data = read_bytes(path, "a NumPy archive", MAX_NPY_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = [member.filename for member in members]
            if len(members) > MAX_MEMBERS or len(set(names)) < len(names):
                raise RaymarchError(f"{path}: has {len(members)} members, want few and each once; {EXPORT_CURE}")
            chosen = [one for one in members if one.filename.startswith(wanted) and one.filename.endswith(".npy")]
            if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in chosen):
                # What unpacks without a limit, too.
                raise RaymarchError(f"{path}: is packed as no NumPy packs it; {EXPORT_CURE}")
            if (size := sum(one.file_size for one in chosen)) > MAX_NPY_BYTES:
                raise RaymarchError(f"{path}: its arrays declare {size:,} bytes, want {MAX_NPY_BYTES:,}; {EXPORT_CURE}")
            return {
                one.filename.removesuffix(".npy"): _array(_member(archive, one), f"{path}: {one.filename}")
                for one in chosen
            }
    except RaymarchError:
        raise
    except Exception as error:  # zipfile raises anything from struct.error to NotImplementedError for damaged files
        if isinstance(error, PROGRAM_FAULTS) and not isinstance(error, NotImplementedError):
            raise RaymarchError(f"{path}: {program_fault(error)}") from error
        raise RaymarchError(f"{path}: is no whole NumPy archive ({one_line(error)}); {EXPORT_CURE}") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as file:
        return file.read(member.file_size + 1)  # a stream that goes on for longer is cut, and refused by its length


def _array(data: bytes, where: str) -> np.ndarray:
    """The array of bytes, if its header declares just what follows it."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        known = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in known:
            raise RaymarchError(f"{where}: is of version {version} of NumPy's files, want 1 or 2; {EXPORT_CURE}")
        read = known[version]
        shape, by_columns, dtype = read(file, max_header_size=MAX_HEADER)
        if dtype.kind not in "fiu" or dtype.hasobject:
            raise RaymarchError(f"{where}: holds {str(dtype)[:60]}, want numbers; {EXPORT_CURE}")
        declared, there = math.prod(shape) * dtype.itemsize, len(data) - file.tell()
        if declared != there or any(n < 0 for n in shape):
            raise RaymarchError(f"{where}: declares {declared} bytes but holds {there}; {EXPORT_CURE}")
        flat = np.frombuffer(data, dtype, offset=file.tell())
        array = flat.reshape(shape, order="F" if by_columns else "C").astype(np.float64)
    except RaymarchError:
        raise
    except Exception as error:  # NumPy raises anything from SyntaxError to struct.error for damaged headers
        if isinstance(error, PROGRAM_FAULTS):
            raise RaymarchError(f"{where}: {program_fault(error)}") from error
        raise RaymarchError(f"{where}: is no whole NumPy array ({one_line(error)}); {EXPORT_CURE}") from error
    if not np.isfinite(array).all():
        at = np.argwhere(~np.isfinite(array))[0].tolist()
        raise RaymarchError(f"{where}: is {array[tuple(at)]} at {tuple(at)}, want finite numbers; {EXPORT_CURE}")
    return array


def read_xml(path: str | os.PathLike[str]) -> ElementTree.Element:
    """Root element of an XML file of at most 32 MiB.

    Raises RaymarchError that names the file: no UTF-8, a document type (which alone can define entities, and have other
    files read), more than a million tags, nesting over 100 levels, and syntax errors with their line. All but the last
    two are found before anything is parsed.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("a.xml").write_text("<document version='1.2.0'><chunk/></document>")
        >>> read_xml("a.xml").tag
        'document'
    """
    return parse_xml(read_bytes(path, "an XML text"), path)


def parse_xml(data: bytes, path: str | os.PathLike[str]) -> ElementTree.Element:
    """Root element of the XML that a part of a file is; RaymarchError as `read_xml`.

    Example:
        >>> parse_xml(b"<a><b/></a>", "a.xml").tag
        'a'
    """
    told = DECLARED_ENCODING.match(data[:200])
    letters = told.group(1).decode().lower() if told else "utf-8"
    letters = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else letters
    if not XML_CHARACTERS.fullmatch(letters):
        raise RaymarchError(f"{path}: says letters of {letters!r}, which are not known; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig" if letters in ("utf-8", "utf8") else letters)
    except UnicodeDecodeError as error:
        raise RaymarchError(f"{path}: byte {error.start} is not {letters.upper()}, want XML; {EXPORT_CURE}") from error
    if "\0" in text:
        raise RaymarchError(f"{path}: has null characters, want XML; {EXPORT_CURE}")
    return _root(text, path)


def _root(text: str, path: str | os.PathLike[str]) -> ElementTree.Element:
    """Root element of a text; RaymarchError as `read_xml`."""
    if "<!DOCTYPE" in text.upper() or "<!ENTITY" in text.upper():
        raise RaymarchError(f"{path}: has a document type or entities, want plain XML; {EXPORT_CURE}")
    if text.count("<") > MAX_TAGS:
        raise RaymarchError(f"{path}: has {text.count('<'):,} tags, want at most {MAX_TAGS:,}; split it")
    parser: ElementTree.XMLPullParser = ElementTree.XMLPullParser(("start", "end"))
    depth, root = 0, None
    try:
        for at in range(0, len(text), 1 << 16):
            parser.feed(text[at : at + (1 << 16)])
            events: Iterable[Any] = parser.read_events()
            for kind, element in events:
                root = element if root is None else root
                depth += 1 if kind == "start" else -1
                if depth > MAX_DEPTH:
                    raise RaymarchError(f"{path}: is nested over {MAX_DEPTH} levels deep; {EXPORT_CURE}")
        parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        if isinstance(error, RaymarchError):
            raise
        raise RaymarchError(f"{path}: is not XML ({one_line(error)}); {EXPORT_CURE}") from error
    if not isinstance(root, ElementTree.Element):
        raise RaymarchError(f"{path}: is not XML (no element found); {EXPORT_CURE}")
    return root
