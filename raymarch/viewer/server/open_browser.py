"""Opens a viewer's page in a browser of this machine, or says how to reach it from another."""

from __future__ import annotations

import getpass
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from raymarch.viewer.server.server_process import ALL_ADDRESSES, LOOPBACK_ADDRESS
from raymarch.viewer.server.wire import Wire

Report = Callable[[str], None]
CONTAINER_FILES = Path("/.dockerenv"), Path("/run/.containerenv")  # of Docker, of Podman


def announce(server: Wire, result: Report, note: Report, *, browser: bool) -> None:
    """Report a server's URL and how another machine reaches it, and open a browser if there is one."""
    url = server.url
    result(url)
    if sys.stdout is not None:  # pythonw has none
        sys.stdout.flush()
    if line := ssh_line(urlsplit(url).port or 0, os.environ):
        note(f"this machine is a remote one; on yours run  {line}  and open the URL there")
    elif browser and (why := no_browser_reason(os.environ, sys.platform)):
        note(f"no browser is opened, as {why}; open the URL in one")
    elif browser:
        threading.Thread(target=_open, args=(server.url_once, note), daemon=True).start()
    container = any(path.exists() for path in CONTAINER_FILES)
    bind, hosts = getattr(server, "bind", LOOPBACK_ADDRESS), getattr(server, "hosts", ())
    for line in entry_hints(url, bind, hosts, os.environ, container=container):
        note(line)
    note("Ctrl-C ends it")


def entry_hints(
    url: str, bind: str, hosts: tuple[str, ...], environment: Mapping[str, str], *, container: bool = False
) -> list[str]:
    """Notes on a page's address: behind a proxy, in a container, and from other machines.

    Example:
        >>> entry_hints("http://127.0.0.1:8080/?token=abc", "127.0.0.1", ("lab.org",), {})
        ['behind lab.org add /?token=abc to the address at which the proxy has the page']
    """
    port, token = urlsplit(url).port, f"/?{urlsplit(url).query}"
    lines = []
    if bind in ALL_ADDRESSES or urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1"):
        where = "all addresses of this machine" if bind in ALL_ADDRESSES else bind
        risk = "whoever reaches it and has the URL can look, save and steer, and what is sent is not encrypted"
        lines.append(f"it listens on {where}: {risk}")
    if bind in ALL_ADDRESSES and not hosts and not container:
        lines.append("from another machine: give --allow-host NAME with the name or address that its browser uses")
    if container and bind not in ALL_ADDRESSES:
        start = f"docker run -p 127.0.0.1:{port}:{port} ... raymarch view FILE --port {port} --bind 0.0.0.0"
        lines.append(f"in a container nothing outside reaches 127.0.0.1; for a browser outside start it as  {start}")
    prefix = environment.get("JUPYTERHUB_SERVICE_PREFIX")
    if prefix:
        allow = "" if hosts else ", and needs --allow-host with the hub's name"
        lines.append(f"in JupyterHub it is at {prefix}proxy/{port}{token} (by jupyter-server-proxy){allow}")
    elif hosts:
        lines.append(f"behind {hosts[0]} add {token} to the address at which the proxy has the page")
    return lines


def _open(url: str, note: Report) -> None:
    """Start a browser. Every user of the machine can read its arguments."""
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


def no_browser_reason(environment: Mapping[str, str], platform: str) -> str:
    """Reason why no browser can be opened; "" if one can."""
    shown = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY") or environment.get("BROWSER")
    if platform.startswith(("linux", "freebsd")) and not shown:
        return "there is no display"
    return ""
