"""`raymarch slices`: three orthogonal slices of a volume as a picture."""

from __future__ import annotations

from typing import Any

import click

from raymarch.cli import options, output
from raymarch.cli.option_kinds import Interval, Numbers, usage_errors


@click.command(epilog="Example: raymarch slices head.h5 --window -100,400 --colormap gray --out slices.png")
@click.argument("file")
@click.option("--out", required=True, type=click.Path(), help="Picture to write (.png).")
@click.option(
    "--at",
    type=Numbers(float, 3),
    metavar="X,Y,Z",
    help="Point of the world, or of NDC, that the slices go through; the volume's middle if not given.",
)
@click.option(
    "--window",
    type=Interval(),
    metavar="LOW,HIGH",
    help="Values at the ends of the colours; by the slices' own if not given.",
)
@click.option("--colormap", help="Any of Matplotlib's, such as magma; gray if not given.")
@click.option("--colour", is_flag=True, help="Show a fitted volume's colours in place of its extinction.")
@options.place_options
@options.overwrite
def slices(
    file: str,
    out: str,
    at: list[float] | None,
    window: list[float] | None,
    colormap: str | None,
    colour: bool,
    channel: int | None,
    time: int | None,
    level: int | None,
    format: str | None,
    overwrite: bool,
) -> None:
    """Draw the slices of the volume in FILE, of any format that raymarch reads, across x, y and z of the world."""
    from raymarch.errors import RaymarchError
    from raymarch.io.images.write import require_pictures, write_png
    from raymarch.io.volumes.volume_file import load
    from raymarch.plot.panels import picture_of
    from raymarch.plot.volumes import slices as draw
    from raymarch.volumes.transfer_function import COLORMAP

    if colour and (window is not None or colormap is not None):
        raise click.UsageError("--colour shows colours as they are; leave --window and --colormap out")
    if colormap is not None:
        with usage_errors():
            COLORMAP("colormap", colormap)
    require_pictures([out], overwrite)
    volume = load(file, channel=channel, time=time, level=level, format=format)
    if colour and not hasattr(volume, "features"):
        raise RaymarchError(f"{file}: has values and no colours; leave --colour out, or take --colormap")
    own: dict[str, Any] = {} if window is None else {"floor": window[0], "limit": window[1]}
    titles: list[str] = []

    def drawn() -> Any:
        three = draw(volume, what="colour" if colour else "sigma", at=at, colormap=colormap or "gray", **own)
        titles.extend(ax.get_title() for ax in three)
        return three[0].figure

    write_png(out, picture_of(drawn), overwrite)
    output.print_result(f"{out}: {', '.join(titles)}")
