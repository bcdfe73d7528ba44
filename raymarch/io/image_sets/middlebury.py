"""Middlebury multi-view sets (temple, dino): `*_par.txt` with K, R and t beside the images."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.geometry.boxes import require_box
from raymarch.io.files.folders import visible_files
from raymarch.io.files.strict import EXPORT_CURE, finite_numbers, read_text
from raymarch.io.image_sets.calibration import CAMERA_FROM_OPENCV, Calibration, calibration_of_matrix
from raymarch.io.image_sets.frame_file import frame_file
from raymarch.io.image_sets.frames import Frame, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_box, moved_pose, new_origin

PARAMETER_FILES = "*_par.txt"
BLACK_BACKGROUND = (0.0, 0.0, 0.0)
NUMBERS_A_LINE = 21  # K, R and t
PIXEL_CENTRE = 0.5  # pixel centres lie at whole numbers
MAX_README = 1 << 16  # bytes


def detect(folder: Path) -> bool:
    """Detection: whether the folder has one table whose first image has a name and 21 numbers."""
    tables = visible_files(folder, PARAMETER_FILES)
    try:
        return len(tables) == 1 and len(_rows(tables[0])) > 0
    except RaymarchError:
        return False


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, sorted by name; every `holdout`-th is "test". The background is black, as it is in the images.

    A line of the table is a name, K (row by row), R and t: P = K [R | t], camera axes of OpenCV, pixel centres at whole
    numbers. `Views.box` is the bounding box that the README tells, where it tells one.

    Raises RaymarchError that names the file, the line, what is wrong and the cure.
    """
    tables = visible_files(folder, PARAMETER_FILES)
    if len(tables) != 1:
        names = first_names([path.name for path in tables])
        raise RaymarchError(
            f"{folder}: has {len(tables)} tables ({names}), want one {PARAMETER_FILES}; choose one, move the others"
        )
    source, root = tables[0], folder.resolve()
    frames = []
    rows = _rows(source)
    origin = new_origin([_pose(numbers)[:3, 3] for _, _, numbers in rows], source)
    for where, name, numbers in rows:
        file = frame_file(folder, root, name, where, options.follow_links)
        calibration = Calibration(*calibration_of_matrix(np.reshape(numbers[:9], (3, 3)), where, PIXEL_CENTRE))
        pose = moved_pose(_pose(numbers), origin)
        frames.append(Frame(file, partial(calibration.camera, pose @ CAMERA_FROM_OPENCV, where=where)))
    chosen = select_split(frames, options, source)
    box = moved_box(_box(folder), origin, source)
    views = views_of_frames(chosen, folder, source, options, box=box, origin=origin)
    return replace(views, background=BLACK_BACKGROUND)


def _pose(numbers: list[float]) -> np.ndarray:
    """Pose `world_from_camera` (4, 4), camera axes of OpenCV, of a line's K, R and t."""
    _, rotation, t = np.split(np.array(numbers), (9, 18))
    pose = np.eye(4)
    pose[:3, :3] = rotation.reshape(3, 3).T
    pose[:3, 3] = -pose[:3, :3] @ t
    return pose


def _rows(path: Path) -> list[tuple[str, str, list[float]]]:
    """Where it stands, name and numbers of each line; RaymarchError where the first line counts others."""
    first, _, rest = read_text(path, "a table of cameras").strip().partition("\n")
    if not re.fullmatch(r"\s*\d{1,9}\s*", first):
        raise RaymarchError(f"{path}, line 1: is {first[:60]!r}, want the number of images; {EXPORT_CURE}")
    lines = [(i, line) for i, line in enumerate(rest.splitlines(), 2) if line.strip()]
    require_few(len(lines), path)
    if len(lines) != int(first) or not lines:
        raise RaymarchError(f"{path}: line 1 says {int(first)} images, {len(lines)} follow; {EXPORT_CURE}")
    rows = []
    for i, line in lines:
        where = f"{path}, line {i}"
        name, *words = line.strip().rsplit(maxsplit=NUMBERS_A_LINE)  # a name may have spaces
        rows.append((where, name, finite_numbers(words, NUMBERS_A_LINE, where)))
    return rows


def _box(folder: Path) -> np.ndarray | None:
    """Bounding box of the README, or None."""
    for path in sorted(folder.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*")):
        try:
            told = read_text(path, "a README", MAX_README).lower().partition("bounding box")[2]
            corners = re.findall(r"\(([^()]{5,200})\)", told)[:2]  # what is behind it in the first brackets
            numbers = [finite_numbers(corner.replace(",", " "), 3, str(path)) for corner in corners]
            return require_box(np.array(numbers))
        except RaymarchError:
            continue
    return None


MIDDLEBURY = Reader("Middlebury", detect, by_options(read), PARAMETER_FILES, specificity=2)
