"""Pages of a TIFF, walked from header to last: a file that ends before one of them, or before what its tags lead to."""

from __future__ import annotations

import struct
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.volumes.stored_values import CURE

MOST_PAGES, MOST_TAGS = 1 << 20, 4096
BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}


def require_whole(path: Path) -> None:
    """RaymarchError for a TIFF whose pages or tags lead beyond its end, or round in a circle."""
    size = path.stat().st_size
    seen: set[int] = set()
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
            seen.add(at)
            file.seek(at)
            said = file.read(wide)
            count = struct.unpack(order + counts, said)[0] if len(said) == wide else 0
            body = file.read(entry * min(count, MOST_TAGS) + far)
            if not 1 <= count <= MOST_TAGS or len(body) < entry * count + far:
                raise RaymarchError(f"{path}: ends before its page {len(seen)}, want a whole TIFF; {CURE}")
            for i in range(count):
                _, kind, number, where = struct.unpack_from(order + tags, body, i * entry)
                length = BYTES.get(kind, 0) * number
                if length > inline and where + length > size:
                    raise RaymarchError(f"{path}: ends before the tags of its page {len(seen)}; {CURE}")
            at = struct.unpack_from(order + nexts, body, entry * count)[0]
