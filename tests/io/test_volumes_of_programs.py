"""Laws of volumes that ITK and VTK read and wrote: they are what 3D Slicer and ParaView open."""

from __future__ import annotations

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import PLACES, volume

import raymarch as rm

sitk, vtk = (require_extra(name, "all") for name in ("SimpleITK", "vtk"))
require_extra("nibabel", "formats")
pytestmark = pytest.mark.extra
VALUES, TURNED = volume().values, PLACES["turned"]
RIGID = TURNED.copy()  # ITK takes no mirror images
RIGID[:3, 0] *= np.sign(np.linalg.det(TURNED[:3, :3]))
FLIP = np.diag([-1.0, -1.0, 1.0, 1.0])


def place_of(image):
    affine = np.eye(4)
    affine[:3, :3] = np.reshape(image.GetDirection(), (3, 3)) * image.GetSpacing()
    affine[:3, 3] = image.GetOrigin()
    return affine


@pytest.mark.parametrize("suffix", [".nii.gz", ".mha", ".mhd", ".nrrd"])
def test_itk_reads_ours_in_lps_and_we_read_itk_s(suffix, tmp_path):
    head = rm.ScalarVolume(VALUES, RIGID, world="LPS")
    rm.save(head, tmp_path / f"a{suffix}")
    image = sitk.ReadImage(str(tmp_path / f"a{suffix}"))
    np.testing.assert_array_equal(sitk.GetArrayFromImage(image).T, VALUES)
    np.testing.assert_allclose(place_of(image), RIGID, atol=1e-5)
    for compressed in (False, True):
        bare = sitk.GetImageFromArray(VALUES.T)
        bare.CopyInformation(image)
        sitk.WriteImage(bare, str(tmp_path / f"b{suffix}"), compressed)
        found = rm.load(tmp_path / f"b{suffix}")
        np.testing.assert_array_equal(found.values, VALUES)
        np.testing.assert_allclose(found.in_world("LPS").world_from_index, RIGID, atol=1e-5)


def test_itk_stacks_our_series(tmp_path):
    require_extra("pydicom", "formats")
    rm.save(rm.ScalarVolume(VALUES, RIGID, 2.0, -1024.0, world="LPS"), tmp_path / "a.dicom")
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(tmp_path / "a.dicom")))
    image = reader.Execute()
    np.testing.assert_array_equal(sitk.GetArrayFromImage(image).T, VALUES * 2 - 1024)
    np.testing.assert_allclose(place_of(image), RIGID, atol=1e-9)


def vtk_values(image):
    from vtk.util.numpy_support import vtk_to_numpy

    return vtk_to_numpy(image.GetPointData().GetArray(0)).reshape(image.GetDimensions()[::-1]).T


def vtk_place(image):
    affine = np.eye(4)
    turn = image.GetDirectionMatrix()
    affine[:3, :3] = [[turn.GetElement(i, j) for j in range(3)] for i in range(3)] * np.array(image.GetSpacing())
    affine[:3, 3] = image.GetOrigin()
    return affine


@pytest.mark.parametrize("kind", ["u1", "i2", "u4", "f4", "f8"])
def test_vtk_reads_our_vti_and_we_read_vtk_s(kind, tmp_path):
    rm.save(rm.ScalarVolume(VALUES.astype(kind), TURNED, name="head"), tmp_path / "a.vti")
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "a.vti"))
    reader.Update()
    image = reader.GetOutput()
    np.testing.assert_array_equal(vtk_values(image), VALUES)
    np.testing.assert_allclose(vtk_place(image), TURNED, atol=1e-12)
    for mode in range(3):  # text, binary, appended
        for packed, encoded in ((0, 0), (0, 1), (1, 0), (1, 1)):
            writer = vtk.vtkXMLImageDataWriter()
            writer.SetInputData(image)
            writer.SetFileName(str(tmp_path / "b.vti"))
            writer.SetDataMode(mode)
            writer.SetEncodeAppendedData(encoded)
            (writer.SetCompressorTypeToZLib if packed else writer.SetCompressorTypeToNone)()
            writer.Write()
            found = rm.load(tmp_path / "b.vti")
            np.testing.assert_array_equal(found.values, VALUES)
            np.testing.assert_allclose(found.world_from_index, TURNED, atol=1e-6)
            assert found.values.dtype == kind and found.name == "head"


def test_values_of_cells_and_one_of_several_arrays_of_vtk(tmp_path):
    from vtk.util.numpy_support import numpy_to_vtk

    image = vtk.vtkImageData()
    image.SetDimensions(6, 7, 8)
    image.SetSpacing(0.5, 1, 2)
    image.SetOrigin(10, 20, 30)
    for k, name in enumerate(("a", "b")):
        array = numpy_to_vtk(np.ascontiguousarray((k + 1) * VALUES.T).ravel(), deep=True)
        array.SetName(name)
        image.GetCellData().AddArray(array)
    writer = vtk.vtkXMLImageDataWriter()
    writer.SetInputData(image)
    writer.SetFileName(str(tmp_path / "a.vti"))
    writer.Write()
    with pytest.raises(rm.RaymarchError, match=r"has 2 channels \(0 a\[0\], 1 b\[0\]\); choose one by channel=0"):
        rm.load(tmp_path / "a.vti")
    found = rm.load(tmp_path / "a.vti", channel=1)
    np.testing.assert_array_equal(found.values, 2 * VALUES)
    np.testing.assert_allclose(found.origin, (10.25, 20.5, 31))
    assert found.name == "b" and found.spacing.tolist() == [0.5, 1, 2]


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.5, -1024.25)])
def test_vtk_reads_our_xdmf(slope, intercept, tmp_path):
    place = PLACES["upright"]
    rm.save(rm.ScalarVolume(VALUES, place, slope, intercept), tmp_path / "a.xdmf")
    reader = vtk.vtkXdmfReader()
    reader.SetFileName(str(tmp_path / "a.xdmf"))
    reader.Update()
    image = reader.GetOutputDataObject(0)
    np.testing.assert_array_equal(vtk_values(image), VALUES * slope + intercept)
    np.testing.assert_allclose(vtk_place(image), place)
