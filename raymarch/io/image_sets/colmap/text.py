"""Text files of a COLMAP model: read line by line, nothing kept but what is needed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

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

MAX_LINE = 4 << 20  # bytes; of what an image observes, or of the images that see a point
T = TypeVar("T", int, float)


class Lines:
    """Lines of a text file, one after the other, and the number of the last for messages."""

    def __init__(self, path: Path, lines: Iterator[bytes]) -> None:
        self.path, self.lines, self.number = path, lines, 0

    @property
    def where(self) -> str:
        return f"{self.path}, line {self.number}"

    def next(self) -> str | None:
        """The next line, None where there is no more."""
        line = next(self.lines, b"")
        if not line:
            return None
        self.number += 1
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise RaymarchError(f"{self.where}: is not UTF-8, want a text; {EXPORT_MODEL_CURE}") from None

    def records(self) -> Iterator[str]:
        """Lines that are neither empty nor comments."""
        while (line := self.next()) is not None:
            if line and not line.startswith("#"):
                yield line

    def numbers(self, words: Sequence[str], kind: Callable[[str], T], what: str) -> list[T]:
        """Numbers of words, all of a kind; RaymarchError where one is none."""
        try:
            return [kind(word) for word in words]
        except ValueError:
            said = " ".join(words)[:60]
            raise RaymarchError(f"{self.where}: {what} is {said!r}, want numbers; {EXPORT_MODEL_CURE}") from None

    def words(self, line: str, least: int, what: str, most: int = -1) -> list[str]:
        """Words of a line; RaymarchError for fewer than a record has."""
        words = line.split(maxsplit=most)
        if len(words) < least:
            raise RaymarchError(f"{self.where}: is {line[:60]!r}, want {what}; {EXPORT_MODEL_CURE}")
        return words


@contextmanager
def _lines(path: Path, wanted: str) -> Iterator[Lines]:
    require_file(path, wanted, EXPORT_MODEL_CURE)

    def bounded() -> Iterator[bytes]:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE):
                if len(line) == MAX_LINE:
                    raise RaymarchError(f"{path}: has a line over {MAX_LINE} bytes; is it a COLMAP file?")
                yield line

    try:
        yield Lines(path, bounded())
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error


def read_cameras(path: Path) -> dict[int, ModelCamera]:
    """Cameras of `cameras.txt`, by their numbers; RaymarchError for what is none, or of a model that is not read."""
    cameras: dict[int, ModelCamera] = {}
    with _lines(path, "COLMAP's cameras.txt") as lines:
        for line in lines.records():
            words = lines.words(line, 4, "camera, model, width, height and parameters")
            number, width, height = lines.numbers([words[0], *words[2:4]], int, "camera, width, height")
            require_new(number, cameras, "camera", lines.where)
            model = camera_model(words[1], lines.where)
            parameters = lines.numbers(words[4:], float, "parameters")
            if len(parameters) != model.parameters:
                raise RaymarchError(
                    f"{lines.where}: {model.name} has {len(parameters)} parameters, want {model.parameters}; "
                    f"{EXPORT_MODEL_CURE}"
                )
            require_finite(parameters, f"camera {number}", lines.where)
            cameras[number] = ModelCamera(model, width, height, parameters)
            require_few(len(cameras), path)
    return cameras


def each_image(path: Path) -> Iterator[tuple[int, ModelImage]]:
    """Numbers and images of `images.txt`, one as it is read after the other; RaymarchError as of `read_images`.

    Each has two lines, of which the second may be empty.
    """
    known = set[int]()
    with _lines(path, "COLMAP's images.txt") as lines:
        for line in lines.records():
            words = lines.words(line, 10, "image, quaternion, translation, camera and name", 9)
            number, camera = lines.numbers([words[0], words[8]], int, "image and camera")
            pose = lines.numbers(words[1:8], float, "quaternion and translation")
            require_new(number, known, "image", lines.where)
            require_finite(pose, f"image {number}", lines.where)
            known.add(number)
            yield number, ModelImage(words[9], camera, pose[:4], pose[4:])
            require_few(len(known), path)
            _require_observations(lines)


def read_images(path: Path) -> dict[int, ModelImage]:
    """Images of `images.txt`, by their numbers, without what they observe; RaymarchError for what is none."""
    return dict(each_image(path))


def _require_observations(lines: Lines) -> None:
    """Check of an image's second line: RaymarchError where the next image stands there."""
    words = (lines.next() or "").split()
    if len(words) % 3 or (words and not words[-1].lstrip("-").isdecimal()):
        said = " ".join(words[:10])[:60]
        another = len(words) == 10 and not words[9].lstrip("-").isdecimal()
        cure = "an image has two lines: put an empty one after each" if another else EXPORT_MODEL_CURE
        raise RaymarchError(f"{lines.where}: is {said!r}, want x, y and point of what the image sees; {cure}")


def _image_number(word: str) -> int:
    if not 0 <= (number := int(word)) < 1 << 32:
        raise ValueError
    return number


def read_points(path: Path) -> ModelPoints:
    """Points of `points3D.txt`; RaymarchError for what is none."""
    require_file_budget(path.stat().st_size if path.is_file() else 0, str(path))
    numbers, tracks, rows, images = array("Q"), array("q"), array("d"), array("q")
    with _lines(path, "COLMAP's points3D.txt") as lines:
        for line in lines.records():
            words = lines.words(line, 8, "point, place, colour, error and what sees it")
            (number,) = lines.numbers(words[:1], int, "point")
            rows.extend(lines.numbers([*words[1:4], words[7]], float, "place and error"))
            if not 0 <= number < 1 << 64 or len(words) % 2:
                said = line[:60]
                raise RaymarchError(
                    f"{lines.where}: is {said!r}, want a point and pairs of what sees it; {EXPORT_MODEL_CURE}"
                )
            numbers.append(number)
            tracks.append((len(words) - 8) // 2)
            images.extend(lines.numbers(words[8::2], _image_number, "images that see it"))
    table = np.array(rows, float).reshape(-1, 4)
    tracked = np.array(tracks, np.int64), np.array(images, np.int64)
    return check_points(path, np.array(numbers, np.uint64), table[:, :3], table[:, 3], *tracked)
