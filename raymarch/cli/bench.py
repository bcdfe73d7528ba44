"""`raymarch bench`: speed of march, adjoint, fit, frames, X-rays and start on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from raymarch.cli import options, output
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.option_kinds import require_not_given

TAKEN = {  # by each workload, of what is its own
    "march": ("n", "resolution", "repeats", "block"),
    "fit": ("steps",),
    "frames": ("n", "resolution", "repeats", "peer"),
    "xray": ("n", "resolution", "repeats"),
    "start": ("repeats",),
}
IN_ALL = ("march", "fit", "frames", "xray")


@click.command(epilog="Example: raymarch bench march --n 128 --resolution 256 --json")
@click.argument("what", type=click.Choice([*TAKEN, "all"]), default="all")
@click.option("--n", type=click.IntRange(4, 1024), help="Samples an axis; 128, of frames 256 if not given.")
@click.option(
    "--resolution", type=click.IntRange(1, 8192), help="Pixels a side; 256, of frames 512, of xray 128 if not given."
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Runs; the fastest counts. 5, of xray and start 3 if not given.",
)
@click.option(
    "--block", type=click.Choice(["1", "2", "4", "8"]), help="Edge of the layout's blocks; chosen if not given."
)
@click.option("--steps", type=click.IntRange(4), default=300, show_default=True, help="Of the fit.")
@click.option("--peer", is_flag=True, help="Time VTK's frames in turn with ours (pip install vtk).")
@device_options
@options.as_json
def bench(
    what: str,
    n: int | None,
    resolution: int | None,
    repeats: int | None,
    block: str | None,
    steps: int,
    peer: bool,
    device: Device,
    as_json: bool,
) -> None:
    """Time what the package does on work that it makes from a seed.

    WHAT is march, fit, frames, xray, start or all, which leaves start out. The march's and the adjoint's figures are
    million samples a second: whole steps of half a voxel through a grid of which nothing is empty; the adjoint's go up
    to the grid's finished gradient. Frames are of a scan, through tables and by its maximum. X-rays are 90 views, and
    back. Start is the first picture and the first step of a fit, in processes of their own, from an empty cache of
    kernels and a full one.
    """
    asked = IN_ALL if what == "all" else (what,)
    for name in sorted({option for some in TAKEN.values() for option in some}):
        if not any(name in TAKEN[one] for one in asked):
            of = ", ".join(one for one, some in TAKEN.items() if name in some)
            require_not_given([name], f"is for {of}, and WHAT is {what}")
    sizes = {"n": n, "resolution": resolution, "repeats": repeats}
    given = {name: value for name, value in sizes.items() if value is not None}
    device.start()
    record: dict[str, Any] = {}
    for one in asked:
        more = own_options(block, steps, peer).get(one, {})
        own = {name: value for name, value in given.items() if name in TAKEN[one]} | more
        lines = BENCHES[one](record, own)
        if not as_json:
            click.echo("\n".join(lines))
    if as_json:
        output.print_json(record)


def own_options(block: str | None, steps: int, peer: bool) -> dict[str, dict[str, Any]]:
    """What a workload alone takes."""
    return {"march": {"block": int(block) if block else None}, "fit": {"steps": steps}, "frames": {"peer": peer}}


def _march(record: dict[str, Any], how: dict[str, Any]) -> list[str]:
    from raymarch.bench.speed import bench_march
    from raymarch.device.layout_choice import block_text

    output.print_note(f"timing march and adjoint, {how.get('n', 128)}^3 samples")
    speed = bench_march(**how)
    record.update(asdict(speed))
    return [
        f"{speed.n}^3 grid, {speed.resolution} x {speed.resolution} rays, {speed.samples / 1e6:.2f} million samples,"
        f" {speed.arch}, {speed.threads} threads",
        f"march    {speed.march_msamples:8.1f} million samples a second, {block_text(speed.read_block)}",
        f"adjoint  {speed.adjoint_msamples:8.1f} million samples a second, {block_text(speed.block)}",
        f"compile  {speed.compile_seconds:8.2f} s",
    ]


def _fit(record: dict[str, Any], how: dict[str, Any]) -> list[str]:
    from raymarch.bench.speed import bench_fit

    output.print_note(f"timing a fit of {how['steps']} steps")
    fit = bench_fit(**how)
    record["fit"] = asdict(fit)
    return [
        f"fit step {fit.step_ms:8.1f} ms, {fit.rays_per_second:,.0f} rays a second",
        f"fit      {fit.seconds:8.1f} s for {fit.steps} steps, {fit.start_seconds:.1f} s of them to start;"
        f" {fit.psnr:.2f} dB",
    ]


def _frames(record: dict[str, Any], how: dict[str, Any]) -> list[str]:
    from raymarch.bench.frames import bench_frames

    output.print_note(f"timing frames of a scan, {how.get('n', 256)}^3 samples")
    speeds = bench_frames(**how)
    record["frames"] = [asdict(speed) for speed in speeds]
    lines = []
    for speed in speeds:
        peer = (
            ""
            if speed.peer_ms is None
            else f", VTK {speed.peer_ms:.0f} ms: {speed.peer_ms / speed.ms:.2f} of its speed"
        )
        lines.append(f"{speed.kind:8} {speed.ms:8.0f} ms a frame of {speed.resolution} x {speed.resolution}{peer}")
    return lines


def _xray(record: dict[str, Any], how: dict[str, Any]) -> list[str]:
    from raymarch.bench.projections import bench_projections

    output.print_note(f"timing X-rays, {how.get('n', 128)}^3 samples")
    speeds = bench_projections(**how)
    record["xray"] = [asdict(speed) for speed in speeds]
    return [
        f"{speed.quadrature:8} {speed.project_seconds:8.2f} s for {speed.views} views of {speed.resolution} x"
        f" {speed.resolution}, back {speed.back_seconds:.2f} s"
        for speed in speeds
    ]


def _start(record: dict[str, Any], how: dict[str, Any]) -> list[str]:
    from raymarch.bench.start import bench_start

    output.print_note("timing processes from their start")
    speed = bench_start(**how)
    record["start"] = asdict(speed)
    return [
        f"import   {speed.imported:8.2f} s, {speed.python:.2f} s of them Python's; raymarch --help {speed.help:.2f} s",
        f"picture  {speed.picture_cold:8.2f} s from an empty cache of kernels, {speed.picture:.2f} s from a full one",
        f"step     {speed.step_cold:8.2f} s until a fit's first, {speed.step:.2f} s from a full cache",
    ]


BENCHES: dict[str, Callable[[dict[str, Any], dict[str, Any]], list[str]]] = {
    "march": _march,
    "fit": _fit,
    "frames": _frames,
    "xray": _xray,
    "start": _start,
}
