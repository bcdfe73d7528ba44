"""Laws of files as other programs write them: axes that nobody named, names in other orders, other containers.

What is read has the right values; what is not says what to do, and that is done here and works.
"""

from __future__ import annotations

import glob
import re
import struct
from pathlib import Path

import h5py
import numpy as np
import PIL.Image
import pytest
from click.testing import CliRunner
from skips import require_extra

import raymarch as rm
from raymarch.cli import cli, main

pytestmark = pytest.mark.extra
pydicom = require_extra("pydicom", "formats")
tifffile = require_extra("tifffile", "formats")
nibabel = require_extra("nibabel", "formats")
zarr = require_extra("zarr", "formats")
VALUES = np.arange(9 * 7 * 5, dtype="u2").reshape(9, 7, 5, order="F")
PAGES = np.ascontiguousarray(VALUES.T)
GREY = {"photometric": "minisblack"}
NAMES = {"np": np, "re": re, "glob": glob, "PIL": PIL, "h5py": h5py, "nibabel": nibabel, "tifffile": tifffile}


def refusal(path, **how):
    with pytest.raises(rm.RaymarchError) as caught:
        rm.load(path, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def in_shell(*words):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, (SystemExit, rm.RaymarchError)), result.exception
    return result


# Axes of a TIFF.

NAMED = [  # pages; how they are written; what is chosen; said
    (np.stack([PAGES, PAGES + 1]), GREY, {"channel": 1}, ""),
    (np.stack([PAGES, PAGES + 1, PAGES]), {**GREY, "bigtiff": True}, {"channel": 1}, ""),
    (PAGES + 1, {"imagej": True}, {}, "its 5 pages channels"),
    (PAGES + 1, {"imagej": True, "metadata": {"axes": "TYX"}}, {}, "its 5 pages points in time"),
    (np.stack([PAGES, PAGES + 1], 1), {"imagej": True, "metadata": {"axes": "TCYX"}}, {"channel": 1}, "in time"),
    (np.stack([PAGES, PAGES + 1]), {"imagej": True, "metadata": {"axes": "TZYX"}}, {"time": 1}, ""),
    (np.stack([PAGES, PAGES + 1], 1), {"ome": True, "metadata": {"axes": "ZCYX"}}, {"channel": 1}, ""),
]


@pytest.mark.parametrize(("pages", "how", "chosen", "said"), NAMED)
def test_axes_of_a_tiff_are_told_apart_whoever_named_them(pages, how, chosen, said, tmp_path, caplog):
    tifffile.imwrite(tmp_path / "a.tif", pages, **how)
    if chosen:
        assert re.search(r"choose one by (channel|time)=0", refusal(tmp_path / "a.tif"))
    found = rm.load(tmp_path / "a.tif", **chosen)
    np.testing.assert_array_equal(found.values, VALUES + 1)
    part = rm.load(tmp_path / "a.tif", crop=((2, 5), (1, 4), (1, 3)), **chosen)
    np.testing.assert_array_equal(part.values, VALUES[2:5, 1:4, 1:3] + 1)
    assert said in caplog.text


@pytest.mark.parametrize("how", [GREY, {"photometric": "rgb"}])
def test_one_volume_of_five_axes_is_taken_as_the_message_says(how, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages = PAGES.astype("u1")
    several = np.stack([np.stack([pages] * 2)] * 3) if how == GREY else np.stack([np.stack([pages] * 3, -1)] * 2)
    tifffile.imwrite("a.tif", several, **how)
    exec(refusal(Path("a.tif"), channel=1).split("in Python: ")[1], dict(NAMES))
    np.testing.assert_array_equal(rm.load("one.tif").values, VALUES.astype("u1"))


def test_three_channels_are_a_picture_and_slices_once_they_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tifffile.imwrite("a.tif", PAGES[:3], imagej=True)
    exec(refusal(Path("a.tif")).split("in Python: ")[1], dict(NAMES))
    np.testing.assert_array_equal(rm.load("stack.tif").values, VALUES[..., :3])


# Folders of slices.

FOLDERS = [  # name of the slice at z of the channel c
    lambda z, c: f"img_z{z:03d}_c{c}.tif",
    lambda z, c: f"img_t000_z{z}_ch{c:02d}.tif",
    lambda z, c: f"a_c{c}_z{z}.tif",
    lambda z, c: f"Exp1_Z{z:02d}_C{c}.tif",
    lambda z, c: f"plane_{z}_channel-{c}.tif",
    lambda z, c: f"well_{z:03d}_w{c}.tif",
]


@pytest.mark.parametrize("name", FOLDERS, ids=lambda name: name(0, 0))
@pytest.mark.parametrize("lacks", [False, True])
def test_the_number_of_z_counts_the_slices_wherever_it_stands(name, lacks, tmp_path):
    for z in range(5):
        for c in range(2):
            if not (lacks and (z, c) == (4, 1)):
                tifffile.imwrite(tmp_path / name(z, c), PAGES[z] + 400 * c)
    assert "choose one by channel=0 to channel=1" in refusal(tmp_path)
    np.testing.assert_array_equal(rm.load(tmp_path, channel=0).values, VALUES)
    np.testing.assert_array_equal(rm.load(tmp_path, channel=1).values, (VALUES + 400)[..., : 4 if lacks else 5])


def test_names_in_large_and_small_letters_are_one_stack_in_the_order_of_their_numbers(tmp_path):
    for z, name in enumerate(["img1.tif", "IMG2.TIF", "img3.TIF", "Img4.tif", "IMG5.tif"]):
        tifffile.imwrite(tmp_path / name, PAGES[z])
    np.testing.assert_array_equal(rm.load(tmp_path).values, VALUES)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("ending", [".pgm", ".gif", ".tga", ".npy", ".raw"])
def test_slices_of_a_kind_that_is_not_read_are_stacked_as_the_message_says(ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").mkdir()
    for z, page in enumerate(PAGES.astype("u1")):
        file = tmp_path / "s" / f"s{z + 8}{ending}"
        if ending == ".npy":
            np.save(file, page)
        elif ending == ".raw":
            file.write_bytes(page.tobytes())
        else:
            PIL.Image.fromarray(page).save(file)
    line = refusal(Path("s")).split("in Python: ")[1]
    exec(line, {**NAMES, "DTYPE": "u1", "ROWS": 7, "COLUMNS": 9})
    np.testing.assert_array_equal(rm.load("a.npy").values, VALUES.astype("u1"))


CONTENTS = {
    "": "is an empty folder",
    "attributes.json": "is N5, want OME-Zarr; open it in Fiji",
    "info": "is Neuroglancer's precomputed volume",
    "a.exr b.exr": "is a folder of 2 .exr files, want slices as TIFF",
}


@pytest.mark.parametrize("names", CONTENTS)
def test_a_folder_of_another_kind_is_told_for_what_it_is(names, tmp_path):
    for name in names.split():
        (tmp_path / name).write_text("{}")
    assert CONTENTS[names] in refusal(tmp_path)


# DICOM.


def series(folder, change=None, **tags):
    folder.mkdir()
    uid = pydicom.uid.generate_uid()
    for k, pixels in enumerate(PAGES):
        meta = pydicom.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
        meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        data = pydicom.dataset.FileDataset("", {}, file_meta=meta, preamble=bytes(128))
        data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        data.SeriesInstanceUID, data.Modality, data.InstanceNumber = uid, "MR", k + 1
        data.Rows, data.Columns, data.SamplesPerPixel = 7, 9, 1
        data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
        data.PhotometricInterpretation, data.PixelSpacing = "MONOCHROME2", [0.5, 0.5]
        data.ImagePositionPatient, data.ImageOrientationPatient = [0, 0, 2.0 * k], [1, 0, 0, 0, 1, 0]
        data.PixelData = pixels.astype("<u2").tobytes()
        for tag, value in tags.items():
            setattr(data, tag, value)
        if change is not None:
            change(data)
        data.save_as(folder / f"{k}.dcm", enforce_file_format=True)
    return folder


def as_floats(data):
    values = np.frombuffer(data.PixelData, "<u2").astype("<f4") / 4
    del data.PixelData, data.BitsStored, data.HighBit, data.PixelRepresentation
    data.BitsAllocated, data.FloatPixelData = 32, values.tobytes()


def test_float_pixels_are_read(tmp_path):
    found = rm.load(series(tmp_path / "a", as_floats))
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(found.values, VALUES / 4)


def test_a_decimal_comma_is_one(tmp_path):
    folder = series(tmp_path / "a")
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes().replace(b"0.5\\0.5", b"0,5\\0,5"))
    np.testing.assert_allclose(rm.load(folder).spacing, (0.5, 0.5, 2))


@pytest.mark.parametrize("kind", ["meta", "implicit", "explicit"])
def test_files_without_a_preamble_are_written_anew_as_the_message_says(kind, tmp_path):
    folder = series(tmp_path / "a")
    for file in folder.iterdir():
        if kind == "meta":
            file.write_bytes(file.read_bytes()[132:])
        else:
            data = pydicom.Dataset(pydicom.dcmread(file))
            data.save_as(file, implicit_vr=kind == "implicit", little_endian=True)
    said = refusal(folder)
    assert said.partition(": ")[2] == refusal(folder / "1.dcm").partition(": ")[2]
    files, do = re.search(r"for f in (.*?): (d = .*)", said).groups()
    for file in eval(files, dict(NAMES)):
        exec(do, {"pydicom": pydicom, "f": file})
    np.testing.assert_array_equal(rm.load(folder).values, VALUES)


def test_a_mosaic_a_cut_slice_and_frames_without_places_are_told(tmp_path):
    kinds = ["ORIGINAL", "PRIMARY", "M", "MOSAIC"]
    assert "is a mosaic of the slices of a volume" in refusal(series(tmp_path / "a", ImageType=kinds))
    file = series(tmp_path / "b") / "3.dcm"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(rm.RaymarchError, match=r"3\.dcm: ends before its pixels do .*; copy it again"):
        _ = rm.load(tmp_path / "b").values
    data = pydicom.dcmread(series(tmp_path / "c") / "0.dcm")
    data.NumberOfFrames, data.PixelData = 5, PAGES.tobytes()
    del data.ImagePositionPatient
    data.save_as(tmp_path / "us.dcm")
    call = re.search(r"rm\.ScalarVolume takes (\S+) and an affine", refusal(tmp_path / "us.dcm"))[1]
    pixels = eval(call.replace("'us.dcm'", repr(str(tmp_path / "us.dcm"))), {"pydicom": pydicom})
    np.testing.assert_array_equal(rm.ScalarVolume(pixels, np.eye(4)).values, VALUES)


# Containers of other kinds.


def test_cifti_is_told_and_a_volume_of_it_made_as_the_message_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    affine = np.diag([1.0, 2, 3, 1])
    model = nibabel.cifti2.BrainModelAxis.from_mask(np.ones((3, 4, 5), bool), "thalamus_left", affine)
    image = nibabel.Cifti2Image(np.arange(60.0)[None], (nibabel.cifti2.ScalarAxis(["a"]), model))
    image.to_filename("a.dscalar.nii")
    exec(refusal(Path("a.dscalar.nii")).split("lie in one: ")[1], dict(NAMES))
    found = rm.load("a.nii.gz")
    np.testing.assert_array_equal(found.values, np.arange(60.0).reshape(3, 4, 5))
    np.testing.assert_array_equal(found.spacing, (1, 2, 3))


HEADER = '<?xml version="1.0"?>\n<VTKFile type="{}" version="1.0" byte_order="LittleEndian" header_type="UInt32">'
OTHERS = {
    "a.vtr": (HEADER.format("RectilinearGrid").encode(), "is RectilinearGrid of VTK"),
    "a.vtm": (HEADER.format("vtkMultiBlockDataSet").encode(), "is vtkMultiBlockDataSet of VTK"),
    "a.pvti": (HEADER.format("PImageData").encode(), "is PImageData of VTK, want ImageData (.vti); open it"),
    "a.surf.gii": (
        b'<?xml version="1.0"?>\n<!DOCTYPE GIFTI>\n<GIFTI Version="1.0">\n1 0 0\n0 1 0\n</GIFTI>',
        "is GIFTI",
    ),
    "a+orig.BRIK": (bytes(90), "is values of AFNI, whose header is the .HEAD beside"),
    "a+orig.BRIK.gz": (b"\x1f\x8b" + bytes(90), "is values of AFNI, whose header is the .HEAD beside"),
    "a.mha": (b"ObjectType = Mesh\nNDims = 3\n", "is a Mesh of MetaIO, want an Image"),
    "a.xml": (b"<a>\n 1 2 3\n<b>\n 1 2 3\n</a>\n", "is no volume file of a known format"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_program_is_told_for_what_it_is(name, tmp_path):
    data, said = OTHERS[name]
    (tmp_path / name).write_bytes(data)
    assert said in refusal(tmp_path / name)


def test_an_hdf5_of_fields_or_links_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("fields.h5", "w") as file:
        file["v"] = np.zeros(PAGES.shape, [("density", "u2"), ("label", "u1")])
        values = file["v"][...]
        values["density"] = PAGES
        file["v"][...] = values
    exec(refusal(Path("fields.h5")).split("in Python: ")[1], dict(NAMES))
    np.testing.assert_array_equal(rm.load("a.npy").values, VALUES)
    with h5py.File("master.h5", "w") as file:
        file["entry/data/data_000001"] = h5py.ExternalLink("gone_000001.h5", "/data")
    assert "data_000001 in gone_000001.h5; name the one that holds the values" in refusal(Path("master.h5"))


def test_a_number_is_no_array_and_a_slice_of_a_nifti_no_volume(tmp_path):
    np.save(tmp_path / "a.npy", np.float64(3))
    assert "has one number, want an array (x, y, z)" in refusal(tmp_path / "a.npy")
    nibabel.save(nibabel.Nifti1Image(VALUES[..., 0].astype("i2"), np.eye(4)), tmp_path / "a.nii")
    assert "has 9 x 7 values, want x, y and z; a slice is no volume" in refusal(tmp_path / "a.nii")


@pytest.mark.parametrize("version", [2, 3])
def test_coordinates_beside_an_array_are_said_to_be_left(version, tmp_path, caplog):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    named = {"dimension_names": ["z", "y", "x"]} if version == 3 else {}
    array = group.create_array("rho", data=PAGES, **named)
    array.attrs["_ARRAY_DIMENSIONS"] = ["z", "y", "x"]
    for name, n in zip("zyx", PAGES.shape, strict=True):
        group.create_array(name, data=np.arange(n) * 0.5)
    found = rm.load(tmp_path / "a.zarr" / "rho")
    np.testing.assert_array_equal(found.values, VALUES)
    assert "has coordinates beside it, z, y, x, which are not read" in caplog.text


# The shell.


def test_info_of_a_file_whose_format_is_named_says_what_to_type(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("a.bin", "wb") as file:
        np.save(file, VALUES)
    assert "raymarch convert a.bin one.h5 --format npy" in in_shell("info", "a.bin", "--format", "npy").output
    assert in_shell("convert", "a.bin", "one.h5", "--format", "npy").exit_code == 0
    np.testing.assert_array_equal(rm.load("one.h5").values, VALUES)


@pytest.mark.parametrize("shape", [(9, 7, 5, 6), (9, 7, 5, 1, 3)])
def test_a_choice_is_told_once_in_the_words_of_the_shell(shape, tmp_path, capsys):
    image = nibabel.Nifti1Image(np.zeros(shape, "f4"), np.eye(4))
    if len(shape) == 5:
        image.header.set_intent("vector")
    nibabel.save(image, tmp_path / "a.nii.gz")
    with pytest.raises(SystemExit):
        main(["info", str(tmp_path / "a.nii.gz")])
    told = capsys.readouterr().err.strip()
    option = "--channel" if len(shape) == 5 else "--time-point"
    assert told.count(option) == 1 and told.endswith(f"choose one by {option} 0") and "in the shell" not in told


def test_a_spacing_of_a_stack_with_a_decimal_comma_is_read(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", PAGES, imagej=True, metadata={"axes": "ZYX", "spacing": "2,5", "unit": "mm"})
    assert rm.load(tmp_path / "a.tif").spacing[2] == 2.5


def test_a_nifti_that_is_only_a_header_s_worth_is_damage(tmp_path):
    nibabel.save(nibabel.Nifti1Image(VALUES.astype("i2"), np.eye(4)), tmp_path / "a.nii")
    data = bytearray((tmp_path / "a.nii").read_bytes())
    struct.pack_into("<f", data, 108, 4.0)
    (tmp_path / "a.nii").write_bytes(data)
    assert "want x, y, z from 352 or more; restore it" in refusal(tmp_path / "a.nii")
