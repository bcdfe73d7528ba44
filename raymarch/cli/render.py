"""`raymarch render`: images of a volume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import modes, options, say

if TYPE_CHECKING:
    import numpy as np

    from raymarch.data.volume import Volume
    from raymarch.geometry.camera import Camera
    from raymarch.rendering.renderer import Rendering


@click.command(epilog="Example: raymarch render tower.h5 --orbit 60 --out orbit")
@click.argument("run", metavar="VOLUME")
@click.option("--views", "data", help="Image set whose cameras to render from.")
@click.option("--split", default="test", show_default=True, help="Which of its views.")
@click.option("--orbit", type=click.IntRange(1, 10000), help="So many cameras on a circle about the z axis.")
@click.option("--elevation", type=float, default=25.0, show_default=True, help="Of the orbit [degree].")
@click.option(
    "--size", type=click.IntRange(1, 16384), default=512, show_default=True, help="Of an orbit's images [pixel]."
)
@click.option("--orthographic", is_flag=True, help="Parallel rays on the orbit, all images of one scale.")
@options.clip_box
@options.clip_plane
@click.option("--out", required=True, help="Folder for the PNG files.")
@click.option("--extras", is_flag=True, help="Write depth and opacity too.")
@modes.mode
@modes.table
@modes.iso
@modes.window
@modes.others
@modes.their_tables
@options.overwrite
@options.downscale
@options.holdout
@options.background
@options.follow_links
@options.arch
def render(
    run: str, data: str | None, split: str, orbit: int | None, elevation: float, size: int, orthographic: bool,
    clip_box: list[list[float]] | None, clip_plane: tuple[list[float], ...], out: str, extras: bool, mode: str | None,
    table: str | None, iso: float | None, window: list[float] | None, others: tuple[str, ...], tables: tuple[str, ...],
    overwrite: bool, downscale: float | None, holdout: int | None, background: str | None, follow_links: bool,
    arch: str,
) -> None:  # fmt: skip
    """Render VOLUME from the cameras of an image set or on an orbit, to PNG files."""
    if (data is None) == (orbit is None):
        raise click.UsageError("say where to look from: either --views DATA or --orbit COUNT")
    if orthographic and orbit is None:
        raise click.UsageError("--orthographic is for --orbit COUNT; the cameras of --views DATA are what they are")
    from raymarch import runtime
    from raymarch.data.views import require_colour
    from raymarch.errors import RaymarchError
    from raymarch.io.images.write import VISIBLE, folder_for
    from raymarch.io.volumes.volume_file import load

    if Path(out).suffix.lower() in (".mp4", ".gif", ".webm", ".mov", ".avi", ".mkv"):
        raise RaymarchError(f"{out}: clips are not written yet; give a folder for PNG files")
    volume = load(run)
    chosen = modes.march_of(volume, mode, table, iso)
    window, values = modes.window_of(chosen, window), modes.gives_values(chosen)
    box = _box_of((volumes := modes.with_others(volume, chosen, others, tables))[0])
    behind = require_colour(background or volume.background)
    named: list[tuple[str, Camera]] = []
    if data is not None:
        how = {"background": behind, "follow_links": follow_links, **options.reading_of(volume, downscale, holdout)}
        named = _of_set(volume, data, split, how)
    elif orbit is not None:
        named = _orbit(run, volume, box, orbit, elevation, size, orthographic)
    clip = options.clip_of(clip_box, clip_plane, volume)
    runtime.start(arch)
    pictures = [name + kind for name, _ in named for kind in (("", "_opacity", "_depth") if extras else ("",))]
    folder = folder_for(out, pictures, outside=data, overwrite=overwrite)

    from raymarch.cli.progress import CountProgress

    reach, bright = _reach(box, [camera for _, camera in named]), 0
    with CountProgress("render", len(named)) as progress, modes.renderer_of(*volumes, clip) as renderer:
        for name, camera in named:
            seen = renderer.render(camera, behind, depth=extras)
            image, window = modes.in_window(seen, window) if values else (seen.image, None)
            bright += bool((image > VISIBLE).any())
            _write(folder / name, image.clip(max=1), seen if extras else None, reach, overwrite)
            progress.advance()
    if bright:
        say.note(f"note: {bright} of {len(named)} images have colours over 1, written as 1; rm.write_png has a limit=")
    if extras:
        say.note(f"depth: white at {reach[0]:.4g}, dark at {reach[1]:.4g} world units, black where nothing is met")
    say.result(f"{folder}: {len(named)} images")


def _write(path: Path, image: np.ndarray, seen: Rendering | None, reach: tuple[float, float], overwrite: bool) -> None:
    """Pictures of an image, and of opacity and depth where those are seen, beside one another."""
    from raymarch.io.images.write import write_depth, write_png

    write_png(f"{path}.png", image, overwrite)
    if seen is not None:
        write_png(f"{path}_opacity.png", seen.opacity, overwrite)
        write_depth(f"{path}_depth.png", seen.depth, *reach, overwrite=overwrite)


def _of_set(volume: Volume, data: str, split: str, how: dict[str, Any]) -> list[tuple[str, Camera]]:
    """Cameras of an image set, with the names of its views."""
    from raymarch.io.image_sets.load import load_views

    views = options.as_refined(volume, load_views(data, split, for_fit=False, **how))
    return list(zip(views.names, views.cameras, strict=True))


def _orbit(
    run: str, volume: Volume, box: np.ndarray, count: int, elevation: float, size: int, orthographic: bool
) -> list[tuple[str, Camera]]:
    """Cameras around a volume and what is shown with it, with their names; RaymarchError for one in NDC."""
    from raymarch.errors import RaymarchError
    from raymarch.geometry.orbit import orbit_of_volume

    if volume.ndc_from_world is not None:
        raise RaymarchError(
            f"{run}: was seen from one side only and has no other; give --views SET in place of --orbit"
        )
    cameras = orbit_of_volume(box, count, elevation=elevation, size=size, orthographic=orthographic)
    return [(f"{i:04d}", camera) for i, camera in enumerate(cameras)]


def _box_of(volumes: list[Volume]) -> np.ndarray:
    """Box (2, 3) around those of all volumes."""
    import numpy as np

    lower, upper = zip(*(volume.box for volume in volumes), strict=True)
    return np.stack([np.min(lower, axis=0), np.max(upper, axis=0)])


def _reach(box: np.ndarray, cameras: list[Camera]) -> tuple[float, float]:
    """Nearest and farthest distance [world unit] at which any of the cameras can meet what is in the box."""
    import numpy as np

    eyes = np.linalg.norm(np.stack([camera.position for camera in cameras]) - box.mean(0), axis=1)
    half = 0.5 * float(np.linalg.norm(box[1] - box[0]))
    return max(float(eyes.min()) - half, 0.0), float(eyes.max()) + half
