"""Transfer syntaxes of DICOM: how pixels are packed, and what must be installed to unpack them."""

from __future__ import annotations

from pathlib import Path

from raymarch.errors import RaymarchError

CONVERT = "convert the series with gdcmconv --raw"
DEFLATED = "1.2.840.10008.1.2.1.99"


def require_not_deflated(path: Path) -> None:
    """RaymarchError for a file all of which is packed, tags too: pydicom would unpack it whatever its size."""
    from pydicom.filereader import read_file_meta_info

    if str(read_file_meta_info(path).get("TransferSyntaxUID", "")) == DEFLATED:
        raise RaymarchError(f"{path}: is deflated, tags and all, want tags that are plain; {CONVERT}")


def require_decoder(path: Path) -> None:
    """RaymarchError, with the plugin, for a file packed in a way that pydicom and its plugins here do not unpack."""
    import pydicom
    from pydicom.pixels import get_decoder

    meta = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=["Rows"]).file_meta
    syntax = meta.get("TransferSyntaxUID")
    if syntax is None or not syntax.is_compressed:
        return
    packed = f"{path}: is packed as {syntax.name[:60]}"
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise RaymarchError(f"{packed}, which pydicom does not unpack; {CONVERT}") from None
    if not decoder.is_available:
        plugin = "pylibjpeg-openjpeg" if "2000" in syntax.name else "pylibjpeg-libjpeg"
        raise RaymarchError(f"{packed}, which takes a plugin of pydicom; pip install pylibjpeg {plugin}, or {CONVERT}")
