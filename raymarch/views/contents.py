"""Contents of a set's images: which of them show nothing, and whether there is anything to fit at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.geometry.boxes import camera_in_box
from raymarch.geometry.lens_distortion import ANGLES
from raymarch.views.image_arrays import Images
from raymarch.views.views import Views

PIXEL_STRIDE = 16  # pixels from one that is looked at to the next, before an image is looked at whole
MIN_IMAGE_SIDE = 4  # pixels a side, of a tile
COLOUR_WORDS = {(0, 0, 0): ", black", (255, 255, 255): ", white"}
MAX_EMPTY_ALPHA = 2  # of 255: alpha up to that counts as empty, as in kernels/hull
MIN_BORDER_FRACTION = 0.95  # of the pixels along the borders
MAX_COLOUR_DIFFERENCE = 0.05  # display value, by which pixels of one colour differ at most


class Contents(NamedTuple):
    """Indices of the images that are transparent all over, opaque all over, of one colour all over and opaque, and
    masked all over."""

    clear: list[int]
    opaque: list[int]
    plain: list[int]
    masked: list[int]


def contents(views: Views) -> Contents:
    """Uniform images of a set, by alpha or colour.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> contents(Views([Camera.look_at((0, -4, 0), width=8, height=8)], np.zeros((1, 8, 8, 3), np.uint8)))
        Contents(clear=[], opaque=[0], plain=[0], masked=[])
    """
    clear: list[int] = []
    opaque = list(range(len(views)))
    if views.has_alpha:
        full = 1 if views.channels else 255
        clear = _indices_of(views.images, lambda image: not image[..., -1].any())
        opaque = _indices_of(views.images, lambda image: bool((image[..., -1] == full).all()))
    n = views.colours
    one_colour = _indices_of(views.images, lambda image: _is_plain(image[..., :n]))
    masked = [i for i, mask in enumerate(views.masks or ()) if mask is not None and not mask.any()]
    return Contents(clear, opaque, [i for i in one_colour if i in set(opaque)], masked)


def _is_plain(image: np.ndarray) -> bool:
    """Whether all pixels are the same, unknown numbers left out."""
    if image.dtype == np.uint8:
        return bool((image == image[:1, :1]).all())
    flat = image.reshape(-1, image.shape[-1])
    with np.errstate(invalid="ignore"):
        return bool(all(np.ptp(values) == 0 for c in flat.T if len(values := c[np.isfinite(c)])))


def doubts(views: Views) -> list[str]:
    """Warnings about the images, a line each: those that show nothing, masks that mask nothing, all the same."""
    count = len(views)
    if tiny := [i for i, size in enumerate(views.sizes) if min(size) < MIN_IMAGE_SIDE]:
        words = "x".join(map(str, views.sizes[tiny[0]])).replace("x", " x ")
        if len(tiny) == count:
            return [f"images of {words} pixels hold too little to fit"]
        return [f"{_name_views(views, tiny)} of {words} pixels or so, which hold too little to fit; take them out"]
    found, said = contents(views), []
    if found.clear:
        said.append(
            f"{_name_views(views, found.clear)} transparent all over: nothing is kept where they look; take them "
            "out unless"
            " nothing is there"
        )
    if views.has_alpha and len(found.opaque) == count:
        said.append(
            f"{_name_views(views, found.opaque)} opaque all over, so their alpha masks nothing: a tighter box fits "
            "better,"
            " or images whose background is transparent"
        )
    elif found.opaque and views.has_alpha and 2 * len(found.opaque) < count:
        said.append(
            f"{_name_views(views, found.opaque)} opaque all over, where the others are transparent in part: was the"
            " background left in? cut it out as of the others, unless the object fills them"
        )
    elif (
        views.has_alpha
        and (_borders(views)[:, -1] > MAX_EMPTY_ALPHA / (255 if views.channels else 1)).mean() > MIN_BORDER_FRACTION
    ):
        said.append("the images' borders are opaque, so their alpha masks little: is it inverted, or nowhere 0?")
    if found.plain:
        said.append(
            f"{_name_views(views, found.plain)} of one colour all over{_colour(views, found.plain)}: they show nothing"
        )
    if found.masked:
        said.append(f"{_name_views(views, found.masked)} masked all over, so nothing of them counts")
    if count > 1 and views.one_size and not (found.clear or found.plain):
        first = views.images[0]
        if len(_indices_of(views.images, lambda image: (image == _thin_like(first, image)).all())) == count:
            said.append(f"all {count} images are the same, pixel for pixel: were they meant to be?")
    return said


def require_pixels(views: Views) -> None:
    """Mask check: RaymarchError for a view all of whose pixels are masked, where each view must show some."""
    masked = [i for i in range(len(views)) if (mask := views.mask(i)) is not None and not mask.any()]
    if masked:
        raise RaymarchError(f"view {first_names([views.names[i] for i in masked])} is masked all over; take it out")


def require_contents(views: Views, found: Contents | None = None) -> None:
    """Contents check: RaymarchError where no image shows anything, so that there is nothing to fit.

    `found` are the views' `contents`, where they are known.
    """
    found = contents(views) if found is None else found
    if len({*found.clear, *found.plain, *found.masked}) < len(views):
        return
    if views.channels and not views.has_channel.any():
        raise RaymarchError(
            f"all numbers of all {len(views)} images are unknown, NaN, so there is nothing to fit; check how they were"
            " exported"
        )
    kinds = ["masked all over"] * bool(found.masked) + ["transparent all over"] * bool(found.clear)
    kinds += [f"of one colour all over{_colour(views, found.plain)}"] * bool(found.plain)
    raise RaymarchError(
        f"all {len(views)} images of {views.size_in_words()} are {' or '.join(kinds)}, so there is nothing to fit;"
        " check how they were exported"
    )


def background_doubt(views: Views) -> str:
    """Warning about the background, where images whose alpha masks nothing have borders of one other colour; or ""."""
    colour = border_colour(views)
    if colour is None or np.abs(colour - views.background).max() < 0.1:
        return ""
    seen, said = (",".join(f"{c:.2g}" for c in three) for three in (colour, views.background))
    return (
        f"the images' borders are {seen} but the background is {said}; say --background {seen},"
        f" background=({', '.join(seen.split(','))}) of rm.load_views"
    )


def border_colour(views: Views) -> np.ndarray | None:
    """Colour (3,) in 0..1, or channels in their units, that half of the images' borders have; None where alpha tells
    what is around, where there is none, and for the black about a fisheye's circle, which is no part of the picture."""
    if views.shows_silhouettes or min(map(min, views.sizes)) < 3:
        return None
    if views.channels:
        return _border_channels(views)
    border = _borders(views)[:, :3] / 255
    if not len(border):
        return None
    colour = np.median(border, axis=0)
    if colour.max() < MAX_COLOUR_DIFFERENCE and any(camera.lens.kind == ANGLES for camera in views.cameras):
        return None
    return colour if (np.abs(border - colour).max(1) < MAX_COLOUR_DIFFERENCE).mean() >= 0.5 else None


def _border_channels(views: Views) -> np.ndarray | None:
    """Number (channel,) that half of each channel's have along the images' borders, within a twentieth of its range."""
    border, n = _borders(views)[:, : views.colours], views.colours
    found = np.zeros(n)
    for c, (low, high) in enumerate(views.ranges):
        values = border[np.isfinite(border[:, c]), c]
        if not len(values):
            continue
        found[c] = np.median(values)
        if (np.abs(values - found[c]) < MAX_COLOUR_DIFFERENCE * (high - low)).mean() < 0.5:
            return None
    return found


def _borders(views: Views) -> np.ndarray:
    """The pixels (pixel, channel) along the borders of all images, as far as no mask takes them out."""
    borders = []
    for i, image in enumerate(views.images):
        mask = views.mask(i)
        for side in np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]:
            borders.append(image[side] if mask is None else image[side][mask[side]])
    return np.concatenate(borders)


def _colour(views: Views, which: list[int]) -> str:
    """The colour that images of one colour have in common, if it has a name."""
    if views.channels:
        return ""
    colours = {tuple(views.images[i][0, 0, :3].tolist()) for i in which}
    return COLOUR_WORDS.get(colours.pop(), "") if len(colours) == 1 else ""


def _name_views(views: Views, which: list[int]) -> str:
    if len(which) == len(views):
        return f"all {len(which)} images are"
    verb = "is" if len(which) == 1 else "are"
    return f"{len(which)} of {len(views)} images ({first_names([views.names[i] for i in which])}) {verb}"


def _indices_of(images: Images, holds: Callable[[np.ndarray], bool | np.bool_]) -> list[int]:
    """Indices of the images of which something holds, asked of a few pixels first."""
    return [i for i, image in enumerate(images) if holds(image[::PIXEL_STRIDE, ::PIXEL_STRIDE]) and holds(image)]


def _thin_like(first: np.ndarray, image: np.ndarray) -> np.ndarray:
    return first if image.shape == first.shape else first[::PIXEL_STRIDE, ::PIXEL_STRIDE]


def is_bounded(views: Views) -> bool:
    """Whether all that the views show lies in one box: alpha that is not opaque everywhere, a box of the set's own that
    no camera is in, or images whose borders are one colour."""
    if views.shows_silhouettes:
        return True
    if views.box is not None:
        return not camera_in_box(views.cameras, views.box)
    return border_colour(views) is not None
