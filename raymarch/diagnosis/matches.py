"""Matches of feature points between neighbouring views of a set."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.matching.matches import Features, features
from raymarch.views.views import Views

SIDE = 640  # pixels: the side of a square with as many as a large image is made small to
SMALL = 320  # a side, under which an image is made twice as large, for more points
POINTS = 500  # of an image
NEIGHBOURS = 4  # of a view, that it is compared with
RATIO = 0.8  # of the distance to the second best descriptor (Lowe)
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
THREADS = 2


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches (match,): indices of two views, and the places (match, 2) [pixel] of one point in each."""

    first: np.ndarray
    second: np.ndarray
    at_first: np.ndarray
    at_second: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def take(self, which: np.ndarray) -> Matches:
        """Those of a mask or of indices."""
        return Matches(self.first[which], self.second[which], self.at_first[which], self.at_second[which])


def intensity(views: Views, view: int) -> tuple[np.ndarray, float]:
    """Intensity (row, column) float32 of a view, its brightest at 1, of a size to look for points in; and how many of
    its pixels are one of the image's: by area where that is large, twice as large by lines where it is small."""
    image = views.image(view)
    height, width, channels = image.shape
    k = int(np.ceil(np.sqrt(height * width) / SIDE))
    cut = image[: height // k * k, : width // k * k]
    total = cut[::k, ::k].astype(np.float32)
    for i in range(1, k * k):
        total += cut[i // k :: k, i % k :: k]
    colour = total[..., :3] / (255 * k * k)
    grey = colour @ LUMINANCE
    if channels == 4:
        alpha = total[..., 3] / (255 * k * k)
        grey = grey * alpha + float(np.asarray(views.background, np.float32) @ LUMINANCE) * (1 - alpha)
    grey /= max(float(np.quantile(grey[::4, ::4], 0.995)), 1e-3)
    if k > 1 or max(height, width) > SMALL or min(height, width) < 2:
        return grey, 1 / k
    return _doubled(_doubled(grey, 0), 1), 2.0


def _doubled(image: np.ndarray, axis: int) -> np.ndarray:
    """An image with twice as many pixels along an axis, by lines between them."""
    length = image.shape[axis]
    before, after = image.take([0, *range(length - 1)], axis), image.take([*range(1, length), length - 1], axis)
    pair = np.stack([0.75 * image + 0.25 * before, 0.75 * image + 0.25 * after], axis + 1)
    return pair.reshape(tuple(2 * n if a == axis else n for a, n in enumerate(image.shape)))


def features_of(views: Views) -> list[Features]:
    """Feature points of each view, in pixels of its image."""

    def one(view: int) -> Features:
        image, scale = intensity(views, view)
        found = features(image, POINTS)
        place = found.place / scale
        if (mask := views.mask(view)) is not None:
            column, row = np.minimum(np.floor(place).astype(int), np.array(mask.shape[::-1]) - 1).T
            counts = mask[row, column]
            place, found = place[counts], Features(found.place[counts], found.descriptor[counts])
        return Features(place, found.descriptor)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(len(views))))


def neighbours(
    cameras: Sequence[Camera], count: int = NEIGHBOURS, asked: Sequence[int] | None = None
) -> list[tuple[int, int]]:
    """Pairs of views that stand and look nearly alike, of which each, or each that is `asked`, has `count`; by angles
    that no choice of axes changes, and by distances."""
    poses, of = np.array([camera.world_from_camera for camera in cameras]), np.arange(len(cameras))
    of = of if asked is None else np.asarray(asked)
    rotation, eye = poses[:, :3, :3], poses[:, :3, 3]
    trace = np.einsum("iab,jab->ij", rotation[of], rotation)
    angle = np.arccos(np.clip((trace - 1) / 2, -1, 1))
    distance = np.linalg.norm(eye[of, None] - eye[None], axis=-1)
    apart = angle / max(float(np.median(angle)), 1e-9) + distance / max(float(np.median(distance)), 1e-9)
    apart[np.arange(len(of)), of] = np.inf
    nearest = np.argsort(apart, axis=1)[:, : min(count, len(cameras) - 1)]
    return sorted({(min(i, j), max(i, j)) for i, some in zip(of.tolist(), nearest.tolist(), strict=True) for j in some})


def match(points: Sequence[Features], pairs: Sequence[tuple[int, int]]) -> Matches:
    """Matches of pairs of views: points that are each other's nearest, and much nearer than the second."""

    def one(pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        return _nearest(points[pair[0]].descriptor, points[pair[1]].descriptor)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, pairs))
    count = [len(first) for first, _ in found]
    ends = np.repeat(np.array(pairs, int).reshape(-1, 2), count, axis=0)
    empty = [np.zeros((0, 2))]
    at_first = [points[i].place[first] for (i, _), (first, _) in zip(pairs, found, strict=True)]
    at_second = [points[j].place[second] for (_, j), (_, second) in zip(pairs, found, strict=True)]
    return Matches(ends[:, 0], ends[:, 1], np.concatenate(at_first or empty), np.concatenate(at_second or empty))


def _nearest(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the descriptors that match."""
    if min(len(first), len(second)) < 2:
        return np.zeros(0, int), np.zeros(0, int)
    alike = first @ second.T
    index = np.arange(len(first))
    best = alike.argmax(1)
    mutual = alike.argmax(0)[best] == index
    highest = alike[index, best]
    alike[index, best] = -1
    nearer = (1 - highest) < RATIO**2 * (1 - alike.max(1))
    keep = mutual & nearer
    return index[keep], best[keep]
