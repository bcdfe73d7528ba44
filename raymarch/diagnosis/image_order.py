"""Order of the images against the cameras, where the images match each other but agree with no reading of the poses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches, match
from raymarch.diagnosis.silhouettes import silhouettes
from raymarch.io.files.folders import natural
from raymarch.matching.epipolar import agreeing, nearness, poses_of, sight
from raymarch.matching.matches import Features
from raymarch.views.views import Views

ASKED = 22  # views, of which each is compared with each
HALF = 0.5
STRONG = 2.5  # times as many matches as two views usually have, by which two are said to show the same
FEWEST = 20  # matches of such two


def image_order(views: Views, points: list[Features]) -> Finding:
    """Finding about images that match each other, but not where their cameras are."""
    asked = np.linspace(0, len(views) - 1, min(len(views), ASKED)).astype(int)
    pairs = [(int(i), int(j)) for i, j in combinations(asked, 2)]
    found = match(points, pairs)
    strong = _strong(found, len(views))
    poses = poses_of(views.cameras)
    for name, camera_of in _orders(views.names):
        moved = replace(strong, first=camera_of[strong.first], second=camera_of[strong.second])
        if not len(moved):
            break
        seen, near = sight(views.cameras, moved), nearness(views.cameras, moved)
        share = float(agreeing(poses, moved, seen, near).mean())
        if share > HALF:
            message = f"the images stand in another order than the cameras, {name}: so {share:.0%} of the matches agree"
            return Finding(
                "images-shuffled", "error", message, "sort images and cameras alike, by number or by letters"
            )
    if len(strong):
        message = (
            f"the images match each other, but in no reading of the poses: {len(strong)} matches of views"
            " that show the same do not lie where the cameras have them"
        )
        cure = (
            "check that each image is that of its camera: order, names, sorting; raymarch cameras finds poses anew;"
            " a pattern that repeats gives such matches too"
        )
        outlined = views.shows_silhouettes and not silhouettes(views)  # which speak for the poses
        return Finding("images-shuffled", "warning" if outlined else "error", message, cure)
    message = "the images agree with no reading of the poses, and hardly match each other"
    cure = "check that the poses are of these images; what looks alike from all around, as a ball, gives such matches"
    return Finding("poses-disagree", "warning", message, cure)


def _strong(found: Matches, count: int) -> Matches:
    """The matches of pairs of views that have many more than others have."""
    pair = found.first * count + found.second
    ids, inverse, size = np.unique(pair, return_inverse=True, return_counts=True)
    if not len(ids):
        return found
    many = size > max(STRONG * float(np.median(size)), FEWEST)
    if float(np.median(size)) > 4 * FEWEST:  # all views show the same
        many = size >= np.median(size)
    return found.take(many[inverse])


def _orders(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Likely orders: the camera (view,) of each image."""
    count = len(names)
    index = np.arange(count)
    yield "backwards", index[::-1]
    yield "moved by one", (index + 1) % count
    yield "moved by one", (index - 1) % count
    by_number = np.array(sorted(range(count), key=lambda i: natural(names[i])))
    by_letters = np.array(sorted(range(count), key=lambda i: names[i]))
    if (by_number != by_letters).any():
        place_number, place_letters = np.argsort(by_number), np.argsort(by_letters)
        yield "by number where the cameras are by letters", by_letters[place_number]
        yield "by letters where the cameras are by number", by_number[place_letters]
