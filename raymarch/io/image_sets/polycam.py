"""Polycam captures (raw data): `keyframes/cameras/*.json` beside `keyframes/images`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError, short_value
from raymarch.io.files.folders import visible_files
from raymarch.io.files.strict import EXPORT_CURE, read_json
from raymarch.io.image_sets.calibration import Calibration
from raymarch.io.image_sets.frame_file import frame_file
from raymarch.io.image_sets.frames import Frame, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import require_inside
from raymarch.io.image_sets.json_values import read_number
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin, places_of

CAPTURE_FOLDERS = (  # of cameras and images; those that Polycam has corrected come first
    ("keyframes/corrected_cameras", "keyframes/corrected_images"),
    ("corrected_cameras", "corrected_images"),
    ("keyframes/cameras", "keyframes/images"),
    ("cameras", "images"),
)
CAMERA_FILES = "*.json"
CAPTURE_FILES = tuple(f"{cameras}/{CAMERA_FILES}" for cameras, _ in CAPTURE_FOLDERS)
POSE_KEYS = [[f"t_{row}{column}" for column in range(4)] for row in range(3)]
Z_UP_ROWS = (2, 0, 1)  # the rows in the order that turns the world's second axis, which is up, into its third
MILLIMETRE = 1e-3  # world units: a world of metres
BORDER_PIXELS = 15  # pixels of corrected images along their edges, which may be black


def detect(folder: Path) -> bool:
    """Detection: whether the folder has cameras of the kind, by the keys of the first."""
    place = _place(folder)
    first = place and next(iter(visible_files(folder / place[0], CAMERA_FILES)), None)
    try:
        document = read_json(first) if first else None
    except RaymarchError:
        return False
    return isinstance(document, dict) and {"t_00", "t_23", "fx"} <= document.keys()


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, sorted by name; every `holdout`-th is "test". z is up.

    A camera has `t_00` to `t_23`, which are `world_from_camera` with y up, `fx`, `fy`, `cx`, `cy`, `width`, `height`
    [pixel]. Depth images are those in `depth` beside the cameras [mm], but for what `confidence` has as 0. Of images
    that Polycam corrected 15 pixels along each edge are masked: they may be black.

    Raises RaymarchError that names the file, what is wrong and the cure.
    """
    place = _place(folder)
    if place is None:
        raise RaymarchError(f"{folder}: has no {CAPTURE_FILES[2]}; export raw data from Polycam")
    cameras, images = place
    files, root = visible_files(folder / cameras, CAMERA_FILES), folder.resolve()
    require_few(len(files), folder / cameras)
    places = places_of(files, lambda path: _camera(require_inside(path, root, options.follow_links))[0][:3, 3])
    origin = new_origin(places, folder / cameras)
    frames = []
    for path in select_split(files, options, folder / cameras):
        pose, calibration = _camera(require_inside(path, root, options.follow_links))
        file = frame_file(folder, root, f"{images}/{path.stem}.jpg", str(path), options.follow_links)
        if not file.exists():
            file = frame_file(
                folder, root, f"{images}/{path.stem}", str(path), options.follow_links
            )  # of another suffix
        frame = Frame(
            file, partial(calibration.camera, moved_pose(pose, origin), where=str(path)), size=calibration.size
        )
        beside = (folder / cameras).parent
        depth, confidence = (
            require_inside(beside / name / f"{path.stem}.png", root, options.follow_links)
            for name in ("depth", "confidence")
        )
        if depth.is_file():  # of the images that are not corrected: of the corrected within a pixel of its own
            frame = frame._replace(depth=depth, depth_unit=MILLIMETRE, confidence=confidence)
        frames.append(frame)
    views = views_of_frames(frames, folder, folder / cameras, options, origin=origin)
    return _without_border(views, math.ceil(BORDER_PIXELS / options.downscale)) if "corrected" in images else views


def _place(folder: Path) -> tuple[str, str] | None:
    def is_there(names: tuple[str, str]) -> bool:
        cameras, images = (folder / name for name in names)
        return images.is_dir() and cameras.is_dir() and bool(visible_files(cameras, CAMERA_FILES))

    return next((names for names in CAPTURE_FOLDERS if is_there(names)), None)


def _camera(path: Path) -> tuple[np.ndarray, Calibration]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise RaymarchError(f"{path}: is {short_value(document)}, want a mapping with t_00 and fx; {EXPORT_CURE}")

    def value(name: str) -> float:
        return read_number(document.get(name), f"{path}: {name}")

    pose = np.eye(4)
    pose[:3] = np.array([[value(name) for name in row] for row in POSE_KEYS])[list(Z_UP_ROWS)]
    focal, principal, size = ((value(a), value(b)) for a, b in (("fx", "fy"), ("cx", "cy"), ("width", "height")))
    return pose, Calibration(focal, principal, size)


def _without_border(views: Views, border: int) -> Views:
    """Views with so many pixels along each edge masked, where images are large enough."""
    masks = []
    for i, (width, height) in enumerate(views.sizes):
        mask = views.mask(i)
        mask = np.ones((height, width), bool) if mask is None else mask.copy()
        if min(width, height) > 8 * border:
            mask[:border] = mask[-border:] = mask[:, :border] = mask[:, -border:] = False
        masks.append(mask)
    return replace(views, masks=masks)


POLYCAM = Reader("Polycam", detect, by_options(read), CAPTURE_FILES, specificity=2)
