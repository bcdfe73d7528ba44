"""Laws of transforms.json: every habit of instant-ngp and of nerfstudio is read as they read it, or refused by name."""

import json
import math
import os
import struct

import numpy as np
import pytest
from PIL import Image
from sets import POSES, random_image, write_set, write_transforms
from skips import require_shared

import raymarch as rm
from raymarch.io.files.strict import parse_json, strip_comments
from raymarch.io.image_sets.load import READERS

NAMES = [f"r_{i}.png" for i in range(10)]


def load(folder, split="all", **how):
    return rm.load_views(folder, split, **how)


def refused(call, *said):
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in said), text


def edited(folder, change):
    """The folder, its json changed by a function."""
    document = json.loads((folder / "transforms.json").read_text())
    change(document)
    (folder / "transforms.json").write_text(json.dumps(document))
    return folder


def per_frame(*values, key):
    def change(document):
        for frame, value in zip(document["frames"], values, strict=True):
            if value is not None:
                frame[key] = value

    return change


def test_a_set_is_read_as_it_was_written(tmp_path):
    views = load(write_transforms(tmp_path / "set", cx=3.5, cy=3.25, fl_y=9.25, w=8.0, h=6.0))
    assert views.names == ("r_0", "r_1", "r_2")
    assert views.source.endswith("transforms.json")
    assert views.points is views.box is views.masks is None
    for i, camera in enumerate(views.cameras):
        np.testing.assert_array_equal(views.images[i], random_image(3, seed=i))
        np.testing.assert_allclose(camera.world_from_camera, POSES[i], atol=1e-12)
        assert (camera.focal, camera.principal, camera.lens) == ((9.5, 9.25), (3.5, 3.25), rm.Lens())


# Focal lengths.

ACROSS, DOWN = 4 / math.tan(0.35), 3 / math.tan(0.25)
FOCALS = {
    "fl_x alone": ({}, (9.5, 9.5)),
    "both": ({"fl_y": 8}, (9.5, 8)),
    "y alone": ({"fl_x": None, "fl_y": 8}, (8, 8)),
    "radians": ({"fl_x": None, "camera_angle_x": 0.7}, (ACROSS, ACROSS)),
    "radians both": ({"fl_x": None, "camera_angle_x": 0.7, "camera_angle_y": 0.5}, (ACROSS, DOWN)),
    "pixels before radians": ({"camera_angle_x": 0.7, "camera_angle_y": 0.5}, (9.5, DOWN)),
    "degrees": ({"fl_x": None, "x_fov": math.degrees(0.7)}, (ACROSS, ACROSS)),
    "degrees before pixels": ({"x_fov": math.degrees(0.7), "camera_angle_x": 0.1}, (ACROSS, ACROSS)),
    "degrees both": ({"x_fov": math.degrees(0.7), "y_fov": math.degrees(0.5), "fl_y": 3}, (ACROSS, DOWN)),
}


@pytest.mark.parametrize("what", FOCALS)
def test_the_first_of_the_keys_for_a_focal_counts(what, tmp_path):
    keys, focal = FOCALS[what]
    assert load(write_transforms(tmp_path / "set", **keys)).cameras[1].focal == pytest.approx(focal, rel=1e-12)


def test_a_frame_has_intrinsics_of_its_own(tmp_path):
    folder = edited(write_transforms(tmp_path / "set", x_fov=40, k1=0.1), per_frame(None, 20, None, key="fl_x"))
    edited(folder, per_frame(None, 0.01, None, key="k1"))
    cameras = load(folder).cameras
    assert cameras[1].focal == (20, 20)
    assert [camera.lens.coefficients[0] for camera in cameras] == [0.1, 0.01, 0.1]
    assert cameras[0].focal == cameras[2].focal == pytest.approx((4 / math.tan(math.radians(20)),) * 2)


def test_intrinsics_of_another_size_are_scaled_to_the_image(tmp_path):
    folder = write_transforms(tmp_path / "set", fl_x=40, fl_y=41, cx=13, cy=10, w=27, h=19, k1=0.1)  # 27 / 3.4
    camera = load(folder).cameras[0]
    assert camera.focal == pytest.approx((40 * 8 / 27, 41 * 6 / 19))
    assert camera.principal == pytest.approx((13 * 8 / 27, 10 * 6 / 19))
    assert camera.lens == rm.Lens("opencv", (0.1, 0, 0, 0, 0))


# Lenses.

OPENCV = {"k1": 0.1, "k2": -0.02, "k3": 0.003, "p1": 0.004, "p2": -0.005}
LENSES = {
    "none": ({}, rm.Lens()),
    "all 0": (dict.fromkeys(OPENCV, 0), rm.Lens()),
    "a pinhole by name": ({"camera_model": "PINHOLE"}, rm.Lens()),
    "by keys": (OPENCV, rm.Lens("opencv", (0.1, -0.02, 0.003, 0.004, -0.005))),
    "by name": ({"camera_model": "OPENCV", **OPENCV}, rm.Lens("opencv", (0.1, -0.02, 0.003, 0.004, -0.005))),
    "fox": ({"k1": 0.1, "p1": 0.01}, rm.Lens("opencv", (0.1, 0, 0, 0.01, 0))),
    "a list": ({"distortion_params": [0.1, 0.2, 0.3, 0, 5e-3, 6e-3]}, rm.Lens("opencv", (0.1, 0.2, 0.3, 5e-3, 6e-3))),
    "the eighth power": ({"k1": 0.1, "k4": 0.02, "p1": 1e-3}, rm.Lens("radial8", (0.1, 0, 0, 0.02, 1e-3, 0))),
    "radial": ({"camera_model": "RADIAL", "k1": 0.1, "k2": 0.2}, rm.Lens("radial", (0.1, 0.2))),
    "simple": ({"camera_model": "SIMPLE_RADIAL", "k1": 0.1}, rm.Lens("simple_radial", (0.1,))),
    "more than radial": ({"camera_model": "RADIAL", "k3": 0.1}, rm.Lens("opencv", (0, 0, 0.1, 0, 0))),
    "fisheye": ({"is_fisheye": True, "k1": 0.1, "k4": 4e-3, "p1": 0}, rm.Lens("fisheye", (0.1, 0, 0, 4e-3))),
    "fisheye by name": ({"camera_model": "OPENCV_FISHEYE", "k2": 0.01}, rm.Lens("fisheye", (0, 0.01, 0, 0))),
    "no fisheye": ({"is_fisheye": False, "k1": 0.1}, rm.Lens("opencv", (0.1, 0, 0, 0, 0))),
}


@pytest.mark.parametrize("what", LENSES)
def test_a_lens_is_read_as_its_keys_say(what, tmp_path):
    keys, lens = LENSES[what]
    assert load(write_transforms(tmp_path / "set", **keys)).cameras[2].lens == lens


def test_a_panorama_is_of_all_around_whatever_focal_length_is_there(tmp_path):
    camera = load(write_transforms(tmp_path / "set", camera_model="EQUIRECTANGULAR")).cameras[1]
    assert camera.lens.model == "equirectangular"
    middles = np.array([(0.0, camera.height / 2), (camera.width / 2, 0.0)])
    left_and_top = camera.lens.directions((middles - camera.principal) / camera.focal)
    np.testing.assert_allclose(left_and_top, [(0, 0, 1), (0, 1, 0)], atol=1e-12)


UNREAD = [f"{kind}_{eye}" for kind in ("OMNIDIRECTIONALSTEREO", "VR180") for eye in "LR"]


@pytest.mark.parametrize("name", ["ORTHOPHOTO", "FISHEYE624", "FULL_OPENCV", *UNREAD])
def test_a_lens_that_is_not_read_is_refused_by_name(name, tmp_path):
    folder = write_transforms(tmp_path / "set", camera_model=name)
    refused(lambda: load(folder), f"camera_model is '{name}', want PINHOLE", "; undistort")


@pytest.mark.parametrize(("key", "name"), [("ftheta_p0", "ftheta"), *[(x, x) for x in ("latlong", "orthographic")]])
def test_a_lens_of_instant_ngp_s_that_is_not_read_is_refused_by_name(key, name, tmp_path):
    refused(lambda: load(write_transforms(tmp_path / "set", **{key: 1})), f"the lens {name} is not read")


@pytest.mark.parametrize("key", ["is_fisheye", "from_na", "from_mitsuba", "white_transparent"])
@pytest.mark.parametrize("value", ["false", "true", 2, []])
def test_a_flag_is_true_or_false_and_no_text(tmp_path, key, value):
    refused(lambda: load(write_transforms(tmp_path / "set", **{key: value})), f"{key} is ", "want true or false; ")
    for none in (0, False, None):
        assert load(write_transforms(tmp_path / f"a {none}", **{key: none})).cameras[0].lens.plain


# Poses.


def test_axes_of_other_exporters_are_ours_in_the_end(tmp_path):
    """By what each calls the axes of a camera: OpenCV's, and Mitsuba's x left, y up, looking along z."""
    for key, axes in (("from_na", (1, -1, -1)), ("from_mitsuba", (-1, 1, -1))):
        folder = edited(
            write_transforms(tmp_path / key, **{key: True}),
            per_frame(*[(pose @ np.diag([*axes, 1])).tolist() for pose in POSES], key="transform_matrix"),
        )
        np.testing.assert_allclose(load(folder).cameras[1].world_from_camera, POSES[1], atol=1e-12)


def test_of_a_rolling_shutter_the_pose_amid_is_taken(tmp_path):
    def roll(document):
        for frame, pose in zip(document["frames"], POSES, strict=True):
            turn = [[np.cos(0.1), -np.sin(0.1), 0, 0], [np.sin(0.1), np.cos(0.1), 0, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]]
            del frame["transform_matrix"]
            frame["transform_matrix_start"] = (pose @ np.array(turn)).tolist()
            frame["transform_matrix_end"] = (pose @ np.linalg.inv(turn)).tolist()

    folder = edited(write_transforms(tmp_path / "set"), roll)
    for camera, pose in zip(load(folder).cameras, POSES, strict=True):
        np.testing.assert_allclose(camera.world_from_camera, pose, atol=1e-12)


# Files.


def test_views_are_in_the_order_of_their_names(tmp_path):
    folder = edited(write_transforms(tmp_path / "set"), lambda document: document["frames"].reverse())
    views = load(folder)
    assert views.names == ("r_0", "r_1", "r_2")
    np.testing.assert_allclose(views.cameras[0].world_from_camera, POSES[0], atol=1e-12)


PATHS = {"no suffix": "images/r_1", "back slashes": "images\\r_1.png", "a dot": "./images/r_1.png"}


@pytest.mark.parametrize("what", PATHS)
def test_a_path_is_found_however_it_is_written(what, tmp_path):
    folder = edited(write_transforms(tmp_path / "set"), per_frame(None, PATHS[what], None, key="file_path"))
    np.testing.assert_array_equal(load(folder).image(1), random_image(3, seed=1))


@pytest.mark.parametrize("key", ["file_path", "mask_path", "ply_file_path", "test_filenames"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../up.png", "images/../../up.png", "https://a.b/c.png", 7])
def test_no_path_leads_out_of_the_set(key, path, tmp_path):
    (tmp_path / "up.png").write_bytes(b"secret")
    folder = write_transforms(tmp_path / "set")
    if key in ("file_path", "mask_path"):
        edited(folder, per_frame(None, path, None, key=key))
    else:
        edited(folder, lambda document: document.update({key: [path] if key == "test_filenames" else path}))
    refused(lambda: load(folder), "transforms.json", f"{key} ")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_an_alpha_by_a_link_out_of_the_set_is_not_read(tmp_path):
    folder = write_transforms(tmp_path / "set")
    Image.fromarray(random_image(3)).save(tmp_path / "a.png")
    (folder / "images" / "r_1.alpha.png").symlink_to(tmp_path / "a.png")
    assert not load(folder).has_alpha
    assert load(folder, follow_links=True).has_alpha


def test_comments_are_read(tmp_path):
    folder = write_transforms(tmp_path / "set")
    text = (folder / "transforms.json").read_text()
    (folder / "transforms.json").write_text(
        "// of mine\n" + text.replace('"fl_x"', '/* pixels\n "a": { */ "fl_x"') + "//"
    )
    assert load(folder).cameras[0].focal == (9.5, 9.5)
    (folder / "transforms.json").write_text("/* 1\n2 */ {'frames': []}")
    refused(lambda: load(folder), "line 2, column 7", "single quotes")


COMMENTED = [
    '{"a": "// no \\\\"}',
    '["/*", "\\"//", 1]',
    '{"a": "b"} //',
    '["x" /* "y" */, "*/"]',
    "/",
    '"/* ',
    "[1] /*",
]


@pytest.mark.parametrize("text", COMMENTED)
def test_comments_keep_the_place_of_all_else(text):
    out = strip_comments(text)
    assert len(out) == len(text)
    assert all(a in (b, " ") for a, b in zip(out, text, strict=True))
    if text.count('"') % 2 == 0 and text != "/":
        parse_json(out, "text")


def test_what_is_not_sharp_by_its_neighbours_is_left_out(tmp_path, caplog):
    sharpness = [10, 11, 3, 12, 10, 11, 4.9, 9, 10, 10]
    folder = edited(write_transforms(tmp_path / "set", names=NAMES), per_frame(*sharpness, key="sharpness"))
    assert len(load(folder)) == 10
    edited(folder, lambda document: document.update(sharpness_discard_threshold=0.6))
    assert load(folder).names == tuple(f"r_{i}" for i in range(10) if i not in (2, 6))
    assert "2 of 10 frames are less sharp than 0.6 of their neighbours" in caplog.text
    edited(folder, lambda document: document.update(n_frames=4))
    assert load(folder).names == ("r_0", "r_1", "r_3")


def test_first_and_next_to_each_other_are_frames_by_the_numbers_in_their_names(tmp_path):
    """As instant-ngp has them: r_2 before r_10."""
    sharpness = [1, 1, 1, 1, 1, 1, 9, 9, 9, 8, 4, 9]  # r_10 is blurred by r_7 to r_11, and not by r_0 to r_2
    names = [f"r_{i}.png" for i in range(12)]
    folder = edited(write_transforms(tmp_path / "set", names=names), per_frame(*sharpness, key="sharpness"))
    edited(folder, lambda document: document.update(sharpness_discard_threshold=0.6))
    assert "r_10" not in load(folder).names and {"r_2", "r_11"} <= set(load(folder).names)
    edited(folder, lambda document: document.update(n_frames=3))
    assert load(folder).names == ("r_0", "r_1", "r_2")


# Splits.


def test_a_set_without_splits_holds_views_out_of_those_that_are_there(tmp_path):
    folder = write_transforms(tmp_path / "set", names=NAMES)
    (folder / "images" / "r_0.png").unlink()
    assert load(folder, "test").names == ("r_1", "r_9")
    assert len(load(folder, "train")) == 7
    assert load(folder, "test", holdout=4).names == ("r_1", "r_5", "r_9")


def test_splits_that_are_listed_count(tmp_path, caplog):
    lists = {
        "train_filenames": ["images/r_2.png", "images\\r_0.png", "images/none.png"],
        "test_filenames": ["./images/r_1.png"],
    }
    folder = write_transforms(tmp_path / "set", **lists)
    assert load(folder, "train").names == ("r_0", "r_2")
    assert "1 of 3 train_filenames are of no frame that is there, going on without them (none.png)" in caplog.text
    assert load(folder, "test").names == load(folder, "val").names == ("r_1",)
    assert "has no val_filenames, taking test_filenames" in caplog.text
    assert len(load(folder, "all")) == 3
    refused(lambda: load(folder, "foxes"), "has no foxes_filenames, it has the splits train, test; choose")
    for wrong, said in (("r_1.png", "is 'r_1.png', want a list"), (["images/x.png"], "no frame has a file of test_f")):
        edited(folder, lambda document, wrong=wrong: document.update(test_filenames=wrong))
        refused(lambda: load(folder, "test"), said)


@pytest.mark.parametrize("keys", [["train"], ["train", "test"]])
def test_lists_of_no_files_are_told(tmp_path, keys):
    folder = write_transforms(tmp_path / "set", **{f"{name}_filenames": [] for name in keys})
    said = " and ".join(f"{name}_filenames" for name in keys) + " list no files, want one or more; "
    refused(lambda: load(folder, "train"), said)


def test_files_of_splits_are_nerf_synthetic_s(tmp_path):
    folder = write_transforms(tmp_path / "set")
    for name in ("transforms_train.json", "transforms_old.json"):
        write_set(tmp_path / name)
        (tmp_path / name / "transforms_train.json").rename(folder / name)
    claiming = [reader.name for reader in READERS if reader.detect(folder)]
    assert claiming == ["NeRF-synthetic"]
    (folder / "transforms_train.json").unlink()
    assert load(folder).source.endswith("transforms.json")


# Masks and alpha.


def test_masks_are_black_where_pixels_do_not_count(tmp_path):
    folder = write_transforms(tmp_path / "set")
    mask = np.arange(48).reshape(6, 8) % 3 > 0
    (folder / "masks").mkdir()
    Image.fromarray(mask.astype(np.uint8) * 255).save(folder / "masks" / "r_1.png")
    edited(folder, per_frame(None, "masks/r_1", "masks/r_2.png", key="mask_path"))
    views = load(folder)
    np.testing.assert_array_equal(views.mask(1), mask)
    assert views.mask(0) is None
    assert views.mask(2) is None


def test_what_moves_in_a_dynamic_mask_does_not_count(tmp_path):
    """As instant-ngp has it: what is not black moves; a `mask_path` goes before it."""
    folder = write_transforms(tmp_path / "set")
    moving = (np.arange(48).reshape(6, 8) % 5 == 0).astype(np.uint8) * 60
    for i in (1, 2):
        Image.fromarray(moving).save(folder / "images" / f"dynamic_mask_r_{i}.png")
    Image.fromarray(np.full((6, 8), 255, np.uint8)).save(folder / "other.png")
    edited(folder, per_frame(None, None, "other.png", key="mask_path"))
    views = load(folder)
    assert views.mask(0) is None and views.mask(2) is None
    np.testing.assert_array_equal(views.mask(1), moving == 0)


@pytest.mark.parametrize("told", [{}, {"w": 80, "h": 60}, {"w": None, "h": None}])
@pytest.mark.parametrize("fewer", [1, 2])
@pytest.mark.parametrize("lens", [{"camera_model": "OPENCV_FISHEYE"}, {"is_fisheye": True}])
def test_pixels_beyond_the_radius_of_a_fisheye_s_crop_do_not_count(lens, told, fewer, tmp_path):
    """As in nerfstudio about the image's middle, in pixels of the full size; what a mask takes out stays out."""
    keys = {"fl_x": 40, "cx": 2, **lens, **told, "fisheye_crop_radius": 3 * (told.get("w") or 8) / 8}
    folder = write_transforms(tmp_path / "set", **keys)
    v, u = np.mgrid[:6, :8] + 0.5
    near = (u - 4) ** 2 + (v - 3) ** 2 < 9
    mask = np.arange(48).reshape(6, 8) % 5 > 0
    Image.fromarray(np.uint8(255) * mask).save(folder / "mask.png")
    edited(folder, per_frame(None, "mask.png", None, key="mask_path"))
    views = load(folder, downscale=fewer)
    for i, want in ((0, near), (1, near & mask)):
        want = want.reshape(6 // fewer, fewer, 8 // fewer, fewer).all((1, 3))
        np.testing.assert_array_equal(views.mask(i), want)


@pytest.mark.parametrize(
    ("value", "said"), [(0, "is 0 pixels, want a positive number"), ("9", "is '9', want a number")]
)
def test_a_crop_that_is_none_is_refused(value, said, tmp_path):
    folder = write_transforms(tmp_path / "set", fisheye_crop_radius=value, is_fisheye=True)
    refused(lambda: load(folder), "fisheye_crop_radius", said)


def test_a_crop_of_fisheyes_takes_nothing_from_images_of_other_lenses(tmp_path):
    """As nerfstudio has it, so that one file may have both."""
    folder = write_transforms(tmp_path / "set", fisheye_crop_radius=3, camera_model="OPENCV")
    assert load(folder).masks is None
    edited(folder, per_frame(None, "OPENCV_FISHEYE", None, key="camera_model"))
    views = load(folder)
    assert views.mask(0) is None and not views.mask(1).all() and views.mask(2) is None


def test_images_that_are_cropped_alike_have_one_mask(tmp_path):
    folder = write_transforms(tmp_path / "set", fisheye_crop_radius=3, is_fisheye=True)
    edited(folder, per_frame(None, None, 2, key="fisheye_crop_radius"))
    views = load(folder)
    assert views.mask(0) is views.mask(1) and views.mask(2).sum() < views.mask(0).sum()


def test_alpha_comes_from_files_beside_the_images(tmp_path):
    folder = write_transforms(tmp_path / "set")
    alpha = np.linspace(0, 255, 48).round().astype(np.uint8).reshape(6, 8)
    Image.fromarray(alpha).save(folder / "images" / "r_1.alpha.png")
    views = load(folder)
    x = alpha / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    np.testing.assert_array_equal(views.image(1)[..., 3], np.rint(255 * linear))
    np.testing.assert_array_equal(views.image(1)[..., :3], random_image(3, seed=1))
    assert (views.image(0)[..., 3] == 255).all()
    assert load(folder, downscale=2).image(1).shape == (3, 4, 4)
    Image.fromarray(alpha[:4]).save(folder / "images" / "r_1.alpha.png")
    refused(lambda: load(folder), "r_1.alpha.png: is not of the size of r_1.png")


def test_an_alpha_is_found_by_the_image_s_whole_name_too(tmp_path):
    """As instant-ngp looks for it where the set writes paths with their suffix."""
    folder = write_transforms(tmp_path / "set")
    Image.fromarray(np.zeros((6, 8), np.uint8)).save(folder / "images" / "r_1.png.alpha.png")
    assert (load(folder).image(1)[..., 3] == 0).all()


@pytest.mark.parametrize("kind", ["file", "white"])
def test_views_that_are_made_smaller_are_so_by_what_counts_alone(kind, tmp_path):
    """Alpha is linear before it is averaged, and colours by it: nothing of what is behind bleeds in."""
    folder = write_transforms(tmp_path / "set", **({"white_transparent": True} if kind == "white" else {}))
    image, alpha = random_image(3, seed=1), np.full((6, 8), 255, np.uint8)
    image[:, 1::2], alpha[:, 1::2] = 255, 0
    Image.fromarray(image).save(folder / "images" / "r_1.png")
    if kind == "file":
        Image.fromarray(alpha).save(folder / "images" / "r_1.alpha.png")
    small = load(folder, downscale=2).image(1)
    assert (abs(small[..., 3].astype(int) - 128) <= 1).all()
    wanted = image[:, ::2].reshape(3, 2, 4, 3).mean(1)
    np.testing.assert_allclose(small[..., :3], wanted, atol=2)


def test_views_without_an_alpha_file_keep_their_own(tmp_path):
    folder = write_transforms(tmp_path / "set")
    for i in range(3):
        Image.fromarray(random_image(4, seed=i)).save(folder / "images" / f"r_{i}.png")
    own = [load(folder).image(i)[..., 3] for i in range(3)]
    Image.fromarray(np.zeros((6, 8), np.uint8)).save(folder / "images" / "r_1.alpha.png")
    views = load(folder)
    for i in (0, 2):
        np.testing.assert_array_equal(views.image(i)[..., 3], own[i])
    assert (views.image(1)[..., 3] == 0).all()


@pytest.mark.parametrize(("key", "value"), [("white_transparent", 255), ("black_transparent", 0)])
def test_a_colour_may_mean_transparent(key, value, tmp_path):
    folder = write_transforms(tmp_path / "set", **{key: True})
    image = np.full((6, 8, 3), 100, np.uint8)
    image[2:4], image[4, 4, 0] = value, value
    Image.fromarray(image).save(folder / "images" / "r_1.png")
    alpha = load(folder).image(1)[..., 3]
    np.testing.assert_array_equal(alpha == 0, (np.arange(6) // 2 == 1)[:, None] & np.ones(8, bool))
    assert set(np.unique(alpha)) == {0, 255}


# Photographs that EXIF turns.


def exif_says(path, orientation):
    """The image of a file, saved again with EXIF's orientation."""
    with Image.open(path) as image:
        exif = image.getexif()
        exif[0x0112] = orientation
        image.load()
    image.save(path, exif=exif)


def turned_set(folder, wide, orientation, told):
    """A set of one view with mask and alpha, whose photograph EXIF turns; its camera is of the stored pixels."""
    keys = {"fl_x": 9.5, "fl_y": 9.0, "cx": 3.5, "cy": 2.5, "k1": 0.05, "p1": 0.003, "p2": -0.002}
    sizes = {"w": 2 * wide, "h": 12} if told == "twice" else {"w": wide, "h": 6} if told else {"w": None, "h": None}
    scale = 2 if told == "twice" else 1
    keys = {key: scale * value if key[0] in "fc" else value for key, value in keys.items()}
    write_transforms(folder, names=["r_0.png"], **keys, **sizes)
    for name, seed in (("images/r_0.png", 0), ("images/r_0.alpha.png", 1)):
        Image.fromarray(random_image(3, 6, wide, seed=seed)).save(folder / name)
    Image.fromarray(np.where(random_image(3, 6, wide, seed=2) > 127, 255, 0).astype(np.uint8)[..., 0]).save(
        folder / "mask.png"
    )
    exif_says(folder / "images" / "r_0.png", orientation)
    return edited(folder, per_frame("mask.png", key="mask_path"))


@pytest.mark.parametrize("told", [True, "twice", False])
@pytest.mark.parametrize("wide", [8, 6])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_camera_mask_and_alpha_are_of_the_pixels_as_they_are_stored(orientation, wide, told, tmp_path):
    """For neither instant-ngp nor nerfstudio looks at EXIF: also where sides do not tell, or are not told."""
    flat = load(turned_set(tmp_path / "flat", wide, 1, told))
    views = load(turned_set(tmp_path / "turned", wide, orientation, told))
    width, height = (wide, 6) if orientation == 3 else (6, wide)
    v, u = np.mgrid[:height, :width] + 0.5
    before = {3: (wide - u, 6 - v), 6: (v, 6 - u), 8: (wide - v, u)}[orientation]  # where upright pixels are stored
    index = (before[1] // 1 * wide + before[0] // 1).astype(int).ravel()
    camera = views.cameras[0]
    assert (camera.width, camera.height) == (width, height)
    np.testing.assert_allclose(camera.rays().direction, flat.cameras[0].rays(index).direction, atol=1e-9)
    np.testing.assert_array_equal(views.image(0).reshape(-1, 4), flat.image(0).reshape(-1, 4)[index])
    np.testing.assert_array_equal(views.mask(0).ravel(), flat.mask(0).ravel()[index])


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
@pytest.mark.parametrize("upright", [(6, 8), (6, 7)])
def test_a_camera_of_the_upright_size_is_of_the_upright_image(upright, orientation, tmp_path):
    """Also where the sides differ by so little that rounding could make one of the other."""
    width, height = upright
    folder = write_transforms(tmp_path / "set", w=width, h=height, fl_x=9, fl_y=8, cx=2.5, cy=3.25)
    for i in range(3):
        Image.fromarray(random_image(3, width, height, seed=i)).save(folder / "images" / f"r_{i}.png")
        exif_says(folder / "images" / f"r_{i}.png", orientation)
    camera = load(folder).cameras[1]
    assert (camera.width, camera.height, camera.focal, camera.principal) == (*upright, (9, 8), (2.5, 3.25))
    np.testing.assert_allclose(camera.world_from_camera, POSES[1], atol=1e-12)


@pytest.mark.parametrize("orientation", [2, 4])
def test_a_photograph_that_exif_mirrors_is_refused_as_no_camera_shows_it(orientation, tmp_path):
    folder = write_transforms(tmp_path / "set")
    exif_says(folder / "images" / "r_1.png", orientation)
    refused(lambda: load(folder), "(r_1): EXIF says that the image is mirrored", "; write the image without that tag")


# Box and points.


@pytest.mark.parametrize(
    ("keys", "box"),
    [
        ({"aabb_scale": 1}, [[-0.5 / 0.33] * 3, [0.5 / 0.33] * 3]),
        ({"aabb_scale": 4}, [[-2 / 0.33] * 3, [2 / 0.33] * 3]),
        ({"aabb_scale": 2, "scale": 0.5, "offset": 0.25}, [[-1.5] * 3, [2.5] * 3]),
        ({"scale": 1, "offset": [0.5, 0.25, -0.5]}, [[-0.5, -0.25, 0.5], [0.5, 0.75, 1.5]]),
        ({"aabb": [[-1, -2, -3], [1, 2, 3]], "aabb_scale": 8}, [[-1, -2, -3], [1, 2, 3]]),
    ],
)
def test_the_box_is_the_cube_that_instant_ngp_traces(keys, box, tmp_path):
    """That is where p * scale + offset lies within aabb_scale / 2 of 0.5, whatever the order of axes there."""
    found = load(write_transforms(tmp_path / "set", **keys)).box
    np.testing.assert_allclose(found, box, rtol=1e-12)
    if "aabb" not in keys:
        cube = found * keys.get("scale", 0.33) + np.asarray(keys.get("offset", 0.5))
        np.testing.assert_allclose(abs(cube - 0.5), keys.get("aabb_scale", 1) / 2, rtol=1e-12)


@pytest.mark.parametrize(
    "keys", [{"aabb": [1, 2]}, {"aabb": [[0, 0, 0], [0, 1, 1]]}, {"aabb_scale": "4"}, {"scale": 0}, {"offset": [1, 2]}]
)
def test_a_box_that_is_none_is_refused(keys, tmp_path):
    refused(lambda: load(write_transforms(tmp_path / "set", **keys)), "transforms.json: ", next(iter(keys)))


POINTS = np.array([[1, 2, 3], [-4, 5.5, 6], [7, -8, 0.25]])
HEAD = "ply\nformat {} 1.0\ncomment of ours\nelement vertex {}\n{}end_header\n"
FLOATS = "".join(f"property float {axis}\n" for axis in "xyz")
MIXED = "property uchar red\nproperty double z\nproperty float32 x\nproperty short k\nproperty float y\n"
ROWS = [(9, z, x, -1, y) for x, y, z in POINTS]
TEXT = HEAD.format("ascii", 3, FLOATS) + "1 2 3\n-4 5.5 6\n7 -8 2.5e-1\n"
LITTLE, SINGLE = "binary_little_endian", POINTS.astype("<f4").tobytes()
FACE = "element face 1\nproperty list uchar int i\n"
CAMERAS = "ply\nformat binary_little_endian 1.0\nelement camera 2\nproperty double f\n"
PLY = {
    "text": TEXT.encode(),
    "text of Windows": TEXT.replace("\n", "\r\n").encode(),
    "little": HEAD.format(LITTLE, 3, FLOATS).encode() + SINGLE,
    "big": HEAD.format("binary_big_endian", 3, MIXED).encode() + b"".join(struct.pack(">Bdfhf", *row) for row in ROWS),
    "faces behind": HEAD.format(LITTLE, 3, FLOATS + FACE).encode() + SINGLE + struct.pack("<B3i", 3, 0, 1, 2),
    "cameras before": (CAMERAS + HEAD.format("", 3, FLOATS).split("\n", 3)[3]).encode() + bytes(16) + SINGLE,
}


@pytest.mark.parametrize("kind", PLY)
def test_points_come_from_a_ply(kind, tmp_path):
    folder = write_transforms(tmp_path / "set", ply_file_path="sparse_pc.ply")
    assert load(folder).points is None
    (folder / "sparse_pc.ply").write_bytes(PLY[kind])
    np.testing.assert_array_equal(load(folder).points, POINTS)


BAD_PLY = {
    "empty": (b"", "is empty"),
    "no ply": (b"plz\n", "is no PLY file"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(2000), "is no PLY file"),
    "no end": (b"ply\nformat ascii 1.0\n", "header does not end"),
    "a long header": (b"ply\n" + b"comment x\n" * 100_000, "header does not end"),
    "no format": (b"ply\nelement vertex 3\n" + FLOATS.encode() + b"end_header\n", "has no format"),
    "no vertices": (HEAD.format("ascii", 0, FLOATS).encode(), "no vertices"),
    "a format of none": (HEAD.format("ebcdic", 3, FLOATS).encode(), "header has 'format ebcdic 1.0'"),
    "a count of 2^60": (HEAD.format("ascii", 1 << 60, FLOATS).encode(), "header has 'element vertex 115"),
    "a count of 10^14": (HEAD.format("ascii", 10**14, FLOATS).encode(), "ends before its 100,000,000,000,000"),
    "too many": (HEAD.format("binary_little_endian", 4, FLOATS).encode() + bytes(47), "ends before its 4 vertices"),
    "too few lines": (HEAD.format("ascii", 2, FLOATS).encode() + b"1 2 3.00000000000000000000\n", "ends before its 2"),
    "no z": (HEAD.format("ascii", 3, FLOATS.replace("z", "w")).encode(), "vertex has x, y, w, want numbers x, y, z"),
    "a list": (HEAD.format("ascii", 3, FLOATS + "property list uchar int i\n").encode(), "want numbers"),
    "twice": (HEAD.format("ascii", 3, FLOATS + "property float x\n").encode(), "header has 'property float x'"),
    "no number": (HEAD.format("ascii", 1, FLOATS).encode() + b"1 2 x\n", "vertex 0 is '1 2 x', want numbers"),
    "not finite": (HEAD.format("ascii", 1, FLOATS).encode() + b"1 2 nan\n", "not finite"),
    "infinite": (HEAD.format("binary_little_endian", 1, FLOATS).encode() + b"\0\0\x80\x7f" * 3, "not finite"),
}


@pytest.mark.parametrize("kind", BAD_PLY)
def test_a_ply_that_is_none_is_refused(kind, tmp_path):
    folder = write_transforms(tmp_path / "set", ply_file_path="a.ply")
    content, said = BAD_PLY[kind]
    (folder / "a.ply").write_bytes(content)
    refused(lambda: load(folder), "a.ply: ", said)


# Real data.


def test_the_fox_is_read():
    fox = require_shared("data/fox/transforms.json").parent
    train, test = (rm.load_views(fox, split, downscale=16) for split in ("train", "test"))
    assert (len(train), len(test)) == (43, 7)
    assert test.names == ("0001", "0012", "0027", "0042", "0073", "0089", "0110")
    assert train.cameras[0].lens == rm.Lens("opencv", (0.0578421, -0.0805099, 0, -0.000980296, 0.00015575))
    np.testing.assert_allclose(train.box, [[-2 / 0.33] * 3, [2 / 0.33] * 3])
