"""Checkpoint of a fit: all that its later steps depend on, so that one that goes on ends with the same bytes.

Saving and loading, then the state of the grid, in parts small enough that a copy of all is never in memory, then what
may differ between the fit that a checkpoint is of and one that goes on from it."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments import checks
from raymarch.arguments.checks import Check, Wrong, instance_of, number
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.errors import RaymarchError, short_value
from raymarch.fitting.checkpoints.checkpoint_file import (
    DAMAGE_CURE,
    MAX_NOTE_LENGTH,
    Stream,
    StreamedReader,
    open_checkpoint,
    write_checkpoint,
)
from raymarch.fitting.fitter import REPORT_INTERVAL, Fitter
from raymarch.fitting.level_schedule import Position
from raymarch.fitting.plan.plan import Plan
from raymarch.fitting.report import Report, require_finite, versions
from raymarch.fitting.settings.optimiser import CHANGES
from raymarch.geometry.boxes import require_affine
from raymarch.kernels.field.bricks import BRICK_SAMPLES
from raymarch.kernels.field.touched import samples_in, samples_out
from raymarch.kernels.fit.adam import CUBE_SIDE
from raymarch.views.identity import CAMERA_TOLERANCE
from raymarch.volumes.bricks import table_shape

log = logging.getLogger(__name__)
# Settings that may be others: memory says how far a sparse grid may grow from here on, and whether it is sparse is
# compared as it came to be, which may be by the device.
CHANGEABLE_SETTINGS = ("memory", "bricks")
MAX_NAMED_DIFFERENCES = 4  # differences that are named
MAX_VALUE_LENGTH = 160  # letters of a value that is shown as it is
DIFFERENT_CURE = "give what it had, or begin anew without it (--overwrite)"
SLAB_BYTES = 16 << 20  # bytes of a slab of samples, if that holds one layer of them


def _note(value: object) -> str:
    text: str = checks.text.read(value)
    if len(text) > MAX_NOTE_LENGTH:
        raise Wrong(f"has {len(text):,} letters", "shorten it")
    return text


FITTER = instance_of(Fitter, "an rm.Fitter")
MINUTES = number(0, 1e6, above=True, unit="minute")
NOTE = Check(f"a text of at most {MAX_NOTE_LENGTH:,} letters", _note)
EMPTY_TABLE = np.zeros((0, 0, 0), np.int32)  # of a dense grid
NUMBERS_A_REPORT = len(fields(Report)) + 2  # numbers of a report: three of its shape


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
        "settings": fitter.settings_record(),
        "rates_multiplied": fitter.rates.changes,
        "grid": grid_record(fitter.plan),
        "views": fitter.plan.views_digest.record(),
        "made_by": made_by(),
    }
    # not one of an interruption
    on_the_beat = [report for report in fitter.history if report.step % REPORT_INTERVAL == 0]
    arrays = {
        "history": _table(on_the_beat),
        "level_shape": np.array(grid.shape, "<i8"),
        "table": np.array(grid.table() if isinstance(grid, BrickGrid) else EMPTY_TABLE, "<i4"),
        "cubes": cubes_of(grid),
        "errors": np.append(*fitter.store.errors()).astype("<f8"),
        "occupied": np.packbits(grid.occupied_cells()),
        "allowed": np.packbits(grid.allowed_cells()),
        "world_from_index": np.array(grid.world_from_index, "<f8"),
        **fitter.photometry.state(),
        **({} if fitter.depths is None else fitter.depths.state()),
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
    with open_checkpoint(path) as (record, reader):
        require_same(record, fitter.plan, path, fitter.settings_record())
        note_versions(record, path)
        if record["level"] >= len(fitter.settings.levels):
            raise RaymarchError(f"{path}: level is {record['level']} of {len(fitter.settings.levels)}; {DAMAGE_CURE}")
        _put_level(fitter, reader, path)
        _put_samples(fitter, reader, path)
        history = _history(fitter, reader, path)
        fitter.photometry.put(_numbers_like(fitter.photometry.state(), reader, path))
        if fitter.depths is not None:
            fitter.depths.put(_numbers_like(fitter.depths.state(), reader, path, unknown=("depth_alignment",)))
        store = fitter.images.use(fitter.plan.halvings_of(record["level"]))
        reader.require("errors", (store.tiles + 1,), "<f8")
        if not np.isfinite(errors := reader.rows("errors")).all():
            raise RaymarchError(f"{path}: errors has numbers that are not finite; {DAMAGE_CURE}")
        store.set_errors(errors[:-1], float(errors[-1]))
        reader.require_digest()
    fitter.rates.changes = CHANGES(f"{path}: rates_multiplied", record.get("rates_multiplied"))
    fitter.go_on(_position(record), history)
    return record


def _position(record: Mapping[str, Any]) -> Position:
    """Position of a record, whose seconds are since the start."""
    times = {"seconds": max(record["seconds"] - record["ready"], 0.0), "preparation": record["ready"]}
    values: dict[str, Any] = {each.name: times.get(each.name, record.get(each.name)) for each in fields(Position)}
    return Position(**values)


def bytes_of_checkpoint(fitter: Fitter) -> int:
    """Estimated size of a checkpoint [byte]: half of the finest level's numbers, as half of the samples are empty."""
    return fitter.plan.samples * kept_numbers_of(fitter.grid) * np.dtype(runtime.dtype()).itemsize // 2


def _samples(grid: Grid) -> dict[str, Stream]:
    """Streams of a grid's samples: those that are not all 0, with a bit for each that says which, and likewise the
    gradients that are left."""
    values = kept_numbers_of(grid)
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
    reader.require("table", table_shape(grid.shape) if sparse else EMPTY_TABLE.shape, "<i4")
    table = reader.rows("table")
    if isinstance(grid, BrickGrid):
        numbers = np.sort(table[table != 0])
        if not np.array_equal(numbers, np.arange(1, len(numbers) + 1)):
            raise RaymarchError(
                f"{path}: table has a place that is out of range, missing or there twice; {DAMAGE_CURE}"
            )
        if len(numbers) > grid.room:
            grid.grow(len(numbers))
        grid.put_table(table)
    for name, put in (("occupied", grid.occupy), ("allowed", grid.allow)):
        reader.require(name, (-(-cells // 8),), "|u1")
        put(np.unpackbits(reader.rows(name), count=cells).astype(bool).reshape(grid.cells))


def _put_samples(fitter: Fitter, reader: StreamedReader, path: object) -> None:
    """Put what a checkpoint has of the samples into a grid at its level."""
    grid = fitter.grid
    count, values, kind = count_of(grid), kept_numbers_of(grid), np.dtype(runtime.dtype()).str
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
            raise RaymarchError(f"{path}: samples have numbers that are not finite; {DAMAGE_CURE}")
        put_samples(grid, first, flat.reshape(*slab, -1))
        at += len(flat)
    reader.require("cubes", cubes_of(grid).shape, kind)
    if not np.isfinite(cubes := reader.rows("cubes")).all():
        raise RaymarchError(f"{path}: cubes have numbers that are not finite; {DAMAGE_CURE}")
    put_cubes(grid, cubes)


def _numbers_like(
    state: Mapping[str, np.ndarray], reader: StreamedReader, path: object, unknown: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """What a checkpoint has of arrays by name, shaped like those of a state; finite, but for what may be `unknown`."""
    found = {}
    for name, like in state.items():
        reader.require(name, like.shape, "<f8")
        found[name] = reader.rows(name)
        if name not in unknown and not np.isfinite(found[name]).all():
            raise RaymarchError(f"{path}: {name} has numbers that are not finite; {DAMAGE_CURE}")
    return found


def _table(history: Sequence[Report]) -> np.ndarray:
    """Reports as rows of numbers."""
    rows = [
        [n for value in astuple(report) for n in (value if isinstance(value, tuple) else (value,))]
        for report in history
    ]
    return np.array(rows, "<f8").reshape(len(rows), NUMBERS_A_REPORT)


def _history(fitter: Fitter, reader: StreamedReader, path: object) -> list[Report]:
    """Reports of a checkpoint's rows."""
    reader.require("history", (reader.shape("history")[0], NUMBERS_A_REPORT) if reader.shape("history") else (), "<f8")
    reports = []
    for step, loss, psnr, speed, x, y, z, occupied, seconds, progress, left, boxes in reader.rows("history").tolist():
        shape = int(x), int(y), int(z)
        reports.append(Report(int(step), loss, psnr, speed, shape, occupied, seconds, progress, left, int(boxes)))
    return reports


def width_of(grid: Grid) -> int:
    """Count of a sample's numbers of one kind: density and features."""
    return 1 + grid.colours * (grid.degree + 1) ** 2


def kept_numbers_of(grid: Grid) -> int:
    """Count of a sample's numbers that go on from step to step: its values, and density and colour of two moments."""
    return width_of(grid) + 2 * (1 + grid.colours)


def numbers_of(grid: Grid) -> int:
    """Count of all of a sample's numbers: those, and what is left of the gradient."""
    return kept_numbers_of(grid) + width_of(grid)


def count_of(grid: Grid) -> int:
    """Count of a level's samples: those of the bricks that are there, of a sparse grid."""
    return math.prod(_extent(grid))


def _extent(grid: Grid) -> tuple[int, int, int]:
    return (grid.bricks * BRICK_SAMPLES, 1, 1) if isinstance(grid, BrickGrid) else grid.shape


def slabs_of(grid: Grid) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """First layer along x and shape (x, y, z) of each slab of the level; bricks count as one row along x."""
    x, y, z = _extent(grid)
    layer = y * z * numbers_of(grid) * np.dtype(runtime.dtype()).itemsize
    thick = max(SLAB_BYTES // layer, 1)
    for first in range(0, x, thick):
        yield first, (min(thick, x - first), y, z)


def samples_of(grid: Grid) -> Iterator[np.ndarray]:
    """Numbers (x, y, z, n) of the level's samples, slab by slab: density and features, then density and colour of each
    moment, then what Adam left of the gradient, which is not always nothing: it passes over what underflows."""
    for first, shape in slabs_of(grid):
        values = np.empty((*shape, numbers_of(grid)), runtime.dtype())
        samples_out(grid.fields, first, values)
        yield values


def put_samples(grid: Grid, first: int, values: np.ndarray) -> None:
    """Put a slab back, its first layer at x = `first`."""
    samples_in(values, grid.fields, first)


def cubes_of(grid: Grid) -> np.ndarray:
    """Moments (cube, 2 * width) of the cubes of samples that the level's lie in, features and density the last."""
    both = [field.to_numpy()[_cubes(grid)] for field in _moments(grid)]
    return np.concatenate(both, axis=-1).reshape(-1, 2 * width_of(grid))


def put_cubes(grid: Grid, values: np.ndarray) -> None:
    """Put the moments of cubes back, as `cubes_of` gives them."""
    for field, part in zip(_moments(grid), np.split(values, 2, axis=-1), strict=True):
        whole = np.zeros_like(field.to_numpy())
        whole[_cubes(grid)] = part.reshape(whole[_cubes(grid)].shape)
        field.from_numpy(whole)


def _moments(grid: Grid) -> tuple[Any, Any]:
    return grid.fields.m_cube, grid.fields.v_cube


def _cubes(grid: Grid) -> tuple[slice, ...]:
    """Part of the cubes' fields that the level takes."""
    if isinstance(grid, BrickGrid):
        each = BRICK_SAMPLES // CUBE_SIDE**3
        return slice(1), slice(1), slice(each, each * (1 + grid.bricks))
    return tuple(slice(-(-n // CUBE_SIDE)) for n in grid.shape)


def grid_record(plan: Plan) -> dict[str, Any]:
    """Where a fit's grid lies, how fine it is, whether it is in bricks, and its precision, in plain numbers."""
    ndc = None if plan.ndc_from_world is None else plan.ndc_from_world.ravel().tolist()
    place = {"box": plan.box.ravel().tolist(), "ndc_from_world": ndc}
    return {**place, "shape": list(plan.shape), "sparse": plan.bricks > 0, "precision": np.dtype(runtime.dtype()).name}


def require_same(
    record: Mapping[str, Any], plan: Plan, path: object, settings: Mapping[str, Any] | None = None
) -> None:
    """RaymarchError that names what differs between a checkpoint's record and the fit of this plan, whose settings are
    told as `settings` if not as the plan has them."""
    if words := plan.views_digest.difference(record["views"]):
        raise RaymarchError(f"{path}: is of a fit to other views: {words}; {DIFFERENT_CURE}")
    require_same_settings(record, plan.settings.record() if settings is None else settings, path)
    if words := _differences(record["grid"], grid_record(plan)):
        raise RaymarchError(f"{path}: is of a fit with another grid: {words}; {DIFFERENT_CURE}")


def require_same_settings(record: Mapping[str, Any], settings: Mapping[str, Any], path: object) -> None:
    """RaymarchError that names the settings that differ, what they were and what they are."""
    if words := _differences(record["settings"], settings):
        raise RaymarchError(f"{path}: is of a fit with other settings: {words}; {DIFFERENT_CURE}")


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two mappings, in words; "" if nothing does."""
    old, new = _flatten(was), _flatten(json.loads(json.dumps(now)))
    other = [
        name
        for name in {**new, **old}
        if name not in CHANGEABLE_SETTINGS and not _is_same(old.get(name), new.get(name))
    ]
    words = [
        f"{name} was {_shown_value(name, old)}, is {_shown_value(name, new)}" for name in other[:MAX_NAMED_DIFFERENCES]
    ]
    return ", ".join(words) + (
        f", and {len(other) - MAX_NAMED_DIFFERENCES} more" if len(other) > MAX_NAMED_DIFFERENCES else ""
    )


def _is_same(was: Any, now: Any) -> bool:
    """Whether two values are the same; numbers of a box to ten figures, for the last bit may be another machine's."""
    if was and isinstance(was, list) and isinstance(now, list) and all(isinstance(n, float) for n in was + now):
        return len(was) == len(now) and np.allclose(was, now, rtol=CAMERA_TOLERANCE, atol=0)
    return bool(was == now)


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Mapping without those within it: `optimiser`'s lr_density goes by its own name, as it is given."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flatten(value) if name == "optimiser" and isinstance(value, Mapping) else {name: value}
    return flat


def _shown_value(name: str, values: Mapping[str, Any]) -> str:
    if name not in values:
        return "not there"
    value = values[name]
    plain = json.dumps(value) if isinstance(value, (list, dict)) else repr(value)
    return plain if len(plain) < MAX_VALUE_LENGTH else short_value(value)


def made_by() -> dict[str, str]:
    """Software and device that the last bits depend on."""
    return {**versions(), "arch": runtime.start().arch}


def note_versions(record: Mapping[str, Any], path: object) -> None:
    """Say where the software is not what the checkpoint was made by."""
    now = made_by()
    other = [
        f"{name} {record['made_by'].get(name)}, now {now[name]}"
        for name in now
        if record["made_by"].get(name) != now[name]
    ]
    if other:
        log.warning("%s was made by %s; the last bits may differ", path, ", ".join(other))
