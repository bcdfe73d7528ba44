"""`raymarch export`: a volume's isosurface as a mesh."""

from __future__ import annotations

from pathlib import Path

import click

from raymarch.cli import options, output
from raymarch.cli.option_kinds import MAX_NUMBER, Box, Real


@click.command(epilog="Example: raymarch export tower.h5 tower.glb --largest 1")
@click.argument("run", metavar="VOLUME")
@click.argument("out", metavar="OUT.ply|obj|glb|stl")
@click.option("--iso", type=Real(-MAX_NUMBER, MAX_NUMBER), help="Value of the surface; a good one if not given, said.")
@click.option("--box", type=Box(), help="Part of the world that is wanted.")
@click.option("--largest", type=click.IntRange(1), metavar="N", help="Keep the N largest connected pieces.")
@click.option("--faces", type=click.IntRange(4), metavar="N", help="Decimate to about N faces.")
@click.option("--points", type=click.IntRange(1), metavar="N", help="N points on the surface in place of a mesh.")
@options.read_as
@options.overwrite
@options.as_json
def export(
    run: str,
    out: str,
    iso: float | None,
    box: list[list[float]] | None,
    largest: int | None,
    faces: int | None,
    points: int | None,
    format: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write the surface where VOLUME has one value as a mesh, coloured as it is seen, in the cameras' coordinates."""
    if points is not None and faces is not None:
        raise click.UsageError("--faces is for meshes and --points for clouds of points; take one of them")
    from raymarch.io.files.authorship import require_other
    from raymarch.io.meshes.mesh_file import offset_of, require_mesh_file
    from raymarch.io.volumes.volume_file import load
    from raymarch.meshing.surface_mesh import export_mesh

    require_other(out, run)
    require_mesh_file(out, points=points is not None, overwrite=overwrite)
    volume = load(run, format=format)
    mesh = export_mesh(volume, out, iso, box=box, largest=largest, faces=faces, points=points, overwrite=overwrite)
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
