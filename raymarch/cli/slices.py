"""`raymarch slices`: three orthogonal slices of a volume as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, say
from raymarch.cli.option_kinds import Interval, Numbers

if TYPE_CHECKING:
    from raymarch.data.volume import AnyVolume


@click.command(epilog="Example: raymarch slices head.h5 --window -100,400 --colormap gray --out slices.png")
@click.argument("file")
@click.option("--out", required=True, type=click.Path(), help="Picture to write (.png).")
@click.option(
    "--at",
    type=Numbers(float, 3),
    metavar="X,Y,Z",
    help="Point of the world that the slices go through; the volume's middle if not given.",
)
@click.option(
    "--window",
    type=Interval(),
    metavar="LOW,HIGH",
    help="Values at the ends of the colours; by the slices' own if not given.",
)
@click.option("--colormap", default="gray", show_default=True, help="Any of Matplotlib's, such as magma.")
@click.option("--colour", is_flag=True, help="Show a fitted volume's colours in place of its extinction.")
@options.places
@options.overwrite
def slices(
    file: str, out: str, at: list[float] | None, window: list[float] | None, colormap: str, colour: bool,
    channel: int | None, time: int | None, level: int | None, overwrite: bool,
) -> None:  # fmt: skip
    """Draw the slices of the volume in FILE, of any format that raymarch reads, across x, y and z of the world."""
    from raymarch.errors import RaymarchError
    from raymarch.io.images.write import require_pictures, write_png
    from raymarch.io.volumes.volume_file import load
    from raymarch.plot.figure_pictures import figure_picture
    from raymarch.plot.volume_slices import slices as draw

    require_pictures([out], overwrite)
    volume = load(file, channel=channel, time=time, level=level)
    if colour and not hasattr(volume, "features"):
        raise RaymarchError(f"{file}: has values and no colours; leave --colour out, or take --colormap")
    own: dict[str, Any] = {} if window is None else {"floor": window[0], "limit": window[1]}
    what, index = "colour" if colour else "sigma", "middle" if at is None else _index(volume, at)
    three = draw(volume, index, what, colormap=colormap, **own)
    write_png(out, figure_picture(three[0].figure), overwrite)  # type: ignore[arg-type]  # no figure within a figure
    say.result(f"{out}: {', '.join(ax.get_title() for ax in three)}")


def _index(volume: AnyVolume, point: list[float]) -> list[int]:
    """Index of the sample nearest to a point of the world; RaymarchError for one beside the volume."""
    import numpy as np

    from raymarch.errors import RaymarchError

    affine = volume.world_from_index
    index = np.rint(np.linalg.solve(affine[:3, :3], np.array(point) - affine[:3, 3]))
    if not ((index >= 0) & (index < volume.shape)).all():
        ends = " to ".join(" ".join(f"{x:.4g}" for x in corner) for corner in volume.box)
        raise RaymarchError(f"--at: {' '.join(f'{x:g}' for x in point)} is beside the volume, want a point of {ends}")
    return [int(i) for i in index]
