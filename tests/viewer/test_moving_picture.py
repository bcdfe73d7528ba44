"""Law: while something moves the page draws what the server would, by itself; at rest the server's picture is shown.

The test is the page's server: it sends the parts of a volume, and pictures of cameras at rest where it is told to.
"""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from chromium import SOFTWARE_GRAPHICS, Watched, chromium, pixels
from PIL import Image
from played import ADDRESS, Played, answer, dragged, wait
from skips import require_extra

import raymarch as rm
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.viewer_camera import camera_of_message

pytestmark = pytest.mark.extra
require_extra("playwright", "all")

RNG = np.random.default_rng(56)
PAINT = """([share, step]) => {
    const {moving} = document.querySelector(".rm-stage");
    if (!moving.draws) return moving.looked.why;
    const quick = {step, transmittance: 0, weight: 0};
    moving.paint(share, quick);
    return "";
}"""
LOOK = "look => document.querySelector('.rm-stage').moving.viewer.look(look)"
STEER = "change => { const {viewer} = document.querySelector('.rm-stage').moving; viewer.steer((c) => %s); }"
READY = ".rm-stage[data-drawing=ready]"


def smooth(*shape):
    """Smooth noise."""
    noise = RNG.normal(size=shape)
    for axis in range(3):
        for _ in range(2):
            noise = noise + np.roll(noise, 1, axis) + np.roll(noise, -1, axis)
    return noise / noise.std()


def fog():
    """Fog of degree 1, on a ground of its own."""
    shape = (30, 27, 33)
    affine = np.diag([*(2 / (n - 1) for n in shape), 1.0])
    affine[:3, 3] = -1
    features = np.stack([smooth(*shape) for _ in range(12)], -1)
    how = {"background": (0.2, 0.3, 0.4)}
    return rm.Volume(3 * smooth(*shape) - 1, features, affine, rm.Activation("softplus", -2.0, 0.05), **how)


def scan():
    """A ball of bone in one of skin."""
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, n) for n in (30, 34, 26)], indexing="ij"), -1)
    far = np.linalg.norm(x, axis=-1)
    values = 300 * (far < 0.9) + 900 * ((far < 0.7) & (far > 0.6)) + 8 * smooth(*far.shape)
    affine = np.diag([*(2 / (n - 1) for n in far.shape), 1.0])
    affine[:3, 3] = -1
    return rm.ScalarVolume(np.rint(values).astype(np.int16), affine)


class Packing(Played):
    """Server that has a volume: it says its scene, and sends its parts; pictures at rest are its own."""

    def __init__(self, maker):
        super().__init__()
        self.maker, self.answers, self.look = maker, True, maker.look()

    def open(self, link):
        self.link, self.links = link, self.links + 1
        link.on_message(self.take)
        self.say(self.maker.scene())

    def take(self, text):
        message = json.loads(text)
        if message["type"] == "ping":
            return self.say({"type": "pong", "id": message["id"]})
        self.sent.append(message)
        atlas = self.maker.atlas
        if message["type"] == "atlas" and "part" in message:
            self.say(*atlas.part(message["version"], message["part"]))
        elif message["type"] == "atlas":
            atlas.wanted = True
            while atlas.busy:
                atlas.work()
            self.say(atlas.packed.header)
        elif message["type"] == "look":
            self.look = self.maker.changed(self.look, message)
        elif message["type"] == "camera" and self.answers:
            for frame in self.maker.frames(camera_of_message(message), self.look):
                if frame is not None and frame.final:
                    self.say(frame.header, frame.data)

    def exact(self):
        """The picture at rest of the camera that was said last."""
        data = self.maker.picture(camera_of_message(self.of("camera")[-1]), self.look)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


@pytest.fixture(scope="module")
def browser():
    with chromium(SOFTWARE_GRAPHICS) as running:
        yield running


@pytest.fixture
def opened(browser, request):
    """Opens a page of 240 x 180 pixels of a volume, and waits until it can draw."""
    found, makers = [], []

    def open_page(volume, ready=True, script=None):
        makers.append(FrameMaker(volume, None, "volume"))
        server, watched = Packing(makers[-1]), Watched(browser)
        found.append(watched)
        watched.context.route(f"{ADDRESS}/**", answer)
        watched.context.route_web_socket("**/ws?token=t", server.open)
        if script:
            watched.context.add_init_script(script)
        page = watched.open(f"{ADDRESS}/?token=t")
        page.set_viewport_size({"width": 240, "height": 206})
        if ready:
            page.wait_for_selector(READY)
            settled(page)
        return page, server

    yield open_page
    for watched in found:
        if request.session.testsfailed:
            watched.keep(request.node.name)
        wrong, strangers = watched.wrong, watched.strangers
        watched.context.close()
        assert not wrong and not strangers
    for maker in makers:
        maker.close()


def settled(page):
    page.wait_for_selector(".rm-stage[data-settled=true]")


def picture(page):
    return pixels(page.locator(".rm-picture"))[..., :3]


def against(page, server, changes=None, share=1, step=1):
    """PSNR of the page's own picture against the server's at rest, which is shown before and after."""
    if changes:
        page.evaluate(LOOK, changes)
        wait(page, lambda: all(server.look.record().get(name) is not None for name in changes))
        page.wait_for_timeout(300)
    settled(page)
    exact = server.exact()
    assert np.array_equal(picture(page), exact)
    assert page.evaluate(PAINT, [share, step]) == ""
    return rm.psnr(picture(page) / 255, exact / 255)


def test_its_own_picture_is_the_servers(opened):
    page, server = opened(fog())
    assert against(page, server) > 45
    assert against(page, server, {"exposure": 1, "background": [0.9, 0.5, 0.1]}) > 42
    assert against(page, server, {"clip": {"lower": [-0.5, -1, -1], "upper": [1, 0.6, 0.9]}}) > 42
    page.evaluate(STEER % "(c.orthographic = true)", None)
    page.wait_for_timeout(300)
    assert against(page, server) > 42
    assert against(page, server, {"step": 0.4}, share=0.5, step=2) > 24, "fewer rays, but where they were"


def test_its_own_picture_of_values_is_the_servers(opened):
    page, server = opened(scan())
    assert server.look.mode == "transfer" and against(page, server) > 38
    assert against(page, server, {"mode": "isosurface", "iso": 150.0, "shading": True}) > 36
    for mode in ("maximum", "x-ray", "average"):
        assert against(page, server, {"mode": mode}) > 36, mode
    assert against(page, server, {"mode": "minimum"}) > 33, "noise of air, over a window of a few steps of a byte"


def test_while_it_moves_the_page_draws_and_the_server_hears_no_camera(opened):
    page, server = opened(fog())
    frames = int(page.locator(".rm-stage").get_attribute("data-here") or 0)
    del server.sent[:]
    server.answers = False
    dragged(page, 60, 20)
    page.wait_for_function("n => +document.querySelector('.rm-stage').dataset.here > n", arg=frames)
    wait(page, lambda: server.of("camera"))
    page.wait_for_timeout(300)
    assert not any(message["moving"] for message in server.of("camera"))
    assert server.of("turning") and float(page.locator(".rm-stage").get_attribute("data-rate")) >= 0
    own, exact = picture(page), server.exact()
    assert rm.psnr(own / 255, exact / 255) > 22, "of the camera it was left at"
    stale = server.of("camera")[-1]["id"] - 1
    server.show(np.zeros((*own.shape[:2], 3), np.uint8), stale)  # of the camera before
    page.wait_for_timeout(200)
    assert np.array_equal(picture(page), own)
    server.show(exact.astype(np.uint8), stale + 1)
    settled(page)
    assert np.array_equal(picture(page), exact)


@pytest.mark.parametrize("changes", [{"extras": "depth"}, {"slice": {"axis": 2, "position": 0.0}}])
def test_what_it_cannot_draw_the_server_draws_while_it_moves(opened, changes):
    page, server = opened(fog())
    page.evaluate(LOOK, changes)
    page.wait_for_timeout(300)
    settled(page)
    del server.sent[:]
    page.evaluate("() => document.querySelector('.rm-stage').moving.viewer.look({step: 0.7}, true)")
    wait(page, lambda: server.of("camera"))
    assert server.of("camera")[0]["moving"] and not server.of("turning")


def moves(page, server):
    """What the server hears while the page is dragged."""
    del server.sent[:]
    dragged(page, 50, 10)
    wait(page, lambda: server.of("camera"))
    return server


@pytest.mark.parametrize("missing", ["WebGL2", "DecompressionStream"])
def test_a_browser_that_cannot_draw_leaves_it_to_the_server(opened, missing):
    take = {
        "WebGL2": "const own = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, how)"
        "{ return kind === 'webgl2' ? null : own.call(this, kind, how); }",
        "DecompressionStream": "delete window.DecompressionStream",
    }
    page, server = opened(fog(), ready=False, script=take[missing])
    page.wait_for_selector(".rm-stage[data-drawing=unable]")
    assert moves(page, server).of("camera")[0]["moving"] and not server.of("atlas")
    assert missing in page.locator(".rm-state").get_attribute("title")


def test_a_lost_context_comes_back_and_until_then_the_server_draws(opened):
    page, server = opened(fog())
    page.evaluate(
        "() => { const {gl} = document.querySelector('.rm-stage').moving.raymarcher;"
        " window.lost = gl.getExtension('WEBGL_lose_context'); window.lost.loseContext(); }"
    )
    page.wait_for_selector(".rm-stage[data-drawing=lost]")
    assert moves(page, server).of("camera")[0]["moving"]
    page.evaluate("() => window.lost.restoreContext()")
    page.wait_for_selector(READY)
    page.wait_for_timeout(300)
    settled(page)
    assert against(page, server) > 45


def test_another_volume_takes_the_place_of_the_one_before(opened):
    page, server = opened(fog())
    with FrameMaker(rm.Volume.from_function(lambda p: 9.0 * (np.abs(p).max(-1) < 0.6), shape=(16, 16, 16))) as other:
        server.maker, server.look = other, other.look()
        server.say(other.scene())
        page.wait_for_function(
            "key => { const {moving} = document.querySelector('.rm-stage'); return moving.keyOf === key; }",
            arg=other.atlas.key,
        )
        page.wait_for_timeout(300)
        settled(page)
        assert against(page, server) > 42


PACED = """([fixed, slope]) => {
    const pace = new (document.querySelector(".rm-stage").moving.pace.constructor)();
    const seen = [];
    for (let i = 0; i < 200; i++) {
        seen.push(pace.share);
        pace.took(i === 0 ? 900 : fixed + slope * pace.work(pace.rung));
    }
    return seen.slice(-30);
}"""


def test_what_a_frame_takes_besides_its_rays_costs_no_resolution(opened):
    """Times of frames by a machine's two figures: fixed [ms], and of a whole picture [ms]; the first one compiles."""
    page, _ = opened(fog())
    shares = {times: page.evaluate(PACED, times) for times in ((2, 10), (2, 300), (20, 300), (60, 300), (2, 30000))}
    assert min(shares[2, 10]) == 1, "a GPU has time for all"
    typical = {times: float(np.median(found)) for times, found in shares.items()}
    assert typical[2, 300] == 0.4, "26 ms"
    assert 0.2 <= typical[20, 300] <= 0.28, "what is left of the time"
    assert typical[60, 300] >= 0.28, "fewer rays would save little"
    assert max(shares[2, 30000]) <= 0.1
