"""Laws of readers: each claims what it reads and no other layout, a user's own is one like any, no fault is silent."""

import json
import shutil
from dataclasses import replace

import layouts
import numpy as np
import pytest
from sets import POSES, framed, random_image, write_colmap, write_set, write_transforms

import raymarch as rm
from raymarch.io.image_sets import load
from raymarch.io.image_sets.frames import Frame, views_of_frames
from raymarch.io.image_sets.hdf5.writing import write_views
from raymarch.io.image_sets.load import LAYOUTS
from raymarch.io.image_sets.reader import reader_of
from raymarch.io.images import header

CAMERA = rm.Camera.look_at((0, -4, 0), width=8, height=6)


def read(folder, split, **_):
    images = np.load(folder / f"{split}.npy")
    return rm.Views([CAMERA] * len(images), images, background="black", source=str(folder))


def detect(folder):
    return (folder / "train.npy").is_file()


OWN = rm.Reader("my set", detect, read, "train.npy")


def write_npy(folder):
    folder.mkdir()
    np.save(folder / "train.npy", np.stack([random_image(seed=i) for i in range(2)]))
    return folder


def of_known(writer, cameras=None, **how):
    def write(folder):
        folder.mkdir()
        return writer(folder, cameras or layouts.known(4), **how)

    return write


def write_file(path):
    images = np.stack([random_image(seed=i) for i in range(2)])
    write_views([("train", rm.Views([CAMERA] * 2, images))], path)
    return path


WRITERS = {  # by reader, a folder that it reads
    "NeRF-synthetic": write_set,
    "transforms.json": write_transforms,
    "COLMAP": write_colmap,
    "LLFF": of_known(layouts.llff, layouts.centred(layouts.alike(layouts.known(4)))),
    "Middlebury": of_known(layouts.middlebury),
    "DTU": of_known(layouts.dtu),
    "NSVF": of_known(layouts.nsvf, parts="0001"),
    "Polycam": of_known(layouts.polycam),
    "Record3D": of_known(layouts.record3d),
    "Metashape": of_known(layouts.metashape),
    "RealityCapture": of_known(layouts.realitycapture, layouts.alike(layouts.known(4))),
    "HDF5": write_file,
    "my set": write_npy,
}
BY_CONTENTS = ("Metashape", "RealityCapture", "HDF5")  # which no file's name tells
BLACK = ("my set", "Middlebury")
ALL = [*load.READERS, OWN]
EACH = pytest.mark.parametrize("reader", ALL, ids=lambda reader: reader.name)


def refused(call, *said):
    """The error of a call, which must hold all of the texts in one line."""
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in said), text
    return caught.value


# Every reader.


@EACH
def test_a_reader_claims_what_it_reads_and_nothing_that_another_does(reader, tmp_path):
    folders = {name: write(tmp_path / name.replace(" ", "-")) for name, write in WRITERS.items()}
    assert {one.name for one in ALL} == set(folders)  # a new reader brings its row
    for name, folder in folders.items():
        assert reader.detect(folder) == (name == reader.name)
        if reader.name not in BY_CONTENTS:
            assert reader.has_files(folder) == (name == reader.name)
    views = rm.load_views(folders[reader.name], reader=reader)
    assert isinstance(views, rm.Views)
    assert len(views) > 1


@EACH
def test_a_reader_puts_the_background_that_is_asked_for_on_its_views(reader, tmp_path):
    folder = WRITERS[reader.name](tmp_path / "set")
    assert rm.load_views(folder, reader=reader, background="0.5,0,1").background == (0.5, 0, 1)
    own = (0, 0, 0) if reader.name in BLACK else (1, 1, 1)
    assert rm.load_views(folder, reader=reader).background == own


@EACH
def test_a_reader_recognises_nothing_in_a_folder_of_no_set(reader, tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    assert not reader.detect(tmp_path)
    assert not reader.detect(tmp_path / "none")
    assert not reader.detect(tmp_path / "a.png")
    refused(
        lambda: rm.load_views(tmp_path, reader=reader),
        f"reader {reader.name!r} does not recognise it; check the path or choose another reader",
    )
    refused(lambda: rm.load_views(tmp_path / "none", reader=reader), "no such folder")


@pytest.mark.parametrize("name", [reader.name for reader in load.READERS])
def test_a_name_chooses_in_letters_of_either_case(name, tmp_path):
    folder = WRITERS[name](tmp_path / "set")
    for spelt in (name, name.upper(), name.lower()):
        assert len(rm.load_views(folder, reader=spelt)) == len(rm.load_views(folder))


# What is of another layout.

OTHERS = {
    "a list": [],
    "a list of frames": framed(),
    "a number": 3,
    "no frames": {"camera_angle_x": 0.7},
    "frames by name": {"frames": {"r_0": {}}},
    "no frame": {"frames": []},
    "frames that are numbers": {"frames": [3]},
    "frames that are texts": {"frames": ["file_path transform_matrix"]},
    "frames with another key of the image": {"frames": [{"img": "a.png", "transform_matrix": POSES[0].tolist()}]},
    "frames with another key of the pose": {"frames": [{"file_path": "train/r_0", "rotation": [1, 0, 0, 0]}]},
    "frames that are null": {"frames": None},
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_refused_for_its_layout_is_not_claimed(what, tmp_path):
    """Of transforms files; but where nobody else claims the folder the file that is there is said to be wrong."""
    folder = write_set(tmp_path / "set")
    file = folder / "transforms_train.json"
    file.write_text(json.dumps(OTHERS[what]))
    assert not any(reader.detect(folder) for reader in load.READERS)
    cure = "; write its mappings as a list" if what == "frames by name" else "; export it again"
    refused(lambda: rm.load_views(folder), f"{file}", cure)
    np.save(folder / "train.npy", np.stack([random_image(seed=i) for i in range(2)]))
    assert reader_of(folder, [*load.READERS, OWN]) is OWN


def test_one_split_of_the_layout_is_enough(tmp_path):
    folder = write_set(tmp_path / "set")
    for name in ("a", "z"):
        (folder / f"transforms_{name}.json").write_text("[1, 2")
    assert [reader.name for reader in load.READERS if reader.detect(folder)] == ["NeRF-synthetic"]
    assert reader_of(folder, load.READERS).name == "NeRF-synthetic"
    assert len(rm.load_views(folder)) == 3


def test_no_layout_that_is_not_read_is_that_of_a_reader(tmp_path):
    folders = [write(tmp_path / f"{i}") for i, write in enumerate(WRITERS.values()) if write is not write_npy]
    assert not [
        layout.name for layout in LAYOUTS for folder in folders if layout.detect(folder) and "photo" not in layout.name
    ]


# Which of several.


def of_name(name, specificity=1, says=True):
    return rm.Reader(name, lambda folder: says, read, specificity=specificity)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([("a", 1), ("b", 2), ("c", 1)], "b"),
        ([("b", 2), ("a", 1)], "b"),
        ([("a", 1, False), ("b", 1)], "b"),
        ([("a", 9, False), ("b", 1)], "b"),
    ],
)
def test_the_most_specific_reader_that_claims_a_folder_reads_it(given, found, tmp_path):
    assert reader_of(tmp_path, [of_name(*one) for one in given]).name == found


@pytest.mark.parametrize("beside", [name for name in WRITERS if name not in ("NeRF-synthetic", "HDF5", "my set")])
@pytest.mark.parametrize("first", ["NeRF-synthetic", "transforms.json"])
def test_transforms_files_go_before_every_other_layout_of_the_folder(first, beside, tmp_path):
    if first == beside:
        beside = "COLMAP"
    folder = WRITERS[beside](tmp_path / "set")
    shutil.copytree(WRITERS[first](tmp_path / "first"), folder, dirs_exist_ok=True)
    claiming = {reader.name for reader in load.READERS if reader.detect(folder)}
    assert first in claiming
    assert reader_of(folder, load.READERS).name == first


def test_two_that_are_as_specific_are_an_error_with_both_names(tmp_path, monkeypatch):
    folder = write_set(tmp_path / "set")
    monkeypatch.setattr("raymarch.io.image_sets.load.READERS", [*load.READERS, of_name("b", 3), of_name("c", 0)])
    said = "set: readers 'NeRF-synthetic' and 'b' claim it alike; choose by reader='NeRF-synthetic' or reader='b'"
    refused(lambda: rm.load_views(folder), said)
    assert len(rm.load_views(folder, reader="nerf-synthetic")) == 3


def test_a_line_in_the_list_is_all_that_a_reader_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("raymarch.io.image_sets.load.READERS", [*load.READERS, OWN])
    assert rm.load_views(write_npy(tmp_path / "own")).background == (0, 0, 0)
    assert rm.load_views(write_set(tmp_path / "set")).background == (1, 1, 1)


# A user's own, with faults.


@pytest.mark.parametrize(
    ("part", "function", "said"),
    [
        (
            "read",
            lambda *_, **__: [CAMERA, CAMERA],
            "read gave a list of a Camera and 1 more, want rm.Views; return that",
        ),
        ("read", lambda *_, **__: None, "read gave None, want rm.Views"),
        ("detect", lambda folder: "yes", "detect gave 'yes', want True or False"),
        ("read", lambda folder: None, "raised TypeError: "),
        ("read", lambda *_, **__: rm.Views([CAMERA], [[1]]), "read of set: images"),
        (
            "read",
            lambda *_, **__: rm.Views([CAMERA], np.zeros((1, 5, 8, 3), np.uint8)),
            "image is 8 x 5 but its camera",
        ),
    ],
)
def test_what_a_part_must_not_give_names_the_reader_and_the_part(part, function, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_npy(tmp_path / "set")
    refused(lambda: rm.load_views("set", reader=replace(OWN, **{part: function})), f"reader 'my set': {part}", said)


@pytest.mark.parametrize("part", ["detect", "read"])
@pytest.mark.parametrize(
    "error", [KeyError("density"), OSError(2, "No such file", "x.bin"), ValueError("two\nlines"), ZeroDivisionError()]
)
def test_an_exception_of_a_part_is_one_line_with_its_type_and_text(part, error, tmp_path):
    def fail(*_, **__):
        raise error

    folder = write_npy(tmp_path / "set")
    said = f"reader 'my set': {part} of {folder} raised {type(error).__name__}"
    came = refused(
        lambda: rm.load_views(folder, reader=replace(OWN, **{part: fail})), said, " ".join(str(error).split())
    )
    assert came.__cause__ is error


def test_what_a_user_s_reader_has_read_is_looked_at_like_any(tmp_path, caplog):
    blank = replace(OWN, read=lambda *_, **__: rm.Views([CAMERA] * 2, np.zeros((2, 6, 8, 3), np.uint8)))
    rm.load_views(write_npy(tmp_path / "set"), reader=blank)
    assert "all 2 images are of one colour all over, black" in caplog.text


def test_options_reach_a_user_s_reader(tmp_path):
    came = {}

    def note(folder, split, **options):
        came.update(options, split=split, folder=folder)
        return read(folder, "train")

    folder = write_npy(tmp_path / "set")
    rm.load_views(str(folder), "val", reader=replace(OWN, read=note), follow_links=True, for_fit=False)
    assert came == {"folder": folder, "split": "val", "follow_links": True, "for_fit": False}


# What readers share.


def test_frames_become_views_without_those_whose_image_is_missing(tmp_path, caplog):
    folder = write_set(tmp_path / "set")
    sizes = []

    def camera(width, height, orientation):
        sizes.append((width, height, orientation))
        return CAMERA

    names = ["r_0.png", "none.png", "r_2.png"]
    views = views_of_frames([Frame(folder / "train" / name, camera) for name in names], folder, folder / "list.csv")
    assert views.names == ("r_0", "r_2")
    assert views.source == str(folder / "list.csv")
    assert sizes == [(8, 6, 1)] * 2
    np.testing.assert_array_equal(views.images[1], random_image(seed=2))
    assert "list.csv: 1 of 3 images are missing" in caplog.text


@pytest.mark.parametrize("name", ["NeRF-synthetic", "transforms.json", "COLMAP", "Polycam", "Metashape"])
def test_an_image_s_header_is_read_once(name, tmp_path, monkeypatch):
    """The orientation that it has goes to the camera from there: files on a server are opened slowly."""
    folder, opened, own = WRITERS[name](tmp_path / "set"), [], header.open_image
    monkeypatch.setattr(header, "open_image", lambda path: opened.append(path.stem) or own(path))
    views = rm.load_views(folder)
    assert sorted(opened) == sorted(views.names)
