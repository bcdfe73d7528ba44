"""NSVF image sets, and BlendedMVS and Tanks and Temples in their layout: `intrinsics.txt`, `rgb/`, `pose/`."""

from __future__ import annotations

import logging
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
from raymarch.io.image_sets.image_folder import image_files, require_inside
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_box, moved_pose, new_origin, places_of

SET_FILES = ("intrinsics.txt", "pose/*.txt")
MAX_BYTES = 1 << 16  # of a file of a few numbers
SPLIT_PREFIXES = {"train": "0", "val": "12", "test": "21"}  # first characters of names, the first of them that is there


def detect(folder: Path) -> bool:
    """Detection: whether the folder has intrinsics and a pose, both readable."""
    pose = next(iter(visible_files(folder, SET_FILES[1])), None)
    try:
        return (
            pose is not None
            and (folder / SET_FILES[0]).is_file()
            and _intrinsics(folder / SET_FILES[0]) is not None
            and _matrix(pose) is not None
        )
    except RaymarchError:
        return False


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, by the first character of their names: 0 "train", 1 "val", 2 "test".

    Of a set in two parts the second is both "val" and "test"; of a set whose names tell no parts every `holdout`-th is
    "test". A pose is `world_from_camera` with OpenCV's camera axes; `intrinsics.txt` is a matrix K (3 x 3 or 4 x 4), or
    in NSVF's first line focal, cx, cy, with height and width below. `Views.box` is that of `bbox.txt`.

    Raises RaymarchError that names the file, what is wrong and the cure.
    """
    source, root = folder / SET_FILES[0], folder.resolve()
    calibration, inverted = _intrinsics(source)
    poses = visible_files(folder, SET_FILES[1])
    require_few(len(poses), folder)
    if not poses:
        raise RaymarchError(f"{folder}: has no {SET_FILES[1]}; put the poses there")
    chosen = _split_poses(poses, options, folder)
    unposed = sorted(
        {file.stem for file in image_files(folder, "rgb", options.follow_links)} - {path.stem for path in poses}
    )
    if unposed:
        said = "%s: %d images in rgb have no pose, going on without them (%s)"
        logging.getLogger("raymarch").warning(said, folder, len(unposed), first_names(unposed))
    origin = new_origin(places_of(poses, lambda path: _pose(path, root, options.follow_links, inverted)[:3, 3]), folder)
    frames = []
    for path in chosen:
        pose = moved_pose(_pose(path, root, options.follow_links, inverted), origin)
        file = frame_file(folder, root, f"rgb/{path.stem}.png", str(path), options.follow_links)
        if not file.exists():
            file = frame_file(folder, root, f"rgb/{path.stem}", str(path), options.follow_links)  # of another suffix
        frames.append(
            Frame(file, partial(calibration.camera, pose @ CAMERA_FROM_OPENCV, where=str(path)), size=calibration.size)
        )
    box = moved_box(_box(folder), origin, folder)
    return views_of_frames(frames, folder, source, options, box=box, origin=origin)


def splits(folder: Path) -> tuple[str, ...]:
    """Names of the splits of a set; none where names tell no parts."""
    return tuple(SPLIT_PREFIXES) if _parts(visible_files(folder, SET_FILES[1])) else ()


def _parts(poses: list[Path]) -> dict[str, list[Path]]:
    """Poses by the first characters of their names, empty where these tell no parts."""
    parts = {character: [path for path in poses if path.name.startswith(f"{character}_")] for character in "012"}
    told = parts["0"] and (parts["1"] or parts["2"]) and sum(map(len, parts.values())) == len(poses)
    return parts if told else {}


def _split_poses(poses: list[Path], options: ReadOptions, folder: Path) -> list[Path]:
    parts, split = _parts(poses), options.split
    if not parts or (split not in SPLIT_PREFIXES and split != "all"):
        return select_split(poses, options, folder)
    return poses if split == "all" else next(parts[one] for one in SPLIT_PREFIXES[split] if parts[one])


def _intrinsics(path: Path) -> tuple[Calibration, bool]:
    """Calibration, and whether poses are `camera_from_world`."""
    lines = [line.split() for line in read_text(path, "intrinsics", MAX_BYTES).splitlines() if line.strip()]
    words = [word for line in lines for word in line]
    if len(words) in (9, 16) and all(len(line) in (3, 4) for line in lines):
        side = 3 if len(words) == 9 else 4
        matrix = np.array(finite_numbers(words, side * side, str(path))).reshape(side, side)[:3, :3]
        return Calibration(*calibration_of_matrix(matrix, str(path))), False
    if not lines or len(lines[0]) not in (3, 4):
        raise RaymarchError(f"{path}: want a matrix K of 3 x 3 or 4 x 4 numbers, or focal, cx, cy and 0; {EXPORT_CURE}")
    focal, cx, cy = finite_numbers(lines[0], len(lines[0]), f"{path}, line 1")[:3]
    size = next((finite_numbers(line, 2, str(path)) for line in lines[1:] if len(line) == 2), None)
    inverted = len(lines) > 5 and lines[-1] == ["1"]
    return Calibration((focal, focal), (cx, cy), (size[1], size[0]) if size else None), inverted


def _matrix(path: Path) -> np.ndarray:
    return np.array(finite_numbers(read_text(path, "a pose", MAX_BYTES), 16, str(path))).reshape(4, 4)


def _pose(path: Path, root: Path, follow_links: bool, inverted: bool) -> np.ndarray:
    """Pose `world_from_camera` (4, 4) of a file; `inverted`, it holds `camera_from_world`."""
    pose = _matrix(require_inside(path, root, follow_links))
    if not inverted:
        return pose
    try:
        return np.linalg.inv(pose)
    except np.linalg.LinAlgError:
        raise RaymarchError(f"{path}: has no inverse, want a pose; {EXPORT_CURE}") from None


def _box(folder: Path) -> np.ndarray | None:
    path = folder / "bbox.txt"
    if not path.is_file():
        return None
    words = read_text(path, "a box", MAX_BYTES).split()[:6]  # and the size of a voxel
    numbers = finite_numbers(words, 6, str(path))
    try:
        return require_box(np.array(numbers).reshape(2, 3))
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None


NSVF = Reader("NSVF", detect, by_options(read), SET_FILES, specificity=2, splits=splits)
