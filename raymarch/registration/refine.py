"""Camera refinement (bundle adjustment) with a volume: poses, what the lenses share, exposures of an image set.

A fit runs, and every few steps all cameras move at once by a Gauss-Newton step against the volume as it stands,
which is coarse at first and so draws them from afar. A volume that is coarse at last as well moves cameras by a tenth
of a degree and more, from the right poses too: it must be nearly as fine as the images. World and scale are free in
this (the volume moves along), so at the end the cameras are put back over those they started as by one similarity.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from raymarch.arguments.checks import Numbers, callback, optional, some_of
from raymarch.arguments.declared import checked
from raymarch.device.image_store import ImageStore
from raymarch.device.pool import Closing
from raymarch.device.ray_buffer import RayBuffer
from raymarch.device.ray_buffer import size_of as bytes_of_buffer
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.plan.bounds import find_box
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import FIT_SETTINGS, FitSettings, change_settings, preset
from raymarch.geometry.alignment import align_cameras, pose_differences
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.geometry.pose import exp_rigid, twist_about
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import Parameters, units
from raymarch.gradients.projection import Projection, start_at_near
from raymarch.gradients.tangents import RayTangents, bytes_of_tangents
from raymarch.html.card import card_html, html_of
from raymarch.html.picture import curve
from raymarch.kernels.integrator.kernel import MarchCall
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.passes import passes_of
from raymarch.registration.intrinsics import SHARED_PARAMETERS, move_shared, require_common_lens
from raymarch.registration.normal_equations import POSE_NUMBERS, fit_exposures, move_of
from raymarch.registration.pyramid import Pyramid, random_pixels, remove_exposure, remove_exposures, shrink_camera
from raymarch.system.interrupt import catch_first_interrupt
from raymarch.views.contents import is_bounded, require_pixels
from raymarch.views.views import COLOUR_VIEWS, Views, views_card

RAYS_A_MOVE = 1 << 17  # rays that all cameras are moved by at once
# bytes of a smaller image, and of each pixel of the image that is being made smaller
BYTES_A_PIXEL, SHRINKING_BYTES_A_PIXEL = 16, 48
# bytes of the arrays that a move is solved by, at their peak (NumPy's own count)
BYTES_A_RAY, BYTES_A_DIRECTION = 200, 340
BOX_MARGIN = 0.06  # of a box that is found, on each side: the cameras that found it are off


def box_of_refinement(views: Views, settings: FitSettings, box: Numbers | None = None) -> Numbers | None:
    """Box (2, 3) that cameras are refined in: `box`, or else that of an object as it is found, a little wider; None for
    a scene, which has that of its fit.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> box_of_refinement(views, FitSettings(boxes=6)) is None
        True
    """
    if box is not None or settings.ndc or not (settings.boxes == 1 or (settings.boxes is None and is_bounded(views))):
        return box
    with ImageStore(views) as store:
        lower, upper = find_box(Survey(views), store)
    margin = BOX_MARGIN * (upper - lower)
    return np.stack([lower - margin, upper + margin])


def rays_a_view(views: int) -> int:
    """Number of rays of each of so many views in one move of all cameras.

    Example:
        >>> rays_a_view(100)
        1310
    """
    return int(np.clip(RAYS_A_MOVE // views, 64, 4096))


def directions_of(shared: Sequence[str], lens: Lens) -> list[Parameters]:
    """Parameters of a move: those of the pose, and those that all cameras share.

    Example:
        >>> len(directions_of(["focal"], Lens()))
        8
    """
    return [dot for name in ("pose", *shared) for dot in units(name, lens)]


def memory_of_moves(views: Views, samples: int, shared: Sequence[str] = ()) -> dict[str, int]:
    """Bytes that moving the cameras takes beside the fit, by what takes them: its images, as small as suits a volume of
    so many samples a side, and its rays with a tangent for each direction, both on the device and on the host.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=32)
        >>> memory_of_moves(Views([camera], np.zeros((1, 32, 64, 3), np.uint8)), 8)["images of the moves"]
        106496
    """
    factor = Pyramid(views).factor_for(samples)
    small = [(width // factor) * (height // factor) for width, height in views.sizes]
    made = max(width * height for width, height in views.sizes) * SHRINKING_BYTES_A_PIXEL
    rays, dots = rays_a_view(len(views)), len(directions_of(shared, views.cameras[0].lens))
    on_device = bytes_of_buffer((rays * len(views),)) + bytes_of_tangents(rays * len(views), dots)
    solved = min(rays, *small) * len(views) * (BYTES_A_RAY + BYTES_A_DIRECTION * dots)
    return {"images of the moves": sum(small) * BYTES_A_PIXEL + made, "moves": on_device + solved}


log = logging.getLogger(__name__)

REFINABLE = ("pose", *SHARED_PARAMETERS, "exposure")
STEP_VOXELS = 1.0  # voxels, the fit's own
FIRST_MOVE_STEP, MOVE_INTERVAL = 80, 40  # steps before the first move, and between two
MOMENTUM = 0.5  # of the moves: the volume follows the cameras, and so holds back what they err by together
REFINEMENT_SETTINGS = {
    "pyramid": 0.0,
    "thinning": 0.0,
    "cooldown": 0.0,
    "final": 0.1,
    "reopen": 1.0,
    "early": 1.0,
    "beta2": 0.99,
}
MAX_MOVE = 0.03  # a move's radians, and its share of the distance, are cut to this
SIMPLE_FIT_SETTINGS = {"hull": False, "rays": 8192, "least_chance": 1.0, "coarse": 0.0, "decay": 0.0}
DEFAULT_SETTINGS = preset(
    "default", resolution=192, levels=((0, 0.25), (0.1, 0.4), (0.25, 0.65), (0.45, 1)), **SIMPLE_FIT_SETTINGS
)


@dataclass(frozen=True, eq=False)
class Refinement:
    """Result of camera refinement.

    Attributes:
        views: the views with their cameras moved, in the world they were in; fit a volume to these.
        exposures: (view, 6) three gains and three offsets each; taken out of `views`' images where they were sought.
        degrees, share: how far each camera turned [degree], and moved as a share of its distance to the box's centre.
        errors: root mean square of what was left after each move, colours in 0..1.
        interrupted: whether it was ended by Ctrl-C, SIGTERM or SIGHUP.
        seconds: of its steps and moves, without what compiling took.
    """

    views: Views
    exposures: np.ndarray
    degrees: np.ndarray
    share: np.ndarray
    errors: tuple[float, ...]
    interrupted: bool = False
    seconds: float = 0.0

    def _repr_html_(self) -> str | None:
        return html_of(refinement_card, self)


def refinement_card(found: Refinement) -> str:
    """HTML of a refinement for a notebook: how far cameras went, the error after each move, and the views."""
    rows = [
        ("cameras turned", f"{found.degrees.mean():.3g} degrees in the mean, {found.degrees.max():.3g} at most"),
        ("cameras moved", f"{found.share.mean():.2%} of their distance in the mean, {found.share.max():.2%} at most"),
        ("error", f"{found.errors[-1]:.4g} root mean square, colours in 0..1" if found.errors else None),
    ]
    drawn = curve(range(len(found.errors)), found.errors, "error after each move")
    return card_html("Refinement", rows, [drawn]) + views_card(found.views)


@checked(
    views=COLOUR_VIEWS,
    parameters=some_of(*REFINABLE),
    settings=FIT_SETTINGS,
    box=optional(BOX),
    show=optional(callback),
)
def refine(
    views: Views,
    parameters: str | Sequence[str] = ("pose",),
    settings: FitSettings = DEFAULT_SETTINGS,
    *,
    box: Numbers | None = None,
    show: Callable[[float, float], None] | None = None,
) -> Refinement:
    """Bundle adjustment of an image set's cameras together with a volume, from poses a degree or so off.

    Takes some minutes. What it is worth on the tower is in docs/measurements.md: 0.1 dB short of the true cameras.

    Args:
        views: cameras and images; best 20 or more that see the object from all around.
        parameters: what is refined: "pose"; "focal", "principal_point" and "lens", one change for all views, the lens
            of one model; "exposure" (gains and offsets a view, the gains' geometric mean 1 and the offsets' mean 0).
        settings: of the fit, best without `hull`; not asked are `pyramid`, `thinning`, `cooldown`, `final`, `reopen`,
            `early` and `beta2`.
        box: lower and upper corner (2, 3) in the world; found, and that of an object widened a little, if not given.
        show: called with the share that is done, 0..1, and the error.

    Ctrl-C ends it early and keeps the cameras as they stand. Raises RaymarchError for parameters that cannot be
    refined, and where the views cannot be fitted.

    Example:
        >>> better = refine(views, ["pose", "focal"])  # doctest: +SKIP
        >>> volume = fit(better.views).volume  # doctest: +SKIP
    """
    require_refinable(views, parameters, settings)
    box = box_of_refinement(views, settings, box)
    # not both
    settings = change_settings(
        settings, exposure=settings.exposure and "exposure" not in parameters, **REFINEMENT_SETTINGS
    )
    with (
        catch_first_interrupt() as asked,
        Fitter(views, settings, box=box) as fitter,
        _Movement(fitter, parameters) as movement,
    ):
        fitter.clock.prepared()  # once more, as in `fit`
        while fitter.progress < 1 and not asked():
            fitter.step()
            if fitter.steps_done >= FIRST_MOVE_STEP and fitter.steps_done % MOVE_INTERVAL == 0:
                movement.move()
                if show is not None:
                    show(fitter.progress, movement.errors[-1])
        about = fitter.box if box is None else box
        cameras, exposures = align_cameras(movement.cameras, views.cameras, about), movement.exposures
        errors, interrupted, seconds = tuple(movement.errors), asked(), fitter.seconds
    if not errors and not interrupted:
        log.warning("no camera moved, for the time was over before step %d; give more seconds", FIRST_MOVE_STEP)
    images = remove_exposures(views.images, exposures) if "exposure" in parameters else views.images
    moved = replace(views, cameras=cameras, images=images)
    return Refinement(
        moved, exposures, *pose_differences(cameras, views.cameras, np.asarray(about)), errors, interrupted, seconds
    )


def require_refinable(views: Views, parameters: Sequence[str], settings: FitSettings) -> None:
    """Check of a refinement: RaymarchError where no camera of the views would move, or not by these parameters."""
    if settings.steps is not None and settings.steps < FIRST_MOVE_STEP:
        raise RaymarchError(
            f"settings have {settings.steps} steps, want {FIRST_MOVE_STEP} or more, as before no camera moves; "
            f"give steps={FIRST_MOVE_STEP}"
        )
    if settings.transfer is not None:
        raise RaymarchError("settings have a table (mode transfer), through which no camera is refined; leave it out")
    require_pixels(views)
    if "lens" in parameters:
        require_common_lens(views.cameras)


class _Movement(Closing):
    """The current cameras and the solver that moves them; owns device memory until it is closed."""

    def __init__(self, fitter: Fitter, parameters: Sequence[str]):
        self.fitter, self.parameters = fitter, parameters
        self.cameras = list(fitter.views.cameras)
        self.exposures = fitter.photometry.exposures
        self.errors: list[float] = []
        self.each = rays_a_view(len(self.cameras))
        self.pyramid = Pyramid(fitter.views)
        self.shared = [name for name in SHARED_PARAMETERS if name in parameters]
        self.dots = directions_of(self.shared, self.cameras[0].lens)
        self.centre = np.mean(fitter.box, axis=0)
        self.last = np.zeros(POSE_NUMBERS * len(self.cameras) + len(self.dots) - POSE_NUMBERS)
        with ExitStack() as owners:
            self.buffer = owners.enter_context(RayBuffer(self.each * len(self.cameras)))
            self.motion = owners.enter_context(RayTangents(self.buffer.capacity, len(self.dots)))
            self._owners = owners.pop_all()

    def close(self) -> None:
        """Free the device memory."""
        self._owners.close()

    def _drawn(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Downsampling factor, random pixels (view, ray), and their target colours (view, ray, 4), T last."""
        factor = self.pyramid.factor_for(round(self.fitter.grid.max_index.max()) + 1)
        images = self.pyramid.images(factor)
        rng = np.random.default_rng((self.fitter.settings.seed, self.fitter.steps_done))
        count = min(self.each, min(map(len, images)))
        pixels = np.stack([random_pixels(image, count, rng) for image in images])
        target = np.stack([image[some] for image, some in zip(images, pixels, strict=True)]).astype(float)
        if self.fitter.settings.exposure:
            self.exposures = self.fitter.photometry.exposures
        return factor, pixels, remove_exposure(target, self.exposures, self.fitter.views.background)

    def move(self) -> None:
        """One Gauss-Newton step of all cameras at once, and a least-squares fit of the exposures."""
        factor, pixels, target = self._drawn()
        rays, moves = self._rays(factor, pixels)
        fitter, count = self.fitter, len(rays)
        grid, s = fitter.grid, fitter.settings
        self.buffer.upload(rays)
        origin, index_direction, view_direction = (np.stack([move[i] for move in moves], axis=1) for i in range(3))
        self.motion.upload(origin, index_direction, view_direction, np.zeros(len(self.dots)))
        background = fitter.photometry.behind
        call = MarchCall(grid.variant, count, STEP_VOXELS * grid.voxel, s.min_transmittance, s.min_weight, background)
        march(grid.fields, self.buffer.fields, *call)
        image = self.buffer.image(count).astype(float).reshape(target.shape)
        passes_of(grid.variant.mode).geometry_tangent(grid.fields, self.buffer.fields, self.motion.fields, *call)
        slopes = self.motion.dot_image(count).astype(float).reshape(*pixels.shape, len(self.dots), 4)
        if "pose" not in self.parameters:
            slopes[:, :, :POSE_NUMBERS] = 0  # what is shared is not to lean on what will not move
        weight = np.array([1, 1, 1, np.sqrt(fitter.objective.opacity_weight * fitter.views.shows_silhouettes)])
        residual = (image - target) * weight
        self.errors.append(float(np.sqrt(np.nanmean(residual[..., :3] ** 2))))
        self._step(residual, slopes * weight)
        if "exposure" in self.parameters:
            self.exposures = fit_exposures(image, target, self.exposures)
            fitter.store.set_exposures(self.exposures)
        fitter.store.set_cameras(self.cameras)

    def _rays(self, factor: int, pixels: np.ndarray) -> tuple[Rays, list]:
        """The rays of all drawn pixels, view after view, and the tangents of their geometry along each direction."""
        grid, parts = self.fitter.grid, []
        for camera, some in zip(self.cameras, pixels, strict=True):
            camera = shrink_camera(camera, factor)
            lies = camera, grid.world_from_index, 1.0, grid.ndc_from_world
            projection, rays = Projection(*lies), camera.rays(some)
            parts.append((rays, [projection.tangent(rays, self._scaled(camera, dot)) for dot in self.dots]))
        rays = Rays(*(np.concatenate([getattr(r, name) for r, _ in parts]) for name in ("origin", "direction")))
        moves = [[np.concatenate([moved[d][i] for _, moved in parts]) for i in range(3)] for d in range(len(self.dots))]
        return start_at_near(self.fitter.plan.near, rays, moves)

    def _scaled(self, camera: Camera, dot: Parameters) -> Parameters:
        """A direction in numbers that act alike and apart: parts of the distance, radians, parts of the focal length,
        and the lens's own.

        The camera turns about the object's centre: about its own, a turn would look much like a shift, and damping
        would keep the two from being told apart.
        """
        if dot.pose is not None:
            return Parameters(pose=twist_about(camera.world_from_camera, self.centre) @ dot.pose)
        if dot.lens is not None:
            return dot
        (name,) = (name for name in ("focal", "principal_point") if getattr(dot, name) is not None)
        return Parameters(**{name: getattr(dot, name) * np.array(camera.focal)})

    def _step(self, residual: np.ndarray, slopes: np.ndarray) -> None:
        """Solve for six numbers a camera and what they share, and move them."""
        move = self.last = move_of(residual, slopes) + MOMENTUM * self.last
        poses, common = np.split(move, [POSE_NUMBERS * len(self.cameras)])
        common = np.clip(common, -MAX_MOVE, MAX_MOVE)
        for v, (camera, twist) in enumerate(zip(self.cameras, poses.reshape(-1, POSE_NUMBERS), strict=True)):
            twist = twist * min(1, MAX_MOVE / max(np.abs(twist).max(), 1e-30))
            turned = (
                self._scaled(camera, Parameters(pose=twist)).pose
                if "pose" in self.parameters
                else np.zeros(POSE_NUMBERS)
            )
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(turned))
            self.cameras[v] = move_shared(camera, self.shared, common)
