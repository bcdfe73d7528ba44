"""Viewpoint: camera, background, exposure, step and placement, and how `Parameters` move them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import exp_rigid
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import Parameters
from raymarch.gradients.projection import Projection


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """Viewpoint, a camera before a placed volume: a pose moves by exp of its six numbers, all else by adding.

    Attributes:
        camera: which sees the volume.
        background: colour (3,) behind the volume.
        exposure: (6,) three gains, then three offsets.
        step: length of a step [voxel]. voxel: a voxel's [world unit], whatever the box does.
        world_from_index: (4, 4) affine of the volume.
        pixels: indices of the pixels looked at, all if None.
        ndc_from_world: (4, 4) of a volume in NDC, or None.
        iso: value of the surface that is seen, None of a mode without.
    """

    camera: Camera
    background: np.ndarray
    exposure: np.ndarray
    step: float
    voxel: float
    world_from_index: np.ndarray
    pixels: np.ndarray | None = None
    ndc_from_world: np.ndarray | None = None
    iso: float | None = None

    def moved(self, by: Parameters, h: float = 1.0) -> Viewpoint:
        """Viewpoint moved by h times `by`; a step keeps its length in the world when a box moves."""
        camera, place = self.camera, self.world_from_index
        if by.pose is not None:
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(h * by.pose))
        if by.focal is not None:
            camera = replace(camera, focal=tuple(camera.focal + h * by.focal))
        if by.principal_point is not None:
            camera = replace(camera, principal=tuple(camera.principal + h * by.principal_point))
        if by.lens is not None:
            coefficients = tuple(camera.lens.coefficients + h * by.lens)
            camera = replace(camera, lens=replace(camera.lens, coefficients=coefficients))
        if by.box is not None:
            place = place.copy()
            place[:3] += h * by.box
        background = self.background if by.background is None else self.background + h * by.background
        exposure = self.exposure if by.exposure is None else self.exposure + h * by.exposure
        step = self.step if by.step is None else self.step + h * float(by.step)
        iso = self.iso if by.iso is None or self.iso is None else self.iso + h * float(by.iso)
        moved = replace(self, camera=camera, background=background, exposure=exposure, step=step, iso=iso)
        return replace(moved, world_from_index=place)

    @property
    def dt(self) -> float:
        """Length of a step [world unit]."""
        return self.step * self.voxel

    @cached_property
    def projection(self) -> Projection:
        """Projection of camera and box to rays in index space, to first order."""
        return Projection(self.camera, self.world_from_index, self.voxel, self.ndc_from_world)

    @cached_property
    def rays(self) -> Rays:
        """Rays of the pixels, in the world."""
        return self.camera.rays(self.pixels)

    def exposed(self, image: np.ndarray) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4), of colour before it."""
        out = image.copy()
        out[:, :3] = out[:, :3] * self.exposure[:3] + self.exposure[3:]
        return out
