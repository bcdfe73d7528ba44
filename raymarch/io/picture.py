"""Pictures as PNG files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from raymarch.errors import RaymarchError
from raymarch.io.atomic import replacing
from raymarch.io.guard import one_line


def write_png(path, image) -> None:
    """Write an image (height, width, 1, 3 or 4) as an 8 bit PNG; an existing file is replaced in one step.

    Floating images hold display values, clipped to 0..1 and rounded to 8 bit; uint8 is written as it is; the fourth
    channel is straight alpha.

    Raises RaymarchError for other shapes or types, NaN, another suffix than .png, or a path that cannot be written.

    Example:
        >>> write_png("grey.png", np.full((4, 4, 3), 0.5))
    """
    if Path(path).suffix.lower() != ".png":
        raise RaymarchError(f"{path}: pictures are written as PNG; end the name in .png")
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] not in (1, 3, 4) or image.size == 0:
        raise RaymarchError(f"{path}: image has shape {image.shape}, want (height, width, 1, 3 or 4); reshape it")
    if np.issubdtype(image.dtype, np.floating):
        if np.isnan(image).any():
            where = tuple(int(i) for i in np.argwhere(np.isnan(image))[0])
            raise RaymarchError(f"{path}: image is nan at {where}, want numbers; look for a division by 0")
        image = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    if image.dtype != np.uint8:
        raise RaymarchError(f"{path}: image is {image.dtype}, want floats in 0..1 or uint8; convert it first")
    with replacing(path) as temporary:
        Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(temporary, format="PNG")


def write_depth(path, depth, near: float | None = None, far: float | None = None) -> None:
    """Write depths (height, width) as a grey picture: `near` white, `far` dark, nothing met black.

    Near and far are the picture's own where they are not given; give them for pictures that belong together.
    """
    depth = np.asarray(depth, float)
    met = np.isfinite(depth)
    grey = np.zeros(depth.shape)
    if met.any():
        near = depth[met].min() if near is None else near
        far = depth[met].max() if far is None else far
        grey[met] = 1 - 0.8 * np.clip((depth[met] - near) / max(far - near, 1e-12), 0, 1)
    write_png(path, grey[..., None])


def write_comparison(path, image, truth) -> None:
    """Write rendered, true and 4 x their difference side by side, each (height, width, 3) in 0..1."""
    error = np.clip(4 * np.abs(np.clip(image, 0, 1) - truth), 0, 1)
    write_png(path, np.concatenate([np.clip(image, 0, 1), truth, error], axis=1))


def make_folder(path, outside=None) -> Path:
    """The folder `path`, made if its parent exists; RaymarchError where it cannot be, or is in `outside`."""
    folder = Path(path)
    if outside is not None and folder.resolve().is_relative_to(Path(outside).resolve()):
        raise RaymarchError(f"{path}: lies in the image set {outside}, whose images it could replace; choose another")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        reason = one_line(error)
        raise RaymarchError(f"{path}: folder cannot be made ({reason}); create its parent or choose another") from error
    return folder
