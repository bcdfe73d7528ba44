"""Benchmark workload: a volume, rays and views made from a seed, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.device.memory import require_memory
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import affine_of_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.rays import Rays
from raymarch.rendering.ray_batches import pixels_in_tiles
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.volume import Volume

CAMERA_POSITION = (1.7, 1.2, 2.2)
FOV = np.deg2rad(50)
BYTES_A_SAMPLE, BYTES_A_RAY = 70, 200  # at most while it is made; 64 and 173 were measured
GAUSSIAN_COUNT, PEAK_SIGMA = 12, 4.0
RAYS_A_TILE = 16  # rays of a tile of a fit
ORBIT_VIEWS, HOLDOUT = 40, 8  # views of the object, and every so manyth of them is not fitted


@dataclass(frozen=True, eq=False)
class Workload:
    """Benchmark scene: a grid seen by one camera.

    Attributes:
        volume: RGB and sigma on [-1, 1]^3.
        rays: one a pixel, square by square, as a renderer takes them (`pixels_in_tiles`).
        samples: whole steps of half a voxel along all rays; the shorter last step of each is marched too, not counted.
        d_image: (ray, 4) gradient of a loss by colour and transmittance.
    """

    volume: Volume
    rays: Rays
    samples: int
    d_image: np.ndarray


def workload(n: int = 128, resolution: int = 256, seed: int = 0) -> Workload:
    """Synthetic scene of twelve Gaussians of density and white noise of colour on n^3 samples, for resolution^2 pixels.

    Raises RaymarchError where either is out of bounds, or the memory does not suffice.

    Example:
        >>> workload(128, 256).samples
        9582742
    """
    whole = all(isinstance(size, (int, np.integer)) for size in (n, resolution))
    if not (whole and 4 <= n <= 1024 and 1 <= resolution <= 8192):
        raise RaymarchError(f"workload of {n}^3 samples and {resolution}^2 pixels: want 4 to 1024, and 1 to 8192")
    require_memory((n, n, n), BYTES_A_SAMPLE * n**3 + BYTES_A_RAY * resolution**2, 4, "take a smaller n or resolution")
    rng = np.random.default_rng(seed)
    axis = np.linspace(-1, 1, n, dtype=np.float32)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    sigma = np.zeros((n, n, n), np.float32)
    for _ in range(GAUSSIAN_COUNT):
        c, r = rng.uniform(-0.6, 0.6, 3), rng.uniform(0.1, 0.35)
        near = np.exp(-((x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2) / (r * r))
        sigma += PEAK_SIGMA * near.astype(np.float32)
    features = rng.uniform(0, 1, (n, n, n, 3)).astype(np.float32) / np.float32(Y00)
    place = affine_of_box([(-1, -1, -1), (1, 1, 1)], (n, n, n))
    volume = Volume(sigma, features, place, Activation("relu", 0, 1, "identity"))
    rays = rays_of_image(resolution)
    with np.errstate(divide="ignore"):
        t0, t1 = (-1 - rays.origin) / rays.direction, (1 - rays.origin) / rays.direction
    near = np.maximum(np.minimum(t0, t1).max(1), 0)
    far = np.maximum(np.maximum(t0, t1).min(1), near)
    d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
    d_image = d_image[pixels_in_tiles(0, resolution**2, resolution, resolution)]
    d_image[:, 3] = 0
    return Workload(volume, rays, int(((far - near) * (n - 1)).astype(int).sum()), d_image)


def noise(n: int, degree: int, seed: int = 0) -> Volume:
    """Synthetic volume of white noise on n^3 samples, read as a fit's is; on [-1, 1]^3."""
    rng = np.random.default_rng(seed)
    density = rng.random((n, n, n), np.float32)
    features = rng.random((n, n, n, 3 * (degree + 1) ** 2), np.float32)
    return Volume(density, features, affine_of_box([(-1, -1, -1), (1, 1, 1)], (n, n, n)), Activation())


def rays_of_image(resolution: int) -> Rays:
    """Rays of an image of resolution^2 pixels, square by square, as a renderer takes them."""
    order = pixels_in_tiles(0, resolution**2, resolution, resolution)
    rays = Camera.look_at(CAMERA_POSITION, up=(0, 1, 0), fov=FOV, width=resolution, height=resolution).rays()
    return Rays(rays.origin[order], rays.direction[order])


def rays_of_step(resolution: int, count: int, seed: int = 0) -> Rays:
    """Rays of a fit's step: tiles of 4 x 4 pixels at random, of images of resolution^2 pixels from all around."""
    rng = np.random.default_rng(seed)
    order = pixels_in_tiles(0, resolution**2, resolution, resolution)
    origins, directions = [], []
    for _ in range(count // RAYS_A_TILE):
        eye = rng.normal(size=3)
        eye *= np.linalg.norm(CAMERA_POSITION) / np.linalg.norm(eye)
        camera = Camera.look_at(eye, up=np.eye(3)[abs(eye).argmin()], fov=FOV, width=resolution, height=resolution)
        rays = camera.rays(order[RAYS_A_TILE * rng.integers(len(order) // RAYS_A_TILE) :][:RAYS_A_TILE])
        origins.append(rays.origin)
        directions.append(rays.direction)
    return Rays(np.concatenate(origins), np.concatenate(directions))


def views_of_blobs(resolution: int = 128, n: int = 64) -> tuple[Views, Views]:
    """Synthetic image set: training and test views of opaque blobs of six colours, with alpha, rendered here."""
    rng = np.random.default_rng(0)
    centres, radii = rng.uniform(-0.6, 0.6, (GAUSSIAN_COUNT, 3)), rng.uniform(0.15, 0.35, GAUSSIAN_COUNT)
    tints = rng.uniform(0.1, 0.9, (GAUSSIAN_COUNT, 3))

    def near(p: np.ndarray) -> np.ndarray:
        away = np.linalg.norm(p[..., None, :] - centres, axis=-1) - radii
        return 1 / (1 + np.exp(np.clip(60 * away, -50, 50)))

    def colour(p: np.ndarray) -> np.ndarray:
        weight = near(p) + 1e-6
        return (weight @ tints) / weight.sum(-1)[..., None]

    volume = Volume.from_function(lambda p: 60 * near(p).max(-1), colour, shape=(n, n, n))
    golden = np.pi * (3 - np.sqrt(5))
    images, cameras = [], []
    with Renderer(volume) as renderer:
        for i in range(ORBIT_VIEWS):
            z = 1 - 2 * (i + 0.5) / ORBIT_VIEWS
            flat = np.sqrt(1 - z * z)
            eye = 4 * np.array([flat * np.cos(golden * i), flat * np.sin(golden * i), z])
            up = (0, 0, 1) if flat > 0.2 else (1, 0, 0)
            camera = Camera.look_at(eye, up=up, fov=0.6, width=resolution, height=resolution)
            seen = renderer.render(camera, (0, 0, 0), depth=False)
            alpha = seen.opacity[..., None]
            straight = seen.image / np.maximum(alpha, 1e-6)
            image = np.concatenate([np.clip(straight, 0, 1), alpha], -1)
            images.append(np.round(255 * image).astype(np.uint8))
            cameras.append(camera)
    held = np.arange(ORBIT_VIEWS) % HOLDOUT == HOLDOUT // 2

    def some(which: np.ndarray) -> Views:
        kept = np.flatnonzero(which)
        return Views([cameras[i] for i in kept], np.stack([images[i] for i in kept]))

    return some(~held), some(held)
