"""Viewer's server as a test plays it: it says a scene, answers cameras with pictures, and keeps what it was sent."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
from PIL import Image

import raymarch as rm
from raymarch.viewer.server.client_files import serve_file
from raymarch.viewer.server.guard import headers_of

ADDRESS = "http://127.0.0.1:8"
EYE, TARGET = (3.0, -4.0, 2.0), (0.1, 0.2, -0.3)
VIEWS = [rm.Camera.look_at((0.5, -1.5, 0.3 * i), width=40, height=30, fov=0.8) for i in range(3)]
TABLE = rm.TransferFunction([0, 0.3, 0.7, 1], [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)], [0, 0, 0.4, 0.9], 0.05)


def mode(name, **has):
    return {"name": name, **dict.fromkeys(("table", "iso", "values", "shading", "normals"), False), **has}


def listed(i, camera):
    turn = camera.world_from_camera[:3, :3]
    return {
        "name": f"r_{i}", "position": camera.position.tolist(), "forward": (-turn[:, 2]).tolist(),
        "up": turn[:, 1].tolist(), "right": turn[:, 0].tolist(), "fov": float(np.degrees(0.8)), "aspect": 40 / 30,
        "orthographic": False, "width": 40, "height": 30, "split": "",
    }  # fmt: skip


SCENE = {
    "type": "scene", "name": "a & <b>", "shape": [8, 8, 8], "box": [[-1, -1, -1], [1, 1, 1]], "unit": "mm",
    "value_unit": "HU", "values": True, "slices": True, "fit": False, "video": False, "range": [0, 1],
    "modes": [mode("transfer", table=True, shading=True), mode("isosurface", iso=True, shading=True, normals=True)],
    "histogram": {"edges": [0, 0.25, 0.5, 0.75, 1], "counts": [900, 40, 7, 0]},
    "look": {
        "mode": "transfer", "step": 0.5, "exposure": 0, "background": None, "table": TABLE.record(), "iso": 0.5,
        "clip": None, "shading": False, "slice": None, "window": None, "extras": "image",
    },
    "camera": {"position": EYE, "target": TARGET, "up": [0, 0, 1], "fov": 40, "orthographic": False},
    "cameras": [listed(i, camera) for i, camera in enumerate(VIEWS)],
}  # fmt: skip


def png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


class Played:
    """Server that a test plays."""

    def __init__(self):
        self.sent, self.link, self.links, self.answers = [], None, 0, True

    def open(self, link):
        self.link, self.links = link, self.links + 1
        link.on_message(self.take)
        self.say(SCENE)

    def take(self, text):
        message = json.loads(text)
        if message["type"] == "ping":
            return self.say({"type": "pong", "id": message["id"]})
        self.sent.append(message)
        if message["type"] == "camera" and self.answers:
            self.show(np.full((message["height"], message["width"], 3), 40, np.uint8), message["id"])
        if message["type"] == "photo":
            self.say({"type": "photo", "index": message["index"], "width": 40, "height": 30}, PHOTO)

    def say(self, header, data=None):
        text = json.dumps(header)
        self.link.send(text if data is None else struct.pack("<I", len(text)) + text.encode() + data)

    def show(self, image, number, of=None, x=0, y=0, final=True):
        height, width = image.shape[:2]
        place = {"x": x, "y": y, "width": width, "height": height, "of": of or [width, height]}
        header = {"type": "frame", "id": number, "format": "png", **place, "final": final, "moving": False}
        self.say(header, png(image))

    def of(self, kind):
        return [message for message in self.sent if message["type"] == kind]

    @property
    def camera(self):
        """Camera that was said last."""
        said = self.of("camera")[-1]
        place = said["position"], said["target"], said["up"]
        return rm.Camera.look_at(*place, fov=np.radians(said["fov"]), width=said["width"], height=said["height"])


PHOTO = png(np.full((30, 40, 3), 200, np.uint8))


def answer(route):
    place = route.request.url.removeprefix(ADDRESS).partition("?")[0]
    kind, text = serve_file(place)
    route.fulfill(headers=headers_of(kind, ADDRESS.removeprefix("http://")), body=text)


def rest(page, server, act):
    """Do something, and wait until a camera at rest was said, and nothing after it."""
    before, count = len(server.sent), -1
    act()

    def still():
        said = [message for message in server.sent[before:] if message["type"] == "camera"]
        return said and not said[-1]["moving"]

    while len(server.sent) != count:
        wait(page, still)
        count = len(server.sent)
        page.wait_for_timeout(200)
    return server.sent[before:]


def wait(page, true):
    for _ in range(200):
        if true():
            return
        page.wait_for_timeout(25)
    raise AssertionError("it did not come to be")


def middle(page):
    box = page.locator(".rm-stage").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def dragged(page, dx, dy, left=0, **how):
    x, y = np.subtract(middle(page), (left, 0))
    page.mouse.move(x, y)
    page.mouse.down(**how)
    for i in range(1, 5):
        page.mouse.move(x + dx * i / 4, y + dy * i / 4)
        page.wait_for_timeout(20)
    page.mouse.up(**how)
