"""`raymarch view`: a volume in the browser."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from raymarch.cli import modes, options, output, server_options, set_options, viewpoints
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.set_options import SetReading, refined_views

if TYPE_CHECKING:
    from raymarch.rendering.default_look import DefaultLook
    from raymarch.volumes.volume import AnyVolume


@click.command(epilog="Example: raymarch view tower.h5 --views scenes/tower")
@click.argument("file")
@click.option("--views", "data", help="Image set whose cameras and photographs to show.")
@click.option("--split", default="train", show_default=True, help="Which of its views.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; a free one if not given.")
@click.option("--no-browser", is_flag=True, help="Only print the URL.")
@server_options.server_options()
@modes.viewer_mode_options
@modes.window
@options.channels
@options.clip_box
@options.clip_plane
@viewpoints.up
@options.read_as
@set_options.background
@set_options.set_reading()
@device_options
def view(
    file: str,
    data: str | None,
    split: str,
    port: int,
    no_browser: bool,
    shown: modes.ModeOptions,
    window: list[float] | None,
    channels: tuple[str, ...] | None,
    clip_box: list[list[float]] | None,
    clip_plane: tuple[list[float], ...],
    up: list[float] | None,
    format: str | None,
    reading: SetReading,
    device: Device,
) -> None:
    """Look at the volume in FILE, of any format that raymarch reads, in a browser; Ctrl-C ends it.

    The page is served to this machine alone, to who has the URL, which is the first line of stdout; docs/viewer.md has
    what to do from another machine, behind a proxy and in Docker. The page begins with the look that the options say,
    as those of `raymarch render` do, and changes it from there.
    """
    from raymarch.system.interrupt import catch_first_interrupt
    from raymarch.viewer.server.open_browser import announce
    from raymarch.viewer.view import WatchedFile, view_file

    reading.require_set(data, "--views DATA")
    server = server_options.make_server(port)
    try:
        with catch_first_interrupt() as asked:
            watched = WatchedFile(file, format, lambda volume: options.shown_in_colour(volume, channels))
            first = _begin(watched.volume, shown, clip_box, clip_plane, up, reading.background)
            modes.require_window(first.march, window)
            views = None
            if data is not None:
                volume = watched.volume
                views = set_options.shown_views(data, split, volume, channels, reading.options(volume))
                views = refined_views(volume, views)
            if asked():
                raise KeyboardInterrupt
            device.start()
            ready = partial(announce, server, output.print_result, output.print_note, browser=not no_browser)
            looks = iter([first])  # of the file as it was read; of one that takes its place made anew, by the options

            def begin(volume: AnyVolume) -> DefaultLook:
                return next(looks, None) or _begin(volume, shown, clip_box, clip_plane, up, reading.background)

            view_file(server, watched, views, asked, begin, (window[0], window[1]) if window else None, ready)
    finally:
        server.close()


def _begin(
    volume: AnyVolume,
    shown: modes.ModeOptions,
    clip_box: list[list[float]] | None,
    clip_plane: tuple[list[float], ...],
    up: list[float] | None,
    background: str | None,
) -> DefaultLook:
    """Look that the options say of a volume; RaymarchError for what cannot be shown."""
    from raymarch.errors import RaymarchError
    from raymarch.geometry.orbit import UP
    from raymarch.rendering.march_settings import require_seen
    from raymarch.views.views import require_colour
    from raymarch.volumes.default_table import range_of
    from raymarch.volumes.volume import VOLUME

    look, seen = shown.look(volume), VOLUME("volume", volume)
    march = replace(look.march, clip=options.clip_of(clip_box, clip_plane, seen))
    if seen.boxes == 1 or shown.mode is not None:  # the page begins with another mode than a table's then
        require_seen(seen, march)
    low, high = range_of(seen)
    if march.iso is not None and not low <= march.iso <= high:
        raise RaymarchError(
            f"iso is {march.iso:g} but values go from {low:g} to {high:g}, so there is no surface; choose one between"
        )
    if background is not None:
        look = replace(look, background=require_colour(background))
    return replace(look, march=march, up=look.up if up is None else tuple(UP("up", up).tolist()))
