"""Law: a page opened from its file shows what `rm.render` shows, turns by mouse, keys and fingers, and asks nobody.

Pictures are compared at the same camera, 38 dB being the least that a page may have; most are far above.
"""

from __future__ import annotations

import base64
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from chromium import SOFTWARE_GRAPHICS, Watched, chromium
from skips import require_extra

import raymarch as rm
from raymarch.rendering.default_look import default_look
from raymarch.viewer.page.record import camera_record, look_record

pytestmark = pytest.mark.extra
require_extra("playwright", "all")

SIZE = {"width": 160, "height": 120}
RNG = np.random.default_rng(56)
GROUND = (0.2, 0.3, 0.4)
PICTURE = """async ([camera, look, side, leaps]) => {
    const {raymarcher} = await window.raymarch.opened;
    raymarcher.leaps = leaps;
    const seen = await window.raymarch.picture(camera, look, side);
    return btoa(String.fromCharCode(...new Uint8Array(seen.data.buffer).filter((_, i) => i % 4 < 3)));
}""".replace("String.fromCharCode(...", "((all) => all.reduce((text, one) => text + String.fromCharCode(one), ''))(")


@pytest.fixture(scope="module")
def browser():
    with chromium(SOFTWARE_GRAPHICS) as running:
        yield running


@pytest.fixture
def opened(browser, tmp_path, request):
    """Opens pages of volumes from their files; in the end none has said an error or asked anybody."""
    watched = Watched(browser, has_touch=True)
    watched.context.set_default_timeout(120_000)

    def open_page(volume, **given):
        path = tmp_path / f"page{len(watched.context.pages)}.html"
        made = rm.export_page(volume, path, **given)
        page = watched.open(path.as_uri())
        page.wait_for_selector(".rm-viewer[data-shown]")
        return SimpleNamespace(page=page, made=made)

    open_page.watched = watched
    yield open_page
    if request.session.testsfailed:
        watched.keep(request.node.name)
    wrong, hosts = watched.wrong, watched.hosts
    watched.context.close()
    assert not wrong
    assert hosts <= {"file", "data", "blob"}


def smooth(*shape):
    """Smooth noise."""
    noise = RNG.normal(size=shape)
    for axis in range(3):
        for _ in range(2):
            noise = noise + np.roll(noise, 1, axis) + np.roll(noise, -1, axis)
    return noise / noise.std()


def place(*shape):
    affine = np.diag([*(2 / (n - 1) for n in shape), 1.0])
    affine[:3, 3] = -1
    return affine


def fog(shape, degree, boxes=1, ndc=None, density="softplus"):
    count = (shape[0] * boxes, *shape[1:])
    features = np.stack([smooth(*count) for _ in range(3 * (degree + 1) ** 2)], -1)
    how = {"boxes": boxes, "ndc_from_world": ndc}
    return rm.Volume(3 * smooth(*count) - 1, features, place(*shape), rm.Activation(density, -2.0, 0.05), **how)


def head():
    """A ball of bone in one of skin, with noise."""
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, n) for n in (40, 44, 36)], indexing="ij"), -1)
    far = np.linalg.norm(x, axis=-1)
    values = 300 * (far < 0.9) + 900 * ((far < 0.7) & (far > 0.6)) + 8 * RNG.normal(size=far.shape)
    return rm.ScalarVolume(np.rint(values).astype(np.int16), place(*far.shape))


def look_of(march, window=None):
    return look_record(march, GROUND, window)


def compare(opened, volume, camera, marches):
    """PSNR of a page's pictures against `rm.render`, of each march; those without leaps are the same."""
    page = opened(volume, march=marches[0], camera=camera, background=GROUND).page
    found = []
    for march in marches:
        true, window = rm.render(volume, camera, march=march, background=GROUND), None
        if march.mode in ("maximum", "minimum", "average", "x-ray"):
            window = float(true.min()), float(true.max())
            true = (true - window[0]) / (window[1] - window[0])
        given = [camera_record(camera), look_of(march, window), march.supersample or 1]
        seen, slow = (
            np.frombuffer(base64.b64decode(page.evaluate(PICTURE, [*given, leaps])), np.uint8).reshape(true.shape)
            for leaps in (True, False)
        )
        off = np.abs(seen.astype(int) - slow)  # a surface's root is bracketed elsewhere
        assert (off > 4).mean() < 0.005 if march.iso is not None else not off.any()
        found.append(float(rm.psnr(seen / 255, np.clip(true, 0, 1))))
    return dict(zip([march.mode for march in marches], found, strict=True))


def near(volume, *eye, **how):
    return rm.Camera.look_at(eye or (2.2, -3, 1.4), volume.box.mean(0), **SIZE, **how)


def test_colour_and_density_of_a_fit(opened):
    volume = fog((30, 27, 33), 1)
    cut = rm.Clip(planes=[((1, 0.3, 0.2), 0.1)])
    found = compare(opened, volume, near(volume), [rm.March(), rm.March(mode="additive", clip=cut, supersample=2)])
    assert min(found.values()) > 45, found


def test_other_modes_of_a_fit(opened):
    volume = fog((30, 27, 33), 0, density="relu")
    marches = [rm.March(mode="maximum"), rm.March(mode="x-ray"), rm.March(mode="isosurface", iso=40.0)]
    table = rm.TransferFunction.of_colormap("viridis", 0, 80, (0, 0.9), unit_length=0.1)
    found = compare(opened, volume, near(volume), [*marches, rm.March(mode="transfer", transfer=table)])
    assert found.pop("isosurface") > 30, "blobs a few voxels wide, all silhouette"
    assert min(found.values()) > 45, found


def test_a_scan_through_a_table_and_its_other_modes(opened):
    scan = head()
    volume, look = scan.as_volume(), default_look(scan)
    assert look.march.shading is not None
    plain = rm.March(mode="transfer", transfer=look.march.transfer, clip=rm.Clip(box=((-1, -1, -1), (0.1, 1, 1))))
    iso = rm.March(
        mode="isosurface", iso=150.0, shading=rm.Shading(lamp=(1, -1, 1), smooth=False, colour=(1, 0.8, 0.6))
    )
    modes = [rm.March(mode=name) for name in ("maximum", "minimum", "average", "x-ray")]
    lit = compare(opened, volume, near(volume), [look.march])
    assert lit["transfer"] > 40, lit
    found = compare(opened, volume, near(volume), [plain, iso, *modes])
    assert found.pop("isosurface") > 38
    assert found.pop("minimum") > 36, "noise of air, over a window of a few steps of a byte"
    assert min(found.values()) > 45, found


def test_nested_boxes(opened):
    volume = fog((24, 24, 28), 1, boxes=3)
    camera = near(volume, 0.5, -1.2, 0.6, fov=1.2)
    found = compare(opened, volume, camera, [rm.March(), rm.March(mode="maximum"), rm.March(mode="x-ray")])
    assert min(found.values()) > 45, found


def test_ndc_and_parallel_rays(opened):
    frustum = rm.ndc_of_frustum(np.eye(4), near=1.0, focal=1.2)
    forward = fog((36, 30, 32), 0, ndc=frustum)
    camera = rm.Camera.look_at((0.2, 0.1, 0.1), (0, 0, -4), up=(0, 1, 0), fov=1.1, **SIZE)
    found = compare(opened, forward, camera, [rm.March(), rm.March(clip=rm.Clip(planes=[((1, 0.3, 0.2), -0.4)]))])
    assert min(found.values()) > 45, found
    volume = fog((20, 21, 22), 0)
    parallel = rm.Camera.orthographic((2, -3, 1), size=3.0, **SIZE)
    assert compare(opened, volume, parallel, [rm.March()])["emission-absorption"] > 45


def settled(page):
    page.wait_for_selector(".rm-viewer[data-settled=true]")


def pose(page):
    return np.array(page.evaluate("async () => (await window.raymarch.opened).record().pose"))


def drag(page, dx, dy):
    page.mouse.move(300, 300)
    page.mouse.down()
    for i in range(1, 6):
        page.mouse.move(300 + dx * i / 5, 300 + dy * i / 5)
    page.mouse.up()


def test_a_page_is_turned_by_mouse_keys_and_fingers(opened):
    seen = opened(rm.Volume.from_function(lambda p: 9.0 * (np.abs(p).max(-1) < 0.6), shape=(16, 16, 16)))
    page, places = seen.page, []
    page.set_viewport_size({"width": 500, "height": 400})
    places.append(pose(page))
    drag(page, 60, 20)
    places.append(pose(page))
    page.keyboard.press("ArrowLeft")
    places.append(pose(page))
    page.mouse.wheel(0, 200)
    page.wait_for_timeout(100)
    places.append(pose(page))
    touch = opened.watched.context.new_cdp_session(page)
    fingers = [[(200, 200)], [(240, 210)], []]
    for kind, points in zip(("touchStart", "touchMove", "touchEnd"), fingers, strict=True):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})
    places.append(pose(page))
    steps = [((150, 200), (250, 200)), ((120, 200), (280, 200))]
    for kind, points in zip(("touchStart", "touchMove", "touchEnd"), [*steps, ()], strict=True):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})
    places.append(pose(page))
    assert all(np.abs(a - b).max() > 1e-3 for a, b in pairwise(places))
    page.keyboard.press("r")
    assert np.allclose(pose(page), places[0])
    settled(page)
    assert "texture reads a ray" in page.locator(".rm-status").inner_text()


def test_cameras_photographs_and_the_path(opened):
    volume = rm.Volume.from_function(lambda p: 9.0 * (np.abs(p).max(-1) < 0.6), shape=(16, 16, 16))
    cameras = [rm.Camera.look_at((3 * np.cos(a), 3 * np.sin(a), 1), width=40, height=30) for a in (0, 1, 2)]
    views = rm.Views(cameras, np.full((3, 30, 40, 3), 90, np.uint8))
    page = opened(volume, views=views, pictures=True).page
    assert np.allclose(pose(page), cameras[0].world_from_camera.ravel())
    page.keyboard.press("n")
    assert np.allclose(pose(page), cameras[1].world_from_camera.ravel())
    page.keyboard.press("c")
    assert page.locator(".rm-photo").is_visible()
    page.keyboard.press("c")
    assert not page.locator(".rm-photo").is_visible()
    page.keyboard.press(" ")
    here = cameras[1].world_from_camera.ravel().tolist()
    page.wait_for_function(
        "async (here) => (await window.raymarch.opened).record().pose.some((x, i) => Math.abs(x - here[i]) > 1e-3)",
        arg=here,
    )
    page.keyboard.press(" ")
    page.get_by_label("Camera of the set").select_option("2")
    assert np.allclose(pose(page), cameras[2].world_from_camera.ravel())


def test_why_no_photograph_is_shown_is_said_and_goes_once_one_is(opened):
    volume = rm.Volume.from_function(lambda p: 9.0 * (np.abs(p).max(-1) < 0.6), shape=(16, 16, 16))
    cameras = [rm.Camera.look_at((3 * np.cos(a), 3 * np.sin(a), 1), width=40, height=30) for a in range(25)]
    views = rm.Views(cameras, np.full((25, 30, 40, 3), 90, np.uint8))
    page = opened(volume, views=views, pictures=True).page
    without = page.evaluate("async () => (await window.raymarch.opened).page.cameras.findIndex((one) => !one.picture)")
    said = page.locator(".rm-message")
    page.get_by_label("Camera of the set").select_option(str(without))
    page.keyboard.press("c")
    assert "does not hold the photograph of this camera" in said.inner_text()
    page.keyboard.press("n")
    assert page.locator(".rm-photo").is_visible() and said.count() == 0
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("c")
    assert "choose one, or press N" in said.inner_text()
    page = opened(volume, views=views).page
    page.keyboard.press("c")
    assert "holds no photographs" in page.locator(".rm-message").inner_text()


def test_modes_and_tables_are_changed_in_the_panel(opened):
    page = opened(head()).page
    page.get_by_label("Mode", exact=True).select_option("maximum")
    settled(page)
    one = page.locator(".rp-canvas").screenshot()
    page.get_by_label("Mode", exact=True).select_option("transfer")
    page.get_by_label("Colour map").select_option("inferno")
    settled(page)
    assert page.locator(".rp-canvas").screenshot() != one
    table = "{values: [0, NaN], colours: [[0, 0, 0], [1, 1, 1]], opacities: [0, 1], unit_length: 1}"
    broken = f"async () => (await window.raymarch.opened).look({{table: {table}}})"
    page.evaluate(broken)
    assert "the table has NaN, want numbers" in page.locator(".rm-message").inner_text()


def test_a_lost_context_comes_back(opened):
    page = opened(rm.Volume.from_function(lambda p: 9.0 * (np.abs(p).max(-1) < 0.6), shape=(16, 16, 16))).page
    settled(page)
    before = page.locator(".rp-canvas").screenshot()
    page.evaluate(
        "async () => { const {gl} = (await window.raymarch.opened).raymarcher;"
        " window.lost = gl.getExtension('WEBGL_lose_context'); window.lost.loseContext(); }"
    )
    page.wait_for_selector(".rm-message:has-text('lost the GPU')")
    assert page.locator(".rp-still").is_visible()
    page.evaluate("() => window.lost.restoreContext()")
    page.wait_for_selector(".rp-still", state="hidden")
    settled(page)
    assert page.locator(".rm-message").count() == 0
    assert page.locator(".rp-canvas").screenshot() == before


@pytest.mark.parametrize("missing", ["webgl2", "DecompressionStream"])
def test_a_browser_that_cannot_march_shows_the_still_picture(browser, tmp_path, missing):
    path = tmp_path / "page.html"
    rm.export_page(rm.Volume.from_function(lambda p: 9.0 * (np.abs(p).max(-1) < 0.6), shape=(16, 16, 16)), path)
    watched = Watched(browser)
    take = {
        "webgl2": "HTMLCanvasElement.prototype.getContext = () => null",
        "DecompressionStream": "delete window.DecompressionStream",
    }
    watched.context.add_init_script(take[missing])
    page = watched.open(path.as_uri())
    page.wait_for_selector(".rm-message.rm-error")
    said = page.locator(".rm-message").inner_text()
    assert said.startswith("This is a still picture:") and "\n" not in said and missing.lower() in said.lower()
    assert page.locator(".rp-still img").is_visible()
    assert not watched.wrong and not watched.strangers - {"file"}
    watched.context.close()
