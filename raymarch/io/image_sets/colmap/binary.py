"""Binary files of a COLMAP model, little endian: read in order, nothing kept but what is needed."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict import require_file, require_file_budget
from raymarch.io.image_sets.camera_models import camera_model
from raymarch.io.image_sets.colmap.model import (
    EXPORT_MODEL_CURE,
    ModelCamera,
    ModelImage,
    ModelPoints,
    check_points,
    require_finite,
    require_new,
)
from raymarch.io.image_sets.frames import require_few

MAX_NAME = 4096  # bytes, the longest path that systems have
CAMERA, IMAGE, OBSERVATION, POINT, TRACK = (
    struct.Struct(f"<{code}") for code in ("IiQQ", "I7dI", "ddQ", "Q3d3Bd", "II")
)
COUNT = struct.Struct("<Q")
BUFFER_BYTES = 1 << 20


class Records:
    """Binary file that is read from its begin to its end, and never beyond.

    Attributes:
        path: of it.
        left: bytes that are not read yet.
        at: what is being read, for messages.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file, self.at = path, file, "its count"
        self.left = os.fstat(file.fileno()).st_size

    def take(self, record: struct.Struct) -> tuple:
        """Next record; RaymarchError where the file ends before it does."""
        return record.unpack(self.bytes_of(record.size))

    def bytes_of(self, size: int) -> bytes:
        """Next so many bytes."""
        self._require(size)
        data = self.file.read(size)
        if len(data) < size:  # it was cut meanwhile
            self._require(self.left + 1)
        return data

    def skip(self, size: int) -> None:
        """Step over so many bytes."""
        self._require(size)
        self.file.seek(size, os.SEEK_CUR)

    def count(self, what: str, least: int) -> int:
        """Number of records that come, each of some bytes at least; RaymarchError for more than there is room for."""
        (count,) = self.take(COUNT)
        if count > self.left // least:
            raise RaymarchError(
                f"{self.path}: declares {count:,} {what} but has room for at most {self.left // least:,};"
                " is it a COLMAP file, and whole? copy it again"
            )
        return count

    def text(self) -> str:
        """Text that a null ends, in UTF-8."""
        start = self.file.tell()
        data = self.file.read(min(MAX_NAME, self.left))
        end = data.find(b"\0")
        if end < 0:
            raise RaymarchError(
                f"{self.path}, {self.at}: name does not end, want at most {MAX_NAME} bytes; {EXPORT_MODEL_CURE}"
            )
        self.file.seek(start + end + 1)
        self.left -= end + 1
        try:
            return data[:end].decode("utf-8")
        except UnicodeDecodeError:
            raise RaymarchError(f"{self.path}, {self.at}: name is not UTF-8; {EXPORT_MODEL_CURE}") from None

    def _require(self, size: int) -> None:
        if size > self.left:
            raise RaymarchError(f"{self.path}: ends amid {self.at}; is it a COLMAP file, and whole? copy it again")
        self.left -= size


@contextmanager
def _records(path: Path, wanted: str) -> Iterator[Records]:
    require_file(path, wanted, EXPORT_MODEL_CURE)
    try:
        with path.open("rb", BUFFER_BYTES) as file:
            records = Records(path, file)
            yield records
            if records.left:
                raise RaymarchError(
                    f"{path}: has {records.left} bytes behind its end; is it a COLMAP file? copy it again"
                )
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error


def read_cameras(path: Path) -> dict[int, ModelCamera]:
    """Cameras of `cameras.bin`, by their numbers; RaymarchError for what is none, or of a model that is not read."""
    cameras: dict[int, ModelCamera] = {}
    with _records(path, "COLMAP's cameras.bin") as records:
        count = records.count("cameras", CAMERA.size + 2 * COUNT.size)
        require_few(count, path)
        for i in range(count):
            records.at = f"camera {i} of {count}"
            number, model_number, width, height = records.take(CAMERA)
            where = f"{path}, camera {number}"
            require_new(number, cameras, "camera", str(path))
            model = camera_model(model_number, where)
            parameters = records.take(struct.Struct(f"<{model.parameters}d"))
            require_finite(parameters, f"camera {number}", str(path))
            cameras[number] = ModelCamera(model, width, height, parameters)
    return cameras


def each_image(path: Path) -> Iterator[tuple[int, ModelImage]]:
    """Numbers and images of `images.bin`, one as it is read after the other; RaymarchError as of `read_images`."""
    known = set[int]()
    with _records(path, "COLMAP's images.bin") as records:
        count = records.count("images", IMAGE.size + 1 + COUNT.size)
        require_few(count, path)
        for i in range(count):
            records.at = f"image {i} of {count}"
            number, *pose, camera = records.take(IMAGE)
            require_new(number, known, "image", str(path))
            require_finite(pose, f"image {number}", str(path))
            known.add(number)
            yield number, ModelImage(records.text(), camera, pose[:4], pose[4:])
            records.skip(OBSERVATION.size * records.count(f"observations in image {number}", OBSERVATION.size))


def read_images(path: Path) -> dict[int, ModelImage]:
    """Images of `images.bin`, by their numbers, without what they observe; RaymarchError for what is none."""
    return dict(each_image(path))


def read_points(path: Path) -> ModelPoints:
    """Points of `points3D.bin`; RaymarchError for what is none."""
    with _records(path, "COLMAP's points3D.bin") as records:
        count = records.count("points", POINT.size + COUNT.size)
        require_file_budget(64 * count, f"{path}: its {count:,} points")
        numbers = np.empty(count, np.uint64)
        places, errors, tracks = np.empty((count, 3)), np.empty(count), np.empty(count, np.int64)
        images = bytearray()
        for i in range(count):
            records.at = f"point {i} of {count}"
            number, x, y, z, _, _, _, error = records.take(POINT)
            numbers[i], places[i], errors[i] = number, (x, y, z), error
            tracks[i] = records.count(f"images that see point {number}", TRACK.size)
            images += records.bytes_of(TRACK.size * int(tracks[i]))
    of_images = np.frombuffer(images, "<u4").reshape(-1, 2)[:, 0].astype(np.int64)
    return check_points(path, numbers, places, errors, tracks, of_images)
