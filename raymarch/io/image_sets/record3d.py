"""Record3D captures, unpacked: `metadata.json` beside the folder `rgb`, whose images are numbered."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError, short_value
from raymarch.io.files.strict import EXPORT_CURE, read_json
from raymarch.io.image_sets.calibration import Calibration, calibration_of_matrix
from raymarch.io.image_sets.frames import Frame, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import image_files, require_inside, require_pairs
from raymarch.io.image_sets.json_values import read_number
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin

METADATA_FILES = ("metadata.json", "metadata")
IMAGE_FOLDERS = ("rgb", "rgbd", "images")
DEPTH_FOLDER, DEPTH_SUFFIXES = "depth", (".exr", ".npy", ".tiff", ".tif")  # of floats


def detect(folder: Path) -> bool:
    """Detection: whether the folder has poses of seven numbers and K."""
    try:
        path = _metadata(folder)
        return path is not None and len(_poses(_document(path), path)) > 0
    except RaymarchError:
        return False


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, by the images' numbers; every `holdout`-th is "test". y is up, as in the capture.

    Of the metadata `poses` are quaternions x, y, z, w and places (`world_from_camera`), `K` is a matrix column by
    column, or `perFrameIntrinsicCoeffs` are fx, fy, cx, cy of each image; `w` and `h` the size they are of.
    Depth images are those in `depth`, numbered as the images are [m].

    Raises RaymarchError that names the file, what is wrong and the cure: counts of poses and images that differ above
    all.
    """
    source = _metadata(folder)
    if source is None:
        raise RaymarchError(f"{folder}: has no {METADATA_FILES[0]}; unpack the capture (.r3d is a zip archive)")
    document = _document(source)
    poses = _poses(document, source)
    origin = new_origin([pose[:3, 3] for pose in poses], source)
    calibrations = _calibrations(document, len(poses), source)
    inner = next((name for name in IMAGE_FOLDERS if (folder / name).is_dir()), IMAGE_FOLDERS[0])
    files = sorted(image_files(folder, inner, options.follow_links), key=_order)
    if not files and options.cameras_alone:
        files = [folder / inner / f"{i:05d}.png" for i in range(len(poses))]
    require_pairs(source, len(poses), "poses", files, folder / inner)
    frames, root = [], folder.resolve()
    for i, (file, pose, calibration) in enumerate(zip(files, poses, calibrations, strict=True)):
        where = f"{source}, pose {i} ({file.name})"
        frame = Frame(file, partial(calibration.camera, moved_pose(pose, origin), where=where), size=calibration.size)
        frames.append(frame._replace(depth=_depth_file(folder, file, root, options.follow_links)))
    if packed := [file.name for file in files if file.with_suffix(".depth").is_file()]:
        message = "%s: depths of %d images are packed by LZFSE (.depth) and not read; export EXR + JPG from Record3D"
        logging.getLogger("raymarch").warning(message, source, len(packed))
    chosen = [frames[i] for i in select_split(len(frames), options, source)]  # as they were taken, not by name
    return views_of_frames(chosen, folder, source, options, origin=origin)


def _depth_file(folder: Path, file: Path, root: Path, follow_links: bool) -> Path | None:
    """Depth image of an image, of its number [m]; None where there is none."""
    named = (folder / DEPTH_FOLDER / f"{file.stem}{suffix}" for suffix in DEPTH_SUFFIXES)
    found = next((path for path in named if path.is_file()), None)
    return None if found is None else require_inside(found, root, follow_links)


def _metadata(folder: Path) -> Path | None:
    return next((folder / name for name in METADATA_FILES if (folder / name).is_file()), None)


def _order(file: Path) -> tuple[bool, int, str]:
    plain = file.stem.isascii() and file.stem.isdigit() and len(file.stem) < 19
    return not plain, int(file.stem) if plain else 0, file.name


def _document(path: Path) -> dict:
    document = read_json(path)
    if not isinstance(document, dict):
        raise RaymarchError(f"{path}: is {short_value(document)}, want a mapping with poses and K; {EXPORT_CURE}")
    return document


def _row(value: object, count: int, where: str) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        raise RaymarchError(f"{where} is {short_value(value)}, want {count} numbers; {EXPORT_CURE}")
    return [read_number(x, where) for x in value]


def _poses(document: dict, path: Path) -> list[np.ndarray]:
    listed = document.get("poses")
    if not isinstance(listed, list) or not listed or "K" not in document:
        raise RaymarchError(f"{path}: poses is {short_value(listed)}, want a list beside K; {EXPORT_CURE}")
    require_few(len(listed), path)
    return [_pose(_row(row, 7, f"{path}: pose {i}"), f"{path}: pose {i}") for i, row in enumerate(listed)]


def _pose(row: list[float], where: str) -> np.ndarray:
    *quaternion, tx, ty, tz = row
    length = float(np.linalg.norm(quaternion))
    if not 0.9 < length < 1.1:
        raise RaymarchError(f"{where} has a quaternion of length {length:.4g}, want 1; {EXPORT_CURE}")
    x, y, z, w = np.array(quaternion) / length
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), tx],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), ty],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), tz],
            [0, 0, 0, 1],
        ]
    )


def _calibrations(document: dict, count: int, path: Path) -> list[Calibration]:
    size = None
    if "w" in document or "h" in document:
        size = (read_number(document.get("w"), f"{path}: w"), read_number(document.get("h"), f"{path}: h"))
    each = document.get("perFrameIntrinsicCoeffs")
    if isinstance(each, list) and len(each) == count:
        rows = [_row(row, 4, f"{path}: perFrameIntrinsicCoeffs {i}") for i, row in enumerate(each)]
        return [Calibration((fx, fy), (cx, cy), size) for fx, fy, cx, cy in rows]
    if each is not None:
        came = f"a list of {len(each)}" if isinstance(each, list) else type(each).__name__
        message = "%s: perFrameIntrinsicCoeffs is %s for %d poses and not read, K is taken for all"
        logging.getLogger("raymarch").warning(message, path, came, count)
    matrix = np.array(_row(document["K"], 9, f"{path}: K")).reshape(3, 3).T
    return [Calibration(*calibration_of_matrix(matrix, f"{path}: K"), size)] * count


RECORD3D = Reader("Record3D", detect, by_options(read), METADATA_FILES, specificity=2)
