"""Laws of MetaImages with every optional part of the format: read as ITK reads them, or told with a cure."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import refused

import raymarch as rm

VALUES = np.random.default_rng(0).integers(0, 99, (9, 7, 5)).astype(np.uint8)
RAW = VALUES.tobytes(order="F")
HEAD = "ObjectType = Image\nNDims = 3\nDimSize = 9 7 5\nElementType = MET_UCHAR\nElementSpacing = 1 2 3\n"


def written(path, lines, data=b"", name="LOCAL"):
    path.write_bytes(
        (lines if isinstance(lines, bytes) else lines.encode()) + f"ElementDataFile = {name}\n".encode() + data
    )
    return path


def require_read(path, values=VALUES, spacing=(1, 2, 3), **how):
    found = rm.load(path, **how)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(found.spacing, spacing)
    assert rm.describe(path, **how).shape == values.shape
    part = rm.load(path, crop=((2, 8), (1, 6), (1, 5)), stride=(2, 1, 1), **how)
    np.testing.assert_array_equal(part.values, values[2:8:2, 1:6, 1:5])
    return found


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [0, 6, -1])
@pytest.mark.parametrize("detached", [False, True])
def test_a_header_of_a_file_of_values_is_skipped(packed, size, detached, tmp_path):
    data = b"before" * (size != 0) + (zlib.compress(RAW) if packed else RAW)
    more = f"HeaderSize = {size}\n" + (
        f"CompressedData = True\nCompressedDataSize = {len(zlib.compress(RAW))}\n" * packed
    )
    (tmp_path / "a.raw").write_bytes(data)
    name = "a.raw" if detached else "LOCAL"
    require_read(written(tmp_path / "a.mhd", HEAD + more, b"" if detached else data, name))


@pytest.mark.parametrize("packed", ["", "CompressedData = True\n", "BinaryData = False\n", "HeaderSize = 4\n"])
@pytest.mark.parametrize("how", ["LIST", "LIST 2", "s%03d.raw 1 5 1", "s%d.raw 1 5 1", "s%03d.raw 5 1 -1"])
def test_slices_in_several_files_are_one_behind_the_other(how, packed, tmp_path):
    names = [f"s{k + 1}.raw" if "%d" in how else f"s{k + 1:03}.raw" for k in range(5)]
    for k, name in zip(range(5)[::-1] if "-1" in how else range(5), names, strict=True):
        data = VALUES[:, :, k].tobytes("F")
        data = zlib.compress(data) if "Compressed" in packed else data
        data = b" ".join(b"%d" % x for x in data) if "Binary" in packed else data
        (tmp_path / name).write_bytes(b"head" * ("Header" in packed) + data)
    path = written(tmp_path / "a.mhd", HEAD + packed, "\n".join(names).encode() if "LIST" in how else b"", how)
    require_read(path)
    (tmp_path / names[1]).unlink()
    refused(lambda: rm.load(path), f"want {names[1]} beside it; move it there")


def test_values_as_text_other_separators_and_repeated_comments(tmp_path):
    text = " ".join(map(str, VALUES.ravel("F").tolist())).encode()
    head = (
        HEAD.replace(" = ", ": ").replace("\n", "\r\n")
        + "Comment = first\r\nComment = second = third\r\nBinaryData = False\r\n"
    )
    assert require_read(written(tmp_path / "a.mha", head, text)).name == "first second = third"


@pytest.mark.parametrize("name", ["Schädel", "頭部 CT"])
@pytest.mark.parametrize("letters", ["utf-8", "latin-1"])
def test_a_comment_in_other_letters_is_read_and_written(name, letters, tmp_path, caplog):
    if letters == "utf-8" or name.isascii() or name[0] == "S":
        assert (
            require_read(written(tmp_path / "a.mha", (HEAD + f"Comment = {name}\n").encode(letters), RAW)).name == name
        )
    rm.save(rm.ScalarVolume(VALUES, name=name, unit="Gy"), tmp_path / "b.mha")
    assert rm.load(tmp_path / "b.mha").name == name
    assert "MetaImage holds no unit of values (Gy), which stays behind" in caplog.text


@pytest.mark.parametrize(
    ("told", "unit"), [("mm", "mm"), ("um", "um"), ("cm", "cm"), ("microns", "um"), ("?", ""), ("m", "m")]
)
def test_a_unit_is_read_however_it_is_spelt(told, unit, tmp_path):
    found = require_read(written(tmp_path / "a.mha", HEAD + f"DistanceUnits = {told}\n", RAW))
    assert found.length_unit == unit


@pytest.mark.parametrize("key", ["TransformMatrix", "Orientation", "Rotation"])
@pytest.mark.parametrize("place", ["Offset", "Position", "Origin"])
def test_a_place_is_read_by_each_of_its_names(key, place, tmp_path):
    head = (
        HEAD + f"{key} = 0 1 0 -1 0 0 0 0 1\n{place} = 4 5 6\nCenterOfRotation = 9 9 9\nAnatomicalOrientation = RAI\n"
    )
    found = require_read(written(tmp_path / "a.mha", head, RAW))
    assert found.origin.tolist() == [4, 5, 6]
    np.testing.assert_allclose(found.directions, np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]).T)


def test_fields_that_bear_on_the_place_and_are_not_read_are_told(tmp_path, caplog):
    head = HEAD + "ImagePosition = 1 2 3\nAnatomicalOrientation = LPS\nModality = MET_MOD_CT\nElementMin = 0\n"
    require_read(written(tmp_path / "a.mha", head, RAW))
    assert "come from LPS (AnatomicalOrientation), which is not read" in caplog.text
    assert "has ImagePosition, which raymarch does not read" in caplog.text


@pytest.mark.parametrize("kind", ["MET_UCHAR_ARRAY", "MET_UCHAR"])
def test_channels_are_chosen(kind, tmp_path):
    several = np.stack([VALUES, VALUES + 1, VALUES + 2])
    head = HEAD.replace("MET_UCHAR", kind) + "ElementNumberOfChannels = 3\n"
    path = written(tmp_path / "a.mha", head, several.tobytes("F"))
    refused(lambda: rm.load(path), "has 3 channels along axis 0", "(--channel 0 in the shell)")
    require_read(path, VALUES + 2, channel=2)


@pytest.mark.parametrize("kind", ["MET_OTHER", "MET_STRING", "MET_ASCII_CHAR", "none", ""])
def test_a_type_of_no_number_is_told(kind, tmp_path):
    path = written(tmp_path / "a.mha", HEAD.replace("MET_UCHAR", kind), RAW)
    assert "restore" not in refused(lambda: rm.load(path), "want values of one of MET_CHAR", "SimpleITK.Cast")


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_type_of_itk_s_is_read(kind, packed, tmp_path):
    sitk = require_extra("SimpleITK", "all")
    image = sitk.GetImageFromArray(VALUES.astype(kind).T)
    image.SetSpacing((1, 2, 3))
    image.SetMetaData("Comment", "of ITK")
    sitk.WriteImage(image, str(tmp_path / "a.mha"), packed)
    sitk.WriteImage(image, str(tmp_path / "b.mhd"), packed)
    assert require_read(tmp_path / "a.mha").values.dtype == kind
    require_read(tmp_path / "b.mhd")


@pytest.mark.extra
def test_ours_are_read_by_itk_whatever_they_are_called(tmp_path):
    sitk = require_extra("SimpleITK", "all")
    rm.save(rm.ScalarVolume(VALUES, name="頭部 CT", length_unit="mm"), tmp_path / "a.mha")
    np.testing.assert_array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "a.mha"))).T, VALUES)
