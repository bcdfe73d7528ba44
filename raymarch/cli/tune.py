"""`raymarch tune`: the memory layouts that are fastest on this processor."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from raymarch.cli import options, output
from raymarch.cli.option_kinds import require_not_given

if TYPE_CHECKING:
    from raymarch.bench.tune import TuningResult


@click.command(epilog="Example: raymarch tune")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="In all, up to 3600, compiling included.")
@click.option("--forget", is_flag=True, help="Go back to the default layouts; measures nothing.")
@options.as_json
def tune(seconds: float, forget: bool, as_json: bool) -> None:
    """Measure which memory layouts are fastest on this processor, and keep that in your cache.

    Fits and images then take them, with the same bytes as before. `raymarch info` says what is in force.
    """
    from raymarch.bench.tune import tune as measure
    from raymarch.cli.progress import StageProgress
    from raymarch.device import layout_choice
    from raymarch.runtime import start

    options.require_within("--seconds", seconds, 0, 3600)
    if forget:
        require_not_given(["seconds"], "is for measuring, and --forget measures nothing")
        gone = layout_choice.delete_choice()
        if as_json:
            output.print_json({"forgotten": gone})
        else:
            output.print_result(
                "forgotten; layouts are the default" if gone else "nothing was measured on this processor"
            )
        return
    start("cpu")
    with StageProgress() as progress:
        tuned = measure(seconds, progress)
    if as_json:
        output.print_json({**asdict(tuned), "file": str(tuned.file), "processor": layout_choice.processor()})
        return
    _show(tuned)
    if layout_choice.current_choice().date is None:
        output.print_note(f"note: the variable {layout_choice.LAYOUT_VARIABLE} leaves it aside")


def _show(tuned: TuningResult) -> None:
    """Table of what was found, a line a kind of grid."""
    from raymarch.device.layout_choice import USE_WORDS, block_text, processor

    output.print_result(processor())
    for trial in tuned.trials:
        found = "  ".join(f"{block_text(block)} {1e3 * each:.1f} ms" for block, each in trial.seconds.items())
        kept = "the default" if trial.kept == trial.default else "clearly faster"
        output.print_result(f"{USE_WORDS[trial.kind]:42} {found:36} {block_text(trial.kept)}, {kept}")
    for kind in tuned.missed:
        output.print_result(f"{USE_WORDS[kind]:42} no time or memory; the next tune begins with it")
    output.print_result(f"kept in {tuned.file}, {tuned.seconds:.0f} s")
