"""Command-line options that several verbs share, and printing of results."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import output
from raymarch.cli.modes import Shown
from raymarch.cli.option_kinds import FOLD, Box, Colour, Plane, Real, Whole
from raymarch.errors import in_letters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raymarch.geometry.clip import Clip
    from raymarch.rendering.march_settings import March
    from raymarch.rendering.renderer import Renderer
    from raymarch.views.views import Views
    from raymarch.volumes.volume import AnyVolume, Volume

STARTED = time.perf_counter()  # as near to the start of the command as Python lets us
LONGEST = 1000  # characters of a setting
WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}  # as other languages write them

arch = click.option(
    "--arch",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Device to compute on.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
overwrite = click.option(
    "--overwrite", is_flag=True, help="Write over files that raymarch did not write, or that an image set needs."
)
background = click.option(
    "--background",
    type=Colour(),
    metavar="COLOUR",
    help="Colour behind the object: white, black or r,g,b in 0..1; the volume's or the set's own if not given.",
)

masks = click.option(
    "--masks",
    type=click.Choice(["ignored", "alpha"]),
    help="What masks take out: unknown, the default, or empty, as around an object that is masked in all images.",
)

follow_links = click.option(
    "--follow-links", is_flag=True, help="Read images that links in DATA lead to outside of it; if you trust the set."
)

downscale = click.option(
    "--downscale",
    type=Real(1, 1 << 20, "images are made smaller, by 2 for half as many pixels a side", FOLD),
    metavar="K",
    help="Make images K times smaller as they are read; the fit's where that is known, else 1.",
)
holdout = click.option(
    "--holdout",
    type=Whole(0, 1 << 20, "every 8th view by 8, none by 0"),
    metavar="K",
    help="Hold one view in K out for the split test, where DATA has no splits; the fit's where that is known, else 8.",
)


def require_within(name: str, value: float, low: float, high: float) -> None:
    """UsageError for a number that is not in an interval, nor any number."""
    if not low <= value <= high:
        raise click.UsageError(f"{name} is {value:g}, want a number from {low:g} to {high:g}")


def settings_of(pairs: tuple[str, ...]) -> dict[str, object]:
    """`name=value` pairs as Python's literals: numbers, True, None, pairs in brackets; anything else is a word."""
    changes: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if len(text) > LONGEST:
            raise click.UsageError(
                f"--set {name:.60}: has {len(text):,} characters, want at most {LONGEST:,}; shorten it"
            )
        if not (name and equals):
            raise click.UsageError(f"--set {pair:.60}: want NAME=VALUE of some characters, such as tv_density=1e-3")
        changes[name] = text
        with contextlib.suppress(ValueError):  # words as float knows them, nan and inf too
            changes[name] = float(text)
        wrong = contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
        with wrong, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changes[name] = ast.literal_eval(WORDS.get(text.strip().lower(), text.strip()))
    return changes


def fitted(run: str) -> Volume:
    """The volume of a file that is compared with pictures; RaymarchError for a scalar volume, which has no colours."""
    from raymarch.errors import RaymarchError
    from raymarch.io.volumes.volume_file import load
    from raymarch.volumes.volume import Volume as Fitted

    volume = load(run)
    if not isinstance(volume, Fitted):
        raise RaymarchError(
            f"{run}: is a scalar volume, which has no colours to compare with pictures; take a fitted one, or"
            " rm.evaluate(volume, views, march=rm.March(mode='x-ray')) in Python"
        )
    return volume


def require_set(data: str | None, option: str, downscale: float | None, holdout: int | None, follow: bool) -> None:
    """UsageError for options of how an image set is read where none is given."""
    if data is None and (downscale is not None or holdout is not None or follow):
        raise click.UsageError(f"--downscale, --holdout and --follow-links are of the image set {option}; give it")


def reading_of(volume: Volume, downscale: float | None, holdout: int | None) -> dict[str, Any]:
    """Options of `load_views` for views that belong to a fitted volume: what is asked for, else what its fit had."""
    of_fit = volume.provenance.get("views")
    known = of_fit if isinstance(of_fit, dict) else {}
    return {
        "downscale": known.get("downscale", 1.0) if downscale is None else downscale,
        "holdout": known.get("holdout") if holdout is None else holdout,
        **({"masks": "alpha"} if known.get("masks") == "alpha" else {}),
    }


def as_refined(volume: Volume, views: Views, *, say_so: bool = True) -> Views:
    """Views of a fitted volume's set as the fit's refinement has them: the lens of all cameras, and the poses of views
    that it was fitted to. What moved is said where it has not been yet."""
    from raymarch.registration.intrinsics import views_with_shared

    refined = volume.provenance.get("refined")
    if not isinstance(refined, dict):
        return views
    from raymarch.registration.refined_fit import views_as_fitted

    shared = refined.get("shared")
    moved = views_with_shared(views, shared)
    told = [f"{', '.join(shared)} of the cameras"] if shared and moved is not views else []
    found = views_as_fitted(moved, volume.provenance)
    if count := moved_poses(moved, found):
        told.append(f"poses of {count} of {len(views)} views")
    if say_so and told:
        output.note(f"{' and '.join(told)} as the fit refined them")
    return found


def moved_poses(views: Views, others: Views) -> int:
    """Count of cameras that stand elsewhere in the same views with other cameras."""
    pairs = zip(views.cameras, others.cameras, strict=True)
    return sum(bool((one.world_from_camera != other.world_from_camera).any()) for one, other in pairs)


read_as = click.option(
    "--format",
    "format",
    metavar="NAME",
    help="Format to read the volume as, by its name in docs/volumes.md; found out from the file if not given.",
)


def places(command: Any) -> Any:
    """Options for which of a file's channels, points in time and levels is meant, and which format it is read as."""
    command = read_as(command)
    count = click.IntRange(0)
    for name, of in (("level", "pyramid levels"), ("time-point", "points in time"), ("channel", "channels or colours")):
        word = "time" if name == "time-point" else name
        command = click.option(f"--{name}", word, type=count, help=f"Which of several {of}, from 0.")(command)
    return command


clip_box = click.option("--clip-box", type=Box(), help="Show what lies in this box of the world alone.")
clip_plane = click.option(
    "--clip-plane",
    type=Plane(),
    metavar="NX,NY,NZ,OFFSET",
    multiple=True,
    help="Show what lies where nx x + ny y + nz z >= offset alone; up to six times.",
)


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
        output.note(f"note: the clip leaves nothing of the volume, whose box is {ends}")
    return clip


def plain(value: object) -> object:
    """JSON-safe copy of a record: numbers that JSON cannot hold become null, tuples lists."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return in_letters(value) if isinstance(value, str) else value


def print_json(record: dict) -> None:
    """JSON output: one line on stdout."""
    click.echo(json.dumps(plain(record), allow_nan=False))


# Options of several volumes shown together, and the renderer that they say.

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


def with_others(
    volume: Volume, march: March, shown: Shown, paths: Sequence[str], tables: Sequence[str]
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
    volumes = VOLUMES("volumes", [volume, *(_in_world_of(volume, load(path), path) for path in paths)])
    given = [*tables, *[None] * (len(paths) - len(tables))]
    theirs = [
        Shown(table=table, step=shown.step, supersample=shown.supersample).march(other, lit=False)
        for other, table in zip(volumes[1:], given, strict=True)
    ]
    return volumes, marches_for(volumes, [march, *theirs])


def _in_world_of(volume: AnyVolume, other: AnyVolume, path: str) -> AnyVolume:
    """Another volume in the world of a volume, which is said, where both say theirs."""
    world, its = (getattr(one, "world", "") for one in (volume, other))
    if not (world and its and world != its):
        return other
    output.note(f"{path}: turned from {its} to {world}, the world of the first volume")
    return other.in_world(world)  # type: ignore[union-attr]  # as only a scalar volume has one


def renderer_of(volumes: Sequence[Volume], marches: Sequence[March], clip: Clip | None) -> Renderer:
    """Renderer of volumes, all of them clipped."""
    from raymarch.rendering.renderer import Renderer

    return Renderer(volumes, [replace(march, clip=clip) for march in marches])
