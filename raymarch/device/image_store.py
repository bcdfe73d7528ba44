"""Image set on the device: 8-bit images, poses, lenses, and the list of tiles that rays are drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.data.views import Views
from raymarch.device.lens_vector import lens_vector
from raymarch.device.memory import require_images
from raymarch.device.owner import Owner
from raymarch.geometry.camera import Camera
from raymarch.kernels.field import transfer
from raymarch.kernels.rays.lens import LENS

TILE = 4


@dataclass(frozen=True, eq=False)
class StoreFields:
    """Device fields of an `ImageStore`; `tile` pixels a side, `tiles` of them, the last ones moved inside."""

    pixels: ti.Field
    pose: ti.Field
    lens: ti.Field
    exposure: ti.Field
    list: ti.Field
    hit: ti.Field
    views: int
    width: int
    height: int
    tile: int
    rows: int
    columns: int
    tiles: int


class ImageStore(Owner[StoreFields]):
    """Image set on the device, freed by `close`; images without alpha are opaque."""

    name = "this image store"

    def __init__(self, views: Views, tile: int = TILE):
        count, height, width, channels = views.images.shape
        self._tile = min(tile, width, height)
        size = (count, height, width)

        def require() -> None:
            what = f"{count} images of {width} x {height}"
            require_images(what, math.prod(size), 4 * math.prod(size), "use fewer or smaller images")

        # Its size is a constant of the kernels, so only a store of the same size takes its place.
        self._own((self._tile, *size), self._build, lambda room: 4 * math.prod(room), room=size, require=require)
        f, images = self.fields, views.images
        if channels == 3:
            images = np.concatenate([images, np.full_like(images[..., :1], 255)], axis=-1)
        transfer.images_in(np.ascontiguousarray(images), f)
        self.set_cameras(views.cameras)
        self.set_exposures(np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], (count, 1)))
        f.list.from_numpy(np.arange(f.tiles, dtype=np.int32))
        self.listed = f.tiles

    def _build(self, room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, StoreFields]:
        (count, height, width), tile = room, self._tile
        rows, columns = math.ceil(height / tile), math.ceil(width / tile)
        tree = ti.FieldsBuilder()
        f = StoreFields(
            pixels=ti.Vector.field(4, ti.u8),
            pose=ti.Matrix.field(3, 4, float),
            lens=ti.Vector.field(LENS.n, float),
            exposure=ti.Vector.field(6, float),
            list=ti.field(ti.i32),
            hit=ti.field(ti.u8),
            views=count,
            width=width,
            height=height,
            tile=tile,
            rows=rows,
            columns=columns,
            tiles=count * rows * columns,
        )
        tree.dense(ti.ijk, (count, height, width)).place(f.pixels)
        tree.dense(ti.i, count).place(f.pose, f.lens, f.exposure)
        tree.dense(ti.i, f.tiles).place(f.list)
        tree.dense(ti.i, f.tiles).place(f.hit)
        return tree, f

    def set_cameras(self, cameras: Sequence[Camera]) -> None:
        """Set the cameras of the views, as many as there are."""
        poses = np.array([camera.world_from_camera[:3] for camera in cameras], runtime.dtype())
        lenses = np.array([lens_vector(camera) for camera in cameras], runtime.dtype())
        self.fields.pose.from_numpy(poses)
        self.fields.lens.from_numpy(lenses)

    def set_exposures(self, exposures: np.ndarray) -> None:
        """Set the exposures, gains and offsets (view, 6) of images against what all agree on; tiles come without."""
        self.fields.exposure.from_numpy(np.asarray(exposures, runtime.dtype()))
