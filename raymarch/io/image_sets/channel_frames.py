"""Frames of channels: arrays (.npy), TIFF files of any count of bands and photographs, made into views of channels.

A set says in `channels` what its numbers are called, and each frame which of them its file has: the others are unknown.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.device.memory import require_images
from raymarch.errors import RaymarchError, one_line, short_value
from raymarch.io.image_sets.frame_file import unique_names
from raymarch.io.image_sets.frames import Frame, existing_images, read_depths, read_masks, require_few, shrink_camera
from raymarch.io.image_sets.read_options import ReadOptions
from raymarch.io.images.decode import decode
from raymarch.io.images.header import MAX_PIXELS, Header, open_image, read_header
from raymarch.views.image_arrays import gather_images
from raymarch.views.resize import shrink_channels
from raymarch.views.views import Views
from raymarch.volumes.samples import ALPHA, CHANNEL_NAMES, COLOUR_CHANNELS

CHANNELS_KEY = "channels"
ARRAY_SUFFIX, TIFF_SUFFIXES = ".npy", (".tif", ".tiff")
DEEP_BANDS = ("I", "I;16", "I;16B", "I;16L", "F", "L")  # modes of Pillow that are one number a pixel
INSTALL_CURE = 'pip install "raymarch[formats]", or write it as .npy'


def channels_of(document: Mapping[str, Any], where: object) -> tuple[str, ...]:
    """Names of a set's channels; none of a set of colours. RaymarchError for what are no names.

    Example:
        >>> channels_of({"channels": ["red", "green", "blue", "thermal"]}, "transforms.json")
        ('red', 'green', 'blue', 'thermal')
    """
    said = document.get(CHANNELS_KEY)
    if said is None or said == []:
        return ()
    return CHANNEL_NAMES(f"{where}: channels", tuple(said) if isinstance(said, list) else said)


def is_array(file: Path) -> bool:
    """Whether a file has numbers, no photograph."""
    return file.suffix.lower() in (ARRAY_SUFFIX, *TIFF_SUFFIXES)


def own_channels(keys: Mapping[str, Any], file: Path, channels: Sequence[str], where: str) -> tuple[str, ...]:
    """Channels that a frame's file has: as it says, else all, or red, green and blue of a photograph."""
    own = channels_of(keys, where)
    photograph = not is_array(file)
    if not own:
        own = COLOUR_CHANNELS if photograph else tuple(channels)
    for name in own:
        if name not in channels:
            have = ", ".join(channels)
            raise RaymarchError(f"{where}: has the channel {short_value(name)}, the set {have}; add it there")
    if photograph and own not in (COLOUR_CHANNELS, (*COLOUR_CHANNELS, ALPHA)):
        raise RaymarchError(
            f"{where}: {file.name} is a photograph, which has red, green and blue, not {', '.join(own)}; write other"
            " numbers as .npy or TIFF"
        )
    return own


def views_of_channel_frames(
    frames: Sequence[Frame],
    owned: Sequence[Sequence[str]],
    channels: Sequence[str],
    folder: Path,
    source: Path,
    options: ReadOptions,
    *,
    points: np.ndarray | None = None,
    box: np.ndarray | None = None,
    origin: np.ndarray | None = None,
) -> Views:
    """Views of channels of frames whose files exist, of which `owned` are those that each file has.

    Numbers are taken as they are stored, photographs as 0..1. Raises RaymarchError, with the file, for one that is
    damaged, of another count of channels than its frame has, or too large.
    """
    require_few(len(frames), source)
    there = existing_images([frame.file for frame in frames], source)
    frames, owned = [frames[i] for i in there], [owned[i] for i in there]
    found = [header_of(frame.file) for frame in frames]
    cameras = [frame.camera(of.width, of.height, of.orientation) for frame, of in zip(frames, found, strict=True)]
    cameras = [shrink_camera(one, options.downscale, frame.file) for one, frame in zip(cameras, frames, strict=True)]
    sizes = [(camera.width, camera.height) for camera in cameras]
    pixels = sum(width * height for width, height in sizes)
    width = 4 * len(channels)
    largest = max(of.width * of.height for of in found)
    what, cure = f"{source}: its {len(frames)} images of {len(channels)} channels", "take fewer or smaller ones"
    require_images(what, pixels, cure, held=width * (pixels + largest), stored=(width + 4) * pixels * options.for_fit)
    masks = read_masks(frames, found, sizes, source)
    images = [_image(*of, channels) for of in zip(frames, owned, found, sizes, strict=True)]
    return Views(
        cameras,
        gather_images(images),
        unique_names([frame.file for frame in frames], folder),
        source=str(source),
        masks=masks,
        points=points,
        box=box,
        downscale=options.downscale,
        origin=None if origin is None else tuple(origin.tolist()),
        depths=read_depths(frames, cameras, found, options, source),
        channels=channels,
    )


def _image(frame: Frame, own: Sequence[str], of: Header, size: tuple[int, int], channels: Sequence[str]) -> np.ndarray:
    """Channels (height, width, channel) float32 of a frame, made smaller; NaN of those that its file has not."""
    file = frame.file
    if is_array(file):
        values = read_array(file)
        if values.shape[2] != len(own):
            raise RaymarchError(
                f"{file}: has {values.shape[2]} channels, its frame {len(own)}: {', '.join(own)}; name as many, as"
                " channels of the frame"
            )
    else:
        values = decode([file], found=[of], for_fit=False)[0].astype(np.float32) / 255
        if ALPHA in own and values.shape[2] == 3:
            values = np.dstack([values, np.ones_like(values[..., :1])])
        values = values[..., : len(own)]
    image = np.full((*values.shape[:2], len(channels)), np.nan, np.float32)
    if channels[-1] == ALPHA:
        image[..., -1] = 1
    for k, name in enumerate(own):
        image[..., list(channels).index(name)] = values[..., k]
    return shrink_channels(image, *size, channels[-1] == ALPHA)


def header_of(file: Path) -> Header:
    """Size of a file of channels, without decoding it where it can be told; RaymarchError for what is none."""
    if file.suffix.lower() == ARRAY_SUFFIX:
        shape = _array_shape(_opened_array(file), file)
        return Header(shape[1], shape[0], shape[2], 1, ())
    if file.suffix.lower() in TIFF_SUFFIXES:
        height, width, count = _tiff_shape(file)
        return Header(width, height, count, 1, ())
    return read_header(file)


def read_array(file: Path) -> np.ndarray:
    """Numbers (height, width, channel) float32 of a .npy or TIFF file, as they are stored.

    Example:
        >>> np.save("thermal.npy", np.full((4, 6), 21.5))
        >>> read_array(Path("thermal.npy")).shape
        (4, 6, 1)
    """
    if file.suffix.lower() == ARRAY_SUFFIX:
        array = _opened_array(file)
        shape = _array_shape(array, file)
        return np.array(array, np.float32).reshape(shape)
    return _read_tiff(file)


def _opened_array(file: Path) -> np.ndarray:
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RaymarchError(f"{file}: is no array ({one_line(error)}); write it by np.save") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise RaymarchError(f"{file}: has no numbers; write (height, width, channel) by np.save")
    return array


def _array_shape(array: np.ndarray, file: Path) -> tuple[int, int, int]:
    shape = (*array.shape, 1) if array.ndim == 2 else array.shape
    if len(shape) != 3 or not all(shape):
        raise RaymarchError(f"{file}: has shape {array.shape}, want (height, width, channel) or (height, width)")
    _require_size(file, *shape)
    return shape


def _require_size(file: Path, height: int, width: int, count: int) -> None:
    if height * width > MAX_PIXELS or count > len(COLOUR_CHANNELS) * 64:
        raise RaymarchError(
            f"{file}: is {width} x {height} pixels of {count} numbers, want at most {MAX_PIXELS} of"
            f" {len(COLOUR_CHANNELS) * 64}; write (height, width, channel)"
        )


def _tiff_shape(file: Path) -> tuple[int, int, int]:
    if importlib.util.find_spec("tifffile") is not None:
        with _Tiff(file) as (shape, axes, _):
            at = dict(zip(axes, shape, strict=True))
            height, width, count = at["Y"], at["X"], at.get("S", at.get("C", 1))
    else:
        with open_image(file) as image:
            (width, height), count = image.size, len(image.getbands())
    _require_size(file, height, width, count)
    return height, width, count


class _Tiff:
    """First series of a TIFF: shape, axes Y, X and perhaps S or C, and what reads it."""

    def __init__(self, file: Path):
        self._file = file

    def __enter__(self) -> tuple[tuple[int, ...], str, Any]:
        import tifffile

        try:
            self._opened = tifffile.TiffFile(os.fspath(self._file))
            series = self._opened.series[0]
        except Exception as error:  # whatever the library makes of a damaged file
            raise RaymarchError(f"{self._file}: is no readable TIFF ({one_line(error)}); export it again") from error
        axes = series.axes.replace("Q", "C").replace("I", "C") if series.axes.count("C") == 0 else series.axes
        if sorted(axes) not in (["X", "Y"], ["S", "X", "Y"], ["C", "X", "Y"]):
            self._opened.close()
            raise RaymarchError(
                f"{self._file}: has the axes {series.axes}, want Y, X and one of channels; write it as .npy"
            )
        return series.shape, axes, series

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _read_tiff(file: Path) -> np.ndarray:
    if importlib.util.find_spec("tifffile") is not None:
        with _Tiff(file) as (_, axes, series):
            try:
                values = np.asarray(series.asarray())
            except Exception as error:
                raise RaymarchError(f"{file}: cannot be decoded ({one_line(error)}); {INSTALL_CURE}") from error
        order = [axes.index(axis) for axis in "YX"] + [axes.index(axis) for axis in axes if axis in "SC"]
        values = values.transpose(order)
        return (values if values.ndim == 3 else values[..., None]).astype(np.float32)
    with open_image(file) as image:
        if image.mode not in DEEP_BANDS:
            raise RaymarchError(f"{file}: a TIFF of mode {image.mode} wants tifffile; {INSTALL_CURE}")
        return np.asarray(image, np.float32)[..., None]
