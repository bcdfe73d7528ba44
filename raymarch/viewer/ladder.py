"""Resolution of pictures by the measured speed: a ladder while the eye moves, levels at rest."""

from __future__ import annotations

from collections.abc import Hashable
from math import exp

RUNG = 2**-0.5  # from one resolution to the next, a side
LOWEST = 12  # rungs down
LEVELS = (0.25, 0.5, 1.0)  # a side, of a picture at rest
ENOUGH = 0.12  # seconds of a picture from which a smaller one before it is worth its time
FIRST_GUESS = 3e5  # rays a second
MEMORY = 0.5  # seconds of marching after which a measurement has faded to a third


class RaySpeed:
    """Rays a second of each kind of march, over the last second or so; the first batch of a kind compiles, and does not
    count. Batches weigh as long as they took, for those that miss the volume take no time.

    Example:
        >>> speed = RaySpeed()
        >>> for seconds in (5.0, 0.1):
        ...     speed.measured("x-ray", 100_000, seconds)
        >>> round(speed.of("x-ray"))
        1000000
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, tuple[float, float]] = {}

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return any(rays > 0 for rays, _ in self._of.values())

    def measured(self, kind: Hashable, rays: int, seconds: float) -> None:
        """Note a batch."""
        if kind not in self._of:
            self._of[kind] = 0.0, 0.0
            return
        known_rays, known_seconds = self._of[kind]
        kept = exp(-seconds / MEMORY)
        self._of[kind] = kept * known_rays + rays, kept * known_seconds + max(seconds, 1e-6)

    def of(self, kind: Hashable) -> float:
        """Rays a second to plan with."""
        rays, seconds = self._of.get(kind, (0.0, 0.0))
        return rays / seconds if rays > 0 else FIRST_GUESS


def moving_scale(width: int, height: int, rays_a_second: float, seconds: float) -> float:
    """Largest rung (a side, up to 1) at which a picture takes at most some seconds.

    Example:
        >>> round(moving_scale(800, 800, 4e5, 0.08), 3)
        0.177
    """
    scale, rung = 1.0, 0
    while rung < LOWEST and scale * scale * width * height > rays_a_second * seconds:
        scale, rung = scale * RUNG, rung + 1
    return scale


def resting_levels(width: int, height: int, rays_a_second: float) -> tuple[float, ...]:
    """Scales of the pictures at rest, the last 1; those before it only where the next one would be long in coming.

    Example:
        >>> resting_levels(100, 100, 1e6), resting_levels(800, 800, 1e6)
        ((1.0,), (0.25, 0.5, 1.0))
    """
    seconds = width * height / rays_a_second
    return tuple(scale for scale in LEVELS if scale == 1.0 or seconds * (2 * scale) ** 2 > ENOUGH)
