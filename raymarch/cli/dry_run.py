"""`raymarch fit --dry-run`: what a fit would take in memory and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from raymarch.cli import options, say

if TYPE_CHECKING:
    from raymarch.data.views import Views
    from raymarch.fitting.forecast import Forecast
    from raymarch.fitting.settings import FitSettings


def dry_run(views: Views, settings: FitSettings, box: list[list[float]] | None, as_json: bool) -> int:
    """Exit code, once the forecast is printed; RaymarchError where the fit would, or would make no step."""
    from raymarch.errors import RaymarchError
    from raymarch.fitting import cost
    from raymarch.fitting.forecast import forecast

    say.note(f"measuring {cost.PROBE} steps")
    told = forecast(views, settings, box=box)
    if as_json:
        options.print_json(told.record())
    else:
        click.echo(in_words(told))
    if told.steps == 0:
        raise RaymarchError("the time would be over before the first step; give it more time")
    return 0


def in_words(forecast: Forecast) -> str:
    """Forecast of a fit in words: a line each for its grid, its memory and its time."""
    from raymarch.data.samples import samples_in_words

    memory, free = forecast.memory, f"{forecast.free_bytes / 1e9:.1f} GB are free"
    parts = ", ".join(f"{name} {size / 1e9:.2f}" for name, size in memory.parts.items())
    lines = [
        f"grid    {samples_in_words(memory.shape, forecast.boxes)} samples, SH degree {memory.sh_degree}",
        f"memory  {memory.total / 1e9:.2f} GB at its peak ({parts}); {free}",
    ]
    if forecast.seconds is not None:
        seconds = f"{forecast.seconds:.0f}" if forecast.seconds >= 10 else f"{forecast.seconds:.2g}"
        lines.append(f"time    about {seconds} s for {forecast.steps} steps, measured on a few")
    return "\n".join(lines)
