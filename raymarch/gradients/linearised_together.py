"""Linearised multi-volume rendering: products with the Jacobian of one image by density, colour and table of each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from raymarch.arguments.arrays import Colour, Numbers, array, colour
from raymarch.arguments.checks import number, optional
from raymarch.arguments.declared import checked
from raymarch.device.owner import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.lens import PLAIN
from raymarch.gradients.parameters import Parameters, require_directions
from raymarch.gradients.tangents import RayTangents
from raymarch.gradients.volume_tangents import VolumeTangents
from raymarch.kernels.march.together import march_together
from raymarch.kernels.march.together_adjoint import march_together_adjoint
from raymarch.kernels.march.together_tangent import march_together_tangent
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.members import Members
from raymarch.rendering.together_settings import SINGLE_MARCHES, VOLUMES, Marches, single_marches_for
from raymarch.volumes.bricks import held_samples
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import Volume

SLOTS = 2
OF_VOLUMES = ("density", "colour", "table")


class LinearisedTogether(Holder):
    """Linearised rendering of several volumes together by one camera; owns device memory until `close`.

    Args:
        volumes, marches: as of `TogetherRenderer`; without early ray termination if no marches are given.
        camera: from where they are seen.
        background: that of the first volume if not given.
        pixels: indices of the pixels to look at, row by row; all if not given.

    Gradients are by density, colour and table of each volume, and by the background. Nothing is leapt over, for what is
    empty has a slope.

    Raises RaymarchError as `TogetherRenderer` does, and for no pixels or ones that the camera does not have.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> with LinearisedTogether([ball, ball], Camera.look_at((0, -4, 0), width=8, height=8)) as seen:
        ...     [one.density.shape for one in seen.adjoint(np.ones((64, 4)))]
        [(16, 16, 16), (16, 16, 16)]
    """

    @checked(volumes=VOLUMES, camera=CAMERA, marches=SINGLE_MARCHES, background=optional(colour))
    def __init__(
        self, volumes: Sequence[Volume], camera: Camera, *, marches: Marches = None, background: Colour | None = None,
        pixels: Numbers | None = None,
    ):  # fmt: skip
        numbers = np.arange(camera.width * camera.height) if pixels is None else camera.require_pixels(pixels)
        self.background = np.array(volumes[0].background if background is None else background)
        self.camera, self.rays = camera, camera.rays(pixels)
        with ExitStack() as owners:
            self.members = owners.enter_context(Members(volumes, single_marches_for(volumes, marches), SLOTS))
            self.buffer = owners.enter_context(RayBuffer(len(self.rays)))
            self._dots: list[VolumeTangents] | None = None
            self._owners = owners.pop_all()
        self.buffer.upload(self.rays)
        if (s := self.members.first).jittered:
            jitter_pixels(self.buffer.fields, s.seed, np.asarray(numbers, np.int32), s.jitter, s.step_jitter)

    def image(self) -> np.ndarray:
        """Colour and transmittance (ray, 4)."""
        march_together(self.members.fields, self.buffer.fields, *self._call(self.background))
        return self.buffer.image(len(self.rays)).astype(float)

    def adjoint(self, d_image: np.ndarray) -> list[Parameters]:
        """Vector-Jacobian product of d_image (ray, 4): gradients by each volume; the background is with the first.

        A volume that a table classifies has no gradient by colour, and another none by a table: they are None.
        """
        d_image = array(len(self.rays), 4)("d_image", d_image)
        seen, members = self.image(), self.members
        self.buffer.set_image_gradient(d_image)
        for grid, settings in zip(members.grids, members.settings, strict=True):
            grid.begin_gradient()
            settings.clear_table_gradient()
        march_together_adjoint(members.fields, self.buffer.fields, *self._call(self.background))
        behind = (seen[:, 3:] * d_image[:, :3]).sum(0)
        out: list[Parameters] = []
        for grid, settings, march in zip(members.grids, members.settings, members.marches, strict=True):
            grid.reduce_slots()
            density, features = grid.download_gradient()
            by = Parameters(density.astype(float), background=None if out else behind)
            if march.transfer is None:
                by = replace(by, colour=features.astype(float))
            else:
                by = replace(by, table=settings.table_gradient(len(march.transfer.values)))
            out.append(by)
        return out

    def tangent(self, dots: Sequence[Parameters]) -> np.ndarray:
        """Jacobian-vector product (ray, 4) of one direction for each volume; the background is with the first.

        RaymarchError for other groups than density, colour, table and background, and those that are not seen.
        """
        given = self._directions(dots)
        motion = self._load(given)
        fields = tuple(dot.fields for dot in self._dots or ())
        march_together_tangent(
            self.members.fields, fields, self.buffer.fields, motion.fields.dot_image, *self._call(self.background)
        )
        out = motion.dot_image(len(self.rays))[:, 0].astype(float)
        if given[0].background is not None:
            out[:, :3] += self.image()[:, 3:] * given[0].background
        return out

    def shifted(self, dots: Sequence[Parameters], h: float) -> np.ndarray:
        """Image (ray, 4) with all moved by h * dots, by the march itself: for finite differences against tangents."""
        given, h, members = self._directions(dots), number()("h", h), self.members
        kept = members.volumes
        members.volumes = [_moved(volume, dot, h) for volume, dot in zip(kept, given, strict=True)]
        try:
            members.load(skip=False)
            for settings, march, dot in zip(members.settings, members.marches, given, strict=True):
                if march.transfer is not None and dot.table is not None:
                    settings.move_table(march.transfer, h * dot.table)
            by = given[0].background
            march_together(
                members.fields, self.buffer.fields, *self._call(self.background + (0 if by is None else h * by))
            )
            return self.buffer.image(len(self.rays)).astype(float)
        finally:
            members.volumes = kept
            members.load(skip=False)

    def _directions(self, dots: Sequence[Parameters]) -> list[Parameters]:
        """One direction for each volume, of what is seen of it; else RaymarchError."""
        members, given = self.members, list(dots) if isinstance(dots, (list, tuple)) else []
        if len(given) != len(members.volumes):
            raise RaymarchError(f"directions are {len(given)}, volumes {len(members.volumes)}; give one for each")
        for i, (dot, volume, march) in enumerate(zip(given, members.volumes, members.marches, strict=True)):
            require_directions([dot], volume, PLAIN, march.transfer)
            unseen = {"colour"} if march.transfer else {"table"}
            known = {*OF_VOLUMES, *(() if i else ("background",))} - unseen
            for name, value in vars(dot).items():
                if value is not None and name not in known:
                    raise RaymarchError(f"directions[{i}] has {name}, want some of {', '.join(sorted(known))}")
        return given

    def _load(self, dots: Sequence[Parameters]) -> RayTangents:
        """Directions on the device, and where their tangents go."""
        if self._dots is None:
            made = [
                VolumeTangents(volume.shape, volume.channels, 1, bricks=volume.bricks)
                for volume in self.members.volumes
            ]
            self._dots = [self._owners.enter_context(each) for each in made]
            self._motion = self._owners.enter_context(RayTangents(self.buffer.capacity, 1))
        for here, dot in zip(self._dots, dots, strict=True):
            here.upload([dot])
        return self._motion

    def _call(self, background: np.ndarray) -> tuple:
        return self.members.call(len(self.rays), background)


def _moved(volume: Volume, dot: Parameters, h: float) -> Volume:
    """Volume with density and colour moved by h times a direction, sparse if it was, then in no other bricks."""
    density, features = volume.density, volume.features
    held = True if volume.bricks is None else held_samples(volume.bricks, volume.shape)
    if dot.density is not None:
        density = density + h * dot.density * held
    if dot.colour is not None:
        features = features + h * dot.colour * np.asarray(held)[..., None]
    moved = replace(volume, samples=Dense(density, features))
    return moved if volume.bricks is None else moved.sparse()
