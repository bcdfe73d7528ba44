"""COLMAP image sets: a model, text or binary, and the folder of images that it was made from."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.files.limits import require_folder
from raymarch.io.image_sets import llff
from raymarch.io.image_sets.camera_models import lens_of
from raymarch.io.image_sets.colmap.model import (
    KINDS,
    PLACES,
    ModelCamera,
    ModelFiles,
    ModelImage,
    models_in,
    world_from_camera,
)
from raymarch.io.image_sets.colmap_choice import (
    PARSERS,
    Model,
    folder_of_images,
    lacks_images,
    largest_model,
    points_of_model,
)
from raymarch.io.image_sets.frame_file import frame_file, present
from raymarch.io.image_sets.frames import Frame, views_of_frames
from raymarch.io.image_sets.holdout import held_out
from raymarch.io.image_sets.intrinsics import sized
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin, places_of

log = logging.getLogger("raymarch")

FILES = tuple(f"{where}cameras.{kind}" for place in PLACES for where in place for kind in KINDS)


def detect(folder: Path) -> bool:
    """Detection: whether the folder has a model whose cameras can be read, and not LLFF's table with other images."""
    has_model = any(_has_cameras(files) for files in models_in(folder))
    return has_model and not (llff.detect(folder) and lacks_images(folder))


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
    folder, or in the set's own where images lie in that, as `<image>.png`, black where pixels are not to count. Options
    as of `load_views`.

    Raises RaymarchError that names the file, what is wrong and the cure.

    Example:
        >>> read("garden", "test", downscale=4).sizes[0]  # doctest: +SKIP
        (1297, 840)
    """
    folder = require_folder(folder)
    model = largest_model(folder)
    source = model.files.path("images")
    inside, root = folder_of_images(folder, model)
    masks = (inside if inside.resolve() == root else inside.parent) / "masks"
    origin = new_origin(places_of(model.images.values(), lambda image: world_from_camera(image, "")[:3, 3]), source)
    frames = list[Frame]()
    for number, image in model.images.items():
        where = f"{source}, image {number}"
        file = frame_file(inside, root, image.name, where, follow_links, key="name")
        if image.camera not in model.cameras:
            raise RaymarchError(
                f"{where}: has camera {image.camera}, which is not among the cameras; export both again"
            )
        camera = partial(camera_of_image, model.cameras[image.camera], image, f"{where} ({file.stem})", origin=origin)
        frames.append(
            Frame(
                file,
                camera,
                _mask(masks, file.relative_to(inside), root, follow_links),
                sensor=True,
                size=_size(model, image),
            )
        )
    if masked := sum(frame.mask is not None for frame in frames):
        log.warning("%s: %d of %d images have a mask in %s", source, masked, len(frames), masks)
    elif frames and next(masks.glob("*"), None) is not None:
        name = frames[0].file.name
        log.warning("%s: none of its files is the mask of an image; name them as COLMAP does, %s.png", masks, name)
    there = present([frame.file for frame in frames], source)
    frames = held_out([frames[i] for i in there], split, holdout, source)
    return views_of_frames(
        frames,
        inside,
        source,
        for_fit=for_fit,
        downscale=downscale,
        points=points_of_model(model.files, origin),
        origin=origin,
    )


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
    camera: ModelCamera, image: ModelImage, where: str, width: int, height: int, orientation: int = 1, *,
    origin: np.ndarray | None = None,
) -> Camera:  # fmt: skip
    """Camera of a model's image for the size and orientation that its file has; else RaymarchError, opened by `where`.

    COLMAP does not look at EXIF's orientation: cameras and masks are of the sensor's images. `origin` as of
    `new_origin`.
    """
    p, focals = camera.parameters, camera.model.focals
    full, principal = (camera.width, camera.height), p[focals : focals + 2]
    pose = moved_pose(world_from_camera(image, where), origin)
    try:
        lens = lens_of(camera.model, p)
        return sized(
            pose, (p[0], p[focals - 1]), principal, full, lens, (width, height), where, orientation, sensor=True
        )
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(where) else f"{where}: {text}") from None


COLMAP = Reader("COLMAP", detect, read, FILES)
