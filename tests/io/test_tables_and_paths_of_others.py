"""Law of what other programs leave: tables saved again, camera paths of viewers, outputs in place of inputs."""

from __future__ import annotations

import json

import layouts
import numpy as np
import pytest
from layouts import alike, known

import raymarch as rm

TABLES = {
    "semicolons": lambda text: text.replace(",", ";").encode(),
    "decimal commas": lambda text: text.replace(",", ";").replace(".", ",").encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "capitals": lambda text: text.upper().encode(),
    "tabs": lambda text: text.replace(",", "\t").encode(),
}


@pytest.mark.parametrize("how", TABLES)
def test_a_table_that_was_saved_again_is_told_and_the_cure_works(how, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    layouts.realitycapture(folder, alike(known()))
    right = (folder / "cameras.csv").read_text()
    (folder / "cameras.csv").write_bytes(TABLES[how](right))
    with pytest.raises(rm.RaymarchError, match="a table of RealityCapture that another program saved.*commas between"):
        rm.load_views(folder, "all")
    (folder / "cameras.csv").write_text(right)
    assert len(rm.load_views(folder, "all")) == 9


def test_two_tables_and_an_empty_one_are_told(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    layouts.realitycapture(folder, alike(known()))
    (folder / "empty.csv").write_text("")
    assert len(rm.load_views(folder, "all")) == 9
    (folder / "again.csv").write_text((folder / "cameras.csv").read_text())
    with pytest.raises(rm.RaymarchError, match="leave one such table there"):
        rm.load_views(folder, "all")
    (folder / "again.csv").unlink()
    assert len(rm.load_views(folder, "all")) == 9


LEFT = {
    "ODM": (("opensfm/reconstruction.json", "images/a.jpg"), "OpenSfM or ODM.*raymarch cameras"),
    "Bundler": (("bundle/bundle.rd.out", "images/a.jpg"), "Bundler.*raymarch cameras"),
    "splatting": (("cameras.json", "point_cloud/x.ply", "input/a.jpg"), "Gaussian splatting.*source_path"),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_others_leave_is_told_by_its_name(what, tmp_path):
    files, said = LEFT[what]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"[]")
    with pytest.raises(rm.RaymarchError, match=said):
        rm.load_views(tmp_path)


POSES = [rm.Camera.look_at((4 * np.cos(a), 4 * np.sin(a), 1)).world_from_camera for a in (0.0, 1.0, 2.0)]


@pytest.mark.parametrize("name", ["rotation", "wxyz"])
def test_keys_with_a_rotation_are_told_and_the_cure_works(name, tmp_path):
    file = tmp_path / "cameras.json"
    keys = []
    for pose in POSES:
        turned = pose[:3, :3] * (1, -1, -1)  # right, down, ahead
        turn = turned.tolist() if name == "rotation" else layouts.quaternion(turned)
        keys.append({"position": pose[:3, 3].tolist(), name: turn, "fx": 50, "fov": 40})
    file.write_text(json.dumps(keys))
    with pytest.raises(rm.RaymarchError, match=r"target = position \+ R\[:, 2\], up = -R\[:, 1\] and fov"):
        rm.load_camera_path(file)
    for key, pose in zip(keys, POSES, strict=True):
        R = pose[:3, :3] * (1, -1, -1)
        key["target"], key["up"] = (np.array(key["position"]) + R[:, 2]).tolist(), (-R[:, 1]).tolist()
    file.write_text(json.dumps(keys))
    path = rm.load_camera_path(file)
    for camera, pose in ((path[0], POSES[0]), (path[-1], POSES[-1])):
        np.testing.assert_allclose(camera.world_from_camera, pose, atol=1e-9)


def test_poses_as_an_array_are_no_path(tmp_path):
    np.save(tmp_path / "poses.npy", np.stack(POSES))
    with pytest.raises(rm.RaymarchError, match="is a binary file, want a JSON text; name the JSON file"):
        rm.load_camera_path(tmp_path / "poses.npy")
