"""Scans and stacks of other programs: headers that lie, streams that swell, values that are elsewhere."""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib

import numpy as np

from hostile_cases.case import Area, Case

area = Area("scans")
NRRD = "NRRD0004\ntype: {type}\ndimension: 3\nsizes: {sizes}\nencoding: {encoding}\nendian: little\n{more}\n"
META = "NDims = 3\nDimSize = {size}\nElementType = MET_SHORT\n{more}ElementSpacing = 1 1 1\nElementDataFile = {data}\n"
VTI = (
    '<VTKFile type="ImageData" compressor="vtkZLibDataCompressor"><ImageData><Piece Extent="0 {n} 0 {n} 0 {n}">'
    '<PointData><DataArray Name="a" type="Int8" format="appended" offset="0"/></PointData></Piece></ImageData>'
    '<AppendedData encoding="raw">_'
)


def refused(name: str, file: str, data: bytes | str, says: str, **more) -> Case:
    """A conversion of a file with such content, which must be refused."""

    def set_up(folder):
        (folder / file).write_bytes(data.encode() if isinstance(data, str) else data)
        (folder.parent / "elsewhere.raw").write_bytes(bytes(128))

    return area.refused(name, f"convert {file} out.npz", says, set_up, **more)


def nrrd(type="short", sizes="4 4 4", encoding="raw", more="") -> str:
    """Header of an NRRD."""
    return NRRD.format(type=type, sizes=sizes, encoding=encoding, more=more)


def nifti(sizes, offset: int = 352, dtype: int = 4) -> bytes:
    """Header of a NIfTI of 16-bit numbers."""
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *sizes, 1, 1, 1, 1)
    struct.pack_into("<2h", head, 70, dtype, 16)
    struct.pack_into("<8f", head, 76, 1, 1, 1, 1, 1, 1, 1, 1)
    struct.pack_into("<f", head, 108, offset)
    head[344:348] = b"n+1\0"
    return bytes(head)


def npy(kind: str, n: int) -> bytes:
    """Header of an array of n values a side."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({n}, {n}, {n})}}".ljust(85) + "\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode()


ZEROS = zlib.compress(bytes(1 << 26), 9)  # 64 MB in 64 kB

HEADERS = [
    refused("nrrd: a list of files", "a.nhdr", nrrd(more="data file: LIST\na.raw\n"), "several files"),
    refused("nrrd: values in /etc", "a.nhdr", nrrd(more="data file: /etc/passwd\n"), "file beside it"),
    refused("nrrd: values above", "a.nhdr", nrrd(more="data file: ../elsewhere.raw\n"), "file beside it"),
    refused("nrrd: sizes that overflow", "a.nrrd", nrrd(sizes="4294967296 4294967296 4"), "4294967296"),
    refused("nrrd: sizes below 0", "a.nrrd", nrrd(sizes="-4 -4 4") + "x" * 99, "-4"),
    refused("nrrd: packed zeros that lie", "a.nrrd", (nrrd(sizes="9999 9999 9999", encoding="gzip")).encode() + ZEROS,
            "declares|budget"),
    refused("nrrd: a gigabyte of text", "a.nrrd", nrrd(sizes="999 999 999", encoding="ascii") + "1 " * 99, "too short"),
    refused("nifti: dimensions that lie", "a.nii", nifti((32767, 32767, 32767)), "declares 32767|budget"),
    refused("nifti: dimensions below 0", "a.nii", nifti((-5, 5, 5)) + bytes(999), "-5|whole"),
    refused("nifti: values before the header", "a.nii", nifti((4, 4, 4), offset=-9) + bytes(999), "byte -9"),
    refused("nifti: a bomb of gzip", "a.nii.gz", gzip.compress(nifti((2048, 2048, 2048))) + ZEROS, "declares|budget"),
    refused("nifti: colours", "a.nii", nifti((4, 4, 4), dtype=128) + bytes(999), "colours"),
    refused("metaimage: values above", "a.mhd", META.format(size="4 4 4", more="", data="../elsewhere.raw"),
            "beside it"),
    refused("metaimage: a pattern of files", "a.mhd", META.format(size="4 4 4", more="", data="s%03d.raw 1 4 1"),
            "several files"),
    refused("metaimage: a number of 400 digits", "a.mha", META.format(size="9" * 400 + " 4 4", more="", data="LOCAL"),
            "DimSize|finite|declares"),
    refused("metaimage: packed zeros that lie", "a.mha",
            META.format(size="999 999 999", more="CompressedData = True\n", data="LOCAL").encode() + ZEROS[:5000],
            "declares"),
    refused("vti: entities", "a.vti", '<!DOCTYPE a [<!ENTITY b "c">]><VTKFile type="ImageData">&b;</VTKFile>',
            "entities"),
    refused("vti: a billion blocks", "a.vti", VTI.format(n=9).encode() + struct.pack("<3I", 1 << 30, 1, 1) + bytes(99),
            "blocks"),
    refused("vti: values that lie", "a.vti", VTI.format(n=99999).encode() + bytes(999), "declares|budget"),
    refused("mrc: an extended header that lies", "a.mrc",
            struct.pack("<4i", 8, 8, 8, 2) + bytes(76) + struct.pack("<i", 2**31 - 1) + bytes(112) + b"MAP DD\0\0"
            + bytes(4000), "declares"),
    refused("tiff: pages in a circle", "a.tif", b"II*\0\x08\0\0\0" + struct.pack("<HHHIII", 1, 256, 4, 1, 4, 8),
            "circle"),
    refused("tiff: ends before its page", "a.tif", b"II*\0\xff\xff\xff\x7f" + bytes(64), "ends before its page"),
    refused("npy: a pickle", "a.npy", npy("|O", 2) + b"cos\nsystem\n(S'touch x'\ntR.", "object"),
    refused("npy: a shape that lies", "a.npy", npy("|u1", 99999), "declares"),
    refused("not a number", "a.npy", npy("<f4", 2) + np.full(8, np.nan, "<f4").tobytes(), "8 of its 8 values are NaN"),
]  # fmt: skip


def _zarr(folder) -> None:
    (folder / "a.zarr" / "0").mkdir(parents=True)
    (folder / "a.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / "a.zarr" / ".zattrs").write_text(
        '{"multiscales": [{"axes": ["z", "y", "x"], "datasets": [{"path": "0"}]}]}'
    )
    (folder / "a.zarr" / "0" / ".zarray").write_text(
        '{"zarr_format": 2, "shape": [99999, 99999, 99999], "chunks": [99999, 99999, 99999], "dtype": "<f4",'
        ' "compressor": null, "fill_value": 0, "order": "C", "filters": null}'
    )


def _npz(folder) -> None:
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        head = (
            b"\x93NUMPY\x01\0F\0"
            + b"{'descr': '|u1', 'fortran_order': False, 'shape': (512, 512, 512)}".ljust(69)
            + b"\n"
        )
        archive.writestr("values.npy", head + bytes(1 << 20))


FOLDERS = [
    area.refused("ome-zarr: a chunk of a petabyte", "convert a.zarr out.npz", "chunks of", _zarr),
    area.refused("npz: a member that lies", "convert a.npz out.npz", "declares", _npz),
    area.refused("a folder of nothing", "convert empty out.npz", "empty: is a folder",
                 lambda folder: (folder / "empty").mkdir()),
    area.refused("raw values without a shape", "convert a.raw out.npz", "a.raw: .*give shape and dtype",
                 lambda folder: (folder / "a.raw").write_bytes(bytes(64))),
    area.refused("raw values of another size", "convert a.raw out.npz --shape 4,4,5 --dtype u1", "declares",
                 lambda folder: (folder / "a.raw").write_bytes(bytes(64))),
]  # fmt: skip

CASES = [*HEADERS, *FOLDERS]
