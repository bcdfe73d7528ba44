"""What is read of a COLMAP set: which of several models, which folder of images, which of the points."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raymarch.arguments.checks import WORLD
from raymarch.errors import RaymarchError, named, short
from raymarch.io.image_sets import colmap_binary, colmap_text
from raymarch.io.image_sets.colmap.model import ModelCamera, ModelFiles, ModelImage, ModelPoints, models_in
from raymarch.io.image_sets.frame_file import (
    AS_LISTED,
    CAMERAS_ALONE,
    IS_THERE,
    UNENCODABLE,
    instead,
    spelt_alike,
    tail,
    with_suffix,
)

log = logging.getLogger("raymarch")

PARSERS = {"bin": colmap_binary, "txt": colmap_text}
PHOTOS = ("images", "input", "", "images_2", "images_4", "images_8")  # folders, the first with one of the images
LEAST_TRACK, MOST_ERROR = 3, 3.0  # images that see a point; its error in medians of all
FEWEST_POINTS = 50  # that tell more than all together


class Model(NamedTuple):
    """COLMAP model as far as an image set needs it: its files, cameras and images by their numbers."""

    files: ModelFiles
    cameras: dict[int, ModelCamera]
    images: dict[int, ModelImage]


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


def folder_of_images(folder: Path, model: Model) -> tuple[Path, Path]:
    """Folder in which any of the model's images is, and the one out of which nothing is read.

    It is in the set, the nearer to the model the first; or beside it, where the set is the folder of the model.
    """
    names = [image.name for image in model.images.values()]
    for place, root in _places_of_images(folder, model.files):
        if place.is_dir() and any(_is_there(place, name) for name in names):
            return place, root.resolve()
    if CAMERAS_ALONE.get():
        return folder / PHOTOS[0], folder.resolve()
    there = (
        place / names[0].replace("\\", "/") for place, _ in _places_of_images(folder, model.files) if place.is_dir()
    )
    hint = next((text for file in there if file.parent.is_dir() and (text := instead(file))), "")
    cure = AS_LISTED if hint.endswith(IS_THERE) else "put them there, or name the folder that holds both"
    raise RaymarchError(
        f"{folder}: has a COLMAP model but none of its {len(names)} images ({named(sorted(names), 3)}{hint}), want them"
        f" in {folder / PHOTOS[0]}; {cure}"
    )


def lacks_images(folder: Path) -> bool:
    """Whether none of the images of any model in a folder is there; a model that cannot be read does not tell.

    No model is read beyond its first image that is there.
    """
    for files in models_in(folder):
        places = [place for place, _ in _places_of_images(folder, files) if place.is_dir()]
        images = PARSERS[files.kind].each_image(files.path("images"))
        try:
            if any(_is_there(place, image.name) for _, image in images for place in places):
                return False
        except RaymarchError:
            return False
    return True


def _places_of_images(folder: Path, files: ModelFiles) -> list[tuple[Path, Path]]:
    """Folders in which a model's images may be, and the one out of which nothing is read of each."""
    steps = len(files.folder.relative_to(folder).parts)
    above = [files.folder, *files.folder.parents][: steps + 1]
    places = [(above_it / name, folder) for name in PHOTOS for above_it in above]
    return places + [(outer / PHOTOS[0], outer) for outer in folder.resolve().parents[: 1 if steps else 2]]


def _is_there(place: Path, name: str) -> bool:
    try:
        if (file := tail(place, name)) is not None:
            return file.is_file()
        path = place / name.replace("\\", "/")
        return with_suffix(path).is_file() or spelt_alike(place, path) is not None
    except UnicodeEncodeError:
        raise RaymarchError(f"{place}: image {short(name)} {UNENCODABLE}") from None
    except (OSError, ValueError):
        return False


def points_of_model(files: ModelFiles, origin: np.ndarray | None = None) -> np.ndarray | None:
    """Points (point, 3) of a model that 3 or more images see, with an error of at most 3 medians; None where none is.

    A point seen twice has its depth from one pair of rays, and one with a large error from a wrong match: both lie
    far off, and would make any box too large. All are taken where fewer than 50 are left, as from models of few images.
    `origin` as of `new_origin`.
    """
    path = files.path("points3D")
    if not path.is_file() or not path.stat().st_size:
        return None
    points: ModelPoints = PARSERS[files.kind].read_points(path)
    places = points.places if origin is None else points.places - origin
    there = (abs(places) < WORLD).all(1)
    if not there.any():
        return None
    good = there & (points.tracks >= LEAST_TRACK) & (points.errors <= MOST_ERROR * np.median(points.errors))
    return places[good if good.sum() >= FEWEST_POINTS else there]
