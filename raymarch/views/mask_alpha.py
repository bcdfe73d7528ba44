"""Masks read as alpha: what they take out is empty, in place of unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.views.image_arrays import gather_images
from raymarch.views.views import Views
from raymarch.volumes.samples import ALPHA


def masks_to_alpha(views: Views) -> Views:
    """Views whose masks are alpha: where a mask is False nothing is there, in place of what nobody knows.

    That is what masks of an object mean; those of passers-by, of a lens or of a tripod are masks. Views without a mask
    are opaque, and alpha that images have stays where the mask is True.

    Raises RaymarchError where no view has a mask.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> mask = np.zeros((6, 8), bool)
        >>> mask[2:4] = True
        >>> masks_to_alpha(replace(views, masks=[mask])).image(0)[:, 0, 3].tolist()
        [0, 0, 255, 255, 0, 0]
    """
    if views.masks is None:
        raise RaymarchError(
            f"{views.source or 'views'}: no mask takes anything out, so masks cannot be read as alpha; leave masks,"
            " --masks, out"
        )
    images = []
    if views.channels:
        return _channels_with_alpha(views)
    for i in range(len(views)):
        image, mask = views.image(i), views.mask(i)
        alpha = image[..., 3] if image.shape[2] == 4 else np.full(image.shape[:2], 255, np.uint8)
        alpha = alpha if mask is None else np.where(mask, alpha, np.uint8(0))
        images.append(np.dstack([image[..., :3], alpha]))
    return replace(views, images=gather_images(images), masks=None, masks_as="alpha")


def _channels_with_alpha(views: Views) -> Views:
    images = []
    for i in range(len(views)):
        image, mask = views.image(i), views.mask(i)
        alpha = image[..., -1] if views.has_alpha else np.ones(image.shape[:2], np.float32)
        alpha = alpha if mask is None else np.where(mask, alpha, np.float32(0))
        images.append(np.dstack([image[..., : views.colours], alpha]))
    channels = (*views.shown, ALPHA)
    return replace(views, images=gather_images(images), channels=channels, masks=None, masks_as="alpha")
