"""Image sets as tests write them: three views of noise, in the layout of the NeRF-synthetic set."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from raymarch.geometry.camera import Camera

POSES = [Camera.look_at((3 * np.cos(a), 3 * np.sin(a), 1)).world_from_camera for a in (0.0, 2.0, 4.0)]


def random_image(channels=4, height=6, width=8, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def write_set(folder: Path, channels=4, **changes) -> Path:
    """A set of three views; `changes` replace keys of its json, None removes them."""
    (folder / "train").mkdir(parents=True)
    frames = [{"file_path": f"./train/r_{i}", "transform_matrix": pose.tolist()} for i, pose in enumerate(POSES)]
    document = {"camera_angle_x": 0.7, "frames": frames, **changes}
    document = {key: value for key, value in document.items() if value is not None}
    (folder / "transforms_train.json").write_text(json.dumps(document))
    for i in range(3):
        Image.fromarray(random_image(channels, seed=i)).save(folder / "train" / f"r_{i}.png")
    return folder


def framed(i=1, **changes):
    """The frames of `write_set` with keys of frame i replaced, None removing them."""
    frames = [{"file_path": f"./train/r_{k}", "transform_matrix": pose.tolist()} for k, pose in enumerate(POSES)]
    frames[i] = {key: value for key, value in {**frames[i], **changes}.items() if value is not None}
    return frames
