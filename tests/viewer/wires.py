"""Wire of a viewer without a server: messages of pages are put in by the test, what they are told is kept."""

from __future__ import annotations

import json
import math
import struct

from raymarch.viewer.server.wire import Mailbox

CAMERA = {"type": "camera", "id": 1, "position": [0, -4, 0], "width": 40, "height": 36, "moving": False}


class FakeWire:
    """Wire of pages that tests play."""

    atlas_bytes = 1 << 20

    def __init__(self):
        self.inbox, self.running, self.url, self.sent = Mailbox(), True, "", []

    def say(self, page, **message):
        self.inbox.put({"page": page, **message})

    def send(self, header, data=None, to=None, hello=False):
        json.dumps(header, allow_nan=False)
        self.sent.append((to, header, data))

    def close(self):
        self.running = False

    def told(self, kind, page=None):
        """What a page was told of a kind: headers and bytes."""
        return [(h, data) for to, h, data in self.sent if h["type"] == kind and page in (None, to)]


def around(n, **changes):
    """The n-th camera of a turn."""
    return {**CAMERA, "id": n, "position": [4 * math.sin(n / 9), -4 * math.cos(n / 9), 0.5], **changes}


def unmarked(png):
    """PNG without "Source", by which `render` knows the pictures of its folder again; a page's picture is in none."""
    kept, at, marks = png[:8], 8, 0
    while at < len(png):
        end = at + 12 + struct.unpack(">I", png[at : at + 4])[0]
        is_mark = png[at + 4 : end].startswith(b"tEXtSource\0")
        kept, at, marks = kept + (b"" if is_mark else png[at:end]), end, marks + is_mark
    assert marks == 1
    return kept
