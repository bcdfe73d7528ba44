"""Display values, 0..1 as picture files have them: as bytes, as linear light, their error in decibels, rays a pixel."""

from __future__ import annotations

import math

import numpy as np

from raymarch.arguments.checks import whole

MASKED_GREY = 0.5
MAX_SUPERSAMPLE = 8  # rays along each edge of a pixel
SUPERSAMPLE = whole(1, MAX_SUPERSAMPLE)


def eight_bit(image: np.ndarray) -> np.ndarray:
    """Display values as 8 bit, rounded, those beyond 0..1 cut.

    Example:
        >>> eight_bit(np.array([0.5, 2.0])).tolist()
        [128, 255]
    """
    return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)


def linear_of_srgb(display: np.ndarray) -> np.ndarray:
    """Linear light of display values (sRGB, IEC 61966-2-1).

    Example:
        >>> linear_of_srgb(np.array([0.0, 0.5, 1.0])).round(3).tolist()
        [0.0, 0.214, 1.0]
    """
    return np.where(display <= 0.04045, display / 12.92, ((np.maximum(display, 0) + 0.055) / 1.055) ** 2.4)


def srgb_of_linear(light: np.ndarray) -> np.ndarray:
    """Display values (sRGB) of linear light: the inverse of `linear_of_srgb`.

    Example:
        >>> srgb_of_linear(linear_of_srgb(np.array([0.0, 0.5, 1.0]))).round(6).tolist()
        [0.0, 0.5, 1.0]
    """
    return np.where(light <= 0.04045 / 12.92, light * 12.92, 1.055 * np.maximum(light, 0) ** (1 / 2.4) - 0.055)


def decibels(error: float) -> float:
    """Peak signal to noise ratio [dB] of a mean squared error of display values; infinite where there is none.

    Example:
        >>> decibels(0.01)
        20.0
    """
    return math.inf if error == 0 else -10 * math.log10(error)


def mask_out(picture: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Picture (height, width, 3), grey where a mask (height, width) is False."""
    return picture if mask is None else np.where(mask[..., None], picture, MASKED_GREY)
