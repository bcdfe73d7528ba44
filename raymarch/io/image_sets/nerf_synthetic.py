"""Views in the layout of the NeRF-synthetic set: `transforms_<split>.json` beside folders of images."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from raymarch.data.views import Views, require_colour
from raymarch.errors import RaymarchError, short
from raymarch.geometry.camera import Camera
from raymarch.io.files.limits import require_folder
from raymarch.io.files.strict_json import read_json
from raymarch.io.image_sets.frame_file import frame_file, present, unique_names
from raymarch.io.image_sets.plausible import doubt, require_plausible
from raymarch.io.images.decode import decode, require_room

DISTORTION = ("k1", "k2", "k3", "k4", "p1", "p2")
PINHOLES = ("PINHOLE", "SIMPLE_PINHOLE", "OPENCV")
MOST_FRAMES = 20_000


def detect(folder: Path) -> bool:
    """Whether the folder has the layout's files."""
    return bool(_splits(folder))


def read(folder, split: str = "train", background=None, *, follow_links: bool = False, for_fit: bool = True) -> Views:
    """The views of one split; `background` (default white) is what images with alpha are composited on.

    The json has `camera_angle_x`, the horizontal field of view [radian], or `fl_x`, `fl_y`, `cx`, `cy`, `w`, `h`
    [pixel], which win, for all frames or in one; and `frames` with `file_path` (.png if it has no suffix) and
    `transform_matrix`, which is `world_from_camera` with camera axes x right, y up, looking along -z.
    Images that are missing are left out and named in the log. `follow_links` and `for_fit` as of `load_views`.

    Raises RaymarchError that names the file, what is wrong and the cure; for more than 20,000 frames too.

    Example:
        >>> read("lego", "val").images.shape  # doctest: +SKIP
        (25, 400, 400, 4)
    """
    folder = require_folder(folder)
    colour = require_colour("white" if background is None else background)
    path = _transforms_path(folder, split)
    document = read_json(path)
    if not isinstance(document, dict):
        raise RaymarchError(f"{path}: is a {type(document).__name__}, want a mapping with frames; export it again")
    frames = document.get("frames")
    if not isinstance(frames, list) or not frames:
        raise RaymarchError(f"{path}: frames is {short(frames)}, want a list of at least one; export it again")
    if len(frames) > MOST_FRAMES:
        raise RaymarchError(f"{path}: has {len(frames):,} frames, want at most {MOST_FRAMES:,}; split it")
    files, root = [], folder.resolve()
    for i, frame in enumerate(frames):
        if not isinstance(frame, dict):
            raise RaymarchError(f"{path}, frame {i}: is {short(frame)}, want a mapping; export it again")
        files.append(frame_file(folder, root, frame.get("file_path"), f"{path}, frame {i}", follow_links))
    there = present(files, path)
    paths = [files[i] for i in there]
    width, height = require_room(paths, for_fit)[:2]  # before images are decoded, which takes its time
    cameras = []
    for i in there:
        cameras.append(_camera({**document, **frames[i]}, width, height, f"{path}, frame {i} ({files[i].stem})"))
    images = decode(paths, for_fit=for_fit)
    if said := doubt(cameras[0]):
        logging.getLogger("raymarch").warning("%s: %s", path, said)
    return Views(cameras, images, unique_names(paths, folder), colour, str(path))


def _splits(folder: Path) -> list[str]:
    return sorted(p.stem.removeprefix("transforms_") for p in folder.glob("transforms_*.json"))


def _transforms_path(folder: Path, split: str) -> Path:
    splits = _splits(folder)
    if split in splits:
        return folder / f"transforms_{split}.json"
    have = f"it has the splits {', '.join(splits)}"
    raise RaymarchError(f"{folder}: there is no transforms_{split}.json, {have}; choose or add one")


def _camera(settings: dict, width: int, height: int, where: str) -> Camera:
    def number(name: str, default: float | None = None) -> float:
        value = settings.get(name, default)
        return _number(value, f"{where}: {name}")

    for name in DISTORTION:
        if number(name, 0.0):
            raise RaymarchError(f"{where}: {name} is {settings[name]}, but lenses must be ideal; undistort the images")
    model = settings.get("camera_model", PINHOLES[0])
    if model not in PINHOLES:
        raise RaymarchError(f"{where}: camera_model is {short(model)}, want {', '.join(PINHOLES)}; undistort")
    if (number("w", width), number("h", height)) != (width, height):
        raise RaymarchError(
            f"{where}: w x h is {settings.get('w', width)} x {settings.get('h', height)} but the image has"
            f" {width} x {height} pixels; resize the images or correct the numbers"
        )
    world_from_camera = _matrix(settings.get("transform_matrix"), f"{where}: transform_matrix")
    try:
        if "fl_x" in settings:
            focal = number("fl_x"), number("fl_y", settings["fl_x"])
        else:
            angle = number("camera_angle_x")
            if np.pi < angle < 180:
                raise RaymarchError(
                    f"camera_angle_x is {angle:g} rad, want less than pi; if it is in degrees, {np.deg2rad(angle):.4g}"
                )
            camera = Camera.from_fov(world_from_camera, angle, width, height)
            focal = camera.focal[0], number("fl_y", camera.focal[1])
        principal = number("cx", width / 2), number("cy", height / 2)
        require_plausible(focal, principal, width, height, where)
        return Camera(world_from_camera, focal, principal, width, height)
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(where) else f"{where}: {text}") from None


def _matrix(value, where: str) -> np.ndarray:
    if not isinstance(value, list) or len(value) != 4 or not all(isinstance(r, list) and len(r) == 4 for r in value):
        raise RaymarchError(f"{where} is {short(value)}, want 4 rows of 4 numbers; export it again")
    return np.array([[_number(x, f"{where}, row {i}") for x in row] for i, row in enumerate(value)])


def _number(value, where: str) -> float:
    """The number as a float; booleans are none, though Python says so."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RaymarchError(f"{where} is {short(value)}, want a number; export it again")
    try:
        return float(value)
    except OverflowError:
        raise RaymarchError(f"{where} is over 1e308, want a number that a double holds; export it again") from None
