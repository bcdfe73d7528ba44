"""Camera registration: the pose, and lens and exposure if asked, from one image and a volume.

Levenberg-Marquardt on the image's Jacobian, from blurred to sharp: a blurred image changes slowly with the pose, so the
search finds its way from far off, and the sharp one at the end gives the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from raymarch.arguments.checks import Colour, Numbers, callback, display, optional, some_of, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera, camera_card
from raymarch.geometry.pose import exp_rigid
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import EXPOSURE, NEUTRAL_EXPOSURE, group_shape
from raymarch.gradients.projection import out_of_sight
from raymarch.html.card import card_html, html_of, numbers_text
from raymarch.registration.intrinsics import move_intrinsics
from raymarch.rendering.march_settings import SINGLE_RAYS, March
from raymarch.rendering.renderer import BACKGROUND
from raymarch.solvers.least_squares import levenberg_marquardt
from raymarch.views.image_arrays import MASK
from raymarch.views.resize import shrink
from raymarch.views.views import require_colour
from raymarch.volumes.volume import COLOUR_VOLUME, AnyVolume

State = tuple[Camera, np.ndarray]  # and exposure
COARSE_SIDE = 128  # pixels a side at which blurred images are compared
MAX_FINE_PIXELS = 1 << 16  # pixels at most of the last, sharp comparison
MAX_STEP = 10.0  # a step, in its own units: the start's distance, radians
# of the way from the volume's middle to its corner: the least that a camera's distance counts as
MIN_DISTANCE_FRACTION = 0.25
# a camera, in the start's distances: in single precision rays from farther off miss what they see
MAX_DISTANCE_RATIO = 100.0


class BlurLevel:
    """Residual at one blur: rendering minus target, both blurred alike, and both 0 where the mask is False.

    Args:
        target: (height, width, 3 or 4), in 0..1.
        mask: (height, width) of the pixels that count, or None for all.
        start: camera of the target's size.
        blur: standard deviation, of the image's longer side; 0 for none.
        parameters: what is sought.
        corners: of the volume (8, 3).
        seed: of the pixels that are compared of a large image that is not blurred.
    """

    def __init__(
        self,
        target: np.ndarray,
        mask: np.ndarray | None,
        start: Camera,
        blur: float,
        parameters: Sequence[str],
        corners: np.ndarray,
        seed: int,
    ):
        self.start, self.parameters, self.corners, self.masked = start, parameters, corners, mask is not None
        middle = corners.mean(0)
        least = MIN_DISTANCE_FRACTION * np.linalg.norm(corners[0] - middle)
        self.reach = float(max(np.linalg.norm(start.position - middle), least))
        longest, total = max(start.width, start.height), start.width * start.height
        small = blur > 0 and min(start.width, start.height) * COARSE_SIDE >= 2 * longest
        self.scale = min(1.0, COARSE_SIDE / longest) if small else 1.0
        self.camera = self._scaled(start)
        self.pixels = self.rows = self.columns = self.share = None
        if blur:
            size = (self.camera.height, self.camera.width)
            rows, columns = (_gaussian(n, of, blur * longest) for n, of in zip(size, target.shape, strict=False))
            kept = target if mask is None else target * mask[..., None]
            self.target = np.einsum("iv,vuc,ju->ijc", rows, kept, columns, optimize=True)
            self.share = None if mask is None else _share(mask, *size)
            self.rows, self.columns = (_gaussian(n, n, blur * longest * self.scale) for n in size)
        else:
            if total > MAX_FINE_PIXELS or mask is not None:
                counts = np.arange(total) if mask is None else np.flatnonzero(mask)
                few = min(len(counts), MAX_FINE_PIXELS)
                self.pixels = np.sort(np.random.default_rng(seed).choice(counts, few, replace=False))
            self.target = target.reshape(total, -1)[slice(None) if self.pixels is None else self.pixels]
        self.count = self.target.size // self.target.shape[-1]

    def _scaled(self, camera: Camera) -> Camera:
        return camera if self.scale == 1 else camera.scaled(self.scale)

    def _blurred(self, values: np.ndarray) -> np.ndarray:
        """(pixel, channel) values after the blur."""
        if self.rows is None or self.columns is None:
            return values
        grid = values.reshape(len(self.rows), len(self.columns), -1)
        grid = grid if self.share is None else grid * self.share
        return np.einsum("iv,vuc,ju->ijc", self.rows, grid, self.columns, optimize=True)

    def set_camera(self, seen: Linearised, state: State) -> bool:
        """Set the camera of a state. Returns False if the volume is out of sight, or as small as a dot."""
        camera, exposure = state
        away = float(np.linalg.norm(camera.position - self.corners.mean(0)))
        if away > MAX_DISTANCE_RATIO * self.reach or out_of_sight(camera, self.corners):
            return False
        seen.set_camera(self._scaled(camera), exposure, self.pixels)
        return bool((seen.image()[:, 3] != 1).any())

    def linearise(self, seen: Linearised, state: State) -> tuple[np.ndarray, np.ndarray]:
        """(r, J) by the columns of the sought groups, in units of `scales`; r is infinite where nothing is seen."""
        columns = len(self.scales)
        if not self.set_camera(seen, state):
            return np.full(self.target.size, np.inf), np.zeros((self.target.size, columns))
        channels = self.target.shape[-1]
        image = self._blurred(seen.image()[:, :channels])
        jacobian = seen.jacobian(self.parameters)[:, :channels] * self.scales
        jacobian = self._blurred(jacobian.reshape(len(jacobian), -1)).reshape(-1, columns)
        residual = image.reshape(-1) - self.target.reshape(-1)
        return residual.astype(seen.dtype), jacobian  # by which the solver knows how the image was rounded

    @property
    def scales(self) -> np.ndarray:
        """What one unit of a step is: radians, the same seen from the object, parts of the focal, of the width, 1."""
        focal, width = self.start.focal, self.start.width
        of = {
            "pose": [self.reach] * 3 + [1.0] * 3,
            "focal": [self.scale * f for f in focal],
            "principal_point": [self.scale * width] * 2,
            "lens": [1.0] * len(self.start.lens.names),
            "exposure": [1.0] * 6,
        }
        return np.concatenate([np.ravel(of[name]) for name in self.parameters])

    def retract(self, state: State, move: np.ndarray) -> State:
        """The state after a step, of at most LONGEST."""
        camera, exposure = state
        move = move * min(1.0, MAX_STEP / max(float(np.linalg.norm(move)), MAX_STEP)) * self.scales
        ends = np.cumsum([int(np.prod(group_shape(name, camera.lens))) for name in self.parameters])
        parts = dict(zip(self.parameters, np.split(move, ends[:-1]), strict=True))
        if "pose" in parts:
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(parts.pop("pose")))
        if "exposure" in parts:
            exposure = exposure + parts.pop("exposure")
        for name in {"focal", "principal_point"} & set(parts):
            parts[name] = parts[name] / self.scale
        return move_intrinsics(camera, **parts) if parts else camera, exposure


def _gaussian(count: int, of: int, width: float) -> np.ndarray:
    """(count, of) rows of weights: the mean of `of` samples around the centre of each of `count` equal parts."""
    centres = (np.arange(count) + 0.5) * of / count
    weights = np.exp(-0.5 * ((np.arange(of) + 0.5 - centres[:, None]) / width) ** 2)
    return weights / weights.sum(1, keepdims=True)


def _share(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """Fraction (height, width, 1) of each pixel of a smaller image that a mask keeps."""
    return shrink(np.where(mask, np.uint8(255), np.uint8(0))[..., None], width, height) / 255


REGISTERED_PARAMETERS = ("pose", "focal", "principal_point", "lens", "exposure")
BLURS = (1 / 12, 1 / 24, 1 / 48, 1 / 96, 0.0)  # standard deviations, of the image's longer side


@dataclass(frozen=True, eq=False)
class Registration:
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

    def _repr_html_(self) -> str | None:
        return html_of(registration_card, self)


def registration_card(found: Registration) -> str:
    """HTML of a registration for a notebook: what is left of the difference, and the camera."""
    rows = [
        ("error", f"{found.error:.4g} root mean square, colours in 0..1"),
        ("converged", "yes" if found.converged else "no"),
        ("linear systems", found.steps),
        ("exposure", numbers_text(found.exposure)),
    ]
    return card_html("Registration", rows, [camera_card(found.camera)])


@checked(
    volume=COLOUR_VOLUME,
    start=replace(CAMERA, cure="call rm.register(volume, image, start)"),
    parameters=some_of(*REGISTERED_PARAMETERS),
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
        raise _unseen_error(volume.corners, "its box lies outside the image")
    levels = [BlurLevel(target, mask, start, blur, parameters, volume.corners, seed) for blur in BLURS]
    most = max(levels, key=lambda level: level.count)
    columns = sum(int(np.prod(group_shape(name, start.lens))) for name in parameters if name != "exposure")
    pixels, columns = most.pixels, max(columns, 1)
    with Linearised(volume, most.camera, background=background, march=march, pixels=pixels, columns=columns) as seen:
        return _search(seen, levels, (start, np.asarray(exposure, float)), steps, show)


def _search(
    seen: Linearised, levels: list[BlurLevel], state: State, steps: int, show: Callable[[float], None] | None
) -> Registration:
    """Search from blur to blur. Each search starts where the one before ended."""
    taken = 0
    for i, level in enumerate(levels):
        if not level.set_camera(seen, state):
            counted = ", or left out by the mask" if level.masked else ""
            raise _unseen_error(level.corners, f"what of its box is in the image is transparent{counted}")
        solution = levenberg_marquardt(
            partial(level.linearise, seen), state, steps=steps, tolerance=1e-6, retract=level.retract
        )
        state, taken = solution.x, taken + solution.steps  # type: ignore[assignment]
        if show is not None:
            show((i + 1) / len(levels))
    error = float(np.sqrt(2 * solution.cost / levels[-1].target.size))
    return Registration(state[0], state[1], error, taken, solution.converged)


def _unseen_error(corners: np.ndarray, why: str) -> RaymarchError:
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
