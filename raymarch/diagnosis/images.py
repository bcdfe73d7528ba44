"""Exposure of views against each other: brightness of the points that they have in common."""

from __future__ import annotations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches
from raymarch.views.agreement import alpha_of
from raymarch.views.display_values import linear_of_srgb
from raymarch.views.views import Views

SPREAD, MUCH = 0.4, 0.85  # f-stops between views, by what they see in common: worth a note, a warning
DRIFT = 0.45  # f-stops from the first view to the last
DARKEST, BRIGHTEST = 8 / 255, 250 / 255  # of a point whose brightness is compared
FEWEST, FEW_VIEWS = 100, 8  # matches by which exposures can be told; views, by which a drift
CURE = "fit an exposure for each image (--preset photos), or develop all photos alike"


def brightness(views: Views, matches: Matches, encoded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean colours (match, 3) of linear light about each match in its two views; NaN where too dark, bright or thin."""
    radius = max(int(np.sqrt(np.mean([c.width * c.height for c in views.cameras])) / 250), 1)
    out = np.full((2, len(matches), 3), np.nan)
    for k, (view, place) in enumerate([(matches.first, matches.at_first), (matches.second, matches.at_second)]):
        for i in np.unique(view):
            mine = np.flatnonzero(view == i)
            out[k, mine] = _about(views.image(int(i)), place[mine], radius, encoded)
    return out[0], out[1]


def _about(image: np.ndarray, place: np.ndarray, radius: int, encoded: bool) -> np.ndarray:
    """Mean colours (point, 3) of linear light in squares about places [pixel] of an image."""
    height, width, channels = image.shape
    step = np.arange(-radius, radius + 1)
    rows = np.clip(np.floor(place[:, 1]).astype(int)[:, None, None] + step[:, None], 0, height - 1)
    columns = np.clip(np.floor(place[:, 0]).astype(int)[:, None, None] + step[None], 0, width - 1)
    patch = image[rows, columns].reshape(len(place), -1, channels).astype(float) / 255
    colour = patch[..., :3]
    bad = (colour.max((1, 2)) > BRIGHTEST) | (colour.mean((1, 2)) < DARKEST)
    if channels == 4:
        bad |= patch[..., 3].min(1) < 0.99
    mean = (linear_of_srgb(colour) if encoded else colour).mean(1)
    mean[bad] = np.nan
    return np.maximum(mean, 1e-5)


def exposures(views: Views, matches: Matches, encoded: bool = True) -> np.ndarray | None:
    """Exposures (view, 3) [f-stop] of each channel, their median at 0, by least absolute differences; or None."""
    first, second = brightness(views, matches, encoded)
    known = np.isfinite(first).all(1) & np.isfinite(second).all(1)
    if known.sum() < FEWEST:
        return None
    i, j = matches.first[known], matches.second[known]
    step = np.log2(second[known] / first[known])
    count = len(views)
    found = np.stack([consensus(count, i, j, step[:, channel]) for channel in range(3)], axis=1)
    met = np.bincount(i, minlength=count) + np.bincount(j, minlength=count) >= 8
    if met.sum() < 2:
        return None
    found[~met] = np.nan
    return found - np.nanmedian(found, axis=0)


def consensus(count: int, first: np.ndarray, second: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Values (count,) whose steps from `first` to `second` are nearest to those given, by least absolutes."""
    found: np.ndarray = np.zeros(count)
    for _ in range(10):
        rest = step - (found[second] - found[first])
        weight = 1 / np.maximum(np.abs(rest), 0.03)
        normal, right = np.zeros((count, count)), np.zeros(count)
        for a, b, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
            np.add.at(normal, (a, b), sign * weight)
        np.add.at(right, second, weight * step)
        np.add.at(right, first, -weight * step)
        ridge = 1e-3 * float(np.median(np.diag(normal))) + 1e-9
        found = np.linalg.solve(normal + ridge * np.eye(count), right)
    return found


def exposure(views: Views, matches: Matches, encoded: bool = True) -> Finding | None:
    """Exposure that differs between views: a warning where it drifts or differs much, else a note.

    `encoded` is whether the images are display values, as they should be.
    """
    found = exposures(views, matches, encoded)
    if found is None:
        return None
    known = np.isfinite(found).all(1)
    stops, place = np.median(found[known], axis=1), np.flatnonzero(known) / max(len(views) - 1, 1)
    low, high = np.quantile(stops, [0.04, 0.96])
    drift = float(np.polyfit(place, stops, 1)[0]) if len(stops) >= FEW_VIEWS else 0.0
    if high - low < SPREAD and abs(drift) < DRIFT:
        return None
    names = np.array(views.names)[known]
    message = f"exposure differs by {high - low:.1f} stops between views, from {names[stops.argmin()]} (darkest)"
    message += f" to {names[stops.argmax()]}"
    if abs(drift) >= DRIFT:
        message += f"; over the set it drifts by {drift:+.1f} stops"
    severity = "warning" if abs(drift) >= DRIFT or high - low >= MUCH else "note"
    return Finding("exposure", severity, message, CURE)


def exposure_by_alpha(views: Views) -> Finding | None:
    """Exposure that drifts over the set, by the brightness of what masks show, where there are no points to compare."""
    if not views.shows_silhouettes or len(views) < FEW_VIEWS:
        return None
    told = []
    for i in range(len(views)):
        image = views.image(i)
        weight = alpha_of(views, i, masked=0).astype(float)
        if weight.any():  # else it shows nothing whose brightness could be told
            light = linear_of_srgb(image[..., :3] / 255).mean(-1)
            stop = float(np.log2(max((light * weight).sum() / weight.sum(), 1e-5)))
            told.append((i / (len(views) - 1), stop))
    if len(told) < FEW_VIEWS:
        return None
    place, stops = np.array(told).T
    drift, start = np.polyfit(place, stops, 1)
    rest = np.std(stops - drift * place - start)
    if abs(drift) < DRIFT or rest > 0.25 * abs(drift) / np.sqrt(12):
        return None
    message = f"exposure drifts by {drift:+.1f} stops over the set, by the brightness of what the masks show"
    return Finding("exposure", "warning", message, CURE)
