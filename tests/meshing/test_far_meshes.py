"""Law: meshes far from the origin keep their shape in every format, and what was moved says by how much."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.cli import main
from raymarch.io.meshes.mesh_file import offset_of

pytestmark = pytest.mark.extra
trimesh = require_extra("trimesh", "formats")
require_extra("skimage", "formats")

TURN = np.array([(0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6)])
PLACES = {  # spacing, origin, turn
    "UTM in metres": ((0.05, 0.05, 0.05), (500000, 5400000, 300), np.eye(3)),
    "turned, in millimetres": ((0.3, 0.2, 0.25), (-7.25e6, 3.1e6, -9.9e5), TURN),
    "degrees": ((1e-6, 1e-6, 2e-6), (139.7, 35.6, 0), np.eye(3)),
    "one axis": ((0.01, 0.01, 0.01), (0, 0, 6378137.0), np.eye(3)),
    "nearly at the end of the world": ((10.0, 8.0, 12.0), (-9e8, 8e8, 1e8), np.eye(3)),
    "at the origin": ((0.05, 0.05, 0.05), (-1, 0, 0.5), np.eye(3)),
}


def ball(place):
    steps, origin, turn = PLACES[place]
    x = np.stack(np.meshgrid(*[np.arange(k) for k in (20, 18, 16)], indexing="ij"), -1)
    values = 100.0 - 10 * np.linalg.norm((x - [9, 9, 7]) * [0.8, 1, 1.2], axis=-1)
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = turn * steps, origin
    return rm.ScalarVolume(values.astype(np.float32), affine)


@pytest.mark.parametrize("kind", ["ply", "obj", "glb", "stl"])
@pytest.mark.parametrize("place", PLACES)
def test_a_mesh_keeps_its_shape_and_place(place, kind, tmp_path):
    mesh = rm.isosurface_mesh(ball(place), 45.0)
    offset = rm.write_mesh(mesh, tmp_path / f"m.{kind}")
    read = trimesh.load(tmp_path / f"m.{kind}", force="mesh")
    voxel = min(PLACES[place][0])
    assert read.is_watertight and len(read.faces) == len(mesh.faces)
    assert read.volume == pytest.approx(mesh.volume, rel=1e-5)
    assert read.area_faces.min() > 0.9 * min(trimesh.Trimesh(mesh.vertices, mesh.faces).area_faces.min(), 1e-9 * voxel)
    np.testing.assert_allclose(read.bounds + offset, mesh.box, rtol=0, atol=1e-4 * voxel)
    assert offset.any() == (kind == "stl" and place != "at the origin")


@pytest.mark.parametrize("kind", ["ply", "glb"])
@pytest.mark.parametrize("place", PLACES)
def test_points_stay_apart(place, kind, tmp_path):
    cloud = rm.export_mesh(ball(place), tmp_path / f"p.{kind}", 45.0, points=500)
    read = trimesh.load(tmp_path / f"p.{kind}")
    points = np.concatenate([np.asarray(g.vertices) for g in read.dump()]) if kind == "glb" else read.vertices
    np.testing.assert_allclose(points, cloud.vertices, rtol=0, atol=1e-4 * min(PLACES[place][0]))


def test_near_the_origin_files_are_as_small_as_before(tmp_path):
    rm.export_mesh(ball("at the origin"), tmp_path / "m.ply", 45.0)
    assert b"property float x" in (tmp_path / "m.ply").read_bytes()[:300]
    rm.export_mesh(ball("at the origin"), tmp_path / "m.glb", 45.0)
    content = (tmp_path / "m.glb").read_bytes()
    tree = json.loads(content[20 : 20 + struct.unpack("<I", content[12:16])[0]])
    assert not any("translation" in node for node in tree["nodes"])


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_shell_and_the_file_say_the_offset(tmp_path, capsys):
    rm.save(ball("UTM in metres"), tmp_path / "v.h5")
    told = "export", tmp_path / "v.h5", tmp_path / "m.stl", "--iso", 45
    out = run(capsys, *told)
    offset = offset_of(rm.isosurface_mesh(ball("UTM in metres"), 45.0)).tolist()
    assert f"add {','.join(map(repr, offset))} for the world's coordinates" in out
    head = (tmp_path / "m.stl").read_bytes()[:80].decode()
    assert [float(x) for x in head.split("add ")[1].split()] == offset
    assert json.loads(run(capsys, *told, "--json"))["offset"] == offset
