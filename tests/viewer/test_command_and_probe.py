"""Laws: the command that a page copies makes the page's picture, the same bytes but for the mark of `render`;
the value under the pointer is what is seen there."""

from __future__ import annotations

import json
import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from wires import unmarked

import raymarch as rm
from raymarch.cli import main
from raymarch.errors import RaymarchError
from raymarch.rendering.default_look import default_look
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.shell_command import knots_of
from raymarch.viewer.pictures.viewer_camera import camera_of_message

RADIUS = 0.7


def values(points):
    """A cone of values in a ball: 100 in its middle, 0 at its border."""
    return np.maximum(100 * (1 - np.linalg.norm(points, axis=-1) / RADIUS), 0)


def scan(**how):
    n = 24
    place = np.stack(np.meshgrid(*[np.linspace(-1, 1, n)] * 3, indexing="ij"), -1)
    affine = np.diag([2 / (n - 1)] * 3 + [1.0])
    affine[:3, 3] = -1
    return rm.ScalarVolume(values(place).astype(np.float32), affine, unit="HU", **how)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with a scan and a volume of colours, whose name has to be quoted."""
    made = tmp_path_factory.mktemp("volumes")
    rm.save(scan(), made / "a scan.h5")
    fog = rm.Volume.from_function(lambda p: 3.0 * (np.linalg.norm(p, axis=-1) < RADIUS), shape=(12, 12, 12))
    rm.save(fog, made / "fog's.h5")
    return made


@pytest.fixture(scope="module")
def makers(folder):
    made = {}
    for name in ("a scan.h5", "fog's.h5"):
        made[name] = FrameMaker(rm.load(folder / name), name=name)
        made[name].file = str(folder / name)
    yield made
    for each in made.values():
        each.close()


def run(words):
    """Exit code of a command line."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


EYE = {
    "id": 1, "position": [2.125, -3.1, 1.7], "target": [0.1, 0, -0.05], "up": [0.1, 0, 1], "fov": 38.7,
    "width": 48, "height": 36,
}  # fmt: skip
TABLE = rm.TransferFunction([0, 30.5, 100], [(0, 0, 0), (1, 0.3, 0.1), (1, 1, 0.9)], [0, 0.02, 0.6], 0.13).record()
SCAN, FOG = "a scan.h5", "fog's.h5"
STATES = {
    "as it begins": (SCAN, {}, {}),
    "on its own ground": (SCAN, {"background": None}, {}),
    "an edited table": (SCAN, {"mode": "transfer", "table": TABLE}, {}),
    "a table that is lit": (SCAN, {"mode": "transfer", "table": TABLE, "shading": True}, {}),
    "a table without light": (SCAN, {"mode": "transfer", "table": TABLE, "shading": False}, {}),
    "the first table without light": (SCAN, {"shading": False}, {}),
    "a clipped table": (SCAN, {"table": TABLE, "clip": {"lower": [-1, -0.9, -0.2], "upper": [0.3, 1, 1]}}, {}),
    "a surface": (SCAN, {"mode": "isosurface", "iso": 37.25, "shading": True}, {}),
    "a maximum in its window": (SCAN, {"mode": "maximum", "window": [10, 77.5]}, {}),
    "a maximum as it comes": (SCAN, {"mode": "maximum"}, {}),
    "an average of parallel rays": (SCAN, {"mode": "average"}, {"orthographic": True}),
    "an x-ray without steps": (SCAN, {"mode": "x-ray-exact"}, {}),
    "upside down": (SCAN, {"table": TABLE}, {"up": [0, 0, -1]}),
    "another step and background": (SCAN, {"table": TABLE, "step": 1.5, "background": [0.2, 0.4, 0.25]}, {}),
    "fog": (FOG, {}, {}),
    "fog, parallel": (FOG, {"step": 0.25}, {"orthographic": True, "fov": 55}),
    "fog, additive and clipped": (FOG, {"mode": "additive", "clip": {"lower": [-1, -1, -1], "upper": [1, 0, 1]}}, {}),
    "fog through a table": (FOG, {"mode": "transfer", "table": TABLE}, {}),
}


@pytest.mark.parametrize("name", STATES)
def test_the_command_of_a_view_makes_its_picture(makers, name, tmp_path, monkeypatch):
    volume, said, seen = STATES[name]
    maker = makers[volume]
    look, eye = maker.changed(maker.look(), said), camera_of_message({**EYE, **seen})
    picture = maker.picture(eye, look)
    text, notes = maker.command(eye, look)
    assert notes == [] and "\n" not in text
    words = shlex.split(text)
    assert words[:2] == ["raymarch", "render"]
    monkeypatch.chdir(tmp_path)
    assert run(words[1:]) == 0
    assert unmarked(Path("picture/0000.png").read_bytes()) == picture


@pytest.mark.parametrize(
    ("fitted", "asked", "said"), [(None, 2, "2"), (2, None, None), (2, 1, "1"), (None, None, None)]
)
def test_the_command_says_rays_a_pixel_where_the_volume_does_not(fitted, asked, said):
    volume = rm.Volume.from_function(lambda p: 3.0 * (np.linalg.norm(p, axis=-1) < RADIUS), shape=(6, 6, 6))
    volume = replace(volume, provenance={} if fitted is None else {"supersample": fitted})
    begin = default_look(volume)
    if asked is not None:
        begin = replace(begin, march=replace(begin.march, supersample=asked))
    with closing(FrameMaker(volume, name="v.h5", begin=begin)) as maker:
        words = shlex.split(maker.command(camera_of_message(EYE), maker.look())[0])
    assert (words[words.index("--supersample") + 1] if "--supersample" in words else None) == said


def test_the_command_of_a_slice_draws_it(makers, tmp_path, monkeypatch):
    maker = makers[SCAN]
    look = maker.changed(maker.look(), {"slice": {"axis": 1, "position": 0.25}, "window": [-5, 80]})
    text, notes = maker.command(camera_of_message(EYE), look)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(text)
    assert run(words[1:]) == 0 and Path("slices.png").exists()
    assert words[words.index("--at") + 1].split(",")[1] == "0.25" and len(notes) == 1


LEFT_OUT = {
    "exposure": ({"exposure": 1.0}, "exposure"),
    "normals": ({"mode": "isosurface", "shading": True, "extras": "normals"}, "normals"),
    "a surface without light": ({"mode": "isosurface", "shading": False}, "lights a surface"),
    "depth": ({"mode": "isosurface", "shading": True, "extras": "depth"}, "_depth.png"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_command_cannot_say_is_said(makers, name, tmp_path, monkeypatch):
    said, word = LEFT_OUT[name]
    maker = makers[SCAN]
    text, notes = maker.command(camera_of_message(EYE), maker.changed(maker.look(), said))
    assert len(notes) == 1 and word in notes[0]
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(text)[1:]) == 0
    assert Path("picture/0000_depth.png").exists() == ("_depth.png" in word)


def test_a_volume_without_a_file_is_to_be_saved_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with FrameMaker(scan()) as maker:
        text, notes = maker.command(camera_of_message(EYE), maker.look())
    name = shlex.split(text)[2]
    assert f"rm.save(volume, '{name}')" in notes[0]
    rm.save(scan(), name)
    assert run(shlex.split(text)[1:]) == 0


WRONG_KNOTS = ["a:b@1", "0:0:0:0:0@1", "0:0:0:0:0,1:1:1:1@2", "0:0:0:0:0,1:1:1:1:1@x", "1:0:0:0:0,0:1:1:1:1@1", "x:y,@"]


@pytest.mark.parametrize("table", WRONG_KNOTS)
def test_knots_that_are_none_are_wrong_usage_in_a_line(folder, tmp_path, table, capsys):
    words = [
        "render",
        str(folder / SCAN),
        "--orbit",
        "1",
        "--size",
        "8",
        "--out",
        str(tmp_path / "o"),
        "--table",
        table,
    ]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said and ("--table" in said or "values" in said)


def test_knots_are_the_table_again():
    table = rm.TransferFunction.of_record(TABLE)
    from raymarch.cli.modes import _knots

    again = _knots(knots_of(table))
    assert all(np.array_equal(one, vars(again)[key]) for key, one in vars(table).items())


USAGE = [
    (["--target", "0,0,0", "--orbit", "1"], "--target is for --position"),
    (["--fov", "30", "--orbit", "1"], "--fov is for --position"),
    (["--position", "1,2,3", "--orbit", "1"], "one of them"),
    (["--position", "1,2"], "want 3 numbers"),
    (["--position", "1,2,3", "--fov", "180"], "want a number from"),
]


@pytest.mark.parametrize(("words", "said"), USAGE)
def test_options_that_do_not_go_together_are_said(folder, tmp_path, words, said, capsys):
    assert run(["render", str(folder / SCAN), "--out", str(tmp_path / "o"), *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def probed(maker, x, y, look=None, **seen):
    eye = camera_of_message({**EYE, **seen})
    look = maker.changed(maker.look(), look or {})
    answer = maker.probe(eye, look, {"type": "probe", "id": 5, "x": x, "y": y})
    json.dumps(answer, allow_nan=False)
    assert answer["type"] == "probe" and answer["id"] == 5
    return answer


THROUGH = {"position": [0.0, -3.0, 0.0], "target": [0, 0, 0], "up": [0, 0, 1], "fov": 40, "width": 101, "height": 101}
WORTH = {
    "maximum": ("maximum", 100 * (1 - np.sqrt(3) / 23 / RADIUS), 6),
    "isosurface": ("surface", 50.0, 1e-6),
    "average": ("average", 50 * RADIUS, 2),
    "x-ray": ("integral", 100 * RADIUS, 3),
}


@pytest.mark.parametrize("mode", WORTH)
def test_the_value_in_the_middle_is_what_a_mode_shows_of_it(makers, mode):
    what, value, most = WORTH[mode]
    found = probed(makers[SCAN], 50, 50, {"mode": mode, "iso": 50.0}, **THROUGH)
    assert found["what"] == what and found["unit"] == "HU" and found["value"] == pytest.approx(value, abs=most)
    if mode == "isosurface":
        assert found["depth"] == pytest.approx(3 - RADIUS / 2, abs=0.03)
        assert found["point"] == pytest.approx([0, -RADIUS / 2, 0], abs=0.03)


def test_half_of_what_a_dense_table_shows_lies_at_its_first_hit(makers):
    hard = rm.TransferFunction([29, 31], [(1, 1, 1), (1, 1, 1)], [0, 0.999], 0.01).record()
    found = probed(makers[SCAN], 50, 50, {"mode": "transfer", "table": hard}, **THROUGH)
    assert found["what"] == "value" and found["value"] == pytest.approx(30, abs=4)
    assert found["depth"] == pytest.approx(3 - 0.7 * RADIUS, abs=0.05)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_value_of_a_slice_is_the_volume_s_at_its_point(makers, axis):
    maker = makers[SCAN]
    for x, y in ((25, 18.5), (20, 9), (31.5, 30)):
        found = probed(maker, x, y, {"slice": {"axis": axis, "position": 0.2}})
        assert found["point"][axis] == 0.2
        assert found["value"] == pytest.approx(values(np.array(found["point"])), abs=4)
    assert probed(maker, 0, 0, {"slice": {"axis": axis, "position": 0.2}})["value"] is None


def test_what_is_clipped_away_is_not_met(makers):
    maker, half = makers[SCAN], {"lower": [-1, 0, -1], "upper": [1, 1, 1]}
    found = probed(maker, 50, 50, {"mode": "isosurface", "iso": 20.0, "clip": half}, **THROUGH)
    assert found["depth"] == pytest.approx(3.0, abs=0.01)
    gone = {"lower": [0.9, 0.9, 0.9], "upper": [1, 1, 1]}
    assert probed(maker, 50, 50, {"mode": "isosurface", "iso": 20.0, "clip": gone}, **THROUGH)["value"] is None


@pytest.mark.parametrize("orthographic", [False, True])
def test_beside_the_volume_nothing_is_met(makers, orthographic):
    for maker in makers.values():
        assert probed(maker, 0, 0, orthographic=orthographic)["value"] is None
        assert probed(maker, 24, 18, orthographic=orthographic)["value"] is not None
    assert probed(makers[FOG], 24, 18)["what"] == "extinction"


@pytest.mark.parametrize(
    "message", [{}, {"x": -1, "y": 0}, {"x": "a", "y": 0}, {"x": 1e9, "y": 0}, {"x": 1, "y": None}]
)
def test_a_place_that_is_none_is_refused(makers, message):
    maker = makers[SCAN]
    with pytest.raises(RaymarchError, match="probe: [xy] "):
        maker.probe(camera_of_message(EYE), maker.look(), message)
    with pytest.raises(RaymarchError, match="look at something first"):
        maker.probe(None, maker.look(), {"x": 1, "y": 1})
