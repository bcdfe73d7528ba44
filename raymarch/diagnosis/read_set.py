"""Reading of an image set for a diagnosis: its views, and findings for what its reader said or refused."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from raymarch.diagnosis.finding import Finding
from raymarch.errors import RaymarchError
from raymarch.io.image_sets.frames import bad_frames
from raymarch.io.image_sets.load import load_views
from raymarch.views.contents import doubts
from raymarch.views.views import Views

MISSING_IMAGES = re.compile(r"(\d+) of (\d+) images are missing")
MASKS_MISSING = re.compile(r"\d+ masks are missing")
NO_ALL_SPLIT = re.compile(r"there is no (split 'all'|transforms_all)")
MIN_WARNED_FRACTION = 1 / 3  # of the images
MAX_NAMED_IMAGES = 8  # images that cannot be read, of which each is named
EXPECTED_NOTES = ("has no splits of its own", "so no view is held out by")  # notes about nothing that is wrong


def read_set(path: str | os.PathLike[str], split: str | None, **options: Any) -> tuple[Views | None, list[Finding]]:
    """Views of a split, or of all of them where it is None and the set knows "all", else those to train on; None where
    they cannot be read. Findings are made of what would have been said in the log. Where images are damaged, or of
    another shape than their cameras, each is one, and the rest is read.
    """
    found: list[Finding] = []
    with collect_notes() as said:
        try:
            views = load_views(path, split or "all", for_fit=False, **options)
        except RaymarchError as error:
            found, rest = _read_without_bad(path, split or "all", options)
            if (rest is None or not found) and split is None:
                return _read_training(path, str(error), said, options)
            if rest is None or not found:
                return None, [_unreadable(str(error))]
            views = rest
    return _reading_findings(views, found, said)


def _read_training(
    path: str | os.PathLike[str], why: str, said: list[str], options: dict[str, Any]
) -> tuple[Views | None, list[Finding]]:
    """As `read_set`, of the views to train on, where all cannot be read: for sets that have no split "all", or of whose
    other splits something is amiss, which a finding says."""
    said.clear()
    unknown = NO_ALL_SPLIT.search(why)
    found = [] if unknown else [Finding("reading", "warning", f"beyond the split train: {_fault(why)}", _cure(why))]
    try:
        return _reading_findings(load_views(path, "train", for_fit=False, **options), found, said)
    except RaymarchError as error:
        damaged, rest = _read_without_bad(path, "train", options)
        if rest is None or not damaged:
            return None, [_unreadable(str(error) if unknown else why)]
        return _reading_findings(rest, found + damaged, said)


def _reading_findings(views: Views, found: list[Finding], said: list[str]) -> tuple[Views, list[Finding]]:
    """Views and findings, with those of what was said."""
    of_contents = set(doubts(views))
    return views, found + [_finding(note) for note in dict.fromkeys(said) if note not in of_contents and _counts(note)]


def _read_without_bad(
    path: str | os.PathLike[str], split: str, options: dict[str, Any]
) -> tuple[list[Finding], Views | None]:
    """Findings for frames that are damaged or of no camera, and the views without them; None where nothing is left."""
    with bad_frames() as bad:
        try:
            views = load_views(path, split, for_fit=False, **options)
        except RaymarchError:
            return [], None
    findings = [_unreadable(why) for why in bad.values()]
    if len(findings) > MAX_NAMED_IMAGES:
        rest = f"{len(findings) - MAX_NAMED_IMAGES} more images cannot be read"
        findings[MAX_NAMED_IMAGES:] = [Finding("unreadable", "error", rest, "export them again, or take them out")]
    return findings, views


def _unreadable(why: str) -> Finding:
    return Finding("unreadable", "error", _fault(why), _cure(why))


def _fault(why: str) -> str:
    """What is wrong by a message, without what to do."""
    return why.rpartition("; ")[0] or why


def _cure(why: str) -> str:
    """What to do by a message."""
    fault, _, cure = why.rpartition("; ")
    return cure if fault else "correct it"


def _counts(note: str) -> bool:
    return not any(words in note for words in EXPECTED_NOTES)


def _finding(note: str) -> Finding:
    """Finding of a reader's note."""
    if found := MISSING_IMAGES.search(note):
        missing, listed = map(int, found.groups())
        severity = "warning" if missing > MIN_WARNED_FRACTION * listed else "note"
        return Finding(
            "missing-files", severity, note, "copy the missing images into the set, or take them off its list"
        )
    fault, _, cure = note.rpartition("; ")
    if MASKS_MISSING.search(note):
        return Finding("missing-files", "warning", fault, cure)
    return Finding("reading", "note", fault or note, cure if fault else "see whether it is meant to be so")


@contextmanager
def collect_notes() -> Iterator[list[str]]:
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
