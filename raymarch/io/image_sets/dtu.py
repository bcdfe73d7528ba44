"""DTU image sets as IDR and NeuS have them: `cameras.npz` beside the folders `image` and `mask`."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.strict import EXPORT_CURE, read_npz
from raymarch.io.image_sets.calibration import Calibration, calibration_of_matrix, calibration_of_projection
from raymarch.io.image_sets.frames import Frame, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import image_files, require_pairs
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.resize import shrink
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_box, moved_pose, new_origin, places_of

CAMERA_FILES = ("cameras.npz", "cameras_sphere.npz")
IMAGE_FOLDERS = ("image", "rgb", "images")
WORLD_PREFIX, SCALE_PREFIX = "world_mat_", "scale_mat_"
PIXEL_CENTRE = 0.5  # pixel centres lie at whole numbers


def detect(folder: Path) -> bool:
    """Detection: whether the folder has an archive with projections by number."""
    try:
        return (path := _archive(folder)) is not None and bool(_projections(path)[0])
    except RaymarchError:
        return False


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, one a projection `world_mat_i`, in the order of their names; every `holdout`-th is "test".

    The world is that of `world_mat`; `scale_mat` takes the unit sphere there, whose box `Views.box` is. Silhouettes in
    the folder `mask` become alpha: what is not the object is empty. Pixel centres lie at whole numbers.

    Raises RaymarchError that names the file, what is wrong and the cure: counts of cameras, images, masks that differ
    above all.
    """
    source = _archive(folder)
    if source is None:
        raise RaymarchError(f"{folder}: has no {' or '.join(CAMERA_FILES)}; check the path")
    projections, box = _projections(source)
    inner = next((name for name in IMAGE_FOLDERS if (folder / name).is_dir()), IMAGE_FOLDERS[0])
    files, masks = image_files(folder, inner, options.follow_links), image_files(folder, "mask", options.follow_links)
    require_pairs(source, len(projections), "cameras", files, folder / inner)
    if masks:
        require_pairs(source, len(projections), "cameras", masks, folder / "mask", "masks")
    places = places_of(projections, lambda projection: calibration_of_projection(projection, "")[1][:3, 3])
    origin = new_origin(places, source)
    box = moved_box(box, origin, source)
    frames = []
    for i, (file, projection) in enumerate(zip(files, projections, strict=True)):
        where = f"{source}: {WORLD_PREFIX}{i} ({file.name})"
        matrix, pose = calibration_of_projection(projection, where)
        calibration = Calibration(*calibration_of_matrix(matrix, where, PIXEL_CENTRE))
        camera = partial(calibration.camera, moved_pose(pose, origin), where=where)
        frames.append(Frame(file, camera, masks[i] if masks else None))
    chosen = select_split(frames, options, source)
    if not masks:
        return views_of_frames(chosen, folder, source, options, box=box, origin=origin)
    views = views_of_frames(chosen, folder, source, replace(options, downscale=1.0), box=box, origin=origin)
    return _with_silhouettes(views, options.downscale)


def _archive(folder: Path) -> Path | None:
    return next((folder / name for name in CAMERA_FILES if (folder / name).is_file()), None)


def _projections(path: Path) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Projections (3, 4) by their number, and the box of the unit spheres of all, if they have any."""
    found = {name: matrix for prefix in (WORLD_PREFIX, SCALE_PREFIX) for name, matrix in read_npz(path, prefix).items()}
    found = {name: matrix for name, matrix in found.items() if re.fullmatch(r"\w+_\d{1,9}", name)}
    numbers = sorted(int(name.removeprefix(WORLD_PREFIX)) for name in found if name.startswith(WORLD_PREFIX))
    require_few(len(numbers), path)
    if not numbers or numbers != list(range(len(numbers))):
        raise RaymarchError(
            f"{path}: has {len(numbers)} arrays {WORLD_PREFIX}i, want i from 0 on, none left out; {EXPORT_CURE}"
        )
    for name, matrix in found.items():
        if matrix.shape not in ((4, 4), (3, 4)):
            raise RaymarchError(f"{path}: {name} is {matrix.shape}, want (4, 4); {EXPORT_CURE}")
    spheres = [found[f"{SCALE_PREFIX}{i}"] for i in numbers if f"{SCALE_PREFIX}{i}" in found]
    corners = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    placed = np.array([corners @ sphere[:3, :3].T + sphere[:3, 3] for sphere in spheres]).reshape(-1, 3)
    box = np.stack([placed.min(axis=0), placed.max(axis=0)]) if len(placed) else None
    return [found[f"{WORLD_PREFIX}{i}"][:3] for i in numbers], box


def _with_silhouettes(views: Views, downscale: float) -> Views:
    """Views whose masks are alpha, made smaller as images with alpha are: edges of silhouettes become half empty."""
    cameras = [camera if downscale == 1 else camera.scaled(1 / downscale) for camera in views.cameras]
    images = []
    for i, camera in enumerate(cameras):
        image, mask = views.image(i)[..., :3], views.mask(i)
        alpha = np.full(image.shape[:2], 255, np.uint8) if mask is None else mask.astype(np.uint8) * np.uint8(255)
        images.append(shrink(np.concatenate([image, alpha[..., None]], axis=-1), camera.width, camera.height))
    return replace(views, cameras=cameras, images=images, masks=None)


DTU = Reader("DTU", detect, by_options(read), CAMERA_FILES, specificity=2)
