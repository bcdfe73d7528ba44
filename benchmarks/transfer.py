"""Direct volume rendering through a transfer function, timed beside emission and absorption of the same medium.

The same extinction and colours are marched twice, in turn: as a table of the values, and as a volume of degree 0 that
holds what the table says of each sample. Give a volume as .npz with an array `v`, or none for a phantom of its size.

Example: python benchmarks/transfer.py headsq.npz --size 512
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import raymarch as rm

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("volume", nargs="?")
parser.add_argument("--size", type=int, default=512)
parser.add_argument("--rounds", type=int, default=7)
asked = parser.parse_args()


def values_of(path: str | None) -> np.ndarray:
    """Values (x, y, z) of a file, or shells of noise."""
    if path is not None:
        return np.load(path)["v"].astype(np.float32)
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, n) for n in (93, 64, 64)], indexing="ij"), -1)
    waves = np.sin(9 * x).prod(-1) + np.random.default_rng(0).normal(0, 0.05, x.shape[:3])
    return (2000 * np.clip(1.1 - np.linalg.norm(x, axis=-1) + 0.2 * waves, 0, 2)).astype(np.float32)


def seconds_of(renderer: rm.Renderer, cameras: list[rm.Camera]) -> float:
    """Seconds an image, without depth."""
    started = time.perf_counter()
    for camera in cameras:
        renderer.render(camera, "black", depth=False)
    return (time.perf_counter() - started) / len(cameras)


values = values_of(asked.volume)
place, no_colour = np.diag([1.5, 1.0, 1.0, 1.0]), np.zeros((*values.shape, 3), np.float32)
scalar = rm.Volume(values, no_colour, place, rm.Activation("identity"))
cameras = rm.orbit_of_volume(scalar.box, 4, size=asked.size)
low, high = 0.15 * values.max(), 0.7 * values.max()
for name, ramp in (("fog", (0.0, 0.05)), ("soft", (0.0, 0.4)), ("hard", (0.0, 0.95))):
    for knots in (16, 256):
        table = rm.TransferFunction.of_colormap("bone", low, high, ramp, unit_length=1.0, knots=knots)
        shade = table(values)
        colours = np.log(np.clip(shade[..., :3], 1e-3, 1 - 1e-3) / (1 - np.clip(shade[..., :3], 1e-3, 1 - 1e-3)))
        medium = rm.Volume(
            table.sigma(values), colours / 0.28209479177387814, place, rm.Activation("relu", colour="sigmoid")
        )
        plain = rm.March()
        with (
            rm.Renderer(medium, plain) as as_medium,
            rm.Renderer(scalar, replace(plain, mode="transfer", transfer=table)) as as_table,
        ):
            took = np.array(
                [[seconds_of(each, cameras) for each in (as_medium, as_table)] for _ in range(asked.rounds + 1)][1:]
            )
            seen = as_table.grid.occupied_cells().mean()
        best, ratio = took.min(0), np.median(took[:, 1] / took[:, 0])
        print(
            f"{name:5} {knots:4} knots: emission-absorption {1e3 * best[0]:6.1f} ms, table {1e3 * best[1]:6.1f} ms"
            f" an image of {asked.size}^2, {ratio:.2f} times (median of {asked.rounds}); {seen:.0%} of the cells seen"
        )
