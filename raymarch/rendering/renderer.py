"""Images of volumes: whole cameras, any rays; the same whatever the batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.arguments import checked, held, hold, renamed
from raymarch.arrays import colour as colour_of
from raymarch.checks import flag, instance_of, number, one_of, optional, whole
from raymarch.data.views import require_colour
from raymarch.data.volume import VOLUME, Volume
from raymarch.device.grid import MODES, Grid, Variant
from raymarch.device.memory import BATCH, BYTES_A_RAY, MAX_CELLS, available_bytes
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.pixel_order import pixels_in_tiles
from raymarch.geometry.rays import RAYS, Rays
from raymarch.kernels.march.depth import march_depth
from raymarch.kernels.march.march import march
from raymarch.kernels.rays.camera import jitter_pixels, rays_of_pixels

INVISIBLE = 5e-6  # of the brightest colour, or 1: what a ray may lose by skipping, over the whole box


@renamed(stop="min_transmittance", least="min_weight")
@dataclass(frozen=True)
class March:
    """How a ray is sampled.

    Attributes:
        step: length of a step in voxels.
        min_transmittance: early ray termination: a ray ends where less than that of the light passes; what it hides is
            at most that much of the image.
        min_weight: weight below which a sample's colour is taken as black: a ray loses at most this times its samples.
        batch: rays a launch; no effect on the image.
        mode: how samples add up: "emission-absorption", "additive" (opacities summed up to 1, as in Neural Volumes) or
            "x-ray" (the integral of sigma in each colour, without colour, background or early stop).
        jitter: each ray's first step is shorter by a random share of a step, up to this, 0..1; breaks up bands.
        step_jitter: each ray's steps are longer or shorter by a random share up to this, 0 to under 1.
        seed: of the jitter, which is a function of seed and pixel alone.
    """

    step: float = held(number(1e-3, 1e6), 0.5)
    min_transmittance: float = held(number(0, 1, below=True), 1e-4)
    min_weight: float = held(number(0, 1, below=True), 1e-6)
    batch: int = held(whole(1, 1 << 26), BATCH)
    mode: str = held(one_of(*MODES), MODES[0])
    jitter: float = held(number(0, 1), 0.0)
    step_jitter: float = held(number(0, 1, below=True), 0.0)
    seed: int = held(whole(0, 2**31 - 1), 0)

    def __post_init__(self):
        hold(self)

    @property
    def jittered(self) -> bool:
        """Whether rays have a jitter of their own."""
        return self.jitter > 0 or self.step_jitter > 0

    def variant(self, grid: Grid) -> Variant:
        """How this march reads a grid."""
        return replace(grid.variant, mode=self.mode, jittered=self.jittered)


MARCH = instance_of(March, "rm.March(...)", "with rm.March() for its defaults")
ONE_CAMERA = replace(
    CAMERA, wanted="one Camera", cure="call rm.render(volume, camera); for several, rm.Renderer in a loop"
)
BACKGROUND = optional(colour_of)


@dataclass(frozen=True, eq=False)
class Rendering:
    """What a camera sees.

    Attributes:
        image: (height, width, 3) float32, background included; in 0..1 where colours are.
        opacity: (height, width) float32 in 0..1, one less the transmittance.
        depth: (height, width) float32, mean distance from the camera [world unit], infinite under 1 % opacity.
    """

    image: np.ndarray
    opacity: np.ndarray
    depth: np.ndarray


class Renderer:
    """A volume on the device, ready for many images; `close` it, or use it in a `with`.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> with Renderer(ball) as renderer:
        ...     renderer.render(Camera.look_at((0, -4, 0), width=64, height=64)).image.shape
        (64, 64, 3)
    """

    @checked(volume=VOLUME, settings=MARCH)
    def __init__(self, volume: Volume, settings: March = March()):
        runtime.start()
        self.background = volume.background
        self.settings = settings
        with ExitStack() as owners:
            self.grid = owners.enter_context(Grid(volume.shape, volume.degree))
            self.grid.upload(volume)
            skip_invisible(self.grid, volume, settings.mode)
            self.buffer = owners.enter_context(RayBuffer(settings.batch))
            self._owners = owners.pop_all()

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free the device memory."""
        self._owners.close()

    @checked(camera=ONE_CAMERA, background=BACKGROUND, depth=flag)
    def render(self, camera: Camera, background=None, *, depth: bool = True) -> Rendering:
        """What `camera` sees, over `background` or the volume's own."""
        behind = self.background if background is None else background
        return render_camera(self.grid, self.buffer, camera, behind, self.settings, depth)

    @checked(rays=RAYS, background=BACKGROUND, depth=flag)
    def trace(self, rays: Rays, background=None, *, depth: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Colour and transmittance (ray, 4) and depth (ray,) along rays."""

        def fill(first: int, count: int) -> np.ndarray:
            self.buffer.upload(Rays(rays.origin[first : first + count], rays.direction[first : first + count]))
            return np.arange(first, first + count, dtype=np.int32)

        behind = self.background if background is None else background
        return _march(self.grid, self.buffer, len(rays), fill, behind, self.settings, depth)


def skip_invisible(grid: Grid, volume: Volume, mode: str) -> None:
    """Have a grid's marches skip cells so thin that nobody sees it: none where nothing is too thin to count."""
    if volume.activation.density != "identity" and mode != "x-ray":
        longest = float(np.linalg.norm(volume.box[1] - volume.box[0]))
        grid.refresh_occupancy(INVISIBLE / (longest * brightest(volume)))


def brightest(volume: Volume) -> float:
    """A bound of the volume's colours, 1 or more: by the addition theorem |Y_lm| <= sqrt((2l + 1) / 4 pi)."""
    if volume.activation.colour == "sigmoid":
        return 1.0
    most = max(float(volume.features.max()), -float(volume.features.min()))
    per_band = (2 * np.arange(volume.degree + 1) + 1) ** 1.5 / np.sqrt(4 * np.pi)
    return max(most * float(per_band.sum()) + (0.5 if volume.activation.colour == "clamped" else 0.0), 1.0)


def render_camera(grid: Grid, buffer: RayBuffer, camera: Camera, background, settings: March, depth: bool) -> Rendering:
    """What `camera` sees of a grid, in batches of the buffer's size; without `depth`, all distances are infinite."""
    pose, lens = ti.Matrix(camera.world_from_camera.tolist()), ti.Vector([*camera.focal, *camera.principal])

    def fill(first: int, count: int) -> np.ndarray:
        pixels = pixels_in_tiles(first, count, camera.width, camera.height)
        rays_of_pixels(buffer.fields, pose, lens, camera.width, pixels)
        return pixels

    image, distance = _march(grid, buffer, camera.width * camera.height, fill, background, settings, depth)
    size = (camera.height, camera.width)
    return Rendering(image[:, :3].reshape(*size, 3), 1 - image[:, 3].reshape(size), distance.reshape(size))


def _march(
    grid: Grid, buffer: RayBuffer, total: int, fill: Callable[[int, int], np.ndarray], background, s: March, depth
):
    """Colour and transmittance (ray, 4) and depth (ray,) of rays that `fill` puts into the buffer, and numbers."""
    _require_room(total)
    colour, dt, variant = ti.Vector(list(require_colour(background))), s.step * grid.voxel, s.variant(grid)
    image, distance = np.empty((total, 4), np.float32), np.full(total, np.inf, np.float32)
    for first in range(0, total, buffer.capacity):
        count = min(buffer.capacity, total - first)
        rays = fill(first, count)
        if s.jittered:
            jitter_pixels(buffer.fields, s.seed, rays, s.jitter, s.step_jitter)
        march(grid.fields, buffer.fields, variant, count, dt, s.min_transmittance, s.min_weight, colour)
        image[rays] = buffer.image(count)
        if depth:
            march_depth(grid.fields, buffer.fields, variant, count, dt, s.min_transmittance)
            distance[rays] = buffer.depth(count)
    return image, distance


def _require_room(rays: int) -> None:
    """RaymarchError where so many rays, what is seen of them and an image made of it do not fit."""
    needed, free = BYTES_A_RAY * rays, available_bytes()
    if needed > 0.9 * free or rays > MAX_CELLS:
        room = f"{free:,} are free and {MAX_CELLS:,} rays are the most"
        raise RaymarchError(f"an image of {rays:,} rays takes {needed:,} bytes but {room}; take a smaller one")


@checked(volume=VOLUME, camera=ONE_CAMERA, background=BACKGROUND, march=MARCH, extras=flag)
def render(volume: Volume, camera: Camera, *, background=None, march: March = March(), extras: bool = False):
    """Image (height, width, 3) float32 that `camera` sees of `volume`; with `extras` a `Rendering`.

    The background is the volume's own unless given ("white", "black" or three numbers in 0..1). For many images of
    one volume make a `Renderer` once.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(8, 8, 8))
        >>> render(fog, Camera.look_at((0, -4, 0), width=32, height=32)).shape
        (32, 32, 3)
    """
    with Renderer(volume, march) as renderer:
        seen = renderer.render(camera, background, depth=extras)
    return seen if extras else seen.image
