"""Viewed volume: one on the device as a viewpoint sees it, the image, exposure, and finite shifts of all."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from raymarch import runtime
from raymarch.arguments.arrays import Colour, Numbers
from raymarch.arguments.checks import number
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import EXPOSURE, NEUTRAL_EXPOSURE, Parameters, groups_of, require_directions
from raymarch.gradients.tangent_passes import TangentPasses
from raymarch.gradients.viewpoint import Viewpoint
from raymarch.kernels.field.transfer import one_harmonic
from raymarch.kernels.march.call import MarchCall
from raymarch.kernels.march.passes import passes_of
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import March
from raymarch.rendering.ray_settings import require_seen, set_ray_settings
from raymarch.rendering.visibility import skip_invisible
from raymarch.views.views import require_colour
from raymarch.volumes.volume import Volume


class ViewedVolume(Holder):
    """Viewed volume of a `Linearised`; owns the device memory."""

    block = 4  # of the grid's layout

    def __init__(
        self,
        volume: Volume,
        camera: Camera,
        background: Colour | None,
        exposure: Numbers,
        march: March,
        pixels: Numbers | None,
        columns: int,
    ):
        require_seen(volume, march)
        self.volume, self.march = volume, march
        runtime.start()
        seen = np.array(require_colour(volume.background if background is None else background))
        self._start = self.viewpoint = Viewpoint(
            camera,
            seen,
            np.array(EXPOSURE("exposure", exposure)),
            self.march.step,
            volume.voxel,
            volume.world_from_index,
            pixels,
            volume.ndc_from_world,
            march.iso,
        )
        count = len(self.rays)
        with ExitStack() as owners:
            self.grid = owners.enter_context(grid_for(volume, slots=2, block=self.block))
            self.load()
            self.buffer = owners.enter_context(RayBuffer(count))
            self._passes = owners.enter_context(TangentPasses(volume, self.grid, self.buffer, columns))
            self._set_viewpoint(self.viewpoint)
            self._owners = owners.pop_all()

    @property
    def camera(self) -> Camera:
        """Camera as it stands."""
        return self.viewpoint.camera

    @property
    def rays(self) -> Rays:
        """Rays of the pixels looked at."""
        return self.viewpoint.rays

    @property
    def dtype(self) -> type[np.floating]:
        """Precision that the image is made in, whatever it is given in."""
        return runtime.dtype()

    @property
    def groups(self) -> tuple[str, ...]:
        """Parameter groups that the image depends on."""
        return groups_of(self.march.rule, self.camera.lens)

    def load(self, harmonic: int | None = None) -> None:
        """Upload of the volume, as is done at first; or of one whose colour is a single harmonic."""
        self.grid.upload(self.volume)
        if harmonic is not None:
            one_harmonic(self.grid.fields, *self.volume.shape, harmonic)
        if self.march.min_weight > 0 and not self.march.rule.classifies:  # what is clear now has a slope by the table
            skip_invisible(self.grid, self.volume, self.march)
        self._image: np.ndarray | None = None

    @checked(camera=CAMERA)
    def set_camera(self, camera: Camera, exposure: Numbers = NEUTRAL_EXPOSURE, pixels: Numbers | None = None) -> None:
        """Set another camera and exposure of the same volume, by no more pixels than there were at first.

        Nothing is compiled again. `pixels` are those of the new camera, all if not given.
        """
        count = camera.width * camera.height if pixels is None else len(camera.require_pixels(pixels))
        if count > self.buffer.capacity:
            raise RaymarchError(f"{count} pixels, the first camera had {self.buffer.capacity}; start with the most")
        exposure = np.array(EXPOSURE("exposure", exposure))
        self._start = replace(self._start, camera=camera, exposure=exposure, pixels=pixels)
        self._set_viewpoint(self._start)

    def look(self, camera: Camera, exposure: Numbers = NEUTRAL_EXPOSURE, pixels: Numbers | None = None) -> None:
        """`set_camera`, by the name of version 0.1."""
        warnings.warn("Linearised.look is now called set_camera", FutureWarning, stacklevel=2)
        self.set_camera(camera, exposure, pixels)

    def move(self, by: Parameters) -> None:
        """Move the viewpoint by `by` from where it was made to stand; the volume's own numbers stay."""
        (by,) = require_directions([by], self.volume, self.camera.lens, self.march.transfer)
        self._set_viewpoint(self._start.moved(by))

    def _set_viewpoint(self, viewpoint: Viewpoint) -> None:
        self.viewpoint, self._image = viewpoint, None
        self._put(viewpoint, self.grid)

    def _put(self, viewpoint: Viewpoint, grid: Grid) -> None:
        """Rays, their jitter and the grid's place to the device."""
        grid.set_level(self.volume.shape, viewpoint.world_from_index)
        self.buffer.upload(viewpoint.rays)
        set_ray_settings(self.buffer, grid, self.march, viewpoint.iso)
        if (s := self.march).jittered:
            pixels = np.arange(len(viewpoint.rays)) if viewpoint.pixels is None else np.asarray(viewpoint.pixels)
            jitter_pixels(self.buffer.fields, s.seed, pixels.astype(np.int32), s.jitter, s.step_jitter)

    def _call(self, viewpoint: Viewpoint) -> MarchCall:
        return self.march.call(self.grid, len(viewpoint.rays), viewpoint.background, viewpoint.dt)

    def _unexposed(self) -> np.ndarray:
        """Colour before exposure, and transmittance (ray, 4)."""
        if self._image is None:
            passes_of(self.march.rule).march(self.grid.fields, self.buffer.fields, *self._call(self.viewpoint))
            self._image = self.buffer.image(len(self.rays)).astype(float)
        return self._image

    def image(self) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4)."""
        return self.viewpoint.exposed(self._unexposed())

    def shifted(self, dot: Parameters, h: float) -> np.ndarray:
        """Image (ray, 4) with all moved by h * dot, by the march itself: for finite differences against tangents."""
        (dot,) = require_directions([dot], self.volume, self.camera.lens, self.march.transfer)
        h, grid = number()("h", h), self.grid
        if dot.density is not None or dot.colour is not None:
            grid = self._passes.shifted_grid(dot, h)
        moved = self.viewpoint.moved(dot, h)
        self._put(moved, grid)
        if dot.table is not None and self.march.transfer is not None:
            self.buffer.move_table(self.march.transfer, h * dot.table)
        passes_of(self.march.rule).march(grid.fields, self.buffer.fields, *self._call(moved))
        image = moved.exposed(self.buffer.image(len(self.rays)).astype(float))
        self._put(self.viewpoint, self.grid)
        return image
