"""Laws of the demonstration: its scene is met where it is, held-out views are from elsewhere, its folder is whole."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from raymarch import cli
from raymarch.demo import demonstration
from raymarch.demo.island import BOX, island
from raymarch.demo.scene_views import cameras, picture, views_of
from raymarch.demo.solids import Shade, Solid
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import exp_rigid
from raymarch.io.image_sets.load import load_views
from raymarch.io.volumes.volume_file import load

RNG = np.random.default_rng(5)
HALF, TURN = np.array([0.7, 0.5, 0.3]), exp_rigid([0, 0, 0, 0.3, -0.8, 0.5])[:3, :3]
KINDS = {
    "ellipsoid": Solid("ellipsoid", np.array([0.2, 0.1, -0.3]), HALF, Shade, TURN),
    "box": Solid("box", np.array([0.2, 0.1, -0.3]), HALF, Shade, TURN),
    "cone": Solid("cone", np.array([0.2, 0.1, -0.3]), HALF, Shade, TURN, 0.3),
    "cylinder": Solid("cone", np.zeros(3), HALF, Shade, None, 1.0),
}


def inside(solid, points):
    """Whether points are in a solid, by its own inequality."""
    p = points - solid.centre
    p = p if solid.axes is None else p @ solid.axes
    if solid.kind == "ellipsoid":
        return ((p / solid.half) ** 2).sum(1) < 1
    if solid.kind == "box":
        return (np.abs(p) < solid.half).all(1)
    share = (p[:, 2] / solid.half[2] + 1) / 2
    radius = solid.half[0] * (1 + share * (solid.top - 1))
    return (np.abs(p[:, 2]) < solid.half[2]) & (np.hypot(p[:, 0], p[:, 1]) < radius)


@pytest.mark.parametrize("name", KINDS)
def test_a_ray_meets_a_solid_where_it_comes_in(name):
    solid = KINDS[name]
    origin = solid.centre + 3 * (d := RNG.normal(size=(400, 3))) / np.linalg.norm(d, axis=1, keepdims=True)
    aim = solid.centre + RNG.uniform(-0.9, 0.9, (400, 3))
    way = (aim - origin) / np.linalg.norm(aim - origin, axis=1, keepdims=True)
    t = solid.hit(origin, way)
    fine = np.linspace(0, 6, 1201)
    steps = np.array([inside(solid, o + fine[:, None] * w) for o, w in zip(origin, way, strict=True)])
    first = np.where(steps.any(1), fine[steps.argmax(1)], np.inf)
    met = np.isfinite(t) & np.isfinite(first)
    assert met.sum() > 100 and (np.isfinite(t) != np.isfinite(first)).mean() < 0.02
    np.testing.assert_allclose(t[met], first[met], atol=0.03)
    on = origin[met] + t[met, None] * way[met]
    normal = solid.normal(on)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1)
    assert inside(solid, on - 1e-4 * normal).mean() > 0.98 and inside(solid, on + 1e-4 * normal).mean() < 0.02
    assert (np.linalg.norm(on - solid.centre, axis=1) <= solid.reach + 1e-9).all()


def test_the_island_lies_in_its_box_and_views_show_all_of_it():
    solids = island()
    for solid in solids:
        points = solid.centre + RNG.uniform(-solid.reach, solid.reach, (2000, 3))
        points = points[inside(solid, points)]
        assert len(points) and (points > BOX[0]).all() and (points < BOX[1]).all()
    views = views_of(solids, cameras(4, 48, held_out=False), lambda: None)
    for i in range(4):
        alpha = views.image(i)[..., 3]
        assert 0.1 < (alpha > 0).mean() < 0.6
        assert not np.concatenate([alpha[0], alpha[-1], alpha[:, 0], alpha[:, -1]]).any()
    np.testing.assert_array_equal(picture(solids, views.cameras[1], seed=1), views.image(1))


def test_held_out_cameras_are_none_of_those_that_are_fitted():
    plan = demonstration.Plan()
    fitted, held_out = (
        np.array([camera.position for camera in cameras(n, 8, held_out=of)])
        for n, of in ((plan.train, False), (plan.test, True))
    )
    assert np.linalg.norm(fitted[:, None] - held_out, axis=-1).min() > 0.15


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    how = {"train": 6, "test": 2, "size": 24, "frames": 3, "frame_size": 24, "resolution": 24}
    monkeypatch.setattr(demonstration, "Plan", partial(demonstration.Plan, **how))
    monkeypatch.setattr(demonstration, "fit", partial(demonstration.fit, sh_degree=0, slots=1, rays=512))
    return tmp_path


def ran(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return ended.value.code


def test_the_verb_makes_a_folder_of_pictures_that_the_next_one_replaces(small, capsys):
    assert ran("demo", "--seconds", "1", "--no-view", "--arch", "cpu") == 0
    said = capsys.readouterr()
    folder = small / "raymarch-demo"
    names = {path.name for path in folder.iterdir()}
    assert {"island.h5", "scene", "demo.json", "held-out.png", "view.png"} < names
    assert names & {"orbit.mp4", "orbit.gif"} and "held-out.png" in said.out
    record = json.loads((folder / "demo.json").read_text())
    assert record["psnr"] > 8 and set(record["views"]) == {"r_000", "r_001"}
    assert load(folder / "island.h5").degree >= 0
    assert [len(load_views(folder / "scene", split)) for split in ("train", "test")] == [6, 2]
    assert "held out  PSNR" in said.err and not list(small.glob(".raymarch-*"))
    demonstration.require_demo_folder(folder)
    (folder / "my spiral.gif").write_bytes(b"mine")
    with pytest.raises(RaymarchError, match="would be lost, my spiral.gif in it; choose another name by --out"):
        demonstration.require_demo_folder(folder)
    (folder / "my spiral.gif").unlink()
    for mine in ("scene/train/mine.h5", "island.h5"):  # deeper, and in place of what was ours
        before = (folder / mine).read_bytes() if (folder / mine).exists() else None
        (folder / mine).write_bytes(b"mine")
        with pytest.raises(RaymarchError, match=f"would be lost, {mine} in it"):
            demonstration.require_demo_folder(folder)
        (folder / mine).unlink() if before is None else (folder / mine).write_bytes(before)
    demonstration.require_demo_folder(folder)


@pytest.mark.parametrize("content", ["notes.txt", "demo.json"])
def test_a_folder_of_others_stays(content, small, capsys):
    (small / "mine").mkdir()
    (small / "mine" / content).write_text("{}")
    assert ran("demo", "--out", "mine", "--no-view") == 1
    assert "is there already and would be lost" in capsys.readouterr().err
    assert [path.name for path in (small / "mine").iterdir()] == [content]
    with pytest.raises(RaymarchError, match="would be lost"):
        demonstration.require_demo_folder(small / "mine")


@pytest.mark.parametrize("laid", [".DS_Store", "scene/._r_000.png", "scene/Thumbs.db", "Desktop.ini"])
def test_what_a_system_lays_in_a_demonstration_s_folder_is_nobodys(laid, tmp_path):
    folder = tmp_path / "raymarch-demo"
    (folder / "scene").mkdir(parents=True)
    (folder / "demo.json").write_text(json.dumps({"made by": "raymarch demo", "files": {"demo.json": None}}))
    (folder / laid).write_bytes(b"icons")
    demonstration.require_demo_folder(folder)
    (folder / "scene" / "my.DS_Store").write_bytes(b"mine")
    with pytest.raises(RaymarchError, match=r"would be lost, scene/my\.DS_Store in it"):
        demonstration.require_demo_folder(folder)


def test_ctrl_c_before_there_is_a_fit_leaves_nothing(small, capsys, monkeypatch):
    cut = lambda *_, **how: SimpleNamespace(ended="interrupted at step 1", history=[])  # noqa: E731
    monkeypatch.setattr(demonstration, "fit", cut)
    assert ran("demo", "--no-view", "--arch", "cpu") == 1
    assert capsys.readouterr().err.splitlines()[-1] == "interrupted" and not list(small.iterdir())


def test_seconds_are_a_time(small, capsys):
    assert ran("demo", "--seconds", "0", "--no-view") == 2
    assert "--seconds is 0, want a number from 1" in capsys.readouterr().err
