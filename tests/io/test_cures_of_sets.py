"""Law of messages about image sets: a mistake is made, its message says what to do, that is done, and the set is read.

Each case is a mistake in a set that was right, what the message must say, and the cure as the message has it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import layouts
import numpy as np
import pytest
from layouts import alike, centred, known
from PIL import Image
from sets import POSES, random_image, write_colmap, write_set, write_transforms

import raymarch as rm
from raymarch.diagnosis.read_set import read_set

NOTHING: Callable[[Path], object] = lambda folder: None  # noqa: E731


class Case(NamedTuple):
    """A mistake: how the set is written, what is done to it, what the message must have, and what it says to do."""

    write: Callable[[Path], object]
    spoil: Callable[[Path], object]
    said: tuple[str, ...]
    cure: Callable[[Path], object]
    how: Mapping = MappingProxyType({})  # what the cure adds to the call


def edit(name="transforms.json", **changes):
    """Keys of the file, None removing one."""

    def change(folder):
        document = json.loads((folder / name).read_text())
        document = {key: value for key, value in {**document, **changes}.items() if value is not None}
        (folder / name).write_text(json.dumps(document))

    return change


def frame(i, name="transforms.json", **changes):
    """Keys of a frame, None removing one."""

    def change(folder):
        document = json.loads((folder / name).read_text())
        document["frames"][i] = {k: v for k, v in {**document["frames"][i], **changes}.items() if v is not None}
        (folder / name).write_text(json.dumps(document))

    return change


def text(name, old, new):
    def change(folder):
        content = (folder / name).read_text()
        assert old in content
        (folder / name).write_text(content.replace(old, new))

    return change


def image(name, *args, **how):
    return lambda folder: Image.fromarray(random_image(*args, **how)).save(folder / name)


def removed(name):
    return lambda folder: shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()


def moved(old, new):
    def move(folder):
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        (folder / old).rename(folder / new)

    return move


def content(name, data):
    def put(folder):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return put


def both(*several):
    return lambda folder: [one(folder) for one in several]


def set_of(writer, cameras, **how):
    def write(folder):
        folder.mkdir(parents=True)
        writer(folder, cameras, **how)

    return write


def foreign(suffix, data):
    """A set whose three images are of another format."""
    names = [f"r_{i}.{suffix}" for i in range(3)]

    def write(folder):
        write_transforms(folder)
        for i, name in enumerate(names):
            (folder / f"images/r_{i}.png").rename(folder / "images" / f"kept_{i}")
            (folder / "images" / name).write_bytes(data)
            frame(i, file_path=f"images/{name}")(folder)

    return write


def converted(folder):
    """What the message says: PNG files of the same names beside those that are not read."""
    for i in range(3):
        (folder / "images" / f"kept_{i}").rename(folder / f"images/r_{i}.png")


OF_OTHERS = {  # suffix, first bytes, what it is said to be
    "exr": (b"\x76\x2f\x31\x01" + bytes(60), "an OpenEXR image"),
    "hdr": (b"#?RADIANCE\n" + bytes(60), "a Radiance image"),
    "jp2": (b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(60), "a JPEG 2000 image"),
    "j2k": (b"\xff\x4f\xff\x51" + bytes(60), "a JPEG 2000 image"),
    "jxl": (b"\xff\x0a" + bytes(60), "a JPEG XL image"),
    "avif": (b"\0\0\0\x1cftypavif" + bytes(60), "an AVIF image"),
    "heic": (b"\0\0\0\x18ftypheic" + bytes(60), "a HEIC image"),
    "heif": (b"\0\0\0\x18ftypmif1" + bytes(60), "a HEIC image"),
    "cr2": (b"II*\0\x10\0\0\0CR\x02\0" + bytes(60), "a camera's raw file"),
    "cr3": (b"\0\0\0\x18ftypcrx " + bytes(60), "a camera's raw file"),
    "nef": (b"MM\0*" + bytes(60), ".nef is not read"),
    "raf": (b"FUJIFILMCCD-RAW " + bytes(60), "a camera's raw file"),
    "psd": (b"8BPS\0\x01" + bytes(60), "a Photoshop file"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing"),
    "pdf": (b"%PDF-1.7" + bytes(60), "a PDF"),
    "gif": (b"GIF89a" + bytes(60), "a GIF image"),
    "ppm": (b"P6\n8 6\n255\n" + bytes(144), "a Netpbm image"),
    "pfm": (b"PF\n8 6\n-1.0\n" + bytes(60), "a floating-point image"),
    "tga": (bytes(64), ".tga is not read"),
    "dds": (b"DDS |" + bytes(60), "a DirectDraw image"),
}

CASES = {
    **{
        suffix: Case(foreign(suffix, data), NOTHING, (what, f"r_0.{suffix}", "as are 2 others of 3", "PNG"), converted)
        for suffix, (data, what) in OF_OTHERS.items()
    },
    "a video": Case(
        write_transforms,
        content("images/r_1.png", b"\0\0\0\x20ftypisom" + bytes(60)),
        ("r_1.png", "a video", "take its frames out"),
        image("images/r_1.png", 3),
    ),
    "EXR in a PNG's name": Case(
        write_transforms,
        content("images/r_1.png", b"\x76\x2f\x31\x01" + bytes(60)),
        ("an OpenEXR image", "convert it to a PNG of 8 or 16 bit in its place"),
        image("images/r_1.png", 3),
    ),
    "empty image": Case(
        write_transforms,
        content("images/r_1.png", b""),
        ("r_1.png", "is empty", "export it again or take its frame out"),
        image("images/r_1.png", 3),
    ),
    "damaged image": Case(
        write_transforms,
        lambda folder: content("images/r_1.png", (folder / "images/r_1.png").read_bytes()[:-40])(folder),
        ("r_1.png: image is damaged", "export it again"),
        image("images/r_1.png", 3),
    ),
    "one without alpha": Case(
        lambda folder: write_transforms(folder, 4),
        image("images/r_1.png", 3),
        ("r_1.png: image has no alpha but r_0.png has alpha", "1 of 3 have no alpha: r_1.png", "give it the alpha"),
        image("images/r_1.png", 4),
    ),
    "the first without alpha": Case(
        lambda folder: write_transforms(folder, 4),
        image("images/r_0.png", 3),
        ("r_0.png: image has no alpha", "1 of 3 have no alpha: r_0.png"),
        image("images/r_0.png", 4),
    ),
    "the last with alpha": Case(
        write_transforms,
        image("images/r_2.png", 4),
        ("r_2.png: image has alpha but", "1 of 3 have alpha: r_2.png", "save it without alpha"),
        image("images/r_2.png", 3),
    ),
    "all missing": Case(
        write_transforms,
        moved("images", "elsewhere"),
        ("all 3 images are missing", "there is no folder"),
        moved("elsewhere", "images"),
    ),
    "turned": Case(
        write_transforms,
        image("images/r_1.png", 3, 8, 6),
        ("r_1", "another shape", "turn the image by a quarter"),
        image("images/r_1.png", 3),
    ),
    "another shape": Case(
        write_transforms,
        image("images/r_1.png", 3, 6, 16),
        ("r_1", "another shape", "resize the image"),
        image("images/r_1.png", 3),
    ),
    "mask of another size": Case(
        lambda folder: (write_transforms(folder), frame(1, mask_path="m.png")(folder)),
        image("m.png", 3, 9, 9),
        ("m.png: mask is 9 x 9 but its image 8 x 6 pixels", "resize it"),
        image("m.png", 3),
    ),
    "alpha of another size": Case(
        write_transforms,
        image("images/r_1.alpha.png", 3, 9, 9),
        ("r_1.alpha.png: is not of the size of r_1.png", "resize it"),
        image("images/r_1.alpha.png", 3),
    ),
    "UTF-16": Case(
        write_transforms,
        lambda folder: (folder / "transforms.json").write_bytes(
            (folder / "transforms.json").read_text().encode("utf-16")
        ),
        ("looks like UTF-16", "save it as UTF-8"),
        lambda folder: (folder / "transforms.json").write_text(
            (folder / "transforms.json").read_bytes().decode("utf-16")
        ),
    ),
    "no pose": Case(
        write_transforms,
        frame(1, transform_matrix=None),
        ("frame 1", "transform_matrix is missing", "export it again"),
        frame(1, transform_matrix=POSES[1].tolist()),
    ),
    "no focal": Case(write_transforms, edit(fl_x=None), ("camera_angle_x is missing", "fl_x"), edit(fl_x=9.5)),
    "degrees": Case(
        write_transforms,
        edit(fl_x=None, camera_angle_x=45.0),
        ("camera_angle_x is 45 rad", "if it is in degrees, 0.7854"),
        edit(camera_angle_x=0.7854),
    ),
    "shares": Case(
        lambda folder: (write_transforms(folder), edit(w=8000, h=6000)(folder)),
        edit(fl_x=1.2),
        ("is it a share of the width?", "want pixels"),
        edit(fl_x=1.2 * 8000),
    ),
    "a lens that is not read": Case(
        write_transforms, edit(k5=0.1), ("k5 is 0.1", "undistort the images"), edit(k5=None)
    ),
    "another lens": Case(
        write_transforms,
        edit(camera_model="FISHEYE624"),
        ("camera_model is 'FISHEYE624'", "undistort"),
        edit(camera_model="PINHOLE"),
    ),
    "p1 of a fisheye": Case(
        write_transforms,
        edit(camera_model="OPENCV_FISHEYE", p1=0.1),
        ("a fisheye lens with p1, p2", "undistort"),
        edit(p1=None),
    ),
    "out of the set": Case(
        lambda folder: (write_transforms(folder), content("../out.png", b"")(folder), image("../out.png", 3)(folder)),
        frame(1, file_path="../out.png"),
        ("leads out of", "copy the file into it"),
        both(moved("../out.png", "out.png"), frame(1, file_path="out.png")),
    ),
    "absolute": Case(
        write_transforms,
        frame(1, file_path="/data/someone/else/x.png"),
        ("is absolute", "copy the file into it, and shorten the path"),
        both(image("x.png", 3), frame(1, file_path="x.png")),
    ),
    "a link": Case(
        write_transforms,
        both(moved("images/r_1.png", "../r_1.png"), lambda f: (f / "images/r_1.png").symlink_to(f / "../r_1.png")),
        ("leads out of", "by a link", "follow_links=True"),
        NOTHING,
        {"follow_links": True},
    ),
    "a URL": Case(
        write_transforms,
        frame(1, file_path="https://example.com/r_1.png"),
        ("is a URL", "download it there"),
        frame(1, file_path="images/r_1.png"),
    ),
    "no such split": Case(
        write_set,
        NOTHING,
        ("there is no transforms_test.json, it has the splits train", "choose or add one"),
        lambda folder: shutil.copy(folder / "transforms_train.json", folder / "transforms_test.json"),
        {"split": "test"},
    ),
    "nothing left": Case(
        lambda folder: write_transforms(folder, names=("r_0.png",)),
        NOTHING,
        ("leaves none for the split train", "--holdout 0,"),
        NOTHING,
        {"split": "train", "holdout": 0},
    ),
    "COLMAP without images": Case(
        write_colmap,
        moved("images", "../aside"),
        ("none of its 3 images", "want them in", "put them there"),
        moved("../aside", "images"),
    ),
    "COLMAP's camera left out": Case(
        write_colmap,
        text("sparse/0/images.txt", "3 7 r_0", "3 8 r_0"),
        ("has camera 8, which is not among the cameras", "export both again"),
        text("sparse/0/images.txt", "3 8 r_0", "3 7 r_0"),
    ),
    "COLMAP's model of lenses": Case(
        write_colmap,
        text("sparse/0/cameras.txt", "OPENCV 8 6", "EUCM 8 6"),
        ("camera model 'EUCM' is not read", "undistort the images"),
        lambda folder: (folder / "sparse/0/cameras.txt").write_text("7 PINHOLE 8 6 9.5 9 4.2 2.9\n"),
    ),
    "LLFF's count": Case(
        set_of(layouts.llff, centred(alike(known()))),
        moved("images/im 03.png", "../im 03.png"),
        ("has 9 poses but", "8 images", "put back the images"),
        moved("../im 03.png", "images/im 03.png"),
    ),
    "LLFF's folder": Case(
        set_of(layouts.llff, centred(alike(known()))),
        moved("images", "photos"),
        ("has neither images nor images_4", "put the images that were posed there"),
        moved("photos", "images"),
    ),
    "DTU's masks": Case(
        set_of(layouts.dtu, known()),
        moved("mask/000.png", "../000.png"),
        ("has 9 cameras but", "8 masks", "put back what is missing"),
        moved("../000.png", "mask/000.png"),
    ),
    "Record3D's count": Case(
        set_of(layouts.record3d, known()),
        moved("rgb/3.png", "../3.png"),
        ("has 9 poses but", "put back what is missing"),
        moved("../3.png", "rgb/3.png"),
    ),
    "Middlebury's tables": Case(
        set_of(layouts.middlebury, known()),
        lambda folder: shutil.copy(folder / "temple_par.txt", folder / "other_par.txt"),
        ("has 2 tables", "choose one, move the others"),
        moved("other_par.txt", "../other_par.txt"),
    ),
    "Metashape's files": Case(
        set_of(layouts.metashape, known()),
        lambda folder: shutil.copy(folder / "cameras.xml", folder / "other.xml"),
        ("looks like|has 2 XML files", ""),
        moved("other.xml", "../other.xml"),
    ),
    "Metashape not aligned": Case(
        set_of(layouts.metashape, known()),
        both(
            lambda folder: shutil.copy(folder / "cameras.xml", folder / "../kept.xml"),
            lambda folder: (folder / "cameras.xml").write_text(
                (folder / "cameras.xml").read_text().replace("<transform>", "<t>").replace("</transform>", "</t>")
            ),
        ),
        ("none of 10 cameras is aligned", "align them"),
        moved("../kept.xml", "cameras.xml"),
    ),
    "RealityCapture's column": Case(
        set_of(layouts.realitycapture, alike(known())),
        text("cameras.csv", "heading,pitch", "heading,heading"),
        ("has not each once: heading, pitch|looks like", ""),
        text("cameras.csv", "heading,heading", "heading,pitch"),
    ),
    "photographs alone": Case(
        lambda folder: layouts.draw(folder / "a.png", 0, (8, 6)),
        NOTHING,
        ("looks like a folder with photographs, which has no cameras", "raymarch cameras PHOTOS --out SET"),
        lambda folder: (folder.rename(folder.with_name("photos")), write_transforms(folder)),
    ),
    "a folder too deep": Case(
        write_transforms,
        moved("../set", "../outer/set"),
        ("looks like a folder of image sets", "one of the folders"),
        lambda folder: (folder / "set").rename(folder.with_name("inner")),
    ),
}
CASES["a folder too deep"] = Case(
    lambda folder: write_transforms(folder / "inner"),
    NOTHING,
    ("looks like a folder of image sets", "want one of the folders in it"),
    lambda folder: (folder.rename(folder.with_name("outer")), (folder.with_name("outer") / "inner").rename(folder)),
)


def made(case, tmp_path):
    folder = tmp_path / "set"
    case.write(folder)
    case.spoil(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_cure_of_a_message_cures(name, tmp_path):
    case = CASES[name]
    folder, split = made(case, tmp_path), case.how.get("split", "all")
    with pytest.raises(rm.RaymarchError) as caught:
        rm.load_views(folder, "train" if "Split" in name else split)
    message = str(caught.value)
    assert "\n" not in message
    for said in case.said:
        assert any(part in message for part in said.split("|")), message
    case.cure(folder)
    views = rm.load_views(folder, **{"split": split, **case.how})
    assert len(views) >= 1


@pytest.mark.parametrize("name", CASES)
def test_doctor_says_the_same_as_an_error(name, tmp_path):
    """What keeps a fit from being made is an error there, with the same cure."""
    case = CASES[name]
    split = case.how.get("split")
    _, findings = read_set(made(case, tmp_path), split or "all")
    wrong = [each for each in findings if each.severity == "error"]
    assert wrong, findings
    told = " ".join(f"{each.message}; {each.cure}" for each in wrong)
    assert any(part in told for part in case.said[0].split("|")), told


# A file that is there is never said to be missing.


@pytest.mark.parametrize("suffix", OF_OTHERS)
def test_the_message_about_missing_files_names_none_that_is_there(suffix, tmp_path):
    folder = tmp_path / "set"
    foreign(suffix, OF_OTHERS[suffix][0])(folder)
    with pytest.raises(rm.RaymarchError) as caught:
        rm.load_views(folder, "all")
    told = str(caught.value).replace(str(tmp_path), "")
    assert "missing" not in told and "are 2 others of 3 images" in told


def test_real_pictures_of_pillow_s_formats_are_read_once_converted(tmp_path):
    """The cure with true files, of those formats that this Pillow writes."""
    for suffix in ("jp2", "avif", "gif", "ppm", "tga", "dds"):
        folder = write_transforms(tmp_path / suffix)
        for i in range(3):
            try:
                with Image.open(folder / f"images/r_{i}.png") as picture:
                    picture.save(folder / f"images/r_{i}.{suffix}")
            except (OSError, KeyError, ValueError):  # a Pillow without that codec
                (folder / f"images/r_{i}.{suffix}").write_bytes(OF_OTHERS[suffix][0])
            (folder / f"images/r_{i}.png").unlink()
            frame(i, file_path=f"images/r_{i}.{suffix}")(folder)
        with pytest.raises(rm.RaymarchError, match="is no readable image.*convert it to a PNG"):
            rm.load_views(folder, "all")
        for i in range(3):
            image(f"images/r_{i}.png", 3, seed=i)(folder)
        assert len(rm.load_views(folder, "all")) == 3


def test_the_small_picture_in_a_raw_file_is_not_taken_for_the_photograph(tmp_path):
    folder = write_transforms(tmp_path / "set")
    for i, tags in enumerate(({0xC612: b"\1\4\0\0"}, {})):
        name = f"images/r_{i}.{'tif' if tags else 'dng'}"
        Image.fromarray(random_image(3)).save(folder / name, format="TIFF", tiffinfo=tags)
        (folder / f"images/r_{i}.png").unlink()
        frame(i, file_path=name)(folder)
        with pytest.raises(rm.RaymarchError, match="a camera's raw file; develop it"):
            rm.load_views(folder, "all")
        image(f"images/r_{i}.png", 3)(folder)
        frame(i, file_path=f"images/r_{i}.png")(folder)


# Names that are spelt otherwise than the files.

SPELT = {
    "capitals": ("images/R_1.PNG", "images/r_1.png"),
    "capitals of the folder": ("Images/r_1.png", "images/r_1.png"),
    "backslashes": (".\\images\\r_1.png", "images/r_1.png"),
    "a dot": ("./images/./r_1.png", "images/r_1.png"),
    "of another machine": ("/data/someone/data/set/images/r_1.png", "images/r_1.png"),
    "of another machine, Windows": ("D:\\sets\\x\\set\\images\\r_1.png", "images/r_1.png"),
    "percent": ("images/r%20_%231.png", "images/r _#1.png"),
    "a trailing space": ("images/r_1.png ", "images/r_1.png"),
    "NFD": (unicodedata.normalize("NFD", "images/ré_1.png"), unicodedata.normalize("NFC", "images/ré_1.png")),
    "NFC": (unicodedata.normalize("NFC", "images/ré_1.png"), unicodedata.normalize("NFD", "images/ré_1.png")),
    "a real percent": ("images/r%20_1.png", "images/r%20_1.png"),
    "no suffix": ("images/r_1", "images/r_1.png"),
}


@pytest.mark.parametrize("how", SPELT)
def test_a_name_that_is_spelt_otherwise_is_found(how, tmp_path):
    named, there = SPELT[how]
    folder = write_transforms(tmp_path / "set")
    (folder / "images/r_1.png").rename(folder / there)
    frame(1, file_path=named)(folder)
    views = rm.load_views(folder, "all")
    assert len(views) == 3
    assert any((views.image(i) == random_image(3, seed=1)).all() for i in range(3))


def test_of_two_that_a_name_may_mean_none_is_taken(tmp_path):
    folder = write_transforms(tmp_path / "set")
    for name in ("R_1.png", "R_1.PNG"):
        image(f"images/{name}", 3)(folder)
    frame(1, file_path="images/r_1.PnG")(folder)
    (folder / "images/r_1.png").unlink()
    assert len(rm.load_views(folder, "all")) in (2, 3)


# Images unlike the others are named, wherever they stand.


def many(folder, count=20, channels=3):
    return write_transforms(folder, channels, names=[f"r_{i:02d}.png" for i in range(count)], w=None, h=None)


@pytest.mark.parametrize("odd", [0, 9, 19])
def test_the_odd_size_is_named(odd, tmp_path, caplog):
    folder = many(tmp_path / "set")
    image(f"images/r_{odd:02d}.png", 3, 12, 16)(folder)
    rm.load_views(folder, "all")
    assert f"1 of 20 images have another size than the others (r_{odd:02d}.png): 16 x 12 pixels" in caplog.text


@pytest.mark.parametrize("odd", [0, 9, 19])
def test_the_odd_focal_length_is_named(odd, tmp_path, caplog):
    folder = many(tmp_path / "set")
    frame(odd, fl_x=40.0)(folder)
    rm.load_views(folder, "all")
    assert f"1 of 20 cameras have another focal length than the others (r_{odd:02d}.png)" in caplog.text


@pytest.mark.parametrize("odd", [0, 9, 19])
def test_the_odd_grey_image_is_named(odd, tmp_path, caplog):
    folder = many(tmp_path / "set")
    Image.fromarray(random_image(3)[..., 0]).save(folder / f"images/r_{odd:02d}.png")
    rm.load_views(folder, "all")
    assert f"1 of 20 images are grey where the others have colours (r_{odd:02d}.png)" in caplog.text


@pytest.mark.parametrize("odd", [0, 9, 19])
@pytest.mark.parametrize("channels", [3, 4])
def test_the_odd_alpha_is_named_whichever_is_the_first(odd, channels, tmp_path):
    folder = many(tmp_path / "set", channels=channels)
    image(f"images/r_{odd:02d}.png", 7 - channels)(folder)
    with pytest.raises(rm.RaymarchError, match=rf"r_{odd:02d}.png: image has .*1 of 20 have .*: r_{odd:02d}.png\)"):
        rm.load_views(folder, "all")


def test_a_set_of_grey_images_says_nothing_of_it(tmp_path, caplog):
    folder = many(tmp_path / "set")
    for i in range(20):
        Image.fromarray(random_image(3, seed=i)[..., 0]).save(folder / f"images/r_{i:02d}.png")
    rm.load_views(folder, "all")
    assert "grey" not in caplog.text


# Masks, however they are stored.

MASK = np.zeros((6, 8), bool)
MASK[1:4, 2:6] = True
CUT = np.dstack([np.zeros((6, 8, 3), np.uint8), MASK.astype(np.uint8) * 255])
MASKS = {
    "grey": Image.fromarray(MASK.astype(np.uint8) * 255),
    "0 and 1": Image.fromarray(MASK.astype(np.uint8)),
    "1 bit": Image.fromarray(MASK),
    "palette": Image.fromarray(MASK.astype(np.uint8) * 255).convert("P"),
    "LA": Image.fromarray(np.dstack([MASK.astype(np.uint8) * 255, np.full((6, 8), 255, np.uint8)]), "LA"),
    "16 bit": Image.fromarray(MASK.astype(np.uint16) * 65535),
    "16 bit, 0 to 255": Image.fromarray(MASK.astype(np.uint16) * 255),
    "16 bit, 0 and 1": Image.fromarray(MASK.astype(np.uint16)),
    "RGB": Image.fromarray(np.repeat(MASK[..., None], 3, 2).astype(np.uint8) * 255),
    "a cut-out": Image.fromarray(CUT),
    "a coloured label": Image.fromarray(MASK[..., None].astype(np.uint8) * np.array([255, 0, 0], np.uint8)),
}


@pytest.mark.parametrize("how", MASKS)
def test_a_mask_is_the_same_however_it_is_stored(how, tmp_path):
    folder = write_transforms(tmp_path / "set")
    MASKS[how].save(folder / "m.png")
    frame(1, mask_path="m.png")(folder)
    views = rm.load_views(folder, "all")
    np.testing.assert_array_equal(views.mask(views.names.index("r_1")), MASK)


def test_masks_that_are_white_all_over_or_in_a_folder_of_their_own_are_said(tmp_path, caplog):
    folder = write_transforms(tmp_path / "set")
    (folder / "masks").mkdir()
    rm.load_views(folder, "all")
    assert "the folder masks is not read, as no frame names a mask" in caplog.text
    Image.fromarray(np.full((6, 8), 255, np.uint8)).save(folder / "masks/m.png")
    frame(1, mask_path="masks/m.png")(folder)
    caplog.clear()
    rm.load_views(folder, "all")
    assert "1 of 3 masks are black nowhere and take nothing out (m.png)" in caplog.text


def test_masks_read_as_alpha_are_empty_where_they_are_black(tmp_path):
    folder = write_transforms(tmp_path / "set")
    MASKS["grey"].save(folder / "m.png")
    for i in range(3):
        frame(i, mask_path="m.png")(folder)
    views = rm.load_views(folder, "all", masks="alpha")
    assert views.masks is None and views.masks_as == "alpha" and views.shows_silhouettes
    np.testing.assert_array_equal(views.image(0)[..., 3] == 255, MASK)
    with pytest.raises(rm.RaymarchError, match="no mask takes anything out"):
        rm.load_views(write_transforms(tmp_path / "other"), "all", masks="alpha")


# Keys that are not read are named.

KEYS = {
    "applied_transform": {"applied_transform": [[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]},
    "applied_scale": {"applied_scale": 2.0},
    "orientation_override": {"orientation_override": "up"},
    "rolling_shutter": {"rolling_shutter": [0.0, 0.0, 0.03, 0.0]},
    "up": {"up": [0, 0, 1]},
    "near": {"near": 0.1},
    "time": {"frame": {"time": 0.5}},
}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_is_not_read_is_named(key, tmp_path, caplog):
    changes = dict(KEYS[key])
    folder = write_transforms(tmp_path / "set")
    frame(1, **changes.pop("frame", {}))(folder)
    edit(**changes)(folder)
    rm.load_views(folder, "all")
    (line,) = [record.getMessage() for record in caplog.records if "not read: " in record.getMessage()]
    assert key in line


def test_a_set_without_such_keys_names_none(tmp_path, caplog):
    folder = write_transforms(tmp_path / "set", rolling_shutter=[0, 0, 0, 0], up=None)
    rm.load_views(folder, "all")
    assert "not read" not in caplog.text


def test_of_several_chunks_that_with_most_cameras_is_taken(tmp_path, caplog):
    (tmp_path / "set").mkdir()
    layouts.metashape(tmp_path / "set", known())
    path = tmp_path / "set/cameras.xml"
    path.write_text(path.read_text().replace("<chunk label", '<chunk label="Empty"></chunk><chunk label', 1))
    assert len(rm.load_views(tmp_path / "set", "all")) == 9
    assert "of 2 chunks that with most aligned cameras is taken, Chunk 1 with 9 (others: Empty 0)" in caplog.text


def test_disabled_cameras_are_left_out(tmp_path, caplog):
    (tmp_path / "set").mkdir()
    layouts.metashape(tmp_path / "set", known())
    text("cameras.xml", '<camera id="3"', '<camera id="3" enabled="false"')(tmp_path / "set")
    assert len(rm.load_views(tmp_path / "set", "all")) == 8
    assert "1 cameras are disabled there and left out (DSC 0003)" in caplog.text


def test_columns_that_are_not_read_are_named(tmp_path, caplog):
    (tmp_path / "set").mkdir()
    layouts.realitycapture(tmp_path / "set", alike(known()))
    path = tmp_path / "set/cameras.csv"
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([first + ",s1", *(line + ",0.5" for line in rest)]))
    rm.load_views(tmp_path / "set", "all")
    assert "columns that are not read: s1" in caplog.text


# A reader's own fault is no damage of a file.


@pytest.mark.parametrize("fault", [KeyError("w"), IndexError("list"), AttributeError("x"), TypeError("y")])
def test_a_fault_of_a_reader_of_ours_is_told_as_ours(fault, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise fault

    folder = write_transforms(tmp_path / "set")
    monkeypatch.setattr("raymarch.io.image_sets.transforms.views_of_frames", fail)
    with pytest.raises(rm.RaymarchError, match=r"set: raymarch could not read this \(.*please report"):
        rm.load_views(folder)


# Cameras without pictures.

WITHOUT = {
    "transforms.json": write_transforms,
    "COLMAP": write_colmap,
    "LLFF": set_of(layouts.llff, centred(alike(known()))),
    "Polycam": set_of(layouts.polycam, known(), inner="keyframes"),
    "Record3D": set_of(layouts.record3d, known()),
    "Metashape": set_of(layouts.metashape, known()),
    "NSVF": set_of(layouts.nsvf, alike(known()), lines=True),
}
FOLDERS = ("images", "keyframes/images", "rgb", "photos")


@pytest.mark.parametrize("kind", WITHOUT)
def test_cameras_are_read_where_no_image_is_there(kind, tmp_path):
    from raymarch.io.image_sets.load import cameras_of_set

    folder = tmp_path / "set"
    WITHOUT[kind](folder)
    before = dict(cameras_of_set(folder, "all"))
    for inner in FOLDERS:
        for path in (folder / inner).glob("*") if (folder / inner).is_dir() else ():
            path.unlink()
    after = cameras_of_set(folder, "all")
    assert len(after) == len(before)
    for camera, (_, same) in zip(before.values(), after, strict=True):
        np.testing.assert_array_equal(camera.world_from_camera, same.world_from_camera)
        if kind != "NSVF":  # whose file says a size of which the images are a half
            assert (camera.width, camera.height, camera.focal) == (same.width, same.height, same.focal)


def test_a_set_that_does_not_say_its_size_wants_it_or_its_images(tmp_path):
    from raymarch.io.image_sets.load import cameras_of_set

    folder = write_transforms(tmp_path / "set", w=None, h=None)
    shutil.rmtree(folder / "images")
    with pytest.raises(rm.RaymarchError, match="does not say its size, w and h; put it there, or add them"):
        cameras_of_set(folder, "all")
    edit(w=8, h=6)(folder)
    assert len(cameras_of_set(folder, "all")) == 3


# Nerfstudio's paths.


def path_file(tmp_path, **changes):
    pose = rm.Camera.look_at((4, 0, 1)).world_from_camera
    frames = [{"camera_to_world": (pose + 0.0).ravel().tolist(), "fov": 35, "aspect": 1.333}] * 4
    document = {"camera_type": "perspective", "render_height": 48, "render_width": 64, "camera_path": frames, **changes}
    file = tmp_path / "camera_path.json"
    file.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))
    return file


def test_nerfstudio_s_path_is_its_frames(tmp_path):
    path = rm.load_camera_path(path_file(tmp_path))
    assert len(path) == 4 and (path[0].width, path[0].height) == (64, 48)
    assert path[0].focal[1] == pytest.approx(24 / np.tan(np.deg2rad(35) / 2))  # vertical
    np.testing.assert_allclose(path[0].position, (4, 0, 1))
    assert len(rm.load_camera_path(tmp_path / "camera_path.json", 7)) == 7


def test_matrices_by_columns_and_as_texts_are_read(tmp_path):
    pose = rm.Camera.look_at((4, 0, 1)).world_from_camera
    other = rm.Camera.look_at((0, 4, 1)).world_from_camera
    keys = [{"matrix": json.dumps(one.T.ravel().tolist()), "fov": 50} for one in (pose, other)]
    path = rm.load_camera_path(path_file(tmp_path, camera_path=None, keyframes=keys), 9)
    np.testing.assert_allclose([path[0].position, path[-1].position], [(4, 0, 1), (0, 4, 1)], atol=1e-9)


PATHS = {
    "fisheye": ({"camera_type": "fisheye"}, "camera_type 'fisheye' is not rendered"),
    "equirectangular": ({"camera_type": "equirectangular"}, "camera_type 'equirectangular' is not rendered"),
    "no frames": ({"camera_path": []}, "camera_path is .*want a list of frames"),
    "a short matrix": ({"camera_path": [{"camera_to_world": [1, 2]}]}, "want 16 numbers"),
    "no number": ({"camera_path": [{"camera_to_world": ["x"] * 16}]}, "has 'x', want numbers"),
    "instant-ngp": ({"camera_path": None, "path": []}, "instant-ngp's path.*raymarch view"),
}


@pytest.mark.parametrize("what", PATHS)
def test_paths_that_are_not_rendered_are_told_by_name(what, tmp_path):
    changes, said = PATHS[what]
    with pytest.raises(rm.RaymarchError, match=said) as caught:
        rm.load_camera_path(path_file(tmp_path, **changes), 5)
    assert "\n" not in str(caught.value)
    assert len(rm.load_camera_path(path_file(tmp_path), 5)) == 5  # saved again, as perspective


# Surroundings without UTF-8.


def in_ascii(folder, *command, **env):
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    plain |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", **env}
    return subprocess.run(
        [sys.executable, "-m", "raymarch", *command],
        cwd=folder,
        env=plain,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="another operating system has another encoding: Linux's")
@pytest.mark.parametrize("kind", ["transforms.json", "COLMAP"])
def test_a_locale_without_utf8_is_told_with_a_cure_that_helps(kind, tmp_path):
    name = "f\u00f6t\u00f6 0.png"
    folder = (write_transforms if kind == "transforms.json" else write_colmap)(tmp_path / "set")
    (folder / "images/r_0.png").rename(folder / "images" / name)
    if kind == "COLMAP":
        path = folder / "sparse/0/images.txt"
        path.write_text(path.read_text().replace("r_0.png", name), encoding="utf-8")
    else:
        frame(0, file_path=f"images/{name}")(folder)
    out = in_ascii(tmp_path, "doctor", "set")
    assert out.returncode == 1
    told = (out.stdout + out.stderr).decode("utf-8", "replace")
    assert "where the system's encoding is ascii" in told and "PYTHONUTF8=1 or LC_ALL=C.UTF-8" in told
    for cure in ({"PYTHONUTF8": "1"}, {"LC_ALL": "C.UTF-8"}):
        assert b"system's encoding" not in in_ascii(tmp_path, "doctor", "set", **cure).stdout


# Pictures of other formats, where a layout pairs images by order or finds them by name.


def unread(folder, inner, suffix="exr"):
    for path in (folder / inner).iterdir():
        path.rename(folder.parent / path.name)
        path.with_suffix(f".{suffix}").write_bytes(OF_OTHERS[suffix][0])


@pytest.mark.parametrize(
    ("kind", "inner"),
    [("LLFF", "images"), ("Record3D", "rgb"), ("Metashape", "photos"), ("COLMAP", "images"), ("NSVF", "rgb")],
)
@pytest.mark.parametrize("suffix", ["exr", "heic", "nef"])
def test_pictures_that_are_not_read_are_told_by_name_in_every_layout(kind, inner, suffix, tmp_path):
    folder = tmp_path / "set"
    WITHOUT[kind](folder)
    unread(folder, inner, suffix)
    with pytest.raises(rm.RaymarchError, match="not read|no readable image but") as caught:
        rm.load_views(folder, "all")
    assert f".{suffix}" in str(caught.value) and "PNG" in str(caught.value)
    for path in tmp_path.glob("*.png"):
        path.rename(folder / inner / path.name)
    assert len(rm.load_views(folder, "all")) > 1


def test_a_folder_of_such_pictures_alone_is_told_what_to_do(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.heic").write_bytes(OF_OTHERS["heic"][0])
    with pytest.raises(
        rm.RaymarchError, match="pictures of a format that is not read.*convert them to PNG.*raymarch cameras"
    ):
        rm.load_views(tmp_path)
    for i in range(3):
        Image.fromarray(random_image(3)).save(tmp_path / f"{i}.png")
    with pytest.raises(rm.RaymarchError, match="a folder with photographs.*raymarch cameras"):
        rm.load_views(tmp_path)
