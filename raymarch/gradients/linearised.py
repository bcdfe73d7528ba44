"""Linearised rendering: Jacobian-vector and vector-Jacobian products of one camera's image by all that shapes it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Colour, Numbers, array, describe_value, number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.rays import Rays
from raymarch.gradients.linear_medium import AnyLinearMedium, LinearVolume, LinearVolumes
from raymarch.gradients.parameters import (
    EXPOSURE,
    NEUTRAL_EXPOSURE,
    OF_CAMERA,
    Columns,
    Direction,
    Parameters,
    columns_of,
    groups_of,
    require_directions,
    require_groups,
    require_groups_of_volume,
)
from raymarch.gradients.projection import Viewpoint
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import (
    MARCHES_OF_SINGLE_RAYS,
    VOLUMES,
    AnyVolumes,
    Marches,
    several,
    single_marches_for,
)
from raymarch.rendering.renderer import BACKGROUND
from raymarch.volumes.channels import background_of_channels
from raymarch.volumes.volume import VOLUME, Volume

MAX_COLUMNS = 12  # columns of a Jacobian that one pass carries, unless asked for

# Parameters, or a list of one for each of several volumes. A union with Any, as the caller knows which.
Gradient: TypeAlias = "Parameters | Any"


class Linearised(Holder):
    """Linearised rendering: image, tangents and adjoint of what a camera sees; owns device memory until `close`.

    Of a volume of n other channels than red, green and blue "4" below is n + 1: the channels, then transmittance.

    Of one volume a direction or a gradient is a `Parameters`. Of a list of volumes it is a list of one for each, where
    background and exposure are with the first; gradients are by density, colour and table of each volume, background
    and exposure.

    Args:
        volume, camera: what is seen, a volume or a list of one to four as of `Renderer`, and from where.
        background: that of the (first) volume if not given.
        exposure: three gains and three offsets on the colour.
        march: how rays are sampled, for each volume or for all; a `min_weight` skips the empty space of one volume. If
            not given, without early ray termination, and several volumes as `Renderer` shows them.
        pixels: indices of the pixels to look at, row by row; all if not given.
        columns: of a Jacobian that one pass carries; fewer compile faster.

    Raises RaymarchError as `Renderer` does, for no pixels or ones that the camera does not have, and for an exposure
    that is not six numbers.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> camera = Camera.look_at((0, -4, 0), width=8, height=8)
        >>> with Linearised(ball, camera) as seen:
        ...     seen.adjoint(np.ones((64, 4))).pose.shape
        (6,)
        >>> with Linearised([ball, ball], camera) as seen:
        ...     [one.density.shape for one in seen.adjoint(np.ones((64, 4)))]
        [(16, 16, 16), (16, 16, 16)]
    """

    block = 4  # of a grid's layout

    @checked(
        volume=VOLUMES,
        camera=CAMERA,
        background=BACKGROUND,
        exposure=EXPOSURE,
        march=optional(MARCHES_OF_SINGLE_RAYS),
        columns=whole(1, 1024),
    )
    def __init__(
        self,
        volume: AnyVolumes,
        camera: Camera,
        *,
        background: Colour | None = None,
        exposure: Numbers = NEUTRAL_EXPOSURE,
        march: Marches = None,
        pixels: Numbers | None = None,
        columns: int = MAX_COLUMNS,
    ):
        volumes, marches = several(volume), single_marches_for(volume, march)
        self.alone, self.columns = isinstance(volume, Volume), columns
        runtime.start()
        first, names = volumes[0], volumes[0].channels
        self._start = self.viewpoint = Viewpoint(
            camera,
            np.array(first.background if background is None else background_of_channels(names, background)),
            _exposure(exposure, len(names)),
            marches[0].step,
            first.voxel,
            first.world_from_index,
            pixels,
            first.ndc_from_world,
            marches[0].iso,
        )
        count = len(self.rays)
        with ExitStack() as owners:
            medium: AnyLinearMedium
            if len(volumes) == 1:
                medium = owners.enter_context(LinearVolume(first, marches[0], columns, self.block))
            else:
                medium = owners.enter_context(LinearVolumes(volumes, marches))
            self.medium, self.volumes, self.volume = medium, volumes, first
            self.buffer = owners.enter_context(RayBuffer(count, channels=medium.channels))
            self._set_viewpoint(self.viewpoint)
            self._owners = owners.pop_all()

    @property
    def march(self) -> March:
        """March of the (first) volume."""
        return self.medium.marches[0]

    @property
    def grid(self) -> Grid:
        """Grid of the (first) volume."""
        return self.medium.grids[0]

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
        return groups_of([march.rule for march in self.medium.marches], self.camera.lens)

    @checked(camera=CAMERA)
    def set_camera(self, camera: Camera, exposure: Numbers = NEUTRAL_EXPOSURE, pixels: Numbers | None = None) -> None:
        """Set another camera and exposure of the same volumes, by no more pixels than there were at first.

        Nothing is compiled again. `pixels` are those of the new camera, all if not given.
        """
        count = camera.width * camera.height if pixels is None else len(camera.require_pixels(pixels))
        if count > self.buffer.capacity:
            raise RaymarchError(f"{count} pixels, the first camera had {self.buffer.capacity}; start with the most")
        exposure = _exposure(exposure, self.volumes[0].colours)
        self._start = replace(self._start, camera=camera, exposure=exposure, pixels=pixels)
        self._set_viewpoint(self._start)

    @checked(volume=VOLUME)
    def set_volume(self, volume: Volume) -> None:
        """Set other numbers of a single volume, on the same samples; nothing is compiled again.

        Raises RaymarchError for several volumes together, and for a volume of another shape, place or degree.

        Example:
            >>> fog = Volume.from_function(lambda p: np.ones(p.shape[:-1]), shape=(4, 4, 4))
            >>> thicker = Volume.from_function(lambda p: 2 * np.ones(p.shape[:-1]), shape=(4, 4, 4))
            >>> with Linearised(fog, Camera.look_at((0, -4, 0), width=1, height=1)) as seen:
            ...     T = seen.image()[0, 3]
            ...     seen.set_volume(thicker)
            ...     bool(np.isclose(seen.image()[0, 3], T**2, rtol=1e-5))
            True
        """
        if not isinstance(self.medium, LinearVolume):
            raise RaymarchError(f"{len(self.volumes)} volumes together keep their numbers; make another Linearised")
        if volume.shape != self.volume.shape or not np.array_equal(
            volume.world_from_index, self.volume.world_from_index
        ):
            raise RaymarchError(
                f"volume has {volume.shape} samples, want {self.volume.shape} at the same places; make another"
                " Linearised"
            )
        before, self.medium.volume = self.volume, volume
        try:
            self.medium.load()
        except RaymarchError:  # of another degree, or bricks that there is no room for
            self.medium.volume = before
            self.medium.load()
            raise
        self.volume, self.volumes = volume, [volume]
        self._set_viewpoint(self.viewpoint)

    def move(self, by: Parameters) -> None:
        """Move the viewpoint by `by` from where it was made to stand; the volumes' own numbers stay.

        Several volumes do not move: RaymarchError for groups that are not of the camera, background and exposure.
        """
        (by,) = self._of_shape([by], 0)
        still = [name for name, value in vars(by).items() if value is not None and name not in OF_CAMERA]
        if len(self.volumes) > 1 and still:
            wanted = f"want some of {', '.join(OF_CAMERA)}"
            raise RaymarchError(f"several volumes together do not move by {still[0]}, {wanted}")
        self._set_viewpoint(self._start.moved(by))

    def _set_viewpoint(self, viewpoint: Viewpoint) -> None:
        self.viewpoint = viewpoint
        self._image: np.ndarray | None = None  # of before exposure, once it is marched
        self.medium.place(viewpoint, self.buffer)

    def show_harmonic(self, harmonic: int | None) -> None:
        """Show the colour of one harmonic alone, of a single volume; all of them again if None."""
        assert isinstance(self.medium, LinearVolume)
        self.medium.load(harmonic)
        self._image = None

    def _march(self) -> None:
        """March, which leaves the image in the buffer."""
        self.medium.passes.march(self.medium.fields, self.buffer.fields, *self.medium.call_of(self.viewpoint))

    def _unexposed(self) -> np.ndarray:
        """Colour before exposure, and transmittance (ray, 4)."""
        if self._image is None:
            self._march()
            self._image = self.buffer.image(len(self.rays)).astype(float)
        return self._image

    def image(self) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4)."""
        return self.viewpoint.exposed(self._unexposed())

    def tangent(self, direction: Direction) -> np.ndarray:
        """Jacobian-vector product (d image / d parameters) direction (ray, 4); RaymarchError for what is not seen."""
        return self.tangents([direction])[..., 0]

    def tangents(self, directions: Sequence[Direction]) -> np.ndarray:
        """Jacobian-vector products of several directions (ray, 4, direction), as many in one pass as fit a kernel."""
        each = self._directions(directions, seen=True)
        seen, v = self._unexposed(), self.viewpoint
        out, (gain, _) = np.zeros((*seen.shape, len(each))), np.split(v.exposure, 2)
        self.medium.add_tangents(out, each, v, self.buffer)
        for column, (dot, *_) in enumerate(each):
            if dot.background is not None:
                out[:, :-1, column] += seen[:, -1:] * dot.background
            out[:, :-1, column] *= gain
            if dot.exposure is not None:
                dot_gain, dot_offset = np.split(dot.exposure, 2)
                out[:, :-1, column] += seen[:, :-1] * dot_gain + dot_offset
        return out

    def adjoint(self, d_image: np.ndarray) -> Gradient:
        """Vector-Jacobian product (d image / d parameters)' d_image, (ray, 4) by exposed colour and transmittance.

        What a march does not see is None, and the lens of a pinhole.
        """
        d_image = array(len(self.rays), 1 + self.volumes[0].colours)("d_image", d_image)
        seen, d, v = self._unexposed(), d_image.copy(), self.viewpoint
        d[:, :-1] *= np.split(v.exposure, 2)[0]
        self._march()
        self.buffer.set_image_gradient(d)
        first, *others = self.medium.gradients(v, self.buffer)
        first = replace(
            first,
            background=(seen[:, -1:] * d[:, :-1]).sum(0) if "background" in self.groups else None,
            exposure=np.concatenate([(seen[:, :-1] * d_image[:, :-1]).sum(0), d_image[:, :-1].sum(0)]),
        )
        return first if self.alone else [first, *others]

    def jacobian(self, parameters: Columns = ("pose",)) -> np.ndarray:
        """Jacobian d image / d parameters (ray, 4, number): of groups all their numbers, of directions one column each.

        `parameters` are names of small groups or directions, one after the other.
        """
        return self.tangents(
            [self._of_first(one) for one in columns_of(parameters, self.camera.lens, self.volumes[0].colours)]
        )

    def shifted(self, direction: Direction, h: float) -> np.ndarray:
        """Image (ray, 4) with all moved by h times a direction, by the march itself: for finite differences."""
        (dots,), h = self._directions([direction]), number()("h", h)
        moved = self.viewpoint.moved(dots[0], h)
        return moved.exposed(self.medium.shifted(dots, h, self.viewpoint, moved, self.buffer))

    def of_volume(self, i: int, dot: Parameters) -> Direction:
        """Direction by the numbers of volume `i`; the others stay."""
        return dot if self.alone else [dot if i == k else Parameters() for k in range(len(self.volumes))]

    def _of_first(self, direction: Direction) -> Direction:
        """A direction as it is; that of a small group, which is with the first volume."""
        return self.of_volume(0, direction) if isinstance(direction, Parameters) else direction

    def _directions(self, directions: Sequence[Direction], seen: bool = False) -> list[list[Parameters]]:
        """Directions as lists of one `Parameters` for each volume; RaymarchError for what is none, or is not `seen`."""
        if self.alone:
            each = [[dot] for dot in self._of_shape(directions, 0)]
        elif isinstance(directions, (list, tuple)):
            each = [list(dots) if isinstance(dots, (list, tuple)) else [] for dots in directions]
        else:
            raise RaymarchError(
                f"directions are {describe_value(directions)}, want a list of lists of one for each volume"
            )
        for dots in each:
            if len(dots) != len(self.volumes):
                raise RaymarchError(f"directions are {len(dots)}, volumes {len(self.volumes)}; give one for each")
            for i, dot in enumerate(dots):
                if not self.alone:
                    self._of_shape([dot], i)
                rule = self.medium.marches[i].rule
                names = [name for name, value in vars(dot).items() if value is not None]
                if len(self.volumes) > 1:
                    require_groups_of_volume(names, i, rule)
                elif seen:
                    require_groups(names, [rule], self.camera.lens)
        return each

    def _of_shape(self, dots: Any, i: int) -> list[Parameters]:
        """Directions of finite numbers in the shapes of volume `i`; else RaymarchError."""
        return require_directions(dots, self.volumes[i], self.camera.lens, self.medium.marches[i].transfer)


def _exposure(exposure: Numbers, colours: int) -> np.ndarray:
    """Gains, then offsets, as many as there are channels; RaymarchError for any but the neutral one of channels."""
    numbers = np.array(EXPOSURE("exposure", exposure))
    if colours == 3:
        return numbers
    if (numbers != NEUTRAL_EXPOSURE).any():
        raise RaymarchError("exposure is of colours, the volume has other channels; leave it out")
    return np.repeat([1.0, 0.0], colours)


@checked(volume=VOLUMES, camera=CAMERA, march=MARCHES_OF_SINGLE_RAYS, background=BACKGROUND, exposure=EXPOSURE)
def jacobian(
    volume: AnyVolumes,
    camera: Camera,
    parameters: Columns = ("pose",),
    *,
    march: March | Sequence[March] = March(),
    background: Colour | None = None,
    exposure: Numbers = NEUTRAL_EXPOSURE,
    pixels: Numbers | None = None,
) -> np.ndarray:
    """Jacobian d image / d parameters by forward mode, all columns in one pass over the rays, a dozen at a time.

    Args:
        volume, camera: what is seen, and from where.
        parameters: names of small groups, "background", "pose", "focal", "principal_point", "exposure", "step", "box",
            "lens", of each of which every number is a column; and `Parameters`, directions of whatever they hold, the
            volume's own numbers included, each of which is a column. Units as in `Parameters`.
        march: how rays are sampled.
        background, exposure: as in `Linearised`.
        pixels: indices of the pixels to look at, row by row; all if not given.

    Returns (pixel, 4, column): red, green, blue after exposure, and transmittance.

    Raises RaymarchError for a parameter that does not exist or that the mode of `march` does not see.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> jacobian(ball, Camera.look_at((0, -4, 0), width=8, height=8), ["pose", "focal"]).shape
        (64, 4, 8)
    """
    columns = columns_of(parameters, camera.lens, several(volume)[0].colours)
    with Linearised(volume, camera, background=background, exposure=exposure, march=march, pixels=pixels) as seen:
        return seen.jacobian(columns)
