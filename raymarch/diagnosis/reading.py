"""Reading of an image set for a diagnosis: its views, and findings for what its reader said or refused."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from raymarch.data.contents import doubts
from raymarch.data.views import Views
from raymarch.diagnosis.finding import Finding
from raymarch.errors import RaymarchError
from raymarch.io.image_sets.bad_frames import bad_frames
from raymarch.io.image_sets.load import load_views

MISSING = re.compile(r"(\d+) of (\d+) images are missing")
MANY = 1 / 3  # of the images
MOST = 8  # images that cannot be read, of which each is named
EXPECTED = ("has no splits of its own", "so no view is held out by")  # notes about nothing that is wrong


def read_set(path: str | os.PathLike[str], split: str | None, **options: Any) -> tuple[Views | None, list[Finding]]:
    """Views of a split, or of all of them where it is None and the set knows "all", else those to train on; None where
    they cannot be read. Findings are made of what would have been said in the log. Where images are damaged, or of
    another shape than their cameras, each is one, and the rest is read.
    """
    found: list[Finding] = []
    with notes() as said:
        try:
            views = _read(path, split, options)
        except RaymarchError as error:
            found, rest = _without_bad(path, split, options)
            if rest is None or not found:
                return None, [_unreadable(str(error))]
            views = rest
    of_contents = set(doubts(views))
    return views, found + [_finding(note) for note in dict.fromkeys(said) if note not in of_contents and _counts(note)]


def _without_bad(
    path: str | os.PathLike[str], split: str | None, options: dict[str, Any]
) -> tuple[list[Finding], Views | None]:
    """Findings for frames that are damaged or of no camera, and the views without them; None where nothing is left."""
    with bad_frames() as bad:
        try:
            views = _read(path, split, options)
        except RaymarchError:
            return [], None
    findings = [_unreadable(why) for why in bad.values()]
    if len(findings) > MOST:
        rest = f"{len(findings) - MOST} more images cannot be read"
        findings[MOST:] = [Finding("unreadable", "error", rest, "export them again, or take them out")]
    return findings, views


def _unreadable(why: str) -> Finding:
    fault, _, cure = why.rpartition("; ")
    return Finding("unreadable", "error", fault or why, cure if fault else "correct it")


def _read(path: str | os.PathLike[str], split: str | None, options: dict[str, Any]) -> Views:
    if split is not None:
        return load_views(path, split, for_fit=False, **options)
    try:
        return load_views(path, "all", for_fit=False, **options)
    except RaymarchError:
        return load_views(path, "train", for_fit=False, **options)


def _counts(note: str) -> bool:
    return not any(words in note for words in EXPECTED)


def _finding(note: str) -> Finding:
    """Finding of a reader's note."""
    if found := MISSING.search(note):
        missing, listed = map(int, found.groups())
        severity = "warning" if missing > MANY * listed else "note"
        return Finding(
            "missing-files", severity, note, "copy the missing images into the set, or take them off its list"
        )
    fault, _, cure = note.rpartition("; ")
    return Finding("reading", "note", fault or note, cure if fault else "see whether it is meant to be so")


@contextmanager
def notes() -> Iterator[list[str]]:
    """Warnings of the package while it reads, in a list in place of the log."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    log, listener = logging.getLogger("raymarch"), Listener(logging.WARNING)
    propagate, log.propagate = log.propagate, False
    log.addHandler(listener)
    try:
        yield said
    finally:
        log.removeHandler(listener)
        log.propagate = propagate
