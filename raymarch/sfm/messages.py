"""Messages of the worker of structure from motion: lines of JSON on its stdout."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from raymarch.errors import RaymarchError


class Messages:
    """Messages to the process that started this one.

    {"show": [what, done, of]}; {"watch": [database, table, what, of]}, how far it is tell the rows of that table until
    the next message; {"note": text}, {"error": text}, and at the end {"result": {...}}.
    """

    def __init__(self) -> None:
        self.out: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        os.dup2(2, 1)  # what COLMAP prints is no line of ours

    def tell(self, **line: object) -> None:
        """Line of JSON."""
        self.out.write(json.dumps(line) + "\n")

    def show(self, what: str, done: int, total: int) -> None:
        """Report progress."""
        self.tell(show=[what, done, total])

    @contextmanager
    def watched(self, database: Path, table: str, what: str, total: int) -> Iterator[None]:
        """Context in which rows of a table tell how far it is.

        They are counted by the other process: two SQLites in this one would break each other's locks.
        """
        self.tell(watch=[str(database), table, what, total])
        yield
        self.show(what, total, total)


def rows_of(database: Path, query: str) -> list[tuple]:
    """Answer of a database to a query, which this process must not have open elsewhere; else RaymarchError."""
    try:
        link = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0)
        try:
            return link.execute(query).fetchall()
        finally:
            link.close()
    except sqlite3.Error as error:
        raise RaymarchError(
            f"the database of features cannot be read ({error}); free disk space, or try again"
        ) from error


def count_rows(database: Path, table: str) -> int:
    """Number of rows of a table; 0 while it is missing or busy."""
    try:
        return int(rows_of(database, f"SELECT count(*) FROM {table}")[0][0])
    except RaymarchError:
        return 0
