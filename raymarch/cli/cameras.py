"""`raymarch cameras`: image set from photographs."""

from __future__ import annotations

import click

from raymarch.cli import device_options, options, output
from raymarch.cli.option_kinds import MAX_NUMBER, Duration, Whole, usage_errors


@click.command(epilog="Example: raymarch cameras photos --out statue")
@click.argument("photos")
@click.option("--out", required=True, help="Folder of the image set to write.")
@click.option(
    "--matching",
    type=click.Choice(["auto", "exhaustive", "sequential"]),
    default="auto",
    show_default=True,
    help="Compare all pairs, or neighbours by name; auto: all up to 150 photographs.",
)
@click.option(
    "--lens",
    type=click.Choice(["auto", "pinhole", "simple_radial", "radial", "opencv", "fisheye"]),
    default="auto",
    show_default=True,
    help="Model of the lens; auto: opencv where ten photographs share a camera, else simple_radial.",
)
@click.option(
    "--camera",
    type=click.Choice(["auto", "one", "folder", "each"]),
    default="auto",
    show_default=True,
    help="Who shares focal length and lens; auto: photographs of one size, camera and zoom.",
)
@click.option(
    "--max-size",
    type=Whole(-MAX_NUMBER, MAX_NUMBER, units={"px": 1.0}),
    default=1600,
    show_default=True,
    help="Longer side for features [pixel].",
)
@click.option(
    "--features",
    type=Whole(-MAX_NUMBER, MAX_NUMBER),
    default=8192,
    show_default=True,
    help="Most features per photograph.",
)
@click.option(
    "--frames",
    type=Whole(-MAX_NUMBER, MAX_NUMBER),
    default=100,
    show_default=True,
    help="How many to take out of a video.",
)
@click.option("--seconds", type=Duration(), help="Give up after so many seconds.")
@click.option("--seed", type=Whole(-MAX_NUMBER, MAX_NUMBER), default=0, show_default=True)
@device_options.threads
@options.overwrite
@click.option(
    "--follow-links", is_flag=True, help="Read what links in PHOTOS lead to outside of it; if you trust the folder."
)
@options.as_json
def cameras(
    photos: str,
    out: str,
    matching: str,
    lens: str,
    camera: str,
    max_size: int,
    features: int,
    frames: int,
    seconds: float | None,
    seed: int,
    threads: int | None,
    overwrite: bool,
    follow_links: bool,
    as_json: bool,
) -> None:
    """Find the cameras of PHOTOS, a folder of photographs or a video, and write both as an image set.

    Structure from motion by COLMAP on the CPU (pip install "raymarch[sfm]"; videos: "raymarch[video]"). Then raymarch
    fit takes the set. --overwrite replaces an older set of this kind only. Exit code 1: too few photographs could be
    placed, as is said.
    """
    from raymarch.cli.progress import StageProgress
    from raymarch.sfm.find_cameras import SfmSettings, find_cameras

    with usage_errors():
        settings = SfmSettings(matching, lens, camera, max_size, features, frames, seed, threads, seconds)
    with StageProgress() as progress:
        found = find_cameras(photos, out, settings, overwrite=overwrite, follow_links=follow_links, show=progress)
    if as_json:
        output.print_json(found.record())
        return
    for one in found.left_out:
        output.print_note(f"left out: {one.name}: {one.why}")
    output.print_result(
        f"{out}: {len(found.registered)} of {found.photos} photographs, {found.points} points,"
        f" {found.error:.2f} pixels off, {found.seconds:.0f} s"
    )
