"""RealityCapture (RealityScan) cameras: the CSV of "internal/external camera parameters" beside the photographs."""

from __future__ import annotations

import csv
import logging
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.geometry.camera import Camera
from raymarch.io.files.strict import EXPORT_CURE, finite_number, read_text
from raymarch.io.image_sets.calibration import Calibration, name_errors
from raymarch.io.image_sets.camera_models import brown_lens
from raymarch.io.image_sets.frames import Frame, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import ImageIndex, only_export
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin

NAME_COLUMN = "#name"
POSE_COLUMNS = ("x", "y", "alt", "heading", "pitch", "roll")
INTERNAL_COLUMNS = ("f", "px", "py")
LENS_COLUMNS = ("k1", "k2", "k3", "k4", "t1", "t2")
FILM_WIDTH = 36.0  # millimetres that the longer side counts as
MAX_HEADER = 4096  # bytes


def detect(folder: Path) -> bool:
    """Detection: whether the folder has one CSV file with the columns of a name, a pose and a focal."""
    return len(_tables(folder)) == 1


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, sorted by name; every `holdout`-th is "test". z is up.

    Columns: `#name`; `x`, `y`, `alt`; `heading`, `pitch`, `roll` [degree], a rotation Rz(-heading) Rx(pitch) Ry(roll);
    `f` [mm of a film whose longer side is 36]; `px`, `py` in longer sides of the image, from its middle; `k1` to `k4`,
    `t1`, `t2` of Brown's lens. All sizes are of the image itself, since the table has none.

    Raises RaymarchError that names the file, the line, what is wrong and the cure.
    """
    source = only_export(folder, _tables(folder), ".csv")
    rows = _rows(source)
    index = ImageIndex(folder, [row[NAME_COLUMN] for _, row in rows], source, options.follow_links)
    poses = [_pose(row, where) for where, row in rows]
    origin = new_origin([pose[:3, 3] for pose in poses], source)
    frames = []
    for (where, row), pose in zip(rows, poses, strict=True):
        if (file := index.file(row[NAME_COLUMN], where)) is None:
            continue
        numbers = {
            name: finite_number(row[name], f"{where}: {name}")
            for name in (*INTERNAL_COLUMNS, *LENS_COLUMNS)
            if row.get(name)
        }
        frames.append(Frame(file, partial(_camera, numbers, moved_pose(pose, origin), where)))
    chosen = select_split(frames, options, source)
    return views_of_frames(chosen, folder, source, options, origin=origin)


def _tables(folder: Path) -> list[Path]:
    def is_one(path: Path) -> bool:
        try:
            with path.open("rb") as file:
                start = file.read(MAX_HEADER)
        except OSError:
            return False
        columns = start.decode("utf-8-sig", "replace").partition("\n")[0].split(",")
        return {NAME_COLUMN, *POSE_COLUMNS, INTERNAL_COLUMNS[0]} <= {column.strip() for column in columns}

    return [path for path in sorted(folder.glob("*.csv")) if path.is_file() and is_one(path)]


def _rows(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Where it stands and columns of each line."""
    text = read_text(path, "a table of cameras")
    require_few(text.count("\n") - 1, path)
    try:
        reader = csv.reader(text.splitlines(), strict=True)
        header = [column.strip() for column in next(reader, [])]
        lines = [(reader.line_num, [word.strip() for word in line]) for line in reader if line]
    except csv.Error as error:
        raise RaymarchError(f"{path}: is no table ({error}); {EXPORT_CURE}") from error
    lacking = [name for name in (NAME_COLUMN, *POSE_COLUMNS, INTERNAL_COLUMNS[0]) if header.count(name) != 1]
    if lacking or not lines:
        raise RaymarchError(
            f"{path}: {'has not each once: ' + ', '.join(lacking) if lacking else 'has no cameras'}; export"
            ' "internal/external camera parameters" again'
        )
    for i, line in lines:
        if len(line) != len(header):
            raise RaymarchError(
                f"{path}, line {i}: has {len(line)} columns, the first line {len(header)}; {EXPORT_CURE}"
            )
    others = [
        name for name in header if name and name not in (NAME_COLUMN, *POSE_COLUMNS, *INTERNAL_COLUMNS, *LENS_COLUMNS)
    ]
    if others:
        logging.getLogger("raymarch").warning("%s: columns that are not read: %s", path, first_names(others, 20))
    return [(f"{path}, line {i}", dict(zip(header, line, strict=True))) for i, line in lines]


def _pose(row: dict[str, str], where: str) -> np.ndarray:
    x, y, altitude, heading, pitch, roll = (finite_number(row[name], f"{where}: {name}") for name in POSE_COLUMNS)
    (cz, sz), (cx, sx), (cy, sy) = ((np.cos(a), np.sin(a)) for a in np.deg2rad([-heading, pitch, roll]))
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    pose = np.eye(4)
    pose[:3, :3] = about_z @ about_x @ about_y
    pose[:3, 3] = x, y, altitude
    return pose


def _camera(numbers: dict[str, float], pose: np.ndarray, where: str, width: int, height: int, _: int = 1) -> Camera:
    side = max(width, height)
    focal = numbers.get("f", 0.0) * side / FILM_WIDTH
    principal = numbers.get("px", 0.0) * side + width / 2, numbers.get("py", 0.0) * side + height / 2
    *radial, p1, p2 = (numbers.get(name, 0.0) for name in LENS_COLUMNS)
    with name_errors(where):
        lens = brown_lens(radial, (p1, p2))
    calibration = Calibration((focal, focal), principal, None, lens)
    return calibration.camera(pose, width, height, where=where)


REALITYCAPTURE = Reader(
    "RealityCapture", detect, by_options(read), specificity=2
)  # by contents alone: files of this suffix mean many things
