"""Transfer syntaxes of DICOM: how pixels are packed, and what must be installed to unpack them."""

from __future__ import annotations

from pathlib import Path

from raymarch.errors import RaymarchError

CONVERT = "convert the series with gdcmconv --raw"


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
