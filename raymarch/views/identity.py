"""Digest of views: checksums of images and masks and the cameras, by which what differs between two sets is named."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import eq
from typing import Any

import numpy as np

from raymarch.errors import named
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.views.views import Views

LENGTH = 16  # hexadecimal digits of a checksum
CLOSE = 1e-10  # up to which a camera's numbers are the same
POSE = 16  # of them, first


@dataclass(frozen=True)
class ViewsDigest:
    """Checksums of a set of images and masks, its cameras in numbers, and its background.

    Attributes:
        names: of the views, for messages; what a view is called is nothing that may differ.
        images, masks: a checksum each, "" for no mask.
        lenses: their models.
        cameras: pose by rows, focal length, principal point, width and height, the lens's coefficients.
        background: behind images with alpha.

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
    background: tuple[float, float, float]

    @staticmethod
    def of(views: Views) -> ViewsDigest:
        """Digest of views."""
        masks = [views.mask(i) for i in range(len(views))]
        return ViewsDigest(
            tuple(views.names),
            tuple(_of_array(views.image(i)) for i in range(len(views))),
            tuple("" if mask is None else _of_array(mask) for mask in masks),
            tuple(camera.lens.model for camera in views.cameras),
            ViewsDigest.cameras_of(views),
            views.background,
        )

    @staticmethod
    def cameras_of(views: Views) -> tuple[tuple[float, ...], ...]:
        """Cameras in numbers."""
        return tuple(map(_numbers, views.cameras))

    def record(self) -> dict[str, Any]:
        """Digest as plain lists, numbers and texts."""
        cameras = [list(numbers) for numbers in self.cameras]
        return {**{name: list(value) for name, value in asdict(self).items()}, "cameras": cameras}

    def difference(self, record: Mapping[str, Any]) -> str:
        """What differs from the views of a record, in words; "" if nothing does.

        Cameras may differ in their last bits, as those of another machine do.
        """
        if (count := len(record["images"])) != len(self.images):
            return f"there were {count} views, now {len(self.images)}"
        for part, same in (("images", eq), ("masks", eq), ("lenses", eq), ("cameras", _are_close)):
            pairs = zip(self.names, record[part], getattr(self, part), strict=True)
            if others := [name for name, was, now in pairs if not same(was, now)]:
                one = part.removesuffix("es") if part == "lenses" else part.removesuffix("s")
                if len(others) == 1:
                    return f"the {one} of {named(others)} differs"
                return f"{len(others)} of {count} {part} differ ({named(others, 3)})"
        if list(record["background"]) != list(self.background):
            return f"the background was {_plain(record['background'])}, is {_plain(self.background)}"
        return ""


def _of_array(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}\n".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:LENGTH]


def _numbers(camera: Camera) -> tuple[float, ...]:
    size = camera.width, camera.height
    numbers = *camera.world_from_camera.ravel(), *camera.focal, *camera.principal, *size, *camera.lens.coefficients
    return tuple(map(float, numbers))


def camera_of_numbers(model: str, numbers: Sequence[float]) -> Camera:
    """Camera of a digest's numbers and the model of its lens, to the last bit; RaymarchError for what no camera has.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> camera_of_numbers("pinhole", ViewsDigest.cameras_of(views)[0]).width
        8
    """
    pose, (fx, fy, u, v, width, height, *lens) = np.reshape(numbers[:POSE], (4, 4)), numbers[POSE:]
    return Camera(pose, (fx, fy), (u, v), int(width), int(height), Lens(model, tuple(lens))).exactly(pose)


def _are_close(was: Sequence[float], now: Sequence[float]) -> bool:
    return len(was) == len(now) and np.allclose(was, now, rtol=CLOSE, atol=CLOSE)


def _plain(colour: Sequence[float]) -> str:
    return ",".join(f"{float(one):.6g}" for one in colour)
