"""LLFF image sets (forward-facing photographs): `poses_bounds.npy` beside the folder `images` or `images_4`."""

from __future__ import annotations

import logging
import re
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE
from raymarch.errors import RaymarchError
from raymarch.io.files.strict import EXPORT_CURE, read_npy
from raymarch.io.image_sets.calibration import Calibration
from raymarch.io.image_sets.frames import Frame, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import image_files, require_pairs
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin

POSE_FILE = "poses_bounds.npy"


def detect(folder: Path) -> bool:
    """Detection: whether the folder has a table of poses with bounds, 17 numbers each."""
    try:
        return (folder / POSE_FILE).is_file() and _table(folder / POSE_FILE).shape[1] == 17
    except RaymarchError:
        return False


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, one a pose, in the order of the images' names; every `holdout`-th is "test".

    A row is a matrix 3 x 5 and the bounds near and far. The matrix has the camera's axes down, right and backwards as
    columns, its place, and (height, width, focal) of the full images, whatever their size is now.

    Raises RaymarchError that names the file, what is wrong and the cure: counts of poses and images that differ above
    all.
    """
    source = folder / POSE_FILE
    table = _table(source)
    inner = _images(folder, options.cameras_alone)
    files = image_files(folder, inner, options.follow_links)
    if not files and options.cameras_alone:
        files = [folder / inner / f"{i:05d}.png" for i in range(len(table))]
    cure = "put back the images that were posed, or take those out that were not"
    require_pairs(source, len(table), "poses", files, folder / inner, cure=cure)
    origin = new_origin(table[:, 3:15:5], source)
    frames = []
    for i, (file, row) in enumerate(zip(files, table, strict=True)):
        where = f"{source}, row {i} ({file.name})"
        pose, calibration = _camera(row, where)
        pose = moved_pose(pose, origin)
        bounds, camera = _bounds(row[15:], where), partial(calibration.camera, pose, where=where)
        frames.append(Frame(file, camera, size=calibration.size, bounds=bounds))
    chosen = select_split(frames, options, source)
    return views_of_frames(chosen, folder, source, options, origin=origin)


def _table(path: Path) -> np.ndarray:
    table = read_npy(path)
    if table.ndim != 2 or table.shape[1] != 17 or not len(table):
        raise RaymarchError(f"{path}: is {table.shape}, want (images, 17) numbers; {EXPORT_CURE}")
    return table


def _images(folder: Path, cameras_alone: bool) -> str:
    """Folder of the images: `images`, else that of the least k of `images_k`, which is said."""
    if (folder / "images").is_dir():
        return "images"
    reduced = [found for other in folder.iterdir() if (found := re.fullmatch(r"images_(\d{1,4})", other.name))]
    if not reduced and cameras_alone:
        return "images"
    if not reduced:
        raise RaymarchError(f"{folder}: has neither images nor images_4 or such; put the images that were posed there")
    name = min(reduced, key=lambda found: int(found[1]))[0]
    logging.getLogger("raymarch").warning("%s: has no folder images, those in %s are read", folder, name)
    return name


def _camera(row: np.ndarray, where: str) -> tuple[np.ndarray, Calibration]:
    matrix = row[:15].reshape(3, 5)
    down, right, backwards, place, (height, width, focal) = matrix.T
    if not min(height, width, focal) > 0:
        raise RaymarchError(f"{where}: height, width, focal are {height:g}, {width:g}, {focal:g}, want them positive")
    pose = np.eye(4)
    pose[:3] = np.stack([right, -down, backwards, place], axis=1)
    return pose, Calibration((focal, focal), (width / 2, height / 2), (width, height))


def _bounds(row: np.ndarray, where: str) -> tuple[float, float]:
    """Depths of a camera's near and far plane."""
    near, far = row.tolist()
    if not 0 < near < far:
        raise RaymarchError(f"{where}: bounds are {near:g}, {far:g}, want 0 < near < far; {EXPORT_CURE}")
    if not far <= MAX_COORDINATE:
        raise RaymarchError(f"{where}: its far plane is over {MAX_COORDINATE:g} units away, want less; scale the world")
    return near, far


# What poses were made from knows more: lenses, points.
LLFF = Reader("LLFF", detect, by_options(read), POSE_FILE, specificity=0)
