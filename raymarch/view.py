"""Views: cameras with the images they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raymarch.camera import Camera
from raymarch.errors import RaymarchError

COLOURS = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}


def require_colour(colour) -> tuple[float, float, float]:
    """(red, green, blue) in 0..1 of "white", "black", "r,g,b" or three numbers; else RaymarchError.

    Example:
        >>> require_colour("0.5,0.5,1")
        (0.5, 0.5, 1.0)
    """
    came = colour
    if isinstance(colour, str):
        colour = COLOURS.get(colour, colour.split(","))
    try:
        r, g, b = (float(c) for c in colour)
    except (TypeError, ValueError):
        raise RaymarchError(
            f"background {came!r}: want white, black or three numbers in 0..1 such as 0.5,0.5,1"
        ) from None
    if not all(0 <= c <= 1 for c in (r, g, b)):
        raise RaymarchError(f"background {came!r}: want three numbers in 0..1")
    return r, g, b


@dataclass(frozen=True, eq=False)
class Views:
    """Images of one size and the camera of each.

    Attributes:
        cameras: one `Camera` a view, all of the images' size.
        images: (view, height, width, 3 or 4) uint8, display values; the fourth is straight alpha.
        names: one a view, for reports.
        background: colour (3,) in 0..1 that images with alpha are composited on.
        source: where they came from, for provenance.

    Raises RaymarchError where counts or sizes disagree.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=8)], np.zeros((1, 8, 8, 4), np.uint8))
        >>> views.has_alpha, views.rgb(0)[0, 0].tolist()
        (True, [1.0, 1.0, 1.0])
    """

    cameras: Sequence[Camera]
    images: np.ndarray
    names: Sequence[str] = ()
    background: tuple[float, float, float] = (1.0, 1.0, 1.0)
    source: str = ""

    def __post_init__(self):
        images, cameras = np.asarray(self.images), tuple(self.cameras)
        names = tuple(self.names) or tuple(f"{i:03d}" for i in range(len(cameras)))
        if images.ndim != 4 or images.shape[3] not in (3, 4) or images.dtype != np.uint8:
            raise RaymarchError(
                f"images are {images.dtype} {images.shape}, want uint8 (view, height, width, 3 or 4);"
                " scale 0..1 to 0..255 first"
            )
        if not len(cameras) == len(names) == len(images):
            raise RaymarchError(
                f"{len(images)} images, {len(cameras)} cameras and {len(names)} names; want as many of each"
            )
        if not cameras:
            raise RaymarchError("no views; want at least one camera with its image")
        for camera, name in zip(cameras, names, strict=True):
            if (camera.height, camera.width) != images.shape[1:3]:
                raise RaymarchError(
                    f"view {name}: image is {images.shape[2]} x {images.shape[1]} but its camera"
                    f" {camera.width} x {camera.height}; resize one of them"
                )
        object.__setattr__(self, "cameras", cameras)
        object.__setattr__(self, "images", images)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "background", require_colour(self.background))

    def __len__(self) -> int:
        return len(self.cameras)

    def __repr__(self) -> str:
        _, height, width, channels = self.images.shape
        kind = "RGBA" if channels == 4 else "RGB"
        return f"Views({len(self)} {kind} images of {width} x {height}, source={self.source!r})"

    def __getitem__(self, which) -> Views:
        """The views of a slice, a list of indices or one index, in that order."""
        index = np.atleast_1d(np.arange(len(self))[which])
        return replace(
            self,
            cameras=[self.cameras[i] for i in index],
            images=self.images[index],
            names=[self.names[i] for i in index],
        )

    @property
    def has_alpha(self) -> bool:
        """Whether the images carry alpha."""
        return self.images.shape[3] == 4

    def background_doubt(self) -> str:
        """What speaks against the background: images without alpha with borders of one other colour; or nothing."""
        if self.has_alpha or min(self.images.shape[1:3]) < 3:
            return ""
        edges = [self.images[:, 0], self.images[:, -1], self.images[:, :, 0], self.images[:, :, -1]]
        border = np.concatenate([edge.reshape(-1, 3) for edge in edges]) / 255
        colour = np.median(border, axis=0)
        alike = (np.abs(border - colour).max(1) < 0.05).mean()
        if alike < 0.5 or np.abs(colour - self.background).max() < 0.1:
            return ""
        seen, said = (",".join(f"{c:.2g}" for c in three) for three in (colour, self.background))
        return f"the images' borders are {seen} but the background is {said}; say background={seen}"

    def rgb(self, view: int) -> np.ndarray:
        """The image (height, width, 3) float32 in 0..1 of one view, composited on the background where it has alpha."""
        image = self.images[view].astype(np.float32) / 255
        if not self.has_alpha:
            return image
        alpha = image[..., 3:]
        return image[..., :3] * alpha + np.asarray(self.background, np.float32) * (1 - alpha)
