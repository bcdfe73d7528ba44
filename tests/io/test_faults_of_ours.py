"""Law: an exception that only a fault of raymarch's raises is never told as damage of the user's file."""

from __future__ import annotations

import zlib

import h5py
import numpy as np
import pytest

import raymarch as rm
from raymarch.errors import PROGRAM_FAULTS
from raymarch.io.files import strict
from raymarch.io.volumes.format import Format, read_volume, write_volume
from raymarch.io.volumes.hdf5 import scalar
from raymarch.io.volumes.scalar_format import explain_damage, scalar_format
from raymarch.io.volumes.xdmf import read

OURS = [
    KeyError("axes"), IndexError("list index out of range"), AttributeError("'NoneType' object has no attribute 'x'"),
    TypeError("unsupported operand"), NameError("name 'x' is not defined"), UnboundLocalError("x"), AssertionError(),
    NotImplementedError("later"), ZeroDivisionError("division by zero"), RecursionError("too deep"), StopIteration(),
    ImportError("cannot import name"), SystemError("returned NULL"),
    UnicodeEncodeError("ascii", "µ", 0, 1, "ordinal not in range"),
]  # fmt: skip
FILES = [
    ValueError("bad value"), OSError(5, "Input/output error"), EOFError("ended"), zlib.error("Error -3"),
    RuntimeError("Unable to read"), OverflowError("too large"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
]  # fmt: skip
FAULT = "is likely a fault of raymarch and not of the file; please report it with the file's header"


def raising(error):
    def function(*_, **__):
        raise error

    function.__module__ = "raymarch.io.volumes.nifti"
    return function


def name_of(error):
    return type(error).__name__


@pytest.mark.parametrize("error", OURS, ids=name_of)
def test_a_fault_of_ours_is_told_as_one(error, tmp_path):
    path = tmp_path / "a.nii"
    with pytest.raises(rm.RaymarchError) as told, explain_damage(path, "NIfTI"):
        raise error
    assert isinstance(error, PROGRAM_FAULTS)
    assert str(told.value).startswith(f"{path}: raymarch could not read this ({name_of(error)}")
    assert FAULT in str(told.value) and "no whole" not in str(told.value) and "export" not in str(told.value)


@pytest.mark.parametrize("error", FILES, ids=name_of)
def test_what_a_library_says_of_damage_stays_the_file_s(error, tmp_path):
    said = "a.nii: is no whole NIfTI .*; export it again"
    with pytest.raises(rm.RaymarchError, match=said), explain_damage(tmp_path / "a.nii", "NIfTI"):
        raise error


def test_no_memory_is_neither(tmp_path):
    said = "a.nii: there is no memory for its values; read a part of it by crop"
    with pytest.raises(rm.RaymarchError, match=said), explain_damage(tmp_path / "a.nii", "NIfTI"):
        raise MemoryError


@pytest.mark.parametrize("error", OURS, ids=name_of)
def test_a_fault_in_any_function_of_a_format_of_ours_is_ours_and_in_a_user_s_the_user_s(error, tmp_path):
    (path := tmp_path / "a.own").write_bytes(b"1")
    ours = scalar_format("own", (".own",), raising(error), raising(error), raising(error))
    with pytest.raises(rm.RaymarchError, match="could not read this") as told:
        read_volume(ours, path)
    assert FAULT in str(told.value)
    with pytest.raises(rm.RaymarchError, match="could not write this .* likely a fault of raymarch and not of the vol"):
        write_volume(ours, rm.ScalarVolume(np.ones((2, 2, 2))), tmp_path / "b.own")
    with pytest.raises(rm.RaymarchError, match="could not detect this"):
        rm.load(path, format=ours)
    theirs = Format("own", (".own",), lambda path: True, lambda path: raising(error)(), lambda volume, path: None)
    with pytest.raises(rm.RaymarchError, match=f"format 'own': read of .* raised {name_of(error)}.*; mend it or check"):
        rm.load(path, format=theirs)


@pytest.mark.parametrize("error", OURS[:4], ids=name_of)
def test_a_fault_of_ours_in_an_open_hdf5_file_is_ours_and_h5py_s_words_are_of_the_file(error, tmp_path, monkeypatch):
    rm.save(rm.ScalarVolume(np.arange(24.0).reshape(2, 3, 4)), path := tmp_path / "a.h5")
    monkeypatch.setattr(scalar, "_source", raising(error))
    for function in (rm.load, rm.describe):
        with pytest.raises(rm.RaymarchError, match="a.h5: raymarch could not read this") as told:
            function(path)
        assert FAULT in str(told.value)
    monkeypatch.setattr(scalar, "_source", lambda file, *_: file["no such dataset"])
    with pytest.raises(rm.RaymarchError, match="a.h5: is damaged .*; restore it from a copy"):  # KeyError of h5py
        rm.load(path)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["a"] = 1
    (tmp_path / "b.xdmf").write_text('<Xdmf><DataItem Format="HDF">b.h5:/values</DataItem></Xdmf>')
    with pytest.raises(rm.RaymarchError, match="b.h5: is HDF5"):
        read(tmp_path / "b.xdmf")


@pytest.mark.parametrize("error", OURS[:4], ids=name_of)
def test_a_fault_of_ours_in_numpy_s_tables_is_ours(error, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.arange(3.0))
    np.savez(tmp_path / "a.npz", pose_0=np.eye(2))
    monkeypatch.setattr(strict.np, "frombuffer", raising(error))
    for function in (
        lambda: strict.read_npy(tmp_path / "a.npy"),
        lambda: strict.read_npz(tmp_path / "a.npz", "p"),
    ):
        with pytest.raises(rm.RaymarchError, match="could not read this") as told:
            function()
        assert FAULT in str(told.value)
