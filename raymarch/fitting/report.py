"""What a fit tells on its way."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

from raymarch.errors import RaymarchError

INTERRUPTED = "interrupted"
NOT_FINITE = "loss or gradient not finite"


def cut_short(ended) -> bool:
    """Whether a fit that ended so, by its volume's provenance, is less than what was asked for.

    Example:
        >>> cut_short("interrupted at step 16"), cut_short("done"), cut_short(None)
        (True, False, False)
    """
    return isinstance(ended, str) and ended.startswith((INTERRUPTED, NOT_FINITE))


class NotFinite(RaymarchError):
    """A loss or gradient was not finite; the fitter's grid keeps the values from before."""


@dataclass(frozen=True)
class Report:
    """Where a fit stands: what it has just measured on its own rays, and how long it will take."""

    step: int
    loss: float
    psnr: float
    rays_per_second: float
    shape: tuple[int, int, int]
    occupied: float
    seconds: float
    progress: float
    seconds_left: float


def versions() -> dict[str, str]:
    """What made a volume, for its provenance."""
    packages = {package: version(package) for package in ("raymarch", "taichi", "numpy")}
    return {**packages, "python": platform.python_version()}
