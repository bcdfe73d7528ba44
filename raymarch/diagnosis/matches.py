"""Matches of feature points between neighbouring views of a set."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from raymarch.data.views import Views
from raymarch.diagnosis.features import Features, features
from raymarch.geometry.camera import Camera

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


def intensity(views: Views, view: int) -> np.ndarray:
    """Intensity (height, width) float32 of a view, its brightest at 1."""
    grey = views.rgb(view) @ LUMINANCE
    return grey / max(float(np.quantile(grey[::4, ::4], 0.995)), 1e-3)


def sized(image: np.ndarray) -> tuple[np.ndarray, float]:
    """Image of a size to look for points in, by area or twice as large by lines; and how much larger it is."""
    height, width = image.shape
    k = int(np.ceil(np.sqrt(height * width) / SIDE))
    if k > 1:
        cut = image[: height // k * k, : width // k * k]
        return cut.reshape(height // k, k, width // k, k).mean((1, 3)), 1 / k
    if max(height, width) > SMALL or min(height, width) < 2:
        return image, 1.0
    for axis in (0, 1):
        before = np.concatenate([image.take([0], axis), image.take(range(image.shape[axis] - 1), axis)], axis)
        after = np.concatenate([image.take(range(1, image.shape[axis]), axis), image.take([-1], axis)], axis)
        pair = np.stack([0.75 * image + 0.25 * before, 0.75 * image + 0.25 * after], axis + 1)
        shape = list(image.shape)
        shape[axis] *= 2
        image = pair.reshape(shape)
    return image, 2.0


def features_of(views: Views) -> list[Features]:
    """Feature points of each view, in pixels of its image."""

    def one(view: int) -> Features:
        image, scale = sized(intensity(views, view))
        found = features(image, POINTS)
        return Features(found.place / scale, found.descriptor)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(len(views))))


def neighbours(cameras: Sequence[Camera], count: int = NEIGHBOURS) -> list[tuple[int, int]]:
    """Pairs of views that stand and look nearly alike; by angles that no choice of axes changes, and by distances."""
    poses = np.array([camera.world_from_camera for camera in cameras])
    rotation, eye = poses[:, :3, :3], poses[:, :3, 3]
    trace = np.einsum("iab,jab->ij", rotation, rotation)
    angle = np.arccos(np.clip((trace - 1) / 2, -1, 1))
    distance = np.linalg.norm(eye[:, None] - eye[None], axis=-1)
    apart = angle / max(float(np.median(angle)), 1e-9) + distance / max(float(np.median(distance)), 1e-9)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, : min(count, len(cameras) - 1)]
    return sorted({(min(i, int(j)), max(i, int(j))) for i, some in enumerate(nearest) for j in some})


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
