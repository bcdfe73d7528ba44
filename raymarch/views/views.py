"""Views: a set of posed images, cameras with the images they took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike

import numpy as np

from raymarch.arguments.checks import (
    MAX_COORDINATE,
    Check,
    Colour,
    Numbers,
    Wrong,
    array,
    colour,
    describe_value,
    instance_of,
    number,
    one_of,
    optional,
    text,
    vector,
    whole,
    with_cure,
)
from raymarch.arguments.declared import suggest_names
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import Camera
from raymarch.html.card import card_html, html_of, numbers_text
from raymarch.html.picture import figure, thumbnail
from raymarch.views.channel_images import (
    border_medians,
    channel_images,
    channels_there,
    eight_bit_of,
    ranges_of_images,
)
from raymarch.views.depth_images import (
    DEPTHS,
    SIGHTINGS,
    Depths,
    known_depths,
    require_aspect,
    require_sightings,
    sightings_of,
)
from raymarch.views.image_arrays import IMAGES, MASKS, Images, Masks, effective_masks, gather_images, is_opaque
from raymarch.volumes.channels import WHITE, background_of_channels
from raymarch.volumes.samples import ALPHA, CHANNEL_NAMES, COLOUR_CHANNELS

DOWNSCALE = number(1, 1 << 20, cure="images are made smaller, by 2 for half as many pixels a side")
HOLDOUT = whole(0, 1 << 20, cure="every 8th view by 8, none by 0")


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
            raise Wrong(f"has {describe_value(one)}")
    return several


def _cameras_cure(value: object) -> str:
    if isinstance(value, Camera):
        return "one is [camera]"
    return "cameras come before images" if isinstance(value, np.ndarray) else ""


CAMERA_EACH = with_cure(Check("a list of Cameras", _cameras), _cameras_cure)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError
    return tuple(text.read(name) for name in value)


VIEW_NAMES = Check("a list of texts", _names)
MAP_ORIGIN = vector(3)
MASK_MEANINGS = ("ignored", "alpha")  # pixels that masks take out: unknown, or empty
SPARSE_POINTS = optional(array("point", 3, low=-MAX_COORDINATE, high=MAX_COORDINATE, cure="scale the world"))
PLANES = optional(array("view", 2, low=0, high=MAX_COORDINATE, above=True, cure="scale the world"))


@suggest_names
@dataclass(frozen=True, eq=False)
class Views:
    """Posed images: images and the camera of each; their sizes may differ.

    Attributes:
        cameras: one `Camera` a view, of its image's size.
        images: (view, height, width, 3 or 4) uint8, display values; the fourth is straight alpha. A tuple with an array
            (height, width, 3 or 4) for each view where their sizes differ: see `image`, `sizes`, `one_size`.
        names: one a view, for reports.
        background: colour (3,) in 0..1 that images with alpha are composited on.
        source: where they came from, for provenance.
        masks: a boolean array (height, width) or None for each view, or None: where it is False the pixel counts
            nowhere, neither in a fit nor in its evaluation. Alpha says that nothing is there, a mask that nobody knows.
        points: (point, 3) sparse points of the scene in the world, or None.
        box: lower and upper corner (2, 3) of what is of interest, by whoever made the set, or None.
        downscale, holdout: as of `load_views`, for provenance; images are given as they are.
        origin: where (0, 0, 0) of the cameras' world lies in the coordinates of the set that they were read from, where
            those are far from their origin, as map coordinates are; else None.
        masks_as: as `masks` of `load_views`, for provenance.
        channels: names of the images' numbers, where these are others than red, green and blue: then `images` are float
            (view, height, width, channel), in any unit, NaN where a number is unknown, as in all of a view that does
            not have a channel; a last one named "alpha" is straight alpha in 0..1. `background` has one number a
            channel, if not given the median of each along the images' borders.
        bounds: (view, 2) depths of the near and the far plane between which each view shows the scene [world unit], or
            None. They tell where a scene may lie, not what images show.
        depths: a depth image (height, width) or None for each view, or None: distances along rays [world unit], as
            `Rendering.depth` has them, NaN or 0 where unknown; of the image's aspect, but of any size. Depths along the
            camera's axis, as sensors give them, are made such by `rm.distances_of_z`.
        sightings: whole numbers (sighting, 2), a view and one of the `points` that it sees, or None.

    Raises RaymarchError where counts or sizes disagree.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=8)], np.zeros((1, 8, 8, 4), np.uint8))
        >>> views.has_alpha, views.rgb(0)[0, 0].tolist()
        (True, [1.0, 1.0, 1.0])
    """

    cameras: Sequence[Camera]
    images: Images
    names: Sequence[str] = ()
    background: tuple[float, ...] = WHITE
    source: str = ""
    masks: Masks = None
    points: np.ndarray | None = None
    box: np.ndarray | None = None
    downscale: float = 1.0
    holdout: int | None = None
    origin: tuple[float, float, float] | None = None
    masks_as: str = MASK_MEANINGS[0]
    bounds: np.ndarray | None = None
    depths: Depths = None
    sightings: np.ndarray | None = None
    channels: Sequence[str] = ()

    def __post_init__(self) -> None:
        cameras, channels = CAMERA_EACH("cameras", self.cameras), _channels_of(self.channels)
        names = VIEW_NAMES("names", self.names) or tuple(f"{i:03d}" for i in range(len(cameras)))
        if channels:
            images = channel_images(self.images, channels, names)
        elif (cure := _names_cure(self.images)) is not None:
            raise RaymarchError(f"images are {describe_value(self.images)}; {cure}")
        else:
            images = IMAGES("images", self.images)
        masks = MASKS("masks", self.masks)
        if not len(cameras) == len(names) == len(images):
            raise RaymarchError(
                f"{len(images)} images, {len(cameras)} cameras and {len(names)} names; want as many of each"
            )
        if masks is not None and len(masks) != len(cameras):
            raise RaymarchError(f"{len(masks)} masks of {len(cameras)} views; want one or None for each")
        if not cameras:
            raise RaymarchError("no views; want at least one camera with its image")
        for camera, name, image, mask in zip(cameras, names, images, masks or (None,) * len(cameras), strict=True):
            _require_one_size(camera, name, image, mask)
        depths = DEPTHS("depths", self.depths)
        if depths is not None and len(depths) != len(cameras):
            raise RaymarchError(f"{len(depths)} depth images of {len(cameras)} views; want one or None for each")
        for camera, name, depth in zip(cameras, names, depths or (None,) * len(cameras), strict=True):
            if depth is not None:
                require_aspect(camera, name, depth)
        points = SPARSE_POINTS("points", self.points)
        values = {
            "cameras": cameras, "images": images, "names": names,
            "background": _background(self.background, images, channels), "channels": channels,
            "source": text("source", self.source), "masks": effective_masks(masks), "points": points,
            "box": optional(BOX)("box", self.box), "downscale": DOWNSCALE("downscale", self.downscale),
            "holdout": optional(HOLDOUT)("holdout", self.holdout),
            "origin": optional(MAP_ORIGIN)("origin", self.origin),
            "masks_as": one_of(*MASK_MEANINGS)("masks_as", self.masks_as),
            "bounds": _bounds(self.bounds, names), "depths": known_depths(depths),
            "sightings": require_sightings(
                SIGHTINGS("sightings", self.sightings), len(cameras), 0 if points is None else len(points)
            ),
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.cameras)

    def __repr__(self) -> str:
        kind = ", ".join(self.channels) or ("RGBA" if self.has_alpha else "RGB")
        masked = "" if self.masks is None else f" with {sum(mask is not None for mask in self.masks)} masks"
        return f"Views({len(self)} {kind} images of {self.size_in_words()}{masked}, source={self.source!r})"

    def _repr_html_(self) -> str | None:
        return html_of(views_card, self)

    def __getitem__(self, which: int | slice | Numbers) -> Views:
        """The views of a slice, a list of indices or one index, in that order."""
        try:
            index: np.ndarray = np.atleast_1d(np.arange(len(self))[which])
        except (IndexError, TypeError, ValueError):
            index = np.zeros(0)
        if index.ndim != 1 or index.size == 0:
            raise RaymarchError(
                f"which is {describe_value(which)}, want whole numbers of 0 to {len(self) - 1}, one or more, or a "
                "slice of those"
            )
        return replace(
            self,
            cameras=[self.cameras[i] for i in index],
            images=self.images[index] if isinstance(self.images, np.ndarray) else [self.images[i] for i in index],
            names=[self.names[i] for i in index],
            masks=None if self.masks is None else [self.masks[i] for i in index],
            bounds=None if self.bounds is None else self.bounds[index],
            depths=None if self.depths is None else [self.depths[i] for i in index],
            sightings=sightings_of(self.sightings, index),
        )

    def __iter__(self) -> Iterator[Views]:
        return (self[view] for view in range(len(self)))

    @property
    def has_alpha(self) -> bool:
        """Presence of an alpha channel."""
        return self.channels[-1] == ALPHA if self.channels else self.images[0].shape[2] == 4

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the channels without alpha; red, green and blue of colours."""
        return tuple(name for name in self.channels if name != ALPHA) or COLOUR_CHANNELS

    @property
    def colours(self) -> int:
        """Count of the channels without alpha."""
        return len(self.shown)

    @cached_property
    def ranges(self) -> np.ndarray:
        """Low and high (channel, 2) between which all but a hundredth of a channel's numbers lie; of colours 0, 1."""
        return ranges_of_images(self.images, self.colours) if self.channels else np.tile([0.0, 1.0], (3, 1))

    @cached_property
    def has_channel(self) -> np.ndarray:
        """Which channels (view, channel) each view has: in which any of its pixels has a number."""
        if not self.channels:
            return np.ones((len(self), 3), bool)
        return channels_there(self.images, self.colours)

    @cached_property
    def shows_silhouettes(self) -> bool:
        """Whether alpha tells what the views show from what is around: some pixel of some image is not opaque."""
        opaque = (lambda image: bool((image[..., -1] == 1).all())) if self.channels else is_opaque
        return self.has_alpha and not all(opaque(image) for image in self.images)

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Sizes (width, height) of the images [pixel]."""
        return tuple((camera.width, camera.height) for camera in self.cameras)

    @property
    def one_size(self) -> bool:
        """True where all images have one size, and `images` is one array."""
        return isinstance(self.images, np.ndarray)

    @property
    def pixels(self) -> int:
        """Count of the pixels of all images."""
        return sum(width * height for width, height in self.sizes)

    def count_in_words(self) -> str:
        """Count and sizes of the images in words, such as 3 views of 8 x 6."""
        return f"{len(self)} view{'s' if len(self) > 1 else ''} of {self.size_in_words()}"

    def size_in_words(self) -> str:
        """Sizes of the images in words, from the smallest to the largest.

        Example:
            >>> Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8)).size_in_words()
            '8 x 6'
        """
        ordered = sorted(set(self.sizes), key=lambda size: size[0] * size[1])
        return " to ".join(dict.fromkeys(f"{width} x {height}" for width, height in (ordered[0], ordered[-1])))

    def image(self, view: int) -> np.ndarray:
        """Image (height, width, 3 or 4) uint8 of one view; of channels (height, width, channel) float32."""
        return self.images[self._index(view)]

    def mask(self, view: int) -> np.ndarray | None:
        """Mask (height, width) of one view, False where a pixel does not count; None where all do."""
        view = self._index(view)
        return None if self.masks is None else self.masks[view]

    def depth(self, view: int) -> np.ndarray | None:
        """Depth image (height, width) float32 of one view [world unit], NaN where unknown; None where it has none."""
        view = self._index(view)
        return None if self.depths is None else self.depths[view]

    def _index(self, view: int) -> int:
        return whole(-len(self), len(self) - 1)("view", view)

    def rgb(self, view: int) -> np.ndarray:
        """Image (height, width, 3) float32 in 0..1 of one view, composited on the background where it has alpha."""
        self.require_colours()
        image = self.image(view).astype(np.float32) / 255
        if not self.has_alpha:
            return image
        alpha = image[..., 3:]
        return image[..., :3] * alpha + np.asarray(self.background, np.float32) * (1 - alpha)

    def values(self, view: int) -> np.ndarray:
        """Channels (height, width, channel) float32 of one view without alpha, on the background where they have it;
        NaN where unknown. Of colours as `rgb`.

        Example:
            >>> camera = Camera.look_at((0, -4, 0), width=8, height=8)
            >>> Views([camera], np.full((1, 8, 8, 1), 21.5), channels=["thermal"]).values(0)[0, 0].tolist()
            [21.5]
        """
        if not self.channels:
            return self.rgb(view)
        image = self.image(view)
        if not self.has_alpha:
            return image
        alpha = image[..., -1:]
        return image[..., :-1] * alpha + np.asarray(self.background, np.float32) * (1 - alpha)

    def require_colours(self) -> None:
        """RaymarchError where the images are of channels, not of colours."""
        if self.channels:
            raise RaymarchError(
                f"the views have the channels {', '.join(self.channels)}, want red, green and blue; pass"
                " views.in_colour(), which shows some of them so"
            )

    def in_colour(self, channels: Sequence[str] | None = None) -> Views:
        """Views of colours that show three channels as red, green and blue, or one in grey, over their ranges; black
        where unknown. Themselves if they have colours.

        Args:
            channels: names of three or of one; the first three if not given, or the first of fewer.

        Raises RaymarchError for a channel that there is not, or another count of them.

        Example:
            >>> camera = Camera.look_at((0, -4, 0), width=8, height=8)
            >>> Views([camera], np.zeros((1, 8, 8, 5)), channels=list("abcde")).in_colour(["e"]).image(0).shape
            (8, 8, 3)
        """
        if not self.channels:
            return self
        first = self.shown[: 3 if self.colours > 2 else 1]
        names = CHANNEL_NAMES("channels", first if channels is None else channels)
        if len(names) not in (1, 3):
            raise RaymarchError(f"channels are {len(names)}, want three, for red, green and blue, or one, for grey")
        for name in names:
            if name not in self.shown:
                raise RaymarchError(f"the views have no channel {name}, want some of {', '.join(self.shown)}")
        which = [self.shown.index(name) for name in names]
        ranges, images = self.ranges[which], []
        for image in self.images:
            picture = eight_bit_of(image, which, ranges)
            if self.has_alpha:
                alpha = np.rint(image[..., -1:] * 255).astype(np.uint8)
                picture = np.concatenate([picture, alpha], axis=-1)
            images.append(picture)
        behind = np.clip((np.asarray(self.background)[which] - ranges[:, 0]) / np.ptp(ranges, axis=1), 0, 1)
        colour = tuple(float(one) for one in np.broadcast_to(behind, 3))
        return replace(self, images=gather_images(images), channels=(), background=colour)


def _channels_of(value: object) -> tuple[str, ...]:
    """Names of channels, none of colours; RaymarchError for alpha that is not the last, or alone."""
    if value is None or (isinstance(value, (tuple, list)) and not value):
        return ()
    names: tuple[str, ...] = CHANNEL_NAMES("channels", value)
    if ALPHA in names and (names[-1] != ALPHA or len(names) == 1):
        raise RaymarchError(f"channels are {', '.join(names)}, want alpha the last and not alone; order them so")
    return names


def _names_cure(images: object) -> str | None:
    """What to do with images of more than four numbers a pixel that have no names; None for others."""
    shape: tuple[int, ...] = getattr(images, "shape", ())
    if len(shape) == 4 and shape[3] > 4 and shape[1] not in (3, 4) and getattr(images, "dtype", None) != np.uint8:
        return f"name their {shape[3]} channels, rm.Views(cameras, images, channels=('a', 'b', ..))"
    return None


def _background(value: object, images: Images, channels: Sequence[str]) -> tuple[float, ...]:
    """Background in numbers: a colour's, or one number a channel, as the images' borders have it where not given."""
    if not channels:
        return require_colour(value)  # type: ignore[arg-type]
    names = [name for name in channels if name != ALPHA]
    if value is WHITE or value is None:
        return tuple(border_medians(images, len(names)).tolist())
    return background_of_channels(names, value)


def _require_one_size(camera: Camera, name: str, image: np.ndarray, mask: np.ndarray | None) -> None:
    """Size check of a view: RaymarchError where camera, image and mask differ."""
    height, width = image.shape[:2]
    if (camera.height, camera.width) != (height, width):
        cure = "resize one of them"
        if (camera.width, camera.height) == (height, width):
            cure += f"; an array's shape is (height, width): did you mean width={width}, height={height}?"
        raise RaymarchError(
            f"view {name}: image is {width} x {height} but its camera {camera.width} x {camera.height}; {cure}"
        )
    if mask is not None and mask.shape != (height, width):
        cure = "pass its transpose, mask.T" if mask.T.shape == (height, width) else "resize one of them"
        raise RaymarchError(
            f"view {name}: mask is {mask.shape[1]} x {mask.shape[0]} but its image {width} x {height}; {cure}"
        )


def _bounds(value: object, names: Sequence[str]) -> np.ndarray | None:
    """Near and far planes as they are kept; RaymarchError unless each view has its own, the near one nearer."""
    bounds: np.ndarray | None = PLANES("bounds", value)
    if bounds is None:
        return None
    if len(bounds) != len(names):
        raise RaymarchError(f"{len(bounds)} bounds of {len(names)} views; want near and far for each")
    for name, (near, far) in zip(names, bounds, strict=True):
        if not near < far:
            raise RaymarchError(f"view {name}: bounds are {near:g}, {far:g}, want near under far; give them in order")
    return bounds


def _views_cure(value: object) -> str:
    if isinstance(value, (str, PathLike)):
        return (
            f"rm.load_views({str(value)!r}) reads them" if len(str(value)) < 100 else "rm.load_views(path) reads them"
        )
    return ""


VIEWS = with_cure(instance_of(Views, "Views, as rm.load_views gives"), _views_cure)


def _of_colours(value: object) -> Views:
    views: Views = VIEWS.read(value)
    if views.channels:
        raise Wrong(f"has the channels {', '.join(views.channels)}", "pass it.in_colour(), which shows some of them so")
    return views


COLOUR_VIEWS = replace(VIEWS, wanted="Views of red, green and blue", read=_of_colours)
SHOWN_VIEWS = replace(VIEWS, read=lambda value: VIEWS.read(value).in_colour())  # whatever their channels are


def _several(value: Iterable[Camera]) -> tuple[Camera, ...]:
    cameras = (value,) if isinstance(value, Camera) else tuple(value.cameras if isinstance(value, Views) else value)
    if not cameras or not all(isinstance(camera, Camera) for camera in cameras):
        raise ValueError
    return cameras


CAMERAS = Check("Views, a Camera or a list with at least one", _several)


MAX_THUMBNAILS, THUMBNAIL_SIDE = 8, 96  # of a card's contact sheet, and pixels of each
MASKED_GREY = np.array([128, 128, 128], np.uint8)


def views_card(views: Views) -> str:
    """HTML of views for a notebook: a contact sheet, sizes, masks, where they come from and what they are of."""
    told, views = views, views.in_colour()
    count, places = len(views), np.stack([camera.position for camera in views.cameras])
    masked = 0 if views.masks is None else sum(mask is not None for mask in views.masks)
    rows = [
        ("images", f"{count} {'RGBA' if views.has_alpha else 'RGB'} of {views.size_in_words()} pixels"),
        ("channels", ", ".join(told.channels) or None),
        ("source", views.source),
        ("masks", masked or None),
        ("background", numbers_text(views.background, 3) if views.has_alpha else None),
        ("cameras from", f"{numbers_text(places.min(0))} to {numbers_text(places.max(0))} world units"),
        ("lenses", ", ".join(sorted({camera.lens.model for camera in views.cameras}))),
        ("box", None if views.box is None else f"{numbers_text(views.box[0])} to {numbers_text(views.box[1])}"),
        ("sparse points", None if views.points is None else f"{len(views.points):,}"),
        ("depth images", None if views.depths is None else sum(depth is not None for depth in views.depths)),
        ("near to far", None if views.bounds is None else numbers_text([views.bounds.min(), views.bounds.max()])),
        ("downscale", None if views.downscale == 1 else f"{views.downscale:g}"),
        ("holdout", views.holdout),
        ("origin", None if views.origin is None else f"{numbers_text(views.origin, 12)} of the set"),
    ]
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_THUMBNAILS)).astype(int))
    return card_html("Views", rows, [_thumbnail(views, int(i)) for i in chosen])


def _thumbnail(views: Views, view: int) -> str:
    """Picture of one view on the background, grey where a mask takes it out."""
    small = thumbnail(views.images[view], THUMBNAIL_SIDE)
    colours = small[..., :3].astype(float)
    if small.shape[2] == 4:
        alpha = small[..., 3:] / 255.0
        colours = colours * alpha + 255 * np.asarray(views.background) * (1 - alpha)
    mask = None if views.masks is None else views.masks[view]
    if mask is not None:
        colours = np.where(thumbnail(mask, THUMBNAIL_SIDE)[..., None], colours, MASKED_GREY)
    return figure(np.rint(colours).astype(np.uint8), views.names[view])
