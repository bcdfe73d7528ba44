"""Checkpoint of a fit: all that its later steps depend on, so that one that goes on ends with the same bytes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments import checks
from raymarch.arguments.checks import Check, Wrong, instance_of, number
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import BrickGrid, grow
from raymarch.device.grid import Grid
from raymarch.device.grid_state import (
    count_of,
    cubes_of,
    kept_of,
    numbers_of,
    put_cubes,
    put_samples,
    samples_of,
    slabs_of,
    width_of,
)
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.file import LONGEST_NOTE, opened_checkpoint, write_checkpoint
from raymarch.fitting.differences import grid_record, made_by, note_versions, require_same
from raymarch.fitting.fitter import REPORT_EVERY, Fitter
from raymarch.fitting.rates import CHANGES
from raymarch.fitting.report import Report, require_finite
from raymarch.fitting.schedule import Position
from raymarch.geometry.pose import require_affine
from raymarch.io.checkpoints.streamed import CURE, Stream, StreamedReader
from raymarch.volumes.bricks import table_shape

log = logging.getLogger(__name__)


def _note(value: object) -> str:
    text: str = checks.text.read(value)
    if len(text) > LONGEST_NOTE:
        raise Wrong(f"has {len(text):,} letters", "shorten it")
    return text


FITTER = instance_of(Fitter, "an rm.Fitter")
MINUTES = number(0, 1e6, above=True, unit="minute")
NOTE = Check(f"a text of at most {LONGEST_NOTE:,} letters", _note)
NO_TABLE = np.zeros((0, 0, 0), np.int32)  # of a dense grid
OF_REPORT = len(fields(Report)) + 2  # numbers of a report: three of its shape


@checked(fitter=FITTER, path=checks.path, every=MINUTES, note=NOTE)
def save_checkpoint(fitter: Fitter, path: str | os.PathLike[str], *, every: float = 10.0, note: str = "") -> None:
    """Checkpoint of a fit between two steps, written in one step; it takes slabs of memory, no copy of the grid.

    Args:
        fitter: as it stands.
        path: of the file, by custom that of the volume with `.checkpoint` behind it.
        every: minutes between two, noted for who goes on.
        note: a text of your own, in the record that `load_checkpoint` returns.

    Raises RaymarchError for a disk that refuses, after which an older checkpoint is what it was, and for a fit whose
    numbers are not finite any more.

    Example:
        >>> save_checkpoint(fitter, "tower.h5.checkpoint")  # doctest: +SKIP
    """
    grid, at = fitter.grid, fitter.position
    require_finite(0.0, grid.fields.nonfinite_step[None], at.steps)
    record = {
        **{name: value for name, value in asdict(at).items() if name != "preparation"},
        "seconds": at.seconds + at.preparation,  # in the file from the start on, as ever
        "ready": at.preparation,
        "every": every,
        "note": note,
        "settings": fitter.settings.record(),
        "rates_multiplied": fitter.rates.changes,
        "grid": grid_record(fitter.plan),
        "views": fitter.plan.views_digest.record(),
        "made_by": made_by(),
    }
    on_the_beat = [report for report in fitter.history if report.step % REPORT_EVERY == 0]  # not one of an interruption
    arrays = {
        "history": _table(on_the_beat),
        "level_shape": np.array(grid.shape, "<i8"),
        "table": np.array(grid.table() if isinstance(grid, BrickGrid) else NO_TABLE, "<i4"),
        "cubes": cubes_of(grid),
        "errors": np.append(*fitter.store.errors()).astype("<f8"),
        "occupied": np.packbits(grid.occupied_cells()),
        "allowed": np.packbits(grid.allowed_cells()),
        "world_from_index": np.array(grid.world_from_index, "<f8"),
        **fitter.photometry.state(),
    }
    write_checkpoint(path, record, {**_samples(grid), **{name: Stream.of(array) for name, array in arrays.items()}})


@checked(fitter=FITTER, path=checks.path)
def load_checkpoint(fitter: Fitter, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Have a fitter that was just made go on from a checkpoint; returns the checkpoint's record.

    Views and settings must be those that it was made with, `memory` excepted. Where an error is raised, the fitter
    is half one fit and half another: close it.

    Raises RaymarchError for a missing, foreign, damaged, altered or cut file, and names what differs from the fit
    that the checkpoint is of: images, cameras, masks, the settings with what they were and are, the box.

    Example:
        >>> with Fitter(views, "quick") as fitter:  # doctest: +SKIP
        ...     load_checkpoint(fitter, "tower.h5.checkpoint")
        ...     reports = list(fitter.run())
    """
    with opened_checkpoint(path) as (record, reader):
        require_same(record, fitter.plan, path)
        note_versions(record, path)
        if record["level"] >= len(fitter.settings.levels):
            raise RaymarchError(f"{path}: level is {record['level']} of {len(fitter.settings.levels)}; {CURE}")
        _put_level(fitter, reader, path)
        _put_samples(fitter, reader, path)
        history = _history(fitter, reader, path)
        fitter.photometry.put(_photometry(fitter, reader, path))
        store = fitter.images.use(fitter.plan.halvings_of(record["level"]))
        reader.require("errors", (store.tiles + 1,), "<f8")
        if not np.isfinite(errors := reader.rows("errors")).all():
            raise RaymarchError(f"{path}: errors has numbers that are not finite; {CURE}")
        store.set_errors(errors[:-1], float(errors[-1]))
        reader.require_digest()
    changes = record.get("rates_multiplied", [])  # older ones have none
    fitter.rates.changes = CHANGES(f"{path}: rates_multiplied", changes)
    fitter.go_on(_position(record), history)
    return record


def _position(record: Mapping[str, Any]) -> Position:
    """Position of a record, whose seconds are since the start."""
    times = {"seconds": max(record["seconds"] - record["ready"], 0.0), "preparation": record["ready"]}
    values: dict[str, Any] = {each.name: times.get(each.name, record.get(each.name)) for each in fields(Position)}
    return Position(**values)


def bytes_of_checkpoint(fitter: Fitter) -> int:
    """Estimated size of a checkpoint [byte]: half of the finest level's numbers, as half of the samples are empty."""
    return fitter.plan.samples * kept_of(fitter.grid) * np.dtype(runtime.dtype()).itemsize // 2


def _samples(grid: Grid) -> dict[str, Stream]:
    """Streams of a grid's samples: those that are not all 0, with a bit for each that says which, and likewise the
    gradients that are left."""
    values = kept_of(grid)
    marks = {name: np.empty(count_of(grid), bool) for name in ("touched", "left")}
    at = 0
    for numbers in samples_of(grid):
        bits = numbers.reshape(-1, numbers.shape[-1]).view(f"u{numbers.itemsize}")  # -0 is not 0
        for name, part in (("touched", bits[:, :values]), ("left", bits[:, values:])):
            marks[name][at : at + len(bits)] = np.bitwise_or.reduce(part, axis=1) != 0
        at += len(bits)

    def rows(mark: np.ndarray, columns: slice) -> Iterator[np.ndarray]:
        at = 0
        for numbers in samples_of(grid) if mark.any() else ():
            flat = numbers.reshape(-1, numbers.shape[-1])
            yield flat[mark[at : at + len(flat)], columns]
            at += len(flat)

    streams = {name: Stream.of(np.packbits(mark)) for name, mark in marks.items()}
    parts = (("samples", "touched", slice(0, values)), ("gradient", "left", slice(values, None)))
    for name, mark, columns in parts:
        width = values if name == "samples" else width_of(grid)
        shape = int(marks[mark].sum()), width
        streams[name] = Stream(shape, np.dtype(runtime.dtype()), rows(marks[mark], columns))
    return streams


def _put_level(fitter: Fitter, reader: StreamedReader, path: object) -> None:
    """Put the grid at its level, with the bricks and the marks of cells that a checkpoint has."""
    grid, cells = fitter.grid, int(np.prod(fitter.grid.cells))
    reader.require("world_from_index", (4, 4), "<f8")
    reader.require("level_shape", (3,), "<i8")
    grid.set_level(reader.rows("level_shape").tolist(), require_affine(reader.rows("world_from_index")))
    sparse = isinstance(grid, BrickGrid)
    reader.require("table", table_shape(grid.shape) if sparse else NO_TABLE.shape, "<i4")
    table = reader.rows("table")
    if isinstance(grid, BrickGrid):
        numbers = np.sort(table[table != 0])
        if not np.array_equal(numbers, np.arange(1, len(numbers) + 1)):
            raise RaymarchError(f"{path}: table has a place that is out of range, missing or there twice; {CURE}")
        if len(numbers) > grid.room:
            grow(grid, len(numbers))
        grid.put_table(table)
    for name, put in (("occupied", grid.occupy), ("allowed", grid.allow)):
        reader.require(name, (-(-cells // 8),), "|u1")
        put(np.unpackbits(reader.rows(name), count=cells).astype(bool).reshape(grid.cells))


def _put_samples(fitter: Fitter, reader: StreamedReader, path: object) -> None:
    """Put what a checkpoint has of the samples into a grid at its level."""
    grid = fitter.grid
    count, values, kind = count_of(grid), kept_of(grid), np.dtype(runtime.dtype()).str
    marks = {}
    for name, rows, numbers in (("touched", "samples", values), ("left", "gradient", width_of(grid))):
        reader.require(name, (-(-count // 8),), "|u1")
        marks[name] = np.unpackbits(reader.rows(name), count=count).astype(bool)
        reader.require(rows, (int(marks[name].sum()), numbers), kind)
    at = 0
    for first, slab in slabs_of(grid):
        flat = np.zeros((int(np.prod(slab)), numbers_of(grid)), kind)
        for name, rows, columns in (
            ("touched", "samples", slice(0, values)),
            ("left", "gradient", slice(values, None)),
        ):
            mark = marks[name][at : at + len(flat)]
            flat[mark, columns] = reader.rows(rows, int(mark.sum()))
        if not np.isfinite(flat).all():
            raise RaymarchError(f"{path}: samples have numbers that are not finite; {CURE}")
        put_samples(grid, first, flat.reshape(*slab, -1))
        at += len(flat)
    reader.require("cubes", cubes_of(grid).shape, kind)
    if not np.isfinite(cubes := reader.rows("cubes")).all():
        raise RaymarchError(f"{path}: cubes have numbers that are not finite; {CURE}")
    put_cubes(grid, cubes)


def _photometry(fitter: Fitter, reader: StreamedReader, path: object) -> dict[str, np.ndarray]:
    """What a checkpoint has of exposures and background, as of `Photometry.state`."""
    found = {}
    for name, like in fitter.photometry.state().items():
        reader.require(name, like.shape, "<f8")
        found[name] = reader.rows(name)
        if not np.isfinite(found[name]).all():
            raise RaymarchError(f"{path}: {name} has numbers that are not finite; {CURE}")
    return found


def _table(history: Sequence[Report]) -> np.ndarray:
    """Reports as rows of numbers."""
    rows = [
        [n for value in astuple(report) for n in (value if isinstance(value, tuple) else (value,))]
        for report in history
    ]
    return np.array(rows, "<f8").reshape(len(rows), OF_REPORT)


def _history(fitter: Fitter, reader: StreamedReader, path: object) -> list[Report]:
    """Reports of a checkpoint's rows."""
    reader.require("history", (reader.shape("history")[0], OF_REPORT) if reader.shape("history") else (), "<f8")
    reports = []
    for step, loss, psnr, speed, x, y, z, occupied, seconds, progress, left, boxes in reader.rows("history").tolist():
        shape = int(x), int(y), int(z)
        reports.append(Report(int(step), loss, psnr, speed, shape, occupied, seconds, progress, left, int(boxes)))
    return reports
