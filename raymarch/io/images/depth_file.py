"""Depth image files: depths along the camera's axis as sensors and other programs write them, in world units.

16-bit PNG and TIFF of whole steps, float TIFF, OpenEXR and NumPy files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE
from raymarch.errors import RaymarchError, one_line
from raymarch.io.images.decode import turn_upright
from raymarch.io.images.exr import read_exr
from raymarch.io.images.header import DEEP_MODES, MAX_PIXELS, SIDEWAYS_ORIENTATIONS, Header, open_image, open_unmapped

FLOAT_MODE = "F"
WANTED = "want a 16-bit PNG or TIFF, a float TIFF, OpenEXR or .npy"


def read_depth(path: Path, unit: float, of: Header, confidence: Path | None = None) -> np.ndarray:
    """Depths along the axis (height, width) float32 [world unit], NaN where unknown, turned as EXIF turned the image.

    Args:
        path: of the file; 0, NaN and infinite are unknown.
        unit: world units of one step of its values.
        of: header of the view's image.
        confidence: file of the same size whose 0 is a depth of no confidence, which counts as unknown.

    Raises RaymarchError for a file that is damaged or no depth image, such as a picture of one in colours.
    """
    values = _values(path)
    with np.errstate(all="ignore"):
        depth = values.astype(np.float32) * np.float32(unit)
        known = (depth > 0) & (depth < MAX_COORDINATE)
    if confidence is not None:
        trusted = _trusted(confidence)
        if trusted.shape != depth.shape:
            raise RaymarchError(f"{confidence}: is not of the size of {path.name}, want the same; export both again")
        known &= trusted
    depth[~known] = np.nan
    return turn_upright(depth, of.orientation if _lies(depth.shape, of) else 1)


def _lies(shape: tuple[int, ...], of: Header) -> bool:
    """Whether a depth image is of its image before EXIF turned that: by its sides where they tell."""
    if of.orientation in SIDEWAYS_ORIENTATIONS and of.width != of.height:
        return (shape[1] > shape[0]) != (of.width > of.height)
    return of.orientation != 1


def _values(path: Path) -> np.ndarray:
    suffix = path.suffix.lower()
    values = read_exr(path) if suffix == ".exr" else _array(path) if suffix == ".npy" else _picture(path)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    if values.ndim != 2 or not values.size or values.dtype.kind not in "iuf":
        raise RaymarchError(f"{path}: depth is {values.dtype} {values.shape}, want numbers (height, width); {WANTED}")
    return values


def _array(path: Path) -> np.ndarray:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(values, np.ndarray) or values.size > MAX_PIXELS:
            raise ValueError(f"it has {getattr(values, 'size', 'no')} numbers, want at most {MAX_PIXELS}")
        return np.array(values)
    except (OSError, ValueError, EOFError) as error:
        raise RaymarchError(f"{path}: depth is damaged ({one_line(error)}); export it again") from error


def _picture(path: Path) -> np.ndarray:
    with open_unmapped(open_image(path)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise RaymarchError(f"{path}: depth is {image.width} x {image.height} pixels, want fewer; make it smaller")
        if image.mode not in (*DEEP_MODES, FLOAT_MODE):
            raise RaymarchError(
                f"{path}: depth has mode {image.mode}, as a picture of a depth image has; {WANTED}, whose numbers are"
                " depths"
            )
        try:
            return np.asarray(image)
        except Exception as error:  # Pillow's readers raise anything for damaged files
            raise RaymarchError(f"{path}: depth is damaged ({one_line(error)}); export it again") from error


def _trusted(path: Path) -> np.ndarray:
    """Whether the depth of a pixel (height, width) has any confidence."""
    with open_unmapped(open_image(path)) as image:
        try:
            values = np.asarray(image)
        except Exception as error:  # as in _picture
            raise RaymarchError(f"{path}: confidence is damaged ({one_line(error)}); export it again") from error
    return (values if values.ndim == 2 else values.max(-1)) > 0
