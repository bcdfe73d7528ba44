"""`raymarch fit`: an image set in, a volume out."""

from __future__ import annotations

import contextlib

import click

from raymarch.cli import options


def _settings(pairs: tuple[str, ...]) -> dict[str, int | float | str]:
    """`name=value` pairs as numbers or words."""
    changes: dict[str, int | float | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--set {pair}: want NAME=VALUE, such as tv_density=1e-3")
        changes[name] = text
        for number in (float, int):
            with contextlib.suppress(ValueError):
                changes[name] = number(text)
    return changes


@click.command(epilog="Example: raymarch fit scenes/tower --preset quick --out tower.h5")
@click.argument("data")
@click.option("--out", help="HDF5 file to write the volume to (.h5).")
@click.option(
    "--preset",
    type=click.Choice(["quick", "default", "high", "medium"]),
    default="default",
    show_default=True,
    help="Settings for a first look, for things with surfaces, for the same with more time, for clouds and fog.",
)
@click.option(
    "--seconds",
    type=float,
    help="Stop after so many seconds, loading and compiling included; under two minutes take --preset quick.",
)
@click.option("--steps", type=int, help="Stop after so many steps.")
@click.option("--resolution", type=int, help="Samples along the box's longest side.")
@click.option("--sh-degree", type=click.IntRange(0, 3), help="View dependence: degree of the spherical harmonics.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--split", default="train", show_default=True, help="Which views to fit.")
@click.option("--box", type=options.Box(), help="Where the object is; found from masks and cameras if not given.")
@options.background
@click.option("--memory", type=float, help="How much memory it may take [GB]; else what is free.")
@click.option("--dry-run", is_flag=True, help="Only say how much memory and time it would take; writes nothing.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Any other setting of rm.FitSettings.")
@options.arch
@options.as_json
def fit(
    data, out, preset, seconds, steps, resolution, sh_degree, seed, split, box, background, memory, dry_run, pairs,
    arch, as_json,
):  # fmt: skip
    """Recover a volume from the images in DATA and save it.

    Ctrl-C stops early and saves what is there.
    """
    from raymarch import estimate, fitter, runtime
    from raymarch.errors import RaymarchError
    from raymarch.io.image_set import load_views
    from raymarch.io.volume_hdf5 import require_target, save
    from raymarch.settings import preset as settings_of

    asked = {"seconds": seconds, "steps": steps, "resolution": resolution, "sh_degree": sh_degree, "seed": seed}
    asked["memory"] = memory
    changes = {name: value for name, value in asked.items() if value is not None}
    settings = settings_of(preset, **{**changes, **_settings(pairs)})
    if not dry_run:
        if out is None:
            raise click.UsageError("Missing option '--out'; or take --dry-run, which writes nothing.")
        require_target(out)
    views = load_views(data, split, background=background)
    running = runtime.start(arch)
    options.note(
        f"{len(views)} views of {views.images.shape[2]} x {views.images.shape[1]} from {data}, on {running.arch}"
    )

    if dry_run:
        options.note(f"measuring {estimate.PROBE} steps")
        options.print_forecast(estimate.forecast(views, settings, box=box), as_json)
        return 0

    from raymarch.cli.progress import FitProgress

    with FitProgress() as progress:
        result = fitter.fit(views, settings, box=box, show=progress, started=options.STARTED)
    if not result.history:
        raise RaymarchError(f"nothing was fitted: {result.ended}; {out} is untouched, give it more time")
    save(result.volume, out)
    lower, upper = result.box.tolist()
    ended = f"; {result.ended}" if result.ended != "done" else ""
    corners = ",".join(f"{v:.3g}" for v in (*lower, *upper))
    options.note(f"box {corners} (--box overrides){ended}")
    last = result.history[-1] if result.history else None
    if as_json:
        options.print_json(
            {
                "out": str(out),
                "steps": result.volume.provenance["steps"],
                "seconds": result.seconds,
                "rays_psnr": last.psnr if last else None,
                "shape": result.volume.shape,
                "sh_degree": result.volume.degree,
                "box": result.box.tolist(),
                "ended": result.ended,
            }
        )
    else:
        size = " x ".join(str(n) for n in result.volume.shape)
        quality = f", {last.psnr:.2f} dB on its rays" if last else ""
        click.echo(f"{out}: {size} samples, SH degree {result.volume.degree}{quality}, {result.seconds:.0f} s")
    return 1 if "finite" in result.ended else 0
