"""Photographs of a page: as the cameras' straight rays would have them, smaller, packed as JPEG."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import PINHOLE_LENS
from raymarch.html.picture import data_uri, to_bytes

PHOTOGRAPH_SIDE = 640  # pixels of the longer side, at most
PHOTOGRAPH_QUALITY = 80
STILL_QUALITY = 90


def straight(camera: Camera) -> Camera:
    """Camera of the same pose and focal length without distortion, which the page's rays have none of; of a panorama,
    which has no focal length, a quarter of it about its middle."""
    if camera.lens.spherical:
        return Camera.from_fov(camera.world_from_camera, np.pi / 2, camera.width, camera.height)
    return camera if camera.lens.plain or camera.lens.parallel else replace(camera, lens=PINHOLE_LENS)


def straightened(image: np.ndarray, camera: Camera) -> np.ndarray:
    """Image (height, width, 3) uint8 as `straight(camera)` would have taken it: each pixel where its ray was seen."""
    plain = straight(camera)
    if plain is camera:
        return image
    rays = plain.rays()
    seen, depth = camera.project(rays.origin + rays.direction)
    place = np.clip(seen - 0.5, 0, np.array([camera.width, camera.height]) - 1.0)
    low = np.minimum(place.astype(int), np.maximum(np.array([camera.width, camera.height]) - 2, 0))
    (x, y), (u, v) = low.T, (place - low).T[..., None]
    right, below = np.minimum(x + 1, camera.width - 1), np.minimum(y + 1, camera.height - 1)
    mixed = (image[y, x] * (1 - u) + image[y, right] * u) * (1 - v)
    mixed += (image[below, x] * (1 - u) + image[below, right] * u) * v
    outside = ((seen < 0) | (seen > (camera.width, camera.height))).any(1) | (depth <= 0)
    mixed[outside] = 0
    return np.rint(mixed).astype(np.uint8).reshape(camera.height, camera.width, 3)


def photograph_uri(image: np.ndarray, camera: Camera) -> str:
    """A photograph (height, width, 3) of a camera, floats in 0..1, as a URI that holds it."""
    from PIL import Image

    picture = Image.fromarray(straightened(to_bytes(image), camera))
    picture.thumbnail((PHOTOGRAPH_SIDE, PHOTOGRAPH_SIDE), Image.Resampling.BOX)
    return jpeg_uri(np.asarray(picture), PHOTOGRAPH_QUALITY)


def jpeg_uri(image: np.ndarray, quality: int = STILL_QUALITY) -> str:
    """An image (height, width, 3), uint8 or floats in 0..1, as a URI that holds it.

    Example:
        >>> jpeg_uri(np.zeros((8, 8, 3)))[:23]
        'data:image/jpeg;base64,'
    """
    from PIL import Image

    file = io.BytesIO()
    picture = image if image.dtype == np.uint8 else to_bytes(image)
    Image.fromarray(np.ascontiguousarray(picture)).save(file, format="JPEG", quality=quality, optimize=True)
    return data_uri(file.getvalue(), "image/jpeg")
