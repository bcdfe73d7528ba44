"""Writer of a DICOM series: secondary captures of 16 bits with their place, which viewers stack to a volume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.volumes.scalar_format import shear_of
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.world_axes import world_from_world

WORLD = "LPS"
CAPTURE_CLASS = "1.2.840.10008.5.1.4.1.1.7"  # class of secondary captures
LITTLE_ENDIAN = "1.2.840.10008.1.2.1"  # explicit, little-endian


def write_series(volume: ScalarVolume, folder: Path) -> None:
    """Series of a scalar volume in a folder; RaymarchError for shear within a slice and numbers beyond 16 bits."""
    from pydicom.uid import generate_uid

    if shear_of(volume) > 1e-6:
        raise RaymarchError(
            f"{folder}: the volume is sheared, which a DICOM series cannot hold; save it as .nrrd or .h5"
        )
    stored, slope, intercept = _sixteen_bits(volume)
    affine = world_from_world(volume.world, WORLD) @ volume.world_from_index
    ids = {
        "StudyInstanceUID": generate_uid(),
        "SeriesInstanceUID": generate_uid(),
        "FrameOfReferenceUID": generate_uid(),
    }
    for k in range(volume.shape[2]):
        data = _slice_of(np.ascontiguousarray(stored[:, :, k].T), affine, k, volume)
        for name, value in ids.items():
            setattr(data, name, value)
        data.RescaleSlope, data.RescaleIntercept = _decimal(slope), _decimal(intercept)
        data.RescaleType = volume.unit[:16] or "US"
        data.save_as(folder / f"{k:05d}.dcm", enforce_file_format=True)


def _sixteen_bits(volume: ScalarVolume) -> tuple[np.ndarray, float, float]:
    """Values as 16 bits where they fit, with slope and intercept; floats are refused."""
    stored, found = volume.values, f"{volume.values.dtype}"
    if stored.dtype.kind in "iu":
        low, high = int(stored.min()), int(stored.max())
        for kind in (np.int16, np.uint16)[:: 1 if stored.dtype.kind == "i" else -1]:
            if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
                return stored.astype(kind), volume.slope, volume.intercept
        found += f" from {low} to {high}"
    raise RaymarchError(f"values are {found}, which a DICOM series of 16 bits cannot hold; save it as .nii.gz or .nrrd")


def _slice_of(pixels: np.ndarray, affine: np.ndarray, k: int, volume: ScalarVolume) -> Any:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import UID, generate_uid

    data, meta = Dataset(), FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = UID(CAPTURE_CLASS), UID(LITTLE_ENDIAN)
    meta.MediaStorageSOPInstanceUID = generate_uid()
    data.file_meta = meta
    data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    data.SpecificCharacterSet = "ISO_IR 192"  # UTF-8, which names of any script are in
    data.PatientName = data.PatientID = "raymarch"
    data.Modality, data.SeriesDescription, data.InstanceNumber = "OT", volume.name[:64], k + 1
    spacing, turn = volume.spacing, affine[:3, :3] / volume.spacing
    data.ImageOrientationPatient = [_decimal(x) for x in turn[:, :2].T.ravel()]
    data.ImagePositionPatient = [_decimal(x) for x in (affine @ [0, 0, k, 1])[:3]]
    data.PixelSpacing = [_decimal(spacing[1]), _decimal(spacing[0])]
    data.SpacingBetweenSlices = data.SliceThickness = _decimal(spacing[2])
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.Rows, data.Columns = pixels.shape
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PixelRepresentation = 15, int(pixels.dtype.kind == "i")
    data.PixelData = pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
    return data


def _decimal(x: float) -> str:
    """A number in the 16 characters that DICOM has for one."""
    text = repr(float(x))
    digits = 16
    while len(text) > 16:
        digits -= 1
        text = f"{float(x):.{digits}g}"
    return text
