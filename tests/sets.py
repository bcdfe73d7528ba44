"""Image sets as tests write them: three views of noise in the layout of the NeRF-synthetic set; shipped scenes, cut."""

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


def write_transforms(folder: Path, channels=3, names=("r_0.png", "r_1.png", "r_2.png"), **changes) -> Path:
    """A set of views with one transforms.json; `changes` as of `write_set`."""
    (folder / "images").mkdir(parents=True)
    frames = [
        {"file_path": f"images/{name}", "transform_matrix": POSES[i % 3].tolist()} for i, name in enumerate(names)
    ]
    document = {"fl_x": 9.5, "w": 8, "h": 6, "frames": frames, **changes}
    document = {key: value for key, value in document.items() if value is not None}
    (folder / "transforms.json").write_text(json.dumps(document))
    for i, name in enumerate(names):
        Image.fromarray(random_image(channels, seed=i)).save(folder / "images" / name)
    return folder


COLMAP_CAMERAS = "# Camera list\n7 OPENCV 8 6 9.5 9 4.2 2.9 0.05 -0.04 0.003 -0.002\n"
COLMAP_IMAGES = """# Image list with two lines of data per image
1 1 0 0 0 0.1 0.2 3 7 r_0.png
1.5 2.5 1 3 4 -1
4 0.8 0.6 0 0 0 -0.2 3.5 7 r_1.png

9 0.8 0 0.6 0 0.3 0 4e0 7 r_2.png
1 1 2
"""
COLMAP_POINTS = """# 3D point list
1 0.1 0.2 0.3 9 8 7 0.5 1 0 4 0 9 0
2 -0.4 0.2 0.3 9 8 7 0.7 1 1 4 1
"""


def write_colmap(folder: Path, cameras=COLMAP_CAMERAS, images=COLMAP_IMAGES, points=COLMAP_POINTS, model="sparse/0"):
    """A set of three views with a COLMAP model of text files; None leaves one out."""
    (folder / "images").mkdir(parents=True)
    (folder / model).mkdir(parents=True, exist_ok=True)
    for name, text in (("cameras", cameras), ("images", images), ("points3D", points)):
        if text is not None:
            (folder / model / f"{name}.txt").write_text(text)
    for i in range(3):
        Image.fromarray(random_image(3, seed=i)).save(folder / "images" / f"r_{i}.png")
    return folder


def framed(i=1, **changes):
    """The frames of `write_set` with keys of frame i replaced, None removing them."""
    frames = [{"file_path": f"./train/r_{k}", "transform_matrix": pose.tolist()} for k, pose in enumerate(POSES)]
    frames[i] = {key: value for key, value in {**frames[i], **changes}.items() if value is not None}
    return frames


def few_views(scenes: Path, target: Path, every=4, smaller=1) -> Path:
    """The folder of shipped scenes with every so many-th view of its sets, so many times smaller, all else linked."""
    target.mkdir()
    for source in scenes.iterdir():
        if not (source / "transforms_train.json").exists():
            (target / source.name).symlink_to(source)
            continue
        for listed in source.glob("transforms_*.json"):
            document = json.loads(listed.read_text())
            document["frames"] = document["frames"][::every]
            for frame in document["frames"]:
                image = f"{frame['file_path']}.png"
                (target / source.name / image).parent.mkdir(parents=True, exist_ok=True)
                with Image.open(source / image) as picture:
                    picture.reduce(smaller).save(target / source.name / image)
            (target / source.name / listed.name).write_text(json.dumps(document))
    return target
