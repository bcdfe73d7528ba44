"""Identity of views: whether two sets are the same, and which views a volume was fitted to.

A `ViewsDigest` has checksums of all pixels and the cameras, by which a checkpoint names what differs. A volume's
provenance has names and short checksums alone, by which views are known again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import eq
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from raymarch.errors import first_names
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.views.views import Views

CHECKSUM_LENGTH = 16  # hexadecimal digits of a checksum
CAMERA_TOLERANCE = 1e-10  # up to which a camera's numbers are the same
POSE_NUMBERS = 16  # of them, first
MAX_VIEWS = 2000  # views that are kept; of larger sets none
MAX_NAME_LETTERS = 200_000  # of all their names
ROW_STRIDE = 16  # rows of an image that one counts of
POSE_DIGITS = 6  # of the numbers of a pose that count


@dataclass(frozen=True)
class ViewsDigest:
    """Checksums of a set of images and masks, its cameras in numbers, and its background.

    Attributes:
        names: of the views, for messages; what a view is called is nothing that may differ.
        images, masks: a checksum each, "" for no mask.
        lenses: their models.
        cameras: pose by rows, focal length, principal point, width and height, the lens's coefficients.
        background: behind images with alpha.
        depths: checksums of what a fit to depths takes from them, each of a view's; none where no fit does.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8), ["first"])
        >>> digest = ViewsDigest.of(views)
        >>> digest.difference(digest.record()), digest.difference({**digest.record(), "images": ["?"]})
        ('', 'the image of first differs')
    """

    names: tuple[str, ...]
    images: tuple[str, ...]
    masks: tuple[str, ...]
    lenses: tuple[str, ...]
    cameras: tuple[tuple[float, ...], ...]
    background: tuple[float, ...]
    depths: tuple[str, ...] = ()

    @staticmethod
    def of(views: Views, depths: bool = False) -> ViewsDigest:
        """Digest of views, with that of their depths or without."""
        masks = [views.mask(i) for i in range(len(views))]
        return ViewsDigest(
            tuple(views.names),
            tuple(_array_sum(views.image(i)) for i in range(len(views))),
            tuple("" if mask is None else _array_sum(mask) for mask in masks),
            tuple(camera.lens.model for camera in views.cameras),
            ViewsDigest.cameras_of(views),
            views.background,
            tuple(_depth_sum(views, i) for i in range(len(views))) if depths else (),
        )

    @staticmethod
    def cameras_of(views: Views) -> tuple[tuple[float, ...], ...]:
        """Cameras in numbers."""
        return tuple(map(_numbers, views.cameras))

    def record(self) -> dict[str, Any]:
        """Digest as plain lists, numbers and texts."""
        cameras = [list(numbers) for numbers in self.cameras]
        parts = {name: list(value) for name, value in asdict(self).items() if name != "depths" or value}
        return {**parts, "cameras": cameras}

    def difference(self, record: Mapping[str, Any]) -> str:
        """What differs from the views of a record, in words; "" if nothing does.

        Cameras may differ in their last bits, as those of another machine do.
        """
        if (count := len(record["images"])) != len(self.images):
            return f"there were {count} views, now {len(self.images)}"
        parts = [("images", eq), ("masks", eq), ("lenses", eq), ("cameras", _are_close)]
        for part, same in parts + [("depths", eq)] * bool(self.depths and "depths" in record):
            pairs = zip(self.names, record[part], getattr(self, part), strict=True)
            if others := [name for name, was, now in pairs if not same(was, now)]:
                one = part.removesuffix("es") if part == "lenses" else part.removesuffix("s")
                if len(others) == 1:
                    return f"the {one} of {first_names(others)} differs"
                return f"{len(others)} of {count} {part} differ ({first_names(others, 3)})"
        if list(record["background"]) != list(self.background):
            return f"the background was {_plain(record['background'])}, is {_plain(self.background)}"
        return ""


def camera_of_numbers(model: str, numbers: Sequence[float]) -> Camera:
    """Camera of a digest's numbers and the model of its lens, to the last bit; RaymarchError for what no camera has.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> camera_of_numbers("pinhole", ViewsDigest.cameras_of(views)[0]).width
        8
    """
    pose, (fx, fy, u, v, width, height, *lens) = np.reshape(numbers[:POSE_NUMBERS], (4, 4)), numbers[POSE_NUMBERS:]
    return Camera(pose, (fx, fy), (u, v), int(width), int(height), Lens(model, tuple(lens))).exactly(pose)


def record_of(views: Views) -> dict[str, Any]:
    """Names, and checksums of images and poses, of views in plain texts, for a volume's provenance; none of more than
    2,000 views.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8), ["first"])
        >>> record_of(views)
        {'names': ['first'], 'checksums': ['a3c1ca20'], 'poses': ['371c9d28']}
    """
    if len(views) > MAX_VIEWS or sum(map(len, views.names)) > MAX_NAME_LETTERS:
        return {}
    every = range(len(views))
    sums = {"checksums": [_image_sum(views, i) for i in every], "poses": [_pose_sum(views, i) for i in every]}
    return {"names": list(views.names), **sums}


def recorded_indices(views: Views, record: object) -> dict[int, str]:
    """Indices of the views that a record is of, and their names there: by name and image, or by name, source and pose
    at another size.

    A name is the same too where one of the two has folders before it, as of a set whose splits are read together.

    Args:
        views: as of `load_views`.
        record: "views" of a volume's provenance, whatever it is.
    """
    told: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    by_image, by_pose = _sums(told, "checksums"), _sums(told, "poses")
    if told.get("downscale") == views.downscale or not is_same_source(told.get("source"), views.source):
        sum_of, sums = _image_sum, by_image
    else:  # not names alone, for splits of one file may have the same ones
        sum_of, sums = _pose_sum, by_pose
    tails: dict[str, list[str]] = {}
    for name in sums:
        for tail in _tails(name):
            tails.setdefault(tail, []).append(name)
    found = {}
    for i, name in enumerate(views.names):  # names first, for all pixels of a large set take their time
        alike = [name] if name in sums else tails.get(name) or [tail for tail in _tails(name) if tail in sums][:1]
        given = sum_of(views, i) if alike else ""
        same = [other for other in alike if given in sums[other]]
        if len(same) == 1:
            found[i] = same[0]
    return found


def is_same_source(source: object, other: str) -> bool:
    """Whether a record's source is the set that views were read from.

    Example:
        >>> is_same_source("scenes/tower", "scenes/../scenes/tower"), is_same_source(None, "scenes/tower")
        (True, False)
    """
    try:
        return isinstance(source, str) and bool(source) and Path(source).resolve() == Path(other).resolve()
    except (OSError, ValueError):  # what can be no path
        return False


def _array_sum(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}\n".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:CHECKSUM_LENGTH]


def _depth_sum(views: Views, i: int) -> str:
    """Checksum of a view's depth image and of the sparse points that it sees; "" where it has neither."""
    depth, parts = views.depth(i), list[str]()
    if depth is not None:
        parts.append(_array_sum(depth))
    if views.sightings is not None and views.points is not None:
        parts.append(_array_sum(views.points[views.sightings[views.sightings[:, 0] == i, 1]]))
    return " ".join(parts)


def _numbers(camera: Camera) -> tuple[float, ...]:
    size = camera.width, camera.height
    numbers = *camera.world_from_camera.ravel(), *camera.focal, *camera.principal, *size, *camera.lens.coefficients
    return tuple(map(float, numbers))


def _are_close(was: Sequence[float], now: Sequence[float]) -> bool:
    return len(was) == len(now) and np.allclose(was, now, rtol=CAMERA_TOLERANCE, atol=CAMERA_TOLERANCE)


def _plain(colour: Sequence[float]) -> str:
    return ",".join(f"{float(one):.6g}" for one in colour)


def _tails(name: str) -> Iterator[str]:
    """What a name is without the folders before it, as `unique_names` joins them."""
    while "_" in name:
        name = name.partition("_")[2]
        yield name


def _sums(told: Mapping[str, Any], what: str) -> dict[str, set[str]]:
    """Checksums of a record by names, none where it is no such record."""
    names, sums = told.get("names"), told.get(what)
    found: dict[str, set[str]] = {}
    if isinstance(names, list) and isinstance(sums, list):
        for name, one in zip(names, sums, strict=False):
            if isinstance(name, str) and isinstance(one, str):
                found.setdefault(name, set()).add(one)
    return found


def _image_sum(views: Views, i: int) -> str:
    return f"{crc32(views.image(i)[::ROW_STRIDE].tobytes()):08x}"


def _pose_sum(views: Views, i: int) -> str:
    pose = np.round(views.cameras[i].world_from_camera, POSE_DIGITS) + 0.0  # no -0
    return f"{crc32(pose.tobytes()):08x}"
