"""Backgrounds that no volume shows: one that stands still while the object turns, and one that masks take out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.diagnosis.extent import silhouettes
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.images import count_distinct
from raymarch.matching.epipolar import poses_of
from raymarch.views.mask_alpha import masks_to_alpha
from raymarch.views.views import Views

MAX_VIEWS, IMAGE_SIDE = 24, 128  # views, evenly spread, and pixels of their longer side
MIN_VIEWS = 5  # views
# of 255: from a pixel's median over the views, within which half of its values lie where nothing moves
MAX_STILL_DEVIATION = 6
MIN_STILL_FRACTION = 0.15  # of the pixels, that stand still
MAX_PLAIN_DEVIATION = 8  # of 255: standard deviation of a background of one colour, which a fit takes as its background
MIN_VIEW_ANGLE = np.deg2rad(8)  # between two cameras' axes, or as seen from what they see
MIN_SEEN_FRACTION = 0.75  # of the views have to show a pixel, for it to be told
MAX_BORDER_FRACTION, MIN_MASKED_FRACTION = 0.25, 0.9  # of an image's border, that counts; of the views, with less
# of the pixels, that masks around an object take out; that inverted ones do
MIN_MASK_AROUND, MIN_MASK_INVERTED = 0.2, 0.02
ALPHA_CURE = 'read them as alpha: --masks alpha, masks="alpha" of rm.load_views, or files <image>.alpha.png'


def static_background(views: Views) -> Finding | None:
    """Background, or whatever else, that is in the same pixels of all images though the cameras stand elsewhere."""
    if len(views) < MIN_VIEWS or not views.one_size or not _views_are_apart(views):
        return None
    if count_distinct(views) < len(views) / 2:  # copies are alike whatever they show
        return None
    which = np.unique(np.linspace(0, len(views) - 1, MAX_VIEWS).astype(int))
    step = max(1, -(-max(views.sizes[0]) // IMAGE_SIDE))
    images = np.stack([views.image(int(i))[::step, ::step] for i in which])
    colours = images[..., :3].astype(np.float32)
    counts = images[..., 3] == 255 if views.has_alpha else np.ones(images.shape[:3], bool)
    for k, i in enumerate(which):
        if (mask := views.mask(int(i))) is not None:
            counts[k] &= mask[::step, ::step]
    colours[~counts] = np.nan
    known = counts.mean(0) >= MIN_SEEN_FRACTION
    if known.mean() < MIN_STILL_FRACTION:
        return None
    seen = colours[:, known]
    middle = np.nanmedian(seen, axis=0)
    still = np.nanmedian(np.abs(seen - middle).max(-1), axis=0) <= MAX_STILL_DEVIATION
    share = float(still.sum() / known.size)
    if share < MIN_STILL_FRACTION or _is_plain(middle[still]):
        return None
    message = (
        f"{share:.0%} of the pixels are the same in all images though their cameras stand elsewhere: a background"
        " stands still while the object turns, which no volume shows"
    )
    cure = "mask the object and give the masks as alpha: RGBA images, files <image>.alpha.png, or --masks alpha"
    return Finding("static-background", "error", message, cure)


def _is_plain(colours: np.ndarray) -> bool:
    """Whether colours (pixel, 3) are one, as a sheet of paper's or the dark's."""
    return float(np.abs(colours - np.median(colours, axis=0)).max(-1).mean()) < MAX_PLAIN_DEVIATION


def _views_are_apart(views: Views) -> bool:
    """Whether cameras stand apart so far that what they see cannot lie in the same pixels."""
    axes = -poses_of(views.cameras)[:, :3, 2]
    return float((axes @ axes[0]).min()) < np.cos(MIN_VIEW_ANGLE)


def isolating_masks(views: Views) -> Finding | None:
    """Masks that leave an object alone in all views, which tell more as alpha: that nothing else is there."""
    if views.masks is None or views.shows_silhouettes or len(views) < MIN_VIEWS:
        return None
    masks = [mask for mask in views.masks if mask is not None]
    if len(masks) < MIN_MASKED_FRACTION * len(views):
        return None
    within = [_border_fraction(mask) < MAX_BORDER_FRACTION for mask in masks]
    taken = float(np.median([1 - mask.mean() for mask in masks]))
    first = masks[0]
    alike = all(mask.shape == first.shape and (mask == first).all() for mask in masks)  # of a lens, not of an object
    if alike or not any(mask.any() for mask in masks):
        return None
    few = views[np.linspace(0, len(views) - 1, min(len(views), MAX_VIEWS)).astype(int)]
    around = (
        np.mean([_border_fraction(~mask) < MAX_BORDER_FRACTION for mask in masks]) >= MIN_MASKED_FRACTION
        and 1 - taken >= MIN_MASK_AROUND
    )
    if (
        around
        and taken >= MIN_MASK_INVERTED
        and _are_silhouettes(replace(few, masks=[None if m is None else ~m for m in few.masks or ()]))
    ):
        message = (
            f"the masks take out an object in the middle of all views, {taken:.0%} of the pixels, and leave what is"
            " around it: are they inverted?"
        )
        return Finding("masks-inverted", "warning", message, "if so, invert them: black is for what does not count")
    if np.mean(within) < MIN_MASKED_FRACTION or taken < MIN_MASK_AROUND or not _are_silhouettes(few):
        return None
    message = (
        f"the masks leave an object alone in all views, and take out {taken:.0%} of the pixels, of which nobody knows"
        " what they show: a fit fills them with floaters, which other views see"
    )
    return Finding("masks-not-alpha", "warning", message, f"if nothing but the object shall be there, {ALPHA_CURE}")


def _are_silhouettes(views: Views) -> bool:
    """Whether masks are the silhouettes of one thing, as far as several views can tell."""
    shown = masks_to_alpha(views)
    return shown.shows_silhouettes and not any(each.severity == "error" for each in silhouettes(shown))


def _border_fraction(mask: np.ndarray) -> float:
    """Share of a mask's border that counts."""
    sides = mask[0], mask[-1], mask[:, 0], mask[:, -1]
    return float(np.concatenate(sides).mean())
