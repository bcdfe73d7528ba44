"""Views in the layout of the NeRF-synthetic set: `transforms_<split>.json` beside folders of images."""

from __future__ import annotations

import logging
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from raymarch.camera import Camera
from raymarch.errors import RaymarchError
from raymarch.io.decode import SUFFIXES, decode
from raymarch.io.guard import one_line, require_folder
from raymarch.io.strict_json import read_json
from raymarch.view import Views, require_colour

DISTORTION = ("k1", "k2", "k3", "k4", "p1", "p2")
PINHOLES = ("PINHOLE", "SIMPLE_PINHOLE", "OPENCV")


def detect(folder: Path) -> bool:
    """Whether the folder has the layout's files."""
    return (folder / "transforms.json").exists() or bool(_splits(folder))


def read(folder, split: str = "train", background=None) -> Views:
    """The views of one split; `background` (default white) is what images with alpha are composited on.

    The json has `camera_angle_x`, the horizontal field of view [radian], or `fl_x`, `fl_y`, `cx`, `cy`, `w`, `h`
    [pixel], which win, for all frames or in one; and `frames` with `file_path` (.png if it has no suffix) and
    `transform_matrix`, which is `world_from_camera` with camera axes x right, y up, looking along -z.
    Images that are missing are left out and named in the log.

    Raises RaymarchError that names the file, what is wrong and the cure.

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
        raise RaymarchError(f"{path}: frames is {_short(frames)}, want a list of at least one; export it again")
    files = [_image_path(folder, frame, f"{path}, frame {i}") for i, frame in enumerate(frames)]
    present = _present(files, path)
    paths = [files[i] for i in present]
    images = decode(paths)
    cameras = []
    for i in present:
        where = f"{path}, frame {i} ({files[i].stem})"
        cameras.append(_camera({**document, **frames[i]}, images.shape[2], images.shape[1], where))
    return Views(cameras, images, _names(paths, folder), colour, str(path))


def _names(paths: list[Path], folder: Path) -> list[str]:
    """Stems of the files, or their paths within the folder where two stems are one."""
    stems = [path.stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    return ["_".join(path.relative_to(folder).with_suffix("").parts) for path in paths]


def _splits(folder: Path) -> list[str]:
    return sorted(p.stem.removeprefix("transforms_") for p in folder.glob("transforms_*.json"))


def _transforms_path(folder: Path, split: str) -> Path:
    splits = _splits(folder)
    if split in splits:
        return folder / f"transforms_{split}.json"
    have = f"it has the splits {', '.join(splits)}" if splits else "it has no split"
    if (folder / "transforms.json").exists():
        have += "; only transforms_<split>.json is supported so far, not transforms.json: split it"
    raise RaymarchError(f"{folder}: there is no transforms_{split}.json, {have}; choose or add one")


def _image_path(folder: Path, frame, where: str) -> Path:
    """The image of a frame, which must lie in the folder: a data set of strangers shall not read other files."""
    if not isinstance(frame, dict):
        raise RaymarchError(f"{where}: is {_short(frame)}, want a mapping; export it again")
    text = frame.get("file_path")
    if not isinstance(text, str) or not text or "\0" in text:
        raise RaymarchError(f"{where}: file_path is {_short(text)}, want the path of an image; export it again")
    if "://" in text:
        raise RaymarchError(f"{where}: file_path {_short(text)} is a URL, want a file in {folder}; download it there")
    if PurePosixPath(text).is_absolute() or PureWindowsPath(text).anchor:
        raise RaymarchError(f"{where}: file_path {_short(text)} is absolute, want one relative to {folder}; shorten it")
    try:
        path = folder / text
        if path.suffix.lower() not in SUFFIXES and path.name != "..":
            path = path.with_name(path.name + ".png")
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise RaymarchError(f"{where}: file_path {_short(text)} is no path ({one_line(error)}); correct it") from error
    if not inside:
        raise RaymarchError(f"{where}: file_path {_short(text)} leads out of {folder}; copy the image into it")
    return path


def _present(files: list[Path], path: Path) -> list[int]:
    """Indices of the images that exist; the log says which do not."""
    try:
        present = [i for i, file in enumerate(files) if file.is_file()]
    except OSError as error:
        raise RaymarchError(f"{path}: an image cannot be looked at ({one_line(error)}); check the paths") from error
    missing = [str(file) for file in files if not file.is_file()]
    some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    if not present:
        raise RaymarchError(f"{path}: all {len(missing)} images are missing ({some}); put them there")
    if missing:
        message = "%s: %d of %d images are missing, going on without them (%s)"
        logging.getLogger("raymarch").warning(message, path, len(missing), len(files), some)
    return present


def _camera(settings: dict, width: int, height: int, where: str) -> Camera:
    def number(name: str, default: float | None = None) -> float:
        value = settings.get(name, default)
        return _number(value, f"{where}: {name}")

    for name in DISTORTION:
        if number(name, 0.0):
            raise RaymarchError(f"{where}: {name} is {settings[name]}, but lenses must be ideal; undistort the images")
    model = settings.get("camera_model", PINHOLES[0])
    if model not in PINHOLES:
        raise RaymarchError(f"{where}: camera_model is {_short(model)}, want {', '.join(PINHOLES)}; undistort")
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
            camera = Camera.from_fov(world_from_camera, number("camera_angle_x"), width, height)
            focal = camera.focal[0], number("fl_y", camera.focal[1])
        principal = number("cx", width / 2), number("cy", height / 2)
        return Camera(world_from_camera, focal, principal, width, height)
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(where) else f"{where}: {text}") from None


def _matrix(value, where: str) -> np.ndarray:
    if not isinstance(value, list) or len(value) != 4 or not all(isinstance(r, list) and len(r) == 4 for r in value):
        raise RaymarchError(f"{where} is {_short(value)}, want 4 rows of 4 numbers; export it again")
    return np.array([[_number(x, f"{where}, row {i}") for x in row] for i, row in enumerate(value)])


def _number(value, where: str) -> float:
    """The number as a float; booleans are none, though Python says so."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RaymarchError(f"{where} is {_short(value)}, want a number; export it again")
    try:
        return float(value)
    except OverflowError:
        raise RaymarchError(f"{where} is over 1e308, want a number that a double holds; export it again") from None


def _short(value) -> str:
    """The value for a message, cut to a line."""
    if value is None:
        return "missing"
    text = repr(value) if not isinstance(value, (list, dict)) else f"a {type(value).__name__} of {len(value)}"
    return text if len(text) <= 80 else text[:77] + "..."
