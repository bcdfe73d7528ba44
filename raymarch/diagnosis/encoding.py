"""Encoding of images: linear light where display values are wanted, and the kind of alpha."""

from __future__ import annotations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import LUMINANCE
from raymarch.matching.matches import Features
from raymarch.views.display_values import eight_bit, linear_of_srgb
from raymarch.views.views import Views

MOST = 16  # views that are asked, evenly spread
FEWEST = 400  # pixels or points by which something can be told
OPAQUE, SHOWING = 255, 31  # of alpha
DARK, WIDE = 0.38, 1.35  # median over highlight, log of upper over lower quartile: of linear light, not of display
BRIGHT = 128  # display values from which linear light of 8 bits leaves some out
EMPTY = 2e-3  # of pixels in values that 8-bit linear light leaves out
ENCODE = "encode them as sRGB (display values) before they are written to 8 bits; renderers call it the view transform"
BODY = 1e-3  # of an image's pixels, that are opaque where it shows solid things
SLOPE = 0.5  # of log colour by log alpha: 0 for straight alpha, 1 for premultiplied


def colour_space(views: Views, points: list[Features]) -> Finding | None:
    """Linear light in images that are to be display values."""
    if (certain := combed(views)) is not None:
        return certain
    values = _at_points(views, points)
    if len(values) < FEWEST:
        return None
    lower, middle, upper, most = np.quantile(values, [0.25, 0.5, 0.75, 0.99])
    if most < 0.3 or middle > DARK * most or upper < np.exp(WIDE) * max(lower, 1e-6):
        return None
    message = (
        f"the images are likely in linear light: half of what they show is under {middle / most:.0%} of its highlight"
    )
    return Finding("linear-light", "warning", message, ENCODE)


def _spread(views: Views) -> list[int]:
    return sorted(set(np.linspace(0, len(views) - 1, min(len(views), MOST)).astype(int).tolist()))


def _at_points(views: Views, points: list[Features]) -> np.ndarray:
    """Display values at feature points, where they are opaque."""
    out = [np.zeros(0)]
    for i in _spread(views):
        image = views.image(i)
        column, row = np.floor(points[i].place).astype(int).T
        values = image[row, column]
        if image.shape[2] == 4:
            values = values[values[:, 3] == OPAQUE]
        out.append(values[:, :3] @ LUMINANCE / 255)
    return np.concatenate(out)


def combed(views: Views) -> Finding | None:
    """Linear light in images whose bright pixels use none of the values that 8-bit sRGB leaves out on its way to it."""
    reached = eight_bit(linear_of_srgb(np.arange(256) / 255))
    left_out = np.ones(256, bool)
    left_out[reached] = False
    left_out[:BRIGHT] = False
    used = np.zeros(256)
    for i in _spread(views):
        image = views.image(i)
        solid = image[..., :3] if image.shape[2] == 3 else image[image[..., 3] > SHOWING][:, :3]
        used += np.bincount(solid.ravel(), minlength=256)
    bright = used[BRIGHT:255]
    enough = bright.sum() > 10 * FEWEST and np.count_nonzero(bright) > 40
    if not enough or used[left_out].sum() > EMPTY * bright.sum():
        return None
    message = "the images are in linear light: they use only the values that sRGB makes on its way to it"
    return Finding("linear-light", "warning", message, ENCODE)


def alpha_kind(views: Views) -> Finding | None:
    """Premultiplied colours in images whose alpha is taken as straight, or colours divided by alpha once too often."""
    if not views.has_alpha:
        return None
    asked = _spread(views)
    solid = any((views.image(i)[..., 3] == OPAQUE).mean() > BODY for i in asked)
    parts = [_rims(views.image(i), solid) for i in asked]
    alpha, ratio, within = (np.concatenate(several) for several in zip(*parts, strict=True))
    if len(alpha) < FEWEST:
        return None
    slope = _slope(alpha, ratio)
    if slope > SLOPE and within.mean() > 0.99:
        message = (
            "the colours are premultiplied by alpha, but are taken as straight: they darken with alpha, none exceeds it"
        )
        cure = "divide the colours by alpha, or export with straight (unassociated) alpha"
        return Finding("premultiplied-alpha", "warning", message, cure)
    if solid and slope < -SLOPE / 2 and within.mean() < 0.5:
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
    value, solid = colour.mean(-1), image[..., 3] == OPAQUE
    count, total = _summed(solid.astype(np.float32)), _summed(value * solid)
    beside = total / np.maximum(count, 1)
    if not bodies:  # colours are held against one of all of it
        count, beside = np.full_like(alpha, 9), np.full_like(alpha, 1)
    rim = (alpha > 0.1) & (alpha < 0.9) & (count >= 3) & (beside > 0.1)
    within = colour.max(-1) <= alpha + 1.5 / 255
    return alpha[rim], value[rim] / beside[rim], within[rim]


def _summed(image: np.ndarray) -> np.ndarray:
    """Sum over squares of 5 x 5 pixels."""
    wide = np.pad(image, 2)
    rows = np.sum([wide[k : k + image.shape[0]] for k in range(5)], axis=0)
    return np.sum([rows[:, k : k + image.shape[1]] for k in range(5)], axis=0)
