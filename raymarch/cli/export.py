"""`raymarch export`: a volume handed over: its isosurface as a mesh, or all of it as a page for any browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from raymarch.cli import modes, options, output, set_options, viewpoints
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.option_kinds import Box, Real, require_not_given
from raymarch.cli.set_options import SetReading
from raymarch.errors import RaymarchError

PAGE_SUFFIXES = (".html", ".htm")
OF_MESHES = ["box", "largest", "faces", "points"]
OF_PAGES = [
    "max_mb", "data", "split", "pictures", "title", "mode", "table", "step", "shading", "supersample", "window",
    "clip_box", "clip_plane", "up", "background", "downscale", "holdout", "follow_links", "arch", "threads",
]  # fmt: skip


@click.command(epilog="Example: raymarch export tower.h5 tower.html --views scenes/tower --pictures")
@click.argument("run", metavar="VOLUME")
@click.argument("out", metavar="OUT.html|ply|obj|glb|stl")
@click.option("--box", type=Box(), help="Mesh: part of the world that is wanted.")
@click.option("--largest", type=click.IntRange(1), metavar="N", help="Mesh: keep the N largest connected pieces.")
@click.option("--faces", type=click.IntRange(4), metavar="N", help="Mesh: decimate to about N faces.")
@click.option("--points", type=click.IntRange(1), metavar="N", help="N points on the surface in place of a mesh.")
@click.option(
    "--max-mb",
    type=Real(0.05, 2000),
    metavar="N",
    default=32.0,
    show_default=True,
    help="Page: size of the file at most; a volume that is larger gets fewer samples, which is said.",
)
@click.option("--views", "data", help="Page: image set whose cameras it offers.")
@click.option("--split", default="train", show_default=True, help="Page: which of its views.")
@click.option("--pictures", is_flag=True, help="Page: put up to 24 photographs of --views in, to compare with.")
@click.option("--title", help="Page: its title; the volume's name if not given.")
@modes.viewer_mode_options
@modes.window
@options.channels
@options.clip_box
@options.clip_plane
@viewpoints.up
@options.read_as
@options.overwrite
@options.as_json
@set_options.set_reading(set_options.background)
@device_options
def export(
    run: str,
    out: str,
    box: list[list[float]] | None,
    largest: int | None,
    faces: int | None,
    points: int | None,
    shown: modes.ModeOptions,
    channels: tuple[str, ...] | None,
    format: str | None,
    overwrite: bool,
    as_json: bool,
    device: Device,
    **of_page: Any,
) -> None:
    """Write VOLUME as one page that any browser shows, without a server; or its surface of one value as a mesh.

    A page, OUT.html, holds the volume in bricks of 8-bit numbers and marches it on the GPU of whoever opens it. A mesh
    is the surface where VOLUME has the value --iso, a good one if not given, coloured as it is seen, in the cameras'
    coordinates.
    """
    from raymarch.io.files.authorship import require_other

    require_other(out, run)
    if Path(out).suffix.lower() in PAGE_SUFFIXES:
        require_not_given(OF_MESHES, "is for meshes, and a page has all of the volume")
        return _export_page(run, out, shown, channels, format, overwrite, as_json, device, **of_page)
    require_not_given(OF_PAGES, "is for pages, and OUT is a mesh")
    if points is not None and faces is not None:
        raise click.UsageError("--faces is for meshes and --points for clouds of points; take one of them")
    from raymarch.io.meshes.mesh_file import FORMATS, offset_of, require_mesh_file
    from raymarch.io.volumes.volume_file import load
    from raymarch.meshing.isosurface_mesh import export_mesh

    if points is None and Path(out).suffix.lower().removeprefix(".") not in FORMATS:
        names = ", ".join(f".{name}" for name in FORMATS)
        raise RaymarchError(
            f"{out or repr(out)}: meshes are written as {names}, pages as {PAGE_SUFFIXES[0]}; end the name in one of"
            " them"
        )
    require_mesh_file(out, points=points is not None, overwrite=overwrite)
    volume = options.shown_in_colour(load(run, format=format), channels)
    how: dict[str, Any] = {"box": box, "largest": largest, "faces": faces, "points": points, "overwrite": overwrite}
    mesh = export_mesh(volume, out, shown.iso, **how)
    size = Path(out).stat().st_size
    closed = mesh.closed
    offset = offset_of(mesh).tolist() if out.lower().endswith(".stl") else [0.0, 0.0, 0.0]
    if as_json:
        counts = {"vertices": len(mesh.vertices), "faces": len(mesh.faces), "closed": closed, "offset": offset}
        output.print_json({"path": out, **counts, "bytes": size, "box": mesh.box.tolist(), "area": mesh.area})
        return
    what = f"{len(mesh.vertices):,} points"
    if len(mesh.faces):
        what = f"{len(mesh.vertices):,} vertices, {len(mesh.faces):,} faces, {'closed' if closed else 'open'}"
    moved = f"; moved, add {','.join(map(repr, offset))} for the world's coordinates" if any(offset) else ""
    output.print_result(f"{out}: {what}; {size:,} bytes{moved}")


def _export_page(
    run: str,
    out: str,
    shown: modes.ModeOptions,
    channels: tuple[str, ...] | None,
    format: str | None,
    overwrite: bool,
    as_json: bool,
    device: Device,
    *,
    max_mb: float,
    data: str | None,
    split: str,
    pictures: bool,
    title: str | None,
    window: list[float] | None,
    clip_box: list[list[float]] | None,
    clip_plane: tuple[list[float], ...],
    up: list[float] | None,
    reading: SetReading,
) -> None:
    """Write a page; its size is said before it is there."""
    from dataclasses import replace

    from raymarch.io.volumes.volume_file import load
    from raymarch.viewer.page.export_page import make_page, require_page_file

    reading.require_set(data, "--views DATA")
    if pictures and data is None:
        raise click.UsageError("--pictures are the photographs of --views DATA; give it")
    require_page_file(out, overwrite=overwrite)
    volume = options.shown_in_colour(load(run, format=format), channels)
    march = replace(shown.march(volume), clip=options.clip_of(clip_box, clip_plane, volume))
    modes.require_window(march, window)
    views: Any = None
    if data is not None:
        views = _views(volume, data, split, pictures, reading, channels)
    device.start()
    title = Path(run).stem if title is None else title
    page = make_page(
        volume, views=views, march=march, background=reading.background, title=title,
        window=None if window is None else (window[0], window[1]), max_mb=max_mb, pictures=pictures, up=up,
    )  # fmt: skip
    output.print_note(f"{out}: {page.nbytes / 1e6:.1f} MB")
    page.write(out, overwrite)
    if as_json:
        about = {"samples": page.shape, "of": page.of_shape, "bricks": page.bricks, "degree": page.degree}
        offered = {"mode": page.mode, "cameras": page.cameras, "photographs": page.photographs}
        output.print_json({"path": out, "bytes": page.nbytes, **about, **offered})
        return
    samples = " x ".join(map(str, page.shape))
    output.print_result(f"{out}: {samples} samples in {page.bricks:,} bricks; {page.nbytes:,} bytes")


def _views(
    volume: Any, data: str, split: str, pictures: bool, reading: SetReading, channels: tuple[str, ...] | None
) -> Any:
    """Views of an image set with its photographs, or its cameras alone."""
    how = reading.options(volume)
    if pictures:
        views = set_options.shown_views(data, split, volume, channels, how)
        return set_options.refined_views(volume, views)
    return [camera for _, camera in viewpoints.cameras_of_views(volume, data, split, how)]
