"""Pages of a TIFF, walked from header to last: what each is by its tags, and a file that ends before one of them, or
before what its tags lead to.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from raymarch.errors import RaymarchError
from raymarch.io.volumes.stored_values import CURE

MOST_PAGES, MOST_TAGS = 1 << 20, 4096
BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
KINDS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # of tags that are whole numbers
TAGS = {254: "subfile", 256: "width", 257: "length", 258: "bits", 277: "samples", 339: "number"}
ASIDE = 1 | 4  # bits of the subfile's kind: a reduced copy of another page, a mask of one


class Page(NamedTuple):
    """What a page is by its tags, each the first number of one: 0 for a tag that is not there."""

    subfile: int = 0
    width: int = 0
    length: int = 0
    bits: int = 1
    samples: int = 1
    number: int = 1  # the sample format: unsigned, signed, float

    @property
    def is_aside(self) -> bool:
        """Whether it says that it is a reduced picture or a mask of another."""
        return bool(self.subfile & ASIDE)

    @property
    def kind(self) -> tuple[int, ...]:
        """What is alike in all slices of a stack."""
        return self[1:]

    @property
    def words(self) -> str:
        """Its size for a message."""
        colours = f" of {self.samples} colours" if self.samples > 1 else ""
        return f"{self.width} x {self.length}{colours}, {self.bits} bits"


def pages_of(path: Path) -> list[Page]:
    """Pages of a TIFF in their order; RaymarchError where they or their tags lead beyond its end, or in a circle."""
    size = path.stat().st_size
    seen: dict[int, Page] = {}
    with path.open("rb") as file:
        head = file.read(16)
        order = "<" if head[:2] == b"II" else ">"
        big = struct.unpack_from(f"{order}H", head, 2)[0] == 43 if len(head) == 16 else False
        # Of a page: how many tags, one tag (number, type, count, value or where it is), where the next page is.
        counts, tags, nexts, inline = ("Q", "HHQQ", "Q", 8) if big else ("H", "HHII", "I", 4)
        wide, entry, far = (struct.calcsize(order + one) for one in (counts, tags, nexts))
        at = struct.unpack_from(order + nexts, head, 8 if big else 4)[0] if len(head) == 16 else size
        while at:
            if at in seen or len(seen) >= MOST_PAGES:
                raise RaymarchError(f"{path}: has pages that lead round in a circle; {CURE}")
            file.seek(at)
            said = file.read(wide)
            count = struct.unpack(order + counts, said)[0] if len(said) == wide else 0
            body = file.read(entry * min(count, MOST_TAGS) + far)
            if not 1 <= count <= MOST_TAGS or len(body) < entry * count + far:
                raise RaymarchError(f"{path}: ends before its page {len(seen) + 1}, want a whole TIFF; {CURE}")
            told: dict[str, int] = {}
            for i in range(count):
                tag, kind, number, where = struct.unpack_from(order + tags, body, i * entry)
                length = BYTES.get(kind, 0) * number
                if length > inline and where + length > size:
                    raise RaymarchError(f"{path}: ends before the tags of its page {len(seen) + 1}; {CURE}")
                if tag in TAGS and kind in KINDS and number:
                    value = body[(i + 1) * entry - inline : (i + 1) * entry]
                    if length > inline:
                        file.seek(where)
                        value = file.read(BYTES[kind])
                    told[TAGS[tag]] = int(struct.unpack_from(order + KINDS[kind], value)[0])
            seen[at] = Page(**told)
            at = struct.unpack_from(order + nexts, body, entry * count)[0]
    return list(seen.values())
