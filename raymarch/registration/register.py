"""Camera registration: the pose, and lens and exposure if asked, from one image and a volume.

Levenberg-Marquardt on the image's Jacobian, from blurred to sharp: a blurred image changes slowly with the pose, so the
search finds its way from far off, and the sharp one at the end gives the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from raymarch.arguments.arrays import Colour, Numbers, display
from raymarch.arguments.checks import callback, optional, some_of, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import EXPOSURE, NEUTRAL_EXPOSURE, shape_of
from raymarch.gradients.projection import out_of_sight
from raymarch.registration.blur_level import BlurLevel, State
from raymarch.registration.registration_card import RegistrationCard
from raymarch.rendering.march_settings import SINGLE_RAYS, March
from raymarch.rendering.renderer import BACKGROUND
from raymarch.solvers.least_squares import levenberg_marquardt
from raymarch.views.image_arrays import MASK
from raymarch.views.views import require_colour
from raymarch.volumes.volume import VOLUME, AnyVolume

SOUGHT = ("pose", "focal", "principal_point", "lens", "exposure")
BLURS = (1 / 12, 1 / 24, 1 / 48, 1 / 96, 0.0)  # standard deviations, of the image's longer side


@dataclass(frozen=True, eq=False)
class Registration(RegistrationCard):
    """Result of camera registration: where a picture was taken from.

    Attributes:
        camera: the start's, moved.
        exposure: three gains and three offsets (6,).
        error: root mean square of what is left between image and rendering, colours in 0..1.
        steps: linear systems that were solved.
        converged: whether the last search, of the sharp image, ended as `Solution.converged` says, not for want of
            steps or of a way down. It says nothing of whether this is the place: look at `error`, and at the picture.
    """

    camera: Camera
    exposure: np.ndarray
    error: float
    steps: int
    converged: bool


@checked(
    volume=VOLUME,
    start=replace(CAMERA, cure="call rm.register(volume, image, start)"),
    parameters=some_of(*SOUGHT),
    background=BACKGROUND,
    exposure=EXPOSURE,
    march=SINGLE_RAYS,
    steps=whole(1, 10**6),
    seed=whole(0, 2**31 - 1),
    mask=optional(MASK),
    show=optional(callback),
)
def register(
    volume: AnyVolume,
    image: np.ndarray,
    start: Camera,
    parameters: str | Sequence[str] = ("pose",),
    *,
    background: Colour | None = None,
    exposure: Numbers = NEUTRAL_EXPOSURE,
    march: March = March(),
    steps: int = 12,
    seed: int = 0,
    mask: np.ndarray | None = None,
    show: Callable[[float], None] | None = None,
) -> Registration:
    """Registration: the camera that took `image` of `volume`, from a start ten degrees or a tenth of the distance off.

    Args:
        volume: what is seen.
        image: (height, width, 3 or 4), uint8 or numbers in 0..1; the fourth is straight alpha, which is compared too.
            What the volume does not show has to be cut off, transparent, or taken out by `mask`.
        start: a camera of the image's size, near the true one.
        parameters: what is sought: "pose", "focal", "principal_point", "lens" (its coefficients), "exposure"; focal
            and distance are hard to tell apart where the object is small in the image.
        background: behind the volume, its own if not given.
        exposure: at the start.
        march: how rays are sampled, best as the image was if it is a rendering; with steps over half a voxel the slopes
            are half noise, of samples that jump over surfaces.
        steps: at most, for each of the blurs.
        seed: of the pixels that the last comparison takes of a large image.
        mask: (height, width), False for pixels that do not count, such as of somebody who stands before the object.
        show: called with the share that is done, 0..1.

    No more than `steps` images and Jacobians a blur are made, wherever the search goes; where it loses sight of the
    volume it goes back. Raises RaymarchError where the sizes disagree, a parameter cannot be sought, no pixel counts,
    or the start sees nothing of the volume.

    Example:
        >>> egg = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p * [1, 2, 3], axis=-1) < 0.6), shape=(16,) * 3)
        >>> true, start = (Camera.look_at((x, -4, 1), width=32, height=32) for x in (0.0, 0.2))
        >>> from raymarch.rendering.renderer import render
        >>> found = register(egg, render(egg, true), start)
        >>> bool(np.linalg.norm(found.camera.position - true.position) < 0.02)
        True
    """
    target = _target(image, start, volume.background if background is None else background)
    _require_mask(mask, start)
    if out_of_sight(start, volume.corners):
        raise _unseen(volume.corners, "its box lies outside the image")
    levels = [BlurLevel(target, mask, start, blur, parameters, volume.corners, seed) for blur in BLURS]
    most = max(levels, key=lambda level: level.count)
    columns = sum(int(np.prod(shape_of(name, start.lens))) for name in parameters if name != "exposure")
    pixels, columns = most.pixels, max(columns, 1)
    with Linearised(volume, most.camera, background=background, march=march, pixels=pixels, columns=columns) as seen:
        return _search(seen, levels, (start, np.asarray(exposure, float)), steps, show)


def _search(
    seen: Linearised, levels: list[BlurLevel], state: State, steps: int, show: Callable[[float], None] | None
) -> Registration:
    """From blur to blur, each from where the one before ended."""
    taken = 0
    for i, level in enumerate(levels):
        if not level.set_camera(seen, state):
            counted = ", or left out by the mask" if level.masked else ""
            raise _unseen(level.corners, f"what of its box is in the image is transparent{counted}")
        solution = levenberg_marquardt(
            partial(level.linearise, seen), state, steps=steps, tolerance=1e-6, retract=level.retract
        )
        state, taken = solution.x, taken + solution.steps  # type: ignore[assignment]
        if show is not None:
            show((i + 1) / len(levels))
    error = float(np.sqrt(2 * solution.cost / levels[-1].target.size))
    return Registration(state[0], state[1], error, taken, solution.converged)


def _unseen(corners: np.ndarray, why: str) -> RaymarchError:
    centre = ", ".join(f"{x:.3g}" for x in corners.mean(0))
    return RaymarchError(f"the camera sees nothing of the volume: {why}; turn it to the box's centre, ({centre})")


def _target(image: Numbers, start: Camera, background: Colour) -> np.ndarray:
    """Colour over the background, and transmittance where there is alpha (height, width, 3 or 4), in 0..1."""
    image = display("image", image)
    if image.shape not in [(start.height, start.width, n) for n in (3, 4)]:
        raise RaymarchError(
            f"image has shape {image.shape}, want ({start.height}, {start.width}, 3 or 4) as its camera; scale one"
        )
    if image.shape[2] == 3:
        return image
    alpha = image[..., 3:]
    return np.concatenate([image[..., :3] * alpha + (1 - alpha) * require_colour(background), 1 - alpha], axis=-1)


def _require_mask(mask: np.ndarray | None, start: Camera) -> None:
    if mask is None:
        return
    if mask.shape != (start.height, start.width):
        raise RaymarchError(
            f"mask has shape {mask.shape}, want ({start.height}, {start.width}) as its camera; scale one"
        )
    if not mask.any():
        raise RaymarchError("mask takes all pixels out; False is for pixels that do not count, so leave some True")
