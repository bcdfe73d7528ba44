"""Folder of TIFF slices, one picture a file, in the order of the numbers in their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raymarch.data.name_order import natural
from raymarch.data.scalar_volume import SIZES, ScalarVolume
from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError
from raymarch.io.volumes.part import require_one_place
from raymarch.io.volumes.scalar_format import scalar_format, wanted
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.tiff_place import placed_by

ENDINGS = (".tif", ".tiff")
MOST = 1 << 16
NOTES = (".txt", ".md", ".log", ".ini", ".db")  # what lies beside slices
SETS = ("cameras", "images", "points3D", "poses", "intrinsics")  # texts of image sets


def _files(folder: Path) -> list[Path]:
    """Pictures of a folder, slice 9 before slice 10, without hidden ones: macOS lays `._1.tif` beside `1.tif`."""
    seen = (one for one in folder.iterdir() if not one.name.startswith("."))
    pictures = (one for one in seen if one.suffix.lower() in ENDINGS and one.is_file())
    return sorted(pictures, key=lambda one: natural(one.name))


def detect(path: Path) -> bool:
    """Whether a folder holds TIFF pictures, and nothing that would make it an image set."""
    if not path.is_dir() or len(_files(path)) < 2:
        return False
    others = (one for one in path.iterdir() if one.suffix.lower() not in ENDINGS and not one.name.startswith("."))
    return all(one.is_file() and one.suffix.lower() in NOTES and one.stem not in SETS for one in others)


def source(path: Path, selection: Selection) -> Source:
    """Source of a folder of slices; RaymarchError where their sizes or types differ, and for colours."""
    with wanted("tifffile", "TIFF"):
        import tifffile
    require_one_place(selection, path)
    files = _files(path)
    if not 2 <= len(files) <= MOST:
        raise RaymarchError(f"{path}: has {len(files)} TIFF files, want 2 to {MOST:,} slices; check the path")
    with tifffile.TiffFile(files[0]) as file:
        affine, unit, _ = placed_by(file, file.series[0])
    kinds = {}
    for one in files:
        with tifffile.TiffFile(one) as file:
            page = file.pages[0]
            kinds[one] = (len(file.pages), tuple(page.shape), np.dtype(page.dtype))
    first = kinds[files[0]]
    for one, kind in kinds.items():
        if kind != first or kind[0] != 1 or len(kind[1]) != 2 or kind[2].itemsize not in SIZES.get(kind[2].kind, ()):
            size = f"{kind[0]} pages of {' x '.join(map(str, kind[1]))} {kind[2]}"
            raise RaymarchError(
                f"{one}: has {size}, want one picture without colours, like {files[0].name}; convert it"
            )
    (rows, columns), dtype = first[1], first[2]

    def read(slices: Slices) -> np.ndarray:
        x, y, z = slices
        return np.stack([tifffile.imread(one)[y, x] for one in files[z]]).T

    remarks = ("slices say no distance between them; that along x is assumed (rm.load takes spacing=)",)
    affine[2, 2] = affine[0, 0]
    return Source((columns, rows, len(files)), dtype, affine, read, False, length_unit=unit, remarks=remarks)


def write(volume: ScalarVolume, path: Path) -> None:
    """Refusal: slices are read, not written."""
    raise RaymarchError(f"{path}: folders of slices are not written; save it as .tif")


TIFF_SLICES = scalar_format("TIFF slices", (), detect, source, write, folder=True)
