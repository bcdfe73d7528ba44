"""Law: a value shows itself in a notebook, quickly, without a device, and whatever happens without breaking a cell."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from dataclasses import replace
from html.parser import HTMLParser
from itertools import permutations

import numpy as np
import pytest
import reference

import raymarch as rm
from raymarch.device.memory import Memory
from raymarch.evaluation.held_out import Evaluation, ViewScore
from raymarch.fitting.clock import Clock
from raymarch.fitting.fit_table import TableFit
from raymarch.fitting.forecast import Forecast
from raymarch.fitting.report import Fit, Report
from raymarch.gradients.check import GradientRow
from raymarch.html.card import card_html, html_of
from raymarch.rendering.renderer import Rendering
from raymarch.volumes import thumbnails
from raymarch.volumes.scalar_volume import middle_slices
from raymarch.volumes.storage import Dense

RNG = np.random.default_rng(0)
BAD = '<script>"&'
CAMERA = rm.Camera.look_at((0, -4, 1), width=64, height=48)
BALL = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.7), lambda p: 0.5 + 0.5 * p)
SCAN = rm.ScalarVolume(
    RNG.integers(0, 900, (8, 9, 10)).astype(np.int16), np.diag([-1, 1, 2, 1]), 2.0, -1024, "HU", "mm", "RAS", BAD
)
VIEWS = rm.Views(
    [CAMERA] * 12, RNG.integers(0, 255, (12, 48, 64, 4), np.uint8), source=BAD, masks=[np.zeros((48, 64), bool)] * 12
)
REPORTS = tuple(Report(25 * i, 1 / (1 + i), 10.0 + i, 1e6, (8, 8, 8), 0.4, 0.1, 0.5, 3.0) for i in range(4))
SCORES = Evaluation(30.0, None, (ViewScore(BAD, 20.0, None), ViewScore("b", 40.0, 0.9)), 0.1)
FITTED = Fit(replace(BALL, provenance={"steps": 8}), rm.preset("quick"), REPORTS, BALL.box, BAD, 12.3)


def fitter():
    """A fit whose device memory is given back."""
    made = object.__new__(rm.Fitter)
    own = {"views": VIEWS, "settings": rm.preset("quick"), "history": list(REPORTS), "box": BALL.box, "steps_done": 75}
    vars(made).update(own, clock=Clock(0.0), schedule=rm.fitting.level_schedule.Schedule.of(own["settings"]))
    return made


VALUES = {
    "volume": BALL,
    "sparse": BALL.sparse(),
    "nested": rm.Volume(RNG.random((16, 8, 8)), np.zeros((16, 8, 8, 3)), np.eye(4), boxes=2),
    "in NDC": replace(BALL, ndc_from_world=rm.ndc_of_frustum(np.eye(4), 1.0)),
    "of values": SCAN.as_volume(),
    "scan": SCAN,
    "scan of nobody's body": replace(SCAN, world="", slope=-1.0),
    "views": VIEWS,
    "camera": CAMERA,
    "lens": replace(CAMERA, lens=rm.Lens("opencv", (0.1, 0, 0, 0.01, 0))),
    "parallel": rm.Camera.orthographic((0, -4, 0)),
    "table": rm.TransferFunction.of_colormap("viridis", 0, 4000, (0, 0.6)),
    "rendering": Rendering(RNG.random((48, 64, 3)), RNG.random((48, 64)), np.full((48, 64), np.inf)),
    "normals": Rendering(RNG.random((48, 64, 3)), RNG.random((48, 64)), RNG.random((48, 64)), np.zeros((48, 64, 3))),
    "fitter": fitter(),
    "fit": FITTED,
    "evaluation": SCORES,
    "mesh": rm.Mesh(np.eye(3), [(0, 1, 2)], np.eye(3), np.eye(3)),
    "points": rm.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), np.zeros((0, 3)), np.zeros((0, 3))),
    "summary": rm.VolumeSummary.of(replace(BALL, provenance={"views": {"source": BAD}}), 2048),
    "scan's summary": rm.ScalarSummary.of(SCAN, 2048),
    "forecast": Forecast(Memory((8, 8, 8), 0, 1, {"grid": 4096}), 10**9, 12.5, 800),
    "gradients": rm.GradientReport((GradientRow(BAD, "x-ray", "f64", 1e-9, None, 0.1, 0.0, "right"),), 3.0),
    "fitted table": TableFit(rm.TransferFunction([0, 1], np.eye(2, 3), [0, 1]), np.array([0.3, 0.2]), 1.5),
    "refinement": rm.Refinement(VIEWS, np.zeros((12, 6)), np.ones(12), np.ones(12) / 100, (0.2, 0.1)),
    "registration": rm.Registration(CAMERA, np.zeros(6), 0.01, 3, True),
}
# Images and drawings of a card: a thumbnail, three slices and a maximum, an even few of the views, two curves, ...
ONE = ("volume", "sparse", "nested", "in NDC", "of values")
PICTURES = {
    **dict.fromkeys(ONE, (1, 0)),
    **dict.fromkeys(("scan", "scan of nobody's body"), (4, 0)),
    **dict.fromkeys(("camera", "lens", "parallel", "registration", "table"), (0, 1)),
    "views": (8, 0),
    "rendering": (2, 0),
    "normals": (4, 0),
    "fitter": (0, 2),
    "fit": (1, 2),
    "fitted table": (0, 2),
    "refinement": (8, 1),
}


class Reading(HTMLParser):
    """Tags that are open, those that there are, and the addresses that a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in ("img", "br", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", VALUES)
def test_a_card_is_html_that_asks_for_nothing_elsewhere(name):
    html = VALUES[name]._repr_html_()
    page = Reading(html)
    assert page.open == [] and not {"script", "style", "link", "iframe"} & set(page.tags)
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert "://" not in html and len(html) < 200_000
    assert (page.tags.count("img"), page.tags.count("svg")) == PICTURES.get(name, (0, 0))
    assert not re.search(r"(?<!-)color:(?!inherit)", html)  # text has the page's own colour, dark or light


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("volume", ["64 x 64 x 64", "-1, -1, -1 to 1, 1, 1", "0.03175 world unit"]),
        ("sparse", ["of 512"]),
        ("nested", ["8 x 8 x 8 in each of 2 nested boxes"]),
        ("scan", ["8 x 9 x 10", "HU", "mm", "LAS in RAS", "int16", "k = 5: L right, A up", "i = 4: P right, S up"]),
        ("views", ["12 RGBA of 64 x 48", "-4", "12"]),
        ("camera", ["0, -4, 1 world units", "64 x 48 pixels", "40.1"]),
        ("fitter", ["75 of 600", "13.00 dB"]),
        ("fit", ["12.3"]),
        ("evaluation", ["20", "40", "PSNR [dB]"]),
        ("table", ["0 to 4000", "64"]),
        ("rendering", ["nothing is met"]),
    ],
)
def test_a_card_says_shape_box_and_units(name, said):
    html = VALUES[name]._repr_html_()
    assert [text for text in said if text not in html] == []


def test_a_body_is_shown_as_radiologists_look_at_it_however_its_array_lies():
    """The patient's left is on the right, what is in front, or the head, above: the same pictures of the same body."""
    body = np.random.default_rng(0).integers(0, 99, (7, 9, 11), np.uint8)  # towards right, front and head
    seen = set()
    for order in permutations(range(3)):
        for signs in ([-1, 1, 1], [1, 1, 1], [1, -1, -1]):
            placed = np.eye(4)
            placed[:3, :3] = np.diag(signs)[:, order]
            values = body[tuple(slice(None, None, sign) for sign in signs)].transpose(order)
            scan = rm.ScalarVolume(np.ascontiguousarray(values), placed, world="RAS")
            seen.add(tuple(sorted(re.sub("[ijk] = (?=[0-9])", "", one) for one in middle_slices(scan))))
    assert len(seen) == 1
    words = {re.search("([RLAPSI]) right, ([RLAPSI]) up", one).groups() for one in seen.pop()}
    assert words == {("L", "A"), ("L", "S"), ("P", "S")}


@pytest.mark.parametrize("kind", [rm.Volume, rm.ScalarVolume, rm.Views, rm.Camera, rm.Fitter, rm.TransferFunction])
def test_what_cannot_be_shown_breaks_no_cell(kind):
    """A notebook falls back to the text; of a value that is half made there may be none either."""
    assert object.__new__(kind)._repr_html_() is None


def test_any_error_of_a_card_is_kept_from_the_cell():
    def card_of(value):
        raise MemoryError

    assert html_of(card_of, 5) is None


def test_a_card_is_made_on_any_thread():
    made = []
    thread = threading.Thread(target=lambda: made.extend([BALL._repr_html_(), fitter()._repr_html_()]))
    thread.start()
    thread.join()
    assert made[0] == BALL._repr_html_() and made[1]


def test_a_card_starts_no_taichi():
    code = "import sys, numpy as np, raymarch as rm\nv = rm.Volume.from_array(np.ones((4, 4, 4)))\n"
    code += "assert 'img' in v._repr_html_()\nassert not {'taichi', 'matplotlib', 'h5py'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_text_is_escaped_and_long_text_is_cut():
    html = card_html(BAD, [(BAD, BAD), ("long", "x" * 5000), ("none", None)])
    assert "<script>" not in html and html.count("&lt;script&gt;") == 3
    assert len(html) < 3000 and "none" not in html


def orthographic(volume, eye, side):
    """A camera of the thumbnail's picture."""
    centre = volume.corners.mean(0)
    at = centre + 10 * np.asarray(eye) / np.linalg.norm(eye)
    half = 1.02 * abs((volume.corners - centre) @ rm.Camera.look_at(at, centre).world_from_camera[:3, :2]).max()
    return rm.Camera.orthographic(at, centre, size=2 * half, width=side, height=side)


def test_a_thumbnail_is_what_a_camera_of_parallel_rays_sees():
    """Of a smooth volume, whose nearest samples are those between them but for a few hundredths."""
    egg = rm.Volume.from_function(
        lambda p: 6 * np.exp(-4 * ((p * [1, 1.4, 2] - [0.3, 0, 0.1]) ** 2).sum(-1)),
        lambda p: 0.5 + 0.4 * p,
        shape=(48,) * 3,
    )
    turned = egg.moved(np.array([[0, -1, 0, 3], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    for volume in (egg, turned):
        seen = thumbnails.volume_thumbnail(volume, side=10).reshape(-1, 3)
        rays = orthographic(volume, thumbnails.VIEW_DIRECTION, 10).rays()
        exact = reference.march(volume, rays, 2 * volume.voxel, volume.background)[:, :3]
        np.testing.assert_allclose(seen, exact, atol=0.08)
        assert abs(seen - exact).mean() < 0.01


def test_maxima_along_rays_are_those_of_the_brightest_voxel():
    values = np.zeros((40, 40, 40))
    values[30, 8, 22] = 1.0
    affine = np.diag([0.5, 0.5, 0.5, 1])
    grey = thumbnails.projection_thumbnail(values, affine)
    volume = rm.ScalarVolume(values, affine).as_volume()
    camera = orthographic(volume, thumbnails.VIEW_DIRECTION, thumbnails.THUMBNAIL_SIDE)
    u, v = camera.project(np.array([[15.0, 4.0, 11.0]]))[0][0]
    where = np.argwhere(thumbnails.maxima(values, affine, thumbnails.VIEW_DIRECTION, thumbnails.THUMBNAIL_SIDE) == 1)
    assert grey.shape == (thumbnails.THUMBNAIL_SIDE,) * 2
    np.testing.assert_allclose(where.mean(0) + 0.5, (v, u), atol=1.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_values_that_are_stored_the_other_way_round_are_pictured_as_they_are(dtype):
    stored = np.random.default_rng(3).integers(0, 200, (8, 9, 10)).astype(dtype)
    scans = rm.ScalarVolume(stored, slope=-1.0), rm.ScalarVolume(-stored.astype(float))
    one, other = (Reading(scan._repr_html_()).addresses for scan in scans)
    assert one == other and len(one) == 4


def test_a_large_volume_costs_no_more_than_a_small_one():
    """Every few samples are looked at: no array of all is made."""
    large = object.__new__(Dense)  # which would look through all numbers
    values, colours = (np.broadcast_to(np.float32(0.5), (600, 600, 600, *rest)) for rest in ((), (27,)))
    vars(large).update(values=values, colours=colours)
    density, features, strides = thumbnails.thin_samples(large, (600, 600, 600), 0.0)
    assert (
        max(density.shape) <= thumbnails.MAX_SIDE_SAMPLES
        and features.shape == (*density.shape, 3)
        and (strides == 7).all()
    )
