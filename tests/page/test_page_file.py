"""Law: a page is one text that asks nobody, holds its volume, and says what it had to leave out."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import raymarch as rm
from raymarch.viewer.page.thinner import fewer_samples, thinner

REQUESTS = ("http:", "https:", "fetch(", "XMLHttpRequest", "WebSocket(", "importScripts", "@import", "url(")
NAMES_OF_SVG = "http://www.w3.org/2000/svg"  # a name, not an address


def ball(side=20):
    return rm.Volume.from_function(
        lambda p: 30.0 * (np.linalg.norm(p, axis=-1) < 0.5), lambda p: 0.5 + 0.5 * p, shape=(side,) * 3
    )


def noise(side=40):
    values = np.random.default_rng(3).integers(0, 1000, (side,) * 3)
    return rm.ScalarVolume(values.astype(np.int16))


class Elements(HTMLParser):
    """Elements of a page that lead anywhere, and its scripts by their ids."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.scripts, self.within = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.addresses += [value for name, value in given.items() if name in ("src", "href", "action", "data")]
        self.within = given.get("id", "") if tag == "script" else None

    def handle_data(self, data):
        if self.within is not None:
            self.scripts[self.within] = self.scripts.get(self.within, "") + data


@pytest.fixture(scope="module")
def page():
    cameras = [rm.Camera.look_at((3, y, 1), width=40, height=30) for y in (-1, 0, 1)]
    return rm.make_page(ball(), views=cameras, title="A <ball> & more")


def test_a_page_names_nothing_outside_itself(page):
    found = Elements(page.html)
    assert all(one.startswith("data:") for one in found.addresses) and found.addresses
    text = page.html.replace(NAMES_OF_SVG, "")
    assert not [one for one in REQUESTS if one in text]
    assert "default-src 'none'" in text and "connect-src 'none'" in text


def test_its_record_is_json_and_its_title_is_no_markup(page):
    found = Elements(page.html)
    record = json.loads(found.scripts["page-record"])
    assert record["title"] == "A <ball> & more" and "<ball>" not in page.html
    assert record["volume"]["shape"] == [20, 20, 20] and len(record["cameras"]) == 3 and len(record["path"]) > 10
    assert list(record["looks"]) == ["emission-absorption", "transfer", "isosurface", "maximum", "x-ray"]
    assert re.fullmatch(r"[A-Za-z0-9+/]+=*", found.scripts["page-volume"].strip())
    assert re.search(r'<img alt="Still picture[^>]*data:image/jpeg;base64,', page.html)


def test_a_volume_over_the_budget_has_fewer_samples_and_that_is_said(caplog):
    whole = rm.make_page(noise())
    rest = whole.nbytes / 1e6 - 0.1
    small = rm.make_page(noise(), max_mb=round(rest, 3))
    assert small.nbytes <= rest * 1e6 and small.shape < whole.shape
    said = [one.getMessage() for one in caplog.records]
    assert any(f"{small.shape[0]} x" in one and "40 x 40 x 40" in one and "--max-mb" in one for one in said)


def test_a_budget_that_holds_no_volume_is_refused_with_one_that_does():
    with pytest.raises(rm.RaymarchError, match=r"max_mb is 0\.06, but page, pictures and code alone take .*; give "):
        rm.make_page(noise(), max_mb=0.06)


def test_fewer_samples_keep_what_is_seen():
    volume = ball(41)
    half = thinner(volume, 0.5)
    assert half.shape == (21, 21, 21) and np.allclose(half.box, volume.box)
    way = volume.sigma().sum() * volume.voxel**3
    assert abs(half.sigma().sum() * half.voxel**3 / way - 1) < 0.02
    ramp = rm.ScalarVolume(np.arange(64.0).reshape(4, 4, 4) * 0 + np.arange(4)[:, None, None]).as_volume()
    assert np.allclose(thinner(ramp, 1 / 3).density[:, 0, 0], [0, 3])
    assert fewer_samples((100, 2, 50), 0.1) == (11, 2, 6)


def test_fewer_samples_of_nested_boxes_are_of_each_box():
    fog = rm.Volume(np.ones((24, 8, 8)), np.zeros((24, 8, 8, 3)), np.eye(4), boxes=2)
    few = thinner(fog, 0.5)
    assert few.shape == (14, 5, 5) and few.boxes == 2
    assert np.allclose(few.nested(1).box, fog.nested(1).box)
    assert np.allclose(few.sigma(), fog.sigma().max())


def test_a_page_is_written_in_one_step_and_over_its_own_alone(tmp_path, page):
    path = tmp_path / "ball.html"
    page.write(path)
    page.write(path)
    assert path.read_bytes() == page.html.encode()
    other = tmp_path / "letter.html"
    other.write_text("<p>mine</p>")
    with pytest.raises(rm.RaymarchError, match="would be lost"):
        page.write(other)
    assert other.read_text() == "<p>mine</p>" and sorted(p.name for p in tmp_path.iterdir()) == [
        "ball.html",
        "letter.html",
    ]
    with pytest.raises(rm.RaymarchError, match=r"end the name in one of them"):
        rm.export_page(ball(), tmp_path / "ball.txt")


REFUSED = {
    "own mode": ({"march": rm.March(mode=rm.Mode("mine", *[lambda *a: a] * 3))}, "mode 'mine' is your own"),
    "matcap": (
        {"march": rm.March(mode="isosurface", iso=9, shading=rm.Shading(matcap=np.ones((2, 2, 3))))},
        "leave matcap out",
    ),
    "pictures of none": ({"pictures": True}, "give views"),
    "iso beside the values": ({"march": rm.March(mode="isosurface", iso=1e6)}, "no surface"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_page_cannot_show_is_refused_in_one_line(name):
    given, message = REFUSED[name]
    with pytest.raises(rm.RaymarchError, match=message) as caught:
        rm.make_page(ball(), **given)
    assert "\n" not in str(caught.value)


def test_an_activation_of_ones_own_is_refused():
    own = rm.ColourActivation("mine", lambda x: x)
    volume = rm.Volume(np.ones((4, 4, 4)), np.ones((4, 4, 4, 3)), np.eye(4), rm.Activation(colour=own))
    with pytest.raises(rm.RaymarchError, match="activation 'mine' is your own"):
        rm.make_page(volume)


def test_photographs_come_with_their_cameras(caplog):
    cameras = [rm.Camera.look_at((3, y, 1), width=40, height=30) for y in np.linspace(-1, 1, 30)]
    views = rm.Views(cameras, np.full((30, 30, 40, 3), 200, np.uint8))
    made = rm.make_page(ball(), views=views, pictures=True)
    record = json.loads(Elements(made.html).scripts["page-record"])
    assert made.photographs == 24 and sum("picture" in one for one in record["cameras"]) == 24
    assert any("24 of 30 photographs" in one.getMessage() for one in caplog.records)


def test_a_photograph_through_a_lens_is_straightened():
    from raymarch.viewer.page.photographs import straight, straightened

    bent = rm.Camera(np.eye(4), (50, 50), (32, 24), 64, 48, rm.Lens("simple_radial", (0.2,)))
    u = np.arange(64)[None, :, None] * np.ones((48, 1, 3))
    image = straightened(u.astype(np.uint8), bent)
    row = image[24, :, 0].astype(float)
    rays = straight(bent).rays(np.arange(24 * 64, 25 * 64))
    seen, _ = bent.project(rays.origin + rays.direction)
    inside = (seen[:, 0] > 1) & (seen[:, 0] < 63)
    assert inside.sum() > 40 and np.abs(row - (seen[:, 0] - 0.5))[inside].max() < 1


def test_a_photograph_of_all_around_is_its_middle_with_a_field_of_view_of_a_quarter_turn():
    from raymarch.viewer.page.photographs import straight, straightened

    around = rm.Camera.panorama((0, 0, 0), width=128)
    _, direction = np.divmod(np.arange(64 * 128), 128)
    image = np.repeat(direction.reshape(64, 128, 1), 3, axis=2).astype(np.uint8)  # its column at each pixel
    plain, seen = straight(around), straightened(image, around)
    assert np.isclose(2 * np.arctan(plain.width / 2 / plain.focal[0]), np.pi / 2)
    columns, _ = around.project(plain.rays().direction)
    np.testing.assert_allclose(seen[..., 0].ravel(), columns[:, 0] - 0.5, atol=0.51)
