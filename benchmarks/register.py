"""Poses from single images: starts ten degrees about the object's centre and a tenth of the distance off.

python benchmarks/register.py [--volume tower.h5] [--starts 20] [--size 128]

Images are rendered from the volume itself at the cameras of `scenes/tower`'s test views; without --volume a quick fit
of that scene makes it. Prints a line a start, and how many end within 0.1 degrees and 0.1 % of the distance.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import raymarch as rm
from raymarch.geometry.pose import exp_rigid

SCENE = Path(__file__).resolve().parent.parent / "scenes" / "tower"
DEGREES, SHARE = 10.0, 0.1
WITHIN_DEGREES, WITHIN_SHARE = 0.1, 1e-3


def disturbed(camera: rm.Camera, centre: np.ndarray, degrees: float, share: float, rng) -> rm.Camera:
    """The camera turned about `centre` around a random axis and moved by a share of its distance in a random way."""
    axis, way = rng.normal(size=(2, 3))
    distance = np.linalg.norm(camera.position - centre)
    turn = exp_rigid([0, 0, 0, *(np.deg2rad(degrees) * axis / np.linalg.norm(axis))])
    turn[:3, 3] = centre - turn[:3, :3] @ centre
    turn[:3, 3] += share * distance * way / np.linalg.norm(way)
    return camera.moved(turn)


def apart(a: rm.Camera, b: rm.Camera, centre: np.ndarray) -> tuple[float, float]:
    """Angle [degree] between two poses, and the distance between them as a share of that to `centre`."""
    turn = a.world_from_camera[:3, :3].T @ b.world_from_camera[:3, :3]
    sine = np.linalg.norm(turn - turn.T) / np.sqrt(8)
    angle = np.rad2deg(np.arctan2(sine, (np.trace(turn) - 1) / 2))
    return float(angle), float(np.linalg.norm(a.position - b.position) / np.linalg.norm(a.position - centre))


def main() -> None:
    """Print each start's end and the count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--volume")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--size", type=int, default=128)
    asked = parser.parse_args()
    if asked.volume:
        volume = rm.load(asked.volume)
    else:
        volume = rm.fit(rm.load_views(SCENE, split="train"), "quick").volume
    cameras = rm.load_views(SCENE, split="test").cameras
    rng, found = np.random.default_rng(0), 0
    for i in range(asked.starts):
        true = cameras[i % len(cameras)]
        true = true.scaled(asked.size / true.width)
        centre = volume.corners.mean(0)
        image = rm.render(volume, true)
        began = time.perf_counter()
        end = rm.register(volume, image, disturbed(true, centre, DEGREES, SHARE, rng))
        angle, share = apart(true, end.camera, centre)
        good = angle <= WITHIN_DEGREES and share <= WITHIN_SHARE
        found += good
        seconds = time.perf_counter() - began
        print(
            f"{i:3}  {angle:9.5f} degrees  {share:9.5%} of the distance  error {end.error:.5f}"
            f"  {end.steps} steps  {seconds:.1f} s{'' if good else '  MISSED'}",
            flush=True,
        )
    print(f"{found} of {asked.starts} within {WITHIN_DEGREES} degrees and {WITHIN_SHARE:.1%}")


if __name__ == "__main__":
    main()
