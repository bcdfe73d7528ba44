"""Laws of photographs: copies are upright and nothing else is changed, who is left out is told why, no file is lost."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from PIL import Image, ImageOps

import raymarch as rm
from raymarch.io.files.strict import read_json
from raymarch.io.images.decode import read_headers
from raymarch.sfm import find_cameras, worker_process
from raymarch.sfm.find_cameras import RESULT_NAMES
from raymarch.sfm.photographs import ORIENTATION_TAG, copy_photographs

RNG = np.random.default_rng(0)
RESULT = {
    "world_from_sfm": np.diag([2.0, 2, 2, 1]).tolist(),
    "sfm_from_world": np.diag([0.5, 0.5, 0.5, 1]).tolist(),
    "up": "mean", "centre": "there", "points": 7, "error": 0.5, "attempts": [],
    "cameras": [{"model": "OPENCV", "width": 8, "height": 6, "params": [9.0]}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def anew():
    """Random numbers do not depend on which tests were before."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def photo(path, size=(8, 6), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)).save(path, **options)
    return path


def turned(way):
    exif = Image.Exif()
    exif[ORIENTATION_TAG] = way
    return exif


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for i in range(3):
        photo(folder / f"{i}.png")
    return folder


def finder(monkeypatch, seen=None, **changes):
    """`find_cameras` with a worker that finds the first photographs; `seen` gets its jobs."""

    def work(folder, job, show, until):
        names = sorted(name for group in job["groups"] for name in group)
        if seen is not None:
            seen.append(job)
        sparse = folder.parent / "set" / "sparse" / "0"
        sparse.mkdir(parents=True)
        (sparse / "cameras.bin").write_bytes(b"new")
        left = [{"name": name, "why": "matches no other photograph"} for name in names[3:]]
        return {**RESULT, "registered": names[:3], "left_out": left, **changes}

    monkeypatch.setattr(find_cameras, "require_pycolmap", lambda: None)
    monkeypatch.setattr(find_cameras, "run_worker", work)
    return rm.find_cameras


@pytest.mark.parametrize("way", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "jpg", "tiff", "webp"])
def test_copies_are_upright_for_who_applies_exif_and_for_who_does_not(suffix, way, tmp_path):
    folder = tmp_path / "photos"
    lossless = {"lossless": True} if suffix == "webp" else {"quality": 95} if suffix == "jpg" else {}
    folder.mkdir()
    y, x = np.mgrid[:6, :8]
    for i in range(3):  # smooth, as what JPEG loses of noise is a matter of luck
        pixels = np.stack([30 * x, 40 * y, 80 * i + 4 * x * y], -1).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.{suffix}", exif=turned(way), **lossless)
    kept, left_out = copy_photographs(folder, tmp_path / "set")
    assert len(kept) == 3 and not left_out
    for i, one in enumerate(kept):
        with Image.open(folder / f"{i}.{suffix}") as image:
            image.load()
            upright = np.asarray(ImageOps.exif_transpose(image), float)
        with Image.open(tmp_path / "set" / one.name) as copy:
            assert copy.getexif().get(ORIENTATION_TAG, 1) == 1 and copy.format in ("PNG", "JPEG", "TIFF")
            assert one.camera[:2] == copy.size
            np.testing.assert_allclose(np.asarray(copy, float), upright, atol=8 if suffix == "jpg" else 0)


@pytest.mark.parametrize("suffix", ["png", "jpg", "tiff", "webp"])
@pytest.mark.parametrize("way", [1, 6])
def test_the_copy_of_a_photograph_keeps_its_profile(way, suffix, tmp_path):
    """By which its colours are told, also where it is turned and written anew."""
    profile = bytes(16) + b"RGB " + bytes(108)
    for i in range(3):
        photo(tmp_path / "photos" / f"{i}.{suffix}", exif=turned(way), icc_profile=profile)
    kept, _ = copy_photographs(tmp_path / "photos", tmp_path / "set")
    for one in kept:
        with Image.open(tmp_path / "set" / one.name) as copy:
            assert copy.info["icc_profile"] == profile


@pytest.mark.parametrize("way", range(2, 9))
def test_the_copy_of_a_grey_tiff_that_lies_sideways_is_upright_in_all_its_bits(way, tmp_path):
    """Pillow would map its rows, by the width that it has once upright."""
    images = [Image.fromarray(RNG.integers(0, 1 << 16, (6, 9), dtype=np.uint16)) for _ in range(3)]
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(images):
        image.save(tmp_path / "photos" / f"{i}.tif", exif=turned(way))
        image.getexif().update(turned(way))
    kept, left_out = copy_photographs(tmp_path / "photos", tmp_path / "set")
    assert len(kept) == 3 and not left_out
    for one, image in zip(kept, images, strict=True):
        with Image.open(tmp_path / "set" / one.name) as copy:
            np.testing.assert_array_equal(np.asarray(copy), np.asarray(ImageOps.exif_transpose(image)))


def test_upright_files_are_copied_byte_by_byte_with_their_folders(tmp_path):
    folder = tmp_path / "photos"
    files = [photo(folder / name) for name in ("a b.jpg", "left/1.JPG", "left/é.png")]
    photo(folder / ".hidden" / "1.png"), photo(folder / "._1.png")
    kept, left_out = copy_photographs(folder, tmp_path / "set")
    assert {one.name for one in kept} == {"a b.jpg", "left/1.JPG", "left/é.png"} and not left_out
    for file in files:
        assert (tmp_path / "set" / file.relative_to(folder)).read_bytes() == file.read_bytes()


def test_a_jpeg_with_its_preview_behind_it_is_a_jpeg(tmp_path):
    """Which Pillow calls MPO, as most cameras and telephones write them."""
    large, small = (Image.fromarray(RNG.integers(0, 255, (n, n, 3), dtype=np.uint8)) for n in (16, 8))
    (tmp_path / "in").mkdir()
    large.save(tmp_path / "in" / "a.jpg", "MPO", save_all=True, append_images=[small])
    photo(tmp_path / "in" / "b.jpg")
    photo(tmp_path / "in" / "c.jpg")
    with Image.open(tmp_path / "in" / "a.jpg") as image:
        assert image.format == "MPO"
    copy_photographs(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out" / "a.jpg").read_bytes() == (tmp_path / "in" / "a.jpg").read_bytes()


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


def bomb(path):
    Image.new("1", (9000, 9000)).save(path)


SPOILT = {
    "cut off": (cut, "unreadable"),
    "empty": (lambda path: path.write_bytes(b""), "unreadable"),
    "text": (lambda path: path.write_text("<html>"), "unreadable"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), None),
    "too large": (bomb, "too large: 9000 x 9000"),
    "a dead link": (lambda path: (path.unlink(), path.symlink_to("none.png")), "unreadable"),
    "a link in a circle": (lambda path: (path.unlink(), path.symlink_to(path.name)), "unreadable"),
    "a link outside": (lambda path: (path.unlink(), path.symlink_to(path.parents[1] / "secret.png")), "leads out"),
    "no photograph": (lambda path: path.rename(path.with_suffix(".heic")), ".heic is not read"),
    "twice there": (lambda path: path.write_bytes((path.parent / "0.png").read_bytes()), "the same picture as 0.png"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_photograph_is_left_out_and_told_why(what, photos, tmp_path):
    photo(tmp_path / "secret.png")
    photo(photos / "9.png")
    spoil, why = SPOILT[what]
    spoil(photos / "9.png")
    kept, left_out = copy_photographs(photos, tmp_path / "set")
    assert [one.name for one in kept] == ["0.png", "1.png", "2.png"]
    assert [why in one.why for one in left_out] == ([True] if why else [])
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == ["0.png", "1.png", "2.png"]


def test_links_are_followed_where_asked(photos, tmp_path):
    (photos / "9.png").symlink_to(photo(tmp_path / "other.png"))
    assert len(copy_photographs(photos, tmp_path / "set", follow_links=True)[0]) == 4


def with_alpha(path, lowest, mode="RGBA", **options):
    """A photograph whose alpha is opaque but for its first pixel."""
    pixels = RNG.integers(0, 255, (6, 8, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    pixels[0, 0, 3] = lowest
    image = Image.fromarray(pixels)
    if mode == "P":
        image = image.convert("RGB").quantize(16)
        image.info["transparency"] = bytes([255] * 15 + [lowest])
    image.convert(mode).save(path, **options)
    return path


def without(image):
    return np.asarray(image.convert("RGBA"))[..., :3]


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("RGBA", "png"), ("RGBA", "tiff"), ("LA", "png"), ("LA", "tiff"), ("P", "png")],
)
def test_alpha_that_is_opaque_is_dropped_where_other_photographs_have_none(mode, suffix, photos, tmp_path):
    """Or the set that is written could not be read: no set has images with alpha and without."""
    file = with_alpha(photos / f"9.{suffix}", 255, mode)
    kept, left_out = copy_photographs(photos, tmp_path / "set")
    assert len(kept) == 4 and not left_out
    assert {one.channels for one in read_headers([tmp_path / "set" / one.name for one in kept])} == {3}
    with Image.open(file) as image, Image.open(tmp_path / "set" / kept[3].name) as copy:
        np.testing.assert_array_equal(without(copy), without(image))


@pytest.mark.parametrize("suffix", ["png", "tiff"])
@pytest.mark.parametrize(("mode", "plain"), [("RGBA", "RGB"), ("LA", "L")])
def test_a_photograph_that_loses_its_alpha_keeps_the_colours_that_its_profile_is_of(
    mode, plain, suffix, photos, tmp_path
):
    profile = bytes(16) + (b"RGB " if plain == "RGB" else b"GRAY") + bytes(108)
    with_alpha(photos / f"9.{suffix}", 255, mode, icc_profile=profile)
    kept, _ = copy_photographs(photos, tmp_path / "set")
    with Image.open(tmp_path / "set" / kept[3].name) as copy:
        assert (copy.mode, copy.info["icc_profile"]) == (plain, profile)


def test_the_time_limit_holds_while_alpha_is_looked_at_too(photos, tmp_path):
    for i in range(2):
        with_alpha(photos / f"a{i}.png", 255)
    seen = []
    copy_photographs(photos, tmp_path / "set", show=lambda *told: seen.append(told))
    assert seen[:5] == [("photographs", i, 5) for i in range(1, 6)]
    assert [told[1:] for told in seen[5:]] == [(1, 2), (2, 2)] * 2
    for last in seen:

        def stop(*told, last=last):
            if told == last:
                raise rm.RaymarchError("time is over")

        with pytest.raises(rm.RaymarchError, match="time is over"):
            copy_photographs(photos, tmp_path / "again", show=stop)


def test_alpha_stays_where_all_photographs_have_it(tmp_path):
    (tmp_path / "photos").mkdir()
    files = [with_alpha(tmp_path / "photos" / f"{i}.png", alpha) for i, alpha in enumerate((255, 255, 9))]
    kept, left_out = copy_photographs(tmp_path / "photos", tmp_path / "set")
    assert len(kept) == 3 and not left_out
    for file in files:
        assert (tmp_path / "set" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("sheer", [1, 5])
def test_the_fewer_of_photographs_with_transparent_pixels_and_without_alpha_are_left_out(sheer, photos, tmp_path):
    names = [with_alpha(photos / f"a{i}.png", 9).name for i in range(sheer)]
    opaque = with_alpha(photos / "opaque.png", 255).name
    kept, left_out = copy_photographs(photos, tmp_path / "set")
    plain = ["0.png", "1.png", "2.png"]
    assert {one.name for one in kept} == {*(plain if sheer == 1 else names), opaque}
    assert {one.name for one in left_out} == set(names if sheer == 1 else plain)
    assert all("have" in one.why and "; give alpha to all, or to none" in one.why for one in left_out)
    files = sorted((tmp_path / "set").iterdir())
    assert [file.name for file in files] == sorted(one.name for one in kept)
    assert {one.channels for one in read_headers(files)} == {3 if sheer == 1 else 4}


def missing(folder):
    return folder / "none"


def two(folder):
    (folder / "2.png").unlink()
    return folder


def nothing(folder):
    (folder / "in").mkdir()
    return folder / "in"


def damaged(folder):
    cut(folder / "2.png")
    return folder


def lone(folder):
    return folder / "0.png"


def flat_copies(folder):
    for i in (1, 2):
        (folder / f"{i}.png").write_bytes((folder / "0.png").read_bytes())
    return folder


@pytest.mark.parametrize(
    ("spoil", "out", "said"),
    [
        (missing, "set", "no such folder"),
        (two, "set", "has 2 photographs, want 3 or more"),
        (nothing, "set", "has no photographs"),
        (damaged, "set", "2 of 3 photographs can be used (2.png: unreadable"),
        (flat_copies, "set", "1 of 3 photographs can be used (1.png: the same picture as 0.png"),
        (lone, "set", "is a file, want a folder of photographs, or a video"),
        (lambda folder: folder, "photos/set", "lies in the photographs' folder"),
        (lambda folder: folder, "photos", "lies in the photographs' folder"),
        (lambda folder: folder, ".", "holds the photographs themselves"),
        (lambda folder: folder, "none/set", "there is no folder"),
        (lambda folder: folder, "file", "is a file, want the name of a folder"),
        (lambda folder: folder, "full", "is there already"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_touched(spoil, out, said, photos, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    source = spoil(photos)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(rm.RaymarchError) as caught:
        finder(monkeypatch)(source, tmp_path / out)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_set_and_its_record_are_written(photos, tmp_path, monkeypatch):
    photo(photos / "3.png"), cut(photo(photos / "4.png"))
    found = finder(monkeypatch)(photos, tmp_path / "set", seed=5)
    assert found.registered == ("0.png", "1.png", "2.png") and found.photos == 5
    assert [one.name for one in found.left_out] == ["3.png", "4.png"]
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == sorted(RESULT_NAMES)
    assert sorted(p.name for p in (tmp_path / "set/images").iterdir()) == list(found.registered)
    told = read_json(tmp_path / "set/cameras.json")
    assert told["registered"] == 3 and told["settings"]["seed"] == 5
    np.testing.assert_allclose(np.array(told["world_from_sfm"]) @ told["sfm_from_world"], np.eye(4))
    assert set(found.record()) >= {"registered", "photos", "left_out", "seconds", "model", "error"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["photos", "set"]


def test_an_older_set_is_replaced_where_asked_and_what_is_beside_it_stays(photos, tmp_path, monkeypatch):
    call = finder(monkeypatch)
    call(photos, tmp_path / "set")
    (tmp_path / "set" / "statue.h5").write_text("mine")
    (tmp_path / "set/sparse/0/old.bin").write_text("old")
    with pytest.raises(rm.RaymarchError, match="is there already"):
        call(photos, tmp_path / "set")
    call(photos, tmp_path / "set", overwrite=True)
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == sorted([*RESULT_NAMES, "statue.h5"])
    assert [p.name for p in (tmp_path / "set/sparse/0").iterdir()] == ["cameras.bin"]


def test_a_folder_of_somebody_else_is_not_replaced_even_where_asked(photos, tmp_path, monkeypatch):
    (tmp_path / "home/images").mkdir(parents=True)
    with pytest.raises(rm.RaymarchError, match="is no image set that raymarch cameras wrote"):
        finder(monkeypatch)(photos, tmp_path / "home", overwrite=True)
    assert (tmp_path / "home/images").is_dir()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), rm.RaymarchError("no"), OSError(28, "No space left on device")])
def test_nothing_is_left_of_what_is_interrupted(error, photos, tmp_path, monkeypatch):
    def fail(*_):
        raise error

    call = finder(monkeypatch)
    monkeypatch.setattr(find_cameras, "run_worker", fail)
    with pytest.raises((KeyboardInterrupt, rm.RaymarchError)):
        call(photos, tmp_path / "set")
    assert [p.name for p in tmp_path.iterdir()] == ["photos"]


@pytest.mark.parametrize(
    ("settings", "names", "groups"),
    [
        ({}, ["a.png", "b.png", "c.png"], 1),
        ({"camera": "each"}, ["a.png", "b.png", "c.png"], 3),
        ({"camera": "folder"}, ["l/a.png", "l/b.png", "r/a.png"], 2),
        ({"camera": "one"}, ["l/a.png", "l/b.png", "r/a.png"], 1),
    ],
)
def test_who_shares_a_camera(settings, names, groups, tmp_path, monkeypatch):
    jobs = []
    for name in names:
        photo(tmp_path / "photos" / name)
    finder(monkeypatch, jobs)(tmp_path / "photos", tmp_path / "set", **settings)
    assert len(jobs[0]["groups"]) == groups and jobs[0]["matching"] == "exhaustive"


def test_photographs_of_two_sizes_have_two_cameras(photos, tmp_path, monkeypatch):
    jobs = []
    photo(photos / "wide.png", (10, 6))
    finder(monkeypatch, jobs)(photos, tmp_path / "set", camera="one")
    assert sorted(map(len, jobs[0]["groups"])) == [1, 3]


def test_many_photographs_are_compared_with_their_neighbours(photos, tmp_path, monkeypatch):
    jobs = []
    monkeypatch.setattr(find_cameras, "MAX_EXHAUSTIVE", 2)
    call = finder(monkeypatch, jobs)
    call(photos, tmp_path / "set")
    call(photos, tmp_path / "other", matching="exhaustive", threads=1, lens="opencv")
    assert [job["matching"] for job in jobs] == ["sequential", "exhaustive"]
    assert (jobs[1]["threads"], jobs[1]["model"], jobs[1]["lens_from"]) == (1, "OPENCV", 0)


def test_a_missing_extra_is_named(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(rm.RaymarchError, match=r'pip install "raymarch\[sfm\]"'):
        rm.find_cameras(photos, tmp_path / "set")


def test_an_old_pycolmap_is_refused(monkeypatch):
    monkeypatch.setattr(worker_process.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(worker_process.importlib.metadata, "version", lambda name: "4.1.0")
    with pytest.raises(rm.RaymarchError, match=r"pycolmap is 4\.1\.0, want 4\.1\.1"):
        worker_process.require_pycolmap()


def test_videos_name_their_extra(tmp_path, monkeypatch):
    (tmp_path / "walk.mp4").write_bytes(b"")
    monkeypatch.setattr(find_cameras, "require_pycolmap", lambda: None)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(rm.RaymarchError, match=r'pip install "raymarch\[video\]"'):
        rm.find_cameras(tmp_path / "walk.mp4", tmp_path / "set")


def test_fitting_photographs_without_cameras_says_what_finds_them(photos):
    with pytest.raises(rm.RaymarchError, match="raymarch cameras PHOTOS --out SET"):
        rm.load_views(photos)


def test_time_counts_while_photographs_are_copied_too(photos, tmp_path, monkeypatch):
    finder(monkeypatch)
    with pytest.raises(rm.RaymarchError, match="time is over at [12] of 3 photographs; give more seconds"):
        rm.find_cameras(photos, tmp_path / "set", seconds=1, show=lambda *_: time.sleep(1.01))
    assert not (tmp_path / "set").exists()
