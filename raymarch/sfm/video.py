"""Frames of a video: evenly spread over its time, the sharpest of each span."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.videos.write_video import import_av

if TYPE_CHECKING:
    from PIL.Image import Image

VIDEO_SUFFIXES = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v")
SHARPNESS_SIDE = 480  # pixels of the longer side, at which sharpness is measured
JPEG_QUALITY = 95


def sharpness(grey: np.ndarray) -> float:
    """Sharpness of a grey image (height, width): the variance of its Laplacian.

    Example:
        >>> edge = np.repeat([[0.0, 0, 1, 1]], 4, 0)
        >>> sharpness(edge) > sharpness(np.repeat([[0.0, 0.3, 0.7, 1]], 4, 0))
        True
    """
    a = np.asarray(grey, float)
    laplacian = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]
    return float(laplacian.var())


def write_frames(
    video: Path, target: Path, count: int, show: Callable[[str, int, int], None] = lambda *_: None
) -> list[tuple[str, tuple[int, int]]]:
    """Frames of a video as JPEG files in `target`: names and (width, height).

    The video is cut into `count` spans of equal length, of each of which the sharpest frame is kept; of a short one
    there are as many as it has frames.

    Raises RaymarchError where PyAV is missing, and where the file is no video that it reads.
    """
    av = import_av()
    written: list[tuple[str, tuple[int, int]]] = []
    try:
        with av.open(str(video)) as file:
            if not file.streams.video:
                raise RaymarchError(f"{video}: has no moving picture, want a video; check the file")
            stream = file.streams.video[0]
            stream.thread_type = "AUTO"
            for number, image in enumerate(_sharpest_frames(file, stream, count, _length(file, stream, video))):
                name = f"frame_{number:05d}.jpg"
                target.mkdir(parents=True, exist_ok=True)
                image.save(target / name, quality=JPEG_QUALITY, subsampling=0)
                written.append((name, image.size))
                show("frames", len(written), count)
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, RaymarchError):
            raise
        raise RaymarchError(f"{video}: is no video that can be read ({one_line(error)}); convert it to .mp4") from error
    if len(written) < 3:
        raise RaymarchError(f"{video}: has {len(written)} frames, want 3 or more; take a longer video")
    return written


def _length(file: Any, stream: Any, video: str | os.PathLike[str]) -> tuple[int, float]:
    """Count of frames, 0 where only the length [s] is known; counted where neither is told, as browsers record."""
    seconds = float(stream.duration * stream.time_base) if stream.duration else (file.duration or 0) / 1e6
    if stream.frames or seconds > 0:
        return stream.frames, seconds
    with import_av().open(str(video)) as again:
        return sum(packet.size > 0 for packet in again.demux(again.streams.video[0])), 0.0


def _sharpest_frames(file: Any, stream: Any, count: int, length: tuple[int, float]) -> Iterator[Image]:
    """The sharpest frame of each span, upright. A span is `length` frames or seconds long."""
    total, seconds = length
    best, most, span = None, -1.0, 0
    for number, frame in enumerate(file.decode(stream)):
        if total:
            at = number * count // total
        else:
            at = int(frame.time / seconds * count) if seconds > 0 and frame.time is not None else number // 10
        at = min(at, count - 1)  # what a file says of its length may be wrong
        if at > span and best is not None:
            yield _turn_upright(best)
            best, most, span = None, -1.0, at
        sharp = sharpness(_grey(frame))
        if sharp > most:
            best, most = frame, sharp
        span = max(span, at)
    if best is not None:
        yield _turn_upright(best)


def _grey(frame: Any) -> np.ndarray:
    scale = min(1.0, SHARPNESS_SIDE / max(frame.width, frame.height))
    small = frame.reformat(max(int(frame.width * scale), 3), max(int(frame.height * scale), 3), "gray")
    return small.to_ndarray()


def _turn_upright(frame: Any) -> Image:
    return frame.to_image().rotate(getattr(frame, "rotation", 0), expand=True)
