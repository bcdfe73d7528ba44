"""Linearised rendering: the image of one camera to first order in all that shapes it, by tangents and adjoints."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from raymarch import runtime
from raymarch.arguments import checked
from raymarch.arrays import array
from raymarch.checks import number, optional, whole
from raymarch.data.views import require_colour
from raymarch.data.volume import VOLUME, Volume
from raymarch.device.grid import Grid
from raymarch.device.owner import Closing
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import (
    EXPOSURE,
    GROUPS,
    NEUTRAL_EXPOSURE,
    Parameters,
    columns_of,
    groups_of,
    require_directions,
    require_groups,
)
from raymarch.gradients.tangent_passes import TangentPasses
from raymarch.gradients.viewpoint import Viewpoint
from raymarch.kernels.field.transfer import clear_gradients, one_harmonic
from raymarch.kernels.march.call import MarchCall
from raymarch.kernels.march.geometry import geometry_adjoint
from raymarch.kernels.march.march import march, march_adjoint
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march import MARCH, March
from raymarch.rendering.visibility import skip_invisible

CHUNK = 12  # columns of a Jacobian that one pass carries
EXACT = March(min_transmittance=0.0, min_weight=0.0)


class Linearised(Closing):
    """Image, tangents and adjoints of a volume seen by a camera; owns device memory until `close`.

    Args:
        volume, camera: what is seen, and from where.
        exposure: three gains and three offsets on the colour.
        march: how rays are sampled; without early ray termination if not given; a `min_weight` skips empty space.
        pixels: indices of the pixels to look at, row by row; all if not given.
        columns: of a Jacobian that one pass carries; fewer compile faster.

    Raises RaymarchError for no pixels or ones that the camera does not have, an exposure that is not six numbers.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> with Linearised(ball, Camera.look_at((0, -4, 0), width=8, height=8)) as seen:
        ...     seen.adjoint(np.ones((64, 4))).pose.shape
        (6,)
    """

    block = 4  # of the grid's layout

    @checked(volume=VOLUME, camera=CAMERA, exposure=EXPOSURE, march=optional(MARCH), columns=whole(1, 1024))
    def __init__(
        self,
        volume: Volume,
        camera: Camera,
        *,
        background=None,
        exposure=NEUTRAL_EXPOSURE,
        march: March | None = None,
        pixels=None,
        columns: int = CHUNK,
    ):
        self.volume, self.march = volume, EXACT if march is None else march
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
        )
        count = len(self.rays)
        with ExitStack() as owners:
            self.grid = owners.enter_context(Grid(volume.shape, volume.degree, slots=2, block=self.block))
            self.load()
            self.buffer = owners.enter_context(RayBuffer(count))
            self._passes = owners.enter_context(TangentPasses(volume, self.grid, self.buffer, columns))
            self._set_viewpoint(self.viewpoint)
            self._owners = owners.pop_all()

    def close(self) -> None:
        """Free the device memory."""
        self._owners.close()

    @property
    def camera(self) -> Camera:
        """The camera as it stands."""
        return self.viewpoint.camera

    @property
    def rays(self) -> Rays:
        """Rays of the pixels looked at."""
        return self.viewpoint.rays

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of parameters that the image depends on."""
        return groups_of(self.march.rule)

    def load(self, harmonic: int | None = None) -> None:
        """Put the volume on the device, as is done at first; or one whose colour is a single harmonic, nothing else."""
        self.grid.upload(self.volume)
        if harmonic is not None:
            one_harmonic(self.grid.fields, *self.volume.shape, harmonic)
        if self.march.min_weight > 0:
            skip_invisible(self.grid, self.volume, self.march.rule)
        self._image: np.ndarray | None = None

    @checked(camera=CAMERA)
    def set_camera(self, camera: Camera, exposure=NEUTRAL_EXPOSURE, pixels=None) -> None:
        """See the same volume from another camera, under another exposure, by no more pixels than there were at first.

        Nothing is compiled again. `pixels` are those of the new camera, all if not given.
        """
        count = camera.width * camera.height if pixels is None else len(camera.require_pixels(pixels))
        if count > self.buffer.capacity:
            raise RaymarchError(f"{count} pixels, the first camera had {self.buffer.capacity}; start with the most")
        exposure = np.array(EXPOSURE("exposure", exposure))
        self._start = replace(self._start, camera=camera, exposure=exposure, pixels=pixels)
        self._set_viewpoint(self._start)

    def look(self, camera: Camera, exposure=NEUTRAL_EXPOSURE, pixels=None) -> None:
        """`set_camera`, by the name of version 0.1."""
        warnings.warn("Linearised.look is now called set_camera", FutureWarning, stacklevel=2)
        self.set_camera(camera, exposure, pixels)

    def move(self, by: Parameters) -> None:
        """Look at everything moved by `by` from where it was made to stand; the volume's own numbers stay."""
        (by,) = require_directions([by], self.volume)
        self._set_viewpoint(self._start.moved(by))

    def _set_viewpoint(self, viewpoint: Viewpoint) -> None:
        self.viewpoint, self._image = viewpoint, None
        self._put(viewpoint, self.grid)

    def _put(self, viewpoint: Viewpoint, grid: Grid) -> None:
        """Rays, their jitter and the grid's place to the device."""
        grid.set_level(self.volume.shape, viewpoint.world_from_index)
        self.buffer.upload(viewpoint.rays)
        if (s := self.march).jittered:
            pixels = np.arange(len(viewpoint.rays)) if viewpoint.pixels is None else np.asarray(viewpoint.pixels)
            jitter_pixels(self.buffer.fields, s.seed, pixels.astype(np.int32), s.jitter, s.step_jitter)

    def _call(self, viewpoint: Viewpoint) -> MarchCall:
        return self.march.call(self.grid, len(viewpoint.rays), viewpoint.background, viewpoint.dt)

    def _unexposed(self) -> np.ndarray:
        """Colour before exposure, and transmittance (ray, 4)."""
        if self._image is None:
            march(self.grid.fields, self.buffer.fields, *self._call(self.viewpoint))
            self._image = self.buffer.image(len(self.rays)).astype(float)
        return self._image

    def image(self) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4)."""
        return self.viewpoint.exposed(self._unexposed())

    def shifted(self, dot: Parameters, h: float) -> np.ndarray:
        """The image (ray, 4) with all moved by h * dot: by the march itself, which tangents are held against."""
        ((dot,), h), grid = (require_directions([dot], self.volume), number()("h", h)), self.grid
        if dot.density is not None or dot.colour is not None:
            grid = self._passes.shifted_grid(dot, h)
        moved = self.viewpoint.moved(dot, h)
        self._put(moved, grid)
        march(grid.fields, self.buffer.fields, *self._call(moved))
        image = moved.exposed(self.buffer.image(len(self.rays)).astype(float))
        self._put(self.viewpoint, self.grid)
        return image

    def tangent(self, dot: Parameters) -> np.ndarray:
        """(d image / d parameters) dot: (ray, 4); RaymarchError for a parameter that the mode does not see."""
        return self.tangents([dot])[..., 0]

    def tangents(self, dots: list[Parameters]) -> np.ndarray:
        """(d image / d parameters) of each direction: (ray, 4, direction), as many in one pass as fit a kernel."""
        dots = require_directions(dots, self.volume)
        require_groups((name for dot in dots for name in GROUPS if getattr(dot, name) is not None), self.march.rule)
        seen, out, v = self._unexposed(), np.zeros((len(self.rays), 4, len(dots))), self.viewpoint
        self._passes.add(out, dots, v, self._call(v))
        for column, dot in enumerate(dots):
            if dot.background is not None:
                out[:, :3, column] += seen[:, 3:] * dot.background
            out[:, :3, column] *= v.exposure[:3]
            if dot.exposure is not None:
                out[:, :3, column] += seen[:, :3] * dot.exposure[:3] + dot.exposure[3:]
        return out

    def adjoint(self, d_image: np.ndarray) -> Parameters:
        """(d image / d parameters)' d_image, for d_image (ray, 4) by colour after exposure and transmittance.

        What the mode does not see is None.
        """
        d_image = array(len(self.rays), 4)("d_image", d_image)
        seen, d, v = self._unexposed(), d_image.copy(), self.viewpoint
        d[:, :3] *= v.exposure[:3]
        march(self.grid.fields, self.buffer.fields, *self._call(v))
        self.buffer.set_image_gradient(d)
        clear_gradients(self.grid.fields)
        march_adjoint(self.grid.fields, self.buffer.fields, *self._call(v))
        self.grid.reduce_slots()
        density, colour = self.grid.download_gradient()
        motion = self._passes.ray_tangents(1)
        geometry_adjoint(self.grid.fields, self.buffer.fields, motion.fields, *self._call(v))
        return replace(
            v.projection.adjoint(self.rays, *motion.gradients(len(self.rays))),
            density=density.astype(float),
            colour=colour.astype(float) if "colour" in self.groups else None,
            background=(seen[:, 3:] * d[:, :3]).sum(0) if "background" in self.groups else None,
            exposure=np.concatenate([(seen[:, :3] * d_image[:, :3]).sum(0), d_image[:, :3].sum(0)]),
        )

    def jacobian(self, parameters=("pose",)) -> np.ndarray:
        """d image / d parameters (ray, 4, number): of groups all their numbers, of directions one column each.

        `parameters` are names of small groups or `Parameters`, one after the other.
        """
        return self.tangents(columns_of(parameters))
