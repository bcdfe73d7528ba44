"""COLMAP image sets: a model, text or binary, and the folder of images that it was made from."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raymarch.data.views import Views
from raymarch.errors import RaymarchError, named
from raymarch.geometry.camera import Camera
from raymarch.io.files.limits import require_folder
from raymarch.io.image_sets import colmap_binary, colmap_text
from raymarch.io.image_sets.camera_models import lens_of
from raymarch.io.image_sets.colmap_model import (
    KINDS,
    PLACES,
    ModelCamera,
    ModelFiles,
    ModelImage,
    ModelPoints,
    models_in,
    world_from_camera,
)
from raymarch.io.image_sets.frame_file import frame_file, present
from raymarch.io.image_sets.frames import Frame, views_of_frames
from raymarch.io.image_sets.holdout import held_out
from raymarch.io.image_sets.intrinsics import sized
from raymarch.io.image_sets.reader import Reader

log = logging.getLogger("raymarch")

PARSERS = {"bin": colmap_binary, "txt": colmap_text}
FILES = tuple(f"{where}cameras.{kind}" for place in PLACES for where in place for kind in KINDS)
PHOTOS = ("images", "input", "", "images_2", "images_4", "images_8")  # folders, the first with one of the images
LEAST_TRACK, MOST_ERROR = 3, 3.0  # images that see a point; its error in medians of all
FEWEST_POINTS = 50  # that tell more than all together


class Model(NamedTuple):
    """COLMAP model as far as an image set needs it: its files, cameras and images by their numbers."""

    files: ModelFiles
    cameras: dict[int, ModelCamera]
    images: dict[int, ModelImage]


def detect(folder: Path) -> bool:
    """Detection: whether the folder has a model whose cameras can be read."""
    return any(_has_cameras(files) for files in models_in(folder))


def _has_cameras(files: ModelFiles) -> bool:
    try:
        return bool(PARSERS[files.kind].read_cameras(files.path("cameras")))
    except RaymarchError:
        return False


def read(
    folder: str | os.PathLike[str],
    split: str = "train",
    *,
    follow_links: bool = False,
    for_fit: bool = True,
    downscale: float = 1.0,
    holdout: int = 8,
) -> Views:
    """Views of one split of the model with most images, which the log names where there are several.

    Cameras are of any of COLMAP's models 0 to 9, scaled to the images where these are smaller or larger. Images are
    looked for in `images`, beside the model and above it, else in `images_2`, `_4`, `_8`; masks in `masks` beside that
    folder, as `<image>.png`, black where pixels are not to count. Options as of `load_views`.

    Raises RaymarchError that names the file, what is wrong and the cure.

    Example:
        >>> read("garden", "test", downscale=4).sizes[0]  # doctest: +SKIP
        (1297, 840)
    """
    folder = require_folder(folder)
    model = largest_model(folder)
    source = model.files.path("images")
    inside, root = _folder_of_images(folder, model)
    frames = list[Frame]()
    for number, image in model.images.items():
        where = f"{source}, image {number}"
        file = frame_file(inside, root, image.name, where, follow_links, key="name")
        if image.camera not in model.cameras:
            raise RaymarchError(
                f"{where}: has camera {image.camera}, which is not among the cameras; export both again"
            )
        camera = partial(camera_of_image, model.cameras[image.camera], image, f"{where} ({file.stem})", file)
        frames.append(Frame(file, camera, _mask(inside, file, root, follow_links)))
    there = present([frame.file for frame in frames], source)
    frames = held_out([frames[i] for i in there], split, holdout, source)
    return views_of_frames(
        frames, inside, source, for_fit=for_fit, downscale=downscale, points=points_of_model(model.files)
    )


def largest_model(folder: Path) -> Model:
    """Model with most images of those in a folder; the log says which, and which cannot be read."""
    found, failed = list[Model](), list[RaymarchError]()
    for files in models_in(folder):
        parser = PARSERS[files.kind]
        try:
            found.append(
                Model(files, parser.read_cameras(files.path("cameras")), parser.read_images(files.path("images")))
            )
        except RaymarchError as error:
            failed.append(error)
    best = max(found, key=lambda model: len(model.images), default=None)
    if best is None or not best.images:
        wanted = "cameras.bin and images.bin, or both as .txt"
        none = f"{folder}: has no COLMAP model with images, want {wanted}; run COLMAP's mapper again"
        raise failed[0] if failed else RaymarchError(none)
    for why in failed:
        log.warning("%s: a model is left out: %s", folder, why)
    if len(found) > 1:
        others = [f"{model.files.folder.relative_to(folder)} {len(model.images)}" for model in found if model != best]
        name, most = best.files.folder.relative_to(folder), len(best.images)
        message = "%s: of %d models that with most images is taken, %s with %d (others: %s)"
        log.warning(message, folder, len(found), name, most, named(others))
    return best


def _folder_of_images(folder: Path, model: Model) -> tuple[Path, Path]:
    """Folder in which any of the model's images is, and the one out of which nothing is read.

    It is in the set, the nearer to the model the first; or beside it, where the set is the folder of the model.
    """
    steps = len(model.files.folder.relative_to(folder).parts)
    above = [model.files.folder, *model.files.folder.parents][: steps + 1]
    places = [(above_it / name, folder) for name in PHOTOS for above_it in above]
    places += [(outer / PHOTOS[0], outer) for outer in folder.resolve().parents[: 1 if steps else 2]]
    names = [image.name for image in model.images.values()]
    for place, root in places:
        if place.is_dir() and any(_is_there(place, name) for name in names):
            return place, root.resolve()
    raise RaymarchError(
        f"{folder}: has a COLMAP model but none of its {len(names)} images ({named(sorted(names), 3)}), want them in"
        f" {folder / PHOTOS[0]}; put them there, or name the folder that holds both"
    )


def _is_there(place: Path, name: str) -> bool:
    try:
        return (place / name.replace("\\", "/")).is_file()
    except (OSError, ValueError):
        return False


def _mask(inside: Path, file: Path, root: Path, follow_links: bool) -> Path | None:
    """Mask of an image where there is one, in the folder beside that of images, by the image's path in that."""
    inner = file.relative_to(inside)
    for name in (inner.with_name(inner.name + ".png"), inner.with_suffix(".png"), inner):
        mask = inside.parent / "masks" / name
        if mask.is_file() and (follow_links or mask.resolve().is_relative_to(root)):
            return mask
    return None


def camera_of_image(camera: ModelCamera, image: ModelImage, where: str, file: Path, width: int, height: int) -> Camera:
    """Camera of a model's image for the size that its file has; else RaymarchError, opened by `where`."""
    p, focals = camera.parameters, camera.model.focals
    full, principal = (camera.width, camera.height), p[focals : focals + 2]
    pose = world_from_camera(image, where)
    try:
        return sized(
            pose, (p[0], p[focals - 1]), principal, full, lens_of(camera.model, p), (width, height), where, file
        )
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(where) else f"{where}: {text}") from None


def points_of_model(files: ModelFiles) -> np.ndarray | None:
    """Points (point, 3) of a model that 3 or more images see, with an error of at most 3 medians; None where none is.

    A point seen twice has its depth from one pair of rays, and one with a large error from a wrong match: both lie
    far off, and would make any box too large. All are taken where fewer than 50 are left, as from models of few images.
    """
    path = files.path("points3D")
    if not path.is_file() or not path.stat().st_size:
        return None
    points: ModelPoints = PARSERS[files.kind].read_points(path)
    if not len(points.places):
        return None
    good = (points.tracks >= LEAST_TRACK) & (points.errors <= MOST_ERROR * np.median(points.errors))
    return points.places[good] if good.sum() >= FEWEST_POINTS else points.places


COLMAP = Reader("COLMAP", detect, read, FILES)
