"""Laws of volumes that others wrote or read: by each format's own library, the same numbers at the same places."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import struct
import threading

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import PLACES, SHAPE, refused, require_place, volume

import raymarch as rm
from raymarch.io.volumes import zarr as zarr_format

nibabel, nrrd, tifffile, mrcfile, zarr, pydicom = (
    require_extra(name, "formats") for name in ("nibabel", "nrrd", "tifffile", "mrcfile", "zarr", "pydicom")
)
numcodecs = require_extra("numcodecs", "formats")
VALUES = volume().values
pytestmark = pytest.mark.extra
SHEARED, TURNED, UPRIGHT = PLACES["sheared"], PLACES["turned"], PLACES["upright"]
FLIP = np.diag([-1.0, -1.0, 1.0, 1.0])


# NIfTI.


@pytest.mark.parametrize("kind", ["u1", "<i2", ">i2", ">f4", "i4", "<f8"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_nibabel_s_files_are_read(kind, suffix, tmp_path):
    image = nibabel.Nifti1Image(
        VALUES.astype(kind), SHEARED, nibabel.Nifti1Header(endianness=kind[0] if kind[0] in "<>" else "<")
    )
    image.header.set_xyzt_units("micron")
    nibabel.save(image, tmp_path / f"a{suffix}")
    found = rm.load(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(found.numbers(), VALUES)
    require_place(found.world_from_index, SHEARED)
    assert (found.world, found.length_unit) == ("RAS", "um")


def test_nibabel_reads_ours_with_slope_and_place(tmp_path):
    head = volume(kind="u2", slope=0.5, intercept=-1024.0)
    rm.save(head, tmp_path / "a.nii.gz")
    image = nibabel.load(tmp_path / "a.nii.gz")
    np.testing.assert_allclose(image.get_fdata(), head.numbers())
    require_place(image.affine, FLIP @ head.world_from_index)
    assert image.header.get_data_dtype() == np.uint16 and image.header.get_xyzt_units()[0] == "mm"


def test_a_scaled_nifti_stays_whole_numbers_on_the_way(tmp_path):
    image = nibabel.Nifti1Image(np.linspace(-1, 1, 210).reshape(SHAPE), np.eye(4))
    image.set_data_dtype(np.int16)
    nibabel.save(image, tmp_path / "a.nii")
    found = rm.load(tmp_path / "a.nii")
    assert found.values.dtype == np.int16 and found.slope != 1
    np.testing.assert_allclose(found.numbers(), nibabel.load(tmp_path / "a.nii").get_fdata(), rtol=1e-5, atol=1e-5)


def test_one_of_several_times_of_a_nifti_is_chosen(tmp_path):
    several = np.arange(4 * 5 * 6 * 3, dtype="i2").reshape(4, 5, 6, 3)
    nibabel.save(nibabel.Nifti1Image(several, np.eye(4)), tmp_path / "a.nii.gz")
    refused(lambda: rm.load(tmp_path / "a.nii.gz"), "has 3 points in time along axis 3", "choose one by time=0")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.nii.gz", time=1).values, several[..., 1])
    colours = np.zeros((4, 5, 6), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    nibabel.save(nibabel.Nifti1Image(colours, np.eye(4)), tmp_path / "b.nii")
    refused(lambda: rm.load(tmp_path / "b.nii"), "b.nii: has 3 channels along axis 0", "choose one by channel=0")


def test_units_and_orientation_that_a_nifti_does_not_say_are_said(tmp_path, caplog):
    image = nibabel.Nifti1Image(VALUES, None)
    nibabel.save(image, tmp_path / "a.nii")
    found = rm.load(tmp_path / "a.nii")
    np.testing.assert_allclose(found.world_from_index, nibabel.load(tmp_path / "a.nii").affine)
    assert "says no orientation" in caplog.text and "says no unit of length" in caplog.text


# NRRD.


@pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2", "ascii"])
@pytest.mark.parametrize("suffix", [".nrrd", ".nhdr"])
def test_pynrrd_s_files_are_read(encoding, suffix, tmp_path):
    header = {
        "space": "left-posterior-superior", "space directions": SHEARED[:3, :3].T, "space origin": SHEARED[:3, 3],
        "encoding": encoding, "space units": ["mm"] * 3,
    }  # fmt: skip
    nrrd.write(str(tmp_path / f"a{suffix}"), VALUES, header)
    found = rm.load(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(found.values, VALUES)
    np.testing.assert_allclose(found.world_from_index, SHEARED)
    assert (found.world, found.length_unit) == ("LPS", "mm")
    part = rm.load(tmp_path / f"a{suffix}", crop=((1, 4), (0, 6), (2, 6)))
    np.testing.assert_array_equal(part.values, VALUES[1:4, :, 2:6])


def test_pynrrd_reads_ours(tmp_path):
    rm.save(volume(), tmp_path / "a.nrrd")
    data, header = nrrd.read(str(tmp_path / "a.nrrd"))
    np.testing.assert_array_equal(data, VALUES)
    np.testing.assert_allclose(header["space directions"], SHEARED[:3, :3].T)
    np.testing.assert_allclose(header["space origin"], SHEARED[:3, 3])
    assert header["space"] == "left-posterior-superior" and header["space units"] == ["mm"] * 3


def test_channels_of_an_nrrd_and_a_spacing_that_is_not_said(tmp_path, caplog):
    several = np.stack([VALUES, 2 * VALUES])
    nrrd.write(str(tmp_path / "a.nrrd"), several, {"kinds": ["vector", "domain", "domain", "domain"]})
    refused(lambda: rm.load(tmp_path / "a.nrrd"), "has 2 channels along axis 0")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.nrrd", channel=1).values, 2 * VALUES)
    assert "says no spacing; 1 is assumed" in caplog.text


@pytest.mark.parametrize("first", [True, False])
def test_axes_of_an_nrrd_that_are_not_of_space_have_no_direction(first, tmp_path):
    several = np.stack([VALUES, 2 * VALUES], axis=0 if first else 3)
    none = np.full(3, np.nan)
    rows = np.stack([none, *SHEARED[:3, :3].T] if first else [*SHEARED[:3, :3].T, none])
    header = {"space": "RAS", "space directions": rows, "space origin": SHEARED[:3, 3]}
    nrrd.write(str(tmp_path / "a.nrrd"), several, header)
    found = rm.load(tmp_path / "a.nrrd", **{"channel" if first else "time": 1})
    np.testing.assert_array_equal(found.values, 2 * VALUES)
    np.testing.assert_allclose(found.world_from_index, SHEARED)


@pytest.mark.parametrize(
    ("said", "spacing", "origin"),
    [
        ("spacings: 0.5 0.25 2\naxis mins: 10 20 30\ncenters: node node node", (0.5, 0.25, 2), (10, 20, 30)),
        ("axis mins: 10 20 30\naxis maxs: 14 25 42\ncenterings: cell cell cell", (1, 1, 2), (10.5, 20.5, 31)),
        ("axis mins: 10 20 30\naxis maxs: 14 25 42\ncenters: cell cell cell", (1, 1, 2), (10.5, 20.5, 31)),
        ("axis mins: 10 20 30\naxis maxs: 14 25 42", (1, 1, 2), (10.5, 20.5, 31)),
        ("axis mins: 10 20 30\naxis maxs: 13 24 40\ncenterings: node node node", (1, 1, 2), (10, 20, 30)),
        ("spacings: 0.5 0.25 2", (0.5, 0.25, 2), (0, 0, 0)),
    ],
    ids=["mins", "cells", "cells by the other name", "unsaid", "ends", "spacings"],
)
def test_an_nrrd_without_directions_lies_where_its_axes_say(said, spacing, origin, tmp_path, caplog):
    values = np.arange(120, dtype="<i2").reshape(4, 5, 6)
    head = f"NRRD0005\ntype: short\ndimension: 3\nsizes: 4 5 6\nendian: little\nencoding: raw\n{said}\n"
    head += 'units: "mm" "mm" "mm"\n\n'
    (tmp_path / "a.nrrd").write_bytes(head.encode() + values.tobytes("F"))
    found = rm.load(tmp_path / "a.nrrd")
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(found.spacing, spacing)
    np.testing.assert_allclose(found.origin, origin)
    assert found.length_unit == "mm" and "assumed" not in caplog.text


@pytest.mark.parametrize("letters", ["utf-8", "latin-1"])
def test_micrometres_of_an_nrrd_are_not_taken_for_metres(letters, tmp_path):
    head = "NRRD0005\ntype: short\ndimension: 3\nsizes: 4 5 6\nendian: little\nencoding: raw\nspacings: 1 1 1\n"
    head += 'units: "µm" "µm" "µm"\n\n'
    (tmp_path / "a.nrrd").write_bytes(head.encode(letters) + np.arange(120, dtype="<i2").tobytes())
    found = rm.load(tmp_path / "a.nrrd")
    assert found.length_unit == "um"
    np.testing.assert_array_equal(found.values.ravel("F"), np.arange(120))


def test_a_file_beside_a_header_may_be_named_as_in_this_folder(tmp_path):
    nrrd.write(str(tmp_path / "a.nhdr"), VALUES, {"encoding": "raw"})
    text = (tmp_path / "a.nhdr").read_text()
    assert "data file: a.raw" in text
    (tmp_path / "a.nhdr").write_text(text.replace("data file: a.raw", "data file: ./a.raw"))
    np.testing.assert_array_equal(rm.load(tmp_path / "a.nhdr").values, VALUES)
    rm.save(volume(".mha"), tmp_path / "b.mha")
    data = (tmp_path / "b.mha").read_bytes()
    assert data.count(b"LOCAL") == 1
    (tmp_path / "b.mha").write_bytes(data.replace(b"LOCAL", b"Local"))
    np.testing.assert_array_equal(rm.load(tmp_path / "b.mha").values, VALUES)


def test_one_long_word_among_numbers_is_refused_before_all_are_made_as_wide(tmp_path):
    head = "NRRD0004\ntype: int\ndimension: 3\nsizes: 4 4 4\nencoding: ascii\n\n"
    (tmp_path / "a.nrrd").write_text(head + "0 " * 63 + "0" * 65)
    refused(lambda: rm.load(tmp_path / "a.nrrd"), "declares 64 values but one of 65 letters; restore it")


# TIFF.


def test_an_imagej_stack_of_one_page_is_read_in_part_as_it_lies(tmp_path, monkeypatch):
    """As ImageJ writes stacks of over 4 GB: one page, and the planes one behind the other."""
    stack = VALUES.T.astype("u2")
    tifffile.imwrite(tmp_path / "a.tif", stack, imagej=True, metadata={"axes": "ZYX"})
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        order, count = file.byteorder, len(file.pages.first.tags)
        at = file.pages.first.offset + 2 + 12 * count
    data = bytearray((tmp_path / "a.tif").read_bytes())
    data[at : at + 4] = struct.pack(f"{order}I", 0)  # where the next page is
    (tmp_path / "a.tif").write_bytes(data)
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        assert len(file.pages) == 1 and file.series[0].shape == stack.shape

    def whole(*_, **__):
        raise AssertionError("all of it was read")

    monkeypatch.setattr(tifffile.TiffPageSeries, "asarray", whole)
    np.testing.assert_array_equal(
        rm.load(tmp_path / "a.tif", crop=((0, 5), (1, 4), (2, 5))).values, VALUES[:5, 1:4, 2:5]
    )


@pytest.mark.parametrize("unit", ["micron", "microns", "um", "\\u00B5m"])
def test_a_unit_of_imagej_is_known_however_it_is_spelt(unit, tmp_path):
    notes = f"ImageJ=1.54f\nimages=7\nslices=7\nunit={unit}\nspacing=2.0\n"
    stack = VALUES.T.astype("u2")
    tifffile.imwrite(tmp_path / "a.tif", stack, description=notes, metadata=None, resolution=(2, 2))
    found = rm.load(tmp_path / "a.tif")
    assert (found.length_unit, found.spacing.tolist()) == ("um", [0.5, 0.5, 2.0])


@pytest.mark.parametrize("unit", ["um", "microns", "Micrometer", "µm"])
def test_a_unit_is_known_to_every_format_however_it_is_spelt(unit, tmp_path):
    head = volume(".mrc", "f4", length_unit=unit)
    rm.save(head, tmp_path / "a.mrc")
    with mrcfile.open(tmp_path / "a.mrc") as file:
        np.testing.assert_allclose(file.voxel_size.tolist(), 1e4 * head.spacing)
    rm.save(head, tmp_path / "a.nii")
    assert nibabel.load(tmp_path / "a.nii").header.get_xyzt_units()[0] == "micron"
    rm.save(head, tmp_path / "a.ome.zarr")
    rm.save(head, tmp_path / "a.nrrd")
    for name in ("a.nii", "a.ome.zarr", "a.nrrd"):
        assert rm.load(tmp_path / name).length_unit == "um"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_tifffile_s_stacks_are_read(order, compression, tmp_path):
    stack = VALUES.T.astype("u2")
    tifffile.imwrite(
        tmp_path / "a.tif",
        stack,
        imagej=True,
        byteorder=order,
        compression=compression,
        resolution=(2, 0.5),
        metadata={"axes": "ZYX", "spacing": 3.5, "unit": "um"},
    )
    found = rm.load(tmp_path / "a.tif")
    np.testing.assert_array_equal(found.values, VALUES)
    np.testing.assert_allclose(found.spacing, (0.5, 2, 3.5))
    assert found.length_unit == "um"


def test_tifffile_reads_ours(tmp_path):
    for name, kind in (("a.tif", "u2"), ("b.ome.tif", "i2")):
        rm.save(volume(".tif", kind), tmp_path / name)
        with tifffile.TiffFile(tmp_path / name) as file:
            np.testing.assert_array_equal(file.asarray(), VALUES.T)
            assert file.series[0].axes == "ZYX" and file.is_imagej == (kind == "u2") and file.is_ome == (kind == "i2")
    with tifffile.TiffFile(tmp_path / "b.ome.tif") as file:
        assert 'PhysicalSizeZ="2.5"' in file.ome_metadata and 'PhysicalSizeXUnit="mm"' in file.ome_metadata


@pytest.mark.parametrize(("unit", "factor"), [("nm", 1e-3), ("µm", 1.0), ("mm", 1e3), ("pixel", 1.0)])
def test_axes_of_a_tiff_come_in_one_unit(unit, factor, tmp_path, caplog):
    sizes = {f"PhysicalSize{axis}": size for axis, size in zip("XYZ", (0.5, 0.5, 20.0), strict=True)}
    units = {"PhysicalSizeXUnit": "µm", "PhysicalSizeYUnit": "µm", "PhysicalSizeZUnit": unit}
    tifffile.imwrite(tmp_path / "a.ome.tif", VALUES.T.astype("u2"), metadata={"axes": "ZYX", **sizes, **units})
    found = rm.load(tmp_path / "a.ome.tif")
    np.testing.assert_allclose(found.spacing, (0.5, 0.5, 20 * factor))
    assert found.length_unit == ("" if unit == "pixel" else "um")
    assert ("axes in several units" in caplog.text) == (unit == "pixel")


def test_channels_times_and_colours_of_a_tiff_are_chosen(tmp_path):
    film = np.arange(2 * 3 * 4 * 5 * 6, dtype="u2").reshape(2, 3, 4, 5, 6)  # time, z, channel, y, x
    tifffile.imwrite(tmp_path / "a.tif", film, imagej=True, metadata={"axes": "TZCYX"})
    refused(lambda: rm.load(tmp_path / "a.tif"), "a.tif: has 2 times, want one volume; choose one by time=0")
    refused(lambda: rm.load(tmp_path / "a.tif", time=0), "has 4 channels")
    refused(
        lambda: rm.load(tmp_path / "a.tif", time=0, channel=4), "channel is 4, but it has 4; choose one from 0 to 3"
    )
    np.testing.assert_array_equal(rm.load(tmp_path / "a.tif", time=1, channel=2).values, film[1, :, 2].T)
    colours = np.arange(3 * 5 * 6 * 3, dtype="u1").reshape(3, 5, 6, 3)
    tifffile.imwrite(tmp_path / "b.tif", colours, photometric="rgb")
    refused(lambda: rm.load(tmp_path / "b.tif"), "b.tif: has 3 colours, want one volume; choose one by channel=0")
    np.testing.assert_array_equal(rm.load(tmp_path / "b.tif", channel=1).values, colours[..., 1].T)


def test_pages_of_several_sizes_and_single_pictures_are_refused(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(np.zeros((4, 5), "u1"))
        file.write(np.zeros((6, 7), "u1"))
    refused(lambda: rm.load(tmp_path / "a.tif"), "a.tif: holds 2 stacks (4 x 5, 6 x 7), want one")
    tifffile.imwrite(tmp_path / "b.tif", np.zeros((4, 5), "u1"))
    refused(lambda: rm.load(tmp_path / "b.tif"), "b.tif: is one picture")


def test_a_folder_of_slices_is_read_in_the_order_of_their_numbers(tmp_path, caplog):
    for k in range(SHAPE[2]):
        tifffile.imwrite(tmp_path / f"s{k + 4}.tif", VALUES[:, :, k].T, resolution=(20, 20), resolutionunit=3)
    found = rm.load(tmp_path, spacing=(0.5, 0.5, 2))
    np.testing.assert_array_equal(found.values, VALUES)
    assert (found.spacing.tolist(), found.length_unit) == ([0.5, 0.5, 2.0], "mm")
    assert "slices say no distance between them" in caplog.text
    tifffile.imwrite(tmp_path / "s99.tif", np.zeros((3, 3), "i2"))
    refused(
        lambda: rm.load(tmp_path), "s99.tif: is 3 x 3, 16 bits, while 7 of 8 slices are 5 x 6, 16 bits; take it out"
    )


def test_a_figure_that_is_no_digit_is_none_of_a_slice_s_numbers(tmp_path):
    for k in range(SHAPE[2]):
        tifffile.imwrite(tmp_path / f"²{k + 4}.tif", VALUES[:, :, k].T)
    np.testing.assert_array_equal(rm.load(tmp_path).values, VALUES)


def test_what_a_system_hides_beside_slices_is_none_of_them(tmp_path):
    for k in range(SHAPE[2]):
        tifffile.imwrite(tmp_path / f"{k:03}.tif", VALUES[:, :, k].T)
        (tmp_path / f"._{k:03}.tif").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
    np.testing.assert_array_equal(rm.load(tmp_path).values, VALUES)


# MRC.


@pytest.mark.parametrize(("unit", "start"), [("mm", 2000.0), ("µm", 2.0), ("reference frame", 2.0), (None, 2.0)])
def test_a_plane_s_position_in_a_unit_of_its_own_is_in_the_stack_s(unit, start, tmp_path):
    sizes = {f"PhysicalSize{axis}": 0.5 for axis in "XYZ"} | {f"PhysicalSize{axis}Unit": "µm" for axis in "XYZ"}
    plane = {"PositionX": [2.0] * 3} | ({} if unit is None else {"PositionXUnit": [unit] * 3})
    path = tmp_path / "cells.ome.tif"
    metadata = {"axes": "ZYX", **sizes, "Plane": plane}
    tifffile.imwrite(path, np.zeros((3, 4, 5), np.uint8), ome=True, photometric="minisblack", metadata=metadata)
    read = rm.load(path)
    assert read.length_unit == "um" and read.origin.tolist() == [start, 0, 0]


@pytest.mark.parametrize("axes", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_mrcfile_s_maps_are_read_in_any_order_of_axes(axes, tmp_path):
    data = np.arange(4 * 5 * 6, dtype="f4").reshape(6, 5, 4)  # section, row, column
    with mrcfile.new(tmp_path / "a.mrc", data) as file:
        file.header.mapc, file.header.mapr, file.header.maps = axes
        file.header.mx, file.header.my, file.header.mz = 10, 20, 30
        file.header.cella = (10 * 0.5, 20 * 1.5, 30 * 2.5)
        file.header.nxstart, file.header.nystart, file.header.nzstart = 1, 2, 3
    found = rm.load(tmp_path / "a.mrc")
    columns = [axis - 1 for axis in axes]
    np.testing.assert_array_equal(found.values, np.moveaxis(data.T, range(3), columns))
    np.testing.assert_allclose(found.spacing, (0.5, 1.5, 2.5))
    start = np.zeros(3)
    start[columns] = (1, 2, 3)
    np.testing.assert_allclose(found.origin, start * (0.5, 1.5, 2.5))
    assert found.length_unit == "angstrom"
    part = rm.load(tmp_path / "a.mrc", stride=(2, 1, 1))
    np.testing.assert_array_equal(part.values, found.values[::2])


def test_a_map_of_the_other_byte_order_is_read_by_its_mode_and_a_header_that_lies_takes_no_memory(tmp_path):
    rm.save(volume(".mrc", "f4"), tmp_path / "a.mrc")
    data = bytearray((tmp_path / "a.mrc").read_bytes())
    swapped = np.frombuffer(data[:208] + data[212:1024][:0], "<i4").astype(">i4").tobytes()
    big = swapped + bytes(data[208:1024]) + np.frombuffer(data[1024:], "<f4").astype(">f4").tobytes()
    (tmp_path / "b.mrc").write_bytes(big[:220] + np.array(0, ">i4").tobytes() + big[224:])
    np.testing.assert_array_equal(rm.load(tmp_path / "b.mrc").values, VALUES)
    with mrcfile.new(tmp_path / "c.mrc") as file:  # of 8 bits, whose mode is 0 in either order
        file.set_data(np.arange(60, dtype="i1").reshape(3, 4, 5))
    data8 = (tmp_path / "c.mrc").read_bytes()
    swapped = np.frombuffer(data8[:208], "<i4").astype(">i4").tobytes()
    (tmp_path / "d.mrc").write_bytes(swapped + data8[208:216] + swapped[:0] + data8[216:220] + bytes(4) + data8[224:])
    np.testing.assert_array_equal(rm.load(tmp_path / "d.mrc").values, np.arange(60).reshape(3, 4, 5).T)
    struct.pack_into("<i", data, 92, 2**31 - 1)  # of the extended header
    (tmp_path / "a.mrc").write_bytes(data)
    refused(lambda: rm.load(tmp_path / "a.mrc"), "but holds 0")


@pytest.mark.parametrize("told", ["by IMOD", "by the range", "signed", "signed by the range"])
def test_bytes_of_a_map_have_the_sign_that_its_header_says(told, tmp_path):
    values = np.array([0, 1, 127, 128, 200, 255] * 10, "u1").reshape(3, 4, 5)
    with mrcfile.new(tmp_path / "a.mrc") as file:
        file.set_data(values.view("i1"))
    data = bytearray((tmp_path / "a.mrc").read_bytes())
    if told == "by IMOD":
        struct.pack_into("<2i", data, 152, 1146047817, 0)
    elif told == "signed":
        struct.pack_into("<2i", data, 152, 1146047817, 1)
        struct.pack_into("<2f", data, 76, 0.0, 255.0)
    else:
        struct.pack_into("<2f", data, 76, *((0.0, 255.0) if told == "by the range" else (-128.0, 128.0)))
    (tmp_path / "a.mrc").write_bytes(data)
    kind = "i1" if told.startswith("signed") else "u1"
    np.testing.assert_array_equal(rm.load(tmp_path / "a.mrc").values, values.view(kind).T)


def test_mrcfile_reads_ours_and_cells_may_lean(tmp_path):
    head = volume(".mrc", "f4", length_unit="nm")
    rm.save(head, tmp_path / "a.mrc")
    with mrcfile.open(tmp_path / "a.mrc") as file:
        np.testing.assert_array_equal(file.data, head.values.T)
        np.testing.assert_allclose(file.voxel_size.tolist(), 10 * head.spacing)
        assert file.is_volume() and mrcfile.validate(tmp_path / "a.mrc")
    require_place(rm.load(tmp_path / "a.mrc").world_from_index, np.diag([10, 10, 10, 1]) @ UPRIGHT)
    with mrcfile.open(tmp_path / "a.mrc", "r+") as file:
        file.header.cellb = (90, 90, 120)
    edges = rm.load(tmp_path / "a.mrc").directions
    np.testing.assert_allclose(edges.T @ edges, [[1, -0.5, 0], [-0.5, 1, 0], [0, 0, 1]], atol=1e-6)


def test_a_nifti_without_a_handedness_has_the_usual_one(tmp_path):
    """Its pixdim[0] is 0, or its steps are negative, in files of many a program; nibabel mends both as it loads, and a
    step of 0."""
    image = nibabel.Nifti1Image(VALUES, None)
    image.set_qform(UPRIGHT, 1)
    data = bytearray(image.to_bytes())
    for k, name in ((0, "a.nii"), (1, "b.nii")):
        struct.pack_into("<f", data, 76 + 4 * k, -struct.unpack_from("<f", data, 76 + 4 * k)[0] if k else 0)
        (tmp_path / name).write_bytes(data)
        np.testing.assert_allclose(rm.load(tmp_path / name).world_from_index, UPRIGHT, atol=1e-5)
        np.testing.assert_array_equal(rm.load(tmp_path / name).values, VALUES)


def test_a_step_of_0_in_a_nifti_is_said_to_be_none(tmp_path, caplog):
    image = nibabel.Nifti1Image(VALUES, None)
    image.set_qform(np.diag([2.0, 3.0, 4.0, 1.0]), 1)
    data = bytearray(image.to_bytes())
    struct.pack_into("<f", data, 76 + 4 * 3, 0.0)
    (tmp_path / "a.nii").write_bytes(data)
    np.testing.assert_allclose(rm.load(tmp_path / "a.nii").spacing, (2, 3, 1))
    assert "says no spacing along z; 1 is assumed" in caplog.text


def test_what_is_unpacked_whole_is_held_against_the_budget_whole(tmp_path, monkeypatch):
    """All points in time are unpacked, also where one is asked for; and so is what lies before the values."""
    many = np.random.default_rng(3).integers(0, 255, (4, 5, 6, 90)).astype("u1")
    nibabel.save(nibabel.Nifti1Image(many, np.eye(4)), tmp_path / "a.nii.gz")
    nrrd.write(str(tmp_path / "a.nrrd"), many, {"encoding": "gzip"})
    np.savez_compressed(tmp_path / "a.npz", values=many)
    which = {"a.nii.gz": {"time": 3}, "a.nrrd": {"time": 3}, "a.npz": {"channel": 3}}
    for name, one in which.items():
        assert rm.load(tmp_path / name, **one).shape == (4, 5, 6)
    monkeypatch.setenv("RAYMARCH_FILE_GB", "5e-6")  # one point takes 120 bytes, all of them 10,800
    for name, one in which.items():
        refused(lambda name=name, one=one: rm.load(tmp_path / name, **one), "declare", "over the budget of 5000 bytes")
        assert rm.describe(tmp_path / name, **one).shape[:3] == (4, 5, 6)  # whose header may be asked all the same
    monkeypatch.undo()
    header = nibabel.Nifti1Header()
    header.set_data_shape((2, 2, 2))
    header["vox_offset"] = 1e12
    (tmp_path / "b.nii.gz").write_bytes(gzip.compress(header.binaryblock + bytes(1 << 20)))
    refused(lambda: rm.load(tmp_path / "b.nii.gz"), "b.nii.gz: declares", "but holds")


# OME-Zarr.


def test_the_other_images_of_a_zarr_are_named(tmp_path, caplog):
    rm.save(volume(".ome.zarr"), tmp_path / "b.zarr")
    for k in range(2):
        shutil.copytree(tmp_path / "b.zarr", tmp_path / "a.zarr" / str(k))
    (tmp_path / "a.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    rm.load(tmp_path / "b.zarr")
    assert "images" not in caplog.text
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr").values, VALUES)
    assert "has images 0, 1; 0 is taken, others are a.zarr/1 and on" in caplog.text
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr" / "1").values, VALUES)


def test_axes_of_a_zarr_come_in_one_unit(tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2)
    group.create_array("s0", data=np.zeros((4, 5, 6), "u2"))
    axes = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    axes[0]["unit"] = "nanometer"
    placed = [{"type": "scale", "scale": [500, 2, 0.5]}, {"type": "translation", "translation": [7000, 8, 9]}]
    images = [{"axes": axes, "datasets": [{"path": "s0", "coordinateTransformations": placed}], "version": "0.4"}]
    group.attrs.update({"multiscales": images})
    found = rm.load(tmp_path / "a.zarr")
    np.testing.assert_allclose(found.spacing, (0.5, 2, 0.5))
    np.testing.assert_allclose(found.origin, (9, 8, 7))
    assert found.length_unit == "um"


@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_of_either_version_is_read(version, tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    data = np.arange(2 * 3 * 6 * 5 * 4, dtype="u2").reshape(2, 3, 6, 5, 4)
    group.create_array("s0", data=data)
    axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}]
    axes += [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    placed = [{"type": "scale", "scale": [1, 1, 3, 2, 0.5]}, {"type": "translation", "translation": [0, 0, 7, 8, 9]}]
    images = [{"axes": axes, "datasets": [{"path": "s0", "coordinateTransformations": placed}], "version": "0.4"}]
    group.attrs.update({"multiscales": images} if version == 2 else {"ome": {"version": "0.5", "multiscales": images}})
    refused(lambda: rm.load(tmp_path / "a.zarr"), "has 2 points in time along axis 0")
    found = rm.load(tmp_path / "a.zarr", time=1, channel=2)
    np.testing.assert_array_equal(found.values, data[1, 2].T)
    np.testing.assert_allclose(found.spacing, (0.5, 2, 3))
    np.testing.assert_allclose(found.origin, (9, 8, 7))
    assert found.length_unit == "um"


@pytest.mark.parametrize("inside_shards", [False, True])
def test_codecs_of_a_zarr_that_are_not_of_numbers_are_refused_before_anything_is_decoded(
    tmp_path, monkeypatch, inside_shards
):
    """Checked by name, for what the library itself lets through differs by its version."""
    rm.save(volume(".ome.zarr"), tmp_path / "a.zarr")
    level = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")["0"]
    told, bad = level.metadata.to_dict(), {"name": "numcodecs.pickle"}
    shards = {"name": "sharding_indexed", "configuration": {"codecs": ({"name": "bytes"}, bad)}}
    told |= {"codecs": (shards,)} if inside_shards else {"filters": [{"id": "delta"}, {"id": "pickle"}]}
    monkeypatch.setattr(type(level.metadata), "to_dict", lambda self: told)
    refused(lambda: rm.load(tmp_path / "a.zarr"), "level 0 has the codec pickle, want one of numbers")


def level_of(folder, version=2, **how):
    """A Zarr of one level, which holds `VALUES`; its array, and its files of chunks."""
    group = zarr.open_group(str(folder), mode="w", zarr_format=version)
    array = group.create_array("0", shape=VALUES.T.shape, dtype=VALUES.dtype, **{"chunks": VALUES.T.shape, **how})
    array[...] = VALUES.T
    axes = [{"name": axis, "type": "space"} for axis in "zyx"]
    images = [{"axes": axes, "datasets": [{"path": "0"}], "version": "0.4"}]
    group.attrs.update({"multiscales": images} if version == 2 else {"ome": {"multiscales": images}})
    texts = (".zarray", ".zattrs", "zarr.json")
    return sorted(file for file in (folder / "0").rglob("*") if file.is_file() and file.name not in texts)


def zeros_of_zstd(count):
    """A frame without its size, of blocks of one byte each that is repeated."""
    blocks = [((1 << 17) << 3 | 2).to_bytes(3, "little") + b"\0"] * (count >> 17)
    return b"\x28\xb5\x2f\xfd" + bytes([0, 0x58]) + b"".join(blocks) + (1).to_bytes(3, "little")


NUMCODECS = {name: getattr(numcodecs, name) for name in ("Blosc", "BZ2", "GZip", "LZ4", "LZMA", "Zlib", "Zstd")}
SMALL = 1 << 20  # bytes that the bombs of these tests unpack to


@pytest.mark.parametrize("how", [{}, {"filters": [numcodecs.Delta("i2")]}, {"filters": [numcodecs.AsType("f8", "i2")]}])
@pytest.mark.parametrize("codec", NUMCODECS)
def test_a_chunk_that_unpacks_to_more_than_its_metadata_declare_is_refused_before_it_does(
    codec, how, tmp_path, monkeypatch
):
    """And one that does not is read, whatever filters make of its numbers."""
    monkeypatch.setattr(zarr_format, "MAX_BEYOND", 10_000)
    (file,) = level_of(tmp_path / "a.zarr", compressors=NUMCODECS[codec](), **how)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr").values, VALUES)
    file.write_bytes(NUMCODECS[codec]().encode(bytes(SMALL)))
    monkeypatch.setattr(NUMCODECS[codec], "decode", lambda *_: pytest.fail("unpacked"))
    refused(lambda: rm.load(tmp_path / "a.zarr"), "a chunk unpacks to over 11,680 bytes, more than its metadata")


def test_bytes_behind_a_stream_and_frames_without_their_size_are_counted_too(tmp_path, monkeypatch):
    monkeypatch.setattr(zarr_format, "MAX_BEYOND", 10_000)
    packed = {name: NUMCODECS[name]().encode(bytes(100)) for name in ("GZip", "BZ2", "Zstd")}
    large = {name: NUMCODECS[name]().encode(bytes(SMALL)) for name in packed}
    skipped = b"\x50\x2a\x4d\x18\3\0\0\0abc"
    for name, data in (
        ("GZip", packed["GZip"] + bytes(3) + large["GZip"]),
        ("BZ2", packed["BZ2"] + large["BZ2"]),
        ("Zstd", packed["Zstd"] + large["Zstd"]),
        ("Zstd", skipped + large["Zstd"]),
        ("Zstd", zeros_of_zstd(SMALL)),
    ):
        (file,) = level_of(tmp_path / "a.zarr", compressors=NUMCODECS[name]())
        file.write_bytes(data)
        refused(lambda: rm.load(tmp_path / "a.zarr"), "a chunk unpacks to over 11,680 bytes")
    (file,) = level_of(tmp_path / "a.zarr", compressors=NUMCODECS["GZip"]())
    file.write_bytes(file.read_bytes()[:20])
    refused(lambda: rm.load(tmp_path / "a.zarr"), "a packed chunk is damaged (")


@pytest.mark.parametrize("crop", [None, ((0, 2), (0, 2), (0, 2))], ids=["whole", "part"])
@pytest.mark.parametrize("name", ["GzipCodec", "ZstdCodec", "BloscCodec"])
def test_chunks_in_shards_are_measured_one_by_one(name, crop, tmp_path, monkeypatch):
    monkeypatch.setattr(zarr_format, "MAX_BEYOND", 10_000)
    shape = tuple(2 * ((n + 1) // 2) for n in VALUES.T.shape)
    compressors = (getattr(zarr.codecs, name)(), zarr.codecs.Crc32cCodec())
    how = {"version": 3, "chunks": (2, 2, 2), "shards": shape, "compressors": compressors}
    (file,) = level_of(tmp_path / "a.zarr", **how)
    wanted = VALUES if crop is None else VALUES[:2, :2, :2]
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr", crop=crop).values, wanted)
    shard, size = file.read_bytes(), np.prod(shape) // 8 * 16 + 4
    index = np.frombuffer(shard, "<u8", len(shard[-size:-4]) // 8, len(shard) - size).reshape(-1, 2).copy()
    bomb = {"Gzip": NUMCODECS["GZip"], "Zstd": NUMCODECS["Zstd"], "Blosc": NUMCODECS["Blosc"]}[name[:-5]]
    bomb = bytes(bomb().encode(bytes(SMALL))) + bytes(4)
    index[0] = len(shard) - size, len(bomb)
    summed = numcodecs.CRC32C(location="end").encode(index.tobytes())
    file.write_bytes(shard[:-size] + bomb + bytes(summed))
    refused(lambda: rm.load(tmp_path / "a.zarr", crop=crop), "a chunk unpacks to over 10,064 bytes")


WAYS = ["get", "get_ranges", "get_partial_values", "_get_many"]
WAYS += ["get_sync", "get_ranges_sync"] if hasattr(zarr.storage.LocalStore, "get_sync") else []


def read_by(way, store, key, part):
    """What a store has of a file, whole or in part, read in one of the ways in which some version of zarr does."""
    prototype = zarr.core.buffer.default_buffer_prototype()

    async def read():
        if way == "get":
            return await store.get(key, prototype, part)
        if way == "get_partial_values":
            return (await store.get_partial_values(prototype, [(key, part)]))[0]
        if way == "_get_many":
            ((_, found),) = [one async for one in store._get_many([(key, prototype, part)])]
            return found
        ((_, found),) = [one async for group in store.get_ranges(key, [part], prototype=prototype) for one in group]
        return found

    if way == "get_sync":
        return store.get_sync(key, prototype=prototype, byte_range=part)
    if way == "get_ranges_sync":
        ((_, found),) = store.get_ranges_sync(key, [part], prototype=prototype)
        return found
    return asyncio.run(read())


@pytest.mark.parametrize("in_part", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_chunk_is_measured_in_whichever_way_it_is_read(way, in_part, tmp_path, monkeypatch):
    """As zarr reads parts of shards from version 3.3 on: by the ranges that they have in their file, all at once."""
    monkeypatch.setattr(zarr_format, "MAX_BEYOND", 10_000)
    (file,) = level_of(tmp_path / "a.zarr", compressors=NUMCODECS["GZip"]())
    array = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")["0"]
    store = zarr_format.measured_store(tmp_path / "a.zarr", {"0": zarr_format.chunks_of(array, "level 0 has")})
    key, chunk = file.relative_to(tmp_path / "a.zarr").as_posix(), file.read_bytes()
    bomb = NUMCODECS["GZip"]().encode(bytes(SMALL))
    for data in (chunk, bomb):
        file.write_bytes(data + b"beside" * in_part)
        part = zarr.abc.store.RangeByteRequest(0, len(data)) if in_part else None
        if data is chunk:
            assert read_by(way, store, key, part).to_bytes() == chunk
        else:
            refused(lambda part=part: read_by(way, store, key, part), "a chunk unpacks to over 11,680 bytes")


def test_chunks_are_measured_next_to_each_other(tmp_path, monkeypatch):
    """Each of two waits until the other is being measured too."""
    assert len(level_of(tmp_path / "a.zarr", chunks=(4, *VALUES.T.shape[1:]))) == 2
    both, measured = threading.Barrier(2, timeout=20), zarr_format.unpacked_bytes
    monkeypatch.setattr(zarr_format, "unpacked_bytes", lambda *told: (both.wait(), measured(*told))[1])
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr").values, VALUES)


def test_chunks_and_shards_are_held_against_the_budget_of_one_file(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYMARCH_FILE_GB", "0.001")
    level_of(tmp_path / "a.zarr", chunks=(100, 100, 100))
    refused(lambda: rm.load(tmp_path / "a.zarr"), "level 0 has chunks, or shards, that declare 2000000 bytes, over the")
    level_of(tmp_path / "b.zarr", version=3, chunks=(10, 10, 10), shards=(100, 100, 100))
    refused(lambda: rm.load(tmp_path / "b.zarr"), "declare 2000000 bytes, over the budget of 1000000 bytes")
    level_of(tmp_path / "c.zarr", version=3, chunks=(1, 1, 1), shards=(50, 50, 50))
    refused(lambda: rm.load(tmp_path / "c.zarr"), "declare 2000000 bytes, over the budget of 1000000 bytes")
    (file,) = level_of(tmp_path / "d.zarr", compressors=None)
    with file.open("r+b") as chunk:
        chunk.truncate(1 << 33)
    refused(lambda: rm.load(tmp_path / "d.zarr"), "has 8,589,934,592 bytes, want at most 67,110,564 by its metadata")


def test_packings_of_a_zarr_that_cannot_be_measured_are_refused(tmp_path):
    codecs = zarr.codecs
    level_of(tmp_path / "a.zarr", filters=[NUMCODECS["Zlib"]()], compressors=NUMCODECS["Blosc"]())
    refused(lambda: rm.load(tmp_path / "a.zarr"), "level 0 has the codec blosc around zlib, want one; rm.Scal")
    level_of(tmp_path / "b.zarr", version=3, compressors=(codecs.GzipCodec(), codecs.ZstdCodec()))
    refused(lambda: rm.load(tmp_path / "b.zarr"), "level 0 has the codec zstd around gzip")
    shards = {"version": 3, "shards": {"shape": (50, 50, 50), "index_location": "start"}, "chunks": (10, 10, 10)}
    level_of(tmp_path / "c.zarr", **shards)
    refused(lambda: rm.load(tmp_path / "c.zarr"), "level 0 has shards with an index of ['bytes', 'crc32c'] elsewhere")
    inner = codecs.ShardingCodec(chunk_shape=(5, 5, 5))
    for k, several in enumerate(
        [
            (codecs.ShardingCodec(chunk_shape=(10, 10, 10), codecs=(inner,)),),
            (codecs.ShardingCodec(chunk_shape=(10, 10, 10)), codecs.GzipCodec()),
        ]
    ):
        level_of(tmp_path / f"{k}.zarr", version=3, chunks=(50, 50, 50))
        text = tmp_path / f"{k}.zarr" / "0" / "zarr.json"
        text.write_text(json.dumps(json.loads(text.read_text()) | {"codecs": [one.to_dict() for one in several]}))
        refused(lambda k=k: rm.load(tmp_path / f"{k}.zarr"), "has shards that are packed or in shards, want those of")


def test_zarr_reads_ours(tmp_path):
    rm.save(volume(".ome.zarr"), tmp_path / "a.ome.zarr")
    group = zarr.open_group(str(tmp_path / "a.ome.zarr"), mode="r")
    np.testing.assert_array_equal(group["0"][...], VALUES.T)
    image = group.attrs["multiscales"][0]
    assert [axis["name"] for axis in image["axes"]] == ["z", "y", "x"] and image["version"] == "0.4"
    assert image["datasets"][0]["coordinateTransformations"][0] == {"type": "scale", "scale": [2.5, 1.0, 0.5]}


# DICOM.


def series(folder, **more):
    """A series on the disk, and its files in order."""
    rm.save(volume(".dicom", **more), folder, overwrite=True)
    return sorted(folder.iterdir())


def edit(file, **tags):
    data = pydicom.dcmread(file)
    for name, value in tags.items():
        setattr(data, name, value)
    data.save_as(file)


def test_slices_are_sorted_by_where_they_lie_whatever_they_are_called(tmp_path):
    files = series(tmp_path / "a.dicom", slope=2.0, intercept=-1024.0)
    for k, file in enumerate(files):
        file.rename(file.with_name(f"{(5 * k) % 7}.ima"))
    found = rm.load(tmp_path / "a.dicom")
    np.testing.assert_array_equal(found.numbers(), VALUES * 2.0 - 1024)
    np.testing.assert_allclose(found.world_from_index, TURNED, atol=1e-9)


def test_a_spacing_that_is_assumed_is_said(tmp_path, caplog):
    files = series(tmp_path / "a.dicom")
    rm.load(tmp_path / "a.dicom")
    assert "assumed" not in caplog.text
    for file in files:
        edit(file, PixelSpacing=None)
    np.testing.assert_allclose(rm.load(tmp_path / "a.dicom").spacing[:2], 1)
    assert "says no PixelSpacing; 1 mm is assumed along x and y" in caplog.text
    nrrd.write(str(tmp_path / "a.nrrd"), VALUES, {"spacings": [np.nan, 2.0, 3.0]})
    np.testing.assert_allclose(rm.load(tmp_path / "a.nrrd").spacing, (1, 2, 3))
    assert "says no spacing along x; 1 is assumed" in caplog.text


def test_missing_slices_and_uneven_spacing_are_refused_by_name(tmp_path):
    files = series(tmp_path / "a.dicom")
    files[3].unlink()
    refused(lambda: rm.load(tmp_path / "a.dicom"), "a.dicom: lacks 1 slice between 00002.dcm and 00004.dcm")
    files[4].unlink()
    refused(lambda: rm.load(tmp_path / "a.dicom"), "lacks 2 slices between 00002.dcm and 00005.dcm")
    files = series(tmp_path / "b.dicom")
    place = np.array(pydicom.dcmread(files[3]).ImagePositionPatient, float)
    edit(files[3], ImagePositionPatient=[f"{x:.6g}" for x in place + 0.3 * TURNED[:3, 2]])
    refused(lambda: rm.load(tmp_path / "b.dicom"), "b.dicom: has uneven spacing")


def test_slopes_of_their_own_several_series_times_and_colours(tmp_path):
    files = series(tmp_path / "a.dicom")
    edit(files[2], RescaleSlope="3", RescaleIntercept="-7")
    wanted = VALUES.astype("f4")
    wanted[:, :, 2] = 3 * wanted[:, :, 2] - 7
    found = rm.load(tmp_path / "a.dicom")
    np.testing.assert_array_equal(found.values, wanted)
    edit(files[2], SeriesInstanceUID="1.2.3", SeriesDescription="scout")
    refused(lambda: rm.load(tmp_path / "a.dicom"), "lacks 1 slice between 00001.dcm and 00003.dcm")
    edit(files[3], SeriesInstanceUID="1.2.3", SeriesDescription="scout")
    refused(lambda: rm.load(tmp_path / "a.dicom"), "holds 2 series (", "scout", "choose one by channel=0")
    for file in files:
        edit(file, SamplesPerPixel=3)
    refused(
        lambda: rm.load(tmp_path / "a.dicom"),
        "a.dicom: has no slices of a volume, but a picture of colours, such as a report (00000.dcm",
    )
    files = series(tmp_path / "b.dicom")
    for k, file in enumerate(files):
        (tmp_path / "b.dicom" / f"late{k}.dcm").write_bytes(file.read_bytes())
        edit(tmp_path / "b.dicom" / f"late{k}.dcm", RescaleIntercept="100")
    refused(lambda: rm.load(tmp_path / "b.dicom"), "has 2 points in time; choose one by time=0 to time=1")
    np.testing.assert_array_equal(rm.load(tmp_path / "b.dicom", time=1).numbers(), VALUES + 100.0)


@pytest.mark.parametrize(
    "told",
    [
        lambda t, n: {"InstanceNumber": n + 1},
        lambda t, n: {"TemporalPositionIdentifier": t + 1, "InstanceNumber": 30 - n},
        lambda t, n: {"InstanceNumber": None, "AcquisitionTime": f"0900{10 * t:02d}.50"},
        lambda t, n: {"InstanceNumber": None},
    ],
    ids=["number", "position", "clock", "name"],
)
def test_a_point_in_time_is_the_same_at_every_place_whatever_the_files_are_called(told, tmp_path):
    """Three points of seven slices, called 1 to 21 without zeros, so that the order of letters mixes them."""
    folder = tmp_path / "a.dicom"
    for k, file in enumerate(series(folder)):
        for t in range(3):
            later = folder / f"IM{7 * t + k + 1}"
            later.write_bytes(file.read_bytes())
            edit(later, RescaleIntercept=str(100 * t), **told(t, 7 * t + k))
        file.unlink()
    for t in range(3):
        np.testing.assert_array_equal(rm.load(folder, time=t).numbers(), VALUES + 100.0 * t)


def test_a_point_in_time_may_be_a_file_of_frames(tmp_path):
    """As scanners write enhanced files: the number that orders them is the whole file's."""
    series(tmp_path / "a.dicom")
    (tmp_path / "b").mkdir()
    for t, name in enumerate(("z.dcm", "m.dcm", "a.dcm")):
        frames_of(tmp_path / "a.dicom", tmp_path / "b" / name)
        edit(tmp_path / "b" / name, InstanceNumber=t + 1, RescaleIntercept="0")
        frames = pydicom.dcmread(tmp_path / "b" / name)
        frames.PixelData = (np.frombuffer(frames.PixelData, "<i2") + 100 * t).astype("<i2").tobytes()
        frames.save_as(tmp_path / "b" / name)
    for t in range(3):
        np.testing.assert_array_equal(rm.load(tmp_path / "b", time=t).values, VALUES + 100 * t)


def test_a_number_that_is_none_costs_a_series_nothing(tmp_path):
    files = series(tmp_path / "a.dicom")
    data = files[2].read_bytes()
    at = data.index(b"\x20\x00\x13\x00IS")
    size = struct.unpack_from("<H", data, at + 6)[0]
    files[2].write_bytes(data[: at + 8] + b"A1"[:size].ljust(size) + data[at + 8 + size :])
    np.testing.assert_array_equal(rm.load(tmp_path / "a.dicom").values, VALUES)


def test_pixels_that_are_floats_are_not_cut_to_whole_numbers(tmp_path):
    series(tmp_path / "a.dicom")
    frames_of(tmp_path / "a.dicom", tmp_path / "map.dcm")
    data = pydicom.dcmread(tmp_path / "map.dcm")
    data.FloatPixelData = np.full(7 * data.Rows * data.Columns, 0.7, "f4").tobytes()
    data.BitsAllocated = 32
    for tag in ("PixelData", "BitsStored", "HighBit", "PixelRepresentation"):
        delattr(data, tag)
    data.save_as(tmp_path / "map.dcm")
    np.testing.assert_array_equal(rm.load(tmp_path / "map.dcm").values, np.float32(0.7))


def test_a_tilted_gantry_is_a_sheared_volume(tmp_path):
    files, leaning = series(tmp_path / "a.dicom"), TURNED.copy()
    leaning[:3, 2] += 0.3 * TURNED[:3, 1]
    for k, file in enumerate(files):
        edit(file, ImagePositionPatient=[f"{x:.9g}" for x in (leaning @ [0, 0, k, 1])[:3]])
    found = rm.load(tmp_path / "a.dicom")
    np.testing.assert_allclose(found.world_from_index, leaning, atol=1e-6)
    np.testing.assert_array_equal(found.values, VALUES)


def test_one_slice_is_told_to_be_one(tmp_path):
    file = series(tmp_path / "a.dicom")[0]
    refused(lambda: rm.load(file), "is one slice of a DICOM series; name the folder of all of them")


def frames_of(folder, file, slopes=None):
    """The series of a folder as the frames of one enhanced file, in another order; spacing is what all share."""
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    slices = [pydicom.dcmread(one) for one in sorted(folder.iterdir())]
    order = [3, 0, 6, 4, 1, 2, 5]

    def group(**tags):
        item = Dataset()
        for name, value in tags.items():
            setattr(item, name, value)
        return Sequence([item])

    whole, frames = slices[0], []
    for k in order:
        frame = Dataset()
        frame.PlanePositionSequence = group(ImagePositionPatient=slices[k].ImagePositionPatient)
        if slopes is not None:
            frame.PixelValueTransformationSequence = group(RescaleSlope=slopes[k], RescaleIntercept=0, RescaleType="HU")
        frames.append(frame)
    shared = Dataset()
    shared.PlaneOrientationSequence = group(ImageOrientationPatient=whole.ImageOrientationPatient)
    shared.PixelMeasuresSequence = group(PixelSpacing=whole.PixelSpacing)
    whole.SharedFunctionalGroupsSequence, whole.PerFrameFunctionalGroupsSequence = Sequence([shared]), Sequence(frames)
    whole.NumberOfFrames, whole.PixelData = len(order), b"".join(slices[k].PixelData for k in order)
    for tag in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing"):
        delattr(whole, tag)
    whole.save_as(file)


def test_frames_of_one_file_are_slices_where_each_says_it_lies(tmp_path):
    series(tmp_path / "a.dicom")
    frames_of(tmp_path / "a.dicom", tmp_path / "b.dcm")
    found = rm.load(tmp_path / "b.dcm")
    np.testing.assert_array_equal(found.values, VALUES)
    np.testing.assert_allclose(found.world_from_index, TURNED, atol=1e-9)
    assert rm.describe(tmp_path / "b.dcm").shape == VALUES.shape
    frames_of(tmp_path / "a.dicom", tmp_path / "c.dcm", slopes=range(1, 8))
    np.testing.assert_array_equal(rm.load(tmp_path / "c.dcm").numbers(), VALUES * np.arange(1, 8))
    data = pydicom.dcmread(tmp_path / "b.dcm")
    del data.PerFrameFunctionalGroupsSequence[0]
    data.save_as(tmp_path / "d.dcm")
    refused(lambda: rm.load(tmp_path / "d.dcm"), "d.dcm: has 7 frames and the places of 6, want one each")
    data.NumberOfFrames, data.PixelData = 6, data.PixelData[: 6 * data.Rows * data.Columns * 2]
    data.save_as(tmp_path / "e.dcm")
    refused(lambda: rm.load(tmp_path / "e.dcm"), "e.dcm: lacks 1 slice between frame 5 and frame 3")


def real_world(unit="", **numbers):
    """A sequence of one mapping to real-world values."""
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    mapping, units = Dataset(), Dataset()
    units.CodeValue = unit
    mapping.MeasurementUnitsCodeSequence = Sequence([units])
    for name, value in numbers.items():
        setattr(mapping, f"RealWorldValue{name}", value)
    return Sequence([mapping])


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"Slope": 2.0, "Intercept": -1024.0, "unit": "[hnsf'U]"}, ""),
        ({"Slope": 0.001, "Intercept": 0.5, "unit": "mm2/s"}, "(0.001 x stored +0.5 mm2/s), which is not applied"),
        ({"LUTData": [0.5, 2.0], "unit": "ml/s"}, "(by a table ml/s), which is not applied; values are as"),
    ],
    ids=["alike", "other", "table"],
)
def test_a_real_world_value_mapping_that_is_not_the_rescaling_is_said_and_not_applied(numbers, said, tmp_path, caplog):
    """In slices of a file each, and in a file of frames, of each or of all."""
    for file in series(tmp_path / "a.dicom", slope=2.0, intercept=-1024.0):
        edit(file, RealWorldValueMappingSequence=real_world(**numbers))
    frames_of(tmp_path / "a.dicom", tmp_path / "all.dcm")
    data = pydicom.dcmread(tmp_path / "all.dcm")
    del data.RealWorldValueMappingSequence
    rescaled = [frame.__class__() for frame in data.PerFrameFunctionalGroupsSequence[:1]]
    rescaled[0].RescaleSlope, rescaled[0].RescaleIntercept = "2", "-1024"
    shared = data.SharedFunctionalGroupsSequence[0]
    shared.PixelValueTransformationSequence = rescaled
    shared.RealWorldValueMappingSequence = real_world(**numbers)
    data.save_as(tmp_path / "all.dcm")
    del shared.RealWorldValueMappingSequence
    data.PerFrameFunctionalGroupsSequence[4].RealWorldValueMappingSequence = real_world(**numbers)
    data.save_as(tmp_path / "one.dcm")
    for name in ("a.dicom", "all.dcm", "one.dcm"):
        caplog.clear()
        np.testing.assert_array_equal(rm.load(tmp_path / name).numbers(), VALUES * 2.0 - 1024)
        assert ("maps its numbers to the real world" in caplog.text) == bool(said) and said in caplog.text


@pytest.mark.parametrize("exact", [1 / 8191.4, -1 / 3, 1.2345678901234567e-05])
def test_a_real_world_value_mapping_is_the_rescaling_though_that_is_cut_to_the_characters_of_its_tag(
    exact, tmp_path, caplog
):
    intercept = -1000 * exact
    cut = {"RescaleSlope": f"{exact:.8g}"[:16], "RescaleIntercept": f"{intercept:.8g}"[:16]}
    assert float(cut["RescaleSlope"]) != exact and float(cut["RescaleIntercept"]) != intercept
    for file in series(tmp_path / "a.dicom"):
        edit(file, **cut, RealWorldValueMappingSequence=real_world(Slope=exact, Intercept=intercept))
    found = rm.load(tmp_path / "a.dicom")
    np.testing.assert_allclose(found.numbers(), VALUES * exact + intercept, rtol=1e-6, atol=1e-6 * abs(exact))
    assert "real world" not in caplog.text
    edit(file, RealWorldValueMappingSequence=real_world(Slope=exact, Intercept=intercept + 0.01 * exact))
    rm.load(tmp_path / "a.dicom")
    assert "maps its numbers to the real world" in caplog.text


def test_a_grid_of_doses_lies_along_its_normal(tmp_path):
    file = series(tmp_path / "a.dicom")[0]
    slices = [pydicom.dcmread(one).PixelData for one in sorted((tmp_path / "a.dicom").iterdir())]
    step = float(np.linalg.norm(TURNED[:3, 2]))
    edit(
        file,
        NumberOfFrames=7,
        PixelData=b"".join(slices),
        GridFrameOffsetVector=[f"{k * step:.9g}" for k in range(7)],
        DoseGridScaling="0.5",
    )
    found = rm.load(file)
    np.testing.assert_array_equal(found.numbers(), 0.5 * VALUES)
    np.testing.assert_allclose(np.abs(found.world_from_index[:3, :3]), np.abs(TURNED[:3, :3]), atol=1e-6)


def decimal(x):
    """In the 16 characters of a tag."""
    return f"{x:.9g}"[:16]


@pytest.mark.parametrize("scale", [1e-7, 1e4])
def test_places_are_told_from_points_in_time_at_any_scale(scale, tmp_path):
    small = TURNED.copy()
    small[:3, 2] *= scale
    for k, file in enumerate(series(tmp_path / "a.dicom")):
        edit(file, ImagePositionPatient=[decimal(x) for x in (small @ [0, 0, k, 1])[:3] - TURNED[:3, 3]])
    found = rm.load(tmp_path / "a.dicom")
    assert found.shape == VALUES.shape
    np.testing.assert_allclose(found.world_from_index[:3, 2], small[:3, 2], rtol=1e-3)


def test_a_deflated_file_is_refused_before_anything_of_it_is_unpacked(tmp_path):
    files = series(tmp_path / "a.dicom")
    head = files[0].read_bytes()[:400]
    data = pydicom.dcmread(files[0])
    data.file_meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    data.save_as(files[0])
    assert files[0].read_bytes()[:132] == head[:132]
    refused(lambda: rm.load(tmp_path / "a.dicom"), f"{files[0].name}: is deflated, tags and all", "gdcmconv --raw")


def test_pixels_that_are_packed_in_unknown_ways_name_the_cure(tmp_path):
    files = series(tmp_path / "a.dicom")
    for uid, said in (
        (
            "1.2.840.10008.1.2.4.100",
            "is packed as MPEG2 Main Profile / Main Level, which pydicom does not unpack; ",
        ),
        ("1.2.840.10008.1.2.4.70", "which takes a plugin of pydicom; pip install pylibjpeg pylibjpeg-libjpeg, or conv"),
    ):
        data = pydicom.dcmread(files[0])
        data.file_meta.TransferSyntaxUID = pydicom.uid.UID(uid)
        data.PixelData = pydicom.encaps.encapsulate([data.PixelData])
        data["PixelData"].VR = "OB"
        data.save_as(files[0])
        refused(lambda: rm.load(tmp_path / "a.dicom"), said)


def test_what_sixteen_bits_and_a_series_cannot_hold_is_refused(tmp_path):
    refused(
        lambda: rm.save(volume(kind="f4", place="turned"), tmp_path / "a.dicom"), "values are float32, which a DICOM"
    )
    assert not list(tmp_path.iterdir())


# NumPy, and headers that lie.


@pytest.mark.parametrize("order", "CF")
def test_numpy_s_arrays_are_read_as_they_are_indexed(order, tmp_path, caplog):
    np.save(tmp_path / "a.npy", np.array(VALUES, order=order))
    np.savez(tmp_path / "b.npz", scan=np.array(VALUES, order=order), spacing=(1, 2, 3), more=np.zeros(3))
    np.testing.assert_array_equal(rm.load(tmp_path / "a.npy").values, VALUES)
    found = rm.load(tmp_path / "b.npz")
    np.testing.assert_array_equal(found.values, VALUES)
    assert found.spacing.tolist() == [1, 2, 3] and "a.npy: says no spacing" in caplog.text
    np.savez(tmp_path / "c.npz", a=VALUES, b=VALUES)
    refused(lambda: rm.load(tmp_path / "c.npz"), "c.npz: has a, b, want just one of three axes or more")
    np.save(tmp_path / "d.npy", np.array([[[None]]]), allow_pickle=True)
    refused(lambda: rm.load(tmp_path / "d.npy"), "d.npy: holds object")


@pytest.mark.parametrize("offset", [0, 100, 348, np.inf, np.nan])
def test_a_nifti_whose_values_begin_in_its_header_or_nowhere_is_refused(offset, tmp_path):
    rm.save(volume(".nii", "i2"), tmp_path / "a.nii")
    data = bytearray((tmp_path / "a.nii").read_bytes())
    struct.pack_into("<f", data, 108, offset)
    (tmp_path / "a.nii").write_bytes(data)
    refused(lambda: rm.load(tmp_path / "a.nii"), f"from byte {offset} on, want x, y, z from 352 or more")


def test_a_nifti_whose_dimensions_overflow_or_lie_is_refused_by_its_size(tmp_path):
    rm.save(volume(".nii"), tmp_path / "a.nii")
    data = bytearray((tmp_path / "a.nii").read_bytes())
    for sizes in ((32767, 32767, 32767), (5, 6, 8), (-5, 6, 7), (0, 6, 7)):
        struct.pack_into("<3h", data, 42, *sizes)
        (tmp_path / "b.nii").write_bytes(data)
        refused(lambda: rm.load(tmp_path / "b.nii"), "b.nii: ")
