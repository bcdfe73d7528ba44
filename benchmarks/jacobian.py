"""All columns of a Jacobian in one pass against one pass a column, in turn: pose, focal, principal point, ten columns.

python benchmarks/jacobian.py [--resolution 128] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import units
from raymarch.rendering.march_settings import March
from raymarch.volumes.volume import Volume

GROUPS = ("pose", "focal", "principal_point")


def main() -> None:
    """Print seconds and the ratio, best of the rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--resolution", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    n = asked.resolution
    ball = Volume.from_function(
        lambda p: 4 * np.exp(-4 * (p**2).sum(-1)), lambda p: 0.5 + 0.4 * np.sin(5 * p), shape=(n, n, n)
    )
    camera = Camera.look_at((0.4, -4, 1), width=n, height=n)
    singles = [unit for group in GROUPS for unit in units(group)]
    best = {"one pass": np.inf, "a pass a column": np.inf}
    with Linearised(ball, camera, march=March()) as seen:
        for _ in range(asked.rounds + 1):  # the first compiles
            for name, work in (
                ("one pass", lambda: seen.jacobian(GROUPS)),
                ("a pass a column", lambda: [seen.tangent(unit) for unit in singles]),
            ):
                start = time.perf_counter()
                work()
                best[name] = min(best[name], time.perf_counter() - start)
    print(f"{n}^3 volume, {n} x {n} pixels, {len(singles)} columns")
    for name, seconds in best.items():
        print(f"{name:16} {seconds * 1e3:7.1f} ms")
    print(f"ratio {best['a pass a column'] / best['one pass']:.2f}")


if __name__ == "__main__":
    main()
