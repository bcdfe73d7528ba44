"""Checkpoint file of a fit: its datasets, its record and the checks of both; docs/checkpoints.md describes it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError, short
from raymarch.io.checkpoints.streamed import CURE, DIGEST, Stream, StreamedReader, write_streamed
from raymarch.io.files.hdf5 import CURE as CURE_OF_FILES
from raymarch.io.files.hdf5 import DAMAGE, opened
from raymarch.io.files.strict import parse_record

FORMAT = "raymarch-checkpoint"
VERSION = 2
ROWS = ("touched", "samples", "left", "gradient")  # as many as the grid has samples, or some of them
NAMES = (
    "record", "history", *ROWS, "cubes", "errors", "level_shape", "table", "occupied", "allowed", "world_from_index",
    "exposures", "background", "moments", "behind", DIGEST,
)  # fmt: skip
LARGEST_RECORD = 16 << 20  # bytes of its text
MOST_GROUPS = 50_000  # lists and mappings, of which each camera is one
MOST_STEPS = 2**31 - 1
COUNTS = {"steps": MOST_STEPS, "moments_age": MOST_STEPS, "level": 63, "drawn": 2**62}  # and what each is at most
TIMES = ("seconds", "ready", "every")
MAPPINGS = {"settings": (), "grid": ("box", "shape", "precision"), "made_by": ()}  # and what each must have
OF_VIEWS = ("names", "images", "masks", "lenses")  # texts; and its cameras are numbers
NUMBERS = (22, 32)  # of a camera, from pose to lens: at least, at most
LONGEST_NOTE = 1 << 20  # letters


def write_checkpoint(path: str | os.PathLike[str], record: Mapping[str, Any], streams: Mapping[str, Stream]) -> None:
    """Checkpoint written in one step; an older one stays as it was where that fails.

    Args:
        path: of the file.
        record: plain mapping of what is no array, see `checked_record`.
        streams: all other datasets by name.

    Raises RaymarchError for a disk that refuses and a record over 16 MiB.
    """
    text = json.dumps(record, allow_nan=False).encode("ascii")
    if len(text) > LARGEST_RECORD:
        raise RaymarchError(f"{path}: the names of the views take over {LARGEST_RECORD:,} bytes; shorten them")
    notes = {"format": np.array(FORMAT.encode()), "format_version": np.array(VERSION, "<i8")}
    write_streamed(path, notes, {"record": Stream.of(np.array(text)), **streams})


@contextmanager
def opened_checkpoint(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], StreamedReader]]:
    """Open checkpoint: its record and a reader of its datasets, whose `require_digest` is due at the end.

    Raises RaymarchError for a file that is none, that is damaged or cut, and for what only a hostile one has.
    """
    with _with_own_cure(), opened(path, FORMAT, VERSION, NAMES, streamed=("samples", "gradient")) as file:
        if file["record"].shape != () or file["record"].dtype.kind != "S":
            raise RaymarchError(f"{path}: record is {file['record'].dtype}, want one text; {CURE}")
        if file["record"].dtype.itemsize > LARGEST_RECORD:
            raise RaymarchError(f"{path}: record is over {LARGEST_RECORD:,} bytes long; {CURE}")
        if file[DIGEST].shape != () or file[DIGEST].dtype.kind != "S":
            raise RaymarchError(f"{path}: digest is {file[DIGEST].dtype}, want one text; {CURE}")
        reader = StreamedReader(file, Path(path))
        yield checked_record(reader.rows("record").tobytes(), path), reader


@contextmanager
def _with_own_cure() -> Iterator[None]:
    """Context in which what any file's reader advises is what can be done about a checkpoint."""
    try:
        yield
    except RaymarchError as error:
        for cure in (CURE_OF_FILES, "save one with raymarch"):
            if str(error).endswith(cure):
                raise type(error)(f"{str(error).removesuffix(cure)}{CURE}") from error
        raise


def record_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Record of a checkpoint, read without its arrays, so that its digest is not checked."""
    with opened_checkpoint(path) as (record, _):
        return record


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Detection: whether the file is HDF5 and says that it is a checkpoint, of whatever version and however damaged."""
    try:
        if not os.path.isfile(path):  # a pipe would wait for who writes it
            return False
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (FORMAT, FORMAT.encode())
    except DAMAGE:
        return False


def checked_record(text: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Record of a checkpoint; RaymarchError where it lacks something or has what none has."""
    where = f"{path}: record"
    record = parse_record(text, where, MOST_GROUPS, CURE)
    for name, most in COUNTS.items():
        if type(record.get(name)) is not int or not 0 <= record[name] <= most:
            raise RaymarchError(f"{where}: {name} is {short(record.get(name))}, want 0 to {most}; {CURE}")
    for name in TIMES:
        if not _is_number(record.get(name)) or record[name] < 0:
            raise RaymarchError(f"{where}: {name} is {short(record.get(name))}, want 0 or more; {CURE}")
    for name, parts in MAPPINGS.items():
        value = record.get(name)
        if not isinstance(value, dict) or not set(parts) <= set(value):
            raise RaymarchError(f"{where}: {name} is {short(value)}, want a mapping; {CURE}")
    if not isinstance(record.get("note"), str) or len(record["note"]) > LONGEST_NOTE:
        raise RaymarchError(f"{where}: note is {short(record.get('note'))}, want a text; {CURE}")
    _require_views(record.get("views"), where)
    return record


def _require_views(views: object, where: str) -> None:
    """RaymarchError where there is not a checksum of each kind for every view."""
    views = views if isinstance(views, dict) else {}
    lists = [views.get(name) for name in OF_VIEWS]
    texts = [one for one in lists if isinstance(one, list) and all(isinstance(text, str) for text in one)]
    if len(texts) < len(lists) or len(set(map(len, texts))) != 1:
        raise RaymarchError(f"{where}: views is {short(views)}, want as many checksums of each kind; {CURE}")
    cameras = views.get("cameras")
    if not isinstance(cameras, list) or len(cameras) != len(texts[0]) or not all(map(_is_camera, cameras)):
        raise RaymarchError(f"{where}: cameras is {short(cameras)}, want {len(texts[0])} lists of numbers; {CURE}")
    background = views.get("background")
    if not isinstance(background, list) or len(background) != 3 or not all(map(_is_number, background)):
        raise RaymarchError(f"{where}: background is {short(background)}, want three numbers; {CURE}")


def _is_camera(value: object) -> bool:
    return isinstance(value, list) and NUMBERS[0] <= len(value) <= NUMBERS[1] and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
