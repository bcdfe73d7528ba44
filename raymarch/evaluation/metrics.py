"""Image metrics: PSNR and SSIM, inside a mask too, PSNR by halves, and LPIPS.

LPIPS is a learned perceptual distance; PyTorch, the package `lpips` and its network's weights must be there for it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import urlparse

import numpy as np

from raymarch.arguments.checks import Numbers, describe_value, display
from raymarch.errors import RaymarchError
from raymarch.views.display_values import decibels
from raymarch.views.exposure import exposures_of, moments

HALVES_RIDGE = (1e-3, 1e-3)  # pixels' worth: nothing beside a half image
MIN_HALF_PIXELS = 16  # pixels of a half under which it tells no exposure
NETWORK = "alex"  # as in Zhang et al. 2018, and most tables
MIN_NETWORK_SIDE = 32  # pixels a side that the network's poolings leave something of
Distance = Callable[[np.ndarray, np.ndarray], float]


def psnr(image: Numbers, truth: Numbers, mask: Numbers | None = None) -> float:
    """Peak signal to noise ratio [dB]: `-10 log10(mean squared error)`, the image clipped to 0..1.

    Each is an array of display values in 0..1, or uint8; of a `mask` (height, width) the True pixels count. Raises
    RaymarchError for two shapes, numbers that are not finite, ones that count to 255 but are not uint8, and a mask of
    another size or without a True pixel.

    Example:
        >>> round(psnr(np.full((4, 4, 3), 0.6), np.full((4, 4, 3), 0.5)), 6)
        20.0
    """
    image, truth = _pair(image, truth)
    square = (image - truth) ** 2
    error = float(np.mean(square if mask is None else square[require_mask(mask, image)]))
    return decibels(error)


def psnr_halves(image: Numbers, truth: Numbers, mask: Numbers | None = None) -> float | None:
    """PSNR [dB] by halves: gain and offset of each channel fitted on the left half, scored on the right one.

    For photographs whose exposure nobody knows: what is left of the error is not brightness or white balance. The fit
    is least squares over the half's pixels, those of the `mask` if there is one; None where a half has under 16 of
    them. Arguments are those of `psnr`, and so are the errors.

    Example:
        >>> truth = np.random.default_rng(0).uniform(0.1, 0.9, (8, 16, 3))
        >>> psnr_halves(0.8 * truth + 0.1, truth) > 60
        True
    """
    image, truth = _pair(image, truth)
    if image.ndim != 3 or image.shape[2] != 3:
        raise RaymarchError(f"image has shape {image.shape}, want (height, width, 3)")
    counts = np.ones(image.shape[:2], bool) if mask is None else require_mask(mask, image)
    half = image.shape[1] // 2
    left, right = counts[:, :half], counts[:, half:]
    if min(left.sum(), right.sum()) < MIN_HALF_PIXELS:
        return None
    exposure = exposures_of(moments(image[:, :half][left], truth[:, :half][left]), HALVES_RIDGE)
    return psnr(image[:, half:] * exposure[:3] + exposure[3:], truth[:, half:], right)


def depth_error(found: np.ndarray, true: np.ndarray, *, relative: bool = False) -> float:
    """Mean absolute error of depths (height, width) [world unit] where the true one is known, not NaN.

    A depth that is not finite, where nothing was met, is off by all of the true one. `relative` errors are parts of the
    true depth.

    Example:
        >>> true = np.array([[1.0, 2.0, np.nan]])
        >>> depth_error(np.array([[1.5, np.inf, 7.0]]), true), depth_error(1.1 * true, true, relative=True)
        (1.25, 0.10000000000000009)
    """
    known = ~np.isnan(true)
    there = np.where(np.isfinite(found), found, 0.0)[known].astype(float)
    error = np.abs(there - true[known])
    return float((error / true[known] if relative else error).mean())


def ssim(image: Numbers, truth: Numbers, mask: Numbers | None = None) -> float:
    """Structural similarity: 11x11 Gaussian of sigma 1.5, valid part, data range 1, mean over channels.

    Wang, Bovik, Sheikh and Simoncelli 2004. Of a `mask` (height, width) the windows count whose centre is True; those
    that cross its border see what is inside: a window's weights are the Gaussian's there, scaled to the sum 1. Raises
    RaymarchError for images under 11 pixels a side, for a mask without a True pixel that is the centre of a window, and
    as `psnr` does.

    Example:
        >>> ssim(np.eye(16), np.eye(16))
        1.0
    """
    image, truth = _pair(image, truth)
    if image.ndim not in (2, 3) or min(image.shape[:2]) < 11:
        first = image.ndim == 3 and image.shape[0] in (1, 3, 4) and min(image.shape[1:]) >= 11
        cure = "; its channels come first: pass np.moveaxis(image, 0, -1), of the truth too" if first else ""
        raise RaymarchError(f"image has shape {image.shape}, want at least 11 x 11 pixels for SSIM{cure}")
    x = np.arange(11) - 5.0
    window = np.exp(-(x**2) / (2 * 1.5**2))
    window /= window.sum()

    def blur(a: np.ndarray) -> np.ndarray:
        for axis in (0, 1):
            a = np.lib.stride_tricks.sliding_window_view(a, 11, axis=axis) @ window
        return a

    mean, centres = blur, None
    if mask is not None:
        inside = require_mask(mask, image)
        centres = inside[5:-5, 5:-5]
        if not centres.any():
            raise RaymarchError("mask has no pixel 5 or more from the image's edges, want one for SSIM; take psnr")
        weight = inside.reshape(inside.shape + (1,) * (image.ndim - 2)).astype(float)
        share = np.maximum(blur(weight), 1e-12)

        def mean(a: np.ndarray) -> np.ndarray:
            return blur(a * weight) / share

    a, b = mean(image), mean(truth)
    aa, bb, ab = mean(image * image) - a * a, mean(truth * truth) - b * b, mean(image * truth) - a * b
    c1, c2 = 0.01**2, 0.03**2
    score = (2 * a * b + c1) * (2 * ab + c2) / ((a * a + b * b + c1) * (aa + bb + c2))
    return float(np.mean(score if centres is None else score[centres]))


def require_mask(mask: Numbers, image: np.ndarray) -> np.ndarray:
    """Mask of an image, with a pixel in it; else RaymarchError."""
    try:
        inside = np.asarray(mask)
    except ValueError:  # rows of several lengths
        inside = np.empty(0)
    if inside.dtype != bool or inside.shape != image.shape[:2]:
        raise RaymarchError(
            f"mask is {describe_value(mask)}, want bools {image.shape[:2]}, True for the pixels that count"
        )
    if not inside.any():
        raise RaymarchError("mask has no pixel that counts, want one or more; leave the view out")
    return inside


def lpips_distance() -> tuple[Distance | None, str]:
    """LPIPS of two images (height, width, 3) in 0..1, or None and why there is none; nothing is ever downloaded.

    Example:
        >>> distance, why = lpips_distance()
        >>> (distance is None) == bool(why)
        True
    """
    for package in ("torch", "torchvision", "lpips"):
        if importlib.util.find_spec(package) is None:
            return None, f'{package} is not installed; pip install "raymarch[lpips]"'
    weights = _weights()
    if not weights.is_file():
        return (
            None,
            f"the weights of its network are not at {weights}; torchvision.models.alexnet says where to get them",
        )
    torch, lpips = (importlib.import_module(name) for name in ("torch", "lpips"))
    network = lpips.LPIPS(net=NETWORK, verbose=False).eval()

    def distance(image: np.ndarray, truth: np.ndarray) -> float:
        pair = [
            torch.from_numpy(np.ascontiguousarray(2 * x.transpose(2, 0, 1)[None] - 1)).float() for x in (image, truth)
        ]
        with torch.no_grad():
            return float(network(*pair))

    return distance, ""


def _weights() -> Path:
    """Where PyTorch keeps the network's weights: it would download them from elsewhere without a word."""
    hub = importlib.import_module("torch.hub")
    url = importlib.import_module("torchvision.models").AlexNet_Weights.DEFAULT.url
    return Path(hub.get_dir()) / "checkpoints" / PurePosixPath(urlparse(url).path).name


def _pair(image: Numbers, truth: Numbers) -> tuple[np.ndarray, np.ndarray]:
    image, truth = display("image", image), display("truth", truth)
    if image.shape != truth.shape:
        raise RaymarchError(f"images are {image.shape} and {truth.shape}, want one shape; resize one of them")
    return np.clip(image, 0, 1), truth
