"""Volume files altered, as an enemy, another program or a broken disk would."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np


def altered(change: Callable[[h5py.File], object]):
    """Set up: the volume's file changed by h5py, its digest as it was."""

    def set_up(folder: Path) -> None:
        with h5py.File(folder / "ball.h5", "r+") as file:
            change(file)

    return set_up


def remade(name: str, make: Callable[[h5py.File, np.ndarray], object]):
    """Set up: one dataset made anew from its values, its attributes kept."""

    def change(file: h5py.File) -> None:
        values, notes = file[name][()], dict(file[name].attrs)
        del file[name]
        make(file, values)
        if isinstance(file.get(name, getlink=True), h5py.HardLink):
            for key, value in notes.items():
                file[name].attrs[key] = value

    return altered(change)


def noted(owner: str, name: str, value):
    """Set up: one attribute as this; None takes it away."""

    def change(file: h5py.File) -> None:
        notes = file[owner].attrs
        if name in notes:
            del notes[name]
        if value is not None:
            notes[name] = value

    return altered(change)


def as_bytes(make: Callable[[bytes], bytes]):
    """Set up: the file's bytes as the function returns them."""

    def set_up(folder: Path) -> None:
        path = folder / "ball.h5"
        path.write_bytes(make(path.read_bytes()))

    return set_up


def instead(make: Callable[[Path], object]):
    """Set up: something else in place of the volume."""

    def set_up(folder: Path) -> None:
        (folder / "ball.h5").rename(folder / "kept.h5")
        make(folder / "ball.h5")

    return set_up


def external(file, values) -> None:
    file.create_dataset("density", values.shape, values.dtype, external=[("/etc/passwd", 0, values.nbytes)])


def virtual(file, values) -> None:
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource("kept.h5", "density", values.shape)
    file.create_virtual_dataset("density", layout)


def declared(file, values) -> None:
    file.create_dataset("density", (1 << 16, 1 << 16, 1 << 14), "f4", chunks=(64, 64, 64))


def bomb(file, values) -> None:
    file.create_dataset("density", data=np.zeros((400, 400, 400), "f4"), compression="gzip", chunks=(400, 400, 400))


def twice(file, values) -> None:
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk(values.shape)
    plan.set_deflate(9)
    plan.set_deflate(9)
    space, kind = h5py.h5s.create_simple(values.shape), h5py.h5t.IEEE_F32LE
    h5py.h5d.create(file.id, b"density", kind, space, plan).write(h5py.h5s.ALL, h5py.h5s.ALL, values)


def references(file, values) -> None:
    file.create_dataset("density", (2, 2, 2), h5py.ref_dtype)


def texts(file, values) -> None:
    file.create_dataset("density", (2, 2, 2), h5py.string_dtype())


def loop(file) -> None:
    file["loop"] = file["/"]


def foreign(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["temperature"] = np.zeros(10)


def old_layout(folder: Path) -> None:
    """The same content as an old library writes it, its digest kept."""
    with h5py.File(folder / "ball.h5") as old, h5py.File(folder / "new.h5", "w", libver="earliest") as new:
        for name in old:
            new.create_dataset(name, data=old[name][()])
            for key, value in old[name].attrs.items():
                new[name].attrs.create(key, value, dtype=old[name].attrs.get_id(key).dtype)
        for key, value in old.attrs.items():
            new.attrs.create(key, value, dtype=old.attrs.get_id(key).dtype)
    os.replace(folder / "new.h5", folder / "ball.h5")
