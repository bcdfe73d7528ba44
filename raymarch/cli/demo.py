"""`raymarch demo`: from nothing to pictures, and to the viewer."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from raymarch.cli import options, output
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.option_kinds import Duration

if TYPE_CHECKING:
    from raymarch.demo.demonstration import DemonstrationResult


@click.command(epilog="Example: raymarch demo --out demo")
@click.option("--out", default="raymarch-demo", show_default=True, help="Folder to make.")
@click.option("--seconds", type=Duration(), default=35.0, show_default=True, help="For the fit; all else comes on top.")
@click.option("--no-view", is_flag=True, help="Write the pictures and be done; open no viewer.")
@device_options
def demo(out: str, seconds: float, no_view: bool, device: Device) -> None:
    """Make a small scene, fit a volume to its views, score it on others, write pictures, look at it.

    The scene is a floating island that a ray tracer makes within seconds, on this machine: surfaces in sun and sky,
    nothing that a volume renderer made. Held-out views are from elsewhere than those that are fitted. OUT gets the
    volume (island.h5), its views (scene, an image set as any other), pictures, and an orbit: orbit.mp4 with PyAV, else
    orbit.gif. Then the viewer opens, where raymarch[viewer] is installed.
    """
    options.require_within("--seconds", seconds, 1, 1e6)
    from raymarch.demo.demonstration import require_demo_folder
    from raymarch.io.files.lock import lock_file

    require_demo_folder(out)
    running = device.start()
    output.print_note(
        f"a floating island, made here by a ray tracer; fitted on {running.arch}; {out} is there at the end"
    )
    with lock_file(out, "choose another --out"):
        shown = _make(out, seconds)
    output.print_result(f"{out}: {', '.join(shown.pictures)}")
    output.print_note(f"next: raymarch render {out}/island.h5 --path spiral --out spiral.gif")
    if not no_view:
        _open_viewer(out)


def _make(out: str, seconds: float) -> DemonstrationResult:
    """The demonstration, with its progress on stderr."""
    from raymarch.cli.progress import StageProgress
    from raymarch.demo.demonstration import Plan, demonstrate
    from raymarch.fitting.report import Report

    with StageProgress() as stages:

        def report(each: Report) -> None:
            stages("fit", round(100 * each.progress), 100)

        return demonstrate(out, Plan(seconds=seconds), show=stages, report=report, done=output.print_note)


def _open_viewer(out: str) -> None:
    """The viewer with the volume and the held-out photographs until Ctrl-C; a note where it cannot be opened here."""
    from raymarch.errors import RaymarchError
    from raymarch.io.image_sets.load import load_views
    from raymarch.system.interrupt import catch_first_interrupt
    from raymarch.viewer.server.open_browser import announce, no_browser_reason, ssh_line
    from raymarch.viewer.server.server_process import ServerProcess, require_websockets
    from raymarch.viewer.view import WatchedFile, view_file

    again = f"raymarch view {out}/island.h5 --views {out}/scene --split test"
    try:
        require_websockets()
    except RaymarchError as error:
        output.print_note(f"{error}; then {again}")
        return
    if (why := no_browser_reason(os.environ, sys.platform)) and not ssh_line(0, os.environ):
        output.print_note(f"no viewer is opened, as {why}; {again} --no-browser says its URL")
        return
    server = ServerProcess()
    try:
        with catch_first_interrupt() as asked:
            views = load_views(f"{out}/scene", "test", for_fit=False)
            ready = partial(announce, server, output.print_result, output.print_note, browser=True)
            view_file(server, WatchedFile(f"{out}/island.h5"), views, asked, ready=ready)
    finally:
        server.close()
