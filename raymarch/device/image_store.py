"""Image set on the device: 8-bit images, masks, poses, lenses, and the list of tiles that rays are drawn from.

A pyramid is the same set made smaller by halves, in one store.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache

import numpy as np

from raymarch import runtime
from raymarch.device.grid_layout import set_numbers
from raymarch.device.memory import require_images
from raymarch.device.pool import Holder, Owner
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera, border_points
from raymarch.geometry.lens import Lens
from raymarch.geometry.lens_distortion import ANGLES, distortion_slopes
from raymarch.kernels.field import copies
from raymarch.kernels.fit.choice import PLACES_A_TILE, UNDRAWN_ERROR, choose_tiles
from raymarch.kernels.fit.losses import UNKNOWN
from raymarch.kernels.rays.lens import LENS_VECTOR
from raymarch.kernels.rays.tile_list import TILES_A_RUN
from raymarch.views.resize import downscale_views
from raymarch.views.views import Views

NONE = 10 * UNKNOWN  # in place of a channel that a view does not have
TILE_SIDE = 4  # pixels a side; the pixels of a tile that count are the bits of 16
ROOM_STEP = 4096  # pixels, views and tiles that the room of a small store is rounded up to
BYTES_A_TILE = 15  # of the list, what each tile is, and its last error
BYTES_A_DRAWN_TILE = 12  # of each of a step's, its error in it, and those they are chosen from
BYTES_A_VIEW = 160
MAX_CORNER_FACTOR = 1.25  # of the image's corners: from there on it does not matter where points go


def lens_vector(camera: Camera) -> np.ndarray:
    """Lens vector (16,) of a camera: what `kernels/rays/lens` takes for every model.

    Example:
        >>> lens_vector(Camera.look_at((0, -4, 0), width=8, height=6))[2:5].tolist()
        [4.0, 3.0, 0.0]
    """
    return np.array(_numbers(camera.lens, camera.focal, camera.principal, camera.width, camera.height))


@lru_cache(4096)
def _numbers(
    lens: Lens, focal: tuple[float, float], principal: tuple[float, float], width: int, height: int
) -> tuple[float, ...]:
    if lens.plain or lens.special:
        return (*focal, *principal, float(lens.kind), 1e30, max(focal), *lens.numbers)
    a, _ = lens.flattened((border_points(width, height) - principal) / np.array(focal))
    reach = min(lens.reach, MAX_CORNER_FACTOR * float(np.linalg.norm(a, axis=1).max()))
    angle, radii = np.linspace(0, 2 * np.pi, 16, endpoint=False), np.linspace(0, reach, 17)
    some = radii[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    by_point, _ = distortion_slopes(lens.kind, lens.numbers, lens.reach, some.reshape(-1, 2))
    stretch = 1.1 * float(np.linalg.norm(by_point, 2, axis=(1, 2)).max())
    if lens.kind == ANGLES:  # the plane of angles is itself wider than the sphere
        stretch *= reach / max(float(np.sin(reach)), 0.3) if reach < np.pi / 2 else reach / 0.3
    return (*focal, *principal, float(lens.kind), reach, stretch * max(focal), *lens.numbers)


@record(eq=False)
class StoreFields:
    """Device fields of an `ImageStore`; its tiles have `tile` pixels a side, the last of a row or column moved inside.

    `pixels` are those of all views in one run, RGBA in 8 bits; or `of_channels` a float each, 0..1 over their ranges,
    `NONE` where there is no number, alpha the last. `place` is a view's (first pixel, first tile, width, height). Of a
    tile, `view` is the one it belongs to, `counting` has a bit for each pixel, row by row, that no mask takes out, and
    `error` is that of its colour when it was last drawn. `chosen` are the tiles of a step, `chosen_error` what is
    their error in it; `next` is the place in the shuffled epochs that they go on from, in two words, the low one first;
    `at_place` and `hits_of_run` are for those who choose and list. `special` says whether any
    camera is orthographic or a panorama.
    """

    pixels: ti.Field
    place: ti.Field
    pose: ti.Field
    lens: ti.Field
    exposure: ti.Field
    view: ti.Field
    counting: ti.Field
    list: ti.Field
    hit: ti.Field
    hits_of_run: ti.Field
    error: ti.Field
    mean_error: ti.Field
    chosen: ti.Field
    chosen_error: ti.Field
    next: ti.Field
    at_place: ti.Field
    tile: int
    special: bool
    of_channels: bool = False


class ImageStore(Owner[StoreFields]):
    """Image set on the device, freed by `close`; images without alpha are opaque.

    `rays` is how many are drawn at once, where that may be more than there are pixels.

    A pixel that a mask takes out has full alpha: for the visual hull anything may be there.

    Attributes:
        views, tiles: how many there are.
        listed: how many tiles are on the list that is drawn from.
        masked: whether any pixel does not count.
    """

    name = "this image store"

    def __init__(self, views: Views, tile: int = TILE_SIDE, rays: int = 0):
        self._tile = min(tile, min(map(min, views.sizes)))
        self._special = any(camera.lens.special for camera in views.cameras)
        self.views, self._channels = len(views), views.colours if views.channels else None
        self._ranges = views.ranges if views.channels else None
        places, tiles = _layout(views, self._tile)

        def require() -> None:
            what = f"{len(views)} images of {views.size_in_words()}"
            require_images(what, views.pixels, "use fewer or smaller images", stored=self._size_of(room))

        self._drawn = max(rays // self._tile**2, len(tiles))
        room = (views.pixels, len(views), len(tiles), self._drawn)
        kind = self._tile, self._special, self._channels
        self._own(kind, self._build, self._size_of, room=room, step=ROOM_STEP, require=require)
        self._put(views, places, tiles)
        self.go_to(0)

    def put(self, views: Views) -> None:
        """Put the same views in other sizes, none larger, in place of those there; errors, exposures are forgotten."""
        self._put(views, *_layout(views, self._tile))

    def _put(self, views: Views, places: np.ndarray, tiles: np.ndarray) -> None:
        self.tiles, self.masked = len(tiles), views.masks is not None
        for i, image in enumerate(views.images):
            if self._ranges is None:
                copies.image_in(_rgba(image, views.mask(i)), self.fields, int(places[i, 0]))
            else:
                pixels = _scaled_channels(image, views.mask(i), self._ranges)
                copies.channels_in(pixels, self.fields, int(places[i, 0]))
        listed = np.flatnonzero(tiles[:, 1]).astype(np.int32)
        self.listed = len(listed)
        copies.tiles_in(places, tiles, listed, self.fields)
        self.forget_errors()
        self.set_cameras(views.cameras)
        self.set_exposures(np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], (len(views), 1)))

    def _build(self, room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, StoreFields]:
        pixels, views, tiles, drawn = room
        tree = ti.FieldsBuilder()
        f = StoreFields(
            pixels=ti.Vector.field(4, ti.u8) if self._channels is None else ti.Vector.field(1 + self._channels, ti.f32),
            place=ti.Vector.field(4, ti.i32),
            pose=ti.Matrix.field(3, 4, float),
            lens=ti.Vector.field(LENS_VECTOR.n, float),
            exposure=ti.Vector.field(6, float),
            view=ti.field(ti.i32),
            counting=ti.field(ti.u16),
            list=ti.field(ti.i32),
            hit=ti.field(ti.u8),
            hits_of_run=ti.field(ti.i32),
            error=ti.field(float),
            mean_error=ti.field(float),
            chosen=ti.field(ti.i32),
            chosen_error=ti.field(float),
            next=ti.Vector.field(2, ti.i32),  # not i64: Vulkan mixes up 64 and 32 bits of a tree
            at_place=ti.field(ti.i32),
            tile=self._tile,
            special=self._special,
            of_channels=self._channels is not None,
        )
        tree.dense(ti.i, pixels).place(f.pixels)
        tree.dense(ti.i, views).place(f.place, f.pose, f.lens, f.exposure)
        for each in (f.view, f.counting, f.list, f.hit, f.error):
            tree.dense(ti.i, tiles).place(each)
        tree.dense(ti.i, -(-tiles // TILES_A_RUN)).place(f.hits_of_run)
        for each in (f.chosen, f.chosen_error, f.at_place):
            tree.dense(ti.i, drawn).place(each)
        tree.place(f.mean_error, f.next)
        return tree, f

    def _size_of(self, room: tuple[int, ...]) -> int:
        return size_of(room, 4 if self._channels is None else 4 * (1 + self._channels))

    def set_cameras(self, cameras: Sequence[Camera]) -> None:
        """Set the cameras of the views, as many as there are."""
        self._set(self.fields.pose, np.array([camera.world_from_camera[:3] for camera in cameras]))
        self._set(self.fields.lens, np.array([lens_vector(camera) for camera in cameras]))

    @property
    def place(self) -> int:
        """Place in the epochs that the next choice goes on from; to ask waits for the device."""
        low, high = self.fields.next.to_numpy().tolist()
        return (high << 32) | (low & 0xFFFFFFFF)

    def go_to(self, place: int) -> None:
        """Set the place in the epochs that the next choice goes on from."""
        set_numbers(self.fields, next=np.array([place]).view(np.int32))

    def choose(self, tiles: int, seed: int, least: float = 1.0, start: int | None = None) -> None:
        """Choose the tiles of a step, those after the last ones; or, beside these, from place `start` on.

        RaymarchError for more than there is room for: as many as there are, or as were said.
        """
        if tiles > self._drawn:
            raise RaymarchError(f"{tiles} tiles do not fit a store for {self._drawn} at once; make it with more rays")
        # One thread of a CPU looks at those alone that it needs, before others have begun.
        looked = 0 if runtime.runs_on_cpu() else min(PLACES_A_TILE * tiles, self._drawn)
        choose_tiles(self.fields, self.listed, tiles, looked, -1 if start is None else start, seed, least)

    def errors(self) -> tuple[np.ndarray, float]:
        """Last error (tile,) of each tile, and the mean that they are held against."""
        return self.fields.error.to_numpy()[: self.tiles], float(self.fields.mean_error[None])

    def forget_errors(self) -> None:
        """Set all tiles to what they were before any was drawn."""
        self.set_errors(np.full(self.tiles, UNDRAWN_ERROR), UNDRAWN_ERROR)

    def set_errors(self, errors: np.ndarray, mean: float) -> None:
        """Set what `errors` gives."""
        self._set(self.fields.error, errors)
        self.fields.mean_error[None] = mean

    def set_exposures(self, exposures: np.ndarray) -> None:
        """Set the exposures, gains and offsets (view, 6) of images against what all agree on; tiles come without."""
        self._set(self.fields.exposure, np.asarray(exposures))

    def _set(self, field: ti.Field, values: np.ndarray) -> None:
        """Fill the front of a field that may have more room."""
        room = np.zeros((field.shape[0], *values.shape[1:]), runtime.dtype())
        room[: len(values)] = values
        field.from_numpy(room)


def size_of(room: tuple[int, ...], bytes_a_pixel: int = 4) -> int:
    """Bytes of a store of so many pixels, views, tiles and tiles at once."""
    pixels, views, tiles, drawn = room
    return bytes_a_pixel * pixels + BYTES_A_VIEW * views + BYTES_A_TILE * tiles + BYTES_A_DRAWN_TILE * drawn


def _rgba(image: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """An image as (pixel, 4), opaque where it has no alpha or does not count."""
    height, width, channels = image.shape
    if channels == 3:
        image = np.concatenate([image, np.full_like(image[..., :1], 255)], axis=-1)
    elif mask is not None:
        image = image.copy()
        image[~mask, 3] = 255
    return np.ascontiguousarray(image).reshape(height * width, 4)


def _scaled_channels(image: np.ndarray, mask: np.ndarray | None, ranges: np.ndarray) -> np.ndarray:
    """Channels (pixel, channel + 1) float32 of an image, 0..1 over their ranges (channel, 2), alpha the last; `NONE`
    where it has no number. A pixel that does not count has full alpha."""
    count = len(ranges)
    out = np.ones((*image.shape[:2], count + 1), np.float32)
    low, high = ranges.T
    scaled = (image[..., :count] - low) / (high - low)
    out[..., :count] = np.where(np.isfinite(scaled), scaled, NONE)
    if image.shape[2] > count:
        out[..., count] = image[..., count] if mask is None else np.where(mask, image[..., count], 1)
    return np.ascontiguousarray(out).reshape(-1, count + 1)


def _layout(views: Views, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the views lie (view, 4) and what the tiles are (tile, 2), both int32, as `StoreFields` says."""
    width, height = np.array(views.sizes, np.int64).T
    columns, rows = -(-width // tile), -(-height // tile)
    pixels, tiles = width * height, rows * columns
    places = np.stack([np.cumsum(pixels) - pixels, np.cumsum(tiles) - tiles, width, height], axis=1)
    out = np.empty((int(tiles.sum()), 2), np.int32)
    out[:, 0] = np.repeat(np.arange(len(views)), tiles)
    out[:, 1] = (1 << tile**2) - 1
    for i in range(len(views)):
        if (mask := views.mask(i)) is not None:
            out[places[i, 1] :][: tiles[i], 1] = _bits(mask, tile)
    return places.astype(np.int32), out


def _bits(mask: np.ndarray, tile: int) -> np.ndarray:
    """Bits (tile,) of the pixels that count, of the tiles of one image."""
    height, width = mask.shape
    rows = np.minimum(np.arange(0, height, tile), height - tile)[:, None, None, None] + np.arange(tile)[:, None]
    columns = np.minimum(np.arange(0, width, tile), width - tile)[None, :, None, None] + np.arange(tile)
    return (mask[rows, columns].reshape(-1, tile**2) * (1 << np.arange(tile**2))).sum(-1)


class ImagePyramid(Holder):
    """Image pyramid, freed by `close`; `store` has the images of one size, as they are at first.

    One size at a time: kernels are compiled for each store anew, and a fit goes through the sizes once.

    Example:
        >>> with ImagePyramid(views) as images:  # doctest: +SKIP
        ...     images.use(1).tiles  # of half as many pixels a side
    """

    def __init__(self, views: Views, rays: int = 0):
        self._views, self._halvings = views, 0
        self._exposures: np.ndarray | None = None
        with ExitStack() as owners:
            self.store = owners.enter_context(ImageStore(views, rays=rays))
            self._owners = owners.pop_all()

    def use(self, halvings: int) -> ImageStore:
        """Store with the images halved so many times, from now on, and the exposures that were set last.

        Of images that were not in use before no errors are known, whatever they had when they last were.
        """
        if halvings != self._halvings:
            self._halvings = halvings
            self.store.put(downscale_views(self._views, 2**halvings) if halvings else self._views)
            if self._exposures is not None:
                self.store.set_exposures(self._exposures)
        return self.store

    def set_exposures(self, exposures: np.ndarray) -> None:
        """Set the exposures (view, 6) of the views, whatever size their images have."""
        self._exposures = exposures
        self.store.set_exposures(exposures)
