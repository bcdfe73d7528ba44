"""Views: a set of posed images, cameras with the images they took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raymarch.arguments.arrays import Colour, Numbers, colour, numeric
from raymarch.arguments.checks import Check, Wrong, instance_of, shown, text, whole
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera


def require_colour(background: Colour) -> tuple[float, float, float]:
    """Colour (red, green, blue) in 0..1 of "white", "black", "r,g,b" or three numbers; else RaymarchError.

    Example:
        >>> require_colour("0.5,0.5,1")
        (0.5, 0.5, 1.0)
    """
    return colour("background", background)


def _cameras(value: Iterable[Camera]) -> tuple[Camera, ...]:
    several = tuple(value)
    for one in several:
        if not isinstance(one, Camera):
            raise Wrong(f"has {shown(one)}")
    return several


def _images(value: object) -> np.ndarray:
    images = numeric(value)
    if images.ndim != 4 or images.shape[3] not in (3, 4) or images.dtype != np.uint8:
        raise Wrong(f"is {images.dtype} {images.shape}")
    return images


IMAGES = Check("uint8 (view, height, width, 3 or 4)", _images, "scale 0..1 to 0..255 first")
ONE_EACH = Check("a list of Cameras", _cameras)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError
    return tuple(text.read(name) for name in value)


NAMES = Check("a list of texts", _names)


@dataclass(frozen=True, eq=False)
class Views:
    """Posed images: images of one size and the camera of each.

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

    def __post_init__(self) -> None:
        images, cameras = IMAGES("images", self.images), ONE_EACH("cameras", self.cameras)
        names = NAMES("names", self.names) or tuple(f"{i:03d}" for i in range(len(cameras)))
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
        text("source", self.source)

    def __len__(self) -> int:
        return len(self.cameras)

    def __repr__(self) -> str:
        _, height, width, channels = self.images.shape
        kind = "RGBA" if channels == 4 else "RGB"
        return f"Views({len(self)} {kind} images of {width} x {height}, source={self.source!r})"

    def __getitem__(self, which: int | slice | Numbers) -> Views:
        """The views of a slice, a list of indices or one index, in that order."""
        try:
            index: np.ndarray = np.atleast_1d(np.arange(len(self))[which])
        except (IndexError, TypeError, ValueError):
            index = np.zeros(0)
        if index.ndim != 1 or index.size == 0:
            raise RaymarchError(
                f"which is {shown(which)}, want whole numbers of 0 to {len(self) - 1}, one or more, or a slice of those"
            )
        return replace(
            self,
            cameras=[self.cameras[i] for i in index],
            images=self.images[index],
            names=[self.names[i] for i in index],
        )

    def __iter__(self) -> Iterator[Views]:
        return (self[view] for view in range(len(self)))

    @property
    def has_alpha(self) -> bool:
        """Presence of an alpha channel."""
        return self.images.shape[3] == 4

    def background_doubt(self) -> str:
        """Warning about the background, where images without alpha have borders of one other colour; or ""."""
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
        """Image (height, width, 3) float32 in 0..1 of one view, composited on the background where it has alpha."""
        view = whole(-len(self), len(self) - 1)("view", view)
        image = self.images[view].astype(np.float32) / 255
        if not self.has_alpha:
            return image
        alpha = image[..., 3:]
        return image[..., :3] * alpha + np.asarray(self.background, np.float32) * (1 - alpha)


VIEWS = instance_of(Views, "Views, as rm.load_views gives")


def _several(value: Iterable[Camera]) -> tuple[Camera, ...]:
    cameras = (value,) if isinstance(value, Camera) else tuple(value.cameras if isinstance(value, Views) else value)
    if not cameras or not all(isinstance(camera, Camera) for camera in cameras):
        raise ValueError
    return cameras


CAMERAS = Check("Views, a Camera or a list with at least one", _several)
