"""`raymarch check-gradients`: gradient check of a volume's image by dot tests and finite differences."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import device_options, modes, options, output
from raymarch.cli.option_kinds import require_not_given
from raymarch.cli.set_options import SetReading, set_reading

if TYPE_CHECKING:
    from raymarch.geometry.camera import Camera
    from raymarch.volumes.volume import Volume

ORBIT_CAMERAS, IMAGE_SIDE = 8, 128  # cameras, and pixels a side of their images, where no image set is given


@click.command("check-gradients", epilog="Example: raymarch check-gradients tower.h5 scenes/tower --json")
@click.argument("run", metavar="VOLUME")
@click.argument("data", required=False)
@click.option("--split", default="train", show_default=True, help="Whose cameras to look from; one of them is drawn.")
@click.option(
    "--parameters",
    help="Some of density, colour, background, pose, focal, principal_point, exposure, step, box, lens, iso and table,"
    " with commas between; all that the image depends on if not given.",
)
@click.option("--precision", type=click.Choice(["f64", "f32"]), default="f64", show_default=True)
@modes.ray_mode_options
@click.option("--rays", type=click.IntRange(1, 1 << 20), default=256, show_default=True, help="How many to look along.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the rays and directions.")
@set_reading()
@device_options.arch
@options.as_json
def check_gradients(
    run: str,
    data: str | None,
    split: str,
    parameters: str | None,
    precision: str,
    shown: modes.ModeOptions,
    rays: int,
    seed: int,
    reading: SetReading,
    arch: str,
    as_json: bool,
) -> int:
    """Dot tests and differences of VOLUME's image by all that shapes it, seen by a camera of DATA, or of an orbit.

    Exit code 1 if a gradient is wrong; one at a kink, where there is no derivative, is not.
    """
    from raymarch.gradients import check_process
    from raymarch.io.image_sets.load import load_views
    from raymarch.io.volumes.volume_file import load
    from raymarch.volumes.volume import VOLUME

    reading.require_set(data, "DATA")
    if data is None:
        require_not_given(["split"], "is of the image set DATA, which is not given")
    volume = load(run)
    if data is None:
        cameras: Any = _orbit_cameras(run, VOLUME("volume", volume))
    else:
        cameras = load_views(data, split, for_fit=False, **reading.options(volume))
    names = [name.strip() for name in parameters.split(",") if name.strip()] if parameters else None
    march = replace(shown.march(volume, lit=False), min_transmittance=0.0, min_weight=0.0, supersample=1)
    output.print_note("checking in a process of its own")
    report = check_process.check_gradients(
        volume,
        cameras,
        names,
        precision=precision,
        march=march,
        rays=rays,
        seed=seed,
        arch="cpu" if arch == "auto" else arch,
    )
    if as_json:
        rows = [asdict(row) for row in report.rows]
        output.print_json({"rows": rows, "shape": list(report.shape), "seconds": round(report.seconds, 2)})
    else:
        click.echo(str(report))
    return 0 if report.good else 1


def _orbit_cameras(run: str, volume: Volume) -> list[Camera]:
    """Cameras on an orbit; RaymarchError for a volume in NDC, which is seen from one side."""
    from raymarch.errors import RaymarchError
    from raymarch.geometry.orbit import orbit_of_volume

    if volume.ndc_from_world is not None:
        raise RaymarchError(f"{run}: was seen from one side only and has no orbit; give the image set DATA")
    return orbit_of_volume(volume.box, ORBIT_CAMERAS, size=IMAGE_SIDE)
