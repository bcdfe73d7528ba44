"""Held-out evaluation: PSNR and SSIM of a volume on views that it was not fitted to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import callback, optional
from raymarch.arguments.declared import checked
from raymarch.data.contents import require_pixels
from raymarch.data.views import VIEWS, Views
from raymarch.data.volume import VOLUME, Volume
from raymarch.evaluation.metrics import psnr, ssim
from raymarch.rendering.march import MARCH, March
from raymarch.rendering.renderer import Renderer


@dataclass(frozen=True)
class ViewScore:
    """Score of one view: PSNR [dB] and SSIM; SSIM is None for images under 11 pixels a side."""

    name: str
    psnr: float
    ssim: float | None


@dataclass(frozen=True)
class Evaluation:
    """Result of `evaluate`: means over the views, each view's scores and the seconds an image took once warm."""

    psnr: float
    ssim: float | None
    views: tuple[ViewScore, ...]
    seconds_per_image: float

    def __repr__(self) -> str:
        similarity = "none" if self.ssim is None else f"{self.ssim:.4f}"
        return (
            f"Evaluation(PSNR {self.psnr:.2f} dB, SSIM {similarity}, {len(self.views)} views,"
            f" {self.seconds_per_image:.3g} s an image)"
        )


@checked(volume=VOLUME, views=VIEWS, march=MARCH, seen=optional(callback))
def evaluate(
    volume: Volume, views: Views, *, march: March = March(), seen: Callable[[int, np.ndarray], None] | None = None
) -> Evaluation:
    """PSNR and SSIM of `volume` rendered by the views' cameras, over the views' background.

    The PSNR is that of the pixels which no mask takes out.

    Args:
        seen: called with each view's number and image (height, width, 3), for progress or to keep the pictures.

    Raises RaymarchError for a view that is masked all over.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> views = Views([Camera.look_at((0, -4, 0), width=16, height=16)], np.full((1, 16, 16, 3), 255, np.uint8))
        >>> round(evaluate(ball, views).psnr, 1)
        20.8
    """
    require_pixels(views)
    scores, seconds = [], []
    with Renderer(volume, march) as renderer:
        for i, camera in enumerate(views.cameras):
            start = time.perf_counter()
            image = renderer.render(camera, views.background, depth=False).image
            seconds.append(time.perf_counter() - start)
            truth, shown = views.rgb(i), np.clip(image, 0, 1)  # an x-ray is brighter than any display
            similarity = ssim(shown, truth) if min(image.shape[:2]) >= 11 else None
            if (mask := views.mask(i)) is not None:
                shown, truth = shown[mask], truth[mask]
            scores.append(ViewScore(views.names[i], psnr(shown, truth), similarity))
            if seen is not None:
                seen(i, image)
    known = [s.ssim for s in scores if s.ssim is not None]
    return Evaluation(
        psnr=float(np.mean([s.psnr for s in scores])),
        ssim=float(np.mean(known)) if known else None,
        views=tuple(scores),
        seconds_per_image=float(np.mean(seconds[1:] or seconds)),
    )
