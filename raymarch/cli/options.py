"""Options that verbs of several kinds share: JSON, overwriting, which part of a file, clipping, several volumes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import output
from raymarch.cli.modes import ModeOptions
from raymarch.cli.option_kinds import Box, Names, Plane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raymarch.geometry.clip import Clip
    from raymarch.rendering.march_settings import March
    from raymarch.rendering.renderer import Renderer
    from raymarch.volumes.volume import AnyVolume, Volume

START_TIME = time.perf_counter()  # as near to the start of the command as Python lets us
as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
overwrite = click.option(
    "--overwrite", is_flag=True, help="Write over files that raymarch did not write, or that an image set needs."
)
channels = click.option(
    "--channels",
    type=Names(),
    metavar="A,B,C",
    help="Of a volume with other channels than red, green and blue: three to be shown as these, or one in grey, over"
    " the ranges that it was fitted to; the first three if not given.",
)
clip_box = click.option("--clip-box", type=Box(), help="Show what lies in this box of the world alone.")
clip_plane = click.option(
    "--clip-plane",
    type=Plane(),
    metavar="NX,NY,NZ,OFFSET",
    multiple=True,
    help="Show what lies where nx x + ny y + nz z >= offset alone; up to six times.",
)
others = click.option(
    "--with", "others", metavar="VOLUME", multiple=True, help="Show another volume together with it; up to three times."
)
their_tables = click.option(
    "--with-table",
    "tables",
    metavar="FILE|MAP",
    multiple=True,
    help="Transfer function of a volume given by --with, in their order; chosen as --table is if not given.",
)


read_as = click.option(
    "--format",
    "format",
    metavar="NAME",
    help="Format to read the volume as, by its name in docs/volumes.md; found out from the file if not given.",
)


def place_options(command: Any) -> Any:
    """Options for which of a file's channels, points in time and levels is meant, and which format it is read as."""
    command = read_as(command)
    count = click.IntRange(0)
    for name, of in (("level", "pyramid levels"), ("time-point", "points in time"), ("channel", "channels or colours")):
        word = "time" if name == "time-point" else name
        command = click.option(f"--{name}", word, type=count, help=f"Which of several {of}, from 0.")(command)
    return command


def require_within(name: str, value: float, low: float, high: float) -> None:
    """UsageError for a number that is not in an interval, nor any number."""
    if not low <= value <= high:
        raise click.UsageError(f"{name} is {value:g}, want a number from {low:g} to {high:g}")


def shown_in_colour(volume: Any, channels: tuple[str, ...] | None) -> Any:
    """Volume that shows the channels asked for as colours; RaymarchError for a scalar volume where any are."""
    from raymarch.errors import RaymarchError
    from raymarch.volumes.volume import Volume as Fitted

    if isinstance(volume, Fitted):
        return volume.in_colour(channels)
    if channels is not None:
        raise RaymarchError("--channels are of a fitted volume, this is a scan of one value; leave it out")
    return volume


def clip_of(box: list[list[float]] | None, planes: Sequence[list[float]], volume: Volume) -> Clip | None:
    """Clipping of the options `clip_box` and `clip_plane`, with a note where it leaves nothing of a volume's box, which
    ends nowhere in NDC."""
    import numpy as np

    from raymarch.geometry.clip import Clip

    if box is None and not planes:
        return None
    clip = Clip(box, planes)  # type: ignore[arg-type]  # as its rules read them
    if volume.ndc_from_world is not None:
        return clip
    outermost = volume.nested(volume.boxes - 1).box if volume.boxes > 1 else volume.box
    lower, upper = outermost
    reaches = [np.where(row[:3] > 0, upper, lower) @ row[:3] >= row[3] for row in clip.half_spaces]
    if not all(reaches):
        ends = " to ".join(" ".join(f"{x:.4g}" for x in corner) for corner in outermost)
        output.print_note(f"note: the clip leaves nothing of the volume, whose box is {ends}")
    return clip


def add_others(
    volume: Volume, march: March, shown: ModeOptions, paths: Sequence[str], tables: Sequence[str]
) -> tuple[list[Volume], list[March]]:
    """A volume and those of the option `others`, and the march of each by its table or by what it holds.

    RaymarchError for what cannot be shown together.
    """
    from raymarch.io.volumes.volume_file import load
    from raymarch.rendering.medium import VOLUMES, marches_for

    if len(tables) > len(paths):
        raise click.UsageError(f"--with-table is there {len(tables)} times, --with {len(paths)}; give one for each")
    if not paths:
        return [volume], [march]
    volumes = VOLUMES("volumes", [volume, *(_move_to_world(volume, load(path), path) for path in paths)])
    given = [*tables, *[None] * (len(paths) - len(tables))]
    theirs = [
        ModeOptions(table=table, step=shown.step, supersample=shown.supersample).march(other, lit=False)
        for other, table in zip(volumes[1:], given, strict=True)
    ]
    return volumes, marches_for(volumes, [march, *theirs])


def _move_to_world(volume: AnyVolume, other: AnyVolume, path: str) -> AnyVolume:
    """Another volume in the world of a volume, which is said, where both say theirs."""
    world, its = (getattr(one, "world", "") for one in (volume, other))
    if not (world and its and world != its):
        return other
    output.print_note(f"{path}: turned from {its} to {world}, the world of the first volume")
    return other.in_world(world)  # type: ignore[union-attr]  # as only a scalar volume has one


def renderer_of(volumes: Sequence[Volume], marches: Sequence[March], clip: Clip | None) -> Renderer:
    """Renderer of volumes, all of them clipped."""
    from raymarch.rendering.renderer import Renderer

    return Renderer(volumes, [replace(march, clip=clip) for march in marches])
