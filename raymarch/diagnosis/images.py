"""Faults of images: exposure that drifts, linear light, the kind of alpha, blur, and images that are there twice.

Exposure is compared by the brightness of the points that views have in common, blur by the detail there."""

from __future__ import annotations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.errors import first_names
from raymarch.matching.matches import LUMINANCE, Features, Matches, blur, intensity
from raymarch.views.agreement import alpha_of
from raymarch.views.display_values import eight_bit, linear_of_srgb
from raymarch.views.views import Views

# f-stops between views, by what they see in common: worth a note, a warning
MIN_EXPOSURE_SPREAD, MIN_WARNED_SPREAD = 0.4, 0.85
MIN_EXPOSURE_DRIFT = 0.45  # f-stops from the first view to the last
MIN_BRIGHTNESS, MAX_BRIGHTNESS = 8 / 255, 250 / 255  # of a point whose brightness is compared
MIN_EXPOSURE_MATCHES, MIN_DRIFT_VIEWS = 100, 8  # matches by which exposures can be told; views, by which a drift
EXPOSURE_CURE = "fit an exposure for each image (--preset photos), or develop all photos alike"
MAX_VIEWS = 16  # views that are asked, evenly spread
MIN_PIXELS = 400  # pixels or points by which something can be told
OPAQUE_ALPHA, MIN_SHOWN_ALPHA = 255, 31  # of alpha
# median over highlight, log of upper over lower quartile: of linear light, not of display
MAX_LINEAR_MEDIAN, MIN_LINEAR_SPREAD = 0.38, 1.35
FIRST_BRIGHT_VALUE = 128  # display values from which linear light of 8 bits leaves some out
MAX_GAP_FRACTION = 2e-3  # of pixels in values that 8-bit linear light leaves out
ENCODING_CURE = (
    "encode them as sRGB (display values) before they are written to 8 bits; renderers call it the view transform"
)
MIN_OPAQUE_FRACTION = 1e-3  # of an image's pixels, that are opaque where it shows solid things
MIN_PREMULTIPLIED_SLOPE = 0.5  # of log colour by log alpha: 0 for straight alpha, 1 for premultiplied
MIN_BLUR = 1.2  # of log2 of fine detail, under the median view
MIN_SHARP_MATCHES = 100  # matches
PIXEL_STRIDE = 16  # pixels from one that is looked at to the next, to tell images apart


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
    drift = float(np.polyfit(place, stops, 1)[0]) if len(stops) >= MIN_DRIFT_VIEWS else 0.0
    if high - low < MIN_EXPOSURE_SPREAD and abs(drift) < MIN_EXPOSURE_DRIFT:
        return None
    names = np.array(views.names)[known]
    message = f"exposure differs by {high - low:.1f} stops between views, from {names[stops.argmin()]} (darkest)"
    message += f" to {names[stops.argmax()]}"
    if abs(drift) >= MIN_EXPOSURE_DRIFT:
        message += f"; over the set it drifts by {drift:+.1f} stops"
    severity = "warning" if abs(drift) >= MIN_EXPOSURE_DRIFT or high - low >= MIN_WARNED_SPREAD else "note"
    return Finding("exposure", severity, message, EXPOSURE_CURE)


def exposure_by_alpha(views: Views) -> Finding | None:
    """Exposure that drifts over the set, by the brightness of what masks show, where there are no points to compare."""
    if not views.shows_silhouettes or len(views) < MIN_DRIFT_VIEWS:
        return None
    told = []
    for i in range(len(views)):
        image = views.image(i)
        weight = alpha_of(views, i, masked=0).astype(float)
        if weight.any():  # else it shows nothing whose brightness could be told
            light = linear_of_srgb(image[..., :3] / 255).mean(-1)
            stop = float(np.log2(max((light * weight).sum() / weight.sum(), 1e-5)))
            told.append((i / (len(views) - 1), stop))
    if len(told) < MIN_DRIFT_VIEWS:
        return None
    place, stops = np.array(told).T
    drift, start = np.polyfit(place, stops, 1)
    rest = np.std(stops - drift * place - start)
    if abs(drift) < MIN_EXPOSURE_DRIFT or rest > 0.25 * abs(drift) / np.sqrt(12):
        return None
    message = f"exposure drifts by {drift:+.1f} stops over the set, by the brightness of what the masks show"
    return Finding("exposure", "warning", message, EXPOSURE_CURE)


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


def exposures(views: Views, matches: Matches, encoded: bool = True) -> np.ndarray | None:
    """Exposures (view, 3) [f-stop] of each channel, their median at 0, by least absolute differences; or None."""
    first, second = brightness(views, matches, encoded)
    known = np.isfinite(first).all(1) & np.isfinite(second).all(1)
    if known.sum() < MIN_EXPOSURE_MATCHES:
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


def brightness(views: Views, matches: Matches, encoded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean colours (match, 3) of linear light about each match in its two views; NaN where too dark, bright or thin."""
    radius = max(int(np.sqrt(np.mean([c.width * c.height for c in views.cameras])) / 250), 1)
    out = np.full((2, len(matches), 3), np.nan)
    for k, (view, place) in enumerate([(matches.first, matches.at_first), (matches.second, matches.at_second)]):
        for i in np.unique(view):
            mine = np.flatnonzero(view == i)
            out[k, mine] = _patch_colours(views.image(int(i)), place[mine], radius, encoded)
    return out[0], out[1]


def _patch_colours(image: np.ndarray, place: np.ndarray, radius: int, encoded: bool) -> np.ndarray:
    """Mean colours (point, 3) of linear light in squares about places [pixel] of an image."""
    height, width, channels = image.shape
    step = np.arange(-radius, radius + 1)
    rows = np.clip(np.floor(place[:, 1]).astype(int)[:, None, None] + step[:, None], 0, height - 1)
    columns = np.clip(np.floor(place[:, 0]).astype(int)[:, None, None] + step[None], 0, width - 1)
    patch = image[rows, columns].reshape(len(place), -1, channels).astype(float) / 255
    colour = patch[..., :3]
    bad = (colour.max((1, 2)) > MAX_BRIGHTNESS) | (colour.mean((1, 2)) < MIN_BRIGHTNESS)
    if channels == 4:
        bad |= patch[..., 3].min(1) < 0.99
    mean = (linear_of_srgb(colour) if encoded else colour).mean(1)
    mean[bad] = np.nan
    return np.maximum(mean, 1e-5)


def colour_space(views: Views, points: list[Features]) -> Finding | None:
    """Linear light in images that are to be display values."""
    if (certain := linear_encoding(views)) is not None:
        return certain
    values = _point_colours(views, points)
    if len(values) < MIN_PIXELS:
        return None
    lower, middle, upper, most = np.quantile(values, [0.25, 0.5, 0.75, 0.99])
    if most < 0.3 or middle > MAX_LINEAR_MEDIAN * most or upper < np.exp(MIN_LINEAR_SPREAD) * max(lower, 1e-6):
        return None
    message = (
        f"the images are likely in linear light: half of what they show is under {middle / most:.0%} of its highlight"
    )
    return Finding("linear-light", "warning", message, ENCODING_CURE)


def _spread_views(views: Views) -> list[int]:
    return sorted(set(np.linspace(0, len(views) - 1, min(len(views), MAX_VIEWS)).astype(int).tolist()))


def _point_colours(views: Views, points: list[Features]) -> np.ndarray:
    """Display values at feature points, where they are opaque."""
    out = [np.zeros(0)]
    for i in _spread_views(views):
        image = views.image(i)
        column, row = np.floor(points[i].place).astype(int).T
        values = image[row, column]
        if image.shape[2] == 4:
            values = values[values[:, 3] == OPAQUE_ALPHA]
        out.append(values[:, :3] @ LUMINANCE / 255)
    return np.concatenate(out)


def linear_encoding(views: Views) -> Finding | None:
    """Linear light in images whose bright pixels use none of the values that 8-bit sRGB leaves out on its way to it."""
    reached = eight_bit(linear_of_srgb(np.arange(256) / 255))
    left_out = np.ones(256, bool)
    left_out[reached] = False
    left_out[:FIRST_BRIGHT_VALUE] = False
    used = np.zeros(256)
    for i in _spread_views(views):
        image = views.image(i)
        solid = image[..., :3] if image.shape[2] == 3 else image[image[..., 3] > MIN_SHOWN_ALPHA][:, :3]
        used += np.bincount(solid.ravel(), minlength=256)
    bright = used[FIRST_BRIGHT_VALUE:255]
    enough = bright.sum() > 10 * MIN_PIXELS and np.count_nonzero(bright) > 40
    if not enough or used[left_out].sum() > MAX_GAP_FRACTION * bright.sum():
        return None
    message = "the images are in linear light: they use only the values that sRGB makes on its way to it"
    return Finding("linear-light", "warning", message, ENCODING_CURE)


def alpha_kind(views: Views) -> Finding | None:
    """Premultiplied colours in images whose alpha is taken as straight, or colours divided by alpha once too often."""
    if not views.has_alpha:
        return None
    asked = _spread_views(views)
    solid = any((views.image(i)[..., 3] == OPAQUE_ALPHA).mean() > MIN_OPAQUE_FRACTION for i in asked)
    parts = [_rims(views.image(i), solid) for i in asked]
    alpha, ratio, within = (np.concatenate(several) for several in zip(*parts, strict=True))
    if len(alpha) < MIN_PIXELS:
        return None
    slope = _slope(alpha, ratio)
    if slope > MIN_PREMULTIPLIED_SLOPE and within.mean() > 0.99:
        message = (
            "the colours are premultiplied by alpha, but are taken as straight: they darken with alpha, none exceeds it"
        )
        cure = "divide the colours by alpha, or export with straight (unassociated) alpha"
        return Finding("premultiplied-alpha", "warning", message, cure)
    if solid and slope < -MIN_PREMULTIPLIED_SLOPE / 2 and within.mean() < 0.5:
        message = "the colours brighten towards the rims as if straight ones had been divided by alpha once more"
        return Finding("divided-alpha", "warning", message, "export with straight alpha, divided by it once or never")
    return None


def _slope(alpha: np.ndarray, ratio: np.ndarray) -> float:
    """Slope of log ratio by log alpha, by medians of eighths."""
    order = np.array_split(np.argsort(alpha), 8)
    x, y = (np.array([np.median(np.log(np.maximum(v[part], 0.02))) for part in order]) for v in (alpha, ratio))
    spread = x - x.mean()
    return float(spread @ y / max(float(spread @ spread), 1e-9))


def _rims(image: np.ndarray, bodies: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half-transparent pixels: alpha, colour over that of solid ones beside them, and whether alpha bounds it."""
    alpha, colour = image[..., 3].astype(np.float32) / 255, image[..., :3].astype(np.float32) / 255
    value, solid = colour.mean(-1), image[..., 3] == OPAQUE_ALPHA
    count, total = _box_sums(solid.astype(np.float32)), _box_sums(value * solid)
    beside = total / np.maximum(count, 1)
    if not bodies:  # colours are held against one of all of it
        count, beside = np.full_like(alpha, 9), np.full_like(alpha, 1)
    rim = (alpha > 0.1) & (alpha < 0.9) & (count >= 3) & (beside > 0.1)
    within = colour.max(-1) <= alpha + 1.5 / 255
    return alpha[rim], value[rim] / beside[rim], within[rim]


def _box_sums(image: np.ndarray) -> np.ndarray:
    """Sum over squares of 5 x 5 pixels."""
    wide = np.pad(image, 2)
    rows = np.sum([wide[k : k + image.shape[0]] for k in range(5)], axis=0)
    return np.sum([rows[:, k : k + image.shape[1]] for k in range(5)], axis=0)


def blurred_views(views: Views, matches: Matches) -> Finding | None:
    """Views with far less fine detail than their neighbours have at the same points."""
    if len(matches) < MIN_SHARP_MATCHES:
        return None
    detail = np.zeros((2, len(matches)))
    for i in range(len(views)):
        image, scale = intensity(views, i)
        fine = blur(np.abs(image - blur(image, 1.0)), 3.0)
        coarse = blur(np.abs(blur(image, 1.0) - blur(image, 4.0)), 3.0)
        value = np.log2(np.maximum(fine, 1e-4) / np.maximum(coarse, 1e-4))
        for k, (view, place) in enumerate([(matches.first, matches.at_first), (matches.second, matches.at_second)]):
            mine = view == i
            column, row = np.minimum(np.floor(place[mine] * scale).astype(int), np.array(image.shape[::-1]) - 1).T
            detail[k, mine] = value[row, column]
    found = consensus(len(views), matches.first, matches.second, detail[1] - detail[0])
    found -= np.median(found)
    bad = found < -MIN_BLUR
    if not bad.any() or bad.mean() > 0.25:
        return None
    names = first_names([views.names[int(i)] for i in np.flatnonzero(bad)])
    least = 2 ** -float(found.min())
    message = (
        f"view {names} is blurred: up to {least:.1f} times less fine detail than its neighbours show at the same points"
    )
    return Finding("blurred", "warning", message, "take it out, or a sharper photo in its place")


def duplicate_images(views: Views) -> Finding | None:
    """Images that are there more than once, pixel for pixel, for different cameras."""
    first: dict[bytes, int] = {}
    twice = []
    for i in range(len(views)):
        image = views.image(i)
        key = image[::PIXEL_STRIDE, ::PIXEL_STRIDE].tobytes()
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
    names = first_names([f"{views.names[j]} (as {views.names[i]})" for i, j in moved or twice])
    if moved:
        message = f"{len(moved)} images are copies of others but have other poses: {names}"
        cure = "take one of each two out, one of its poses is wrong; unless it shows what looks alike from both"
        return Finding("duplicates", "warning", message, cure)
    return Finding("duplicates", "note", f"{len(twice)} images are there twice: {names}", "take the copies out")


def count_distinct(views: Views) -> int:
    """Count of the images that differ, by a few of their pixels."""
    return len({views.image(i)[::PIXEL_STRIDE, ::PIXEL_STRIDE].tobytes() for i in range(len(views))})
