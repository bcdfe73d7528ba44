"""Blur level of a camera registration: rendering less image, both blurred alike, and its Jacobian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import exp_rigid
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import shape_of
from raymarch.gradients.projection import out_of_sight
from raymarch.registration.intrinsics import intrinsics_moved
from raymarch.views.resize import shrink

State = tuple[Camera, np.ndarray]  # and exposure
COARSE = 128  # pixels a side at which blurred images are compared
FINE = 1 << 16  # pixels at most of the last, sharp comparison
LONGEST = 10.0  # a step, in its own units: the start's distance, radians
INSIDE = 0.25  # of the way from the volume's middle to its corner: the least that a camera's distance counts as
FARTHEST = 100.0  # a camera, in the start's distances: in single precision rays from farther off miss what they see


class BlurLevel:
    """The residual at one blur: rendering less target, both blurred alike, and both 0 where the mask is False.

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
        self, target: np.ndarray, mask: np.ndarray | None, start: Camera, blur: float, parameters: Sequence[str],
        corners: np.ndarray, seed: int,
    ):  # fmt: skip
        self.start, self.parameters, self.corners, self.masked = start, parameters, corners, mask is not None
        middle = corners.mean(0)
        least = INSIDE * np.linalg.norm(corners[0] - middle)
        self.reach = float(max(np.linalg.norm(start.position - middle), least))
        longest, total = max(start.width, start.height), start.width * start.height
        small = blur > 0 and min(start.width, start.height) * COARSE >= 2 * longest
        self.scale = min(1.0, COARSE / longest) if small else 1.0
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
            if total > FINE or mask is not None:
                counts = np.arange(total) if mask is None else np.flatnonzero(mask)
                few = min(len(counts), FINE)
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
        """Turn `seen` to a state; False where nothing of the volume is in sight, or it is a dot."""
        camera, exposure = state
        away = float(np.linalg.norm(camera.position - self.corners.mean(0)))
        if away > FARTHEST * self.reach or out_of_sight(camera, self.corners):
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
        move = move * min(1.0, LONGEST / max(float(np.linalg.norm(move)), LONGEST)) * self.scales
        ends = np.cumsum([int(np.prod(shape_of(name, camera.lens))) for name in self.parameters])
        parts = dict(zip(self.parameters, np.split(move, ends[:-1]), strict=True))
        if "pose" in parts:
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(parts.pop("pose")))
        if "exposure" in parts:
            exposure = exposure + parts.pop("exposure")
        for name in {"focal", "principal_point"} & set(parts):
            parts[name] = parts[name] / self.scale
        return intrinsics_moved(camera, **parts) if parts else camera, exposure


def _gaussian(count: int, of: int, width: float) -> np.ndarray:
    """(count, of) rows of weights: the mean of `of` samples around the centre of each of `count` equal parts."""
    centres = (np.arange(count) + 0.5) * of / count
    weights = np.exp(-0.5 * ((np.arange(of) + 0.5 - centres[:, None]) / width) ** 2)
    return weights / weights.sum(1, keepdims=True)


def _share(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """Share (height, width, 1) of each pixel of a smaller image that a mask leaves."""
    return shrink(np.where(mask, np.uint8(255), np.uint8(0))[..., None], width, height) / 255
