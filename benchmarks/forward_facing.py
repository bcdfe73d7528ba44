"""Nested boxes against NDC on a forward-facing set made here.

python benchmarks/forward_facing.py [--steps N] [--boxes N] [--ndc N] [--arc DEGREES] [--set NAME=VALUE ...]

Twenty cameras in 4 rows of 5, of 160 x 120 pixels, look at textured rectangles from 1.3 to 20 units away, a ground and
a wall at 200; five more between them are held out. `--arc` puts them on an arc about a point 3 units ahead instead.
Both fits have the same steps and are of preset photos; `--boxes` and `--ndc` are their resolutions, which make about
as many samples of both. `--set` changes both.
"""

from __future__ import annotations

import argparse
import ast
import time
from dataclasses import replace

import numpy as np
from plainly import plainly

import raymarch as rm

WIDTH, HEIGHT, FOV = 160, 120, 1.0
FINER = 3  # rays a side of a pixel
TURN = 0.4  # of their offset, by which cameras look inwards
# Depth, left, right, low, high, seed of the texture; the last is the wall.
RECTANGLES = [
    (1.3, -0.55, -0.25, -0.4, 0.15, 1), (1.6, 0.25, 0.6, -0.6, -0.05, 2), (2.2, -0.35, 0.2, -0.1, 0.5, 3),
    (3.2, 0.5, 1.5, -0.2, 1.1, 4), (5.0, -2.6, -1.2, -0.6, 1.6, 5), (9.0, -1.0, 1.6, -0.9, 2.2, 6),
    (20.0, 3.0, 9.0, -1.0, 6.0, 7), (200.0, -1e4, 1e4, -1e4, 1e4, 8),
]  # fmt: skip


def texture(places: np.ndarray, seed: int, scale: float) -> np.ndarray:
    """Colours (place, 3) in 0..1 of places (place, 2) on a plane: waves, and squares of other brightness."""
    rng = np.random.default_rng(seed)
    colour = np.tile(rng.uniform(0.3, 0.7, 3), (len(places), 1))
    for _ in range(6):
        way = rng.normal(size=2)
        way *= rng.uniform(0.6, 3.0) / np.linalg.norm(way) / scale
        colour += 0.09 * np.sin(2 * np.pi * (places @ way) + rng.uniform(0, 6))[:, None] * rng.uniform(-1, 1, 3)
    noise = np.sin(np.floor(places / (0.7 * scale)) @ np.array([12.9898, 78.233]) + seed) * 43758.5453
    return np.clip(colour + 0.25 * ((noise - np.floor(noise))[:, None] - 0.5), 0, 1)


def cast(rays: rm.Rays) -> tuple[np.ndarray, np.ndarray]:
    """Colours (ray, 3) and distances (ray,) of what rays meet first; depth is along -z."""
    o, d = rays.origin, rays.direction
    colour, nearest = np.zeros((len(d), 3)), np.full(len(d), np.inf)
    for depth, left, right, low, high, seed in RECTANGLES:
        t = (-depth - o[:, 2]) / d[:, 2]
        x, y, _ = (o + t[:, None] * d).T
        hit = (x > left) & (x < right) & (y > low) & (y < high) & (t > 0) & (t < nearest)
        colour[hit], nearest[hit] = texture(np.stack([x, y], 1)[hit], seed, 0.07 * depth), t[hit]
    t = (-1.0 - o[:, 1]) / np.where(d[:, 1] < 0, d[:, 1], -1e-9)
    x, _, z = (o + t[:, None] * d).T
    hit = (d[:, 1] < 0) & (t < nearest) & (z < -1.0)
    ground = np.stack([x[hit] / 0.25, 3 * np.log(np.maximum(-z[hit], 1.0))], axis=1)
    colour[hit], nearest[hit] = texture(ground, 9, 0.5), t[hit]
    return colour, nearest


def photograph(camera: rm.Camera) -> tuple[np.ndarray, np.ndarray]:
    """Image (height, width, 3) uint8, and points (200, 3) that are seen in it."""
    colour, _ = cast(camera.scaled(FINER).rays())
    image = colour.reshape(camera.height, FINER, camera.width, FINER, 3).mean((1, 3))
    rays = camera.rays(np.random.default_rng(1).integers(0, camera.width * camera.height, 200))
    return np.round(255 * image).astype(np.uint8), rays.origin + cast(rays)[1][:, None] * rays.direction


def made(arc: float | None) -> tuple[rm.Views, rm.Views]:
    """Views to fit, with points, and those held out."""
    rng = np.random.default_rng(0)

    def camera(x: float, y: float) -> rm.Camera:
        if arc is None:
            eye = np.array([x, y, rng.normal(0, 0.02)])
            target = eye + np.array([rng.normal(0, 0.04) - TURN * x, rng.normal(0, 0.04) - TURN * y, -1])
        else:
            a, b, middle = np.deg2rad(arc) * x / 0.4, 0.5 * np.deg2rad(arc) * y / 0.3, np.array([0, 0, -3.0])
            eye = middle + 3 * np.array([np.sin(a) * np.cos(b), np.sin(b), np.cos(a) * np.cos(b)])
            target = middle + rng.normal(0, 0.1, 3)
        return rm.Camera.look_at(eye, target, (0, 1, 0), fov=FOV, width=WIDTH, height=HEIGHT)

    train = [camera(x, y) for x in np.linspace(-0.4, 0.4, 5) for y in np.linspace(-0.3, 0.3, 4)]
    test = [camera(x, y) for x, y in [(-0.3, 0.2), (0.1, 0.0), (0.3, -0.2), (-0.1, -0.2), (0.2, 0.1)]]
    fitted, held_out = ([photograph(one) for one in some] for some in (train, test))
    points = np.concatenate([seen for _, seen in fitted])
    return rm.Views(train, np.stack([i for i, _ in fitted]), points=points), rm.Views(test, [i for i, _ in held_out])


def main() -> None:
    """Fit, score, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--boxes", type=int, default=64)
    parser.add_argument("--ndc", type=int, default=88)
    parser.add_argument("--arc", type=float)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    chosen = parser.parse_args()
    changes = {name: ast.literal_eval(value) for name, _, value in (pair.partition("=") for pair in chosen.set)}
    train, test = made(chosen.arc)
    settings = replace(rm.preset("photos", rays=4096, **changes), steps=chosen.steps)
    for name, own in (("nested", {"resolution": chosen.boxes}), ("ndc", {"resolution": chosen.ndc, "boxes": 1})):
        began = time.perf_counter()
        volume = rm.fit(train, replace(settings, ndc=name == "ndc", **own)).volume
        taken, score = time.perf_counter() - began, rm.evaluate(volume, test)
        size = f"{np.prod(volume.shape) / 1e6:.1f} million samples"
        print(f"{name:6} {size}, {taken:.0f} s: {score.psnr:.2f} dB, SSIM {score.ssim:.3f}", flush=True)


if __name__ == "__main__":
    plainly(main)
