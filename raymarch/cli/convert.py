"""`raymarch convert`: an image set of any layout as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from raymarch.cli import options, say

if TYPE_CHECKING:
    from raymarch.data.views import Views


@click.command(epilog="Example: raymarch convert fox fox.h5")
@click.argument("data", metavar="SET")
@click.argument("out", metavar="OUT.h5")
@options.overwrite
@options.background
@options.follow_links
@options.downscale
@options.holdout
@options.as_json
def convert(
    data: str,
    out: str,
    overwrite: bool,
    background: str | None,
    follow_links: bool,
    downscale: float | None,
    holdout: int | None,
    as_json: bool,
) -> None:
    """Write the image set SET, all its splits, lenses and masks, to one file (.h5), which is read like any set."""
    from raymarch.io.image_sets import convert as conversion

    def seen(split: str, views: Views) -> None:
        say.note(f"{split}: {len(views)} images of {views.size_in_words()}")

    splits = conversion.convert(
        data, out, overwrite=overwrite, background=background, follow_links=follow_links,
        downscale=1.0 if downscale is None else downscale, holdout=holdout, seen=seen,
    )  # fmt: skip
    size = Path(out).stat().st_size
    if as_json:
        options.print_json({"path": out, "splits": splits, "bytes": size})
        return
    say.result(f"{out}: {', '.join(f'{name} {count}' for name, count in splits.items())}; {size:,} bytes")
