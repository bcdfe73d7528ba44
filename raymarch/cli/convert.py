"""`raymarch convert`: an image set of any layout as one file, or a volume in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, output, set_options
from raymarch.cli.option_kinds import Crop, Numbers

if TYPE_CHECKING:
    from raymarch.views.views import Views

COMPRESSIONS = ("zip", "none")
IMAGE_SET_OPTIONS = ("background", "follow_links", "downscale", "holdout", "depth_unit")


@click.command(epilog="Examples: raymarch convert fox fox.h5; raymarch convert scan head.h5 --stride 2")
@click.argument("data", metavar="IN")
@click.argument("out", metavar="OUT")
@options.overwrite
@set_options.background
@set_options.follow_links
@set_options.downscale
@set_options.holdout
@set_options.depth_unit
@click.option("--crop", type=Crop(), metavar="X0,X1,Y0,Y1,Z0,Z1", help="Part of a volume, by indices.")
@click.option("--stride", type=Numbers(int, 1, 3), metavar="N", help="Every N-th sample of a volume, or NX,NY,NZ.")
@options.place_options
@click.option("--nan", metavar="X", help="Number in place of NaN in a volume; empty: its least value.")
@click.option("--spacing", type=Numbers(float, 1, 3), help="Of a volume's samples, in place of what IN says.")
@click.option("--shape", type=Numbers(int, 3, 4), metavar="X,Y,Z", help="Of raw values without a header.")
@click.option("--dtype", help="Of raw values, such as uint8 or >i2.")
@click.option("--offset", type=click.IntRange(0), help="Bytes before raw values.")
@click.option("--half", is_flag=True, help="Half precision in a .vdb.")
@click.option("--compression", type=click.Choice(COMPRESSIONS), help="How a .vdb is packed; zip by default.")
@options.as_json
def convert(data: str, out: str, overwrite: bool, as_json: bool, **how: Any) -> None:
    """Write the image set IN, with all its splits, to one file (.h5), or the volume IN to another format.

    Of volumes the suffix of OUT says the format: docs/volumes.md lists all, and what each can hold. Scans, microscopes'
    stacks and simulations come as files or folders; raw values need --shape and --dtype.
    """
    from raymarch.io.volumes.volume_file import is_volume, named_as_volume

    given = {name for name, value in how.items() if value is not None and value is not False}  # a 0 is given
    if how["shape"] is not None or how["format"] is not None or is_volume(data) or named_as_volume(out):
        if wrong := sorted(given & set(IMAGE_SET_OPTIONS)):
            raise click.UsageError(f"--{wrong[0].replace('_', '-')} is for image sets, and {data} is a volume")
        _convert_volume(data, out, overwrite, as_json, {name: how[name] for name in given})
        return
    if wrong := sorted(given - set(IMAGE_SET_OPTIONS)):
        raise click.UsageError(f"--{wrong[0].replace('_', '-')} is for volumes, and {data} is none that is known")
    _convert_set(data, out, overwrite, as_json, how)


def _convert_volume(data: str, out: str, overwrite: bool, as_json: bool, how: dict[str, Any]) -> None:
    """A volume, or what is asked for of it, to another file."""
    from raymarch.io.volumes.summary import ScalarSummary, bytes_of
    from raymarch.io.volumes.volume_file import convert_volume, describe, named_as_volume
    from raymarch.volumes.scalar_volume import ScalarVolume

    if "nan" in how and how["nan"] != "empty":
        try:
            how["nan"] = float(how["nan"])
        except ValueError:
            raise click.UsageError(f"--nan {how['nan']:.40}: want a number, or empty") from None
    if "crop" in how:
        how["crop"] = [how["crop"][i : i + 2] for i in (0, 2, 4)]
    volume = convert_volume(data, out, overwrite=overwrite, **how)
    size = bytes_of(Path(out))
    if as_json:
        output.print_json({"path": out, "shape": list(volume.shape), "bytes": size})
        return
    scalar = named_as_volume(out) and isinstance(describe(out), ScalarSummary)
    kept = "sigma of " if scalar and not isinstance(volume, ScalarVolume) else ""
    output.print_result(f"{out}: {kept}{volume!r}; {size:,} bytes")


def _convert_set(data: str, out: str, overwrite: bool, as_json: bool, how: dict[str, Any]) -> None:
    """An image set to one file."""
    from raymarch.io.image_sets import convert as conversion

    def seen(split: str, views: Views) -> None:
        output.print_note(f"{split}: {len(views)} images of {views.size_in_words()}")

    splits = conversion.convert(
        data,
        out,
        overwrite=overwrite,
        background=how["background"],
        follow_links=how["follow_links"],
        downscale=1.0 if how["downscale"] is None else how["downscale"],
        holdout=how["holdout"],
        depth_unit=how["depth_unit"],
        seen=seen,
    )
    size = Path(out).stat().st_size
    if as_json:
        output.print_json({"path": out, "splits": splits, "bytes": size})
        return
    output.print_result(f"{out}: {', '.join(f'{name} {count}' for name, count in splits.items())}; {size:,} bytes")
