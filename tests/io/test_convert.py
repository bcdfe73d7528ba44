"""Laws of sets in one HDF5 file: what is converted is loaded again to the byte, and nothing altered goes unseen."""

import hashlib
import json
import logging
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import h5py
import layouts
import numpy as np
import pytest
from layouts import known
from sets import write_set, write_transforms
from whole import whole

import raymarch as rm
from raymarch import cli
from raymarch.io.files.hdf5 import digest_of
from raymarch.io.image_sets.convert import convert
from raymarch.io.image_sets.hdf5 import image_set, reading
from raymarch.io.image_sets.hdf5.layout import VERSION
from raymarch.io.image_sets.hdf5.writing import CHUNK_BYTES, write_views

DOCUMENT = Path(__file__).parents[2] / "docs" / "image-sets.md"
LENSES = [
    rm.Lens(), rm.Lens("simple_radial", (0.01,)), rm.Lens("radial", (0.01, -0.002)), rm.Lens("fov", (0.3,)),
    rm.Lens("opencv", (0.01, 0.002, 0.0003, 1e-4, -1e-4)), rm.Lens("fisheye", (0.01, 0.002, 0.0003, 0.00001)),
    rm.Lens("full_opencv", (0.01, 0.002, 0.0003, 1e-4, -1e-4, 0.001, 0.002, 0.003)),
    rm.Lens("radial8", (0.01, 0.002, 0.0003, 0.001, 1e-4, -1e-4)),
]  # fmt: skip


def pose(rng):
    return rm.Camera.look_at(rng.normal(size=3) * 3 + (4, 0, 0), rng.normal(size=3)).world_from_camera


def some(count=4, seed=0, sizes=((8, 6),), channels=3, lenses=LENSES[:1], masked=False, **how):
    """Views of chance."""
    rng = np.random.default_rng(seed)
    cameras, images, masks = [], [], []
    for i in range(count):
        w, h = sizes[i % len(sizes)]
        lens = lenses[i % len(lenses)]
        focal, principal = tuple(rng.uniform(50, 60, 2)), tuple(rng.uniform(2, 6, 2))
        cameras.append(rm.Camera(pose(rng), focal, principal, w, h, lens))
        images.append(rng.integers(0, 256, (h, w, channels), dtype=np.uint8))
        masks.append(rng.random((h, w)) > 0.3 if masked and i % 3 else None)
    return rm.Views(cameras, images, [f"view {seed}-{i} ä\n" for i in range(count)], masks=masks, **how)


def require_equal(found, views):
    """Equal to the last bit in all but where they come from."""
    assert len(found) == len(views) and found.names == views.names and found.background == views.background
    assert found.one_size == views.one_size and found.has_alpha == views.has_alpha
    for a, b in zip(found.cameras, views.cameras, strict=True):
        assert a.world_from_camera.tobytes() == b.world_from_camera.tobytes()
        assert (a.focal, a.principal, a.width, a.height, a.lens) == (b.focal, b.principal, b.width, b.height, b.lens)
        assert a.rays().direction.tobytes() == b.rays().direction.tobytes()
    for i in range(len(views)):
        assert found.image(i).shape == views.image(i).shape and found.image(i).tobytes() == views.image(i).tobytes()
        a, b = found.mask(i), views.mask(i)
        assert (a is None) == (b is None) and (a is None or a.tobytes() == b.tobytes())
    for a, b in ((found.points, views.points), (found.box, views.box), (found.bounds, views.bounds)):
        assert (a is None) == (b is None) and (a is None or np.array_equal(a, b))


def refused(call, *said):
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in said), text


POINTS = np.random.default_rng(3).normal(size=(20, 3))
PLANES = [(0.5, 90.0), (1 / 3, 2.0), (1e-3, 1.0), (2, 3)]
BOX = [(-1, -1.1, -1 / 3), (1, 1, 1e-3)]
BLANK = rm.Views([rm.Camera.look_at((4, 0, 0), width=700, height=500)] * 2, np.zeros((2, 500, 700, 4), np.uint8))
KINDS = {
    "one size": {"train": some()},
    "alpha": {"train": some(channels=4, background=(0.1, 0.2, 1 / 3)), "test": some(2, 1, channels=4)},
    "different sizes": {"train": some(sizes=((8, 6), (5, 7), (1, 1)))},
    "lenses": {"train": some(9, lenses=(*LENSES, rm.Lens("orthographic"))), "val": some(3, 1, lenses=LENSES[4:])},
    "masks": {"train": some(masked=True), "test": some(2, 1)},
    "points and box": {"train": some(points=POINTS, box=BOX), "test": some(2, 1, points=POINTS, box=BOX)},
    "points that differ": {"train": some(points=POINTS), "a": some(2, 1, points=POINTS[:5]), "b": some(2, 2)},
    "near and far": {"train": some(bounds=PLANES), "test": some(2, 1, bounds=PLANES[:2])},
    "near and far of one split": {"train": some(bounds=PLANES), "test": some(2, 1)},
    "a split that is another's": {"train": some(), "test": some(5, 1), "val": some(5, 1)},
    "views that splits share": {"train": some(5, 1), "test": some(5, 1)[[4, 0]]},
    "all at once": {
        "train": some(9, sizes=((8, 6), (6, 8)), lenses=LENSES, masked=True, points=POINTS, box=BOX, background="black")
    },
    "large": {"train": some(2, sizes=((300, 200),))},
    "one colour": {"train": BLANK},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_to_the_byte(kind, tmp_path):
    file = tmp_path / "set.h5"
    assert write_views(KINDS[kind].items(), file) == {name: len(views) for name, views in KINDS[kind].items()}
    assert image_set.splits(file) == tuple(KINDS[kind])
    for name, views in KINDS[kind].items():
        found = rm.load_views(file, name)
        require_equal(found, views)
        assert found.source == str(file)


def test_a_view_of_two_splits_is_stored_once(tmp_path):
    write_views(KINDS["a split that is another's"].items(), tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["sizes"].shape == (9, 4)
    assert len(rm.load_views(tmp_path / "a.h5", "all")) == 9


@pytest.mark.parametrize(
    ("writer", "cameras"),
    [
        (layouts.llff, layouts.centred(layouts.alike(known()))),
        (layouts.dtu, known()),
        (layouts.nsvf, known()),
        (layouts.metashape, known(lens={"k1": 0.05, "p1": 0.01})),
    ],
)
def test_a_converted_set_is_the_set(writer, cameras, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    writer(folder, cameras)
    found = convert(folder, tmp_path / "set.h5")
    assert list(found) == ["train", "val", "test"]
    for split, count in found.items():
        views = rm.load_views(folder, split)
        assert len(views) == count
        require_equal(rm.load_views(tmp_path / "set.h5", split), views)
        require_equal(rm.load_views(tmp_path / "set.h5", split, downscale=2), rm.load_views(folder, split, downscale=2))
    again = convert(tmp_path / "set.h5", tmp_path / "again.h5")
    assert again == found
    require_equal(rm.load_views(tmp_path / "again.h5"), rm.load_views(folder))


def test_splits_of_any_name_are_kept(tmp_path):
    folder = write_set(tmp_path / "set")
    for name in ("mine", "test"):
        (folder / f"transforms_{name}.json").write_bytes((folder / "transforms_train.json").read_bytes())
    assert convert(folder, tmp_path / "a.h5") == {"mine": 3, "test": 3, "train": 3}
    (folder / "transforms_val.json").write_text("{}")
    refused(lambda: convert(folder, tmp_path / "b.h5"), "transforms_val.json: frames is missing")
    assert not (tmp_path / "b.h5").exists()


def test_a_split_that_is_empty_is_left_out_with_a_note_said_once(tmp_path, caplog):
    layouts.record3d(tmp_path / "set", known(3))
    assert convert(tmp_path / "set", tmp_path / "a.h5", holdout=0) == {"train": 3}
    assert "goes without the split test" in caplog.text
    caplog.clear()
    convert(tmp_path / "set", tmp_path / "a.h5")
    assert caplog.text.count("in 8 is held out") == 1


def test_a_split_whose_images_are_not_there_is_left_out_though_the_set_lists_it(tmp_path, caplog):
    """As of a benchmark that keeps its test images; val stands in for no test that is listed."""
    lists = {"train_filenames": ["images/r_0.png", "images/r_1.png"], "val_filenames": ["images/r_2.png"]}
    hidden = {"test_filenames": ["images/r_3.png", "test/r_9.png"]}
    folder = write_transforms(tmp_path / "set", names=[f"r_{i}.png" for i in range(4)], **lists, **hidden)
    (folder / "images" / "r_3.png").unlink()
    assert convert(folder, tmp_path / "a.h5") == {"train": 2, "val": 1}
    assert caplog.text.count("no image of test_filenames is there, going without the split test") == 1
    (folder / "images" / "r_1.png").unlink()
    assert convert(folder, tmp_path / "b.h5") == {"train": 1, "val": 1}
    (folder / "images" / "r_0.png").unlink()
    assert convert(folder, tmp_path / "c.h5") == {"val": 1}


def test_what_is_asked_for_is_in_the_file_for_good(tmp_path):
    layouts.record3d(tmp_path / "set", known(4))
    convert(tmp_path / "set", tmp_path / "a.h5", downscale=2, holdout=2, background="black")
    views = rm.load_views(tmp_path / "a.h5", "test")
    assert views.background == (0, 0, 0) and views.sizes == ((4, 3),) * 2


def test_the_file_is_read_without_raymarch(tmp_path, monkeypatch):
    """By the code that docs/image-sets.md has for it."""
    monkeypatch.chdir(tmp_path)
    views = KINDS["all at once"]["train"]
    write_views([("train", views)], "set.h5")
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[1], names)
    for i, image in enumerate(names["train"]):
        np.testing.assert_array_equal(image, views.image(i))
    assert names["record"]["lenses"] == [camera.lens.model for camera in views.cameras]


def test_pixels_lie_in_bounded_chunks(tmp_path):
    write_views(KINDS["large"].items(), tmp_path / "set.h5")
    with h5py.File(tmp_path / "set.h5") as file:
        assert file["images"].chunks == (CHUNK_BYTES,)


# What is refused.


@pytest.fixture
def written(tmp_path):
    write_views(KINDS["all at once"].items(), tmp_path / "set.h5")
    return tmp_path / "set.h5"


def test_a_split_that_is_not_there_is_told(written):
    refused(lambda: rm.load_views(written, "test"), "no split 'test', it has train and all; choose one")


def test_a_volume_is_no_set_and_a_set_no_volume(written, tmp_path):
    rm.save(rm.Volume.from_array(np.ones((4, 5, 6))), tmp_path / "v.h5")
    refused(lambda: rm.load_views(tmp_path / "v.h5"), "looks like a volume, which is no image set")
    for read in (rm.load, rm.describe):
        refused(lambda read=read: read(written), "is an image set of raymarch convert, want a volume of raymarch's; ")
    before = (tmp_path / "v.h5").read_bytes()
    refused(
        lambda: convert(written, tmp_path / "v.h5"), "is no image set of raymarch's and would be lost", "--overwrite"
    )
    refused(lambda: rm.save(rm.Volume.from_array(np.ones((4, 5, 6))), written), "would be lost")
    assert (tmp_path / "v.h5").read_bytes() == before
    convert(written, tmp_path / "v.h5", overwrite=True)
    convert(written, tmp_path / "v.h5")  # an older set may be replaced
    convert(written, written)
    convert(written, tmp_path / "again.h5")
    sources = reading.sources_of
    assert sources(tmp_path / "again.h5") == sources(written)
    assert len(rm.load_views(written)) == 9


def test_a_name_that_is_not_hdf5_s_is_refused_before_anything_is_read(tmp_path):
    refused(lambda: convert("none", tmp_path / "set.npz"), "end the name in .h5 or .hdf5")
    refused(lambda: convert("none", tmp_path / "there" / "set.h5"), "there is no folder")
    refused(lambda: convert(tmp_path / "none", tmp_path / "set.h5"), "no such folder")


def test_a_write_that_fails_leaves_the_older_file(written, monkeypatch, tmp_path):
    before = written.read_bytes()

    def splits():
        yield "train", KINDS["one size"]["train"]
        raise rm.RaymarchError("the second split is damaged; mend it")

    refused(lambda: write_views(splits(), written), "the second split is damaged")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    refused(lambda: write_views(KINDS["one size"].items(), written), "cannot be written (No space left on device)")
    assert written.read_bytes() == before
    assert os.listdir(tmp_path) == ["set.h5"]


def changed(file, name, change):
    """The file with a dataset changed, its digest made anew: it is well-formed all the same."""
    with h5py.File(file, "r+") as opened:
        arrays = {each: np.asarray(opened[each][()]) for each in opened}
        arrays[name] = change(arrays[name])
        del opened[name]
        opened.create_dataset(name, data=arrays[name])
        parts = {
            each: (array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest())
            for each, array in arrays.items()
        }
        notes = {("/", note): np.asarray(opened.attrs[note]) for note in ("format", "format_version")}
        opened.attrs["digest"] = np.array(digest_of(parts, notes))


def put(value, *where):
    def change(array):
        array = array.copy()
        array[where] = value
        return array

    return change


def noted(**changes):
    return lambda text: np.array(json.dumps({**json.loads(text.tobytes()), **changes}).encode())


def split(**changes):
    one = {"views": [0], "background": [1, 1, 1], "source": "", "box": None, "points": None, **changes}
    return noted(splits={"train": one})


WRONG = {
    "a width of 0": ("sizes", put(0, 0, 0), "sizes have [0, 6, 3, 0]"),
    "a width of 2^62": ("sizes", put(1 << 62, 0, slice(2)), "sizes have"),
    "five channels": ("sizes", put(5, 0, 2), "want width, height, 3 or 4"),
    "another size": ("sizes", put(7, 0, 0), "images is uint8"),
    "a pose that is none": ("world_from_camera", put(2.0, 1, 0, 0), "view 1: world_from_camera is"),
    "a pose of NaN": ("world_from_camera", put(np.nan, 1, 0, 0), "view 1: world_from_camera"),
    "a focal of 0": ("focal", put(0, 2, 0), "view 2: focal"),
    "a lens that folds": ("lens", put(-900.0, 1, 0), "view 1: lens"),
    "poses too few": ("world_from_camera", lambda a: a[:8], "world_from_camera is float64 (8, 4, 4)"),
    "single precision": ("focal", lambda a: a.astype("f4"), "focal is float32"),
    "no rows": ("sizes", lambda a: a[:0], "sizes is int64 (0, 4)"),
    "pixels too few": ("images", lambda a: a[:-1], "images is uint8"),
    "no record": ("record", lambda _: np.array(b"[]"), "names is missing"),
    "no JSON": ("record", lambda _: np.array(b"{"), "is not JSON"),
    "brackets": ("record", lambda _: np.array(b"[" * 9000), "too many values"),
    "names too few": ("record", noted(names=["a"]), "names is a list of 1, want 9 texts"),
    "a name that is none": ("record", noted(names=["", *"abcdefgh"]), "a view is named ''"),
    "a lens of another name": ("record", noted(lenses=["thin"] * 9), "view 0: lens: model is 'thin'"),
    "no splits": ("record", noted(splits={}), "splits is a dict of 0"),
    "views beyond the last": ("record", split(views=[9]), "views is a list of 1, want numbers of 0 to 8"),
    "no views": ("record", split(views=[]), "views is a list of 0"),
    "points beyond the last": ("record", split(points=[0, 21]), "points is [0, 21]"),
    "near and far too few": ("record", split(bounds=[1.0]), "bounds is a list of 1, want two numbers a view"),
    "far nearer than near": ("record", split(bounds=[2.0, 1.0]), "bounds has 2.0, 1.0, want 0 < near < far"),
    "a background of two": ("record", split(background=[1, 1]), "background is a list of 2"),
    "a background beyond 1": ("record", split(background=[1, 1, 7]), "background"),
    "a box that is empty": ("record", split(box=[0] * 6), "box"),
    "points of NaN": ("points", put(np.nan, 0, 0), "points"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_with_its_place(what, written):
    name, change, said = WRONG[what]
    changed(written, name, change)
    refused(lambda: rm.load_views(written), "set.h5", said)


def test_a_file_that_would_read_others_is_refused(written, tmp_path):
    (tmp_path / "other.h5").write_bytes(written.read_bytes())
    with h5py.File(written, "r+") as file:
        del file["images"]
        file["images"] = h5py.ExternalLink("other.h5", "/images")
    refused(lambda: rm.load_views(written), "images is a ExternalLink")


def test_what_is_newer_is_told(written):
    with h5py.File(written, "r+") as file:
        file.attrs["format_version"] = VERSION + 1
    told = f"has format_version {VERSION + 1}, this raymarch reads {VERSION}; update raymarch"
    refused(lambda: rm.load_views(written), told)


def test_more_than_memory_holds_is_refused(written, monkeypatch):
    monkeypatch.setattr("raymarch.device.memory.available_bytes", lambda: 1000)
    refused(lambda: rm.load_views(written), "its 9 images take", "are free; take fewer")


@pytest.mark.parametrize("count", [400, whole(2000)])
def test_no_flipped_bit_goes_unseen(count, tmp_path, caplog):
    """Damaged files: as before, or one line; cut short, too."""
    caplog.set_level(logging.CRITICAL)
    file = tmp_path / "set.h5"
    views = some(2, masked=True, points=POINTS, lenses=LENSES[4:5])
    write_views([("train", views)], file)
    sound, rng, slowest, refusals = file.read_bytes(), np.random.default_rng(1), 0.0, 0
    for n in range(count):
        data = bytearray(sound)
        if n % 5 == 4:
            del data[rng.integers(0, len(data)) :]
        else:
            for at in rng.integers(0, len(data), 1 if n % 2 else 9):
                data[at] ^= 1 << int(rng.integers(0, 8))
        file.unlink()  # a file that is cut and written again is flushed to the disk by some systems
        file.write_bytes(data)
        began = time.perf_counter()
        try:
            found = image_set.detect(file) and image_set.read(file, for_fit=False)
        except rm.RaymarchError as error:
            refusals += 1
            assert "\n" not in str(error)
        else:
            if found:
                require_equal(found, views)
        slowest = max(slowest, time.perf_counter() - began)
    assert slowest < 1 and refusals > 0.4 * count


# The command line.


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments])
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", ["a.h5", "b.h5"])
def test_a_volume_does_not_take_the_place_of_the_set_that_it_is_fitted_to(name, written, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    target = written if name == "a.h5" else tmp_path / "folder" / name
    if target != written:
        target.hardlink_to(written)
    before, steps = written.read_bytes(), ["--steps", "1", "--resolution", "8"]
    code, out, err = run(capsys, "fit", written, "--out", target, "--overwrite", *steps)
    assert (code, out) == (1, "") and "is what is read, and would be lost; choose another name" in err
    assert written.read_bytes() == before


def test_the_command_line_converts(tmp_path, capsys):
    folder = write_set(tmp_path / "set")
    code, out, err = run(capsys, "convert", folder, tmp_path / "a.h5", "--json")
    size = (tmp_path / "a.h5").stat().st_size
    assert code == 0 and json.loads(out) == {"path": str(tmp_path / "a.h5"), "splits": {"train": 3}, "bytes": size}
    assert "train: 3 images of 8 x 6" in err
    code, out, _ = run(capsys, "convert", folder, tmp_path / "a.h5")
    assert code == 0 and out == f"{tmp_path / 'a.h5'}: train 3; {size:,} bytes\n"
    (tmp_path / "mine.h5").write_text("mine")
    code, out, err = run(capsys, "convert", folder, tmp_path / "mine.h5")
    assert code == 1 and out == "" and "would be lost" in err and (tmp_path / "mine.h5").read_text() == "mine"
    assert run(capsys, "convert", folder, tmp_path / "mine.h5", "--overwrite")[0] == 0


def test_views_of_several_splits_with_one_name_are_told_apart_where_all_are_read(tmp_path):
    """As those of NeRF-synthetic, whose files are called alike in each folder; by them pictures are named."""
    train = replace(some(3, seed=1), names=("r_0", "r_1", "a"))
    test = replace(some(2, seed=2), names=("r_0", "r_1"))
    write_views([("train", train), ("test", test)], tmp_path / "a.h5")
    read = {split: rm.load_views(tmp_path / "a.h5", split).names for split in ("train", "test", "all")}
    assert read["train"] == ("r_0", "r_1", "a") and read["test"] == ("r_0", "r_1")
    assert read["all"] == ("train_r_0", "train_r_1", "train_a", "test_r_0", "test_r_1")
