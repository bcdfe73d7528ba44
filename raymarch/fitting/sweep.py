"""Sweeps: one fit for each combination of settings, a folder each, by any workers; what is finished is not done again.

A worker reads the image set for itself, fits, scores, and writes its folder: a volume, and last a record with the
terms of the fit, which are all that it depends on. A sweep that was cut off has some of these records, and the next one
with the same words does the rest.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import itertools
import json
import logging
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from raymarch.arguments.checks import Check, Numbers, callback, flag, instance_of, optional, path, text
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, first_names
from raymarch.evaluation.held_out import evaluate
from raymarch.fitting.fit import fit
from raymarch.fitting.report import cut_short, march_of
from raymarch.fitting.settings.settings import NAMED_SETTINGS, FitSettings, change_settings, preset
from raymarch.geometry.boxes import BOX
from raymarch.html.card import card_html, html_of, table_html
from raymarch.io.files.atomic import replace_file, system_refusals
from raymarch.io.files.authorship import require_other
from raymarch.io.files.lock import lock_file
from raymarch.io.files.strict import read_json
from raymarch.io.image_sets.load import load_views
from raymarch.io.volumes.volume_file import save
from raymarch.system.versions import version_of
from raymarch.tasks.executors import EXECUTOR, Where, run_tasks
from raymarch.tasks.worker import Device

log = logging.getLogger(__name__)

TABLE, RECORD, VOLUME_FILE = "sweep.csv", "fit.json", "volume.h5"
MAX_FITS = 1000
MAX_NAME = 80  # characters of a fit's folder
COLUMNS = ("psnr", "ssim", "seconds", "steps", "ended", "volume", "error", "unscored")


@dataclass(frozen=True)
class SweptFit:
    """One fit of a sweep.

    Attributes:
        name: its folder in the sweep's.
        changes: the settings that it has in place of the preset's, by name.
        volume: path of the volume; "" where there is none.
        psnr, ssim: on the held-out views; None where the set has none.
        seconds: of its steps, without what compiling took.
        steps, ended: how many it took, and how it ended.
        error: why there is no volume; "" where there is.
        unscored: why there is a volume and no score; "" where there is one.
        found: whether an earlier sweep had finished it.
    """

    name: str
    changes: Mapping[str, object]
    volume: str = ""
    psnr: float | None = None
    ssim: float | None = None
    seconds: float = 0.0
    steps: int = 0
    ended: str = ""
    error: str = ""
    unscored: str = ""
    found: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Sweep:
    """Result of `sweep`: its fits in the order of their settings, and its folder."""

    fits: tuple[SweptFit, ...]
    folder: str

    @property
    def best(self) -> SweptFit | None:
        """The fit of the highest PSNR; None where none was scored."""
        scored = [one for one in self.fits if one.psnr is not None]
        return max(scored, key=lambda one: one.psnr or 0.0, default=None)

    def _repr_html_(self) -> str | None:
        return html_of(_sweep_card, self)


@dataclass(frozen=True)
class FitToMake:
    """One fit, as it travels to a worker: paths and settings."""

    data: str
    settings: FitSettings
    changes: Mapping[str, object]
    folder: str
    terms: Mapping[str, str]
    split: str
    held_out: str
    reading: Mapping[str, object]
    box: Numbers | None = None


def _settings(value: object) -> list[dict[str, object]]:
    if not isinstance(value, (Mapping, list, tuple)):
        raise TypeError
    return combine_settings(value)


def _preset(value: object) -> FitSettings:
    return NAMED_SETTINGS.read(preset(value) if isinstance(value, str) else value)


def _reading(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError
    return value


SETTINGS = Check("values by the name of a setting, such as {'rays': [4096, 8192]}, or a list of changes", _settings)
PRESET = Check("the name of a preset, or an rm.FitSettings", _preset)
READING = Check("options of rm.load_views by name", _reading)


@checked(
    data=path,
    settings=SETTINGS,
    out=path,
    preset=PRESET,
    executor=EXECUTOR,
    split=text,
    held_out=text,
    reading=optional(READING),
    box=optional(BOX),
    show=optional(callback),
    overwrite=flag,
    device=optional(instance_of(Device, "a record of raymarch.tasks.worker.Device")),
)
def sweep(
    data: str | os.PathLike[str],
    settings: Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]],
    *,
    out: str | os.PathLike[str],
    preset: str | FitSettings = "default",
    executor: Where = None,
    split: str = "train",
    held_out: str = "test",
    reading: Mapping[str, object] | None = None,
    box: Numbers | None = None,
    show: Callable[[SweptFit], None] | None = None,
    overwrite: bool = False,
    device: Device | None = None,
) -> Sweep:
    """Fits of an image set by all combinations of settings, each in a folder of `out`, with a table of their scores.

    Args:
        data: path of an image set, which each worker reads for itself.
        settings: values by name of a setting, of which all combinations are fitted; or a list of changes by name.
        out: folder, new or of an earlier sweep; a fit that is finished there is not made again. `sweep.csv` has a row
            for each, those of earlier sweeps too that differ in `settings` alone.
        preset: what the settings change, a preset's name or a `FitSettings`.
        executor: who fits, as `rm.render_many` takes it; workers write to `out`, and must see it and `data` by the same
            paths. None for this process, one fit after the other.
        split, held_out: views that are fitted, and that are scored.
        reading: options of `rm.load_views` by name.
        box: lower and upper corner (2, 3) of all fits; found from masks and cameras if not given.
        show: called with each `SweptFit` as it is there.
        overwrite: whether to make those fits again that are there with another set, other settings than `settings`
            says, or by another version of raymarch.
        device: of each worker.

    A fit that cannot be made is a row with its error, and the others go on. A set without the views to score on is
    warned of before the first.

    Raises RaymarchError before anything is fitted for settings that there are not, for a set that cannot be read, for a
    folder with other things or with fits that would be lost; and as `rm.render_many` does.

    Example:
        >>> found = sweep("scenes/tower", {"rays": [4096, 8192]}, out="rays", preset="quick")  # doctest: +SKIP
        >>> found.best.changes  # doctest: +SKIP
        {'rays': 8192}
    """
    combinations = cast("list[dict[str, object]]", settings)  # as their rules read both
    base = cast("FitSettings", preset)
    folder, source = Path(out), os.path.abspath(data)
    if not os.path.exists(source):
        raise RaymarchError(f"{os.fspath(data)}: is not there; give the path of an image set")
    require_other(folder, source)
    _require_folder(folder)
    told = {"set": _digest_of_set(source, folder), "split": split, "held_out": held_out}
    told |= {f"reading {name}": repr(value) for name, value in (reading or {}).items()}
    told |= {"version": version_of("raymarch"), "box": repr(box if box is None else np.asarray(box).tolist())}

    def task_of(changes: Mapping[str, object], name: str) -> FitToMake:
        changed = change_settings(base, **changes)
        place = os.path.abspath(folder / name)
        terms = {**told, **_terms_of(changed)}
        return FitToMake(source, changed, changes, place, terms, split, held_out, reading or {}, box)

    tasks = [task_of(*one) for one in zip(combinations, name_combinations(combinations), strict=True)]
    if not overwrite:
        _require_same_terms(tasks)
    if any(_finished(task) is None for task in tasks):
        _require_views(tasks[0])
    with ExitStack() as owners:
        with system_refusals(folder):
            folder.mkdir(parents=True, exist_ok=True)
        owners.enter_context(lock_file(folder / TABLE, "choose another folder"))
        done = {task.folder: found for task in tasks if (found := _finished(task)) is not None}
        for found in done.values():
            if show is not None:
                show(found)
        left = [task for task in tasks if task.folder not in done]
        earlier = _earlier_fits(folder, tasks, task_of)

        def write_table() -> None:
            _write_table(folder, [(one.changes, done.get(one.folder)) for one in tasks] + earlier)

        made: Iterator[SweptFit] = run_tasks(make_fit, left, executor, device)
        owners.callback(made.close)  # type: ignore[attr-defined]
        write_table()
        for task, result in zip(left, made, strict=True):
            done[task.folder] = result
            write_table()
            if show is not None:
                show(result)
    return Sweep(tuple(done[task.folder] for task in tasks), str(folder))


def combine_settings(
    settings: Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]],
) -> list[dict[str, object]]:
    """Changes by name of each fit: all combinations of values, the last name's changing fastest; or the list as it is.

    Raises RaymarchError for no value of a setting, none at all, too many, or two that are alike.

    Example:
        >>> combine_settings({"rays": [1, 2], "seed": [0]})
        [{'rays': 1, 'seed': 0}, {'rays': 2, 'seed': 0}]
    """
    if isinstance(settings, Mapping):
        for name, values in settings.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise RaymarchError(f"settings: {name} is {values!r:.60}, want a list of one value or more")
        total = 1
        for values in settings.values():
            total *= len(values)
        if total > MAX_FITS:
            raise RaymarchError(f"settings are {total:,} combinations, want at most {MAX_FITS:,}; give fewer values")
        combinations = [
            dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values()) if settings
        ]
    elif isinstance(settings, Sequence) and all(isinstance(one, Mapping) for one in settings):
        combinations = [dict(one) for one in settings]
    else:
        raise RaymarchError(f"settings are {settings!r:.60}, want a list of changes, each by the name of a setting")
    if not combinations or len(combinations) > MAX_FITS:
        raise RaymarchError(f"settings are {len(combinations):,} fits, want 1 to {MAX_FITS:,}; give values by name")
    if len({repr(one) for one in combinations}) < len(combinations):
        twice = next(one for i, one in enumerate(combinations) if repr(one) in map(repr, combinations[:i]))
        told = ", ".join(f"{name}={value!r}" for name, value in twice.items()) or "the preset"
        raise RaymarchError(f"settings have two fits that are alike, of {told:.60}; leave one of them out")
    return combinations


def name_combinations(combinations: Sequence[Mapping[str, object]]) -> list[str]:
    """Name of each fit's folder, of its settings where these make one.

    Example:
        >>> name_combinations([{"rays": 4096, "colour": "sigmoid"}, {}])
        ['rays-4096_colour-sigmoid', 'as-the-preset']
    """
    names = []
    for changes in combinations:
        told = "_".join(f"{name}-{value}" for name, value in changes.items())
        name = re.sub(r"[^\w.+-]+", "-", told, flags=re.ASCII).strip("-") or "as-the-preset"
        if len(name) > MAX_NAME or name in names:
            name = f"{name[: MAX_NAME - 9]}-{hashlib.sha256(repr(changes).encode()).hexdigest()[:8]}"
        names.append(name)
    return names


def make_fit(task: FitToMake) -> SweptFit:
    """A fit in a worker: its folder with the volume, and its record last."""
    folder = Path(task.folder)
    if not folder.parent.is_dir() or not os.path.exists(task.data):
        missing = folder.parent if os.path.exists(task.data) else task.data
        raise RaymarchError(
            f"{missing}: the worker on {platform.node()} does not see it; put it where all workers see it by that path,"
            " or take workers on this machine alone"
        )
    row = SweptFit(folder.name, task.changes)
    try:
        with system_refusals(folder):
            folder.mkdir(exist_ok=True)
        views = load_views(task.data, task.split, **task.reading)  # type: ignore[arg-type]
        result = fit(views, task.settings, box=task.box)
        path = folder / VOLUME_FILE
        (folder / RECORD).unlink(missing_ok=True)  # of other settings: it must not tell of the volume that comes now
        save(result.volume, path, True)
        row = replace(row, volume=str(path), seconds=result.seconds, ended=result.ended)
        row = replace(row, steps=int(result.volume.provenance["steps"]))
    except RaymarchError as error:
        return replace(row, error=str(error))
    row = _scored(row, task, result.volume)
    if not cut_short(result.ended):
        with replace_file(folder / RECORD) as new:
            new.write_text(json.dumps({"terms": task.terms, **_plain(row)}, indent=1))
    return row


def _scored(row: SweptFit, task: FitToMake, volume: Any) -> SweptFit:
    """The row with its scores on the held-out views, or with why it has none, such as a set without that split."""
    try:
        views = load_views(task.data, task.held_out, for_fit=False, **task.reading)  # type: ignore[arg-type]
        scored = evaluate(volume, views, march=march_of(task.settings))
    except RaymarchError as error:
        return replace(row, unscored=str(error))
    return replace(row, psnr=scored.psnr, ssim=scored.ssim)


def _terms_of(settings: FitSettings) -> dict[str, str]:
    """Values of settings by name, the optimiser's too, as a checkpoint keeps them."""
    told = settings.record()
    return {name: repr(value) for name, value in {**told, **told.pop("optimiser")}.items() if name != "optimiser"}


def _record_of(folder: Path) -> tuple[Mapping[str, object], SweptFit] | None:
    """Terms and result, its changes in words, of the fit that is finished in a folder; None where there is none, or its
    volume is gone. A record without terms is of no sweep as they are now, and its fit is kept as one on others."""
    known = {one.name for one in fields(SweptFit)}
    try:
        told = read_json(folder / RECORD)
        terms = told.pop("terms", {})
        place = str(folder / VOLUME_FILE)  # the folder may have been moved
        row = {name: value for name, value in told.items() if name in known}
        found = SweptFit(**{**row, "name": folder.name, "volume": place, "found": True})
    except (RaymarchError, OSError, AttributeError, TypeError):
        return None
    return (terms, found) if isinstance(terms, Mapping) and os.path.isfile(found.volume) else None


def _finished(task: FitToMake) -> SweptFit | None:
    """What an earlier sweep made on the same terms; None where it did not, or its volume is gone."""
    record = _record_of(Path(task.folder))
    return replace(record[1], changes=task.changes) if record and record[0] == task.terms else None


def _earlier_fits(
    folder: Path, tasks: Sequence[FitToMake], task_of: Callable[[Mapping[str, object], str], FitToMake]
) -> list[tuple[Mapping[str, object], SweptFit | None]]:
    """Fits in a sweep's folder that are none of `tasks` and differ from them in their changes alone."""
    found: list[tuple[Mapping[str, object], SweptFit | None]] = []
    for place in sorted(folder.iterdir()):
        record = None if any(os.path.abspath(place) == task.folder for task in tasks) else _record_of(place)
        changes = None if record is None else _values_of(record[1].changes)
        with suppress(RaymarchError):  # of a setting that there is no more
            if record is not None and changes is not None and task_of(changes, place.name).terms == record[0]:
                found.append((changes, record[1]))
    return found


def _values_of(words: object) -> dict[str, object] | None:
    """Changes of a record's words; None where any is no literal, such as a function of the user's own."""
    try:
        return {name: ast.literal_eval(text) for name, text in words.items()}  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _require_same_terms(tasks: Sequence[FitToMake]) -> None:
    """RaymarchError where a finished fit would be replaced by one on other terms."""
    for task in tasks:
        record = _record_of(Path(task.folder))
        if record is None or record[0] == task.terms:
            continue
        others = [name for name in {**task.terms, **record[0]} if task.terms.get(name) != record[0].get(name)]
        raise RaymarchError(
            f"{task.folder}: has a fit that would be lost, with another {first_names(others, most=3)}; choose another"
            " folder, or --overwrite (overwrite=True in Python)"
        )


def _require_views(task: FitToMake) -> None:
    """RaymarchError where the set cannot be read, before every fit fails by it; a warning for none to score on."""
    load_views(task.data, task.split, **task.reading)  # type: ignore[arg-type]
    try:
        load_views(task.data, task.held_out, for_fit=False, **task.reading)  # type: ignore[arg-type]
    except RaymarchError as error:
        log.warning("%s; no fit of the sweep will have a score", error)


def _require_folder(folder: Path) -> None:
    """RaymarchError for a folder that is no sweep's and has something in it."""
    if folder.exists() and not folder.is_dir():
        raise RaymarchError(f"{folder}: is a file, want a folder for the sweep; choose another name")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / TABLE).is_file():
        raise RaymarchError(f"{folder}: has files that no sweep wrote; choose another folder, or an empty one")


def _digest_of_set(source: str, folder: Path) -> str:
    """Digest of the names, sizes and times of a set's files, without those in the sweep's own folder."""
    digest = hashlib.sha256()
    if os.path.isfile(source):
        told = os.stat(source)
        return f"{told.st_size} {told.st_mtime_ns}"
    own = os.path.abspath(folder)
    for place, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if os.path.join(place, name) != own)
        for name in sorted(files):
            told = os.stat(os.path.join(place, name))
            where = os.path.relpath(os.path.join(place, name), source)
            digest.update(f"{where} {told.st_size} {told.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _plain(row: SweptFit) -> dict[str, object]:
    """A row as JSON has it."""
    told = asdict(row)
    told.pop("found")
    told["changes"] = {name: repr(value) for name, value in row.changes.items()}
    return told


def _write_table(folder: Path, rows: Sequence[tuple[Mapping[str, object], SweptFit | None]]) -> None:
    """The table of all fits, those that are not there yet with empty cells."""
    names = list(dict.fromkeys(name for changes, _ in rows for name in changes))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*names, *COLUMNS])
    for changes, row in rows:
        scores = ["" if row is None or (value := getattr(row, name)) is None else value for name in COLUMNS]
        table.writerow([*(changes.get(name, "") for name in names), *scores])
    with replace_file(folder / TABLE) as new:
        new.write_text(text.getvalue())


def _sweep_card(found: Sweep) -> str:
    """HTML of a sweep for a notebook: its best fit, and all of them."""
    best = found.best
    head: list[tuple[str, object]] = [("fits", len(found.fits)), ("folder", found.folder)]
    head += [("best", best.name)] if best else []
    lines = [
        [
            one.name,
            *("" if (v := getattr(one, name)) is None else f"{v:.4g}" for name in ("psnr", "ssim", "seconds")),
            one.error,
        ]
        for one in found.fits
    ]
    return card_html("Sweep", head) + table_html(["fit", "PSNR [dB]", "SSIM", "seconds", "error"], lines)
