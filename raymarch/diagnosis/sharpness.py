"""Blurred views, against those that see the same; and images that are there twice."""

from __future__ import annotations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.images import consensus
from raymarch.diagnosis.matches import Matches, intensity
from raymarch.errors import named
from raymarch.matching.matches import blurred
from raymarch.views.views import Views

BLURRED = 1.2  # of log2 of fine detail, under the median view
FEWEST = 100  # matches
SPARSE = 16  # pixels from one that is looked at to the next, to tell images apart


def blur(views: Views, matches: Matches) -> Finding | None:
    """Views with far less fine detail than their neighbours have at the same points."""
    if len(matches) < FEWEST:
        return None
    detail = np.zeros((2, len(matches)))
    for i in range(len(views)):
        image, scale = intensity(views, i)
        fine = blurred(np.abs(image - blurred(image, 1.0)), 3.0)
        coarse = blurred(np.abs(blurred(image, 1.0) - blurred(image, 4.0)), 3.0)
        value = np.log2(np.maximum(fine, 1e-4) / np.maximum(coarse, 1e-4))
        for k, (view, place) in enumerate([(matches.first, matches.at_first), (matches.second, matches.at_second)]):
            mine = view == i
            column, row = np.minimum(np.floor(place[mine] * scale).astype(int), np.array(image.shape[::-1]) - 1).T
            detail[k, mine] = value[row, column]
    found = consensus(len(views), matches.first, matches.second, detail[1] - detail[0])
    found -= np.median(found)
    bad = found < -BLURRED
    if not bad.any() or bad.mean() > 0.25:
        return None
    names = named([views.names[int(i)] for i in np.flatnonzero(bad)])
    least = 2 ** -float(found.min())
    message = (
        f"view {names} is blurred: up to {least:.1f} times less fine detail than its neighbours show at the same points"
    )
    return Finding("blurred", "warning", message, "take it out, or a sharper photo in its place")


def duplicates(views: Views) -> Finding | None:
    """Images that are there more than once, pixel for pixel, for different cameras."""
    first: dict[bytes, int] = {}
    twice = []
    for i in range(len(views)):
        image = views.image(i)
        key = image[::SPARSE, ::SPARSE].tobytes()
        if key not in first:
            first[key] = i
            continue
        other = views.image(first[key])
        plain = (image == image[:1, :1]).all()
        if not plain and other.shape == image.shape and (image == other).all():
            twice.append((first[key], i))
    moved = [
        (i, j)
        for i, j in twice
        if np.abs(views.cameras[i].world_from_camera - views.cameras[j].world_from_camera).max() > 1e-6
    ]
    if not twice:
        return None
    names = named([f"{views.names[j]} (as {views.names[i]})" for i, j in moved or twice])
    if moved:
        message = f"{len(moved)} images are copies of others but have other poses: {names}"
        cure = "take one of each two out, one of its poses is wrong; unless it shows what looks alike from both"
        return Finding("duplicates", "warning", message, cure)
    return Finding("duplicates", "note", f"{len(twice)} images are there twice: {names}", "take the copies out")


def distinct(views: Views) -> int:
    """Count of the images that differ, by a few of their pixels."""
    return len({views.image(i)[::SPARSE, ::SPARSE].tobytes() for i in range(len(views))})
