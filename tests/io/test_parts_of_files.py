"""Law of parts of files: what is read of a box of samples, or of a lattice, is what is read of all and then cut out."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.io.volumes.hdf5 import schema
from raymarch.io.volumes.parts_of_file import open_in_parts
from raymarch.rendering.default_look import default_look, farthest_seen_points

BOXES = [((0, 0, 0), (9, 12, 7)), ((2, 3, 1), (4, 9, 6)), ((7, 10, 5), (9, 12, 7))]
WRITERS = {
    "npy": lambda scan, path: np.save(path, scan.values),
    "h5": rm.save,
    "mrc": rm.save,
    "zarr": rm.save,
}


def scan(**about) -> rm.ScalarVolume:
    values = np.random.default_rng(1).integers(-900, 2000, (9, 12, 7)).astype(np.int16)
    return rm.ScalarVolume(values, np.diag([0.5, 0.5, 2.0, 1.0]), **about)


LIBRARIES = {"zarr": "zarr", "mrc": "mrcfile", "scan.nii.gz": "nibabel"}  # of what a case is written by


def with_extras(cases):
    """Cases, those that need an extra marked so."""
    return [pytest.param(case, marks=pytest.mark.extra if case in LIBRARIES else ()) for case in cases]


@pytest.mark.parametrize("kind", with_extras(WRITERS))
def test_boxes_and_lattices_are_those_of_the_whole(kind, tmp_path):
    if kind in LIBRARIES:
        require_extra(LIBRARIES[kind], "formats")
    path = tmp_path / f"scan.{kind}"
    WRITERS[kind](scan(), path)
    whole, parts = rm.load(path), open_in_parts(path)
    numbers = whole.numbers()
    for first, last in BOXES:
        cut = numbers[tuple(slice(a, b) for a, b in zip(first, last, strict=True))]
        assert (parts.samples.values(first, last, np.float32) == cut).all()
    lattice = np.ix_([0, 3, 6, 8], [0, 5, 10, 11], [2, 3, 4])
    assert (parts.at(lattice)[0] == numbers[lattice]).all()
    assert parts.shape == whole.shape and (parts.world_from_index == whole.world_from_index).all()
    assert [end for end, _ in parts.samples.ends(0.0)] == list(whole.range)


def test_slope_and_look_are_those_of_the_whole(tmp_path):
    x = np.linspace(-1, 1, 30)
    ball = np.exp(-4 * (x[:, None, None] ** 2 + x[:, None] ** 2 + x**2))
    path = tmp_path / "ct.h5"
    about = {"slope": 2.0, "intercept": -1000.0, "unit": "HU", "world": "LPS", "length_unit": "mm"}
    rm.save(rm.ScalarVolume((700 * ball).astype(np.int16), np.diag([1.0, 1.0, 1.5, 1.0]), **about), path)
    whole, parts = rm.load(path), open_in_parts(path)
    assert (parts.samples.values((0, 0, 0), parts.shape, np.float32) == whole.numbers()).all()
    looks = default_look(whole), default_look(parts)
    assert looks[0].table == looks[1].table and looks[0].front == looks[1].front and looks[0].kind == looks[1].kind
    points = [farthest_seen_points(one, looks[0].march) for one in (whole.as_volume(), parts)]
    assert (points[0] == points[1]).all()
    assert (parts.unit, parts.world, parts.length_unit) == ("HU", "LPS", "mm")


def test_a_lattice_is_read_once(tmp_path):
    np.save(tmp_path / "scan.npy", scan().values)
    parts = open_in_parts(tmp_path / "scan.npy")
    reads, read = [], parts.samples.read
    object.__setattr__(parts.samples, "read", lambda slices: (reads.append(slices), read(slices))[1])
    for _ in range(3):
        parts.at(np.ix_(range(0, 9, 2), range(0, 12, 3), range(7)))
    assert len(reads) == 1


def a_fit(path, sparse=False, **how):
    rng = np.random.default_rng(5)
    density = np.where(np.arange(19)[:, None, None] % 17 < 5, rng.normal(size=(19, 10, 17)), -99).astype(np.float32)
    features = rng.normal(size=(19, 10, 17, 12)).astype(np.float32)
    volume = rm.Volume(density, features, np.diag([0.1, 0.1, 0.2, 1]), rm.Activation("softplus"), **how)
    volume = volume.sparse() if sparse else volume
    rm.save(volume, path)
    return volume


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fitted_volume_is_read_in_parts_as_it_is(sparse, tmp_path):
    whole = a_fit(tmp_path / "fit.h5", sparse, background=(0.1, 0.2, 0.3), provenance={"steps": 3})
    parts = open_in_parts(tmp_path / "fit.h5")
    for name in ("shape", "activation", "background", "degree", "channels", "provenance"):
        assert getattr(parts, name) == getattr(whole, name)
    assert parts.samples.nbytes == 4 * 13 * whole.density.size
    boxes = [((0, 0, 0), whole.shape), ((3, 2, 7), (11, 9, 17)), ((16, 8, 15), (18, 10, 17))]
    for first, last in boxes:
        box = tuple(slice(a, b) for a, b in zip(first, last, strict=True))
        np.testing.assert_array_equal(parts.samples.values(first, last, np.float32), whole.density[box])
        np.testing.assert_array_equal(parts.samples.features_of(first, last, np.float32), whole.features[box])
    lattice = np.ix_([0, 4, 9, 18], [1, 2, 9], [0, 16])
    for mine, its in zip(parts.at(lattice), whole.at(lattice), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(("number", "told"), [(0, "has number 0 twice"), (99, "table is 99 at")])
def test_a_table_that_places_a_brick_wrongly_is_told(number, told, tmp_path):
    a_fit(tmp_path / "fit.h5", True)
    with h5py.File(tmp_path / "fit.h5", "r+") as file:
        table = file[schema.TABLE][()]
        table[tuple(np.argwhere(table > 0)[-1])] = number
        file[schema.TABLE][...] = table
    with pytest.raises(rm.RaymarchError, match=f"fit.h5: .*{told}"):
        open_in_parts(tmp_path / "fit.h5")


def in_boxes(path):
    a = np.ones((8, 5, 6), np.float32)
    rm.save(rm.Volume(a, np.ones((8, 5, 6, 3), np.float32), np.eye(4), boxes=2), path)


def of_channels(path):
    a = np.ones((4, 5, 6), np.float32)
    rm.save(rm.Volume(a, np.ones((4, 5, 6, 2), np.float32), np.eye(4), channels=("near", "far")), path)


def test_a_fitted_volume_has_no_channel_to_choose(tmp_path):
    a_fit(tmp_path / "fit.h5")
    for name in ("channel", "time", "level"):
        with pytest.raises(rm.RaymarchError, match=f"is a fitted volume, which has no {name} to choose"):
            open_in_parts(tmp_path / "fit.h5", **{name: 1})


def packed(path):
    rm.save(scan(), path)


REFUSED = {
    "boxes.h5": (in_boxes, "lies in nested boxes, so it is marched from memory alone; leave memory out"),
    "channels.h5": (of_channels, "has other channels than red, green and blue, so it is marched from memory alone"),
    "scan.npz": (packed, "NPZ is not read in parts, want .zarr"),
    "scan.nii.gz": (packed, "its values are packed in one piece, want .zarr"),
}


@pytest.mark.parametrize("name", with_extras(REFUSED))
def test_files_that_are_not_read_in_parts_are_refused_with_those_that_are(name, tmp_path):
    if name in LIBRARIES:
        require_extra(LIBRARIES[name], "formats")
    make, said = REFUSED[name]
    make(tmp_path / name)
    with pytest.raises(rm.RaymarchError, match=said) as refused:
        open_in_parts(tmp_path / name)
    assert str(refused.value).startswith(str(tmp_path / name)) and "\n" not in str(refused.value)


def test_a_place_that_is_not_there_and_missing_values_are_told(tmp_path):
    np.save(tmp_path / "scan.npy", np.where(scan().values > 1990, np.nan, 1.0))
    with pytest.raises(rm.RaymarchError, match="level is 2, but there is only one"):
        open_in_parts(tmp_path / "scan.npy", level=2)
    with pytest.raises(rm.RaymarchError, match="NaN or infinite"):
        open_in_parts(tmp_path / "scan.npy").samples.ends(0.0)


def test_what_asks_for_all_values_says_what_to_do(tmp_path):
    np.save(tmp_path / "scan.npy", scan().values)
    parts = open_in_parts(tmp_path / "scan.npy")
    for ask in (lambda: parts.density, lambda: parts.features, lambda: parts.sigma(), lambda: rm.render(parts, EYE)):
        with pytest.raises(rm.RaymarchError, match=r"rm.load reads all of it, rm.OutOfCoreRenderer"):
            ask()


EYE = rm.Camera.look_at((1, -9, 1), width=8, height=8)
