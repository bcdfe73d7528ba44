"""LPIPS, a learned perceptual distance, where PyTorch, the package `lpips` and its network's weights are there."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import urlparse

import numpy as np

NETWORK = "alex"  # as in Zhang et al. 2018, and most tables
LEAST = 32  # pixels a side that the network's poolings leave something of

Distance = Callable[[np.ndarray, np.ndarray], float]


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
