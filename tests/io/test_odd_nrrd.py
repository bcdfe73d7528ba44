"""Laws of NRRD files with every optional part of the format: read as the format says, or told with a cure."""

from __future__ import annotations

import bz2
import gzip
import re

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import refused

import raymarch as rm

nrrd = require_extra("nrrd", "formats")
pytestmark = pytest.mark.extra
VALUES = np.random.default_rng(0).integers(0, 99, (9, 7, 5)).astype(np.uint8)
RAW = VALUES.tobytes(order="F")
HEAD = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 9 7 5\nspacings: 1 2 3\n"
PACKED = {
    "raw": bytes, "gzip": gzip.compress, "gz": gzip.compress, "bzip2": bz2.compress, "bz2": bz2.compress,
    "hex": lambda data: re.sub(b"(.{60})", rb"\1\n", data.hex().encode()),
    **dict.fromkeys(("ascii", "text", "txt"), lambda data: b" ".join(b"%d" % x for x in data)),
}  # fmt: skip


def written(path, lines, data=b""):
    """A file of a header's lines and what comes behind the empty one."""
    path.write_bytes((lines if isinstance(lines, bytes) else lines.encode()) + b"\n" + data)
    return path


def require_read(path, values=VALUES, spacing=(1, 2, 3), **how):
    found = rm.load(path, **how)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(found.spacing, spacing)
    assert rm.describe(path, **how).shape == values.shape
    return found


# Where the values are.


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize(
    "skips", ["", "line skip: 2\n", "byte skip: 3\n", "lineskip: 2\nbyteskip: 3\n", "byte skip: -1\n"]
)
@pytest.mark.parametrize("detached", [False, True])
def test_skips_are_skipped(encoding, skips, detached, tmp_path):
    lines = b"two\nlines\n" if "line" in skips else b""
    skipped = b"   " if "skip: 3" in skips or "byteskip" in skips else b""
    skipped = b"\n" * 30 if "-1" in skips and encoding in ("raw", "gzip", "gz", "bzip2", "bz2") else skipped
    packs = encoding in ("gzip", "gz", "bzip2", "bz2")
    data = lines + (PACKED[encoding](skipped + RAW) if packs else skipped + PACKED[encoding](RAW))
    head = f"{HEAD}encoding: {encoding}\n{skips}"
    if detached:
        (tmp_path / "a.raw").write_bytes(data)
        path = written(tmp_path / "a.nhdr", head + "data file: a.raw\n")
    else:
        path = written(tmp_path / "a.nrrd", head, data)
    require_read(path)
    if encoding != "hex" and "-1" not in skips and not (packs and skipped):  # which pynrrd skips twice
        np.testing.assert_array_equal(nrrd.read(str(path))[0], VALUES)
    part = rm.load(path, crop=((2, 8), (1, 6), (1, 5)), stride=(2, 1, 1))
    np.testing.assert_array_equal(part.values, VALUES[2:8:2, 1:6, 1:5])


@pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2", "ascii", "hex"])
@pytest.mark.parametrize("how", ["LIST", "LIST 2", "LIST 3", "s%03d.raw 1 5 1", "s%d.raw 1 5 1 2", "s%03d.raw 5 1 -1"])
def test_values_in_several_files_are_one_behind_the_other(how, encoding, tmp_path):
    names = [f"s{k + 1}.raw" if "%d" in how else f"s{k + 1:03}.raw" for k in range(5)]
    order = range(5)[::-1] if "-1" in how else range(5)
    for k, name in zip(order, names, strict=True):
        (tmp_path / name).write_bytes(b"line\n" + PACKED[encoding](VALUES[:, :, k].tobytes("F")))
    listed = "\n".join(names) + "\n" if "LIST" in how else ""
    path = tmp_path / "a.nhdr"
    path.write_text(f"{HEAD}encoding: {encoding}\nline skip: 1\ndata file: {how}\n{listed}")
    require_read(path)
    part = rm.load(path, crop=((0, 9), (1, 6), (1, 5)))
    np.testing.assert_array_equal(part.values, VALUES[:, 1:6, 1:5])
    (tmp_path / names[2]).unlink()
    refused(lambda: rm.load(path), f"its values are in {names[2]!r}, want {names[2]} beside it; move it there")


@pytest.mark.parametrize(
    "name", ["data/a.raw", "/elsewhere/a.raw", "../a.raw", "C:\\scans\\a.raw", "./a.raw", "a 1%d.raw"]
)
def test_a_file_that_is_named_elsewhere_is_read_once_it_lies_beside(name, tmp_path):
    path = written(tmp_path / "a.nhdr", f"{HEAD}encoding: raw\ndatafile: {name}\n")
    last = re.split(r"[/\\]", name)[-1]
    if "%" not in name:
        refused(lambda: rm.load(path), f"want {last} beside it; move it there")
    (tmp_path / last).write_bytes(RAW)
    require_read(path)


def test_a_file_in_a_folder_below_is_read_and_none_behind_a_link(tmp_path):
    (tmp_path / "set" / "data").mkdir(parents=True)
    path = written(tmp_path / "set" / "a.nhdr", f"{HEAD}encoding: raw\ndata file: data/a.raw\n")
    (tmp_path / "a.raw").write_bytes(RAW)
    (tmp_path / "set" / "data" / "a.raw").symlink_to(tmp_path / "a.raw")
    refused(lambda: rm.load(path), "want a.raw beside it; move it there")
    (tmp_path / "set" / "data" / "a.raw").unlink()
    (tmp_path / "set" / "data" / "a.raw").write_bytes(RAW)
    require_read(path)


# How it is written.


@pytest.mark.parametrize("version", ["NRRD0001", "NRRD0002", "NRRD0003", "NRRD0004", "NRRD0005"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_comments_keys_and_line_ends_cost_nothing(version, ends, tmp_path):
    more = "# a comment: of the user's\nDWMRI_b-value:=800\nkey: with colon:=x: y \\n z\ncontent: a:b = c\n"
    more += "SPACINGS_of:=mine\nmeasurement frame: (1,0,0) (0,1,0) (0,0,1)\nthicknesses: nan 1 2\nnumber: 315\n"
    more += 'labels: "x" "y" "z"\nmin: 0\nmax: 99\nEncoding: raw\n'
    text = HEAD.replace("NRRD0004", version) + more
    path = written(tmp_path / "a.nrrd", text.replace("\n", ends).encode() + ends.encode()[:-1], RAW)
    assert require_read(path).name == "a:b = c"


@pytest.mark.parametrize("kind", sorted({"i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"}))
@pytest.mark.parametrize("endian", ["little", "big", "Big", None])
def test_every_type_in_either_order_is_read(kind, endian, tmp_path, caplog):
    from raymarch.io.volumes.nrrd import TYPES

    for name in TYPES[kind].split(", "):
        stored = np.dtype(kind).newbyteorder(">" if str(endian).lower() == "big" else "<")
        data = VALUES.astype(stored).tobytes("F")
        more = f"endian: {endian}\n" if endian else ""
        head = HEAD.replace("uint8", name.upper() if name == "float" else name)
        require_read(written(tmp_path / "a.nrrd", f"{head}encoding: raw\n{more}", data))
    assert ("says no order of bytes" in caplog.text) == (endian is None and kind[1] != "1")


@pytest.mark.parametrize("name", ["int128", "uint128", "float16", "half", "complex", "bool", "quad"])
def test_a_type_that_nrrd_does_not_know_is_told(name, tmp_path):
    path = written(tmp_path / "a.nrrd", HEAD.replace("uint8", name) + "encoding: raw\n", RAW)
    said = refused(
        lambda: rm.load(path), f"holds values of type {name!r}, want one of int8", "save it as int64 or double"
    )
    assert "fault" not in said and "restore" not in said


def test_blocks_are_read_once_the_header_says_what_they_are(tmp_path):
    head = HEAD.replace("type: uint8", "type: block\nblock size: 4") + "encoding: raw\nendian: little\n"
    path = written(tmp_path / "a.nrrd", head, VALUES.astype("<f4").tobytes("F"))
    refused(
        lambda: rm.load(path),
        "holds blocks of 4 bytes, want numbers; write their type into the header, such as type: f",
    )
    path.write_bytes(path.read_bytes().replace(b"type: block", b"type: float"))
    require_read(path)


# Places.


@pytest.mark.parametrize(
    "space",
    [
        "left-posterior-superior",
        "LPS",
        "lps",
        "right-anterior-superior",
        "RAS",
        "left-anterior-superior",
        "LAS",
        "scanner-xyz",
        "3D-right-handed",
        "3D-left-handed",
    ],
)
@pytest.mark.parametrize("timed", [None, 0, 3])
def test_every_space_is_read_with_time_and_without(space, timed, tmp_path, caplog):
    place = "(0.5,0,0) (0,0.6,0) (0,0,2)"
    sizes, values, origin = "9 7 5", VALUES, "(1,2,3)"
    if timed is not None:
        rows = ["(0.5,0,0,0)", "(0,0.6,0,0)", "(0,0,2,0)"]
        rows.insert(timed, "(0,0,0,1.5)")
        place, origin = " ".join(rows), "(1,2,3,0)"
        values = np.stack([VALUES, VALUES + 1, VALUES + 2], timed)
        sizes = " ".join(map(str, values.shape))
        space += ("t" if space.islower() else "T") if len(space) == 3 else "-time"
    head = (
        f"NRRD0004\ntype: uint8\ndimension: {values.ndim}\nspace: {space}\nsizes: {sizes}\nspace directions: {place}\n"
    )
    path = written(tmp_path / "a.nrrd", f"{head}space origin: {origin}\nencoding: raw\n", values.tobytes("F"))
    wanted = VALUES if timed is None else VALUES + 1
    found = require_read(path, wanted, (0.5, 0.6, 2), **({} if timed is None else {"time": 1}))
    assert found.origin.tolist() == [1, 2, 3]
    names = {"left-posterior": "LPS", "right-anterior": "RAS", "left-anterior": "LAS"}
    world = next((w for name, w in names.items() if space.startswith(name)), space[:3].upper())
    assert found.world == (world if world in names.values() else "")
    assert ("is left-handed" in caplog.text) == (space.startswith("3D-left"))


@pytest.mark.parametrize("none", ["none", "(nan,nan,nan)", "(NaN, NaN, NaN)", "NONE"])
@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("kind", ["vector", "RGB-color", "3-gradient", "covariant-vector", "list", "3D-matrix", "time"])
def test_an_axis_without_a_direction_is_of_channels_or_time(none, at, kind, tmp_path):
    rows = ["(1,0,0)", "( 0 , 2 , 0 )", "(0,0,3)"]
    rows.insert(at, none)
    kinds = ["domain"] * 3
    kinds.insert(at, kind)
    values = np.stack([VALUES, VALUES + 1, VALUES + 2], at)
    head = f"NRRD0004\ntype: uint8\ndimension: 4\nspace dimension: 3\nsizes: {' '.join(map(str, values.shape))}\n"
    head += f"space directions: {' '.join(rows)}\nkinds: {' '.join(kinds)}\nencoding: raw\n"
    path = written(tmp_path / "a.nrrd", head, values.tobytes("F"))
    require_read(path, VALUES + 2, **{"time" if kind == "time" else "channel": 2})


def test_spacings_that_are_nan_tell_which_axis_is_none_of_space(tmp_path):
    values = np.stack([VALUES, VALUES + 1, VALUES + 2], 0)
    head = "NRRD0004\ntype: uint8\ndimension: 4\nsizes: 3 9 7 5\nspacings: nan 1 2 3\naxis mins: nan 4 5 6\n"
    path = written(tmp_path / "a.nrrd", head + "centerings: none node node node\nencoding: raw\n", values.tobytes("F"))
    assert require_read(path, VALUES + 1, channel=1).origin.tolist() == [4, 5, 6]


@pytest.mark.parametrize("units", ['"mm" "mm" "cm"', '"um" "mm" "mm"'])
@pytest.mark.parametrize("field", ["space units", "units"])
def test_axes_in_several_units_come_in_one(units, field, tmp_path):
    place = "spacings: 1 2 3\n" if field == "units" else "space: LPS\nspace directions: (1,0,0) (0,2,0) (0,0,3)\n"
    head = HEAD.replace("spacings: 1 2 3\n", place) + f"{field}: {units}\nencoding: raw\n"
    factors = (1, 1, 10) if "cm" in units else (1, 1000, 1000)
    found = require_read(written(tmp_path / "a.nrrd", head, RAW), spacing=np.multiply((1, 2, 3), factors))
    assert found.length_unit == ("mm" if "cm" in units else "um")


def test_an_origin_that_is_none_a_quantization_and_a_field_of_nobody_are_told(tmp_path, caplog):
    head = HEAD.replace(
        "spacings: 1 2 3", "space: LPS\nspace directions: (1,0,0) (0,2,0) (0,0,3)\nspace origin: (nan,nan,nan)"
    )
    written(tmp_path / "a.nrrd", head + "old min: -1\nold max: 2.5\nunheard: 3\nencoding: raw\n", RAW)
    require_read(tmp_path / "a.nrrd")
    for said in (
        "says that its origin is none; 0 is taken",
        "values were -1 to 2.5 before they were quantized, which is not",
        "has fields that NRRD does not know and that are not read (unheard)",
    ):
        assert said in caplog.text


# Texts.


@pytest.mark.parametrize("letters", ["utf-8", "latin-1"])
@pytest.mark.parametrize("unit", ["Gy", "HU", "1/cm", "µSv", '"cGy"'])
def test_names_and_units_in_other_letters_are_read(letters, unit, tmp_path):
    head = HEAD + f"content: Schädel Übersicht\nsample units: {unit}\nencoding: raw\n"
    found = require_read(written(tmp_path / "a.nrrd", head.encode(letters), RAW))
    assert (found.name, found.unit) == ("Schädel Übersicht", unit.strip('"'))


@pytest.mark.parametrize("name", ["頭部 CT", "Голова: 1", "plain", 'with "quotes"'])
@pytest.mark.parametrize("unit", ["Gy", "g/cm³", "Bq/ml"])
def test_names_and_units_in_other_letters_are_written(name, unit, tmp_path):
    head = rm.ScalarVolume(VALUES, np.diag([1, 2, 3, 1.0]), name=name, unit=unit, length_unit="µm")
    rm.save(head, tmp_path / "a.nrrd")
    found = require_read(tmp_path / "a.nrrd")
    assert (found.name, found.unit, found.length_unit) == (name, unit, "um")
    np.testing.assert_array_equal(nrrd.read(str(tmp_path / "a.nrrd"))[0], VALUES)


# What is refused.


PLAIN = "type: uint8\ndimension: 3\nsizes: 9 7 5\nencoding: raw\n"
REFUSED = {
    "dimension: 3\nsizes: 9 7 5\nencoding: raw": "lacks the field 'type'",
    "type: uint8\nsizes: 9 7 5\nencoding: raw": "lacks the field 'dimension'",
    "type: uint8\ndimension: 3\nencoding: raw": "lacks the field 'sizes'",
    "type: uint8\ndimension: 3\nsizes: 9 7 5": "lacks the field 'encoding'",
    "type: uint8\ndimension: 3\nsizes: 9 7 x\nencoding: raw": "sizes is 'x', want whole numbers",
    "type: uint8\ndimension: 3\nsizes: 9 7\nencoding: raw": "has 2 sizes for 3 dimensions",
    "type: uint8\ntype: uint8\ndimension: 3\nsizes: 9 7 5\nencoding: raw": "has the field 'type' twice; take one",
    "type: uint8\ndimension: 3\nsizes: 9 7 5\nencoding: zrl": "is encoded as 'zrl', want raw, text, hex, gzip or bzip2",
    PLAIN + "no colon here": "has the line 'no colon here'",
    PLAIN + "spacings: 1 2": "has 2 spacings for 3 axes",
    PLAIN + "spacings: 1 2 a": "spacings is '1 2 a', want numbers",
    PLAIN + "space directions: (1,0,0) 5": "want vectors",
    PLAIN + "space directions: (1,a,0) (0,1,0) (0,0,1)": "want numbers",
    PLAIN + "space directions: (1,0) (0,1) (1,1)": "want 3; take it by",
    PLAIN + "space directions: none (0,1,0) (0,0,1)": "has 2 axes of space",
    PLAIN + "line skip: -2": "has a line skip of -2",
    PLAIN + "byte skip: -2": "a byte skip of -2",
    PLAIN + "line skip: 999": "is to have 999 lines before its values",
}


@pytest.mark.parametrize("lines", REFUSED)
def test_what_a_header_lacks_is_told(lines, tmp_path):
    assert "fault" not in refused(
        lambda: rm.load(written(tmp_path / "a.nrrd", f"NRRD0004\n{lines}\n", RAW)), REFUSED[lines]
    )
