"""Laws of VTK's image data with every optional part that VTK writes: read as VTK reads it, or told with a cure."""

from __future__ import annotations

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import refused

import raymarch as rm

vtk = require_extra("vtk", "all")
require_extra("imagecodecs", "formats")
pytestmark = pytest.mark.extra
VALUES = np.random.default_rng(0).integers(0, 99, (9, 7, 5))
COMPRESSORS = {"None": None, "ZLib": "ZLib", "LZMA": "LZMA", "LZ4": "LZ4"}


def image_of(values=VALUES, kind="f4", name="values", extent=None, cells=False):
    from vtk.util.numpy_support import numpy_to_vtk

    image = vtk.vtkImageData()
    more = 1 if cells else 0
    image.SetExtent(*(extent or [x for n in values.shape for x in (0, n - 1 + more)]))
    image.SetSpacing(1, 2, 3)
    image.SetOrigin(4, 5, 6)
    array = numpy_to_vtk(np.ascontiguousarray(values.astype(kind).T).ravel(), deep=True)
    array.SetName(name)
    (image.GetCellData() if cells else image.GetPointData()).SetScalars(array)
    return image


def write(image, path, mode=2, compressor="ZLib", encoded=0, length=64, order="LittleEndian", block=None):
    writer = vtk.vtkXMLImageDataWriter()
    writer.SetInputData(image)
    writer.SetFileName(str(path))
    writer.SetDataMode(mode)
    writer.SetEncodeAppendedData(encoded)
    getattr(writer, f"SetCompressorTypeTo{compressor}")()
    if block:
        writer.SetBlockSize(block)
    (writer.SetHeaderTypeToUInt64 if length == 64 else writer.SetHeaderTypeToUInt32)()
    getattr(writer, f"SetByteOrderTo{order}")()
    assert writer.Write()
    return path


def require_read(path, values=VALUES, **how):
    found = rm.load(path, **how)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(found.spacing, (1, 2, 3))
    assert rm.describe(path, **how).shape == values.shape
    part = rm.load(path, crop=((2, 8), (1, 6), (1, 5)), stride=(2, 1, 1), **how)
    np.testing.assert_array_equal(part.values, values[2:8:2, 1:6, 1:5])
    return found


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("encoded", [0, 1])
@pytest.mark.parametrize("length", [32, 64])
@pytest.mark.parametrize("order", ["LittleEndian", "BigEndian"])
def test_every_way_to_write_values_is_read(mode, compressor, encoded, length, order, tmp_path):
    path = write(image_of(), tmp_path / "a.vti", mode, compressor, encoded, length, order, block=256)
    assert require_read(path).origin.tolist() == [4, 5, 6]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("cells", [False, True])
def test_every_type_at_points_or_in_cells_is_read(kind, cells, tmp_path, caplog):
    found = require_read(write(image_of(kind=kind, cells=cells), tmp_path / "a.vti"))
    assert found.values.dtype == kind and found.origin.tolist() == ([4.5, 6, 7.5] if cells else [4, 5, 6])
    assert ("values of cells" in caplog.text) == cells


def test_an_extent_that_begins_elsewhere_and_a_direction_are_read(tmp_path):
    image = image_of(extent=[2, 10, -3, 3, 1, 5])
    image.SetDirectionMatrix(0, 1, 0, -1, 0, 0, 0, 0, 1)
    found = require_read(write(image, tmp_path / "a.vti"))
    wanted = [0.0, 0.0, 0.0]
    image.TransformIndexToPhysicalPoint(2, -3, 1, wanted)
    np.testing.assert_allclose(found.origin, wanted)
    np.testing.assert_allclose(found.directions, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pieces_are_put_together(cells, axis, tmp_path):
    tag, cut, first = ("CellData" if cells else "PointData"), 2, np.array([3, -2, 1])
    texts = []
    for low, high in ((0, cut), (cut, VALUES.shape[axis])):
        part = np.take(VALUES, range(low, min(high + (0 if cells else 1), VALUES.shape[axis])), axis)
        begin = first.copy()
        begin[axis] += low
        end = begin + part.shape - (0 if cells else 1)
        extent = " ".join(f"{a} {b}" for a, b in zip(begin, end, strict=True))
        words = " ".join(map(str, part.ravel("F").tolist()))
        array = f'<DataArray type="UInt8" Name="a" format="ascii">{words}</DataArray>'
        texts.append(f'<Piece Extent="{extent}"><{tag}>{array}</{tag}></Piece>')
    whole = " ".join(f"{a} {b}" for a, b in zip(first, first + VALUES.shape - (0 if cells else 1), strict=True))
    image = f'<ImageData WholeExtent="{whole}" Origin="4 5 6" Spacing="1 2 3">{"".join(texts)}</ImageData>'
    (tmp_path / "a.vti").write_text(f'<VTKFile type="ImageData" version="1.0">{image}</VTKFile>')
    found = require_read(tmp_path / "a.vti")
    np.testing.assert_allclose(found.origin, np.array([4, 5, 6]) + (first + 0.5 * cells) * (1, 2, 3))
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "a.vti"))
    reader.Update()
    data = reader.GetOutput().GetCellData() if cells else reader.GetOutput().GetPointData()
    from vtk.util.numpy_support import vtk_to_numpy

    np.testing.assert_array_equal(vtk_to_numpy(data.GetArray(0)), VALUES.ravel("F"))


def test_pieces_that_leave_some_out_or_differ_are_told(tmp_path):
    piece = '<Piece Extent="0 {} 0 2 0 2"><PointData><DataArray type="UInt8" Name="{}" format="ascii">{}</DataArray>'
    piece += "</PointData></Piece>"
    for name, said in (("a", "has pieces that are not its whole extent"), ("b", "has pieces of several arrays")):
        two = piece.format(2, "a", "1 " * 27) + piece.format(2, name, "1 " * 27)
        text = f'<VTKFile type="ImageData"><ImageData WholeExtent="0 5 0 2 0 2">{two}</ImageData></VTKFile>'
        text = text if name == "a" else text.replace("0 5 0 2", "0 2 0 2")
        (tmp_path / "a.vti").write_text(text)
        refused(lambda: rm.load(tmp_path / "a.vti"), said, "merge them in ParaView")


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_hides_values_texts_beside_them_and_units(mode, tmp_path, caplog):
    image = image_of(name="dose µ 頭")
    image.AllocatePointGhostArray()
    image.GetPointGhostArray().SetValue(3, 2)
    texts = vtk.vtkStringArray()
    texts.SetName("labels")
    texts.SetNumberOfValues(VALUES.size)
    image.GetPointData().AddArray(texts)
    image.GetPointData().GetArray(0).GetInformation().Set(vtk.vtkDataArray.UNITS_LABEL(), "Gy")
    found = require_read(write(image, tmp_path / "a.vti", mode))
    assert (found.name, found.unit) == ("dose µ 頭", "Gy")
    assert "hides some of its values (vtkGhostType), which is not read" in caplog.text
    rm.save(found, tmp_path / "b.vti")
    again = require_read(tmp_path / "b.vti")
    assert (again.name, again.unit) == ("dose µ 頭", "Gy")
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "b.vti"))
    reader.Update()
    array = reader.GetOutput().GetPointData().GetArray(0)
    assert array.GetInformation().Get(vtk.vtkDataArray.UNITS_LABEL()) == "Gy" and array.GetName() == "dose µ 頭"


def test_texts_alone_are_no_values(tmp_path):
    image = vtk.vtkImageData()
    image.SetDimensions(3, 4, 5)
    texts = vtk.vtkStringArray()
    texts.SetName("labels")
    texts.SetNumberOfValues(60)
    image.GetPointData().AddArray(texts)
    refused(lambda: rm.load(write(image, tmp_path / "a.vti")), "holds labels of String, want one of Int8")


def test_time_and_other_fields_cost_nothing(tmp_path):
    image = image_of()
    time = vtk.vtkDoubleArray()
    time.SetName("TimeValue")
    time.InsertNextValue(2.5)
    image.GetFieldData().AddArray(time)
    require_read(write(image, tmp_path / "a.vti"))


@pytest.mark.parametrize("compressor", ["LZMA", "LZ4", "ZLib"])
def test_packed_values_that_are_damaged_are_told(compressor, tmp_path):
    path = write(image_of(), tmp_path / "a.vti", compressor=compressor)
    data = bytearray(path.read_bytes())
    at = data.index(b"_", data.index(b"<AppendedData")) + 60
    data[at : at + 40] = bytes(range(200, 240))
    path.write_bytes(data)
    assert "fault" not in refused(lambda: rm.load(path), "a.vti: ")


@pytest.mark.parametrize(
    ("letters", "name"), [("iso-8859-1", "Schädel"), ("Shift_JIS", "頭部"), ("UTF-8", "頭部"), ("windows-1252", "µ")]
)
def test_a_name_is_read_in_the_letters_that_the_file_says(letters, name, tmp_path):
    array = f'<DataArray type="UInt8" Name="{name}" format="ascii">{"1 2 3 " * 9}</DataArray>'
    image = f'<ImageData WholeExtent="0 2 0 2 0 2"><Piece Extent="0 2 0 2 0 2"><PointData>{array}</PointData></Piece>'
    text = f'<?xml version="1.0" encoding="{letters}"?><VTKFile type="ImageData">{image}</ImageData></VTKFile>'
    (tmp_path / "a.vti").write_bytes(text.encode(letters))
    assert rm.load(tmp_path / "a.vti").name == name
    (tmp_path / "a.vti").write_bytes(text.encode(letters).replace(letters.encode(), b"none-such"))
    refused(lambda: rm.load(tmp_path / "a.vti"), "says letters of 'none-such', which are not known; save it as UTF-8")
    (tmp_path / "a.vti").write_bytes(text.encode("utf-16"))
    assert rm.load(tmp_path / "a.vti").name == name
