"""`raymarch fit --view`: a fit in the browser as it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import say, serving

if TYPE_CHECKING:
    from raymarch.viewer.fit_viewer import FitViewer


def view_options(command: Any) -> Any:
    """Options of a fit that is looked at."""
    of = "Of --view: "
    for option in (
        click.option(
            "--no-browser",
            is_flag=True,
            help=f"{of}only print the URL, the first line of stdout, with --json of stderr.",
        ),
        click.option("--port", type=click.IntRange(0, 65535), default=0, help=f"{of}where to listen; else a free one."),
        click.option("--view", is_flag=True, help="Look at the fit in a browser as it runs, and at what came of it."),
    ):
        command = option(command)
    return serving.server_options(of)(command)


def require_view(wanted: bool, port: int, no_browser: bool) -> None:
    """UsageError for options of --view without it."""
    if (port or no_browser) and not wanted:
        raise click.UsageError("--port and --no-browser are of --view; give it, or leave them out")
    if serving.given() and not wanted:
        raise click.UsageError(f"{serving.given()[0]} is of --view; give it, or leave this out")


@contextmanager
def viewed(wanted: bool, port: int, no_browser: bool, as_json: bool = False) -> Iterator[FitViewer | None]:
    """Viewer of a fit that is about to begin, its URL said, beside JSON on stderr; None where none is wanted."""
    if not wanted:
        yield None
        return
    from raymarch.viewer.fit_viewer import FitViewer
    from raymarch.viewer.server.browser import announce

    with FitViewer(serving.server(port)) as viewer:
        viewer.file = str(click.get_current_context().params.get("out") or "")
        announce(viewer.server, say.note if as_json else say.result, say.note, browser=not no_browser)
        viewer.server.send({"type": "note", "text": "the fit is about to begin"}, hello=True)
        yield viewer


def view_on(viewer: FitViewer | None) -> None:
    """Serve the volume of a fit that has come to its end until Ctrl-C; one that was interrupted is not waited for.

    The fit is done and saved, so that a page's server that is gone is a note.
    """
    if viewer is None or not viewer.done:
        return
    from raymarch.system.interrupt import asked_to_stop

    if viewer.server.running:
        say.note("the page shows what came of it; Ctrl-C ends it")
    with asked_to_stop() as asked:
        viewer.viewer.run(lambda: asked() or not viewer.server.running)
    if not (asked() or viewer.server.running):
        say.note("the page's server has ended; what was fitted is saved, and raymarch view shows it")
