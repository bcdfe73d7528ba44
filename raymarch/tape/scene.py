"""Scene parameters as Taichi fields with gradients, for programs of one's own around a `ti.ad.Tape`."""

from __future__ import annotations

import weakref

import numpy as np

from raymarch import engine, runtime
from raymarch.arguments.checks import instance_of
from raymarch.arguments.declared import checked
from raymarch.device.pool import Owner
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.errors import RaymarchError
from raymarch.geometry.lens import MODELS
from raymarch.geometry.pose import right_jacobian
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import SHAPES, Parameters
from raymarch.kernels.rays import ray_arrays

MAX_LENS_NUMBERS = max(len(model.names) for model in MODELS.values())
# of one size for all lenses: the first of its numbers are the lens's own
PARAMETER_SHAPES = {**SHAPES, "lens": (MAX_LENS_NUMBERS,)}


@record(eq=False)
class SceneFields:
    """Device fields of a `Scene`, each with its `grad`; shapes and units as in `Parameters`, zero for what stays."""

    background: ti.Field
    pose: ti.Field
    focal: ti.Field
    principal_point: ti.Field
    exposure: ti.Field
    step: ti.Field
    box: ti.Field
    lens: ti.Field
    image: ti.Field


class Scene(Owner[SceneFields]):
    """Differentiable scene: what shapes a `Linearised`'s image beside the volume's own numbers, as Taichi fields.

    `background`, `pose`, `focal`, `principal_point`, `exposure`, `step`, `box` and `lens` are fields of numbers,
    zero at first, that kernels and Python may write; they are added to what the `Linearised` was made with (a pose is
    multiplied by the exponential of its six). `lens` has eight, the first of them the camera's lens's own. Inside a
    `ti.ad.Tape`, `render` makes the image, exposure included, in `image`, and carries the gradient of what follows to
    all eight fields and to the volume's own numbers, which `gradient_of_volume` gives. A surface's `iso` and a transfer
    function's `table` are no fields here: `Linearised` has their gradients. A Tape has one `render` of a scene, of one
    camera: several views are several Tapes, whose gradients add up, or scenes.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.volumes.volume import Volume
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> with Linearised(ball, Camera.look_at((0, -4, 0), width=8, height=8)) as seen, Scene(seen) as scene:
        ...     scene.render()
        ...     scene.image.shape  # of (red, green, blue, T)
        (64,)
    """

    name = "this scene"

    @checked(seen=instance_of(Linearised, "a Linearised"))
    def __init__(self, seen: Linearised):
        if not seen.alone:
            raise RaymarchError("seen is of a list of volumes, want a Linearised of one volume; make it of one")
        self.seen = seen
        count = seen.buffer.capacity  # as many rays as it may ever look along
        if not self._own((count,), lambda room: self._build(count), lambda room: 8 * 2 * (40 + 4 * count)):
            for name in (*PARAMETER_SHAPES, "image"):
                getattr(self.fields, name).fill(0)
                getattr(self.fields, name).grad.fill(0)
        self._gradient = Parameters()
        self._tape: weakref.ref | None = None  # of the last render

    @staticmethod
    def _build(count: int) -> tuple[ti.FieldsBuilder, SceneFields]:
        fields = {name: ti.field(float, needs_grad=True) for name in PARAMETER_SHAPES}
        f = SceneFields(**fields, image=ti.Vector.field(4, float, needs_grad=True))
        tree = ti.FieldsBuilder()
        for name, shape in PARAMETER_SHAPES.items():
            for field in (getattr(f, name), getattr(f, name).grad):
                (tree.dense(ti.axes(*range(len(shape))), shape) if shape else tree).place(field)
        for field in (f.image, f.image.grad):
            tree.dense(ti.i, count).place(field)
        return tree, f

    def __getattr__(self, name: str) -> ti.Field:
        if name in PARAMETER_SHAPES:
            return getattr(self.fields, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def image(self) -> ti.Field:
        """Colour after exposure, and T (ray), one 4-vector a pixel, with `grad`."""
        return self.fields.image

    def _moves(self) -> Parameters:
        moves = {name: getattr(self.fields, name).to_numpy().astype(float) for name in PARAMETER_SHAPES}
        numbers = len(self.seen.camera.lens.names)
        return Parameters(**{**moves, "lens": moves["lens"][:numbers] if numbers else None})

    @ti.ad.grad_replaced
    def render(self) -> None:
        tape = engine.recording_tape()
        if tape is not None and self._tape is not None and self._tape() is tape:  # whose image would be this one
            raise RaymarchError("this Tape has a render of the scene already, want one; take a Tape for each view")
        self._tape = None if tape is None else weakref.ref(tape)
        self.seen.move(self._moves())
        ray_arrays.vectors_in(np.ascontiguousarray(self.seen.image()), self.image)

    @ti.ad.grad_for(render)
    def _render_adjoint(self) -> None:
        d_image = np.empty((len(self.seen.rays), 4))
        ray_arrays.vectors_out(self.image.grad, d_image)
        moves = self._moves()
        self.seen.move(moves)
        self._gradient = self.seen.adjoint(d_image)
        ray_arrays.vectors_in(np.ascontiguousarray(self.seen.image()), self.image)
        self.image.grad.fill(0)  # what comes before this `render` in a Tape did not make this image
        for name in set(PARAMETER_SHAPES) & set(self.seen.groups):
            gradient = np.asarray(getattr(self._gradient, name))
            if name == "pose":
                gradient = right_jacobian(moves.pose).T @ gradient
            if name == "lens":
                gradient = np.pad(gradient, (0, MAX_LENS_NUMBERS - len(gradient)))
            field = getattr(self.fields, name).grad
            field.from_numpy(np.asarray(field.to_numpy() + gradient, runtime.dtype()))

    # grad_replaced drops a docstring.
    render.__doc__ = """Make the image of the scene as its fields say; inside a Tape, its adjoint follows.

    Raises RaymarchError for a second one in a Tape.
    """

    def gradient_of_volume(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Gradient by raw density and features that the last Tape left; None for what the mode does not see."""
        return np.asarray(self._gradient.density), self._gradient.colour
