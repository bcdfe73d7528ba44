"""Digest of views: a checksum of each image, camera and mask, by which what differs between two sets is named."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from raymarch.data.views import Views
from raymarch.errors import named
from raymarch.geometry.camera import Camera

LENGTH = 16  # hexadecimal digits of a checksum
PARTS = ("images", "cameras", "masks")


@dataclass(frozen=True)
class ViewsDigest:
    """Checksums of a set of views, one a view of each kind, and its background.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8), ["first"])
        >>> digest = ViewsDigest.of(views)
        >>> digest.difference(digest.record()), digest.difference({**digest.record(), "images": ["?"]})
        ('', 'the image of first differs')
    """

    names: tuple[str, ...]
    images: tuple[str, ...]
    cameras: tuple[str, ...]
    masks: tuple[str, ...]
    background: tuple[float, float, float]

    @staticmethod
    def of(views: Views) -> ViewsDigest:
        """Digest of views; their names are not part of what may differ."""
        masks = [views.mask(i) for i in range(len(views))]
        return ViewsDigest(
            tuple(views.names),
            tuple(_of_array(views.image(i)) for i in range(len(views))),
            tuple(map(_of_camera, views.cameras)),
            tuple("" if mask is None else _of_array(mask) for mask in masks),
            views.background,
        )

    def record(self) -> dict[str, Any]:
        """Digest as plain lists and texts."""
        return {name: list(value) for name, value in asdict(self).items()}

    def difference(self, record: Mapping[str, Any]) -> str:
        """What differs from the views of a record, in words; "" if nothing does."""
        was = {part: list(record[part]) for part in PARTS}
        if len(was["images"]) != len(self.images):
            return f"there were {len(was['images'])} views, now {len(self.images)}"
        for part in PARTS:
            now = getattr(self, part)
            others = [name for name, a, b in zip(self.names, was[part], now, strict=True) if a != b]
            if len(others) == 1:
                return f"the {part[:-1]} of {named(others)} differs"
            if others:
                return f"{len(others)} of {len(now)} {part} differ ({named(others, 3)})"
        if list(record["background"]) != list(self.background):
            return f"the background was {_plain(record['background'])}, is {_plain(self.background)}"
        return ""


def _of_array(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}\n".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:LENGTH]


def _of_camera(camera: Camera) -> str:
    numbers = [*camera.world_from_camera.ravel(), *camera.focal, *camera.principal, *camera.lens.coefficients]
    said = f"{camera.lens.model} {camera.width} {camera.height}".encode()
    return hashlib.sha256(said + np.array(numbers, "<f8").tobytes()).hexdigest()[:LENGTH]


def _plain(colour: Any) -> str:
    return ",".join(f"{float(one):.6g}" for one in colour)
