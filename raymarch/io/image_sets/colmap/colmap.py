"""COLMAP image sets: a model, text or binary, and the folder of images that it was made from."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE
from raymarch.errors import RaymarchError, first_names, short_value
from raymarch.geometry.camera import Camera
from raymarch.io.image_sets import llff
from raymarch.io.image_sets.calibration import name_errors, sized
from raymarch.io.image_sets.camera_models import focal_of_sphere, lens_of
from raymarch.io.image_sets.colmap import binary, text
from raymarch.io.image_sets.colmap.model import (
    FILE_KINDS,
    MODEL_FOLDERS,
    ModelCamera,
    ModelFiles,
    ModelImage,
    ModelPoints,
    models_in,
    world_from_camera,
)
from raymarch.io.image_sets.frame_file import (
    IS_THERE_HINT,
    RENAME_CURE,
    UNENCODABLE,
    find_by_spelling,
    find_by_tail,
    find_suffix,
    frame_file,
    missing_hint,
)
from raymarch.io.image_sets.frames import Frame, existing_images, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin, places_of

log = logging.getLogger("raymarch")
PARSERS = {"bin": binary, "txt": text}
MODEL_FILES = tuple(f"{where}cameras.{kind}" for place in MODEL_FOLDERS for where in place for kind in FILE_KINDS)
PHOTO_FOLDERS = ("images", "input", "", "images_2", "images_4", "images_8")  # folders, the first with one of the images
MIN_TRACK, MAX_ERROR = 3, 3.0  # images that see a point; its error in medians of all
MIN_POINTS = 50  # good ones that tell more than all together


class Model(NamedTuple):
    """COLMAP model as far as an image set needs it: its files, cameras and images by their numbers."""

    files: ModelFiles
    cameras: dict[int, ModelCamera]
    images: dict[int, ModelImage]


def detect(folder: Path) -> bool:
    """Detection: whether the folder has a model whose cameras can be read, and not LLFF's table with other images."""
    has_model = any(_has_cameras(files) for files in models_in(folder))
    return has_model and not (llff.detect(folder) and lacks_images(folder))


def _has_cameras(files: ModelFiles) -> bool:
    try:
        return bool(PARSERS[files.kind].read_cameras(files.path("cameras")))
    except RaymarchError:
        return False


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of one split of the model with most images, which the log names where there are several.

    Cameras are of any of COLMAP's models 0 to 9, scaled to the images where these are smaller or larger. Images are
    looked for in `images`, beside the model and above it, else in `images_2`, `_4`, `_8`; masks in `masks` beside that
    folder, or in the set's own where images lie in that, as `<image>.png`, black where pixels are not to count.

    Raises RaymarchError that names the file, what is wrong and the cure.

    Example:
        >>> COLMAP.read("garden", "test", downscale=4).sizes[0]  # doctest: +SKIP
        (1297, 840)
    """
    model = largest_model(folder)
    source = model.files.path("images")
    inside, root = folder_of_images(folder, model, options.cameras_alone)
    masks = (inside if inside.resolve() == root else inside.parent) / "masks"
    origin = new_origin(places_of(model.images.values(), lambda image: world_from_camera(image, "")[:3, 3]), source)
    frames = list[Frame]()
    for number, image in model.images.items():
        where = f"{source}, image {number}"
        file = frame_file(inside, root, image.name, where, options.follow_links, key="name")
        if image.camera not in model.cameras:
            raise RaymarchError(
                f"{where}: has camera {image.camera}, which is not among the cameras; export both again"
            )
        camera = partial(camera_of_image, model.cameras[image.camera], image, f"{where} ({file.stem})", origin=origin)
        frames.append(
            Frame(
                file,
                camera,
                _mask(masks, file.relative_to(inside), root, options.follow_links),
                sensor=True,
                size=_size(model, image),
            )
        )
    if masked := sum(frame.mask is not None for frame in frames):
        log.warning("%s: %d of %d images have a mask in %s", source, masked, len(frames), masks)
    elif frames and next(masks.glob("*"), None) is not None:
        name = frames[0].file.name
        log.warning("%s: none of its files is the mask of an image; name them as COLMAP does, %s.png", masks, name)
    there = existing_images([frame.file for frame in frames], source, options)
    numbers = {frame.file: number for frame, number in zip(frames, model.images, strict=True)}
    frames = select_split([frames[i] for i in there], options, source)
    points, seen = seen_points_of_model(model.files, origin)
    sightings = (
        [seen.get(numbers[frame.file], np.zeros(0, np.int64)) for frame in frames] if seen and options.depths else None
    )
    return views_of_frames(frames, inside, source, options, points=points, origin=origin, sightings=sightings)


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
        log.warning(message, folder, len(found), name, most, first_names(others))
    return best


def folder_of_images(folder: Path, model: Model, cameras_alone: bool) -> tuple[Path, Path]:
    """Folder in which any of the model's images is, and the one out of which nothing is read.

    It is in the set, the nearer to the model the first; or beside it, where the set is the folder of the model.
    """
    names = [image.name for image in model.images.values()]
    for place, root in _places_of_images(folder, model.files):
        if place.is_dir() and any(_is_there(place, name) for name in names):
            return place, root.resolve()
    if cameras_alone:
        return folder / PHOTO_FOLDERS[0], folder.resolve()
    there = (
        place / names[0].replace("\\", "/") for place, _ in _places_of_images(folder, model.files) if place.is_dir()
    )
    hint = next((found for file in there if file.parent.is_dir() and (found := missing_hint(file))), "")
    cure = RENAME_CURE if hint.endswith(IS_THERE_HINT) else "put them there, or name the folder that holds both"
    raise RaymarchError(
        f"{folder}: has a COLMAP model but none of its {len(names)} images "
        f"({first_names(sorted(names), 3)}{hint}), want them"
        f" in {folder / PHOTO_FOLDERS[0]}; {cure}"
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
    places = [(above_it / name, folder) for name in PHOTO_FOLDERS for above_it in above]
    return places + [(outer / PHOTO_FOLDERS[0], outer) for outer in folder.resolve().parents[: 1 if steps else 2]]


def _is_there(place: Path, name: str) -> bool:
    try:
        if (file := find_by_tail(place, name)) is not None:
            return file.is_file()
        path = place / name.replace("\\", "/")
        return find_suffix(path).is_file() or find_by_spelling(place, path) is not None
    except UnicodeEncodeError:
        raise RaymarchError(f"{place}: image {short_value(name)} {UNENCODABLE}") from None
    except (OSError, ValueError):
        return False


def _size(model: Model, image: ModelImage) -> tuple[int, int]:
    camera = model.cameras[image.camera]
    return camera.width, camera.height


def _mask(masks: Path, inner: Path, root: Path, follow_links: bool) -> Path | None:
    """Mask of an image where there is one in the folder of masks, by the image's path in its own."""
    for name in (inner.with_name(inner.name + ".png"), inner.with_suffix(".png"), inner):
        mask = masks / name
        if mask.is_file() and (follow_links or mask.resolve().is_relative_to(root)):
            return mask
    return None


def camera_of_image(
    camera: ModelCamera,
    image: ModelImage,
    where: str,
    width: int,
    height: int,
    orientation: int = 1,
    *,
    origin: np.ndarray | None = None,
) -> Camera:
    """Camera of a model's image for the size and orientation that its file has; else RaymarchError, opened by `where`.

    COLMAP does not look at EXIF's orientation: cameras and masks are of the sensor's images. `origin` as of
    `new_origin`.
    """
    p, focals = camera.parameters, camera.model.focals
    full, principal = (camera.width, camera.height), p[focals : focals + 2]
    pose = moved_pose(world_from_camera(image, where), origin)
    with name_errors(where):
        lens, focal = lens_of(camera.model, p), (p[0], p[focals - 1])
        if lens.spherical:
            focal, principal = focal_of_sphere(full), [size / 2 for size in full]
        return sized(pose, focal, principal, full, lens, (width, height), where, orientation, sensor=True)


def points_of_model(files: ModelFiles, origin: np.ndarray | None = None) -> np.ndarray | None:
    """Points of a model, as of `seen_points_of_model`."""
    return seen_points_of_model(files, origin)[0]


def seen_points_of_model(
    files: ModelFiles, origin: np.ndarray | None = None
) -> tuple[np.ndarray | None, dict[int, np.ndarray]]:
    """Points (point, 3) of a model that 3 or more images see, with an error of at most 3 medians, None where none is;
    and which of them each image sees, by its number.

    A point seen twice has its depth from one pair of rays, and one with a large error from a wrong match: both lie
    far off, and would make any box too large. All are taken where fewer than 50 are left, as from models of few images.
    `origin` as of `new_origin`.
    """
    path = files.path("points3D")
    if not path.is_file() or not path.stat().st_size:
        return None, {}
    points: ModelPoints = PARSERS[files.kind].read_points(path)
    places = points.places if origin is None else points.places - origin
    there = (abs(places) < MAX_COORDINATE).all(1)
    if not there.any():
        return None, {}
    good = there & (points.tracks >= MIN_TRACK) & (points.errors <= MAX_ERROR * np.median(points.errors))
    kept = good if good.sum() >= MIN_POINTS else there
    seen = np.repeat(np.where(kept, np.cumsum(kept) - 1, -1), points.tracks)
    images, seen = points.images[seen >= 0], seen[seen >= 0]
    order = np.argsort(images, kind="stable")
    numbers, starts = np.unique(images[order], return_index=True)
    parts = np.split(seen[order], starts[1:]) if len(numbers) else []
    return places[kept], {int(n): np.unique(part) for n, part in zip(numbers, parts, strict=True)}


COLMAP = Reader("COLMAP", detect, by_options(read), MODEL_FILES)
