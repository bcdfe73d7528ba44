"""Linearised rendering: Jacobian-vector and vector-Jacobian products of one camera's image by all that shapes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.arguments.arrays import Colour, Numbers, array
from raymarch.arguments.checks import optional, whole
from raymarch.arguments.declared import checked
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.gradients.parameters import (
    EXPOSURE,
    NEUTRAL_EXPOSURE,
    Columns,
    Parameters,
    columns_of,
    require_directions,
    require_groups,
)
from raymarch.gradients.viewed_volume import ViewedVolume
from raymarch.kernels.march.passes import passes_of
from raymarch.rendering.march_settings import SINGLE_RAYS, March
from raymarch.volumes.volume import VOLUME, AnyVolume

CHUNK = 12  # columns of a Jacobian that one pass carries
EXACT = March(min_transmittance=0.0, min_weight=0.0)


class Linearised(ViewedVolume):
    """Linearised rendering: image, tangents, adjoints of a volume seen by a camera; owns device memory until `close`.

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

    @checked(volume=VOLUME, camera=CAMERA, exposure=EXPOSURE, march=optional(SINGLE_RAYS), columns=whole(1, 1024))
    def __init__(
        self,
        volume: AnyVolume,
        camera: Camera,
        *,
        background: Colour | None = None,
        exposure: Numbers = NEUTRAL_EXPOSURE,
        march: March | None = None,
        pixels: Numbers | None = None,
        columns: int = CHUNK,
    ):
        super().__init__(volume, camera, background, exposure, EXACT if march is None else march, pixels, columns)
        self.columns = columns

    def tangent(self, dot: Parameters) -> np.ndarray:
        """Jacobian-vector product (d image / d parameters) dot (ray, 4); RaymarchError for one that is not seen."""
        return self.tangents([dot])[..., 0]

    def tangents(self, dots: list[Parameters]) -> np.ndarray:
        """Jacobian-vector products of several directions (ray, 4, direction), as many in one pass as fit a kernel."""
        lens = self.camera.lens
        dots = require_directions(dots, self.volume, lens, self.march.transfer)
        moved = {name for dot in dots for name, value in vars(dot).items() if value is not None}
        require_groups(moved, self.march.rule, lens)
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
        """Vector-Jacobian product (d image / d parameters)' d_image, (ray, 4) by exposed colour and transmittance.

        What the mode does not see is None, and the lens of a pinhole.
        """
        d_image = array(len(self.rays), 4)("d_image", d_image)
        seen, d, v = self._unexposed(), d_image.copy(), self.viewpoint
        d[:, :3] *= v.exposure[:3]
        passes = passes_of(self.march.rule)
        passes.march(self.grid.fields, self.buffer.fields, *self._call(v))
        self.buffer.set_image_gradient(d)
        self.grid.begin_gradient()
        if table := self.march.transfer:
            self.buffer.clear_table_gradient()
        passes.adjoint(self.grid.fields, self.buffer.fields, *self._call(v))
        self.grid.reduce_slots()
        density, colour = self.grid.download_gradient()
        motion = self._passes.ray_tangents(1)
        passes.geometry_adjoint(self.grid.fields, self.buffer.fields, motion.fields, *self._call(v))
        iso, frame = motion.surface_gradients(len(self.rays)) if self.march.rule.shaded else (None, None)
        cut = motion.place_gradients(len(self.rays)) if self.march.clipped else None
        seen_by = v.projection.adjoint(self.rays, *motion.gradients(len(self.rays)), frame, cut)
        return replace(
            seen_by,
            step=seen_by.step if "step" in self.groups else None,
            iso=iso if "iso" in self.groups else None,
            density=density.astype(float),
            colour=colour.astype(float) if "colour" in self.groups else None,
            table=self.buffer.table_gradient(len(table.values)) if table else None,
            background=(seen[:, 3:] * d[:, :3]).sum(0) if "background" in self.groups else None,
            exposure=np.concatenate([(seen[:, :3] * d_image[:, :3]).sum(0), d_image[:, :3].sum(0)]),
        )

    def jacobian(self, parameters: Columns = ("pose",)) -> np.ndarray:
        """Jacobian d image / d parameters (ray, 4, number): of groups all their numbers, of directions one column each.

        `parameters` are names of small groups or `Parameters`, one after the other.
        """
        return self.tangents(columns_of(parameters, self.camera.lens))
