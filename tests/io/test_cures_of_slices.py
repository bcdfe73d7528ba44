"""Laws of what messages say to do: each mistake is made, its message says what is below, and what that says then works.

Of TIFF, folders of slices, DICOM, OME-Zarr and the choice of a format. A case yields the call that is refused, then the
call after the cure.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skips import require_extra

import raymarch as rm
from raymarch.cli import cli

tifffile, zarr, pydicom = (require_extra(name, "formats") for name in ("tifffile", "zarr", "pydicom"))
from test_corpus_of_slices import (  # noqa: E402
    FLAT,
    PAGES,
    SIDE,
    SLICES,
    SPACE,
    image,
    series_in,
    slices_in,
    write_slice,
)

pytestmark = pytest.mark.extra
GREY = "minisblack"
CASES: dict[str, tuple[str, Callable[[Path], Iterator]]] = {}


def case(says: str):
    """Put a case on the list: what its message must say."""

    def put(function):
        CASES[function.__name__] = (says, function)
        return function

    return put


def shell(*words):
    """A verb of the command line, whose errors come through."""
    cli.main([str(word) for word in words], standalone_mode=False)


# TIFF.


@case("page 4 of 5 is 4 x 4, 16 bits, the other 4 are 9 x 7, 16 bits; write those anew, tifffile.imwrite")
def an_odd_page_within(folder):
    with tifffile.TiffWriter(folder / "a.tif") as file:
        for k, page in enumerate(PAGES):
            file.write(np.zeros((4, 4), "u2") if k == 3 else page, metadata=None)
    text = yield lambda: rm.load(folder / "a.tif")
    code = text.split("write those anew, ")[1].replace("'a.tif'", repr(str(folder / "a.tif")))
    exec(code.replace('"new.tif"', repr(str(folder / "new.tif"))), {"tifffile": tifffile, "numpy": np})
    yield lambda: rm.load(folder / "new.tif")


@case("holds 2 stacks (5 x 7 x 9, 4 x 6 x 8), want one; choose one by channel=0 to channel=1")
def two_stacks(folder):
    with tifffile.TiffWriter(folder / "a.tif") as file:
        file.write(PAGES, photometric=GREY)
        file.write(PAGES[:4, :6, :8], photometric=GREY)
    yield lambda: rm.load(folder / "a.tif")
    yield lambda: rm.load(folder / "a.tif", channel=1)


@case("holds 2 stacks (4 x 5, 6 x 7), want one; save it by itself, tifffile.imwrite(")
def two_pictures(folder):
    with tifffile.TiffWriter(folder / "a.tif") as file:
        file.write(np.zeros((4, 5), "u1"))
        file.write(np.zeros((6, 7), "u1"))
    yield lambda: rm.load(folder / "a.tif")
    for k in range(2):  # one picture by itself is none yet: its folder of slices is
        tifffile.imwrite(folder / f"one{k}.tif", tifffile.imread(folder / "a.tif", series=1), photometric=GREY)
    (folder / "a.tif").unlink()
    yield lambda: rm.load(folder)


@case("is one picture (YX), want a stack of 2 or more; name the folder of its slices")
def one_slice_of_a_folder(folder):
    slices_in(folder / "a", ".tif")
    yield lambda: rm.load(folder / "a" / "rec_0008.tif")
    yield lambda: rm.load(folder / "a")


@case("has 3 colours, want one volume; choose one by channel=0")
def colours(folder):
    tifffile.imwrite(folder / "a.tif", np.zeros((5, 7, 9, 3), "u1"), photometric="rgb")
    yield lambda: rm.load(folder / "a.tif")
    yield lambda: rm.load(folder / "a.tif", channel=2)


@case("channel is 4, but it has 3; choose one from 0 to 2")
def a_colour_that_is_not_there(folder):
    tifffile.imwrite(folder / "a.tif", np.zeros((5, 7, 9, 3), "u1"), photometric="rgb")
    yield lambda: rm.load(folder / "a.tif", channel=4)
    yield lambda: rm.load(folder / "a.tif", channel=2)


@case("has 2 times, want one volume; choose one by time=0")
def a_film(folder):
    tifffile.imwrite(folder / "a.tif", np.stack([PAGES, PAGES]), imagej=True, metadata={"axes": "TZYX"})
    yield lambda: rm.load(folder / "a.tif")
    yield lambda: rm.load(folder / "a.tif", time=0)


@case("channel is 1, but there is only one; leave it out")
def a_channel_of_one(folder):
    tifffile.imwrite(folder / "a.tif", PAGES, photometric=GREY)
    yield lambda: rm.load(folder / "a.tif", channel=1)
    yield lambda: rm.load(folder / "a.tif")


@case("level is 2, but it has 2; choose one from 0")
def a_level_of_a_tiff(folder):
    with tifffile.TiffWriter(folder / "a.tif") as file:
        file.write(PAGES, subifds=1, photometric=GREY)
        file.write(PAGES[:, ::2, ::2], subfiletype=1, photometric=GREY)
    yield lambda: rm.load(folder / "a.tif", level=2)
    yield lambda: rm.load(folder / "a.tif", level=1)


@case("holds complex64, want whole numbers or floats; rm.ScalarVolume takes one made of tifffile.imread(..).T")
def complex_numbers(folder):
    tifffile.imwrite(folder / "a.tif", PAGES.astype("c8"), photometric=GREY)
    yield lambda: rm.load(folder / "a.tif")
    yield lambda: rm.ScalarVolume(tifffile.imread(folder / "a.tif").T.real)


@case("want a file beside it; copy the whole set there")
def an_ome_tiff_of_two_files(folder):
    from test_scalar_formats import ome_of_two_files

    ome_of_two_files(folder, ("0.ome.tif", "1.ome.tif"))
    (folder / "apart").mkdir()
    shutil.move(folder / "1.ome.tif", folder / "apart" / "1.ome.tif")
    yield lambda: rm.load(folder / "0.ome.tif")
    shutil.move(folder / "apart" / "1.ome.tif", folder / "1.ome.tif")
    yield lambda: rm.load(folder / "0.ome.tif")


@case("the volume is turned, mirrored or sheared in the world, which TIFF cannot hold; save it as .nrrd or .h5")
def a_turned_volume_as_tiff(folder):
    affine = np.eye(4)[[1, 0, 2, 3]]
    yield lambda: rm.save(rm.ScalarVolume(PAGES, affine), folder / "a.tif")
    yield lambda: rm.save(rm.ScalarVolume(PAGES, affine), folder / "a.h5")


@case("values are uint64 beyond 32 bits, which TIFF cannot hold; save it as .nrrd")
def wide_numbers_as_tiff(folder):
    require_extra("nrrd", "formats")
    volume = rm.ScalarVolume(PAGES.astype("u8") << 40)
    yield lambda: rm.save(volume, folder / "a.tif")
    yield lambda: rm.save(volume, folder / "a.nrrd")


# Folders of slices.


@case("s0002.png: is 4 x 3, 8 bits, while 4 of 5 slices are 9 x 7, 8 bits; take it out of the folder")
def a_slice_of_another_size(folder):
    slices_in(folder / "a", name="s{:04d}")
    Image.fromarray(np.zeros((3, 4), "u1")).save(folder / "a" / "s0008.png")
    (folder / "a" / "s0008.png").rename(folder / "a" / "s0002.png")
    yield lambda: rm.load(folder / "a")
    (folder / "a" / "s0002.png").unlink()
    yield lambda: rm.load(folder / "a")


@case("holds 2 stacks (0: a_0008.png to a_0012.png, 5 slices; 1: b_0008.png to b_0012.png, 5 slices), want one; choose")
def two_stacks_in_a_folder(folder):
    slices_in(folder / "a", name="a_{:04d}")
    slices_in(folder / "a", name="b_{:04d}")
    yield lambda: shell("info", folder / "a")
    yield lambda: shell("info", folder / "a", "--channel", 1)


@case("holds 2 stacks")
def slices_as_two_kinds_of_file(folder):
    slices_in(folder / "a", ".tif")
    slices_in(folder / "a", ".png")
    yield lambda: rm.load(folder / "a")
    (folder / "b").mkdir()
    for file in (folder / "a").glob("*.png"):
        file.rename(folder / "b" / file.name)
    yield lambda: (rm.load(folder / "a"), rm.load(folder / "b"))


@case("is a folder of 5 pictures that are no slices in grey; photographs of an object are an image set")
def slices_in_colours(folder):
    slices_in(folder / "a", ".png", RGB)
    yield lambda: shell("convert", folder / "a", folder / "o.npz", "--spacing", "1")
    yield lambda: shell("convert", folder / "a", folder / "o.npz", "--format", "picture-slices", "--channel", 0)


@case("has 3 colours, want one volume; choose one by channel=0 (--channel 0)")
def slices_in_colours_by_tiff(folder):
    slices_in(folder / "a", ".tif", RGB)
    yield lambda: rm.load(folder / "a")
    yield lambda: rm.load(folder / "a", channel=0)


@case("folders of slices are not written; save it as .tif")
def a_folder_of_slices_is_not_written(folder):
    from raymarch.io.volumes.picture_slices import SLICES as FORMAT

    yield lambda: FORMAT.write(rm.ScalarVolume(PAGES), folder / "a")
    yield lambda: rm.save(rm.ScalarVolume(PAGES), folder / "a.tif")


@case("s0009.png: is damaged")
def a_damaged_slice(folder):
    slices_in(folder / "a", name="s{:04d}")
    whole = (folder / "a" / "s0009.png").read_bytes()
    (folder / "a" / "s0009.png").write_bytes(whole[: len(whole) // 2])
    yield lambda: rm.load(folder / "a")
    (folder / "a" / "s0009.png").write_bytes(whole)
    yield lambda: rm.load(folder / "a")


# DICOM.


@case("lacks 1 slice between IM0003 and IM0005; find the missing files")
def a_missing_slice(folder):
    series_in(folder / "a")
    shutil.move(folder / "a" / "IM0004", folder / "IM0004")
    yield lambda: rm.load(folder / "a")
    shutil.move(folder / "IM0004", folder / "a" / "IM0004")
    yield lambda: rm.load(folder / "a")


@case("lacks 1 slice between IM0003 and IM0005 (IM0004 is left out, being of another size, direction or spacing")
def a_slice_within_of_another_size(folder):
    uid = series_in(folder / "a")
    write_slice(folder / "a" / "IM0004", uid, (-5, -6, 15), FLAT, np.zeros((3, 4), "i2"), 4)
    yield lambda: rm.load(folder / "a")
    write_slice(folder / "a" / "IM0004", uid, (-5, -6, 15), FLAT, SLICES[2], 4)
    yield lambda: rm.load(folder / "a")


@case("IM0004, IM0099 lie at one place, where others have 1; take out one of them")
def a_doubled_slice(folder):
    uid = series_in(folder / "a")
    write_slice(folder / "a" / "IM0099", uid, (-5, -6, 15), FLAT, SLICES[2], 99)
    yield lambda: rm.load(folder / "a")
    (folder / "a" / "IM0099").unlink()
    yield lambda: rm.load(folder / "a")


@case("holds 2 series (0: ")
def two_series(folder):
    series_in(folder / "a", SeriesDescription="early")
    (folder / "a").rename(folder / "b")
    series_in(folder / "a", SeriesDescription="late")
    for file in (folder / "b").iterdir():
        file.rename(folder / "a" / f"B{file.name}")
    yield lambda: shell("info", folder / "a")
    yield lambda: shell("info", folder / "a", "--channel", 1)


@case("holds 2 stacks in one series (0: ")
def a_localizer_of_three_planes(folder):
    (folder / "a").mkdir()
    for k in range(3):
        for along, name in ((FLAT, "a"), (SIDE, "b")):
            place = (0, 5 * k, 0) if name == "b" else (0, 0, 5 * k)
            write_slice(folder / "a" / f"{name}{k}", "1.2", place, along, SLICES[k], k, ImageType="LOCALIZER")
    yield lambda: rm.load(folder / "a")
    yield lambda: (rm.load(folder / "a", channel=0), rm.load(folder / "a", channel=1))


@case("is one slice of a DICOM series; name the folder of all of them")
def one_slice_of_a_series(folder):
    series_in(folder / "a")
    yield lambda: rm.load(folder / "a" / "IM0002")
    yield lambda: rm.load(folder / "a")


@case("has 2 points in time; choose one by time=0 to time=1")
def two_points_in_time(folder):
    uid = series_in(folder / "a")
    for k, pixels in enumerate(SLICES):
        write_slice(folder / "a" / f"T{k}", uid, (-5, -6, 10 + 2.5 * k), FLAT, pixels + 1, 100 + k)
    yield lambda: rm.load(folder / "a")
    yield lambda: rm.load(folder / "a", time=1)


@case("rm.ScalarVolume takes numpy.stack([pydicom.dcmread(file).pixel_array.T for file in ..], 2) and an affine")
def slices_without_places(folder):
    series_in(folder / "a")
    files = sorted((folder / "a").iterdir())
    for file in files:
        data = pydicom.dcmread(file)
        del data.ImagePositionPatient
        data.save_as(file)
    yield lambda: rm.load(folder / "a")
    yield lambda: rm.ScalarVolume(np.stack([pydicom.dcmread(file).pixel_array.T for file in files], 2), np.eye(4))


@case("is an image that ends before its size and pixels; copy it again, or take it out")
def a_slice_that_is_cut(folder):
    series_in(folder / "a")
    (folder / "a" / "IM0099").write_bytes((folder / "a" / "IM0006").read_bytes()[:400])
    yield lambda: rm.load(folder / "a")
    (folder / "a" / "IM0099").unlink()
    yield lambda: rm.load(folder / "a")


@case("is a folder of folders, want one volume; name ")
def a_folder_of_series(folder):
    series_in(folder / "S1")
    text = yield lambda: rm.load(folder)
    yield lambda: rm.load(text.split("; name ")[1])


@case("values are float32, which a DICOM series of 16 bits cannot hold; save it as .nii.gz or .nrrd")
def floats_as_dicom(folder):
    require_extra("nrrd", "formats")
    volume = rm.ScalarVolume(PAGES.astype("f4"))
    yield lambda: rm.save(volume, folder / "a.dicom")
    yield lambda: rm.save(volume, folder / "a.nrrd")


# Zarr.


@case("is a plate of wells; name a field of it, ")
def a_plate(folder):
    plate = zarr.open_group(str(folder / "a.zarr"), mode="w", zarr_format=2)
    plate.attrs["plate"] = {"wells": [{"path": "A/1"}, {"path": "A/2"}]}
    plate.create_group("A/1").attrs["well"] = {"images": [{"path": "f1"}]}
    image(folder / "a.zarr" / "A" / "1" / "f1")
    text = yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.load(text.split("name a field of it, ")[1].split(", one of")[0])


@case("is a well of 2 fields; name one, ")
def a_well(folder):
    well = zarr.open_group(str(folder / "a.zarr"), mode="w", zarr_format=2)
    well.attrs["well"] = {"images": [{"path": "f1"}, {"path": "f2"}]}
    for name in ("f1", "f2"):
        image(folder / "a.zarr" / name)
    text = yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.load(text.split("name one, ")[1])


@case("is a Zarr group without multiscales, with more, scan in it; name one, ")
def a_group_of_arrays(folder):
    group = zarr.open_group(str(folder / "a.zarr"), mode="w")
    for name in ("scan", "more"):
        group.create_array(name, shape=PAGES.shape, dtype="u2")[...] = PAGES
    text = yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.load(text.split("name one, ")[1])


@case("name the folder of one, with .zattrs, .zarray or zarr.json in it")
def a_zarr_without_its_attributes(folder):
    image(folder / "a.zarr")
    (folder / "kept").mkdir()
    for one in (folder / "a.zarr").iterdir():
        shutil.move(one, folder / "kept" / one.name)
    yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.load(folder / "kept")


@case("rm.ScalarVolume(zarr.open_array(..)[...].real.T, affine) takes what zarr itself reads")
def complex_numbers_in_a_zarr(folder):
    image(folder / "a.zarr", data=PAGES.astype("c8"))
    yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.ScalarVolume(zarr.open_array(str(folder / "a.zarr"), path="0")[...].real.T, np.eye(4))


@case("want one; rm.ScalarVolume(zarr.open_array(..)[...].T, affine) takes what zarr itself reads")
def chunks_that_are_packed_twice(folder):
    codecs = (zarr.codecs.GzipCodec(), zarr.codecs.ZstdCodec())
    image(folder / "a.zarr", version=3, compressors=codecs)
    yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.ScalarVolume(zarr.open_array(str(folder / "a.zarr"), path="0")[...].T, np.eye(4))


@case("has 2 points in time along axis 0, want one volume; choose one by time=0")
def times_of_a_zarr(folder):
    image(folder / "a.zarr", axes=[{"name": "t", "type": "time"}, *SPACE], level=None, data=np.stack([PAGES, PAGES]))
    yield lambda: rm.load(folder / "a.zarr")
    yield lambda: rm.load(folder / "a.zarr", time=0)


@case("level is 3, but it has 1; choose one from 0")
def a_level_of_a_zarr(folder):
    image(folder / "a.zarr")
    yield lambda: rm.load(folder / "a.zarr", level=3)
    yield lambda: rm.load(folder / "a.zarr", level=0)


@case("has no level '0', which its attributes name; copy all of it")
def a_zarr_without_its_level(folder):
    image(folder / "a.zarr")
    shutil.move(folder / "a.zarr" / "0", folder / "kept")
    yield lambda: rm.load(folder / "a.zarr")
    shutil.move(folder / "kept", folder / "a.zarr" / "0")
    yield lambda: rm.load(folder / "a.zarr")


@case("a packed chunk is damaged (has 20 of ")
def a_chunk_that_is_cut(folder):
    image(folder / "a.zarr")
    chunk = folder / "a.zarr" / "0" / "0.0.0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:20])
    yield lambda: rm.load(folder / "a.zarr")
    chunk.write_bytes(whole)
    yield lambda: rm.load(folder / "a.zarr")


@case("is there already and would be lost; choose another name, or --overwrite")
def a_zarr_that_is_there(folder):
    np.savez(folder / "a.npz", values=PAGES)
    rm.save(rm.ScalarVolume(PAGES), folder / "a.zarr")
    yield lambda: shell("convert", folder / "a.npz", folder / "a.zarr")
    yield lambda: shell("convert", folder / "a.npz", folder / "a.zarr", "--overwrite")


# The choice of a format.


@case("is packed by gzip, and what is in it is no map nor NIfTI; unpack it: gunzip -k a.bin.gz")
def a_file_that_is_packed(folder):
    import gzip

    np.save(folder / "a.npy", PAGES)
    (folder / "a.bin.gz").write_bytes(gzip.compress((folder / "a.npy").read_bytes()))
    yield lambda: rm.load(folder / "a.bin.gz")
    (folder / "b.npy").write_bytes(gzip.decompress((folder / "a.bin.gz").read_bytes()))
    yield lambda: rm.load(folder / "b.npy")


@case("is a ZIP archive, want a volume; unpack it: python -m zipfile -e b.zarr.zip FOLDER")
def a_zarr_that_is_zipped(folder):
    image(folder / "a.zarr")
    shutil.make_archive(str(folder / "b.zarr"), "zip", folder / "a.zarr")
    yield lambda: rm.load(folder / "b.zarr.zip")
    shutil.unpack_archive(folder / "b.zarr.zip", folder / "c.zarr")
    yield lambda: rm.load(folder / "c.zarr")


@case("is a folder of volumes, want a volume file, or a folder of slices; name the file in it, ")
def a_folder_of_one_file(folder):
    np.save(folder / "a.npy", PAGES)
    text = yield lambda: rm.load(folder)
    yield lambda: rm.load(text.split("name the file in it, ")[1])


@case("claim it alike; choose by format=")
def a_file_of_two_formats(folder):
    from raymarch.io.volumes import format_choice

    np.save(folder / "a.bin", PAGES)
    (folder / "a.bin.npy").rename(folder / "a.bin")
    both = [rm.Format(name, ".x", lambda path: True, np.load, np.save) for name in ("one", "other")]
    yield lambda: format_choice.format_of(folder / "a.bin", both)
    yield lambda: shell("info", folder / "a.bin", "--format", "npy")


RGB = np.random.default_rng(1).integers(0, 255, (5, 7, 9, 3)).astype("u1")


@pytest.mark.parametrize("name", CASES)
def test_what_a_message_says_to_do_works(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    says, steps = CASES[name]
    walk = steps(tmp_path)
    wrong = next(walk)
    with pytest.raises(rm.RaymarchError) as caught:
        wrong()
    text = str(caught.value)
    assert says in text and "\n" not in text, text
    cured = walk.send(text)
    cured()


def test_there_are_as_many_cures_as_docs_say():
    assert len(CASES) >= 45
