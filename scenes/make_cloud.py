"""Makes scenes/cloud: views of a true participating medium, with the radiance integral solved to 1e-6.

The medium emits and absorbs: L = integral of sigma(x(t)) c(x(t)) exp(-tau(t)) dt and alpha = 1 - exp(-tau_total).
sigma is a sum of Gaussians faded to zero at the faces of the box [-1, 1]^3, and c a smooth colour: both are analytic,
so a fitted volume can be compared with the medium itself. Nothing here imports the project.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path

import numpy as np
from common import camera_directions, set_arguments, spiral_cameras, write_set

BOX = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
CAMERA_ANGLE_X = np.deg2rad(27.5)
CAMERA_RADIUS = 4.0
SINES = (-1.0, 1.0)
MAXIMUM_TAU = 2.5
PUFFS = 13
PANELS, ORDER = 10, 8
RAYS_AT_ONCE = 512


class Cloud:
    """A seeded cumulus: a few wide puffs along a flat base and smaller ones heaped upon them."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 11])
        wide = PUFFS // 3
        along = np.linspace(-0.52, 0.52, wide) + rng.uniform(-0.05, 0.05, wide)
        base = np.stack([along, rng.uniform(-0.22, 0.22, wide), rng.uniform(-0.28, -0.2, wide)], axis=1)
        azimuth = np.arange(PUFFS - wide) * 2.4 + rng.uniform(0.0, 0.6, PUFFS - wide)
        spread = np.linspace(0.05, 0.5, PUFFS - wide) + rng.uniform(-0.04, 0.04, PUFFS - wide)
        height = 0.40 - 0.95 * spread + rng.uniform(-0.06, 0.06, PUFFS - wide)
        heap = np.stack([1.15 * spread * np.cos(azimuth), 0.95 * spread * np.sin(azimuth), height], axis=1)
        self.centres = np.concatenate([base, heap])
        self.deviations = np.concatenate(
            [rng.uniform([0.20, 0.19, 0.10], [0.25, 0.25, 0.13], (wide, 3)), rng.uniform(0.11, 0.19, (len(heap), 3))]
        )
        self.peaks = np.concatenate([rng.uniform(0.5, 0.7, wide), rng.uniform(0.8, 1.3, len(heap))])
        sun = np.array([0.45, -0.5, 0.74])
        self.sun = sun / np.linalg.norm(sun)
        self.peaks *= MAXIMUM_TAU / self._greatest_tau()

    def _puffs(self, points: np.ndarray) -> np.ndarray:
        """Each puff's own coordinates (puff, ..., 3), in standard deviations."""
        lead = (len(self.centres),) + (1,) * (points.ndim - 1) + (3,)
        return (points - self.centres.reshape(lead)) / self.deviations.reshape(lead)

    def density(self, points: np.ndarray) -> np.ndarray:
        """sigma (...), in 1 / world unit, at world points (..., 3); zero outside the box."""
        points = np.asarray(points, dtype=np.float64)
        sigma = np.tensordot(self.peaks, np.exp(-0.5 * np.square(self._puffs(points)).sum(-1)), axes=1)
        # A polynomial in each axis, flat in the middle and zero with its slope at the faces: it stays smooth on a ray.
        fade = np.prod(np.square(1.0 - np.clip(points, -1.0, 1.0) ** 8), axis=-1)
        return sigma * fade

    def colour(self, points: np.ndarray) -> np.ndarray:
        """c (..., 3) at world points (..., 3): white towards the sun, blue-grey in the cloud's own shade."""
        points = np.asarray(points, dtype=np.float64)
        puffs = self._puffs(points)
        towards = self.sun / self.deviations
        lengths = np.linalg.norm(towards, axis=1).reshape((-1,) + (1,) * (points.ndim - 1))
        along = np.einsum("k...i,ki->k...", puffs, towards) / lengths
        across = np.square(puffs).sum(-1) - along**2
        # A Gaussian's optical depth towards the sun, its error function replaced by the logistic curve.
        weight = np.sqrt(2.0 * np.pi) / lengths / (1.0 + np.exp(np.clip(1.702 * along, -60.0, 60.0)))
        lit = np.exp(-1.1 * np.tensordot(self.peaks, weight * np.exp(-0.5 * across), axes=1))[..., None]
        dusk = 0.5 + 0.5 * np.sin(2.2 * points[..., :1] + 1.1 * points[..., 1:2] + 0.6)
        shade = np.array([0.18, 0.26, 0.46]) + dusk * np.array([0.12, 0.0, 0.0])
        sunlit = np.array([0.90, 0.86, 0.76]) + dusk * np.array([0.0, -0.09, -0.15])
        return shade + lit * (sunlit - shade)

    def _greatest_tau(self) -> float:
        """The greatest optical depth over parallel rays in many directions, before scaling."""
        cameras = spiral_cameras(32, "train", SINES, CAMERA_RADIUS, 0)
        offsets = np.linspace(-0.8, 0.8, 25)
        across, upward = np.meshgrid(offsets, offsets)
        greatest = 0.0
        for pose in cameras:
            origins = across[..., None] * pose[:3, 0] + upward[..., None] * pose[:3, 1] + pose[:3, 3]
            directions = np.broadcast_to(-pose[:3, 2], origins.shape)
            t = CAMERA_RADIUS + np.linspace(-1.4, 1.4, 43)
            points = origins[..., None, :] + t[:, None] * directions[..., None, :]
            greatest = max(greatest, float(self.density(points).sum(-1).max() * (t[1] - t[0])))
        return greatest


@cache
def default_cloud() -> Cloud:
    return Cloud(0)


def density(points: np.ndarray) -> np.ndarray:
    """sigma (...) of the shipped cloud at world points (..., 3)."""
    return default_cloud().density(points)


def colour(points: np.ndarray) -> np.ndarray:
    """c (..., 3) of the shipped cloud at world points (..., 3)."""
    return default_cloud().colour(points)


@cache
def panel_rule(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre on [0, 1]: nodes, weights, and the matrix from values at the nodes to integrals up to them."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    values = np.polynomial.legendre.legvander(nodes, order - 1)
    integrals = np.stack(
        [np.polynomial.legendre.legval(nodes, np.polynomial.legendre.legint(row, lbnd=-1)) for row in np.eye(order)], 1
    )
    return 0.5 * (nodes + 1.0), 0.5 * weights, 0.5 * integrals @ np.linalg.inv(values)


def box_span(origins: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where rays enter and leave the box; near >= far where they miss it."""
    with np.errstate(divide="ignore"):
        inverse = 1.0 / directions
    first, second = (BOX[0] - origins) * inverse, (BOX[1] - origins) * inverse
    return np.minimum(first, second).max(-1).clip(0.0), np.maximum(first, second).min(-1)


def integrate(
    cloud: Cloud, origins: np.ndarray, directions: np.ndarray, panels: int = PANELS, order: int = ORDER
) -> tuple[np.ndarray, np.ndarray]:
    """(L (N, 3), tau_total (N,)) along rays (N, 3): Gauss-Legendre in panels, tau carried at the same order."""
    nodes, weights, up_to = panel_rule(order)
    near, far = box_span(origins, directions)
    step = (far - near) / panels
    t = near[:, None, None] + step[:, None, None] * (np.arange(panels)[:, None] + nodes)
    points = origins[:, None, None] + t[..., None] * directions[:, None, None]
    sigma = cloud.density(points)
    within = step[:, None] * (sigma @ weights)
    before = np.cumsum(within, axis=1) - within
    tau = before[..., None] + step[:, None, None] * (sigma @ up_to.T)
    emitted = step[:, None, None] * weights * sigma * np.exp(-tau)
    return np.einsum("npq,npqc->nc", emitted, cloud.colour(points)), within.sum(axis=1)


def render(cloud: Cloud, world_from_camera: np.ndarray, resolution: int) -> tuple[np.ndarray, float]:
    """One view as straight-alpha RGBA (H, W, 4), the ray through each pixel's centre, and its greatest tau."""
    x, y = np.meshgrid(np.arange(resolution) + 0.5, np.arange(resolution) + 0.5)
    directions = camera_directions(world_from_camera, CAMERA_ANGLE_X, resolution, x, y).reshape(-1, 3)
    origins = np.broadcast_to(world_from_camera[:3, 3], directions.shape)
    near, far = box_span(origins, directions)
    crossing = np.flatnonzero(far > near)
    rgba, greatest = np.zeros((resolution * resolution, 4)), 0.0
    for start in range(0, len(crossing), RAYS_AT_ONCE):
        part = crossing[start : start + RAYS_AT_ONCE]
        radiance, tau = integrate(cloud, origins[part], directions[part])
        alpha = -np.expm1(-tau)
        rgba[part, :3] = radiance / np.maximum(alpha, 1e-300)[:, None]
        rgba[part, 3] = alpha
        greatest = max(greatest, float(tau.max()))
    return rgba.reshape(resolution, resolution, 4), greatest


def scene_cameras(train: int = 48, test: int = 12, seed: int = 0) -> dict[str, list[np.ndarray]]:
    counts = {"train": train, "test": test}
    return {split: spiral_cameras(count, split, SINES, CAMERA_RADIUS, seed) for split, count in counts.items()}


def integration_error(cloud: Cloud, cameras: list[np.ndarray], rays: int = 200) -> float:
    """The greatest difference in L or alpha from a rule of four times the panels, over random rays of the cameras."""
    rng = np.random.default_rng(5)
    poses = np.stack(cameras)[rng.integers(len(cameras), size=rays)]
    origins = poses[:, :3, 3]
    directions = rng.uniform(-0.6, 0.6, (rays, 3)) - origins
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radiance, tau = integrate(cloud, origins, directions)
    finer_radiance, finer_tau = integrate(cloud, origins, directions, 4 * PANELS)
    return float(max(abs(radiance - finer_radiance).max(), abs(np.expm1(-tau) - np.expm1(-finer_tau)).max()))


def write_grid(cloud: Cloud, size: int, path: Path, with_colour: bool) -> None:
    """The density at the corners and between, size^3 samples, as an .npz that appears whole or not at all."""
    axis = np.linspace(-1.0, 1.0, size)
    sigma = np.empty((size, size, size), np.float32)
    rgb = np.empty((size, size, size, 3), np.float16) if with_colour else None
    for i, x in enumerate(axis):
        points = np.stack(np.broadcast_arrays(x, axis[:, None], axis[None, :]), axis=-1)
        sigma[i] = cloud.density(points)
        if rgb is not None:
            rgb[i] = cloud.colour(points)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"sigma": sigma, "box": BOX} | ({} if rgb is None else {"colour": rgb})
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            np.savez(file, **arrays)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def main(arguments: list[str] | None = None) -> None:
    parser: argparse.ArgumentParser = set_arguments(__doc__, 160, 48, 12)
    parser.add_argument("--density", type=int, metavar="N", help="write the density on an N^3 grid to --out instead")
    parser.add_argument("--with-colour", action="store_true", help="put the colour in the grid file as well")
    options = parser.parse_args(arguments)
    cloud = Cloud(options.seed)
    if options.density is not None:
        if options.out is None or options.density < 2:
            parser.error("--density N wants N >= 2 and --out FILE.npz")
        write_grid(cloud, options.density, options.out, options.with_colour)
        return
    cameras = scene_cameras(options.train, options.test, options.seed)
    error = integration_error(cloud, cameras["train"] + cameras["test"])
    print(f"integration error {error:.1e}")
    assert error < 1e-6
    greatest: list[float] = []

    def render_view(split: str, index: int) -> np.ndarray:
        rgba, tau = render(cloud, cameras[split][index], options.resolution)
        greatest.append(tau)
        return rgba

    folder = options.out or Path(__file__).parent / "cloud"
    coverage = write_set(folder, CAMERA_ANGLE_X, cameras, render_view)
    print(f"mean alpha {coverage:.3f}, greatest tau {max(greatest):.3f}")


if __name__ == "__main__":
    main()
