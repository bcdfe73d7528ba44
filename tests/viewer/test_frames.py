"""Law: a picture at rest is the very file that `rm.write_png` writes of `rm.render`, whatever goes between tiles."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from wires import CAMERA, around, unmarked

import raymarch as rm
from raymarch.io.images.write import write_depth, write_png
from raymarch.viewer.pictures import frame_maker
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.picture_source import FitSource, cameras_of, histogram, scene_of, start_camera
from raymarch.viewer.pictures.slice_picture import sample_volume
from raymarch.viewer.pictures.viewer_camera import camera_of_message

BALL = rm.Volume.from_function(
    lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.6), lambda p: (p + 1) / 2, shape=(12, 13, 14)
)
RAMP = np.random.default_rng(0).normal(size=(7, 6, 5)).astype(np.float32)
SCAN = rm.ScalarVolume(RAMP, np.diag([0.3, 0.4, 0.5, 1]), unit="HU", length_unit="mm", name="noise")
EYE = {**CAMERA, "width": 90, "height": 71}
PIXELS = rm.Camera.look_at((0, -4, 0), fov=np.deg2rad(40.0), width=90, height=71)


@pytest.fixture(scope="module")
def maker():
    views = rm.Views([PIXELS], np.random.default_rng(1).integers(0, 256, (1, 71, 90, 3), np.uint8))
    with FrameMaker(BALL, views, "ball") as made:
        yield made


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of a few rays: as many as a slow machine's, with a band sent after each."""
    monkeypatch.setattr(frame_maker, "SLICE_TIME", 1e-9)
    monkeypatch.setattr(frame_maker, "TILE_INTERVAL", -1.0)


def all_of(maker, eye, look):
    return [frame for frame in maker.frames(camera_of_message(eye), look) if frame is not None]


def written(tmp_path, image):
    write_png(tmp_path / "image.png", image)
    return (tmp_path / "image.png").read_bytes()


@pytest.mark.parametrize("changes", [{}, {"background": "black"}, {"exposure": 1}, {"step": 2}])
def test_a_picture_at_rest_is_the_file_of_render(maker, changes, tmp_path):
    look = maker.changed(maker.look(), changes)
    last = all_of(maker, EYE, look)[-1]
    seen = rm.render(BALL, PIXELS, background=changes.get("background"), march=rm.March(step=changes.get("step", 0.5)))
    expected = written(tmp_path, np.clip(seen * 2 ** changes.get("exposure", 0), 0, 1))
    assert last.final and last.format == "png" and last.data == expected
    assert maker.picture(camera_of_message(EYE), look) == expected


def test_a_picture_at_rest_has_as_many_rays_a_pixel_as_the_fit_had(tmp_path):
    """One in motion has one."""
    fitted = replace(BALL, provenance={"supersample": 2})
    with FrameMaker(fitted) as made:
        last = all_of(made, EYE, made.look())[-1]
        moving = all_of(made, {**EYE, "moving": True, "width": 8, "height": 8}, made.look())[-1]
    assert last.data == written(tmp_path, rm.render(fitted, PIXELS))
    assert last.data != written(tmp_path, rm.render(BALL, PIXELS))
    with FrameMaker(BALL) as made:
        assert moving.data == all_of(made, {**EYE, "moving": True, "width": 8, "height": 8}, made.look())[-1].data


@pytest.mark.parametrize("extras", ["depth", "opacity"])
def test_so_are_depth_and_opacity(maker, extras, tmp_path):
    last = all_of(maker, EYE, maker.changed(maker.look(), {"extras": extras}))[-1]
    seen = rm.render(BALL, PIXELS, extras=True)
    if extras == "depth":
        write_depth(tmp_path / "image.png", seen.depth)
        assert last.header["depth"] == pytest.approx([seen.depth.min(), seen.depth[np.isfinite(seen.depth)].max()])
        assert last.data == unmarked((tmp_path / "image.png").read_bytes())
    else:
        assert last.data == written(tmp_path, seen.opacity)


def test_another_page_between_the_tiles_changes_no_byte(maker):
    look = maker.look()
    other = maker.changed(
        look, {"step": 1.5, "background": "black", "clip": {"lower": [0, -1, -1], "upper": [1, 1, 1]}}
    )
    alone = all_of(maker, EYE, look)[-1].data, all_of(maker, EYE, other)[-1].data
    both = [maker.frames(camera_of_message(EYE), look), maker.frames(camera_of_message(EYE), other)]
    last: list = [None, None]
    while both != [None, None]:
        for n, frames in enumerate(both):
            frame = next(frames, "end") if frames else None
            both[n] = None if frame == "end" else frames
            last[n] = frame if frame not in ("end", None) else last[n]
    assert (last[0].data, last[1].data) == alone


def test_levels_and_bands_come_before_the_picture_and_cover_it(maker):
    maker.speed._of = dict.fromkeys(maker.speed._of, (2e3, 1.0))
    frames = all_of(maker, EYE, maker.look())
    assert frames[0].of == (22, 18) and [frame.final for frame in frames] == [False] * (len(frames) - 1) + [True]
    bands = [frame.place for frame in frames if frame.of == (90, 71) and not frame.final]
    assert [(x, w) for x, _, w, _ in bands] == [(0, 90)] * len(bands) and len(bands) == 2
    assert [y for _, y, _, _ in bands] == [0, 32] and [h for *_, h in bands] == [32, 32]
    assert all(Image.open(io.BytesIO(f.data)).size == f.place[2:] for f in frames)


def test_in_motion_one_picture_comes_small_where_rays_are_slow(maker):
    kinds = maker.speed._of
    maker.speed._of = dict.fromkeys(kinds, (2e3, 1.0))
    (frame,) = all_of(maker, around(3, width=90, height=71, moving=True), maker.look())
    assert (frame.format, frame.final, frame.moving, frame.id) == ("jpeg", False, True, 3)
    assert frame.of[0] * frame.of[1] <= 2e3 * frame_maker.MOVING_TIME * 1.1


def test_a_look_that_cannot_be_shown_is_refused_and_a_slice_is_drawn(maker):
    with pytest.raises(rm.RaymarchError, match="iso is 1e"):
        all_of(maker, EYE, maker.changed(maker.look(), {"mode": "isosurface", "iso": 1e9}))
    (frame,) = all_of(maker, EYE, maker.changed(maker.look(), {"slice": {"axis": 2, "position": 0}}))
    shown = np.asarray(Image.open(io.BytesIO(frame.data)))
    assert shown.shape == (71, 90) and shown[35, 45] == 255 and shown[35, 0] == 0
    corners = np.array([frame.header["slice"][name] for name in ("lower", "upper")])
    np.testing.assert_allclose(corners.mean(0), 0, atol=1e-6)
    assert (corners[1] >= 1).all() and (corners[0] <= -1).all()


@pytest.mark.parametrize(
    ("axis", "turned", "sides"), [(2, (True, False), "RLPA"), (1, (True, False), "RLIS"), (0, (True, False), "APIS")]
)
def test_a_body_s_slices_lie_as_radiologists_look_at_it(axis, turned, sides):
    """The patient's left on the right, the front above: as the slice of a scan in no body's world, turned."""
    pictures = []
    for world in ("", "RAS"):
        with FrameMaker(replace(SCAN, world=world), None, "scan") as made:
            look = made.changed(made.look(), {"slice": {"axis": axis, "position": 0.7}})
            (frame,) = all_of(made, EYE, look)
        pictures.append((np.asarray(Image.open(io.BytesIO(frame.data))), frame.header["slice"]))
    (plain, at), (body, turns) = pictures
    assert (at["sides"], turns["sides"]) == ([], list(sides))
    across, up = turned
    expected = plain[:: -1 if up else 1, :: -1 if across else 1]
    assert np.abs(body.astype(int) - expected).max() <= 1 < np.abs(body.astype(int) - plain).max()
    for n, back in enumerate(turned):
        ends = [at["lower"][n], at["upper"][n]]
        assert [turns["lower"][n], turns["upper"][n]] == pytest.approx(ends[::-1] if back else ends)


def test_slices_are_trilinear():
    """Against a function that is: x, y, z and their product at random places."""
    affine = np.diag([0.5, 0.7, -0.9, 1]) @ rm.Camera.look_at((1, 2, 3)).world_from_camera
    volume = rm.ScalarVolume(np.fromfunction(lambda i, j, k: 1 + i * j * k + 2 * i - k, (5, 6, 7)), affine).as_volume()
    index = np.random.default_rng(0).uniform((0, 0, 0), (4, 5, 6), (50, 3))
    values, inside = sample_volume(volume, index @ affine[:3, :3].T + affine[:3, 3])
    i, j, k = index.T
    np.testing.assert_allclose(values, 1 + i * j * k + 2 * i - k, rtol=1e-9)
    assert inside.all() and not sample_volume(volume, np.full((1, 3), 99.0))[1].any()


def test_the_scene_says_what_a_page_needs(maker):
    scene = maker.scene()
    assert scene["name"] == "ball" and scene["shape"] == [12, 13, 14] and scene["box"] == [[-1] * 3, [1] * 3]
    assert scene["modes"][0]["name"] == scene["look"]["mode"] == "emission-absorption"
    (camera,) = scene["cameras"]
    np.testing.assert_allclose(camera["forward"], (0, 1, 0), atol=1e-12)
    assert (
        camera["fov"] == pytest.approx(40) and camera["aspect"] == 90 / 71 and scene["camera"]["fov"] == camera["fov"]
    )
    assert sum(scene["histogram"]["counts"]) == 12 * 13 * 14


def test_a_view_of_parallel_rays_is_seen_by_such():
    """By what it begins with, and by what a page is told of it: as wide as the photograph wherever the target lies."""
    flat = rm.Camera.orthographic((1, -4, 2), (0.2, 0, 0), size=3.0, width=90, height=60)
    box = np.array([[-1.0, -1.0, -1.0], [1.0, 2.0, 1.0]])
    views = rm.Views([flat], np.zeros((1, 60, 90, 3), np.uint8))
    seen = camera_of_message({**CAMERA, **start_camera(box, views), "width": 90, "height": 60}).camera()
    assert seen.lens.parallel and seen.focal == pytest.approx(flat.focal)
    np.testing.assert_allclose(seen.world_from_camera, flat.world_from_camera, atol=1e-9)
    (told,) = cameras_of(views)
    assert told["orthographic"] and 2 * np.tan(np.radians(told["fov"]) / 2) == pytest.approx(3.0)


def test_a_scan_is_seen_through_a_table_of_its_own_and_has_units():
    with FrameMaker(SCAN) as made:
        scene = made.scene()
        assert (scene["unit"], scene["value_unit"], scene["values"], scene["name"]) == ("mm", "HU", True, "noise")
        assert scene["look"]["mode"] == "transfer" and "emission-absorption" not in [m["name"] for m in scene["modes"]]
        assert scene["range"] == pytest.approx([RAMP.min(), RAMP.max()])
        changed = made.changed(made.look(), {"table": scene["look"]["table"]})
        with pytest.raises(rm.RaymarchError, match="emission-absorption"):
            made.changed(changed, {"mode": "emission-absorption"})


def test_nested_boxes_of_values_are_seen_in_a_mode_that_goes_through_them():
    """A table does not: it is not offered, and refused in a line."""
    values = rm.Activation("identity")
    nested = rm.Volume(np.concatenate([RAMP, RAMP]), np.zeros((14, 6, 5, 3)), np.eye(4), values, boxes=2)
    with FrameMaker(nested) as made:
        scene = made.scene()
        assert "transfer" not in [mode["name"] for mode in scene["modes"]]
        assert scene["look"]["mode"] == scene["modes"][0]["name"] == made.source.prepare(made.look()).mode == "x-ray"
        with pytest.raises(rm.RaymarchError, match="transfer does not go through nested boxes"):
            made.changed(made.look(), {"mode": "transfer"})


def test_a_histogram_counts_all_values():
    edges, counts = histogram(SCAN.as_volume())
    np.testing.assert_array_equal(counts, np.histogram(RAMP, edges)[0])


def test_photographs_are_no_wider_than_asked(maker):
    header, data = maker.photo({"type": "photo", "index": 0, "width": 45})
    assert (header["width"], header["height"]) == Image.open(io.BytesIO(data)).size == (45, 36)
    for message in ({"index": 1}, {"index": -1}, {"index": "x"}, {"index": 0, "width": 0}):
        with pytest.raises(rm.RaymarchError, match="photo: "):
            maker.photo(message)


def test_a_sparse_volume_without_a_brick_has_a_scene():
    bricks = rm.Bricks(np.full((2, 2, 2), -1, np.int32), np.zeros((0, 8, 8, 8)), np.zeros((0, 8, 8, 8, 3)))
    nothing = rm.Volume.of_bricks(bricks, (9, 10, 11), np.eye(4), rm.Activation("identity"))
    with FrameMaker(nothing) as made:
        assert made.source.range == (0, 1) and scene_of(made.source, "")["range"] == [0, 1]


def test_a_volume_of_one_value_has_a_scene():
    with FrameMaker(rm.ScalarVolume(np.zeros((4, 4, 4)))) as made:
        assert scene_of(made.source, "")["range"] == [0, 1]


def test_a_fit_of_a_part_of_the_world_is_shown_by_that_part_until_a_page_names_another():
    march = rm.March(clip=rm.Clip(box=((0, 0, 0), (1, 1, 1))))
    with FitSource(SimpleNamespace(views=None, march=march)) as source:
        assert source.prepare(source.look) == march
        other = source.look.changed({"clip": {"lower": [-1, -1, -1], "upper": [0, 0, 0]}})
        assert source.prepare(other).clip is other.clip


def test_black_and_white_of_values_are_kept_until_the_page_asks_anew_and_never_taken_from_nothing():
    """So that no picture flickers; a fit's, whose values grow, has those of each picture."""
    with FrameMaker(SCAN, None, "scan") as made:
        look = made.changed(made.look(), {"mode": "x-ray"})
        away = all_of(made, {**EYE, "target": (0, -9, 0)}, look)[-1]
        assert away.about["window"] == (0.0, 1.0)
        first = all_of(made, EYE, look)[-1].about["window"]
        near = {**EYE, "position": [0, -2.5, 0]}
        assert all_of(made, near, look)[-1].about["window"] == first != (0.0, 1.0)
        anew = made.changed(look, {"window": None})
        assert all_of(made, near, anew)[-1].about["window"] != first
        made.source.grows = True
        assert all_of(made, EYE, look)[-1].about["window"] == first
