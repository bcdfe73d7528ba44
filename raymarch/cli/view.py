"""`raymarch view`: a volume in the browser."""

from __future__ import annotations

from functools import partial

import click

from raymarch.cli import options, say, serving
from raymarch.cli.device import Device, computed_on


@click.command(epilog="Example: raymarch view tower.h5 --views scenes/tower")
@click.argument("file")
@click.option("--views", "data", help="Image set whose cameras and photographs to show.")
@click.option("--split", default="train", show_default=True, help="Which of its views.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; a free one if not given.")
@click.option("--no-browser", is_flag=True, help="Only print the URL.")
@serving.server_options()
@options.downscale
@options.holdout
@options.follow_links
@computed_on
def view(
    file: str, data: str | None, split: str, port: int, no_browser: bool, downscale: float | None, holdout: int | None,
    follow_links: bool, device: Device,
) -> None:  # fmt: skip
    """Look at the volume in FILE, of any format that raymarch reads, in a browser; Ctrl-C ends it.

    The page is served to this machine alone, to who has the URL, which is the first line of stdout; docs/viewer.md has
    what to do from another machine, behind a proxy and in Docker.
    """
    from raymarch.data.views import require_colour
    from raymarch.fitting.interrupt import asked_to_stop
    from raymarch.io.image_sets.load import load_views
    from raymarch.viewer.browser import announce
    from raymarch.viewer.watched_file import WatchedFile, view_file

    options.require_set(data, "--views DATA", downscale, holdout, follow_links)
    server = serving.server(port)
    try:
        with asked_to_stop() as asked:
            watched = WatchedFile(file)
            views = None
            if data is not None:
                volume = watched.volume
                how = {"follow_links": follow_links, **options.reading_of(volume, downscale, holdout)}
                behind = require_colour(volume.background)
                views = load_views(data, split, background=behind, for_fit=False, **how)
                views = options.as_refined(volume, views)
            if asked():
                raise KeyboardInterrupt
            device.start()
            ready = partial(announce, server, say.result, say.note, browser=not no_browser)
            view_file(server, watched, views, asked, ready)
    finally:
        server.close()
