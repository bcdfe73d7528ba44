"""Integrand: what an image makes of the samples of a ray, its adjoint and its tangent side by side, as a record."""

from collections.abc import Callable
from typing import Any

from raymarch.engine import ti
from raymarch.engine.record import record

KEPT_NUMBERS = 4  # of a ray's state


@record()
class Integrand:
    """Integrand: `@ti.func`s of a `Scene`, a ray, a sample `at` and a state, which they change.

    Attributes:
        name: for messages and reports.
        start: (scene, ray) -> state before the first sample.
        value: (scene, ray, at, state): the state goes on behind the sample.
        goes_on: (scene, ray, state) -> whether another sample can matter.
        finish: (scene, ray, state): what is seen goes to the rays' fields.
        start_pull: (scene, ray) -> what a pull carries beside the state, made of the gradient of what is seen.
        pull: (scene, ray, at, state, back, slot, d): adds to d.x, d.width, d.t, d.p, d.view and d.frame, the gradients
            by raw density, width, distance, place, heading and frame; where the scene is by the volume, to the slot
            what other samples and the table have of it; state and back go on.
        start_push: (scene, ray) -> tangents of the state, by column.
        push: (scene, ray, seg, at, by, dot_x, state, dot, total): `loops.move_of` makes the tangents of a column of the
            last arguments; state and dot go on.
        finish_push: (scene, ray, state, dot): tangents of what is seen go to `scene.out`.
        sloped: whether the value itself reads the slope of the raw density.
        quantity: what is composited, of an integrand that is a mean by the mode's rule.
        ahead: integrand that finds what light behind a sample is worth, for modes that look ahead.
        pause: (scene, state) -> up to `KEPT_NUMBERS` numbers that are the state, while a ray waits for the next part of
            a volume that is on the device a part at a time (`parts`); None where it cannot wait.
        resume: (scene, numbers) -> that state again.
    """

    name: str
    start: Callable
    value: Callable
    goes_on: Callable
    finish: Callable
    start_pull: Callable | None = None
    pull: Callable | None = None
    start_push: Callable | None = None
    push: Callable | None = None
    finish_push: Callable | None = None
    sloped: bool = False
    quantity: Any = None
    ahead: "Integrand | None" = None
    pause: Callable | None = None
    resume: Callable | None = None


@ti.func
def always(scene: ti.template(), ray: ti.template(), state: ti.template()):
    """True: every sample counts."""
    return True
