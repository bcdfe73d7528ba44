"""`raymarch evaluate`: PSNR and SSIM of a volume on held-out views."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from raymarch.cli import options, say

if TYPE_CHECKING:
    import numpy as np


@click.command(epilog="Example: raymarch evaluate tower.h5 scenes/tower --split test --json")
@click.argument("run", metavar="VOLUME")
@click.argument("data")
@click.option("--split", default="test", show_default=True, help="Which views to compare with.")
@click.option("--images", type=click.Path(), help="Folder to write rendered | true | error pictures to.")
@options.overwrite
@options.downscale
@options.holdout
@options.background
@options.follow_links
@options.arch
@options.as_json
def evaluate(
    run: str,
    data: str,
    split: str,
    images: str | None,
    overwrite: bool,
    downscale: float | None,
    holdout: int | None,
    background: str | None,
    follow_links: bool,
    arch: str,
    as_json: bool,
) -> None:
    """PSNR and SSIM of VOLUME against the views of DATA."""
    from raymarch import runtime
    from raymarch.evaluation import held_out
    from raymarch.io.image_sets.load import load_views
    from raymarch.io.images.write import folder_for, write_comparison
    from raymarch.io.volumes.volume_file import load

    volume = load(run)
    behind = background or volume.background
    reading = options.reading_of(volume, downscale, holdout)
    views = load_views(data, split, background=behind, follow_links=follow_links, for_fit=False, **reading)
    runtime.start(arch)
    folder = None if images is None else folder_for(images, views.names, outside=data, overwrite=overwrite)

    from raymarch.cli.progress import CountProgress

    with CountProgress("evaluate", len(views)) as progress:

        def seen(i: int, image: np.ndarray) -> None:
            progress.advance()
            if folder is not None:
                write_comparison(folder / f"{views.names[i]}.png", image, views.rgb(i), overwrite=overwrite)

        result = held_out.evaluate(volume, views, seen=seen)
    if as_json:
        options.print_json(asdict(result))
        return
    width = max(len(v.name) for v in result.views)
    for view in result.views:
        similarity = f"  SSIM {view.ssim:.4f}" if view.ssim is not None else ""
        say.result(f"{view.name:{width}}  PSNR {view.psnr:6.2f} dB{similarity}")
    similarity = f"  SSIM {result.ssim:.4f}" if result.ssim is not None else ""
    click.echo(f"{'mean':{width}}  PSNR {result.psnr:6.2f} dB{similarity}  {result.seconds_per_image:.2f} s an image")
