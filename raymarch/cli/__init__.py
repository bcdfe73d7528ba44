"""Command line `raymarch VERB`; no logic of its own. Results to stdout, progress and notes to stderr."""

from __future__ import annotations

import errno
import functools
import os
import sys
from typing import Any

import click

from raymarch.cli import mistakes, output, rank_options, shell_messages
from raymarch.cli.bench import bench
from raymarch.cli.cameras import cameras
from raymarch.cli.check_gradients import check_gradients
from raymarch.cli.convert import convert
from raymarch.cli.demo import demo
from raymarch.cli.device_options import name_importer
from raymarch.cli.devices import devices
from raymarch.cli.doctor import doctor
from raymarch.cli.evaluate import evaluate
from raymarch.cli.export import export
from raymarch.cli.fit import fit
from raymarch.cli.info import info
from raymarch.cli.render import render
from raymarch.cli.slices import slices
from raymarch.cli.sweep import sweep
from raymarch.cli.tune import tune
from raymarch.cli.view import view
from raymarch.errors import RaymarchError
from raymarch.system.interrupt import ignore_interrupts, interrupt_on_end_signals


class Verbs(click.Group):
    """Group of verbs, of which Ctrl-C prints no empty line, and whose wrong usage is said with what may be meant."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Abort from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb, and its words, those mended that can mean one thing only."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(mistakes.unknown_verb_message(args[0], list(self.commands)), ctx)
        name, command, words = super().resolve_command(ctx, args)
        rank_options.note_of_ranks(name)
        if command is not None:
            words = mistakes.repair_words(command, words)
            ctx.meta[mistakes.TYPED_KEY] = tuple(words)
            output.translate(functools.partial(shell_messages.shell_message, context=click.Context(command, ctx, name)))
        return name, command, words


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="raymarch")
def cli() -> None:
    """Fit volumes to images, render novel views, with gradients you can trust.

    \b
    raymarch demo
    raymarch cameras photos --out statue
    raymarch fit scenes/tower --preset quick --out tower.h5
    raymarch evaluate tower.h5 scenes/tower --split test
    raymarch render tower.h5 --orbit 120 --out clip.mp4

    Files that raymarch did not write are written over only with --overwrite. Exit code 0: what was asked for
    is there, or was found right; 1: it is not, or elsewhere, as is said; 2: wrong usage.
    """


for verb in (
    demo,
    cameras,
    doctor,
    fit,
    sweep,
    evaluate,
    render,
    slices,
    info,
    convert,
    export,
    check_gradients,
    devices,
    bench,
    tune,
    view,
):
    cli.add_command(verb)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: exit 0 done, 1 could not, 2 wrong usage; a user's mistake is one line, no traceback."""
    output.set_up_streams()
    name_importer()
    try:
        with interrupt_on_end_signals():
            code = cli.main(args=arguments, prog_name="raymarch", standalone_mode=False)
        sys.stdout.flush()  # here, where an error of it has an answer
    except click.UsageError as error:
        if rank_options.speaks():
            wrong = mistakes.explain_error(error, cli.commands)
            output.usage(click.UsageError(output.translated(wrong.format_message()), wrong.ctx), output.guess_of(error))
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _end_interrupted(arguments is None)
    except ImportError as error:
        if not _is_from_interrupt(error):
            raise
        _end_interrupted(arguments is None)
    except (RaymarchError, click.ClickException) as error:
        output.print_note(f"raymarch: {output.translated(str(getattr(error, 'message', error)))}")
        sys.exit(1)
    except PermissionError as error:
        place = error.filename or "a file or folder"
        output.print_note(f"raymarch: {place}: cannot be looked at ({error.strerror}); check its permissions")
        sys.exit(1)
    except OSError as error:
        if _has_no_reader(error):
            sys.stderr.close()
            sys.exit(1)
        if error.errno == errno.ENAMETOOLONG:
            output.print_note(
                f"raymarch: {str(error.filename or 'a name')[:60]}...: is too long a name; choose a shorter one"
            )
            sys.exit(1)
        if error.errno != errno.ENOSPC:
            raise
        output.print_note("raymarch: the disk, or what stdout goes to, is full; free some space, or send it elsewhere")
        output.drop_output()  # else Python tries it once more, and says so
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _end_interrupted(of_process: bool) -> None:
    """End with exit code 1, which, of the process's own command line, an impatient second Ctrl-C does not change."""
    if of_process:
        ignore_interrupts()
    output.print_note("interrupted")
    sys.exit(1)


def _has_no_reader(error: OSError) -> bool:
    """Whether who reads our stdout has left, as `| head` does, which Windows calls an invalid argument."""
    return isinstance(error, BrokenPipeError) or (
        os.name == "nt" and error.errno == errno.EINVAL and error.filename is None
    )


def _is_from_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it: modules in C that are interrupted as they load say that they could not be loaded."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
