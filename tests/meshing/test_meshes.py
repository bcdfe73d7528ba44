"""Laws of meshes: closed, outward, within half a voxel of the surface, of the colours seen, the same in every file."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import cases
import numpy as np
import pytest
import reference
from skips import require_extra

import raymarch as rm
from raymarch.cli import main
from raymarch.volumes.harmonics import basis
from raymarch.volumes.surface_value import otsu
from raymarch.volumes.volume import seen_colours

trimesh = require_extra("trimesh", "formats")
require_extra("skimage", "formats")
pytestmark = pytest.mark.extra

RADIUS, ISO = 0.6, 10.0
CENTRE = np.array([0.05, -0.02, 0.03])
AFFINES = {
    "anisotropic": cases.motion(shift=(-1, -1, -1)) @ np.diag([2 / 29, 2 / 19, 2 / 39, 1]),
    "mirrored": cases.motion(shift=(1, -1, -1)) @ np.diag([-2 / 29, 2 / 19, 2 / 39, 1]),
    "sheared": np.array([[0.08, 0.02, 0, -1.3], [0, 0.11, 0.01, -1.2], [0.01, 0, 0.055, -1.2], [0, 0, 0, 1]]),
}
KINDS = ("ply", "obj", "glb", "stl")


def places(affine, shape):
    """World positions (x, y, z, 3) of samples."""
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    return index @ affine[:3, :3].T + affine[:3, 3]


def ball(name="anisotropic", radius=RADIUS, centre=CENTRE, shape=(30, 20, 40)):
    """Linear across its surface, so that marching cubes are nearly exact, coloured by the place."""
    points = places(AFFINES[name], shape) - centre
    away = np.linalg.norm(points, axis=-1)
    density = np.clip(ISO + 60 * (radius - away), -40, 40)
    colour = 0.5 + 0.4 * points / np.maximum(away, 1e-9)[..., None]
    features = (colour - 0.5) / basis(0, np.zeros((1, 3)))[0, 0]
    return rm.Volume(density, features, AFFINES[name], rm.Activation("relu", colour="clamped"))


@pytest.mark.parametrize("name", AFFINES)
def test_a_ball_is_closed_outward_where_it_is_and_of_its_colours(name):
    volume = ball(name)
    mesh = rm.isosurface_mesh(volume, ISO)
    voxel = np.linalg.norm(volume.world_from_index[:3, :3], axis=0).max()
    out = mesh.vertices - CENTRE
    away = np.linalg.norm(out, axis=1)
    assert mesh.closed
    assert np.abs(away - RADIUS).max() < 0.1 * voxel
    assert mesh.volume == pytest.approx(4 / 3 * np.pi * RADIUS**3, rel=0.03)
    assert mesh.area == pytest.approx(4 * np.pi * RADIUS**2, rel=0.03)
    assert ((mesh.normals * out).sum(1) / away > 0.97).all()
    assert np.abs(mesh.colours - (0.5 + 0.4 * out / away[:, None])).max() < 0.05


def test_what_reaches_the_border_is_closed_there():
    mesh = rm.isosurface_mesh(ball(radius=1.3), ISO)
    assert mesh.closed
    np.testing.assert_allclose(mesh.box, [(-1, -1, -1), (1, 1, 1)], atol=2e-4)
    cut = rm.isosurface_mesh(ball(radius=1.3), 10 * ISO / 10, box=[(-0.31, -2, -0.402), (2, 0.213, 0.7)])
    assert cut.closed
    np.testing.assert_allclose(cut.box, [(-0.31, -1, -0.402), (1, 0.213, 0.7)], atol=2e-4)


def test_a_box_leaves_a_sheared_volume_open(caplog):
    mesh = rm.isosurface_mesh(ball("sheared"), ISO, box=[(0, -2, -2), (2, 2, 2)])
    assert not mesh.closed and "so the mesh is open where the box cuts it" in caplog.text
    assert -0.1 < mesh.box[0, 0] < 0.1 and mesh.box[1, 0] > 0.6


@pytest.mark.parametrize("iso", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_labels_are_closed_at_their_own_values_too(iso):
    labels = np.zeros((12, 13, 14))
    labels[3:9, 4:9, 0:6], labels[8:12, 8:13, 8:12], labels[5, 5, 9], labels[1:3, 1, 1] = 1, 2, 3, 2
    labels[9:11, 9:11, 9:11] = 3
    volume = rm.Volume(labels, np.zeros((*labels.shape, 3)), np.eye(4), rm.Activation("identity"))
    mesh = rm.isosurface_mesh(volume, iso)
    assert mesh.closed and mesh.volume > 0


def test_a_lone_sample_on_the_level_is_a_piece_of_its_own():
    values = np.zeros((5, 5, 5))
    values[2, 2, 2] = 1
    volume = rm.Volume(values, np.zeros((5, 5, 5, 3)), np.eye(4), rm.Activation("identity"))
    mesh = rm.isosurface_mesh(volume, 1)
    assert mesh.closed and 0 < mesh.volume < 1e-6
    np.testing.assert_allclose(mesh.vertices, np.full(mesh.vertices.shape, 2.0), atol=1e-3)


def test_bricks_make_the_mesh_that_dense_samples_make():
    volume = ball(radius=0.35, centre=np.array([0.4, 0.3, 0.4]))
    volume = replace(volume, samples=replace(volume.samples, values=np.maximum(volume.density, 0)))
    dense, sparse = (rm.isosurface_mesh(v, ISO) for v in (volume, volume.sparse()))
    assert sparse.closed and len(sparse.faces) == len(dense.faces)
    np.testing.assert_allclose(sparse.vertices, dense.vertices, rtol=0, atol=1e-6)
    part = [(0.4, 0, 0), (1, 1, 1)]
    dense, sparse = (rm.isosurface_mesh(v, ISO, box=part) for v in (volume, volume.sparse()))
    np.testing.assert_allclose(sparse.vertices, dense.vertices, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_holds_the_mesh(kind, tmp_path, caplog):
    mesh, path = rm.isosurface_mesh(ball(), ISO), tmp_path / f"ball.{kind}"
    rm.write_mesh(mesh, path)
    found = trimesh.load(path, force="mesh")
    assert found.vertices.shape == mesh.vertices.shape and found.faces.shape == mesh.faces.shape
    assert found.is_watertight and found.volume == pytest.approx(mesh.volume, rel=1e-5)
    assert np.abs(np.sort(found.vertices, axis=0) - np.sort(mesh.vertices, axis=0)).max() < 1e-6
    if kind == "stl":
        assert "STL has no colours" in caplog.text
    else:
        np.testing.assert_allclose(found.vertices, mesh.vertices, rtol=0, atol=1e-6)
        c = mesh.colours
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)  # as glTF's viewers take them
        wanted = np.rint(255 * (linear if kind == "glb" else c))
        np.testing.assert_array_equal(found.visual.vertex_colors[:, :3], wanted)
    rm.write_mesh(mesh, path)  # over our own
    path.write_bytes(b"somebody's")
    with pytest.raises(rm.RaymarchError, match="is no mesh of raymarch's and would be lost"):
        rm.write_mesh(mesh, path)
    rm.write_mesh(mesh, path, overwrite=True)


def test_points_lie_on_the_surface_evenly_and_are_the_same_twice(tmp_path):
    cloud = rm.surface_points(ball(), 4000, ISO, seed=3)
    out = cloud.vertices - CENTRE
    away = np.linalg.norm(out, axis=1)
    assert np.abs(away - RADIUS).max() < 0.02
    octant = (out > 0) @ (1, 2, 4)
    assert np.abs(np.bincount(octant, minlength=8) / 500 - 1).max() < 0.1
    assert np.abs(cloud.colours - (0.5 + 0.4 * out / away[:, None])).max() < 0.05
    again = rm.export_mesh(ball(), tmp_path / "cloud.ply", ISO, points=4000)
    assert len(trimesh.load(tmp_path / "cloud.ply").vertices) == len(again.vertices) == 4000
    np.testing.assert_array_equal(rm.surface_points(ball(), 4000, ISO, seed=3).vertices, cloud.vertices)


def test_the_largest_pieces_stay():
    volume = ball(radius=0.5, centre=np.array([-0.4, 0, 0]))
    small = ball(radius=0.2, centre=np.array([0.6, 0, 0]))
    both = replace(volume, samples=replace(volume.samples, values=np.maximum(volume.density, small.density)))
    whole, large = rm.isosurface_mesh(both, ISO), rm.isosurface_mesh(both, ISO, largest=1)
    assert whole.closed and large.closed and whole.box[1, 0] > 0.7
    assert large.box[1, 0] < 0.2 and large.volume == pytest.approx(4 / 3 * np.pi * 0.125, rel=0.03)
    assert len(rm.isosurface_mesh(both, ISO, largest=9).faces) == len(whole.faces)


def test_fewer_faces_keep_the_surface():
    require_extra("fast_simplification", "formats")
    volume = ball()
    whole, mesh = rm.isosurface_mesh(volume, ISO), rm.isosurface_mesh(volume, ISO, faces=400)
    assert 380 <= len(mesh.faces) <= 400 < len(whole.faces)
    assert mesh.closed and mesh.volume == pytest.approx(whole.volume, rel=0.03)
    assert np.abs(np.linalg.norm(mesh.vertices - CENTRE, axis=1) - RADIUS).max() < 0.5 * 2 / 19


def test_more_points_than_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr("raymarch.system.resources.free_bytes", lambda: 1 << 30)
    ramp = rm.ScalarVolume(np.arange(60.0).reshape(3, 4, 5))
    with pytest.raises(rm.RaymarchError, match="4,000,000 points take .* bytes but .* are free; take fewer"):
        rm.surface_points(ramp, 4_000_000, 30.0)


@pytest.mark.parametrize("iso", [None, 7.0])
@pytest.mark.parametrize("value", [7, 0, -1e25])
def test_values_that_are_all_alike_have_no_surface(value, iso):
    with pytest.raises(rm.RaymarchError, match="values are all .*, so there is no surface"):
        rm.isosurface_mesh(rm.ScalarVolume(np.full((3, 4, 5), value)), iso)


def test_an_empty_surface_is_told_with_the_values():
    with pytest.raises(rm.RaymarchError, match=r"iso is 99 \[1/world unit\], where values are from 0 to 40: .* empty"):
        rm.isosurface_mesh(ball(), 99)
    with pytest.raises(rm.RaymarchError, match="is beside the volume, whose box is -1 -1 -1 to 1 1 1"):
        rm.isosurface_mesh(ball(), ISO, box=[(4, 4, 4), (5, 5, 5)])
    with pytest.raises(rm.RaymarchError, match="iso is 0 "):
        rm.isosurface_mesh(ball(), 0)


def test_a_good_level_is_said(caplog):
    volume = ball()
    mesh = rm.isosurface_mesh(volume)
    half = np.log(2) / (2 * volume.voxel)
    assert f"the surface is where the value is {half:.6g} [1/world unit], where 2 voxels take half" in caplog.text
    np.testing.assert_array_equal(mesh.vertices, rm.isosurface_mesh(volume, half).vertices)
    thin = replace(volume, activation=replace(volume.activation, scale=1e3))
    rm.isosurface_mesh(thin)
    assert "which parts the values best (Otsu)" in caplog.text
    scan = rm.ScalarVolume(np.rint(volume.density).astype(np.int16), volume.world_from_index, intercept=-1000)
    mesh = rm.isosurface_mesh(scan)
    assert mesh.closed and -1035 < otsu(scan.numbers(), *scan.range) < -965


def test_of_nested_boxes_the_innermost_is_meant_and_of_ndc_none(caplog):
    values = np.concatenate([ball().density] * 2)
    nested = rm.Volume(values, np.zeros((*values.shape, 3)), AFFINES["anisotropic"], rm.Activation("relu"), boxes=2)
    assert rm.isosurface_mesh(nested, ISO).closed and "innermost of 2 nested boxes" in caplog.text
    affine, frustum = cases.motion(shift=(-1, -1, -1)), rm.ndc_of_frustum(np.eye(4), 1.0)
    ndc = rm.Volume(np.ones((3, 3, 3)), np.zeros((3, 3, 3, 3)), affine, ndc_from_world=frustum)
    with pytest.raises(rm.RaymarchError, match="volume lies in NDC"):
        rm.isosurface_mesh(ndc)


def test_colours_are_those_that_a_march_reads():
    volume, rng = cases.volume("rotated", 3), np.random.default_rng(0)
    index = rng.uniform(0, np.array(volume.shape) - 1, (20, 3))
    directions = rng.normal(size=(20, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points = index @ volume.world_from_index[:3, :3].T + volume.world_from_index[:3, 3]
    for p, d, colour in zip(index, directions, seen_colours(volume, points, directions), strict=True):
        total = reference.harmonics(3, d) @ reference.gather(volume.features, p).reshape(-1, 3)
        np.testing.assert_allclose(colour, reference.colour(volume.activation, total)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("module", "package", "call"),
    [
        ("skimage.measure", "scikit-image", lambda: rm.isosurface_mesh(ball(), ISO)),
        ("fast_simplification", "fast-simplification", lambda: rm.isosurface_mesh(ball(), ISO, faces=99)),
        ("trimesh", "trimesh", lambda: rm.export_mesh(ball(), "never.ply", ISO)),
    ],
)
def test_a_missing_library_names_the_extra(module, package, call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        rm.RaymarchError, match=rf'{package}, which is not installed; pip install "raymarch\[formats\]"'
    ):
        call()
    assert not list(tmp_path.iterdir())


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return ended.value.code, *capsys.readouterr()


def test_the_command_line_exports(tmp_path, capsys):
    rm.save(ball(), tmp_path / "ball.h5")
    code, out, err = run(capsys, "export", tmp_path / "ball.h5", tmp_path / "ball.glb", "--json")
    record = json.loads(out)
    assert code == 0 and record["closed"] and record["bytes"] == (tmp_path / "ball.glb").stat().st_size
    code, out, _ = run(capsys, "export", tmp_path / "ball.h5", tmp_path / "b.ply", "--iso", 10, "--largest", 1)
    assert code == 0 and out.startswith(f"{tmp_path / 'b.ply'}: ") and "faces, closed" in out
    code, out, _ = run(capsys, "export", tmp_path / "ball.h5", tmp_path / "p.ply", "--iso", 10, "--points", 50)
    assert code == 0 and "50 points" in out
    for wrong, code in ((("--iso", 99), 1), (("--points", 5, "--faces", 5), 2), (("--box", "1,2,3"), 2)):
        assert run(capsys, "export", tmp_path / "ball.h5", tmp_path / "new.ply", *wrong)[0] == code
    for name in ("ball.h5", "mesh.xyz", "p.stl"):
        points = ("--points", 5) if name == "p.stl" else ()
        code, _, err = run(capsys, "export", tmp_path / "ball.h5", tmp_path / name, *points)
        assert code == 1 and len(err.strip().splitlines()) == 1, err
    assert not (tmp_path / "new.ply").exists()


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1.0, 1e5])
def test_an_obj_tells_vertices_apart_in_any_unit(size, tmp_path):
    mesh = rm.isosurface_mesh(ball(), iso=ISO)
    small = replace(mesh, vertices=mesh.vertices * size)
    rm.write_mesh(small, tmp_path / "a.obj")
    found = trimesh.load(tmp_path / "a.obj", process=False)
    np.testing.assert_allclose(np.sort(found.vertices[:, 0]), np.sort(small.vertices[:, 0]), atol=1e-7 * size)


def test_at_the_greatest_value_the_surface_is_a_dot():
    """However its raw value is rounded."""
    for seed in range(40):
        raw = np.random.default_rng(seed).normal(0, 3, (4, 4, 4)).astype(np.float32)
        volume = replace(rm.Volume.from_array(raw), activation=rm.Activation("softplus"))
        mesh = rm.isosurface_mesh(volume, iso=float(volume.sigma().max()))
        assert np.ptp(mesh.vertices, axis=0).max() < 0.2
