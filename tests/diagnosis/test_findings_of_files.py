"""Law: `raymarch doctor` prints what it finds, of sets that cannot be read too, and nothing else on stdout."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from painted_room import ball, room
from PIL import Image

import raymarch as rm
from raymarch.cli import cli
from raymarch.cli.doctor import _planned_fit, _print
from raymarch.cli.fit import preset_of
from raymarch.diagnosis.diagnose import examine
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.read_set import read_set
from raymarch.fitting.plan.bounds import box_of_scene
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import preset_of_views
from raymarch.geometry.pose import exp_rigid
from raymarch.plot.images import picture
from raymarch.views.identity import record_of

VIEWS = room(6)
FLIP = np.diag([1.0, -1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The room as an image set, its poses those of OpenCV."""
    place = tmp_path_factory.mktemp("sets") / "room"
    (place / "train").mkdir(parents=True)
    frames = []
    for i, camera in enumerate(VIEWS.cameras):
        Image.fromarray(VIEWS.image(i)).save(place / "train" / f"{i}.png")
        frames.append({"file_path": f"train/{i}", "transform_matrix": (camera.world_from_camera @ FLIP).tolist()})
    document = {"fl_x": VIEWS.cameras[0].focal[0], "frames": frames}
    (place / "transforms_train.json").write_text(json.dumps(document))
    return place


def doctor(*words):
    return cli.main(["doctor", *map(str, words)], standalone_mode=False)


def test_the_findings_are_one_line_of_json(folder, capsys):
    assert doctor(folder, "--json") == 1  # as one of them is an error
    (line,) = capsys.readouterr().out.splitlines()
    (found,) = json.loads(line)["findings"]
    assert set(found) == {"code", "severity", "message", "cure"} and found["code"] == "opencv-poses"


def test_the_findings_are_words_each_with_its_cure(folder, capsys):
    doctor(folder)
    fault, cure = capsys.readouterr().out.splitlines()
    assert fault.startswith("error    opencv-poses: ") and cure.strip().startswith("negate columns 1 and 2")


def test_a_refined_fit_is_looked_at_by_the_cameras_that_it_found(folder, tmp_path, monkeypatch, capsys):
    """Fitted views from where they were found, all with the lens that was found; what is no pose moves nothing. Views
    that are held out keep their poses, and so tell no gap where the fitted ones moved."""
    place = shutil.copytree(folder, tmp_path / "refined")
    shutil.copy(place / "transforms_train.json", place / "transforms_test.json")
    given, step = rm.load_views(place, "train"), exp_rigid([0.1, 0, 0.2, 0, 0.1, 0])
    found = [(name, camera.world_from_camera @ step) for name, camera in zip(given.names, given.cameras, strict=True)]
    poses = [[name, *pose[:3].ravel().tolist()] for name, pose in found[:4]]
    poses += [[found[4][0], *[2.0] * 12], [found[5][0], 1.0], ["another", *[0.0] * 12], 7, [], [None, "x"]]
    told = {"views": record_of(given), "refined": {"poses": poses, "shared": {"focal": [np.log(1.1)] * 2}}}
    rm.save(replace(rm.Volume.from_array(np.ones((4, 4, 4))), provenance=told), tmp_path / "v.h5")
    seen = []
    monkeypatch.setattr("raymarch.diagnosis.diagnose_fit.diagnose_fit", lambda _, *sets: seen.extend(sets) or ())
    monkeypatch.setattr("raymarch.diagnosis.diagnose.examine", lambda *_: SimpleNamespace(findings=()))
    doctor(place, "--volume", tmp_path / "v.h5", "--json")
    train, test = seen
    assert test is None
    for i, (before, after) in enumerate(zip(given.cameras, train.cameras, strict=True)):
        wanted = before.world_from_camera @ (step if i < 4 else np.eye(4))
        np.testing.assert_allclose(after.world_from_camera, wanted, atol=1e-12)
        np.testing.assert_allclose(after.focal, 1.1 * np.array(before.focal))
    said = capsys.readouterr()
    assert said.err.count("as the fit refined them") == 1 and "held-out views keep theirs" in said.out
    del told["refined"]["poses"]
    rm.save(replace(rm.Volume.from_array(np.ones((4, 4, 4))), provenance=told), tmp_path / "w.h5")
    doctor(place, "--volume", tmp_path / "w.h5", "--json")
    for before, after, held in zip(given.cameras, *(views.cameras for views in seen[2:]), strict=True):
        np.testing.assert_array_equal(held.world_from_camera, before.world_from_camera)
        np.testing.assert_allclose([after.focal, held.focal], 1.1 * np.array([before.focal] * 2))


@pytest.mark.parametrize("refined", [[7], 7, {"poses": 7}, {"poses": [], "shared": 7}])
def test_what_is_no_record_of_a_refinement_moves_no_camera(refined, folder, tmp_path, monkeypatch):
    place = shutil.copytree(folder, tmp_path / "set")
    shutil.copy(place / "transforms_train.json", place / "transforms_test.json")
    given = rm.load_views(place, "train")
    told = {"views": record_of(given), "refined": refined}
    rm.save(replace(rm.Volume.from_array(np.ones((4, 4, 4))), provenance=told), tmp_path / "v.h5")
    seen = []
    monkeypatch.setattr("raymarch.diagnosis.diagnose_fit.diagnose_fit", lambda _, *sets: seen.extend(sets) or ())
    monkeypatch.setattr("raymarch.diagnosis.diagnose.examine", lambda *_: SimpleNamespace(findings=()))
    doctor(place, "--volume", tmp_path / "v.h5", "--json")
    for before, *after in zip(given.cameras, *(views.cameras for views in seen), strict=True):
        assert len(after) == 2
        for camera in after:
            np.testing.assert_array_equal(camera.world_from_camera, before.world_from_camera)


@pytest.mark.parametrize(("severity", "last"), [("note", "no error or warning"), ("warning", " cure")])
def test_where_there_are_but_notes_it_is_said(severity, last, capsys):
    _print([Finding("reading", severity, "words", "cure")], as_json=False)
    assert capsys.readouterr().out.splitlines()[-1].endswith(last)


@pytest.mark.parametrize("own", [None, [(-9, -9, -9), (9, 9, 9)]])
def test_preset_and_box_are_those_of_a_fit(own):
    views, box = replace(VIEWS, box=own), np.array([(0, 0, 0), (1, 1, 1)])
    preset, taken, looked_at = _planned_fit(views, None)  # photographs of a room, the cameras in the box if any
    np.testing.assert_array_equal(taken, box_of_scene(Survey(views)))
    assert preset == preset_of_views(views) == "photos" and looked_at.box is None
    preset, taken, _ = _planned_fit(views, box)
    assert preset == preset_of_views(views, box) == "default" and taken is box
    assert _planned_fit(ball(4), None)[:2] == ("default", None)


@pytest.mark.parametrize(
    ("views", "box", "name", "note"),
    [
        (VIEWS, None, "photos", "--preset photos is taken"),
        (VIEWS, [(0, 0, 0), (1, 1, 1)], "default", "--preset photos --set boxes=6"),
        (ball(4), None, "default", ""),
        (ball(4), [(0, 0, 0), (1, 1, 1)], "default", ""),
    ],
)
def test_which_preset_a_fit_takes_is_said_where_another_could_be_meant(views, box, name, note, capsys):
    assert preset_of(views, box) == name
    said = capsys.readouterr().err
    assert note in said if note else not said


def test_a_box_outside_of_which_cameras_are_is_that_of_a_fit():
    views = replace(VIEWS, box=[(0, 0, 0), (1, 1, 1)])
    preset, taken, looked_at = _planned_fit(views, None)
    assert preset == "default" and taken is views.box is looked_at.box


def test_a_picture_is_written_once(folder, tmp_path, capsys):
    doctor(folder, "--plot", tmp_path / "room.png", "--json")
    with Image.open(tmp_path / "room.png") as picture:
        assert min(picture.size) > 600
    (tmp_path / "mine.png").write_bytes(b"not raymarch's")
    with pytest.raises(Exception, match="would be lost"):
        doctor(folder, "--plot", tmp_path / "mine.png")


def test_a_set_without_points_is_drawn():
    ring = rm.orbit((0, 0, 0), 4.0, 6, like=rm.Camera.look_at((4, 0, 0), width=8, height=6))
    views = rm.Views(ring, np.random.default_rng(0).integers(0, 256, (6, 6, 8, 3), dtype=np.uint8))
    assert np.ptp(picture(views, None, examine(views, None).points)) == 255


@pytest.mark.parametrize(("missing", "severity"), [(1, "note"), (3, "warning")])
def test_missing_files_are_found(folder, tmp_path, missing, severity):
    place = shutil.copytree(folder, tmp_path / "half")
    for i in range(missing):
        (place / "train" / f"{i}.png").unlink()
    views, (found,) = read_set(place, None)
    assert len(views) == 6 - missing
    assert (found.code, found.severity) == ("missing-files", severity) and f"{missing} of 6" in found.message


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_bad_images_are_each_a_finding_and_the_rest_is_read(folder, tmp_path, suffix):
    place = shutil.copytree(folder, tmp_path / "bad")
    size = dict(zip(("w", "h"), VIEWS.sizes[0], strict=True))
    frames = json.loads((place / "transforms_train.json").read_text())
    (place / "transforms_train.json").write_text(json.dumps(frames | size))
    for i in range(6):
        (place / "train" / f"{i}.png").unlink()
        Image.fromarray(VIEWS.image(i)).save(place / "train" / f"{i}.{suffix}")
    whole = (place / "train" / f"2.{suffix}").read_bytes()
    (place / "train" / f"2.{suffix}").write_bytes(whole[: len(whole) // 2])
    (place / "train" / f"3.{suffix}").write_bytes(b"")
    Image.fromarray(VIEWS.image(4)[:, :50]).save(place / "train" / f"4.{suffix}")
    views, found = read_set(place, None)
    assert [int(name[-1]) for name in views.names] == [0, 1, 5]
    assert [each.code for each in found] == ["unreadable"] * 3 and [f"{i}" in found[i - 2].message for i in (2, 3, 4)]
    with pytest.raises(rm.RaymarchError, match=r"[234]\."):  # a fit does not go on without them
        rm.load_views(place)
    for i in range(6):
        (place / "train" / f"{i}.{suffix}").write_bytes(b"nothing")
    assert read_set(place, None)[0] is None
    Image.fromarray(VIEWS.image(4)[:, :50]).save(place / "train" / f"4.{suffix}")
    assert read_set(place, None)[0] is None


def test_a_set_that_cannot_be_read_is_a_finding(folder, tmp_path, capsys):
    place = shutil.copytree(folder, tmp_path / "broken")
    (place / "transforms_train.json").write_text('{"frames": []}')
    assert doctor(place, "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["code"] == "unreadable" and found["severity"] == "error" and "frames" in found["message"]
