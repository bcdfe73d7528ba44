"""Options of several volumes shown together, and the renderer that they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from raymarch.cli import say
from raymarch.cli.modes import Shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raymarch.geometry.clip import Clip
    from raymarch.rendering.march_settings import March
    from raymarch.rendering.renderer import Renderer
    from raymarch.rendering.together import TogetherRenderer
    from raymarch.volumes.volume import AnyVolume, Volume

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
    from raymarch.rendering.together_settings import VOLUMES, marches_for

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
    say.note(f"{path}: turned from {its} to {world}, the world of the first volume")
    return other.in_world(world)  # type: ignore[union-attr]  # as only a scalar volume has one


def renderer_of(volumes: Sequence[Volume], marches: Sequence[March], clip: Clip | None) -> Renderer | TogetherRenderer:
    """Renderer of one volume, or of several together, all of them clipped."""
    from raymarch.rendering.renderer import Renderer
    from raymarch.rendering.together import TogetherRenderer

    cut = [replace(march, clip=clip) for march in marches]
    return Renderer(volumes[0], cut[0]) if len(volumes) == 1 else TogetherRenderer(volumes, cut)
