"""Laws of NumPy's files and arrays of every kind that NumPy writes: read, or refused with the call that mends them."""

from __future__ import annotations

import tracemalloc
import zipfile

import numpy as np
import pytest
from test_scalar_formats import refused

import raymarch as rm

VALUES = np.arange(9 * 7 * 5).reshape(9, 7, 5)
MASK = VALUES % 3 == 1


def arrays():
    """Booleans of one mask, however they lie."""
    yield MASK
    yield np.asfortranarray(MASK)
    yield np.repeat(MASK, 2, 0)[::2]
    yield MASK.tolist()
    yield np.ma.masked_array(MASK, False)


@pytest.mark.parametrize("mask", [*arrays()], ids=["C", "F", "strided", "list", "masked array"])
def test_a_boolean_array_is_zero_and_one(mask, tmp_path):
    found = rm.ScalarVolume(mask, np.diag([1, 2, 3, 1.0]))
    assert found.values.dtype == np.uint8 and found.range == (0, 1)
    np.testing.assert_array_equal(found.values, MASK)
    np.testing.assert_array_equal(rm.Volume.from_array(mask).sigma(), MASK)
    mask = np.asarray(mask)
    np.save(tmp_path / "a.npy", mask)
    np.savez(tmp_path / "a.npz", mask=mask)
    np.savez_compressed(tmp_path / "b.npz", values=mask, unit="")
    for name in ("a.npy", "a.npz", "b.npz"):
        read = rm.load(tmp_path / name)
        assert read.values.dtype == np.uint8 and rm.describe(tmp_path / name).dtype == "uint8"
        np.testing.assert_array_equal(read.values, MASK)
    part = rm.load(tmp_path / "a.npy", crop=((1, 8), (2, 6), (0, 4)), stride=2)
    np.testing.assert_array_equal(part.values, MASK[1:8:2, 2:6:2, 0:4:2])


def test_a_boolean_function_and_raw_booleans(tmp_path):
    ball = rm.Volume.from_function(lambda p: np.linalg.norm(p, axis=-1) < 0.8, shape=(8, 8, 8))
    assert set(np.unique(ball.sigma()).tolist()) == {0.0, 1.0}
    MASK.ravel(order="F").tofile(tmp_path / "a.raw")
    found = rm.load(tmp_path / "a.raw", shape=MASK.shape, dtype=bool)
    np.testing.assert_array_equal(found.values, MASK)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("kind", ["<i2", ">i2", ">f4", "<f8", ">u8", "i1", "<f2"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_member_is_read_in_its_order_of_axes_and_bytes(order, kind, save, tmp_path):
    values = np.array(VALUES % 100, dtype=kind, order=order)
    save(tmp_path / "a.npz", vol=values, affine=np.diag([1, 2, 3, 1]))
    np.save(tmp_path / "a.npy", values)
    found = rm.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.npy").values, values)
    assert found.spacing.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(rm.load(tmp_path / "a.npz", crop=((2, 5), (1, 7), (0, 5))).values, values[2:5, 1:7])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_takes_the_memory_of_its_values_once(save, tmp_path):
    values = np.zeros((128, 128, 256), np.float32)  # 16 MiB
    values[::3] = 1
    save(tmp_path / "a.npz", values=values)
    tracemalloc.start()
    try:
        found = rm.load(tmp_path / "a.npz")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found.values, values)
    assert peak < 1.4 * values.nbytes, f"{peak / values.nbytes:.2f} times"


def test_a_checksum_that_is_not_the_values_is_damage(tmp_path):
    np.savez(tmp_path / "a.npz", values=VALUES)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[500] ^= 255
    (tmp_path / "a.npz").write_bytes(data)
    refused(lambda: rm.load(tmp_path / "a.npz"), "a.npz: is no whole NPZ (Bad CRC-32")


@pytest.mark.parametrize("flag", [0x20, 0x40, 0x1])
def test_what_zipfile_does_not_know_is_no_fault_of_ours(flag, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("values.npy", "w") as stream:
        np.save(stream, VALUES)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[6] |= flag
    data[data.index(b"PK\1\2") + 8] |= flag
    (tmp_path / "a.npz").write_bytes(data)
    assert "fault" not in str(refused(lambda: rm.load(tmp_path / "a.npz"), "a.npz: "))


def test_places_in_an_archive_that_are_not_read_are_told(tmp_path, caplog):
    np.savez(tmp_path / "a.npz", vol=VALUES, origin=(1, 2, 3), voxel_size=(1, 1, 2), label="x")
    rm.load(tmp_path / "a.npz")
    assert "has origin, voxel_size, which raymarch does not read" in caplog.text and "assumed" in caplog.text


@pytest.mark.parametrize("name", ["affine", "spacing", "slope", "intercept"])
@pytest.mark.parametrize("value", ["text", np.zeros((5, 5)), np.array([{}], object), 1j])
def test_a_field_that_is_none_is_the_file_s(name, value, tmp_path):
    np.savez(tmp_path / "a.npz", values=VALUES, **{name: value})
    assert "fault" not in str(refused(lambda: rm.load(tmp_path / "a.npz"), "a.npz: "))
