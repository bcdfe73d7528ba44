"""Laws of MRC maps with every optional part of the format: read as mrcfile reads them, or told with a cure."""

from __future__ import annotations

import bz2
import gzip
import itertools
import struct

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import refused

import raymarch as rm

mrcfile = require_extra("mrcfile", "formats")
pytestmark = pytest.mark.extra
VALUES = np.random.default_rng(0).integers(0, 99, (9, 7, 5))
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}


def map_of(path, values=VALUES, kind="f4", **header):
    """A map by mrcfile, with numbers in its header."""
    with mrcfile.new(path, np.ascontiguousarray(np.asarray(values).T, kind), overwrite=True) as file:
        file.set_volume()
        file.voxel_size = (1, 2, 3)
        for key, value in header.items():
            file.header[key] = value
    return path


def put(path, at, form, *numbers):
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, at, *numbers)
    path.write_bytes(data)


def require_read(path, values=VALUES, spacing=(1, 2, 3), **how):
    found = rm.load(path, **how)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(found.spacing, spacing)
    assert rm.describe(path, **how).shape == values.shape and found.length_unit == "angstrom"
    part = rm.load(path, crop=tuple((1, n - 1) for n in found.shape), **how)
    np.testing.assert_array_equal(part.values, np.asarray(values)[1:-1, 1:-1, 1:-1])
    return found


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("suffix", [".mrc", ".map", ".ccp4", ".rec", ""])
def test_a_map_is_read_packed_or_not_whatever_it_is_called(packing, suffix, tmp_path):
    data = map_of(tmp_path / "whole.mrc").read_bytes()
    (tmp_path / f"emd_1{suffix}{packing}").write_bytes(PACKED[packing](data))
    require_read(tmp_path / f"emd_1{suffix}{packing}")


@pytest.mark.parametrize("suffix", [".mrc.gz", ".map.gz", ".ccp4.gz"])
def test_a_packed_map_is_written(suffix, tmp_path):
    rm.save(rm.ScalarVolume(VALUES.astype("f4"), np.diag([1, 2, 3, 1.0]), name="頭部"), tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes()[:2] == b"\x1f\x8b"
    assert require_read(tmp_path / f"a{suffix}").name == "頭部"
    np.testing.assert_array_equal(mrcfile.read(tmp_path / f"a{suffix}").T, VALUES)


@pytest.mark.parametrize("packing", [".gz", ".bz2"])
@pytest.mark.parametrize("keep", [100, 400, -20])
def test_a_packed_map_that_is_cut_is_damage(packing, keep, tmp_path):
    data = PACKED[packing](map_of(tmp_path / "whole.mrc").read_bytes())
    (tmp_path / f"a.map{packing}").write_bytes(data[:keep])
    assert "fault" not in refused(lambda: rm.load(tmp_path / f"a.map{packing}"), f"a.map{packing}: ")


@pytest.mark.parametrize("kind", ["i1", "i2", "f4", "u2", "f2"])
def test_every_mode_of_real_numbers_is_read(kind, tmp_path):
    assert require_read(map_of(tmp_path / "a.mrc", kind=kind)).values.dtype == kind


def test_modes_of_other_numbers_are_told_with_a_cure(tmp_path):
    map_of(tmp_path / "a.mrc", VALUES + 1j, "c8")
    refused(lambda: rm.load(tmp_path / "a.mrc"), "holds complex numbers (mode 4)", "np.abs(mrcfile.read('a.mrc').T)")
    for mode, said in (
        (3, "holds complex numbers (mode 3)"),
        (101, "newstack -mode 0"),
        (7, "has mode 7, want one of 0,"),
    ):
        put(map_of(tmp_path / "b.mrc"), 12, "<i", mode)
        refused(lambda: rm.load(tmp_path / "b.mrc"), said)


@pytest.mark.parametrize(
    "kind", [b"CCP4", b"FEI1", b"FEI2", b"SERI", b"AGAR", b"MRCO", b"HDF5", b"\0\0\0\0", b"\xff\xfe12"]
)
@pytest.mark.parametrize("size", [80, 768, 1, 8192])
def test_an_extended_header_of_any_kind_is_passed_over(kind, size, tmp_path, caplog):
    data = map_of(tmp_path / "a.mrc").read_bytes()
    (tmp_path / "a.mrc").write_bytes(data[:1024] + b"x" * size + data[1024:])
    put(tmp_path / "a.mrc", 92, "<i", size)
    put(tmp_path / "a.mrc", 104, "4s", kind)
    require_read(tmp_path / "a.mrc")
    assert ("has an extended header" in caplog.text) == (kind not in (b"CCP4", b"MRCO", b"\0\0\0\0"))


@pytest.mark.parametrize("axes", [*itertools.permutations((1, 2, 3))])
@pytest.mark.parametrize("packing", PACKED)
def test_axes_in_any_order_and_a_first_index_are_read(axes, packing, tmp_path):
    data = np.transpose(VALUES, [axis - 1 for axis in axes])
    counts = dict(zip(("mx", "my", "mz"), VALUES.shape, strict=True))
    header = (
        dict(zip(("mapc", "mapr", "maps"), axes, strict=True)) | {"nxstart": 1, "nystart": 2, "nzstart": 3} | counts
    )
    map_of(tmp_path / "a.mrc", data, **header, cella=(9, 14, 15))
    (tmp_path / f"b.map{packing}").write_bytes(PACKED[packing]((tmp_path / "a.mrc").read_bytes()))
    found = require_read(tmp_path / f"b.map{packing}")
    start = np.zeros(3)
    start[[axis - 1 for axis in axes]] = (1, 2, 3)
    np.testing.assert_allclose(found.origin, start * (1, 2, 3))


def test_an_origin_and_a_first_index_and_what_imod_says_are_told(tmp_path, caplog):
    path = map_of(tmp_path / "a.mrc", origin=(4, 5, 6), nxstart=7)
    assert require_read(path).origin.tolist() == [4, 5, 6]
    assert "says an origin and a first index (7, 0, 0); its origin is taken alone" in caplog.text
    put(path, 152, "<2i", 1146047817, 1)
    put(path, 184, "<3f", 0, 12.5, 0)
    require_read(path)
    assert "may have turned the sign of its origin" in caplog.text and "is tilted by 0, 12.5, 0 degrees" in caplog.text
    caplog.clear()
    put(path, 152, "<2i", 1146047817, 5)
    put(path, 96, "<i", 1)
    require_read(path)
    assert "sign of its origin" not in caplog.text and "skewed (LSKFLG)" in caplog.text


@pytest.mark.parametrize("packing", PACKED)
def test_one_of_a_stack_of_volumes_is_chosen(packing, tmp_path):
    several = np.stack([VALUES, VALUES + 1, VALUES + 2]).astype("f4")
    with mrcfile.new(tmp_path / "a.mrc") as file:
        file.set_data(np.ascontiguousarray(several.transpose(0, 3, 2, 1)))
        assert file.is_volume_stack()
        file.voxel_size = (1, 2, 3)
    (tmp_path / f"b.mrc{packing}").write_bytes(PACKED[packing]((tmp_path / "a.mrc").read_bytes()))
    path = tmp_path / f"b.mrc{packing}"
    refused(lambda: rm.load(path), "has 3 points in time along axis 3", "choose one by time=0")
    require_read(path, VALUES + 2, time=2)
    put(tmp_path / "a.mrc", 36, "<i", 4)
    refused(lambda: rm.load(tmp_path / "a.mrc"), "is a stack of volumes of 4 sections, but has 15")


@pytest.mark.parametrize(("text", "letters"), [("Schädel", "latin-1"), ("頭部", "utf-8")])
def test_a_label_in_other_letters_is_read(text, letters, tmp_path):
    path = map_of(tmp_path / "a.mrc")
    put(path, 220, "<i80s", 1, text.encode(letters))
    assert require_read(path).name == text


def test_a_unit_and_sides_that_a_map_cannot_hold_are_said_to_stay_behind(tmp_path, caplog):
    rm.save(rm.ScalarVolume(VALUES.astype("f4"), unit="Gy", world="LPS"), tmp_path / "a.mrc")
    assert "MRC holds no unit of values (Gy) and no names of the world's sides (LPS), which stays behind" in caplog.text
