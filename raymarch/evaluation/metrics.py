"""Image metrics: PSNR and SSIM."""

from __future__ import annotations

import numpy as np

from raymarch.arguments.arrays import Numbers, display
from raymarch.errors import RaymarchError


def _pair(image: Numbers, truth: Numbers) -> tuple[np.ndarray, np.ndarray]:
    image, truth = display("image", image), display("truth", truth)
    if image.shape != truth.shape:
        raise RaymarchError(f"images are {image.shape} and {truth.shape}, want one shape; resize one of them")
    return np.clip(image, 0, 1), truth


def psnr(image: Numbers, truth: Numbers) -> float:
    """Peak signal to noise ratio [dB]: `-10 log10(mean squared error)`, the image clipped to 0..1.

    Each is an array of display values in 0..1, or uint8. Raises RaymarchError for two shapes, numbers that are not
    finite, and ones that count to 255 but are not uint8.

    Example:
        >>> round(psnr(np.full((4, 4, 3), 0.6), np.full((4, 4, 3), 0.5)), 6)
        20.0
    """
    image, truth = _pair(image, truth)
    error = float(np.mean((image - truth) ** 2))
    return float("inf") if error == 0 else -10 * float(np.log10(error))


def ssim(image: Numbers, truth: Numbers) -> float:
    """Structural similarity: 11x11 Gaussian of sigma 1.5, valid part, data range 1, mean over channels.

    Wang, Bovik, Sheikh and Simoncelli 2004. Raises RaymarchError for images under 11 pixels a side, and as
    `psnr` does.

    Example:
        >>> ssim(np.eye(16), np.eye(16))
        1.0
    """
    image, truth = _pair(image, truth)
    if image.ndim not in (2, 3) or min(image.shape[:2]) < 11:
        raise RaymarchError(f"image has shape {image.shape}, want at least 11 x 11 pixels for SSIM")
    x = np.arange(11) - 5.0
    window = np.exp(-(x**2) / (2 * 1.5**2))
    window /= window.sum()

    def blur(a: np.ndarray) -> np.ndarray:
        for axis in (0, 1):
            a = np.lib.stride_tricks.sliding_window_view(a, 11, axis=axis) @ window
        return a

    a, b = blur(image), blur(truth)
    aa, bb, ab = blur(image * image) - a * a, blur(truth * truth) - b * b, blur(image * truth) - a * b
    c1, c2 = 0.01**2, 0.03**2
    return float(np.mean((2 * a * b + c1) * (2 * ab + c2) / ((a * a + b * b + c1) * (aa + bb + c2))))
