"""Features of images and their matches: feature points of each view, and those that neighbouring views have in common.

Points are extrema of differences of Gaussians, with histograms of gradients as descriptors: the scale-invariant
features of Lowe (2004), "Distinctive image features from scale-invariant keypoints"."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

FIRST_SIGMA = 1.2  # blur of an octave's first level [pixel]
LEVELS_AN_OCTAVE = 2  # levels from one blur to its double
OCTAVES = 4
MIN_OCTAVE_SIDE = 24  # pixels a side of an octave
MAX_EDGE_RATIO = 12.0  # ratio of curvatures above which an extremum lies along an edge
MIN_CONTRAST = 0.004  # of the range of intensity: contrast of a point
PATCH_SAMPLES, DESCRIPTOR_CELLS, DESCRIPTOR_BINS = 12, 4, 8  # a side of a descriptor's patch; its cells; its directions
PATCH_REACH = 6.0  # half a patch, in blurs of its level
IMAGE_SIDE = 640  # pixels: the side of a square with as many as a large image is made small to
MAX_ENLARGED_SIDE = 320  # a side, under which an image is made twice as large, for more points
POINTS_AN_IMAGE = 500  # of an image
NEIGHBOUR_VIEWS = 4  # of a view, that it is compared with
MAX_DISTANCE_RATIO = 0.8  # of the distance to the second best descriptor (Lowe)
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


def match(points: Sequence[Features], pairs: Sequence[tuple[int, int]]) -> Matches:
    """Matches of pairs of views: points that are each other's nearest, and much nearer than the second."""

    def one(pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        return _nearest_pairs(points[pair[0]].descriptor, points[pair[1]].descriptor)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, pairs))
    count = [len(first) for first, _ in found]
    ends = np.repeat(np.array(pairs, int).reshape(-1, 2), count, axis=0)
    empty = [np.zeros((0, 2))]
    at_first = [points[i].place[first] for (i, _), (first, _) in zip(pairs, found, strict=True)]
    at_second = [points[j].place[second] for (_, j), (_, second) in zip(pairs, found, strict=True)]
    return Matches(ends[:, 0], ends[:, 1], np.concatenate(at_first or empty), np.concatenate(at_second or empty))


def neighbours(
    cameras: Sequence[Camera], count: int = NEIGHBOUR_VIEWS, asked: Sequence[int] | None = None
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


def features_of(views: Views) -> list[Features]:
    """Feature points of each view, in pixels of its image; of other channels in what is shown of them, none where that
    is unknown."""
    views = views.in_colour()

    def one(view: int) -> Features:
        image, scale = intensity(views, view)
        found = features(image, POINTS_AN_IMAGE)
        place = found.place / scale
        if (mask := views.mask(view)) is not None:
            column, row = np.minimum(np.floor(place).astype(int), np.array(mask.shape[::-1]) - 1).T
            counts = mask[row, column]
            place, found = place[counts], Features(found.place[counts], found.descriptor[counts])
        return Features(place, found.descriptor)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(len(views))))


def intensity(views: Views, view: int) -> tuple[np.ndarray, float]:
    """Intensity (row, column) float32 of a view, its brightest at 1, of a size to look for points in; and how many of
    its pixels are one of the image's: by area where that is large, twice as large by lines where it is small."""
    image = views.image(view)
    height, width, channels = image.shape
    k = int(np.ceil(np.sqrt(height * width) / IMAGE_SIDE))
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
    if k > 1 or max(height, width) > MAX_ENLARGED_SIDE or min(height, width) < 2:
        return grey, 1 / k
    return _double(_double(grey, 0), 1), 2.0


def _double(image: np.ndarray, axis: int) -> np.ndarray:
    """An image with twice as many pixels along an axis, by lines between them."""
    length = image.shape[axis]
    before, after = image.take([0, *range(length - 1)], axis), image.take([*range(1, length), length - 1], axis)
    pair = np.stack([0.75 * image + 0.25 * before, 0.75 * image + 0.25 * after], axis + 1)
    return pair.reshape(tuple(2 * n if a == axis else n for a, n in enumerate(image.shape)))


def _nearest_pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the descriptors that match."""
    if min(len(first), len(second)) < 2:
        return np.zeros(0, int), np.zeros(0, int)
    alike = first @ second.T
    index = np.arange(len(first))
    best = alike.argmax(1)
    mutual = alike.argmax(0)[best] == index
    highest = alike[index, best]
    alike[index, best] = -1
    nearer = (1 - highest) < MAX_DISTANCE_RATIO**2 * (1 - alike.max(1))
    keep = mutual & nearer
    return index[keep], best[keep]


class Features(NamedTuple):
    """Feature points: places (n, 2) [pixel, the image's corner at 0], descriptors (n, 128) of length 1."""

    place: np.ndarray
    descriptor: np.ndarray

    def __len__(self) -> int:
        return len(self.place)


def features(image: np.ndarray, most: int) -> Features:
    """Feature points of an intensity image (height, width) in 0..1: at most `most` of the highest contrast.

    Example:
        >>> row, column = np.ogrid[:64, :64]
        >>> features(np.exp(-((row - 22) ** 2 + (column - 42) ** 2) / 12), 9).place.round(1).tolist()
        [[42.5, 22.5]]
    """
    levels, size, scale = image.astype(np.float32), image.shape, 1.0
    levels = blur(levels, float(np.sqrt(FIRST_SIGMA**2 - 0.25)))
    found = []
    for _octave in range(OCTAVES):
        if min(levels.shape) < MIN_OCTAVE_SIDE:
            break
        stack = _stack(levels)
        rows, columns, level, strength = _extrema(stack)
        found.append((stack, rows, columns, level, strength, scale))
        levels, scale = stack[LEVELS_AN_OCTAVE][::2, ::2], scale * 2
    strength = np.concatenate([f[4] for f in found]) if found else np.zeros(0)
    least = np.sort(strength)[-most] if len(strength) > most else 0.0
    parts = []
    for stack, rows, columns, level, strength, scale in found:
        keep = strength >= least
        parts.append(_describe(stack, rows[keep], columns[keep], level[keep], scale))
    if not parts:
        return Features(
            np.zeros((0, 2)), np.zeros((0, DESCRIPTOR_CELLS * DESCRIPTOR_CELLS * DESCRIPTOR_BINS), np.float32)
        )
    place, descriptor = (np.concatenate(several) for several in zip(*parts, strict=True))
    inside = (place > 0).all(1) & (place < (size[1], size[0])).all(1)
    return Features(place[inside], descriptor[inside])


def blur(image: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian blur of an image (height, width)."""
    radius = max(int(np.ceil(2.5 * sigma)), 1)
    weight = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weight = (weight / weight.sum()).astype(np.float32)
    for axis in (0, 1):
        ends = [(radius, radius) if a == axis else (0, 0) for a in (0, 1)]
        wide, length = np.pad(image, ends, mode="edge"), image.shape[axis]
        parts = [wide[k : k + length] if axis == 0 else wide[:, k : k + length] for k in range(2 * radius + 1)]
        image = parts[radius] * weight[radius]
        for k in range(radius):
            image += (parts[k] + parts[-1 - k]) * weight[k]
    return image


def _stack(first: np.ndarray) -> list[np.ndarray]:
    """Levels of an octave, each blurred by 2^(1 / STEPS) times as much as the one before."""
    stack = [first]
    for k in range(LEVELS_AN_OCTAVE + 2):
        sigma = FIRST_SIGMA * 2 ** (k / LEVELS_AN_OCTAVE)
        stack.append(blur(stack[-1], sigma * float(np.sqrt(2 ** (2 / LEVELS_AN_OCTAVE) - 1))))
    return stack


def _extrema(stack: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Rows, columns, levels and contrasts of the extrema of an octave's differences."""
    differences = np.stack([after - before for before, after in pairwise(stack)])
    found = []
    for level in range(1, len(differences) - 1):
        here = differences[level, 1:-1, 1:-1]
        most = differences[level - 1 : level + 2].max(0)
        least = differences[level - 1 : level + 2].min(0)
        for axis in (0, 1):
            cut = [slice(None)] * 2
            three = []
            for k in range(3):
                cut[axis] = slice(k, most.shape[axis] - 2 + k)
                three.append(tuple(cut))
            most = np.maximum(np.maximum(most[three[0]], most[three[1]]), most[three[2]])
            least = np.minimum(np.minimum(least[three[0]], least[three[1]]), least[three[2]])
        peak = ((here == most) | (here == least)) & (np.abs(here) > MIN_CONTRAST)
        rows, columns = np.nonzero(peak)
        found.append(_refine_extrema(differences[level], rows + 1, columns + 1, level))
    return tuple(np.concatenate(several) for several in zip(*found, strict=True))


def _refine_extrema(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, level: int) -> tuple[np.ndarray, ...]:
    """The extrema that are no edges, their places to a part of a pixel by a parabola through their neighbours."""
    value = image[rows, columns]
    up, down, left, right = (image[rows + r, columns + c] for r, c in ((-1, 0), (1, 0), (0, -1), (0, 1)))
    along_y, along_x = up + down - 2 * value, left + right - 2 * value
    corners = [image[rows + r, columns + c] for r, c in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
    mixed = (corners[0] + corners[1] - corners[2] - corners[3]) / 4
    determinant = along_x * along_y - mixed**2
    keep = (along_x + along_y) ** 2 * MAX_EDGE_RATIO < (MAX_EDGE_RATIO + 1) ** 2 * determinant
    dx, dy = (left - right) / 2, (up - down) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        shift_x = np.clip((along_y * dx - mixed * dy) / determinant, -0.6, 0.6)
        shift_y = np.clip((along_x * dy - mixed * dx) / determinant, -0.6, 0.6)
    full = np.full(len(rows), level)
    return tuple(a[keep] for a in (rows + shift_y, columns + shift_x, full, np.abs(value)))


def _describe(
    stack: list[np.ndarray], rows: np.ndarray, columns: np.ndarray, level: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Places in the image and descriptors of an octave's points."""
    place = np.stack([columns, rows], -1) * scale + 0.5  # as [::2] keeps the even ones
    descriptor = np.zeros((len(rows), DESCRIPTOR_CELLS * DESCRIPTOR_CELLS * DESCRIPTOR_BINS), np.float32)
    for each in np.unique(level):
        chosen = level == each
        dy, dx = np.gradient(stack[each])
        spread = FIRST_SIGMA * 2 ** (each / LEVELS_AN_OCTAVE)
        descriptor[chosen] = _histograms(dx, dy, rows[chosen], columns[chosen], spread)
    return place, descriptor


def _cells() -> tuple[np.ndarray, np.ndarray]:
    """Offsets (sample, 2) of a patch in -1..1, and how much each sample counts for each cell (cell, sample)."""
    side = (np.arange(PATCH_SAMPLES) + 0.5) / PATCH_SAMPLES * 2 - 1
    offset = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    middle = (np.arange(DESCRIPTOR_CELLS) + 0.5) / DESCRIPTOR_CELLS * 2 - 1
    share = np.maximum(1 - np.abs(side[None] - middle[:, None]) * DESCRIPTOR_CELLS / 2, 0)
    weight = np.einsum("ai,bj->abij", share, share).reshape(DESCRIPTOR_CELLS * DESCRIPTOR_CELLS, -1)
    return offset, (weight * np.exp(-(offset**2).sum(1))).astype(np.float32)


PATCH_OFFSETS, PATCH_WEIGHTS = _cells()


def _histograms(dx: np.ndarray, dy: np.ndarray, rows: np.ndarray, columns: np.ndarray, spread: float) -> np.ndarray:
    """Descriptors (point, 128), turned by the direction that prevails about each point."""
    turn = _direction(*_patch_gradients(dx, dy, rows, columns, spread * 0.6 * PATCH_REACH, np.zeros(len(rows))))
    length, angle = _patch_gradients(dx, dy, rows, columns, spread * PATCH_REACH, turn)
    bin_of = (angle - turn[:, None]) * (DESCRIPTOR_BINS / (2 * np.pi)) % DESCRIPTOR_BINS
    lower = bin_of.astype(np.int32) % DESCRIPTOR_BINS
    upper_share = bin_of - np.floor(bin_of)
    count, samples = length.shape
    soft = np.zeros((count * samples, DESCRIPTOR_BINS), np.float32)
    index = np.arange(count * samples)
    soft[index, lower.ravel()] = (length * (1 - upper_share)).ravel()
    soft[index, (lower.ravel() + 1) % DESCRIPTOR_BINS] = (length * upper_share).ravel()
    out = (PATCH_WEIGHTS @ soft.reshape(count, samples, DESCRIPTOR_BINS)).reshape(count, -1)
    out /= np.maximum(np.abs(out).sum(1, keepdims=True), 1e-12)
    return np.sqrt(out)  # so that their product is the histograms' likeness (Arandjelovic & Zisserman 2012)


def _patch_gradients(
    dx: np.ndarray, dy: np.ndarray, rows: np.ndarray, columns: np.ndarray, reach: float, turn: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and angles (point, sample) of the gradients in a turned patch about each point."""
    cos, sin = np.cos(turn)[:, None] * reach, np.sin(turn)[:, None] * reach
    x = columns[:, None] + cos * PATCH_OFFSETS[:, 0] - sin * PATCH_OFFSETS[:, 1]
    y = rows[:, None] + sin * PATCH_OFFSETS[:, 0] + cos * PATCH_OFFSETS[:, 1]
    height, width = dx.shape
    row, column = (np.clip(np.rint(a), 0, n - 1).astype(np.int32) for a, n in ((y, height), (x, width)))
    index = row * width + column
    gx, gy = dx.ravel()[index], dy.ravel()[index]
    return np.sqrt(gx * gx + gy * gy), np.arctan2(gy, gx)


def _direction(length: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Direction (point,) of the highest peak of a histogram of gradients, in 36 bins."""
    weight = length * np.exp(-2 * (PATCH_OFFSETS**2).sum(1))
    count = len(length)
    bin_of = np.floor(angle * (36 / (2 * np.pi))).astype(np.int32) % 36
    histogram = np.bincount((np.arange(count)[:, None] * 36 + bin_of).ravel(), weight.ravel(), count * 36)
    smooth: np.ndarray = histogram.reshape(count, 36)
    for _ in range(2):
        smooth = (np.roll(smooth, 1, 1) + smooth + np.roll(smooth, -1, 1)) / 3
    best = smooth.argmax(1)
    here, before, after = (smooth[np.arange(count), (best + k) % 36] for k in (0, -1, 1))
    shift = 0.5 * (before - after) / np.minimum(before + after - 2 * here, -1e-12)
    return (best + 0.5 + np.clip(shift, -0.5, 0.5)) * (2 * np.pi / 36)
