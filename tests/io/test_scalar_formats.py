"""Laws of scalar volumes' files: numbers, types and places come back, and the format's own library reads the same."""

from __future__ import annotations

import numpy as np
import pytest

import raymarch as rm
from raymarch.io.volumes.formats import FORMATS

RNG = np.random.default_rng(7)
SHAPE = (5, 6, 7)
SHEARED = np.eye(4)
SHEARED[:3, :3] = RNG.normal(size=(3, 3)) * (0.5, 1, 2)
SHEARED[:3, 3] = (10, -20, 3)
BY_NAME = {one.name: one for one in FORMATS}


def values(kind="<i2", shape=SHAPE):
    """Values of which no two are alike along any axis."""
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 251).astype(kind)


def volume(kind="<i2", affine=SHEARED, **more):
    return rm.ScalarVolume(values(kind), affine, **{"unit": "HU", "length_unit": "mm", "name": "head", **more})


def require_alike(found, wanted):
    """The same numbers at the same places."""
    np.testing.assert_allclose(found.world_from_index, wanted.world_from_index, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.numbers(), wanted.numbers(), rtol=1e-6, atol=0)
    assert (found.unit, found.length_unit, found.world, found.name) == (
        wanted.unit, wanted.length_unit, wanted.world, wanted.name,
    )  # fmt: skip


KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["HDF5", "NRRD"])
def test_what_is_written_comes_back(name, kind, tmp_path):
    path, head = tmp_path / f"a{BY_NAME[name].suffixes[0]}", volume(kind, world="LPS")
    rm.save(head, path)
    found = rm.load(path)
    require_alike(found, head)
    assert found.values.dtype == head.values.dtype
    said = rm.describe(path)
    assert (said.shape, said.dtype, said.sides) == (SHAPE, np.dtype(kind).name, head.sides)
    assert said.bytes_in_memory == head.nbytes and said.bytes_on_disk == path.stat().st_size


def test_slope_and_intercept_come_back_in_hdf5_and_are_applied_where_a_format_has_none(tmp_path):
    head = volume("u2", slope=1.0, intercept=-1024.0, world="RAS")
    for suffix, kind in ((".h5", "u2"), (".nrrd", "i2")):
        rm.save(head, tmp_path / f"a{suffix}")
        found = rm.load(tmp_path / f"a{suffix}")
        require_alike(found, head)
        assert found.values.dtype == kind


def test_a_part_of_a_file_is_that_of_the_volume(tmp_path):
    head = volume(world="RAS")
    for suffix in (".h5", ".nrrd"):
        rm.save(head, tmp_path / f"a{suffix}")
        part = rm.load(tmp_path / f"a{suffix}", crop=((1, 5), (0, 6), (2, 7)), stride=(1, 2, 1))
        np.testing.assert_array_equal(part.numbers(), head.numbers()[1:5, ::2, 2:7])
        np.testing.assert_allclose(part.world_from_index[:3, 3], (SHEARED @ [1, 0, 2, 1])[:3])


def test_nrrd_is_read_by_its_library(tmp_path):
    nrrd = pytest.importorskip("nrrd")
    head = volume(world="LPS")
    rm.save(head, tmp_path / "a.nrrd")
    data, header = nrrd.read(str(tmp_path / "a.nrrd"))
    np.testing.assert_array_equal(data, head.values)
    np.testing.assert_allclose(header["space directions"], SHEARED[:3, :3].T)
    np.testing.assert_allclose(header["space origin"], SHEARED[:3, 3])
    assert header["space"] == "left-posterior-superior" and header["space units"] == ["mm"] * 3


def test_a_fit_is_saved_as_its_sigma(tmp_path, caplog):
    ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(6, 7, 8))
    rm.save(ball, tmp_path / "a.nrrd")
    found = rm.load(tmp_path / "a.nrrd")
    np.testing.assert_array_equal(found.numbers(), ball.sigma())
    np.testing.assert_allclose(found.world_from_index, ball.world_from_index)
    assert "the file gets sigma of the volume on its grid" in caplog.text
