"""Law: views of one set may differ in size, orientation and mask; a smaller set has the same rays, and mean colours."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from sets import POSES, framed, random_image, write_colmap, write_set

import raymarch as rm
from raymarch import RaymarchError
from raymarch.io.image_sets.frames import Frame, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.read_options import ReadOptions
from raymarch.io.images import decode as decoder
from raymarch.io.images.decode import decode
from raymarch.io.images.header import Header
from raymarch.system.resources import workers
from raymarch.views.contents import require_contents
from raymarch.views.resize import shrink, shrink_mask

SIZES = [(8, 6), (5, 7), (9, 4)]


def camera(width, height, pose=POSES[0]):
    return rm.Camera(pose, (9.0, 10.0), (width / 2 + 0.25, height / 2 - 0.5), width, height)


def write_images(folder, sizes=SIZES, channels=3):
    """Frames of images of different sizes, their names with spaces."""
    folder.mkdir()
    frames = []
    for i, (width, height) in enumerate(sizes):
        file = folder / f"bild {i} é.png"
        Image.fromarray(random_image(channels, height, width, seed=i)).save(file)
        frames.append(Frame(file, lambda w, h, _, i=i: camera(w, h, POSES[i % 3])))
    return frames


def write_mask(path, mask):
    Image.fromarray(np.where(mask, 255, 0).astype(np.uint8)).save(path)
    return path


def mean_of_areas(image, width, height):
    """The mean under each new pixel, colours weighted by alpha, by way of a common multiple of both sizes."""
    rows, columns = image.shape[:2]
    fine = image.astype(float).repeat(height, 0).repeat(width, 1)
    if image.shape[2] == 4:
        fine[..., :3] *= fine[..., 3:] / 255
    mean = fine.reshape(height, rows, width, columns, -1).mean((1, 3))
    if image.shape[2] == 4:
        mean[..., :3] /= np.maximum(mean[..., 3:] / 255, 1e-9)
    return mean


def test_images_of_several_sizes_are_read(tmp_path):
    frames = write_images(tmp_path / "set")
    views = views_of_frames(frames, tmp_path / "set", tmp_path / "set")
    assert views.sizes == tuple(SIZES)
    assert not views.one_size
    assert views.pixels == sum(w * h for w, h in SIZES)
    assert "5 x 7 to 8 x 6" in repr(views)
    for i, (width, height) in enumerate(SIZES):
        np.testing.assert_array_equal(views.image(i), random_image(3, height, width, seed=i))
        np.testing.assert_array_equal(views.rgb(i), views.image(i).astype(np.float32) / 255)
    some = views[[2, 0]]
    assert some.sizes == (SIZES[2], SIZES[0])
    np.testing.assert_array_equal(some.image(1), views.image(0))
    assert views[1].one_size and views[1].images.shape == (1, 7, 5, 3)


def test_a_list_of_images_of_one_size_is_one_array():
    views = rm.Views([camera(8, 6)] * 2, [random_image(3), random_image(3, seed=1)])
    assert views.one_size and views.images.shape == (2, 6, 8, 3)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("size", [(5, 4), (3, 3), (10, 3), (1, 1), (7, 7)])
def test_a_smaller_image_is_the_mean_of_what_lies_under_its_pixels(channels, size):
    image = random_image(channels, 7, 10, seed=3)
    got = shrink(image, *size)
    assert got.shape == (size[1], size[0], channels)
    assert np.abs(got - mean_of_areas(image, *size)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (7, 5), (23, 24)])
def test_a_pixel_of_a_smaller_mask_counts_where_all_that_it_is_made_of_does(size):
    """Also where what does not is a little: one pixel of many, or a share of one that two new pixels cut through."""
    for row, column in ((5, 5), (0, 23), (13, 7)):
        mask = np.ones((24, 24), bool)
        mask[row, column] = False
        share = mean_of_areas(np.where(mask, 0, 1)[..., None], *size)[..., 0]
        np.testing.assert_array_equal(shrink_mask(mask, *size), share < 1e-9)


def test_what_nobody_sees_does_not_reach_the_edge():
    """A red half beside a hidden green one: the pixel across is red, half seen."""
    image = np.array([[[255, 0, 0, 255], [0, 255, 0, 0]]], np.uint8)
    np.testing.assert_array_equal(shrink(image, 1, 1), [[[255, 0, 0, 128]]])


@pytest.mark.parametrize("downscale", [1, 2, 1.5, 3.7])
def test_a_smaller_set_has_the_same_rays(tmp_path, downscale):
    """The corners of the image are where they were, whatever its size was rounded to."""
    frames = write_images(tmp_path / "set", [(8, 6), (11, 7)])
    large = views_of_frames(frames, tmp_path / "set", tmp_path / "set")
    small = views_of_frames(frames, tmp_path / "set", tmp_path / "set", ReadOptions(downscale=downscale))
    for i, (a, b) in enumerate(zip(large.cameras, small.cameras, strict=True)):
        assert (b.width, b.height) == tuple(round(Fraction(n) / Fraction(downscale)) for n in (a.width, a.height))
        for axis, (n, m) in enumerate([(a.width, b.width), (a.height, b.height)]):
            assert b.focal[axis] / m == pytest.approx(a.focal[axis] / n, rel=1e-12)
            assert b.principal[axis] / m == pytest.approx(a.principal[axis] / n, rel=1e-12)
        want = mean_of_areas(large.image(i), b.width, b.height)
        assert np.abs(small.image(i) - want).max() <= 0.5 + 1e-3
    assert small.downscale == downscale


def test_a_downscale_is_read_by_every_reader_and_kept(tmp_path):
    views = rm.load_views(write_set(tmp_path / "set"), downscale=2)
    assert views.images.shape == (3, 3, 4, 4)
    several = rm.load_views(write_colmap(tmp_path / "several"), downscale=2, holdout=5)
    assert (views.downscale, several.downscale, several.holdout) == (2, 2, 5)
    with pytest.raises(RaymarchError, match=r"r_0.png: image of 8 x 6 cannot be 20 times smaller"):
        rm.load_views(tmp_path / "set", downscale=20)


def test_a_reader_of_one_s_own_hears_of_what_was_asked_for_only():
    came = []

    def read(folder, split, **options):
        came.append(options)
        return rm.Views([camera(8, 6)], random_image(3)[None])

    own = rm.Reader("own", lambda folder: True, read)
    usual = {"follow_links": False, "for_fit": True}
    rm.load_views(".", reader=own)
    rm.load_views(".", reader=own, downscale=1, holdout=8)
    rm.load_views(".", reader=own, downscale=3, holdout=4)
    assert came == [usual, usual, {**usual, "downscale": 3, "holdout": 4}]


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tiff"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_orientation_is_applied_once(tmp_path, suffix, orientation):
    image, file = Image.fromarray(random_image(3, 6, 9)), tmp_path / f"turned.{suffix}"
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(file, exif=exif)
    with Image.open(file) as opened:
        want = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    seen = []
    views = views_of_frames([Frame(file, lambda *of: seen.append(of) or camera(*of[:2]))], tmp_path, tmp_path)
    width, height = (6, 9) if orientation > 4 else (9, 6)
    assert want.shape == (height, width, 3) and seen == [(width, height, orientation)]
    np.testing.assert_array_equal(views.image(0), want)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["L", "RGBA", "I;16"])
def test_a_tiff_that_is_not_packed_is_turned_as_any_other_image(mode, orientation, tmp_path):
    """Pillow would map its rows, by the width that it has once upright."""
    stored = np.random.default_rng(3).integers(0, 256, (6, 9, 4) if mode == "RGBA" else (6, 9), np.uint8)
    image = Image.fromarray(stored.astype(np.uint16) << 8 if mode == "I;16" else stored)
    exif = image.getexif()
    exif[0x0112] = orientation
    for suffix in ("png", "tiff"):
        image.save(tmp_path / f"turned.{suffix}", exif=exif)
    with Image.open(tmp_path / "turned.tiff") as opened:
        assert opened.mode == mode and len(opened.tile) == 1
    np.testing.assert_array_equal(*(decode([tmp_path / f"turned.{suffix}"]) for suffix in ("png", "tiff")))


def test_no_more_than_a_few_images_are_there_in_full(tmp_path, monkeypatch):
    """What is asked of the memory is the small images and those on their way, not all in full."""
    frames = write_images(tmp_path / "set", [(64, 48)] * 20)
    asked = []
    monkeypatch.setattr(
        decoder, "require_images", lambda what, pixels, cure, **how: asked.append((pixels, sum(how.values())))
    )
    decode([frame.file for frame in frames], [(8, 6)] * 20)
    ((pixels, needed),) = asked
    assert pixels == 20 * 48
    assert needed < 20 * 48 * 7 + workers() * 64 * 48 * 40


MASK = np.ones((6, 8), bool)
MASK[2:5, :3] = False


def test_a_mask_is_read_with_its_image(tmp_path, caplog):
    frames = write_images(tmp_path / "set")
    masks = [write_mask(tmp_path / "set" / "mask 0.png", MASK), None, tmp_path / "set" / "none.png"]
    frames = [frame._replace(mask=mask) for frame, mask in zip(frames, masks, strict=True)]
    views = views_of_frames(frames, tmp_path / "set", tmp_path / "set")
    np.testing.assert_array_equal(views.mask(0), MASK)
    assert views.mask(1) is None and views.mask(2) is None
    assert "1 masks are missing, all pixels of their images count (none.png)" in caplog.text
    small = views_of_frames(frames, tmp_path / "set", tmp_path / "set", ReadOptions(downscale=2))
    np.testing.assert_array_equal(small.mask(0), MASK.reshape(3, 2, 4, 2).all((1, 3)))
    assert views[[1, 2]].masks is None
    np.testing.assert_array_equal(views[[1, 0]].mask(1), MASK)


@pytest.mark.parametrize(
    ("black", "white", "mode"), [(0, 255, "L"), (0, 1, "L"), (12, 240, "L"), (0, 255, "RGB"), (0, 255, "1")]
)
def test_black_is_what_does_not_count(tmp_path, black, white, mode):
    path = tmp_path / "mask.png"
    Image.fromarray(np.where(MASK, white, black).astype(np.uint8)).convert(mode).save(path)
    np.testing.assert_array_equal(decoder.decode_mask(path, Header(8, 6, 3, 1, ()), (8, 6)), MASK)


def test_a_pixel_of_a_smaller_image_counts_if_all_that_is_under_it_does():
    mask = np.ones((1000, 1000), bool)
    mask[333, 777] = False
    assert np.argwhere(~shrink_mask(mask, 100, 100)).tolist() == [[33, 77]]


def test_a_mask_has_its_image_s_size(tmp_path):
    (frame,) = write_images(tmp_path / "set", [(8, 6)])
    for wrong in (MASK[:5], MASK.T):
        bad = frame._replace(mask=write_mask(tmp_path / "set" / "mask.png", wrong))
        with pytest.raises(RaymarchError, match=r"mask.png: mask is \d x \d but its image 8 x 6 pixels; resize it"):
            views_of_frames([bad], tmp_path / "set", tmp_path / "set")
    with pytest.raises(RaymarchError, match="view 000: mask is 6 x 8 but its image 8 x 6"):
        rm.Views([camera(8, 6)], random_image(3)[None], masks=[MASK.T])


def test_masks_that_mask_all_leave_nothing_to_fit(caplog):
    images = np.stack([random_image(3, seed=i) for i in range(2)])
    views = rm.Views([camera(8, 6)] * 2, images, masks=[~MASK & MASK, None])
    require_contents(views)
    with pytest.raises(RaymarchError, match=r"all 2 images of 8 x 6 are masked all over, so there is nothing to fit"):
        require_contents(replace(views, masks=[MASK & False] * 2))


@pytest.mark.parametrize("masks", [[MASK | True], [None], [MASK | True] * 3])
def test_masks_are_as_many_as_views_whatever_they_take_out(masks):
    with pytest.raises(rm.RaymarchError, match="masks of 2 views"):
        rm.Views([camera(8, 6)] * 2, np.stack([random_image(3), random_image(3)]), masks=masks)
    with pytest.raises(rm.RaymarchError, match="mask is 6 x 8 but its image 8 x 6"):
        rm.Views([camera(8, 6)], random_image(3)[None], masks=[MASK.T | True])


@pytest.mark.parametrize(
    ("split", "holdout", "want"),
    [
        ("train", 8, [1, 2, 3, 4, 5, 6, 7, 9]),
        ("test", 8, [0, 8]),
        ("val", 8, [0, 8]),
        ("all", 8, list(range(10))),
        ("test", 3, [0, 3, 6, 9]),
        ("train", 0, list(range(10))),
    ],
)
def test_every_so_many_th_is_held_out(split, holdout, want):
    assert select_split(10, ReadOptions(split, holdout=holdout), Path("set")) == want


def test_frames_are_held_out_in_the_order_of_their_names(tmp_path, caplog):
    frames = [Frame(Path(f"set/{name}.png"), camera) for name in "dbca"]
    assert [frame.file.stem for frame in select_split(frames, ReadOptions("test", holdout=2), tmp_path)] == ["a", "c"]
    assert [frame.file.stem for frame in select_split(frames, ReadOptions("train", holdout=2), tmp_path)] == ["b", "d"]
    assert "one view in 2 is held out for test, 2 of 4 (--holdout K, 0 for none)" in caplog.text


def test_frames_of_one_image_are_in_one_split(tmp_path, caplog):
    names = ["a", "b", "b", "./b", "c", "d"]
    frames = [Frame(Path(f"set/{name}.png"), camera) for name in names]
    for holdout in (1, 2, 3, 4):
        out = {frame.file.stem for frame in select_split(frames, ReadOptions("test", holdout=holdout), tmp_path)}
        rest = ReadOptions("train", holdout=holdout)
        left = set() if holdout == 1 else {frame.file.stem for frame in select_split(frames, rest, tmp_path)}
        assert not out & left and out | left == {"a", "b", "c", "d"}
    assert "2 frames list an image that another one lists" in caplog.text


@pytest.mark.parametrize(
    ("count", "split", "holdout", "said"),
    [
        (10, "dev", 8, "there is no split 'dev', it has train, test and all"),
        (1, "train", 8, "of 1 view one in 8 is held out, .* take the holdout 0, --holdout 0, or"),
        (5, "train", 1, "which leaves none for the split train"),
        (5, "test", 0, "none of 5 views is held out, which leaves none for the split test"),
    ],
)
def test_a_split_that_is_not_there_is_said(count, split, holdout, said):
    with pytest.raises(RaymarchError, match=said) as error:
        select_split(count, ReadOptions(split, holdout=holdout), Path("set"))
    assert "\n" not in str(error.value)


def test_a_set_of_several_sizes_has_cameras_of_each(tmp_path):
    """The angle of view is that of each image's own width."""
    folder = write_set(tmp_path / "set", 3, frames=framed())
    Image.fromarray(random_image(3, 12, 16)).save(folder / "train" / "r_1.png")
    views = rm.load_views(folder)
    assert views.sizes == ((8, 6), (16, 12), (8, 6))
    assert views.cameras[1].focal[0] == pytest.approx(2 * views.cameras[0].focal[0])
    assert json.loads((folder / "transforms_train.json").read_text())["camera_angle_x"] == 0.7
