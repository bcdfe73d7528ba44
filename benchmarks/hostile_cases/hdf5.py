"""Files that call themselves HDF5: bombs, links out, other programs' files, damage."""

from __future__ import annotations

import os
import tarfile

import h5py
import numpy as np
from PIL import Image

from hostile_cases.case import Area, Case
from hostile_cases.hurt_files import (
    altered,
    as_bytes,
    bomb,
    declared,
    external,
    foreign,
    instead,
    loop,
    noted,
    old_layout,
    references,
    remade,
    texts,
    twice,
    virtual,
)

area = Area("hdf5")
RENDER = "render ball.h5 --orbit 1 --size 8 --out pics"
NAMES = ("density", "features", "world_from_index", "background", "provenance")


def refused(name: str, set_up, says: str = "ball.h5", **more) -> Case:
    """A volume that must not be read."""
    return area.refused(name, RENDER, says, set_up, **{"seconds": 4.0, **more})


FLIPS = """
import random
raw = open("ball.h5", "rb").read()
names = ("density", "features", "world_from_index")
for n in range(50):
    flipped = bytearray(raw)
    bit = random.Random(n).randrange(8 * len(raw))
    flipped[bit // 8] ^= 1 << bit % 8
    open("hurt.h5", "wb").write(flipped)
    try:
        read = rm.load("hurt.h5")
    except rm.RaymarchError as error:
        assert "\\n" not in str(error) and "hurt.h5" in str(error), str(error)
        continue
    assert False, f"bit {bit} went unseen"
"""
CUTS = """
raw = open("ball.h5", "rb").read()
for n in range(50):
    open("hurt.h5", "wb").write(raw[: n * len(raw) // 50])
    try:
        rm.load("hurt.h5")
    except rm.RaymarchError as error:
        assert "\\n" not in str(error) and "hurt.h5" in str(error), str(error)
        continue
    assert False, f"cut at {n} of 50 went unseen"
"""

FILES = [
    area.refused("no such file", "render nix.h5 --orbit 1 --out pics", "nix.h5: no such file"),
    area.refused("no letters", ("render", "", "--orbit", "1", "--out", "pics"), "file|folder"),
    area.refused("a folder", "render set --orbit 1 --out pics", "set: is a folder"),
    refused("an empty file", as_bytes(lambda raw: b""), "ball.h5: is empty"),
    refused("a text", as_bytes(lambda raw: b"hello\n"), "not HDF5"),
    refused("a picture", instead(lambda p: Image.new("RGB", (4, 4)).save(p, "PNG")), "not HDF5"),
    refused("NumPy's .npy", instead(lambda p: np.save(p.open("wb"), np.zeros(3))), "not HDF5"),
    refused("a tar of it", instead(lambda p: tarfile.open(p, "w").close()), "not HDF5"),
    refused("a pipe that nobody fills", instead(lambda p: os.mkfifo(p)), "pipe", needs=("posix",)),
    refused("a link to /dev/zero", instead(lambda p: p.symlink_to("/dev/zero")), "device", needs=("posix",)),
    refused("a link that leads nowhere", instead(lambda p: p.symlink_to("nix")), "no such file", needs=("posix",)),
    refused("a link to itself", instead(lambda p: p.symlink_to("ball.h5")), "ball.h5", needs=("posix",)),
    area.works("a link to the file", RENDER, instead(lambda p: p.symlink_to("kept.h5")), needs=("posix",),
               makes=("pics*",)),
    refused("cut in half", as_bytes(lambda raw: raw[: len(raw) // 2])),
    refused("zeros from the middle on", as_bytes(lambda raw: raw[: len(raw) // 2] + bytes(len(raw) // 2))),
    area.either("a text after its end", RENDER, "ball.h5", as_bytes(lambda raw: raw + b"more"), makes=("pics*",)),
    area.either("a text before its beginning", RENDER, "ball.h5", as_bytes(lambda raw: b"#!" + raw), makes=("pics*",)),
    area.either("a user block before it", RENDER, "ball.h5", as_bytes(lambda raw: bytes(512) + raw), makes=("pics*",)),
    area.python_works("50 flipped bits, each refused", FLIPS, makes=("hurt.h5",)),
    area.python_works("cut at 50 places, each refused", CUTS, makes=("hurt.h5",)),
    refused("another program's file", instead(foreign), "no raymarch-volume"),
    area.works("written in the layout of old libraries", RENDER, old_layout, makes=("pics*",), changes=("ball.h5",)),
]  # fmt: skip

TRICKS = [
    refused("an external link", remade("density", lambda f, v: f.__setitem__("density", h5py.ExternalLink("a", "/b"))),
            "density is a ExternalLink|density.*external"),
    refused("a soft link", remade("density", lambda f, v: f.__setitem__("density", h5py.SoftLink("/features"))),
            "density.*(SoftLink|soft)"),
    refused("external storage", remade("density", external), "density.*external"),
    refused("a virtual dataset", remade("density", virtual), "density.*virtual"),
    refused("256 TiB declared", remade("density", declared), "density.*declares"),
    refused("256 MB of zeros packed in one chunk", remade("density", bomb), "density|digest"),
    refused("packed twice", remade("density", twice), "density.*filters"),
    refused("packed by lzf", remade("density", lambda f, v: f.create_dataset("density", data=v, compression="lzf")),
            "density.*filters"),
    refused("scale and offset, which lose digits",
            remade("density", lambda f, v: f.create_dataset("density", data=v, scaleoffset=2)), "density.*filters"),
    refused("object references", remade("density", references), "density has type"),
    refused("texts of any length", remade("density", texts), "density has type"),
    refused("records", remade("density", lambda f, v: f.create_dataset("density", (2, 2, 2), "f4,f4")), "density"),
    refused("a group", remade("density", lambda f, v: f.create_group("density")), "density is a group"),
    refused("a group that holds itself", altered(loop), "loop"),
    refused("something more in it", altered(lambda f: f.create_dataset("notes", data=1)), "notes"),
    refused("2,000 things more", altered(lambda f: [f.create_group(f"g{i}") for i in range(2000)]), "2005 objects"),
    *[refused(f"{name} is missing", remade(name, lambda f, v: None), name) for name in NAMES],
    refused("1,000 attributes", altered(lambda f: [f.attrs.create(f"a{i}", i) for i in range(1000)]), "attributes"),
    refused("an attribute of 1 MB", altered(lambda f: f.attrs.create("a", np.zeros(8000))), "attribute a"),
    refused("no format", noted("/", "format", None), "format"),
    refused("another format", noted("/", "format", "other-volume"), "format"),
    refused("format_version 2", noted("/", "format_version", 2), "format_version 2.*reads 1"),
    refused("format_version is a text", noted("/", "format_version", "1"), "format_version"),
    refused("format_version -1", noted("/", "format_version", -1), "format_version"),
    refused("no digest", noted("/", "digest", None), "digest"),
    refused("another digest", noted("/", "digest", np.bytes_(b"0" * 64)), "digest"),
    refused("one voxel altered", altered(lambda f: f["density"].__setitem__((3, 4, 5), 7)), "digest"),
    refused("an unknown activation", noted("density", "activation", np.bytes_(b"tanh")), "tanh|digest"),
    refused("a scale of 0", noted("density", "scale", 0.0), "scale|digest"),
    refused("a shift of NaN", noted("density", "shift", np.nan), "shift|digest"),
    refused("a degree that is not the channels'", noted("features", "degree", 2), "degree"),
    refused("another basis", noted("features", "basis", np.bytes_(b"cosines")), "basis"),
    refused("provenance of 60 MB",
            remade("provenance", lambda f, v: f.create_dataset("provenance", data=np.bytes_(b"1" * 60_000_000))),
            "provenance|digest", seconds=3),
    refused("provenance that is no JSON",
            remade("provenance", lambda f, v: f.create_dataset("provenance", data=np.bytes_(b"{"))),
            "provenance|digest"),
]  # fmt: skip

SHAPES = [
    refused(
        f"density of {what}",
        remade("density", lambda f, v, to=to: f.create_dataset("density", data=to(v))),
        "density|features|digest|type",
    )
    for what, to in {
        "whole numbers": lambda v: v.astype("i4"),
        "float16": lambda v: v.astype("f2"),
        "big-endian numbers": lambda v: v.astype(">f4"),
        "complex numbers": lambda v: v.astype("c8"),
        "two axes": lambda v: v[0],
        "four axes": lambda v: v[..., None],
        "one sample": lambda v: v[:1, :1, :1],
        "no samples": lambda v: v[:0],
        "NaN": lambda v: v * np.nan,
    }.items()
] + [
    refused(
        "features of 5 channels",
        remade("features", lambda f, v: f.create_dataset("features", data=np.zeros((*v.shape[:3], 5), "f4"))),
        "features",
    ),
    refused(
        "a world of three rows",
        remade("world_from_index", lambda f, v: f.create_dataset("world_from_index", data=v[:3])),
        "world_from_index",
    ),
    refused(
        "a background of two numbers",
        remade("background", lambda f, v: f.create_dataset("background", data=v[:2])),
        "background",
    ),
    area.refused(
        "info: a box of NaN",
        "info ball.h5",
        "nan|NaN|world_from_index|digest",
        altered(lambda f: f["world_from_index"].__setitem__((0, 3), np.nan)),
    ),
    area.refused(
        "info: provenance of 60 MB",
        "info ball.h5",
        "provenance",
        remade(
            "provenance",
            lambda f, v: f.create_dataset("provenance", data=np.bytes_(b'{"a": "' + b"1" * 60_000_000 + b'"}')),
        ),
        seconds=3,
    ),
]

CASES = [*FILES, *TRICKS, *SHAPES]
