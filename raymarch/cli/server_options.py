"""Options of where the viewer listens and what names it answers to, for the verbs that have a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from raymarch.viewer.server.server_process import ServerProcess

NOTES_KEY = "raymarch.viewer"  # of a context's notes


def _store_option(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(NOTES_KEY, {})[option.name] = value


def server_options(of: str = "") -> Any:
    """Options --bind and --allow-host, which `make_server` reads; `of` begins their help."""
    bind = click.option(
        "--bind",
        metavar="ADDRESS",
        expose_value=False,
        callback=_store_option,
        help=f"{of}{'a' if of else 'A'}ddress to listen on, 127.0.0.1 if not given; 0.0.0.0 in a container, whose port"
        " is published.",
    )
    hosts = click.option(
        "--allow-host",
        "hosts",
        metavar="NAME",
        multiple=True,
        expose_value=False,
        callback=_store_option,
        help=f"{of}{'a' if of else 'A'}nswer to this name too, as a proxy's lab.example.org; may be given again.",
    )
    return lambda command: bind(hosts(command))


def given_options() -> tuple[str, ...]:
    """Options of those that stand on the command line."""
    names = {"bind": "--bind", "hosts": "--allow-host"}
    return tuple(names[name] for name in click.get_current_context().meta.get(NOTES_KEY, {}))


def make_server(port: int) -> ServerProcess:
    """Server of the viewer's pages, as the options of this command say."""
    from raymarch.errors import RaymarchError
    from raymarch.viewer.server.server_process import ServerProcess

    try:
        return ServerProcess(port, **click.get_current_context().meta.get(NOTES_KEY, {}))
    except RaymarchError as error:
        if not str(error).startswith("host "):
            raise
        raise click.UsageError(f"--allow-host: {str(error).replace('give bind', 'give --bind')}") from error
