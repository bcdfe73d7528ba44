"""`raymarch bench`: speed of march, adjoint and fit on this machine."""

from __future__ import annotations

from dataclasses import asdict

import click

from raymarch.cli import options, output
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.option_kinds import require_not_given

WORKLOADS = ("march", "fit", "all")


@click.command(epilog="Example: raymarch bench march --n 128 --resolution 256 --json")
@click.argument("what", type=click.Choice(WORKLOADS), default="all")
@click.option("--n", type=click.IntRange(4, 1024), default=128, show_default=True, help="Samples an axis of the grid.")
@click.option(
    "--resolution", type=click.IntRange(1, 8192), default=256, show_default=True, help="Pixels a side of its image."
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=5, show_default=True, help="Runs; the fastest counts.")
@click.option(
    "--block", type=click.Choice(["1", "2", "4", "8"]), help="Edge of the layout's blocks; chosen if not given."
)
@click.option("--steps", type=click.IntRange(4), default=300, show_default=True, help="Of the fit.")
@device_options
@options.as_json
def bench(
    what: str,
    n: int,
    resolution: int,
    repeats: int,
    block: int | None,
    steps: int,
    device: Device,
    as_json: bool,
) -> None:
    """Time march and adjoint on a grid made from a seed, and a small fit.

    WHAT is march, fit or all. The march's figures are million samples a second: whole steps of half a voxel through a
    grid of which nothing is empty; the adjoint's go up to the grid's finished gradient.
    """
    from raymarch.bench.speed import bench_fit, bench_march
    from raymarch.device.layout_choice import block_text

    if what == "fit":
        require_not_given(["n", "resolution", "repeats", "block"], "is for march and adjoint, and WHAT is fit")
    if what == "march":
        require_not_given(["steps"], "is for the fit, and WHAT is march")
    device.start()
    record: dict = {}
    if what != "fit":
        output.print_note(f"timing march and adjoint, {n}^3 samples")
        speed = bench_march(n, resolution, repeats=repeats, block=int(block) if block else None)
        record.update(asdict(speed))
        if not as_json:
            click.echo(
                f"{n}^3 grid, {resolution} x {resolution} rays, {speed.samples / 1e6:.2f} million samples,"
                f" {speed.arch}, {speed.threads} threads"
            )
            click.echo(f"march    {speed.march_msamples:8.1f} million samples a second, {block_text(speed.read_block)}")
            click.echo(f"adjoint  {speed.adjoint_msamples:8.1f} million samples a second, {block_text(speed.block)}")
            click.echo(f"compile  {speed.compile_seconds:8.2f} s")
    if what != "march":
        output.print_note(f"timing a fit of {steps} steps")
        fit = bench_fit(steps=steps)
        record["fit"] = asdict(fit)
        if not as_json:
            click.echo(f"fit step {fit.step_ms:8.1f} ms, {fit.rays_per_second:,.0f} rays a second")
            click.echo(
                f"fit      {fit.seconds:8.1f} s for {fit.steps} steps, {fit.start_seconds:.1f} s of them to start;"
                f" {fit.psnr:.2f} dB"
            )
    if as_json:
        output.print_json(record)
