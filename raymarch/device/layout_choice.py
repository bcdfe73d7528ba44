"""Choice of the memory layout: the block of each kind of grid, which depends on the processor.

What was measured lies in the user's cache, a file a processor, and is read once a process, by the first grid.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import one_of
from raymarch.arguments.declared import checked_field, validate_fields
from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.atomic import replace_file
from raymarch.io.files.strict import read_json
from raymarch.runtime.kernel_cache import CACHE_VARIABLE, cache_folder
from raymarch.system.versions import version_of

log = logging.getLogger(__name__)

MIN_LARGE_SAMPLES = 192**3  # samples from which a grid of degree 0 counts as large
BLOCK_RULE = one_of(1, 2, 4)  # not 8, whose marks, and so what is refused for want of memory, are others
LAYOUT_VARIABLE = "RAYMARCH_LAYOUT"  # of the environment: "default" leaves what was measured aside
MAX_FILE_BYTES = 4096  # bytes
RECORD_KEYS = {"raymarch", "processor", "measured", "blocks"}


@dataclass(frozen=True)
class LayoutChoice:
    """Layout choice: edge of the layout's blocks [voxel] by kind of grid, 1 flat; the bytes of results are the same.

    Attributes:
        read, fit: of SH degree 0, without gradients and with those of a fit, below 192^3 samples.
        gradient: the same with gradients that nothing but a caller asks for, as in `rm.torch`.
        read_large, fit_large: the same from 192^3 samples on.
        read_above, fit_above: of higher SH degrees.

    Example:
        >>> LayoutChoice().fit_large
        4
    """

    read: int = checked_field(BLOCK_RULE, 1)  # flat: addresses are cheapest
    gradient: int = checked_field(BLOCK_RULE, 1)  # flat: the adjoint reads long groups, and there is no Adam
    fit: int = checked_field(BLOCK_RULE, 4)  # of which adding up and Adam read whole pages
    read_large: int = checked_field(BLOCK_RULE, 1)
    fit_large: int = checked_field(BLOCK_RULE, 4)
    read_above: int = checked_field(BLOCK_RULE, 4)
    fit_above: int = checked_field(BLOCK_RULE, 4)

    def __post_init__(self) -> None:
        validate_fields(self)


USE_WORDS = {
    "read": "reading, SH degree 0, below 192^3 samples",
    "gradient": "gradients, SH degree 0, below 192^3 samples",
    "fit": "fitting, SH degree 0, below 192^3 samples",
    "read_large": "reading, SH degree 0, from 192^3 samples",
    "fit_large": "fitting, SH degree 0, from 192^3 samples",
    "read_above": "reading, higher SH degrees",
    "fit_above": "fitting, higher SH degrees",
}


def block_text(block: int) -> str:
    """A layout in words, by the edge of its blocks.

    Example:
        >>> block_text(1), block_text(4)
        ('flat', 'blocks of 4')
    """
    return "flat" if block == 1 else f"blocks of {block}"


def kind_of(shape: Sequence[int], degree: int, slots: int, moments: bool) -> str:
    """Kind of a grid, a field of `LayoutChoice`; it has gradients where it has slots, and is fitted with moments.

    Example:
        >>> kind_of((256, 256, 256), 0, slots=4, moments=True)
        'fit_large'
    """
    use = "fit" if slots else "read"
    if degree > 0:
        return f"{use}_above"
    if np.prod(shape, dtype=float) >= MIN_LARGE_SAMPLES:
        return f"{use}_large"
    return "gradient" if slots and not moments and degree == 0 else use


@dataclass(frozen=True)
class ChoiceInForce:
    """Layout choice in force, and where it is from.

    Attributes:
        choice: the blocks.
        measured: those of them that `raymarch tune` measured, by kind of grid; the rest are the default.
        date: when it did, ISO 8601; None if it did not.
    """

    choice: LayoutChoice
    measured: Mapping[str, int] = field(default_factory=dict)
    date: str | None = None


@cache
def current_choice() -> ChoiceInForce:
    """Layout choice that grids of this process follow: the one measured on this processor, else the default.

    A file that cannot be used is a line in the log. Raises RaymarchError where the variable RAYMARCH_LAYOUT is neither
    "measured" nor "default".
    """
    return _saved_choice() if _takes_measured() else ChoiceInForce(LayoutChoice())


def measured_blocks() -> Mapping[str, int]:
    """Blocks that `raymarch tune` measured on this processor, by kind of grid, in force or left aside by the variable.

    Raises RaymarchError as `current_choice` does.
    """
    return current_choice().measured if _takes_measured() else _saved_choice().measured


def save_choice(measured: Mapping[str, int]) -> Path:
    """Put measured blocks, by kind of grid, in force here and, by a file in the user's cache, in processes to come.

    Raises RaymarchError where the file cannot be written.
    """
    file, now = choice_file(), datetime.now().isoformat(timespec="seconds")
    record = {"raymarch": version_of("raymarch"), "processor": processor(), "measured": now, "blocks": dict(measured)}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RaymarchError(
            f"{file}: cannot be written ({one_line(error)}); set {CACHE_VARIABLE} to a folder"
        ) from error
    with replace_file(file) as temporary:
        temporary.write_text(json.dumps(record) + "\n", encoding="utf-8")
    current_choice.cache_clear()
    return file


def delete_choice() -> bool:
    """Remove what was measured on this processor; whether there was anything. Raises RaymarchError where it stays."""
    file = choice_file()
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RaymarchError(f"{file}: cannot be removed ({one_line(error)}); remove it by hand") from error
    finally:
        current_choice.cache_clear()
    return True


def choice_file() -> Path:
    """File of this processor's choice, which may be missing."""
    return cache_folder() / f"raymarch-layout-{hashlib.sha256(processor().encode()).hexdigest()[:8]}.json"


@cache
def processor() -> str:
    """Name of this machine's processor, with what tells it from others of the name where the system says so.

    Example:
        >>> len(processor()) > 0
        True
    """
    rows: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            rows[name.strip()] = value.strip()
    except OSError:
        pass  # not Linux
    name = rows.get("model name") or platform.processor() or platform.machine() or "unknown"
    told = ", ".join(f"{part} {rows[part]}" for part in ("cpu family", "model", "cache size") if part in rows)
    return f"{name} ({told}), {os.cpu_count()} threads" if told else f"{name}, {os.cpu_count()} threads"


def _takes_measured() -> bool:
    """Whether the variable leaves what was measured in force; RaymarchError where it says neither."""
    asked = os.environ.get(LAYOUT_VARIABLE) or "measured"
    if asked not in ("measured", "default"):
        raise RaymarchError(f"{LAYOUT_VARIABLE} is {asked[:60]!r}, want measured or default; correct or unset it")
    return asked == "measured"


def _saved_choice() -> ChoiceInForce:
    """Choice of this processor's file, else the default; a file that cannot be used is a line in the log."""
    try:
        if os.path.lexists(file := choice_file()):
            return _read(file)
    except (RaymarchError, OSError) as error:
        log.warning("layouts are the default: %s; measure anew (raymarch tune), or --forget", one_line(error))
    return ChoiceInForce(LayoutChoice())


def _read(file: Path) -> ChoiceInForce:
    """Choice that a file holds; RaymarchError for one of another version or processor, and for all that is none."""
    if not file.is_file():
        raise RaymarchError(f"{file} is no file")
    if (size := file.stat().st_size) > MAX_FILE_BYTES:
        raise RaymarchError(f"{file} has {size:,} bytes, want at most {MAX_FILE_BYTES:,}")
    record = read_json(file)
    if (
        not isinstance(record, dict)
        or set(record) != RECORD_KEYS
        or not all(isinstance(v, str) for v in _texts(record))
    ):
        raise RaymarchError(f"{file} is no record of layouts")
    for name, own in (("raymarch", version_of("raymarch")), ("processor", processor())):
        if record[name] != own:
            raise RaymarchError(f"{file} is of {name} {record[name][:80]!r}, not {own!r}")
    blocks, known = record["blocks"], {each.name for each in fields(LayoutChoice)}
    if not isinstance(blocks, dict) or not set(blocks) <= known:
        raise RaymarchError(f"{file} has other kinds of grids than there are")
    try:
        date = datetime.fromisoformat(record["measured"]).isoformat(timespec="seconds")
    except ValueError:
        raise RaymarchError(f"{file} has no date") from None
    try:
        return ChoiceInForce(LayoutChoice(**blocks), blocks, date)
    except RaymarchError as error:
        raise RaymarchError(f"{file}: {error}") from error


def _texts(record: dict[str, Any]) -> list[Any]:
    return [record[name] for name in sorted(RECORD_KEYS - {"blocks"})]
