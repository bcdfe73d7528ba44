"""The command line: `raymarch VERB`; no logic of its own. Results to stdout, progress and notes to stderr."""

from __future__ import annotations

import errno
import logging
import sys

import click

from raymarch.cli.bench import bench
from raymarch.cli.check_gradients import check_gradients
from raymarch.cli.evaluate import evaluate
from raymarch.cli.fit import fit
from raymarch.cli.info import info
from raymarch.cli.render import render
from raymarch.errors import RaymarchError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="raymarch")
def cli() -> None:
    """Fit volumes to images, render novel views, with gradients you can trust.

    \b
    raymarch fit scenes/tower --preset quick --out tower.h5
    raymarch evaluate tower.h5 scenes/tower --split test
    raymarch render tower.h5 --orbit 60 --out orbit
    """


for verb in (fit, evaluate, render, info, check_gradients, bench):
    cli.add_command(verb)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: exit 0 done, 1 could not, 2 wrong usage; a user's mistake is one line, no traceback."""
    logging.basicConfig(format="note: %(message)s", level=logging.WARNING, stream=sys.stderr)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(args=arguments, prog_name="raymarch", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        sys.exit(1)
    except (RaymarchError, click.ClickException) as error:
        print(f"raymarch: {getattr(error, 'message', error)}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("raymarch: the disk, or what stdout goes to, is full", file=sys.stderr)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
