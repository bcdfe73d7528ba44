"""Frame: a picture, or a rectangle of one, as it goes to a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Frame:
    """Frame of a page.

    Attributes:
        id: of the camera it was seen by.
        format: "jpeg" or "png".
        place: x, y, width and height of the rectangle [pixel].
        of: width and height of the whole picture [pixel].
        final: whether it is the whole picture in full size, as `rm.write_png` writes it.
        moving: whether it was made for an eye in motion.
        about: the window of values, the range of depth, or the slice that is shown; and how much of what lies behind
            is covered.
        data: bytes of the JPEG or PNG.
    """

    id: int
    format: str
    place: tuple[int, int, int, int]
    of: tuple[int, int]
    final: bool
    moving: bool
    about: dict[str, Any]
    data: bytes

    @property
    def header(self) -> dict[str, Any]:
        """Message that goes with the bytes."""
        x, y, width, height = self.place
        head = {"type": "frame", "id": self.id, "format": self.format, "x": x, "y": y, "width": width}
        head |= {"height": height, "of": list(self.of), "final": self.final, "moving": self.moving}
        return head | {"window": None, "depth": None, "slice": None, "cover": None} | self.about
