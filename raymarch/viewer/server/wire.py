"""Wire between a viewer and its pages: a server process, or whatever else carries messages, such as a notebook's."""

from __future__ import annotations

from typing import Any, Protocol

from raymarch.viewer.newest import Newest


class Wire(Protocol):
    """Wire between a viewer and its pages.

    Attributes:
        inbox: what pages say: mappings with the page's number, "page", and a "type"; "open" is its first, "close" its
            last.
        url: address of the page, "" where it has none.
        url_once: address without the token that leads to it once, for what everybody can read.
        running: whether it carries anything still.
    """

    inbox: Newest

    @property
    def url(self) -> str:
        """Address of the page."""

    @property
    def url_once(self) -> str:
        """Address that leads to the page once."""

    @property
    def running(self) -> bool:
        """Whether it carries anything still."""

    def send(
        self, header: dict[str, Any], data: bytes | None = None, to: int | None = None, hello: bool = False
    ) -> None:
        """Send a message to one page, or to all; `hello` is what pages get first that come later."""

    def close(self) -> None:
        """End it."""
