"""`raymarch check-gradients`: gradient check of a volume's image by dot tests and finite differences."""

from __future__ import annotations

from dataclasses import asdict

import click

from raymarch.cli import modes, options, say


@click.command("check-gradients", epilog="Example: raymarch check-gradients tower.h5 scenes/tower --json")
@click.argument("run", metavar="VOLUME")
@click.argument("data")
@click.option("--split", default="train", show_default=True, help="Whose cameras to look from; one of them is drawn.")
@click.option("--parameters", help="Some of the groups, with commas between; all if not given.")
@click.option("--precision", type=click.Choice(["f64", "f32"]), default="f64", show_default=True)
@click.option(
    "--mode", default="emission-absorption", show_default=True, help="How rays add up: any mode without a table."
)
@modes.iso
@click.option("--rays", type=click.IntRange(1, 1 << 20), default=256, show_default=True, help="How many to look along.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the rays and directions.")
@options.downscale
@options.holdout
@options.follow_links
@options.arch
@options.as_json
def check_gradients(
    run: str,
    data: str,
    split: str,
    parameters: str | None,
    precision: str,
    mode: str,
    iso: float | None,
    rays: int,
    seed: int,
    downscale: float | None,
    holdout: int | None,
    follow_links: bool,
    arch: str,
    as_json: bool,
) -> int:
    """Dot tests and differences of VOLUME's image by all that shapes it, seen by a camera of DATA.

    Exit code 1 if a gradient is wrong; one at a kink, where there is no derivative, is not.
    """
    from raymarch.gradients import check_process
    from raymarch.io.image_sets.load import load_views
    from raymarch.io.volumes.volume_file import load
    from raymarch.rendering.march import March

    volume = load(run)
    reading = options.reading_of(volume, downscale, holdout)
    views = load_views(data, split, follow_links=follow_links, for_fit=False, **reading)
    names = [name.strip() for name in parameters.split(",") if name.strip()] if parameters else None
    march = March(min_transmittance=0.0, min_weight=0.0, mode=mode, iso=iso)
    say.note("checking in a process of its own")
    report = check_process.check_gradients(
        volume,
        views,
        names,
        precision=precision,
        march=march,
        rays=rays,
        seed=seed,
        arch="cpu" if arch == "auto" else arch,
    )
    if as_json:
        rows = [asdict(row) for row in report.rows]
        options.print_json({"rows": rows, "shape": list(report.shape), "seconds": round(report.seconds, 2)})
    else:
        click.echo(str(report))
    return 0 if report.good else 1
