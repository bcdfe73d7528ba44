"""Files of sparse volumes: tables with holes, overlaps and numbers out of range, bricks beyond the shape, bombs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from hostile_cases.case import Area, Case

area = Area("sparse")
EDGE, SHAPE = 8, (16, 16, 16)  # of the volume that lies in each case's folder


def signed(file: h5py.File) -> None:
    """The digest of what the file holds, as docs/hdf5.md says."""
    sha = hashlib.sha256()
    for name in sorted(file):
        array = np.asarray(file[name][()])
        sha.update(f"dataset {name} {array.dtype.str} {list(array.shape)}\n".encode() + array.tobytes())
    for owner in ["/", *sorted(file)]:
        for name in sorted(set(file[owner].attrs) - {"digest"}):
            value = np.asarray(file[owner].attrs[name])
            sha.update(f"attribute {owner} {name} {value.dtype.str} {list(value.shape)}\n".encode() + value.tobytes())
    file.attrs["digest"] = np.bytes_(sha.hexdigest().encode())


def in_bricks(change: Callable[[h5py.File], object], sign: bool = True):
    """Set up: the volume's file with its samples in eight bricks, changed, its digest right again if it is to be."""

    def set_up(folder: Path) -> None:
        with h5py.File(folder / "ball.h5", "r+") as file:
            for name in ("density", "features"):
                values, notes = file[name][()], dict(file[name].attrs)
                rest = values.shape[3:]
                cut = values.reshape(2, EDGE, 2, EDGE, 2, EDGE, *rest).swapaxes(1, 2).swapaxes(3, 4).swapaxes(2, 3)
                del file[name]
                file.create_dataset(name, data=cut.reshape(8, EDGE, EDGE, EDGE, *rest))
                for key, value in notes.items():
                    file[name].attrs[key] = value
                file[name].attrs["axes"] = np.bytes_(b"brick, " + notes["axes"])
            file.create_dataset("table", data=np.arange(8, dtype="<i4").reshape(2, 2, 2))
            file["table"].attrs["axes"], file["table"].attrs["edge"] = np.bytes_(b"x, y, z"), EDGE
            file["table"].attrs["shape"] = SHAPE
            file.attrs["format_version"] = 4
            change(file)
            if sign:
                signed(file)

    return set_up


def table(*numbers):
    """The table's eight numbers."""
    return lambda file: file["table"].__setitem__(..., np.array(numbers).reshape(2, 2, 2))


def remade(name: str, make: Callable[[h5py.File, np.ndarray], object]):
    """One dataset made anew from its values, its attributes kept."""

    def change(file: h5py.File) -> None:
        values, notes = file[name][()], dict(file[name].attrs)
        del file[name]
        make(file, values)
        for key, value in notes.items():
            file[name].attrs[key] = value

    return change


def as_data(name: str, to: Callable[[np.ndarray], np.ndarray]):
    """One dataset with its values as the function returns them."""
    return remade(name, lambda file, values: file.create_dataset(name, data=to(values)))


def noted(name: str, value):
    """One attribute of the table as this; None takes it away."""

    def change(file: h5py.File) -> None:
        del file["table"].attrs[name]
        if value is not None:
            file["table"].attrs[name] = value

    return change


def vast(file: h5py.File) -> None:
    """A volume of 2,048 samples a side with eight bricks in a corner."""
    numbers = np.full((256, 256, 256), -1, "<i4")
    numbers[:2, :2, :2] = file["table"][()]
    remade("table", lambda f, _: f.create_dataset("table", data=numbers, chunks=(16,) * 3, compression=1))(file)
    file["table"].attrs["shape"] = (2048, 2048, 2048)


RENDER = "render ball.h5 --orbit 1 --size 8 --out pics"


def refused(name: str, change, says: str, *, sign: bool = True, **more) -> Case:
    """A sparse volume that must not be read."""
    return area.refused(name, RENDER, says, in_bricks(change, sign), **{"seconds": 4.0, **more})


def info_refused(name: str, change, says: str) -> Case:
    """A sparse volume that must not be described either."""
    return area.refused(f"info: {name}", "info ball.h5", says, in_bricks(change, sign=False), seconds=4.0)


TABLES = [
    area.works("eight bricks", RENDER, in_bricks(lambda f: None), makes=("pics*",), changes=("ball.h5",)),
    area.works("info: eight bricks", "info ball.h5", in_bricks(lambda f: None), changes=("ball.h5",)),
    area.works("eight bricks in another order", RENDER, in_bricks(table(7, 6, 5, 4, 3, 2, 1, 0)), makes=("pics*",),
               changes=("ball.h5",)),
    refused("a hole: a brick that lies nowhere", table(0, 1, 2, -1, 4, 5, 6, 7), "table lacks number 3"),
    refused("an overlap: a brick at two places", table(0, 1, 2, 2, 4, 5, 6, 7), r"table has number 2 twice, at \("),
    refused("a number out of range", table(0, 1, 2, 8, 4, 5, 6, 7), r"table is 8 at \("),
    refused("a number far out of range", table(0, 1, 2, 2**31 - 1, 4, 5, 6, 7), "table is"),
    refused("a number below -1", table(0, 1, 2, -2, 4, 5, 6, 7), "table is"),
    refused("no place for any brick", table(*[-1] * 8), "table lacks number 0"),
    refused("a table altered, the digest as it was", table(1, 0, 2, 3, 4, 5, 6, 7), "digest", sign=False),
    refused("NaN in a brick", lambda f: f["density"].__setitem__((1, 2, 3, 4), np.nan), r"density is nan at \(1, 2"),
    refused("infinity in a brick", lambda f: f["features"].__setitem__((1, 2, 3, 4, 0), np.inf), "features are inf"),
    refused("1e38 in a brick", lambda f: f["density"].__setitem__((1, 2, 3, 4), 1e38), "density is"),
    refused("one brick fewer", lambda f: [as_data(n, lambda v: v[:7])(f) for n in ("density", "features")],
            "table is 7 at"),
    area.either("2,048 samples a side, of which 8 bricks are there", RENDER, "bytes", in_bricks(vast),
                makes=("pics*",), changes=("ball.h5",), seconds=60.0, memory=3000.0),
]  # fmt: skip

LAYOUTS = [
    info_refused(name, change, says)
    for name, change, says in [
        ("one density fewer", as_data("density", lambda v: v[:7]), r"features are float32 \(8, 8, 8, 8, 3\)"),
        (
            "more bricks than places",
            lambda f: [as_data(n, lambda v: np.concatenate([v, v]))(f) for n in ("density", "features")],
            "density holds 16 bricks",
        ),
        ("bricks of 4 samples a side", as_data("density", lambda v: v[:, :4, :4, :4]), "density is float32"),
        ("dense arrays beside a table", as_data("density", lambda v: v.reshape(SHAPE)), "density is float32"),
        ("bricks of half precision", as_data("density", lambda v: v.astype("f2")), "density is float16"),
        ("features of 5 channels", as_data("features", lambda v: np.zeros((*v.shape[:4], 5), "f4")), "features are"),
        ("a table of int64", as_data("table", lambda v: v.astype("i8")), "table is int64"),
        ("a table of fractions", as_data("table", lambda v: v.astype("f4")), "table is float32"),
        ("a flat table", as_data("table", lambda v: v.ravel()), "table is int32"),
        ("a table of no places", as_data("table", lambda v: v[:0]), "table is int32"),
        ("bricks beyond the shape", noted("shape", (16, 8, 16)), r"table has shape \(2, 2, 2\), want \(2, 1, 2\)"),
        ("bricks short of the shape", noted("shape", (16, 17, 16)), r"table has shape \(2, 2, 2\), want \(2, 3, 2\)"),
        ("a shape of 10^12", noted("shape", (10**12,) * 3), "shape of table"),
        ("a shape of NaN", noted("shape", (np.nan,) * 3), "shape of table"),
        ("a shape of two", noted("shape", (16, 16)), "shape of table"),
        ("no shape", noted("shape", None), "table lacks the attribute shape"),
        ("bricks of 16 samples a side", noted("edge", 16), "edge of table is 16"),
        ("no table", lambda f: f.__delitem__("table"), "lacks table"),
        (
            "a table linked out",
            lambda f: (f.__delitem__("table"), f.__setitem__("table", h5py.ExternalLink("a", "/b"))),
            "table is a ExternalLink",
        ),
        (
            "2 TB of table declared",
            remade("table", lambda f, v: f.create_dataset("table", (1 << 13,) * 3, "<i4", chunks=(64,) * 3)),
            "table declares 2199023255552 bytes",
        ),
        (
            "70 TB of bricks declared",
            remade(
                "density", lambda f, v: f.create_dataset("density", (1 << 35, 8, 8, 8), "<f4", chunks=(64, 8, 8, 8))
            ),
            "density declares 70368744177664 bytes",
        ),
        (
            "256 MB of zeros packed in one chunk",
            remade(
                "table",
                lambda f, v: f.create_dataset(
                    "table", data=np.zeros((400,) * 3, "<i4"), chunks=(400,) * 3, compression=9
                ),
            ),
            "table declares 256000000",
        ),
    ]
]

CASES = [*TABLES, *LAYOUTS]
