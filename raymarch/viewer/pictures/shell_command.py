"""The shell command that makes the picture a page shows."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.march_settings import supersample_of
from raymarch.viewer.pictures.picture_source import FitSource, Source, VolumeSource
from raymarch.viewer.pictures.viewer_camera import Look, ViewerCamera
from raymarch.volumes.default_table import default_table
from raymarch.volumes.transfer_function import TransferFunction

PICTURE_FOLDER = "picture"  # folder of the picture
UNNAMED_FILE = "volume.h5"
COLOUR_MAPS = ("viridis", "bone", "gray", "inferno", "magma", "plasma", "cividis", "turbo")


def command_of(source: Source, file: str, eye: ViewerCamera, look: Look, window: Any = None) -> tuple[str, list[str]]:
    """Command line that makes the picture a page shows, and the settings that it cannot express.

    Args:
        file: of the volume; "" of one that was never read from any.
        window: of values that the picture has, where the look has none of its own.
    """
    notes = []
    if isinstance(source, FitSource):
        raise RaymarchError("command: a running fit is in no file yet; copy it when the fit is done")
    if not file:
        notes.append(
            f"save the volume first, in Python by rm.save(volume, '{UNNAMED_FILE}'), or put your file's name there"
        )
    words = ["raymarch", "slices" if look.slice is not None else "render", file or UNNAMED_FILE]
    if look.slice is not None:
        words += _slices(source, look, notes)
    else:
        if eye.view is not None:
            notes.append("the camera is the page's, without the lens and the frame of the photograph's")
        words += ["--position", _list(eye.position), "--target", _list(eye.target), "--up", _list(eye.up)]
        words += ["--fov", repr(float(eye.fov)), "--size", f"{eye.width},{eye.height}"]
        words += ["--orthographic"] * eye.orthographic + _look(source, look, window, notes) + ["--out", PICTURE_FOLDER]
    if look.exposure != 0:
        notes.append("exposure is not in the command, which writes the picture without it")
    return (subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)), notes


def _list(numbers: Iterable[Any]) -> str:
    return ",".join(repr(float(each)) for each in numbers)


def _look(source: Source, look: Look, window: Any, notes: list[str]) -> list[str]:
    rule = MODES[look.mode]
    words = ["--mode", look.mode]
    if rule.step:
        words += ["--step", repr(float(look.step))]
    if rule.classifies:
        table = look.table or source.table
        words += [] if table is None else ["--table", table_words(source, table)]
        words += ["--shading"] * look.shading
    if "iso" in rule.parameters:
        iso = source.iso if look.iso is None else look.iso
        words += [] if iso is None else ["--iso", repr(float(iso))]
        if not look.shading:
            notes.append("raymarch render lights a surface always")
    shown = look.window or window
    if not rule.background and shown is not None and look.extras == "image":
        words += ["--window", _list(shown)]
    if isinstance(source, VolumeSource) and source.side != (supersample_of(source.seen) or 1):
        words += ["--supersample", str(source.side)]
    if look.clip is not None:
        if look.clip.box is not None:
            words += ["--clip-box", _list(np.ravel(look.clip.box))]
        for normal, offset in look.clip.planes:
            words += ["--clip-plane", _list([*normal, offset])]
    behind = look.background
    if behind is None and isinstance(source, VolumeSource) and source.values:
        behind = source.background  # as raymarch render puts a scan on another ground than its own white
    if rule.background and behind is not None:
        words += ["--background", _list(behind)]
    if look.extras in ("depth", "opacity"):
        words.append("--extras")
        notes.append(f"the {look.extras} is the file that ends in _{look.extras}.png")
    if look.extras == "normals":
        notes.append("normals are not in the command, which writes the image")
    return words


def _slices(source: Source, look: Look, notes: list[str]) -> list[str]:
    assert look.slice is not None
    assert isinstance(source, VolumeSource)
    at = 0.5 * (source.seen.box[0] + source.seen.box[1])
    at[look.slice.axis] = look.slice.position
    notes.append("raymarch slices draws those across the two other axes beside it")
    return ["--at", _list(at), "--window", _list(look.window or source.range), "--out", "slices.png"]


def table_words(source: Source, table: TransferFunction) -> str:
    """Transfer function as the option --table takes it: the name and ends of a colour map, or else the knots."""
    if isinstance(source, VolumeSource):
        ends = float(table.values[0]), float(table.values[-1]), float(table.opacities[-1])
        for name in COLOUR_MAPS:
            try:
                made = default_table(source.seen, name, *ends)
            except RaymarchError:
                break
            if all(np.array_equal(value, getattr(table, key)) for key, value in vars(made).items()):
                return f"{name},{_list(ends)}"
    return knots_of(table)


def knots_of(table: TransferFunction) -> str:
    """Knots of a table in one word: VALUE:RED:GREEN:BLUE:OPACITY,...@LENGTH.

    Example:
        >>> knots_of(TransferFunction([0, 9], [(0, 0, 0), (1, 1, 0.5)], [0, 0.25], 2.0))
        '0.0:0.0:0.0:0.0:0.0,9.0:1.0:1.0:0.5:0.25@2.0'
    """
    rows = np.column_stack([table.values, table.colours, table.opacities]).tolist()
    return ",".join(":".join(map(repr, row)) for row in rows) + f"@{float(table.unit_length)!r}"
