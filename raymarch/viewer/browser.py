"""Where a viewer's page is opened: in a browser of this machine, or through ssh in one of another."""

from __future__ import annotations

import getpass
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from raymarch.viewer.wire import Wire

Say = Callable[[str], None]


def announce(server: Wire, result: Say, note: Say, *, browser: bool) -> None:
    """Say a server's URL, flushed, and how it is reached from another machine; open a browser where there is one."""
    url = server.url
    result(url)
    if sys.stdout is not None:  # pythonw has none
        sys.stdout.flush()
    if line := ssh_line(urlsplit(url).port or 0, os.environ):
        note(f"this machine is a remote one; on yours run  {line}  and open the URL there")
    elif browser and (why := no_browser(os.environ, sys.platform)):
        note(f"no browser is opened, as {why}; open the URL in one")
    elif browser:
        threading.Thread(target=_open, args=(server.url_once, note), daemon=True).start()
    note("Ctrl-C ends it")


def _open(url: str, note: Say) -> None:
    """Start a browser, whose arguments every user of the machine can read."""
    try:
        opened = webbrowser.open(url)
    except Exception:  # whatever a browser's starter raises
        opened = False
    if not opened:
        note("no browser was found; open the URL in one")


def ssh_line(port: int, environment: Mapping[str, str]) -> str:
    """Command that leads a port of one's own machine to this one's, where this one is reached by ssh; else "".

    Example:
        >>> ssh_line(8080, {"SSH_CONNECTION": "10.0.0.7 50412 10.0.0.9 2222", "USER": "ann"})
        'ssh -N -L 8080:127.0.0.1:8080 -p 2222 ann@10.0.0.9'
    """
    parts = environment.get("SSH_CONNECTION", "").split()
    if len(parts) != 4:
        return ""
    own = "" if parts[3] == "22" else f"-p {parts[3]} "
    return f"ssh -N -L {port}:127.0.0.1:{port} {own}{_user(environment)}@{parts[2]}"


def _user(environment: Mapping[str, str]) -> str:
    if user := environment.get("USER") or environment.get("LOGNAME"):
        return user
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # nobody by that number
        return "USER"


def no_browser(environment: Mapping[str, str], platform: str) -> str:
    """Why no browser can be opened here; "" where one may be."""
    shown = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("BROWSER")
    if platform.startswith(("linux", "freebsd")) and not shown:
        return "there is no display"
    return ""
