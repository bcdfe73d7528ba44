"""Laws of scalar volumes' files: numbers, types and places come back, whatever the format can hold of them."""

from __future__ import annotations

import base64
import gzip
import logging
import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skips import require_extra

import raymarch as rm
from raymarch.cli import cli
from raymarch.io.volumes.scalar_format import explain_damage
from raymarch.io.volumes.volume_file import FORMATS

pytestmark = pytest.mark.extra
RNG = np.random.default_rng(7)
SHAPE = (5, 6, 7)
UPRIGHT = np.diag([0.5, 1, 2.5, 1.0])
UPRIGHT[:3, 3] = (10, -20, 3)
TURNED, SHEARED = UPRIGHT.copy(), UPRIGHT.copy()
TURNED[:3, :3] = np.linalg.qr(RNG.normal(size=(3, 3)))[0] * (0.5, 1, 2.5)
SHEARED[:3, :3] = RNG.normal(size=(3, 3)) * (0.5, 1, 2.5)
PLACES = {"upright": UPRIGHT, "turned": TURNED, "sheared": SHEARED}
UP_TO_32 = ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")
ALL = (*UP_TO_32, "i8", "u8")


@dataclass(frozen=True)
class Holds:
    """What a format can hold: how a volume may lie, which types, which fields; and the library that it needs."""

    place: str
    library: str | None = None
    kinds: tuple[str, ...] = ALL
    fields: tuple[str, ...] = ("unit", "length_unit", "world", "name")
    world: str = ""  # the only one, of formats that have one


HELD = {
    ".h5": Holds("sheared"),
    ".xdmf": Holds("upright"),
    ".npz": Holds("sheared"),
    ".nrrd": Holds("sheared"),
    ".nii": Holds("sheared", "nibabel", fields=("length_unit", "name"), world="RAS"),
    ".nii.gz": Holds("sheared", "nibabel", fields=("length_unit", "name"), world="RAS"),
    ".mha": Holds("sheared", fields=("length_unit", "name"), world="LPS"),
    ".mhd": Holds("sheared", fields=("length_unit", "name"), world="LPS"),
    ".vti": Holds("turned", fields=("name",)),
    ".mrc": Holds("upright", "mrcfile", ("i1", "i2", "u2", "f4"), ("name",)),
    ".tif": Holds("upright", "tifffile", UP_TO_32, ("length_unit",)),
    ".ome.tif": Holds("upright", "tifffile", UP_TO_32, ("length_unit",)),
    ".ome.zarr": Holds("upright", "zarr", fields=("length_unit", "name")),
    ".vdb": Holds("sheared", kinds=tuple(kind for kind in ALL if kind != "f8")),
    ".dicom": Holds("turned", "pydicom", ("i2", "u2"), ("unit", "length_unit", "name"), world="LPS"),
}
EACH = pytest.mark.parametrize("suffix", HELD)


def need(suffix: str) -> Holds:
    """What a format holds; the test is skipped where its library is missing."""
    held = HELD[suffix]
    if held.library is not None:
        require_extra(held.library, "formats")
    return held


def volume(suffix=".h5", kind="i2", place=None, **more):
    """A scalar volume of which no two values are alike along any axis, as a format may hold it."""
    values = (np.arange(np.prod(SHAPE)).reshape(SHAPE) * 7 % 251 // (2 if kind == "i1" else 1)).astype(kind)
    held = HELD[suffix]
    fields = {"unit": "HU", "length_unit": "mm", "name": "head", "world": held.world or "LPS"}
    return rm.ScalarVolume(values, PLACES[place or held.place], **{**fields, **more})


def saved(folder: Path, suffix=".h5", kind="i2", **more):
    path = folder / f"a{suffix}"
    rm.save(volume(suffix, kind, **more), path, overwrite=True)
    return path


def refused(call, *said):
    """The error of a call, in one line that has all of the texts."""
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in said), text
    return text


def require_place(found, wanted):
    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * scale)


# There and back.


@pytest.mark.parametrize(("suffix", "kind"), [(s, k) for s, held in HELD.items() for k in held.kinds])
def test_what_is_written_comes_back(suffix, kind, tmp_path):
    held, wanted = need(suffix), volume(suffix, kind)
    found = rm.load(saved(tmp_path, suffix, kind))
    np.testing.assert_array_equal(found.values, wanted.values)
    assert found.values.dtype == wanted.values.dtype
    require_place(found.world_from_index, wanted.world_from_index)
    for name in held.fields:
        assert getattr(found, name) == getattr(wanted, name)
    assert found.world in (wanted.world, "") and (found.world == "") == (not held.world and "world" not in held.fields)


@EACH
def test_slope_and_intercept_are_kept_or_applied_and_whole_numbers_stay_whole(suffix, tmp_path):
    need(suffix)
    wanted = volume(suffix, "u2", slope=2.0, intercept=-1024.0)
    found = rm.load(saved(tmp_path, suffix, "u2", slope=2.0, intercept=-1024.0))
    np.testing.assert_array_equal(found.numbers(), wanted.numbers())
    assert found.values.dtype.kind in "iu"


@EACH
def test_few_columns_are_no_colours_and_half_precision_is_single_in_memory(suffix, tmp_path):
    holds = need(suffix)
    stored = (1000 * RNG.random((3, 6, 4))).astype("f2" if "f4" in holds.kinds else "i2")
    volume = rm.ScalarVolume(stored, UPRIGHT, slope=1000.0 if "f4" in holds.kinds else 1.0)
    wanted = stored.astype(float) * volume.slope  # more than half precision reaches
    np.testing.assert_array_equal(volume.numbers(), wanted.astype(np.float32))
    rm.save(volume, tmp_path / f"v{suffix}")
    np.testing.assert_allclose(rm.load(tmp_path / f"v{suffix}").numbers(), wanted, rtol=2e-7)
    rm.save(replace(volume, slope=1.0), tmp_path / f"v{suffix}", overwrite=True)
    np.testing.assert_array_equal(rm.load(tmp_path / f"v{suffix}").numbers(), stored)


def test_every_damaged_byte_of_packed_values_is_told_and_several_streams_are_one(tmp_path):
    need(".nii.gz")
    volume, path = rm.ScalarVolume(RNG.integers(0, 99, (4, 3, 2)).astype(np.uint8)), tmp_path / "v.nii.gz"
    rm.save(volume, path)
    packed = path.read_bytes()
    for at in range(10, len(packed)):
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0x5A]) + packed[at + 1 :])
        with pytest.raises(rm.RaymarchError):
            rm.load(path)
    plain = gzip.decompress(packed)
    path.write_bytes(gzip.compress(plain[:100]) + gzip.compress(plain[100:360]) + gzip.compress(plain[360:]))
    np.testing.assert_array_equal(rm.load(path).values, volume.values)


@EACH
def test_the_description_is_that_of_the_volume(suffix, tmp_path):
    need(suffix)
    path = saved(tmp_path, suffix)
    found, said = rm.load(path), rm.describe(path)
    assert (said.shape, said.dtype, said.world, said.sides) == (SHAPE, "int16", found.world, found.sides)
    assert (said.bytes_in_memory, said.name, said.unit) == (found.nbytes, found.name, found.unit)
    np.testing.assert_array_equal(said.world_from_index, found.world_from_index)
    np.testing.assert_allclose(said.spacing, found.spacing)


@EACH
def test_a_part_is_that_of_the_volume(suffix, tmp_path):
    need(suffix)
    path = saved(tmp_path, suffix)
    whole = rm.load(path)
    part = rm.load(path, crop=((1, 5), (0, 6), (2, 7)), stride=(1, 2, 3))
    np.testing.assert_array_equal(part.values, whole.values[1:5, ::2, 2:7:3])
    np.testing.assert_allclose(part.world_from_index @ [1, 1, 1, 1], whole.world_from_index @ [2, 2, 5, 1])
    wider = rm.load(path, crop=((1, 5), (0, 6), (2, 7)), stride=(1, 2, 3), spacing=(1, 2, 4))
    np.testing.assert_allclose(wider.spacing, (1, 4, 12))
    refused(lambda: rm.load(path, crop=((0, 9), (0, 6), (0, 7))), "ends beyond the shape")
    refused(lambda: rm.load(path, channel=1), "channel")


@EACH
@pytest.mark.parametrize("place", ["turned", "sheared"])
def test_a_place_that_a_format_cannot_hold_is_refused(suffix, place, tmp_path):
    held = need(suffix)
    lies = list(PLACES)
    if lies.index(place) <= lies.index(held.place):
        return
    said = refused(lambda: saved(tmp_path, suffix, place=place), "cannot hold; save it as .nrrd")
    assert str(tmp_path / f"a{suffix}") in said
    assert not [file for file in tmp_path.iterdir() if file.suffix not in (".h5",)]


@pytest.mark.parametrize("suffix", [".nii", ".mha", ".nrrd", ".h5"])
@pytest.mark.parametrize("world", ["RAS", "LPS", "LAS"])
def test_a_place_in_the_body_is_the_same_in_every_format(suffix, world, tmp_path):
    need(suffix)
    found = rm.load(saved(tmp_path, suffix, world=world))
    wanted = volume(suffix, world=world)
    assert found.world == (HELD[suffix].world or world) and found.sides == wanted.sides
    require_place(found.in_world(world).world_from_index, wanted.world_from_index)


def test_a_fit_is_saved_as_its_sigma_and_what_is_no_grid_is_refused(tmp_path, caplog):
    ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(6, 7, 8))
    rm.save(ball, tmp_path / "a.vti")
    found = rm.load(tmp_path / "a.vti")
    np.testing.assert_array_equal(found.numbers(), ball.sigma())
    np.testing.assert_allclose(found.world_from_index, ball.world_from_index, atol=1e-12)
    assert "the file gets sigma of the volume on its grid" in caplog.text
    refused(lambda: rm.save(replace(ball, boxes=3), tmp_path / "b.vti"), "b.vti: the volume is of 3 nested boxes")


# What is there already.


@pytest.mark.parametrize("suffix", [".mha", ".vti", ".npz", ".ome.zarr"])
def test_files_of_others_are_replaced_only_when_asked(suffix, tmp_path):
    need(suffix)
    path = saved(tmp_path, suffix)
    refused(lambda: rm.save(volume(suffix), path), "would be lost; choose another name, or --overwrite")
    rm.save(volume(suffix, "u1"), path, overwrite=True)
    assert rm.load(path).values.dtype == np.uint8
    assert [file.name for file in tmp_path.iterdir()] == [f"a{suffix}"]


# Values that are none, channels, raw values.


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_counted_and_taken_as_asked(bad, tmp_path, caplog):
    values = volume(kind="f4").values.copy() + 1
    values[1, 2, 3] = values[4, 5, 6] = bad
    np.save(tmp_path / "a.npy", values)
    refused(lambda: rm.load(tmp_path / "a.npy"), "2 of its 210 values are NaN or infinite", "nan='empty'")
    for nan, put in (("empty", 1.0), (-5, -5.0)):
        found = rm.load(tmp_path / "a.npy", nan=nan)
        assert found.values[1, 2, 3] == found.values[4, 5, 6] == put
        assert f"2 of its 210 values are NaN or infinite; taken as {put:g}" in caplog.text
    np.save(tmp_path / "b.npy", np.full(SHAPE, bad, "f4"))
    refused(lambda: rm.load(tmp_path / "b.npy", nan="empty"), "all its values")


def test_one_of_several_channels_is_chosen(tmp_path):
    values = np.arange(4 * 5 * 6 * 3, dtype="u1").reshape(4, 5, 6, 3)
    np.save(tmp_path / "a.npy", values)
    refused(
        lambda: rm.load(tmp_path / "a.npy"), "has 3 channels along axis 3, want one volume; choose one by channel=0"
    )
    refused(lambda: rm.load(tmp_path / "a.npy", channel=3), "channel is 3, but it has 3; choose one from 0 to 2")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.npy", channel=2).values, values[..., 2])
    assert rm.describe(tmp_path / "a.npy", channel=1).shape == (4, 5, 6)


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "u1", ">f8"])
def test_raw_values_are_read_by_what_the_caller_says(dtype, tmp_path):
    path, values = tmp_path / "a.raw", volume().values.astype(dtype)
    path.write_bytes(b"head" + values.tobytes(order="F"))
    found = rm.load(path, shape=SHAPE, dtype=dtype, spacing=(1, 2, 3), offset=4)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.world_from_index, np.diag([1, 2, 3, 1]))
    refused(lambda: rm.load(path, shape=SHAPE, dtype=dtype), "correct shape or dtype, or say by offset")
    refused(lambda: rm.load(path, shape=SHAPE), "raw values need shape and dtype")
    refused(lambda: rm.load(path, shape=(1 << 20, 1 << 20, 1 << 20), dtype=dtype), "but 1048576 x 1048576 x 1048576 of")
    refused(lambda: rm.load(path), "give shape and dtype of raw values")


# Memory.


@EACH
def test_what_is_over_the_budget_is_refused_before_it_is_read_and_a_part_is_read(suffix, tmp_path, monkeypatch):
    need(suffix)
    path = saved(tmp_path, suffix)
    monkeypatch.setenv("RAYMARCH_FILE_GB", "4e-7")  # 400 bytes
    if suffix == ".ome.zarr":
        return  # whose levels are looked through instead
    refused(lambda: rm.load(path), "over the budget of 400 bytes")
    if suffix in (".mrc", ".nii", ".tif", ".ome.tif"):
        assert rm.load(path, stride=2).shape == (3, 3, 4)


def test_the_finest_level_that_fits_is_read_and_said(tmp_path, monkeypatch, caplog):
    need(".ome.zarr")
    big = rm.ScalarVolume(np.arange(80 * 72 * 66, dtype="u4").reshape(80, 72, 66), UPRIGHT, length_unit="um")
    rm.save(big, tmp_path / "a.zarr")
    assert rm.load(tmp_path / "a.zarr").shape == (80, 72, 66)
    coarse = rm.load(tmp_path / "a.zarr", level=1)
    np.testing.assert_allclose(coarse.world_from_index @ [0, 0, 0, 1], UPRIGHT @ [0.5, 0.5, 0.5, 1])
    np.testing.assert_allclose(coarse.spacing, 2 * big.spacing)
    fine = big.values.astype(float)
    means = fine.reshape(40, 2, 36, 2, 33, 2).mean((1, 3, 5))
    np.testing.assert_allclose(coarse.values, means, atol=0.5)
    refused(lambda: rm.load(tmp_path / "a.zarr", level=9), "level is 9, but it has 2")
    monkeypatch.setenv("RAYMARCH_FILE_GB", "1.1e-3")
    assert rm.load(tmp_path / "a.zarr").shape == (40, 36, 33)
    assert "level 1 of 2 is read, 40 x 36 x 33" in caplog.text


# Damage.


def one_line_or_a_volume(path, **how):
    try:
        rm.load(path, **how)
    except rm.RaymarchError as error:
        assert "\n" not in str(error) and str(path.name) in str(error) and len(str(error)) < 600
        return False
    return True


FILES = [suffix for suffix in HELD if suffix not in (".ome.zarr", ".dicom", ".xdmf")]


@pytest.mark.parametrize("suffix", FILES)
def test_a_truncated_file_is_told(suffix, tmp_path):
    need(suffix)
    whole = saved(tmp_path, suffix).read_bytes()
    path = tmp_path / f"b{suffix}"
    ends = len(whole) - 40 if suffix in (".vti", ".npz") else len(whole) - 1
    for size in np.unique(np.linspace(0, ends, 25).astype(int)):
        path.write_bytes(whole[:size])
        assert not one_line_or_a_volume(path), size


@pytest.mark.parametrize("suffix", FILES)
def test_a_damaged_file_is_a_volume_or_one_line(suffix, tmp_path, caplog):
    need(suffix)
    caplog.set_level(logging.CRITICAL)
    whole, rng = saved(tmp_path, suffix).read_bytes(), np.random.default_rng(1)
    path, read = tmp_path / f"b{suffix}", 0
    for _ in range(60):
        data = bytearray(whole)
        for at in rng.integers(0, min(len(data), 700), rng.integers(1, 4)):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        read += one_line_or_a_volume(path)
    assert read < 60


@pytest.mark.parametrize("suffix", HELD)
def test_an_empty_file_a_folder_and_a_text_are_told(suffix, tmp_path):
    need(suffix)
    path = tmp_path / f"b{suffix}"
    path.write_bytes(b"")
    refused(lambda: rm.load(path), "is empty")
    path.write_text("hello " * 99)
    refused(lambda: rm.load(path), str(path))
    path.unlink()
    path.mkdir()
    refused(lambda: rm.load(path), str(path))


def gzipped(size: int) -> bytes:
    """A stream of zeros that is a thousand times as long unpacked."""
    return gzip.compress(bytes(size), 9)


NRRD = "NRRD0004\ntype: {type}\ndimension: 3\nsizes: {sizes}\nencoding: {encoding}\nendian: little\n{more}\n"
META = "NDims = 3\nDimSize = {size}\nElementType = MET_SHORT\nElementSpacing = 1 1 1\nElementDataFile = {data}\n"
HOSTILE = {
    "nrrd of a list": ("a.nhdr", NRRD.format(type="short", sizes="4 4 4", encoding="raw", more="data file: LIST\nb\n")),
    "nrrd of /etc": (
        "a.nhdr",
        NRRD.format(type="short", sizes="4 4 4", encoding="raw", more="data file: /etc/passwd\n"),
    ),
    "nrrd above": ("a.nhdr", NRRD.format(type="short", sizes="4 4 4", encoding="raw", more="data file: ../b.raw\n")),
    "nrrd of many": ("a.nrrd", NRRD.format(type="double", sizes="99999 99999 99999", encoding="raw", more="")),
    "nrrd overflow": ("a.nrrd", NRRD.format(type="short", sizes="4294967296 4294967296 4", encoding="gzip", more="")),
    "nrrd negative": ("a.nrrd", NRRD.format(type="short", sizes="-4 -4 4", encoding="raw", more="")),
    "nrrd of blocks": ("a.nrrd", NRRD.format(type="block", sizes="4 4 4", encoding="raw", more="")),
    "nrrd of hex": ("a.nrrd", NRRD.format(type="short", sizes="4 4 4", encoding="hex", more="")),
    "mhd of a list": ("a.mhd", META.format(size="4 4 4", data="LIST")),
    "mhd above": ("a.mhd", META.format(size="4 4 4", data="../b.raw")),
    "mhd of /etc": ("a.mhd", META.format(size="4 4 4", data="/etc/passwd")),
    "mhd of a pattern": ("a.mhd", META.format(size="4 4 4", data="slice%03d.raw 1 4 1")),
    "mha of many": ("a.mha", META.format(size="2000000 2000000 2000000", data="LOCAL")),
    "mha overflow": ("a.mha", META.format(size="1e400 2 2", data="LOCAL")),
    "mha negative": ("a.mha", META.format(size="-4 -4 4", data="LOCAL")),
    "vti with entities": ("a.vti", '<!DOCTYPE a [<!ENTITY b "c">]><VTKFile type="ImageData">&b;</VTKFile>'),
    "vti of two pieces": ("a.vti", '<VTKFile type="ImageData"><ImageData><Piece/><Piece/></ImageData></VTKFile>'),
    "vti of nothing": ("a.vti", '<VTKFile type="ImageData"><ImageData/></VTKFile>'),
    "vti of many": (
        "a.vti",
        '<VTKFile type="ImageData"><ImageData><Piece Extent="0 99999 0 99999 0 99999"><PointData><DataArray type="Int8"'
        ' Name="a" format="appended" offset="0"/></PointData></Piece></ImageData>'
        '<AppendedData encoding="raw">_12345678',
    ),
    "vti with a long word": (
        "a.vti",
        '<VTKFile type="ImageData"><ImageData><Piece Extent="0 3 0 3 0 3"><PointData><DataArray type="Int32" Name="a"'
        f' format="ascii">{"0 " * 63}{"0" * 65}</DataArray></PointData></Piece></ImageData></VTKFile>',
    ),
    "xdmf of others": ("a.xdmf", '<Xdmf><DataItem Format="HDF">b.h5:/other</DataItem></Xdmf>'),
    "xdmf above": ("a.xdmf", '<Xdmf><DataItem Format="HDF">../b.h5:/values</DataItem></Xdmf>'),
}


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".nrrd", ".mha", ".mrc"])
def test_a_file_that_lies_about_its_size_is_told_to_be_damaged_and_not_to_be_too_large(suffix, tmp_path):
    need(suffix)
    path = saved(tmp_path, suffix)
    data = gzip.decompress(path.read_bytes()) if suffix == ".nii.gz" else path.read_bytes()
    many = np.array([30000] * 3, "<i2" if suffix.startswith(".nii") else "<i4").tobytes()
    if suffix in (".nrrd", ".mha"):
        data = re.sub(rb"(sizes: |DimSize = )[\d ]+", rb"\g<1>30000 30000 30000", data)
    else:
        at = 0 if suffix == ".mrc" else 42
        data = data[:at] + many + data[at + len(many) :]
    path.write_bytes(gzip.compress(data) if suffix == ".nii.gz" else data)
    for verb in (rm.load, rm.describe):
        said = refused(lambda verb=verb: verb(path), "declares ", "30000 x 30000 x 30000", "but holds")
        assert said.endswith("restore it from a copy or export it again")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(name, tmp_path):
    file, text = HOSTILE[name]
    if file.endswith(("nrrd", "nhdr")):
        need(".nrrd")
    inner = tmp_path / "inner"
    inner.mkdir()
    shutil.copy(saved(tmp_path), tmp_path / "b.h5")
    (tmp_path / "b.raw").write_bytes(bytes(128))
    (inner / file).write_bytes(text.encode())
    assert str(inner / file) in refused(lambda: rm.load(inner / file))


def test_streams_of_zeros_take_no_memory(tmp_path):
    """A gigabyte, of which the header admits one kilobyte or all: refused by what it stores, or cut."""
    need(".nii.gz")
    import nibabel

    header = nibabel.Nifti1Header()
    header.set_data_shape((1024, 1024, 512))
    header.set_data_dtype(np.int16)
    header["vox_offset"] = 352
    (tmp_path / "a.nii.gz").write_bytes(gzip.compress(header.binaryblock + bytes(5000)))
    refused(lambda: rm.load(tmp_path / "a.nii.gz"), "1024 x 1024 x 512 of int16, 1,073,741,824 bytes")
    header.set_data_shape((8, 8, 8))
    (tmp_path / "a.nii.gz").write_bytes(gzip.compress(header.binaryblock + bytes(1 << 24)))
    assert rm.load(tmp_path / "a.nii.gz").shape == (8, 8, 8)


@pytest.mark.parametrize("suffix", [suffix for suffix, held in HELD.items() if held.library])
def test_a_missing_library_names_the_extra(suffix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, HELD[suffix].library, None)
    said = refused(lambda: saved(tmp_path, suffix), "is not installed, which raymarch needs for", '"raymarch[formats]"')
    assert said.startswith(str(tmp_path / f"a{suffix}"))
    assert not list(tmp_path.iterdir())


# The command line.


def run(capsys, *words):
    cli.main([str(word) for word in words], standalone_mode=False)
    return capsys.readouterr().out


def test_a_volume_is_converted_and_described_on_the_command_line(tmp_path, capsys):
    head = volume(intercept=-24.0)
    rm.save(head, tmp_path / "a.h5")
    said = run(capsys, "convert", tmp_path / "a.h5", tmp_path / "a.mha", "--crop", "0,5,1,6,2,7", "--stride", "2,1,1")
    assert "3 x 5 x 5 int16" in said
    np.testing.assert_array_equal(rm.load(tmp_path / "a.mha").numbers(), head.numbers()[::2, 1:6, 2:7])
    told = run(capsys, "info", tmp_path / "a.h5")
    for words in (
        "int16, in HU",
        "stored x 1 + -24",
        "x to the",
        f"{head.sides} in a world of LPS",
        "histogram",
        " mm",
    ):
        assert words in told
    run(capsys, "convert", tmp_path / "a.h5", tmp_path / "b.npz", "--json")
    plain = run(capsys, "info", tmp_path / "b.npz", "--json")
    import json

    record = json.loads(plain)
    assert (record["low"], record["high"], record["unit"], record["sides"]) == (*head.range, "HU", head.sides)
    assert sum(record["histogram"]["counts"]) == np.prod(SHAPE)


def test_zero_is_a_number_like_others_on_the_command_line(tmp_path, capsys):
    colours = RNG.integers(0, 99, (4, 5, 6, 3)).astype(np.uint8)
    np.save(tmp_path / "a.npy", colours)
    assert "4 x 5 x 6 uint8" in run(capsys, "convert", tmp_path / "a.npy", tmp_path / "b.h5", "--channel", "0")
    np.testing.assert_array_equal(rm.load(tmp_path / "b.h5").values, colours[..., 0])
    refused(lambda: run(capsys, "convert", tmp_path / "b.h5", tmp_path / "c.h5", "--stride", "0"), "stride is 0")


def test_the_arrays_of_an_npz_that_names_none_of_them_are_told(tmp_path):
    np.savez(tmp_path / "a.npz", left=np.ones((3, 4, 5)), right=np.ones((3, 4, 5)))
    refused(lambda: rm.load(tmp_path / "a.npz"), "has left, right, want just one of three axes or more")


def test_masked_values_are_told_and_not_what_lies_under_the_mask():
    values = np.ma.masked_less(np.arange(24.0).reshape(2, 3, 4), 5)
    refused(lambda: rm.ScalarVolume(values), "values have 5 masked", "put numbers there by filled(number)")
    assert rm.ScalarVolume(values.filled(0)).range == (0, 23)


@pytest.mark.parametrize("word", ["True", "true", "T", "1", "False", "f", "0"])
@pytest.mark.parametrize("key", ["ElementByteOrderMSB", "BinaryDataByteOrderMSB"])
def test_a_metaimage_s_yes_is_known_by_its_first_letter(word, key, tmp_path):
    values = np.arange(60, dtype="u2").reshape(5, 4, 3)
    head = f"NDims = 3\nDimSize = 3 4 5\n{key} = {word}\nElementType = MET_USHORT\nElementDataFile = LOCAL\n"
    (tmp_path / "a.mha").write_bytes(head.encode() + values.astype(">u2" if word in "Truetrue1" else "<u2").tobytes())
    np.testing.assert_array_equal(rm.load(tmp_path / "a.mha").values, values.T)


BLOCKS = [(False, 120, 0), (False, 118, 0), (False, 120, 4), (False, 7, 0), (True, 120, 0), (True, 118, 0)]


@pytest.mark.parametrize(("inline", "told", "offset"), BLOCKS)
def test_a_vti_s_block_opens_with_its_length(inline, told, offset, tmp_path):
    values = np.arange(60, dtype="<i2").reshape(5, 4, 3)
    block = np.array(told, "<u4").tobytes() + values.tobytes()
    array = f'format="appended" offset="{offset}"/>'
    if inline:
        array = f'format="binary">{base64.b64encode(block).decode()}</DataArray>'
    head = f"""<VTKFile type="ImageData" byte_order="LittleEndian"><ImageData WholeExtent="0 2 0 3 0 4">
<Piece Extent="0 2 0 3 0 4"><PointData><DataArray type="Int16" Name="a" {array}</PointData></Piece></ImageData>"""
    tail = b"" if inline else b'<AppendedData encoding="raw">_' + block + bytes(8) + b"</AppendedData>"
    (tmp_path / "a.vti").write_bytes(head.encode() + tail + b"</VTKFile>")
    if (told, offset) == (120, 0):
        np.testing.assert_array_equal(rm.load(tmp_path / "a.vti").values, values.T)
    else:
        refused(lambda: rm.load(tmp_path / "a.vti"), "bytes where its values take 120")


def test_values_beyond_what_marching_can_add_up_are_told_with_the_cure():
    with pytest.raises(
        rm.RaymarchError, match=r"values are 3.403e\+38 at .1, 1, 1., want .*; put numbers within 1e\+30"
    ):
        rm.ScalarVolume(np.where(np.arange(8).reshape(2, 2, 2) == 7, np.finfo("f4").max, 0))


def test_raw_values_are_read_whatever_their_file_is_called(tmp_path):
    (tmp_path / "scan.of mine").write_bytes(bytes(range(24)))
    assert rm.load(tmp_path / "scan.of mine", shape=(2, 3, 4), dtype="uint8").values[1, 0, 0] == 1


def test_a_slice_in_an_nrrd_and_objects_in_an_npz_are_refused_in_words(tmp_path):
    nrrd = require_extra("nrrd", "formats")
    nrrd.write(str(tmp_path / "a.nrrd"), np.zeros((4, 5)))
    refused(lambda: rm.load(tmp_path / "a.nrrd"), "has 2 axes, want x, y and z")
    np.savez(tmp_path / "a.npz", values=np.array([[[{}]]], dtype=object))
    refused(lambda: rm.load(tmp_path / "a.npz"), "holds object")


def test_an_xdmf_that_cannot_be_leaves_no_file(tmp_path):
    refused(lambda: rm.save(volume(place="turned"), tmp_path / "a.xdmf"), "XDMF of a regular grid cannot hold")
    assert not list(tmp_path.iterdir())


def test_xdmf_goes_beside_the_file_that_it_is_about(tmp_path, capsys):
    rm.save(volume(place="upright"), tmp_path / "a.h5")
    run(capsys, "convert", tmp_path / "a.h5", tmp_path / "view.xdmf")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.h5", "view.xdmf"]
    np.testing.assert_array_equal(rm.load(tmp_path / "view.xdmf").values, volume().values)
    (tmp_path / "other").mkdir()
    run(capsys, "convert", tmp_path / "a.h5", tmp_path / "other" / "b.xdmf")
    assert sorted(file.name for file in (tmp_path / "other").iterdir()) == ["b.h5", "b.xdmf"]


def test_every_format_has_a_law_here():
    suffixes = {suffix for one in FORMATS for suffix in one.suffixes}
    assert all(
        any(suffix in one.suffixes for suffix in HELD) or one.name in ("NPY", "picture-slices") for one in FORMATS
    ), suffixes


def ome_of_two_files(folder, names, uuids=("urn:uuid:0", "urn:uuid:1")):
    """Four planes of an OME-TIFF, two in each of two files, which its XML has under `names`."""
    tifffile = require_extra("tifffile", "formats")
    planes = np.arange(1, 257, dtype=np.uint16).reshape(4, 8, 8)
    told = "".join(
        f'<TiffData FirstZ="{z}" IFD="{z % 2}" PlaneCount="1"><UUID FileName="{names[z // 2]}">{uuids[z // 2]}</UUID>'
        "</TiffData>"
        for z in range(4)
    )
    for i in range(2):
        text = (
            f'<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="{uuids[i]}">'
            '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="8" SizeY="8"'
            ' SizeZ="4" SizeC="1" SizeT="1"><Channel ID="Channel:0:0" SamplesPerPixel="1"/>'
            f"{told}</Pixels></Image></OME>"
        )
        tifffile.imwrite(folder / f"{i}.ome.tif", planes[2 * i : 2 * i + 2], description=text, metadata=None)
    return planes.T


def test_an_ome_tiff_of_several_files_is_read_whole(tmp_path):
    planes = ome_of_two_files(tmp_path, ("renamed.ome.tif", "1.ome.tif"))  # the first is found by its own number
    np.testing.assert_array_equal(rm.load(tmp_path / "0.ome.tif").values, planes)


@pytest.mark.parametrize("name", ["missing.ome.tif", "../above.ome.tif", "{}/above.ome.tif", "linked.ome.tif", ""])
def test_an_ome_tiff_whose_planes_lie_elsewhere_is_refused(name, tmp_path):
    (folder := tmp_path / "set").mkdir()
    ome_of_two_files(folder, ("0.ome.tif", name.format(tmp_path)))
    shutil.copy(folder / "1.ome.tif", tmp_path / "above.ome.tif")
    (folder / "linked.ome.tif").symlink_to(tmp_path / "above.ome.tif")
    with pytest.raises(rm.RaymarchError, match="has planes in .* want a file beside it; copy the whole set there"):
        rm.load(folder / "0.ome.tif")


def test_a_detached_header_has_its_values_after_the_next_write_too(tmp_path):
    values = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    for name in ("a.nhdr", "next.nrrd"):
        rm.save(rm.ScalarVolume(values, np.eye(4)), tmp_path / name)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.nhdr").values, values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nhdr", "next.nrrd"]


def test_a_tiff_packed_by_lzw_is_read(tmp_path):
    """As editors of pictures save it; tifffile leaves that to another library."""
    require_extra("tifffile", "formats")
    require_extra("imagecodecs", "formats")
    stack = RNG.integers(0, 60000, SHAPE[::-1]).astype(np.uint16)
    first, *rest = (Image.fromarray(page) for page in stack)
    first.save(tmp_path / "a.tif", save_all=True, append_images=rest, compression="tiff_lzw")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.tif").values, stack.T)


def test_a_packing_that_takes_another_library_names_the_extra(tmp_path):
    with (
        pytest.raises(rm.RaymarchError, match=r'takes imagecodecs.*; pip install "raymarch\[formats\]"'),
        explain_damage(tmp_path / "a.tif", "TIFF"),
    ):
        raise ValueError("<COMPRESSION.LZW: 5> requires the 'imagecodecs' package")


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("i8", 0, 119), ("i4", -1024, 3000), ("u4", 0, 65535), ("i8", 0, 65535), ("u8", 1, 2)]
)
def test_a_dicom_series_takes_whole_numbers_that_fit_of_any_type(kind, low, high, tmp_path):
    require_extra("pydicom", "formats")
    values = np.linspace(low, high, 120).astype(kind).reshape(4, 5, 6)
    rm.save(rm.ScalarVolume(values), tmp_path / "a.dicom")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.dicom").numbers(), values)
    values[0, 0, 0] = 70_000
    with pytest.raises(rm.RaymarchError, match="to 70000, which a DICOM series of 16 bits cannot hold"):
        rm.save(rm.ScalarVolume(values), tmp_path / "b.dicom")


def test_a_place_that_a_vti_has_not_is_told_in_words(tmp_path):
    rm.save(rm.ScalarVolume(np.zeros((3, 4, 5), np.uint8)), tmp_path / "a.vti")
    for name in ("channel", "time", "level"):
        with pytest.raises(rm.RaymarchError, match=f"{name} is 2, but there is only one; leave it out"):
            rm.load(tmp_path / "a.vti", **{name: 2})


@pytest.mark.parametrize("suffix", [".tif", ".mrc", ".xdmf", ".ome.zarr"])
def test_a_mirrored_volume_is_refused_as_such(suffix, tmp_path):
    if library := HELD[suffix].library:
        require_extra(library, "formats")
    mirrored = rm.ScalarVolume(np.zeros((3, 4, 5), np.uint8), np.diag([-1, 2, 3, 1.0]))
    with pytest.raises(rm.RaymarchError, match="turned, mirrored or sheared"):
        rm.save(mirrored, tmp_path / f"a{suffix}")
