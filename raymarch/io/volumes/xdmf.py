"""XDMF beside an HDF5 file of a scalar volume: a text that ParaView and VTK open, which holds no values itself."""

from __future__ import annotations

import os
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import replace_file
from raymarch.io.files.strict import read_xml
from raymarch.io.volumes.files_beside import file_beside
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.hdf5 import scalar
from raymarch.io.volumes.scalar_format import explain_damage, require_upright
from raymarch.io.volumes.summary import ScalarSummary
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import EVERYTHING, Selection

SET_SUFFIXES = (".xdmf", ".xmf")
XDMF_NUMBER_TYPES = {"i": "Int", "u": "UInt", "f": "Float"}
VALUES_PATH = ":/values"


def detect(path: Path) -> bool:
    """Whether a file begins as XDMF does."""
    with path.open("rb") as file:
        return b"<Xdmf" in file.read(1024)


def _values_of(path: Path) -> Path:
    """The HDF5 file of raymarch's that an XDMF file is about; RaymarchError for what other programs wrote."""
    texts = [(node.text or "").strip() for node in read_xml(path).iter("DataItem") if node.get("Format") == "HDF"]
    if len(texts) != 1 or not texts[0].endswith(VALUES_PATH):
        raise RaymarchError(f"{path}: is not about one HDF5 file of raymarch's; save it in ParaView as .vti")
    return file_beside(path, texts[0].removesuffix(VALUES_PATH), 0)[0]


def read(path: Path, *, selection: Selection = EVERYTHING) -> ScalarVolume:
    """Scalar volume that an XDMF file is about."""
    with explain_damage(path, "XDMF"):
        return scalar.read(_values_of(path), selection)


def describe(path: Path) -> ScalarSummary:
    """Summary of the scalar volume that an XDMF file is about."""
    with explain_damage(path, "XDMF"):
        return scalar.describe(_values_of(path))


def require_regular(volume: ScalarVolume, path: Path) -> None:
    """RaymarchError where a volume is turned or sheared in the world."""
    require_upright(volume, path, "XDMF of a regular grid")


def values_of_new(path: Path, overwrite: bool = False) -> Path:
    """HDF5 file that gets the values of an XDMF that is written; RaymarchError where another is there."""
    values = path.with_suffix(".h5")
    if values.exists() and not (overwrite or (path.exists() and scalar.is_scalar(values))):
        raise RaymarchError(
            f"{values}: is there, and {path} would put its own values in its place; choose another name, or"
            " --overwrite (overwrite=True in Python)"
        )
    return values


def write_beside(path: str | os.PathLike[str], values: Path) -> None:
    """XDMF about the scalar volume in an HDF5 file that lies in the same folder.

    Raises RaymarchError for another folder, and a volume that is turned or sheared in the world.
    """
    path, volume = Path(path), scalar.read(values, EVERYTHING)
    if path.parent.resolve() != values.parent.resolve():
        raise RaymarchError(f"{path}: is not beside {values}, which it would be about; put it into that folder")
    require_regular(volume, path)
    with replace_file(path, path.suffix) as temporary:
        temporary.write_text(text_of(volume, values.name), encoding="utf-8")


def text_of(volume: ScalarVolume, name: str) -> str:
    """XDMF of a scalar volume whose values are in the HDF5 file `name`; origin and steps are those of z, y and x."""
    size = " ".join(map(str, volume.shape[::-1]))
    scaled = (volume.slope, volume.intercept) != (1.0, 0.0)
    kind = np.dtype(np.float64) if scaled else volume.values.dtype  # as which VTK reads and reckons
    number = f'NumberType="{XDMF_NUMBER_TYPES[kind.kind]}" Precision="{kind.itemsize}"'
    item = f'<DataItem Dimensions="{size}" {number} Format="HDF">{escape(name)}{VALUES_PATH}</DataItem>'
    if scaled:
        formula = f"$0 * {_number_word(volume.slope)} + {_number_word(volume.intercept)}".replace("+ -", "- ")
        item = f'<DataItem ItemType="Function" Function="{formula}" Dimensions="{size}">{item}</DataItem>'
    places = "".join(
        f'<DataItem Dimensions="3" NumberType="Float" Precision="8" Format="XML">{" ".join(map(repr, row))}</DataItem>'
        for row in (volume.origin[::-1].tolist(), volume.spacing[::-1].tolist())
    )
    called = quoteattr(volume.name or "values")
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<Xdmf Version="2.0">\n<Domain>\n'
        '<Grid Name="volume" GridType="Uniform">\n'
        f'<Topology TopologyType="3DCoRectMesh" Dimensions="{size}"/>\n'
        f'<Geometry GeometryType="ORIGIN_DXDYDZ">{places}</Geometry>\n'
        f'<Attribute Name={called} AttributeType="Scalar" Center="Node">{item}</Attribute>\n'
        "</Grid>\n</Domain>\n</Xdmf>\n"
    )


def _number_word(number: float) -> str:
    """A number as formulas of XDMF have it: with a point, also before an exponent."""
    text = repr(number)
    return text if "." in text else text.replace("e", ".0e")


def _write(volume: ScalarVolume, path: Path) -> None:
    raise RaymarchError(f"{path}: is about an HDF5 file beside it; rm.save writes both")


XDMF = Format("XDMF", SET_SUFFIXES, detect, read, _write, describe)
