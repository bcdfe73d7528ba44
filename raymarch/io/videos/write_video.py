"""Video writer: clips as MP4 (H.264), WebM (VP9) or GIF, frame by frame, in one step."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from raymarch.arguments.checks import Check, Numbers, Wrong, flag, number, numeric, path
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.atomic import replace_file, require_writable, system_refusals, target_of
from raymarch.io.files.authorship import require_ours
from raymarch.io.files.temporary import temporary_path
from raymarch.views.display_values import eight_bit

INSTALL = 'pip install "raymarch[video]"'


def import_av(what: str = "videos") -> ModuleType:
    """PyAV; a RaymarchError that names the extra where it is missing, for `what` in the plural."""
    try:
        import av
    except ImportError as error:
        raise RaymarchError(f"{what} need PyAV, which is not installed ({error}); {INSTALL}") from error
    return av


def has_av() -> bool:
    """Whether PyAV is installed."""
    try:
        import_av()
    except RaymarchError:
        return False
    return True


MADE_BY = b"made by raymarch"
END_BYTES = 1 << 20  # bytes from either end in which a file says who made it
BT709 = 1  # FFmpeg's number of the colours of high definition, in which browsers take what says nothing
FPS = number(0.1, 240, unit="frame/s")
QUALITY = number(1, 100)


class _VideoKind(NamedTuple):
    """Kind of video: FFmpeg's names of its encoders, the first that is there is taken, and its constant rate factor at
    qualities 0 and 100."""

    encoders: tuple[str, ...]
    factors: tuple[float, float]
    options: dict[str, str]
    container: dict[str, str]


VIDEO_KINDS = {
    # `faststart`: what a player has to know comes first, so that a page plays a file as it loads.
    ".mp4": _VideoKind(("libx264", "h264"), (46, 14), {"preset": "medium"}, {"movflags": "+faststart"}),
    ".webm": _VideoKind(("libvpx-vp9", "vp9"), (63, 18), {"b:v": "0", "row-mt": "1", "cpu-used": "3"}, {}),
}
VIDEO_SUFFIXES = (*VIDEO_KINDS, ".gif")
MAX_SIDE = {".mp4": 16384, ".webm": 65535, ".gif": 65535}  # pixels that the formats, or their encoders, have


def _frames(value: Iterable[Numbers]) -> Iterator[Numbers]:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return iter(value)


FRAMES = Check("images, a list or whatever gives one after the other", _frames)


def never_cut() -> bool:
    """Never cut short."""
    return False


@checked(path=path, frames=FRAMES, fps=FPS, quality=QUALITY, overwrite=flag)
def write_video(
    path: str | os.PathLike[str],
    frames: Iterable[Numbers],
    fps: float = 30.0,
    *,
    quality: float = 85.0,
    overwrite: bool = False,
) -> None:
    """Video writer of images (height, width, 3) as they come; the file is replaced in one step once all are in it.

    Args:
        path: ends in .mp4 (H.264, which all browsers play), .webm (VP9) or .gif. The first two need PyAV.
        frames: images of one size, floats in 0..1 or uint8, or (height, width) of grey; a generator too.
            Where a side of an MP4 is odd, its last row or column is there twice, for H.264 has even ones.
        fps: frames a second; a GIF's are whole hundredths of a second apart.
        quality: 1 to 100; 85 is hardly told from the frames. A GIF has 256 colours a frame, whatever the quality.
        overwrite: whether a file may be replaced that raymarch did not write.

    Raises RaymarchError for no frames or frames of other sizes, NaN, another suffix, where PyAV is missing, for a path
    that cannot be written, and for a file that may not be replaced. If it fails, an older file stays as it was.

    Example:
        >>> write_video("fade.gif", (np.full((32, 48, 3), share) for share in np.linspace(0, 1, 12)), fps=12)
    """
    write_clip(path, frames, fps, quality, overwrite)


def write_clip(
    path: str | os.PathLike[str],
    frames: Iterable[Numbers],
    fps: float,
    quality: float,
    overwrite: bool = False,
    cut: Callable[[], bool] = never_cut,
) -> Path:
    """Video written as `write_video` does, and where: where `cut` says at its end that frames are missing, it goes
    beside `path`, as NAME.interrupted.mp4."""
    require_videos([path], overwrite)
    target, suffix = target_of(path), Path(path).suffix.lower()
    pictures = _pictures(path, frames)
    try:
        first = next(pictures)
    except StopIteration:
        raise RaymarchError(f"{path}: there are no frames, want one or more; look at what gives them") from None
    if max(first.shape[:2]) > MAX_SIDE[suffix]:
        size = f"{first.shape[1]} x {first.shape[0]} pixels, want at most {MAX_SIDE[suffix]} a side of a {suffix}"
        raise RaymarchError(f"{path}: frames are {size}; make them smaller")
    encode = _encode_gif if suffix == ".gif" else _encode
    with system_refusals(path), temporary_path(target.parent, suffix) as made:
        encode(path, made, chain([first], pictures), first.shape[1::-1], fps, quality)
        place = cut_short_name(path) if cut() else Path(path)
        with replace_file(place, suffix) as temporary:
            os.replace(made, temporary)
    return place


def seconds_played(path: str | os.PathLike[str], frames: int, fps: float) -> float:
    """Length of a video of so many frames [s]; those of a GIF are whole hundredths of a second apart."""
    return frames * _hundredths(fps) / 100 if Path(path).suffix.lower() == ".gif" else frames / fps


def cut_short_name(path: str | os.PathLike[str]) -> Path:
    """Name of a video that was cut short, beside the one that was asked for."""
    return Path(path).with_name(f"{Path(path).stem}.interrupted{Path(path).suffix}")


def require_videos(paths: Iterable[str | os.PathLike[str]], overwrite: bool = False) -> None:
    """Write check: RaymarchError where videos cannot be written to `paths`, or would replace what must stay."""
    for each in (paths := list(paths)):
        suffix = Path(each).suffix.lower()
        if suffix not in VIDEO_SUFFIXES:
            raise RaymarchError(f"{each}: videos are {', '.join(VIDEO_SUFFIXES)}; end the name in one of them")
        require_writable(each)
        if suffix in VIDEO_KINDS:
            import_av(f"{each}: {suffix} files")
    require_ours([*paths, *map(cut_short_name, paths)], "video", is_video, overwrite)


def is_video(path: str | os.PathLike[str]) -> bool:
    """Authorship of a video: whether it says at its beginning or its end that raymarch wrote it."""
    with Path(path).open("rb") as file:
        head = file.read(END_BYTES)
        file.seek(max(file.seek(0, os.SEEK_END) - END_BYTES, 0))
        return MADE_BY in head or MADE_BY in file.read(END_BYTES)


def _pictures(path: str | os.PathLike[str], frames: Iterable[Numbers]) -> Iterator[np.ndarray]:
    """Frames as (height, width, 3) uint8, all of the first one's size; else RaymarchError with the number."""
    shape: tuple[int, ...] = ()
    for i, frame in enumerate(frames):
        try:
            image = numeric(frame)
        except Wrong as wrong:
            raise RaymarchError(f"{path}: frame {i} {wrong.came}, want numbers (height, width, 3)") from None
        if image.ndim == 2:
            image = np.repeat(image[..., None], 3, axis=2)
        if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
            raise RaymarchError(f"{path}: frame {i} has shape {image.shape}, want (height, width, 3); take alpha off")
        if image.dtype.kind == "f":
            if not np.isfinite(image).all():
                raise RaymarchError(f"{path}: frame {i} has NaN or infinity, want numbers; look for a division by 0")
            image = eight_bit(image)
        if image.dtype != np.uint8:
            raise RaymarchError(f"{path}: frame {i} is {image.dtype}, want floats in 0..1 or uint8; convert it first")
        shape = shape or image.shape
        if image.shape != shape:
            sizes = [f"{width} x {height}" for height, width, _ in (image.shape, shape)]
            raise RaymarchError(f"{path}: frame {i} is {sizes[0]} but the first {sizes[1]}; give all one size")
        yield image


def _encode(
    path: Any, made: Path, pictures: Iterable[np.ndarray], size: tuple[int, int], fps: float, quality: float
) -> None:
    """Encode by FFmpeg, in YUV of half the resolution in colour: what browsers play."""
    av = import_av()
    kind = VIDEO_KINDS[made.suffix]
    encoder = _encoder(path, kind)
    factor = kind.factors[0] + (kind.factors[1] - kind.factors[0]) * quality / 100
    even = 2 if made.suffix == ".mp4" else 1
    width, height = (math.ceil(n / even) * even for n in size)
    try:
        with av.open(str(made), "w", format=made.suffix[1:], options=kind.container) as file:
            file.metadata["comment"] = MADE_BY.decode()
            options = {"crf": f"{factor:.1f}" if even == 2 else f"{factor:.0f}", **kind.options}
            stream = file.add_stream(encoder, rate=Fraction(fps).limit_denominator(1001), options=options)
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            context = stream.codec_context
            context.colorspace = context.color_primaries = context.color_trc = context.color_range = BT709
            for image in pictures:
                whole = np.pad(image, ((0, height - size[1]), (0, width - size[0]), (0, 0)), mode="edge")
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(whole), format="rgb24")
                file.mux(stream.encode(frame.reformat(format="yuv420p", dst_colorspace="ITU709")))
            file.mux(stream.encode())
    except av.error.FFmpegError as error:
        if isinstance(error, OSError):  # the system's, which `system_refusals` knows the cure of
            raise
        raise RaymarchError(f"{path}: FFmpeg refuses ({one_line(error)}); take other frames or another kind") from error


def _encoder(path: Any, kind: _VideoKind) -> str:
    """Name of the first encoder of a kind that this build of FFmpeg has; else RaymarchError."""
    av = import_av()
    for name in kind.encoders:
        with suppress(ValueError):
            av.Codec(name, "w")
            return name
    raise RaymarchError(f"{path}: this PyAV has no encoder {kind.encoders[0]}; take .gif, or {INSTALL}")


def _hundredths(fps: float) -> int:
    """Time from frame to frame of a GIF [hundredths of a second]; two at least, as browsers slow down what has less."""
    return max(round(100 / fps), 2)


def _encode_gif(
    path: Any, made: Path, pictures: Iterable[np.ndarray], size: tuple[int, int], fps: float, quality: float
) -> None:
    """Encode as a GIF that repeats, each frame with colours of its own.

    Pillow keeps all frames until the last, and makes equal ones in a row one, whose time is 655 s at most.
    """
    indexed = (Image.fromarray(image).quantize(256, Image.Quantize.MEDIANCUT) for image in pictures)
    how: dict[str, Any] = {"duration": 10 * _hundredths(fps), "loop": 0, "comment": MADE_BY, "optimize": False}
    with made.open("wb") as file:
        try:
            next(indexed).save(file, format="GIF", save_all=True, append_images=indexed, **how)
        except (OverflowError, struct.error) as error:  # of Pillow 13, and of those before
            raise RaymarchError(
                f"{path}: a picture stands still for over 655 s, which GIF cannot say; take .mp4"
            ) from error
