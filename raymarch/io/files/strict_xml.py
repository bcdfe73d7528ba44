"""Strict XML parser: bounded text without document types, and so without entities of a file's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict_text import EXPORT, read_bytes

DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]{1,40})["']""")
LETTERS = re.compile(
    r"utf-?8|utf-16|us-ascii|latin-?1|iso-8859-(1[0-6]?|[2-9])|windows-125[0-8]|cp125[0-8]|shift_jis|cp932|euc-(jp|kr)"
    r"|gb2312|gbk|gb18030|big5|koi8-[ru]"
)
MOST_TAGS = 1_000_000
DEEPEST = 100  # elements within elements


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
    told = DECLARED.match(data[:200])
    letters = told.group(1).decode().lower() if told else "utf-8"
    letters = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else letters
    if not LETTERS.fullmatch(letters):
        raise RaymarchError(f"{path}: says letters of {letters!r}, which are not known; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig" if letters in ("utf-8", "utf8") else letters)
    except UnicodeDecodeError as error:
        raise RaymarchError(f"{path}: byte {error.start} is not {letters.upper()}, want XML; {EXPORT}") from error
    if "\0" in text:
        raise RaymarchError(f"{path}: has null characters, want XML; {EXPORT}")
    return _root(text, path)


def _root(text: str, path: str | os.PathLike[str]) -> ElementTree.Element:
    """Root element of a text; RaymarchError as `read_xml`."""
    if "<!DOCTYPE" in text.upper() or "<!ENTITY" in text.upper():
        raise RaymarchError(f"{path}: has a document type or entities, want plain XML; {EXPORT}")
    if text.count("<") > MOST_TAGS:
        raise RaymarchError(f"{path}: has {text.count('<'):,} tags, want at most {MOST_TAGS:,}; split it")
    parser: ElementTree.XMLPullParser = ElementTree.XMLPullParser(("start", "end"))
    depth, root = 0, None
    try:
        for at in range(0, len(text), 1 << 16):
            parser.feed(text[at : at + (1 << 16)])
            events: Iterable[Any] = parser.read_events()
            for kind, element in events:
                root = element if root is None else root
                depth += 1 if kind == "start" else -1
                if depth > DEEPEST:
                    raise RaymarchError(f"{path}: is nested over {DEEPEST} levels deep; {EXPORT}")
        parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        if isinstance(error, RaymarchError):
            raise
        raise RaymarchError(f"{path}: is not XML ({one_line(error)}); {EXPORT}") from error
    if not isinstance(root, ElementTree.Element):
        raise RaymarchError(f"{path}: is not XML (no element found); {EXPORT}")
    return root
