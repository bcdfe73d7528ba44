"""Linearised rendering: Jacobian-vector and vector-Jacobian products of one camera's image by all that shapes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Colour, Numbers, array, colour, number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import meet_box
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.lens import PLAIN
from raymarch.geometry.ndc import rays_in_ndc
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import (
    EXPOSURE,
    GEOMETRY,
    NEUTRAL_EXPOSURE,
    Columns,
    Parameters,
    columns_of,
    groups_of,
    require_directions,
    require_groups,
)
from raymarch.gradients.projection import Viewpoint
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.field.copies import one_harmonic, shift_grid
from raymarch.kernels.integrator.kernel import MarchCall
from raymarch.kernels.integrator.passes import passes_of
from raymarch.kernels.modes.together import march_together, march_together_adjoint, march_together_tangent
from raymarch.kernels.rays.camera import jitter_pixels
from raymarch.rendering.march_settings import SINGLE_RAYS, March, require_seen, set_ray_settings, skip_invisible
from raymarch.rendering.renderer import BACKGROUND, SINGLE_MARCHES, VOLUMES, Marches, Members, single_marches_for
from raymarch.views.views import require_colour
from raymarch.volumes.bricks import held_samples
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume

# Tangent passes: many directions carried through the march at once, as columns; owner of the memory they take.


class TangentPasses(Holder):
    """Tangent passes of up to `columns` directions over one grid and its rays; memory is taken when first wanted."""

    def __init__(self, volume: Volume, grid: Grid, buffer: RayBuffer, columns: int):
        self.volume, self.grid, self.buffer, self.columns = volume, grid, buffer, columns
        self._owners = ExitStack()
        self._shifted: Grid | None = None
        self._by_volume: dict[tuple[int, int, bool], VolumeTangents] = {}
        self._by_rays: dict[int, RayTangents] = {}

    def shifted_grid(self, direction: Parameters, h: float) -> Grid:
        """Grid like the first, with density and colour moved by h times a direction, for finite differences."""
        if self._shifted is None:
            self._shifted = self._owners.enter_context(grid_for(self.volume))
            self._shifted.upload(self.volume)
            self._shifted.occupy(self.grid.occupied_cells())  # what the first leaps over, differences do not see either
            self._shifted.measure_occupancy()
        fields = self._loaded([direction]).fields
        shift_grid(self._shifted.fields, self.grid.fields, fields, *self._shifted.shape, h)
        return self._shifted

    def ray_tangents(self, columns: int) -> RayTangents:
        """Ray tangents of so many columns."""
        if columns not in self._by_rays:
            self._by_rays[columns] = self._owners.enter_context(RayTangents(self.buffer.capacity, columns))
        return self._by_rays[columns]

    def add(self, out: np.ndarray, dots: list[Parameters], viewpoint: Viewpoint, call: MarchCall) -> None:
        """Jacobian-vector products by volume and by geometry, added to `out` (ray, 4, direction)."""
        _in_chunks(out, dots, ("density", "colour", "table"), self.columns, lambda some: self._of_volume(some, call))
        _in_chunks(out, dots, GEOMETRY, self.columns, lambda some: self._of_rays(some, viewpoint, call))

    def _loaded(self, dots: list[Parameters]) -> VolumeTangents:
        """The first directions of density and colour on the device, as many as one pass carries."""
        channels = 0 if all(dot.colour is None for dot in dots) else self.volume.channels
        columns = VolumeTangents.columns_for(channels, 1 if len(dots) == 1 else self.columns)
        kind = (channels, columns, all(dot.density is None and dot.colour is None for dot in dots))
        if kind not in self._by_volume:
            self._by_volume[kind] = self._owners.enter_context(
                VolumeTangents(self.volume.shape, *kind, self.volume.bricks)
            )
        self._by_volume[kind].upload(dots[:columns])
        return self._by_volume[kind]

    def _of_volume(self, dots: list[Parameters], call: MarchCall) -> np.ndarray:
        """(ray, column, 4) of the first directions of density and colour, as many as one pass carries."""
        loaded = self._loaded(dots)
        motion = self.ray_tangents(loaded.columns)
        passes_of(call.variant.mode).tangent(
            self.grid.fields, loaded.fields, self.buffer.fields, motion.fields.dot_image, *call
        )
        return motion.dot_image(call.count)[:, : len(dots)].astype(float)

    def _of_rays(self, dots: list[Parameters], viewpoint: Viewpoint, call: MarchCall) -> np.ndarray:
        """(ray, column, 4) of the directions' geometry, all in one pass."""
        motion = self.ray_tangents(1 if len(dots) == 1 else self.columns)
        padded = dots + [Parameters()] * (motion.fields.columns - len(dots))  # one kernel for every count
        moves = [viewpoint.projection.tangent(viewpoint.rays, dot) for dot in padded]
        origin, index_direction, view_direction = (np.stack([move[i] for move in moves], axis=1) for i in range(3))
        motion.upload(origin, index_direction, view_direction, np.array([move[3] for move in moves]))
        if call.variant.mode.shaded:
            boxes = [np.zeros((3, 4)) if dot.box is None else dot.box for dot in padded]
            iso = np.array([0.0 if dot.iso is None else float(dot.iso) for dot in padded])
            motion.upload_surface(iso, np.stack([viewpoint.projection.frame(box)[:3, :3] for box in boxes]))
        if call.variant.clipped:
            moved = [viewpoint.projection.place_tangent(viewpoint.rays, dot)[:2] for dot in padded]
            motion.upload_place(*(np.stack([move[i] for move in moved], axis=1) for i in range(2)))
        passes_of(call.variant.mode).geometry_tangent(self.grid.fields, self.buffer.fields, motion.fields, *call)
        return motion.dot_image(call.count)[:, : len(dots)].astype(float)


def _in_chunks(
    out: np.ndarray,
    dots: list[Parameters],
    names: tuple[str, ...],
    most: int,
    carry: Callable[[list[Parameters]], np.ndarray],
) -> None:
    """Add to `out` what the directions that move some of `names` do, up to `most` columns at a time."""
    there = [i for i, dot in enumerate(dots) if any(getattr(dot, name) is not None for name in names)]
    while there:
        done = carry([dots[i] for i in there[:most]])
        out[..., there[: done.shape[1]]] += done.transpose(0, 2, 1)
        there = there[done.shape[1] :]


# Viewed volume: one on the device as a viewpoint sees it, the image, exposure, and finite shifts of all.


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
        motion = self._passes.ray_tangents(1)
        passes.both_adjoints(self.grid.fields, self.buffer.fields, motion.fields, *self._call(v))
        self.grid.reduce_slots()
        density, colour = self.grid.download_gradient()
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


# Jacobian of one image in one call.


@checked(volume=VOLUME, camera=CAMERA, march=SINGLE_RAYS, background=BACKGROUND, exposure=EXPOSURE)
def jacobian(
    volume: AnyVolume,
    camera: Camera,
    parameters: Columns = ("pose",),
    *,
    march: March = March(),
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
    columns = columns_of(parameters, camera.lens)
    with Linearised(volume, camera, background=background, exposure=exposure, march=march, pixels=pixels) as seen:
        return seen.jacobian(columns)


# Linearised multi-volume rendering: products with the Jacobian of one image by density, colour and table of each.

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


# Linearised rendering of one of several volumes: products with the Jacobian by it alone, the others held.


class LinearisedMember:
    """One of the volumes of a `LinearisedTogether`, as a `Linearised` of it; the background is with the first.

    Owns nothing: what it was made of is closed by who made that.
    """

    def __init__(self, together: LinearisedTogether, place: int):
        self._together, self._place = together, place
        self.volume, self.march = together.members.volumes[place], together.members.marches[place]
        self.camera, self.rays = together.camera, together.rays

    @property
    def groups(self) -> tuple[str, ...]:
        """Parameter groups that the image depends on."""
        unseen = "colour" if self.march.transfer else "table"
        return tuple(name for name in (*OF_VOLUMES, *(() if self._place else ("background",))) if name != unseen)

    def image(self) -> np.ndarray:
        """Colour and transmittance (ray, 4) of all volumes."""
        return self._together.image()

    def adjoint(self, d_image: np.ndarray) -> Parameters:
        """Vector-Jacobian product of d_image (ray, 4)."""
        return self._together.adjoint(d_image)[self._place]

    def tangent(self, dot: Parameters) -> np.ndarray:
        """Jacobian-vector product (ray, 4) of a direction of this volume."""
        return self._together.tangent(self._alone(dot))

    def shifted(self, dot: Parameters, h: float) -> np.ndarray:
        """Image (ray, 4) with this volume moved by h * dot."""
        return self._together.shifted(self._alone(dot), h)

    def _alone(self, dot: Parameters) -> list[Parameters]:
        return [dot if i == self._place else Parameters() for i in range(len(self._together.members.volumes))]


# Part of a volume that the rays of a camera meet most: small enough for a check in double precision.

MOST = 64  # samples a side
RAYS = 1024  # along which the part is looked for
STEPS = 128


def part_met(volume: Volume, camera: Camera, seed: int, clip: Clip | None = None) -> Volume:
    """Crop of a volume, at most `MOST` samples a side, about the place that holds most of what one ray meets.

    Weights are those of emission and absorption on every so many samples of the volume, nearest neighbours, in NumPy. A
    volume that is small already is returned as it is; of one that no ray meets the middle is.

    Example:
        >>> big = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(80, 80, 80))
        >>> part_met(big, Camera.look_at((0, -4, 0)), 0).shape
        (64, 64, 64)
    """
    shape = np.array(volume.box_shape)
    if (shape <= MOST).all():
        return volume
    if volume.boxes > 1:
        return _thinned(volume, -(-int(shape.max()) // (MOST // 2)))
    lower = np.clip(
        np.round(_middle(volume, camera, seed, clip)).astype(int) - MOST // 2, 0, np.maximum(shape - MOST, 0)
    )
    some = [np.arange(start, min(start + MOST, n)) for start, n in zip(lower, shape, strict=True)]
    place = volume.world_from_index.copy()
    place[:3, 3] += place[:3, :3] @ lower
    return replace(volume, samples=Dense(*volume.at(np.ix_(*some))), world_from_index=place)


def _thinned(volume: Volume, stride: int) -> Volume:
    """Volume of every so many samples of each of the nested boxes, as a ray may meet all of them."""
    boxes, shape = volume.boxes, volume.box_shape
    i, j, k = (np.arange(0, n, stride) for n in shape)
    samples = Dense(*volume.at(np.ix_((np.arange(boxes)[:, None] * shape[0] + i).ravel(), j, k)))
    place = volume.world_from_index.copy()
    place[:3, :3] *= stride
    return replace(volume, samples=samples, world_from_index=place)


def _middle(volume: Volume, camera: Camera, seed: int, clip: Clip | None) -> np.ndarray:
    """Index (3,) of the heaviest sample of random rays."""
    last = np.array(volume.shape) - 1.0
    stride = -(-max(volume.shape) // MOST)
    sigma = volume.activation.sigma(volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0])
    total = camera.width * camera.height
    rays = camera.rays(np.random.default_rng(seed).permutation(total)[:RAYS])
    near, far = (0.0, np.inf) if clip is None or volume.ndc_from_world is not None else clip.cut(rays)
    if volume.ndc_from_world is not None:
        rays = rays_in_ndc(volume.ndc_from_world, rays)
    index_from_world = np.linalg.inv(volume.world_from_index)
    o = rays.origin @ index_from_world[:3, :3].T + index_from_world[:3, 3]
    d = rays.direction @ index_from_world[:3, :3].T
    enters, leaves = meet_box(o, d, np.stack([np.zeros(3), last]))
    near, far = np.maximum(enters, near), np.minimum(leaves, far)
    inside = far > near
    if not inside.any():
        return last / 2
    o, d, near, far = o[inside], d[inside], near[inside, None], far[inside, None]
    t = near + (far - near) * (np.arange(STEPS) + 0.5) / STEPS
    p = np.clip(o[:, None] + t[..., None] * d[:, None], 0, last)
    cells = np.minimum(np.round(p / stride).astype(int), np.array(sigma.shape) - 1)
    tau = np.maximum(sigma[tuple(np.moveaxis(cells, -1, 0))], 0) * (far - near) / STEPS
    before = np.cumsum(tau, axis=1) - tau
    weight = np.exp(-before) * -np.expm1(-tau)
    if weight.max() <= 0:
        return last / 2
    return p[np.unravel_index(int(weight.argmax()), weight.shape)]
