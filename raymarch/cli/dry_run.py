"""`raymarch fit --dry-run`: what a fit would take in memory and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, say

if TYPE_CHECKING:
    from raymarch.fitting.forecast import Forecast
    from raymarch.fitting.settings.settings import FitSettings
    from raymarch.views.views import Views


def dry_run(
    views: Views,
    settings: FitSettings,
    box: list[list[float]] | None,
    as_json: bool,
    refines: bool = False,
    also: Sequence[str] = (),
) -> int:
    """Exit code, once the forecast is printed; RaymarchError where the fit would raise one."""
    from raymarch.fitting import cost
    from raymarch.fitting.forecast import forecast
    from raymarch.fitting.schedule import ending, is_early
    from raymarch.registration.refined_fit import forecast_refined

    say.note(
        f"measuring {cost.PROBE} steps, or {cost.PROBE_SECONDS:.0f} s of them; what is not yet compiled on this machine"
        " comes first"
    )
    record: dict[str, Any] = {}
    lines: list[str] = []
    if refines:
        first, ahead, told = forecast_refined(views, settings, also=also, box=box)
        lines = [refinement_in_words(first, ahead)]
        record["refine"] = {"bytes": ahead.memory.total, "steps": first.steps, "seconds": first.seconds}
    else:
        told = forecast(views, settings, box=box)
    if as_json:
        options.print_json({**told.record(), **record})
    else:
        click.echo("\n".join([*lines, in_words(told)]))
    if told.steps is not None and is_early(ended := ending(told.steps, settings)):
        say.note(f"note: the fit would be {ended}")
    return 0


def refinement_in_words(first: FitSettings, ahead: Forecast) -> str:
    """Refinement before a fit in words: a line."""
    steps = "" if first.steps is None else f"{first.steps} steps"
    if first.seconds is None:
        long = f"{steps} before the fit, whose time, of the moves too, comes on top and is not measured"
    else:
        long = f"the first {first.seconds:.3g} s{f', or {steps}' if steps else ''}; below is the fit in what is left"
    return f"refine  {ahead.memory.total / 1e9:.2f} GB at its peak; {long}"


def in_words(forecast: Forecast) -> str:
    """Forecast of a fit in words: a line each for its grid, its memory and its time."""
    from raymarch.volumes.samples import samples_in_words

    memory, free = forecast.memory, f"{forecast.free_bytes / 1e9:.1f} GB are free"
    parts = ", ".join(f"{name} {size / 1e9:.2f}" for name, size in memory.parts.items())
    lines = [
        f"grid    {samples_in_words(memory.shape, forecast.boxes)} samples, SH degree {memory.sh_degree}",
        f"memory  {memory.total / 1e9:.2f} GB at its peak ({parts}); {free}",
    ]
    if forecast.seconds is not None:
        seconds = f"{forecast.seconds:.0f}" if forecast.seconds >= 10 else f"{forecast.seconds:.2g}"
        lines.append(f"time    about {seconds} s for {forecast.steps} steps, measured on a few")
    if forecast.preparation is not None:
        lines.append(
            f"start   {forecast.preparation:.0f} s here of loading and compiling, which come before; less once compiled"
        )
    return "\n".join(lines)
