"""Options of rendering modes, and the march that they say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raymarch.cli import options, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from raymarch.data.transfer_function import TransferFunction
    from raymarch.data.volume import AnyVolume, Volume
    from raymarch.geometry.clip import Clip
    from raymarch.rendering.march import March
    from raymarch.rendering.renderer import Renderer, Rendering
    from raymarch.rendering.together import TogetherRenderer

# As `kernels.march.modes` has them (tests/house/test_lists.py); importing that takes a second, which --help should not.
MODES = (
    "emission-absorption", "additive", "x-ray", "transfer", "maximum", "minimum", "average", "isosurface",
    "x-ray-exact",
)  # fmt: skip

mode = click.option(
    "--mode",
    type=click.Choice(MODES),
    help="How rays add up; transfer for a volume of values alone, else emission-absorption.",
)
table = click.option(
    "--table",
    metavar="FILE|MAP",
    help="Transfer function: table.json, or a colour map as bone or bone,LOW,HIGH,OPACITY; mode transfer.",
)
iso = click.option("--iso", type=float, metavar="VALUE", help="Value of the surface; mode isosurface.")

MOST_SUPERSAMPLE = 8  # as `data.supersample` has it, for the same reason
supersample = click.option(
    "--supersample",
    type=click.IntRange(1, MOST_SUPERSAMPLE),
    metavar="K",
    help="Rays along each edge of a pixel, which is the mean of K x K; as it was fitted if not given.",
)

window = click.option(
    "--window",
    type=options.Numbers(float, 2),
    metavar="LOW,HIGH",
    help="Values that are black and white, of modes whose images are values; those of the first image if not given.",
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


def with_others(
    volume: Volume, march: March, paths: Sequence[str], tables: Sequence[str]
) -> tuple[list[Volume], list[March]]:
    """A volume and those of the option `others`, and the march of each by its table or by what it holds.

    RaymarchError for what cannot be shown together.
    """
    from raymarch.io.volumes.volume_file import load
    from raymarch.rendering.together_settings import VOLUMES, marches_for

    if len(tables) > len(paths):
        raise click.UsageError(f"--with-table is there {len(tables)} times, --with {len(paths)}; give one for each")
    if not paths:
        return [volume], [march]
    volumes = VOLUMES("volumes", [volume, *(_in_world_of(volume, load(path), path) for path in paths)])
    given = [*tables, *[None] * (len(paths) - len(tables))]
    theirs = [march_of(other, None, table, None) for other, table in zip(volumes[1:], given, strict=True)]
    return volumes, marches_for(volumes, [march, *theirs])


def _in_world_of(volume: AnyVolume, other: AnyVolume, path: str) -> AnyVolume:
    """Another volume in the world of a volume, which is said, where both say theirs."""
    world, its = (getattr(one, "world", "") for one in (volume, other))
    if not (world and its and world != its):
        return other
    say.note(f"{path}: turned from {its} to {world}, the world of the first volume")
    return other.in_world(world)  # type: ignore[union-attr]  # as only a scalar volume has one


def renderer_of(
    volumes: Sequence[Volume], marches: Sequence[March], clip: Clip | None, supersample: int | None
) -> Renderer | TogetherRenderer:
    """Renderer of one volume, or of several together, all of them clipped, with so many rays a pixel."""
    from raymarch.rendering.renderer import Renderer
    from raymarch.rendering.together import TogetherRenderer

    cut = [replace(march, clip=clip, supersample=supersample or march.supersample) for march in marches]
    return Renderer(volumes[0], cut[0]) if len(volumes) == 1 else TogetherRenderer(volumes, cut)


def march_of(volume: Volume, mode: str | None, table: str | None, iso: float | None) -> March:
    """March of a mode over a volume, its table or value chosen by the volume's range, and said, if not given."""
    from raymarch.data.default_table import default_table, has_values_alone
    from raymarch.data.volume import VOLUME
    from raymarch.errors import RaymarchError
    from raymarch.rendering.march import March

    volume = VOLUME("volume", volume)
    if mode is None:
        mode = "transfer" if table is not None else "isosurface" if iso is not None else None
    if mode is None and has_values_alone(volume):
        mode = "transfer"
        say.note("mode transfer, as the volume has values and no colours; --mode takes another")
    if mode is None:
        return March()
    if table is not None and mode != "transfer":
        raise RaymarchError(f"--table: mode {mode} takes no transfer function; leave it out, or say --mode transfer")
    if iso is not None and mode != "isosurface":
        raise RaymarchError(f"--iso: mode {mode} has no surface; leave it out, or say --mode isosurface")
    if mode == "isosurface":
        if iso is None:
            chosen = default_table(volume).values
            iso = float(chosen[0] + chosen[-1]) / 2
            say.note(f"the surface is at {iso:.4g}; --iso takes another")
        return March(mode=mode, iso=iso)
    if mode != "transfer":
        return March(mode=mode)
    return March(mode=mode, transfer=_table(volume, table))


def _table(volume: Volume, table: str | None) -> TransferFunction:
    """Table of a file or of a colour map, over the volume's range where no ends are given."""
    from raymarch.data.default_table import default_table
    from raymarch.errors import RaymarchError
    from raymarch.io.volumes.transfer_table import load_table

    if table is not None and Path(table).suffix:
        if Path(table).suffix.lower() == ".json":
            return load_table(table)
        if "," not in table:
            raise RaymarchError(f"--table {table}: want table.json, or the name of a colour map such as bone")
    name, *numbers = ("viridis" if table is None else table).split(",")
    try:
        ends = [float(number) for number in numbers]
    except ValueError:
        ends = [0.0] * 4
    if len(ends) not in (0, 2, 3):
        raise RaymarchError(
            f"--table {table}: want MAP, MAP,LOW,HIGH or MAP,LOW,HIGH,OPACITY, such as bone,400,2400,0.5"
        )
    made = default_table(volume, name, *ends)
    if not ends:
        low, high, most = made.values[0], made.values[-1], made.opacities[-1]
        say.note(f"--table {name},{low:.4g},{high:.4g},{most:g}, its opacity over {made.unit_length:.4g} world units")
    return made


def window_of(march: March, window: list[float] | None) -> list[float] | None:
    """The window as given; RaymarchError where a mode's images are colours, and for one that is no interval."""
    from raymarch.errors import RaymarchError

    if window is not None and not gives_values(march):
        raise RaymarchError(f"--window: images of mode {march.mode} are colours; leave it out")
    if window is not None and not -math.inf < window[0] < window[1] < math.inf:
        raise RaymarchError(f"--window {window[0]:g},{window[1]:g}: want LOW,HIGH, the first the less")
    return window


def gives_values(march: March) -> bool:
    """Whether the images of a march are values, or integrals of them, with nothing behind them."""
    return not march.rule.background


def in_window(seen: Rendering, window: list[float] | None) -> tuple[np.ndarray, list[float]]:
    """Display values 0..1 of an image of values, black where nothing is met; the window, the image's own if none."""
    met = seen.opacity != 0
    if window is None:
        values = seen.image[met]
        low = float(values.min(initial=0.0))
        high = float(values.max()) if values.size else low
        window = [low, high if high > low else low + 1.0]
        say.note(f"black is {window[0]:.4g}, white {window[1]:.4g}, by the first image; --window takes others")
    low, high = window
    return ((seen.image - low) / (high - low)).clip(0, 1) * met[..., None], window
