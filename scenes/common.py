"""What both scene scripts share: camera placement and writing a set of views in the NeRF-synthetic layout."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))

RenderView = Callable[[str, int], np.ndarray]


def look_at(position: np.ndarray, target: np.ndarray) -> np.ndarray:
    """world_from_camera (4, 4) of a camera at `position`: x right, y up, looking along -z; z is up in the world."""
    backward = (position - target) / np.linalg.norm(position - target)
    right = np.cross([0.0, 0.0, 1.0], backward)
    right /= np.linalg.norm(right)
    world_from_camera = np.eye(4)
    world_from_camera[:3, :3] = np.stack([right, np.cross(backward, right), backward], axis=1)
    world_from_camera[:3, 3] = position
    return world_from_camera


def spiral_cameras(
    count: int, split: str, sines: tuple[float, float], radius: float, seed: int, target: np.ndarray | None = None
) -> list[np.ndarray]:
    """`count` cameras well spread over the band whose sine of elevation lies in `sines`, on a golden-angle spiral.

    The splits start at different azimuths and turn in opposite senses, so that no test camera meets a train camera.
    """
    rng = np.random.default_rng([seed, split == "test", 7])
    sense, start = (1.0, 0.0) if split == "train" else (-1.0, 1.1)
    steps = np.arange(count)
    sine = sines[0] + (sines[1] - sines[0]) * (steps + 0.5) / count
    azimuth = start + sense * GOLDEN_ANGLE * steps
    distance = radius * (1.0 + rng.uniform(-0.02, 0.02, count))
    cosine = np.sqrt(1.0 - sine**2)
    directions = np.stack([cosine * np.cos(azimuth), cosine * np.sin(azimuth), sine], axis=1)
    target = np.zeros(3) if target is None else target
    return [look_at(target + step * direction, target) for step, direction in zip(distance, directions, strict=True)]


def camera_directions(
    world_from_camera: np.ndarray, camera_angle_x: float, resolution: int, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Unit world directions (..., 3) through image positions x (right), y (down), in pixels."""
    tangent = np.tan(0.5 * camera_angle_x)
    right, up, backward = world_from_camera[:3, :3].T
    across = (2.0 * x / resolution - 1.0) * tangent
    upward = (1.0 - 2.0 * y / resolution) * tangent
    directions = across[..., None] * right + upward[..., None] * up - backward
    return directions / np.linalg.norm(directions, axis=-1, keepdims=True)


def to_bytes(rgba: np.ndarray) -> np.ndarray:
    """Straight-alpha display values in 0..1 as 8-bit levels; colour is dropped where alpha rounds to nothing."""
    levels = np.rint(np.clip(rgba, 0.0, 1.0) * 255.0).astype(np.uint8)
    levels[levels[..., 3] == 0] = 0
    return levels


def write_set(
    folder: Path, camera_angle_x: float, cameras: dict[str, list[np.ndarray]], render_view: RenderView
) -> float:
    """Render and write every view of `cameras` (by split); returns the mean alpha over all pixels of all views."""
    total, done, coverage, start = sum(map(len, cameras.values())), 0, 0.0, time.perf_counter()
    for split, poses in cameras.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        frames = []
        for index, world_from_camera in enumerate(poses):
            rgba = render_view(split, index)
            Image.fromarray(to_bytes(rgba)).save(folder / split / f"r_{index:03d}.png", optimize=True)
            frames.append(
                {"file_path": f"./{split}/r_{index:03d}", "transform_matrix": np.asarray(world_from_camera).tolist()}
            )
            done += 1
            coverage += float(rgba[..., 3].mean())
            seconds = time.perf_counter() - start
            print(f"\r{split} {index + 1}/{len(poses)}  {done}/{total} views  {seconds:.0f} s", end="", file=sys.stderr)
        text = json.dumps({"camera_angle_x": camera_angle_x, "frames": frames}, indent=1)
        (folder / f"transforms_{split}.json").write_text(text + "\n")
    print(file=sys.stderr)
    return coverage / total


def set_arguments(description: str | None, resolution: int, train: int, test: int) -> argparse.ArgumentParser:
    """The options that both scripts take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="folder to write (default: beside the script)")
    parser.add_argument("--resolution", type=int, default=resolution, help="pixels a side")
    parser.add_argument("--train", type=int, default=train, help="train views")
    parser.add_argument("--test", type=int, default=test, help="test views")
    parser.add_argument("--seed", type=int, default=0)
    return parser
