"""Maximum and minimum intensity: the largest or smallest value among a ray's samples, in each channel.

Samples are the march's, midpoints of steps. It is raw numbers that are compared, which activations do not put into
another order; of equals the first along the ray wins. Gradients are those of the sample that wins. T is 0 where a ray
has samples; a ray that has none is 0 in all channels, with T 1.
"""

from dataclasses import dataclass

from raymarch.engine import ti
from raymarch.engine.record import replace
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather
from raymarch.kernels.integrator.colour import image_of
from raymarch.kernels.integrator.composited import Quantity
from raymarch.kernels.integrator.distance import write_depth
from raymarch.kernels.integrator.found import FOUND
from raymarch.kernels.integrator.integrand import Integrand, always
from raymarch.kernels.integrator.loops import at_step, close_ends, leave_segment, open_ends
from raymarch.kernels.integrator.mode import InParts, Mode
from raymarch.kernels.integrator.sample import (
    LONG_GROUP_SAMPLES,
    NO_PLACE,
    find_steps,
    has_lanes,
    locate,
    read_densities,
)
from raymarch.kernels.integrator.scene import segment_of
from raymarch.kernels.rays import cells
from raymarch.kernels.rays.cells import first_sample
from raymarch.kernels.rays.rays import box_of, jitter_of, place_of, scale_of, step_at, steps_of


@dataclass(frozen=True)
class Extremum(Mode):
    """Extremum of the value along a ray: of `sign` times it the largest."""

    sign: float = 1.0


def samples_at_once(grid) -> int:
    """Samples that are looked at together."""
    return LONG_GROUP_SAMPLES if has_lanes(grid, grid.density) else 1


@ti.func
def winner_along(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, dt):
    """Sample of ray r that wins: raw number, its segment and step there; segment -1 where the ray has no samples."""
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    best, most, at_s, at_k = ti.cast(0.0, float), ti.cast(0.0, float), -1, 0
    for s in range(ti.static(grid.segments)):
        entry, way, length = cells.segment_of(grid, rays, variant, r, s)
        entry += first_sample(grid, s)
        n, k = steps_of(length, step, phase), 0
        while length > 0 and k <= n:
            first, last = k, ti.min(k + ti.static(samples_at_once(grid)), n + 1)  # copies, which stay
            densities = ti.Vector.zero(float, LONG_GROUP_SAMPLES)
            if ti.static(has_lanes(grid, grid.density)):
                places = ti.Vector([NO_PLACE] * (LONG_GROUP_SAMPLES + 1))
                f = ti.Matrix.zero(float, 3, LONG_GROUP_SAMPLES)
                find_steps(grid.density, variant, entry, way, length, step, phase, first, last, places, f)
                read_densities(grid, places, f, densities)
            else:
                p, _width = place_of(variant, entry, way, length, step, phase, k)
                cell, f = locate(grid, p)
                densities[0] = gather(grid.density, cell, f)
            while k < last:
                x = densities[k - first]
                high = variant.mode.sign * x
                if ti.static(grid.boxes > 1):
                    high = (
                        variant.mode.sign
                        * activation.density(variant, x + grid.shift[None])
                        * scale_of(box_of(grid, s))
                    )
                _begin, width = step_at(variant, 0.0, length, step, phase, k)
                if width > 0 and (at_s < 0 or high > most):
                    best, most, at_s, at_k = x, high, s, k
                k += 1
    return best, at_s, at_k


@ti.kernel
def find_winners(grid: ti.template(), rays: ti.template(), variant: ti.template(), count: int, dt: float):
    """sum_odd = each ray's winner as `winner_along` has it; the other kernels come after."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        x, s, k = winner_along(grid, rays, variant, r, dt)
        rays.sum_odd[r] = ti.Vector([x, ti.cast(s, float), ti.cast(k, float), 0.0])


@ti.func
def winner_of(rays: ti.template(), r):
    """Winner of ray r as found."""
    found = rays.sum_odd[r]
    return found[0], ti.cast(found[1], ti.i32), ti.cast(found[2], ti.i32)


@ti.func
def to_winner(
    scene: ti.template(), ray: ti.template(), state: ti.template(), back: ti.template(), total: ti.template()
):
    """Traversal to the winner alone, which moves as any sample does: with the ray, its ends and the step."""
    _x, s, k = winner_of(scene.rays, ray.r)
    if s >= 0:
        seg = segment_of(scene, ray, s)
        open_ends(scene, ray, seg, seg.near, seg.enters, seg.far, seg.leaves, total)
        n = steps_of(seg.length, ray.step, ray.phase)
        at_step(scene, ray, seg, k, n, state, back, total)
        close_ends(scene, ray, seg, seg.near, seg.enters, seg.far, seg.leaves, total)
        leave_segment(scene, seg, total)


# What is seen of the winner: its value, in each channel.


@ti.func
def world_unit_of(ray: ti.template(), at: ti.template()):
    """What makes of an activated number the value in the world: in a box of twice the size it means half as much."""
    return ray.inverse_scale * at.scale


@ti.func
def read(scene: ti.template(), ray: ti.template(), at: ti.template(), shade):
    return activation.density(scene.variant, at.x) * world_unit_of(ray, at) * ti.Vector.one(float, 3)


@ti.func
def look(scene: ti.template(), ray: ti.template(), at: ti.template(), o: ti.template(), on):
    slope = activation.density_slope(scene.variant, at.x) * world_unit_of(ray, at)
    return ti.Struct(y=read(scene, ray, at, o.shade), slope=slope)


@ti.func
def pull(scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), d_y, slot, d: ti.template()):
    d.x += (d_y[0] + d_y[1] + d_y[2]) * seen.slope


@ti.func
def push(
    scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), dot_shade, e, move: ti.template()
):
    return move.x * seen.slope * ti.Vector.one(float, 3)


# In parts of a volume: the best sample so far is looked for as any sum is added up.


@ti.func
def start_winner(scene: ti.template(), ray: ti.template()):
    return ti.Struct(best=ti.cast(0.0, float), t=ti.cast(0.0, float), found=ti.cast(0.0, float))


@ti.func
def compare(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    more = scene.variant.mode.sign * (at.x - state.best) > 0
    if at.width > 0 and (state.found == 0 or more):
        state.best, state.t, state.found = at.x, at.t, ti.cast(1.0, float)


@ti.func
def finish_winner(scene: ti.template(), ray: ti.template(), state: ti.template()):
    value = activation.density(scene.variant, state.best) * ray.inverse_scale * state.found
    scene.rays.image[ray.r] = ti.Vector([value, value, value, 1.0 - state.found])


@ti.func
def finish_distance(scene: ti.template(), ray: ti.template(), state: ti.template()):
    write_depth(scene, ray, state.found > 0, state.t, state.found)


@ti.func
def pause(scene: ti.template(), state: ti.template()):
    return ti.Vector([state.best, state.t, state.found, 0.0])


@ti.func
def resume(scene: ti.template(), numbers):
    return ti.Struct(best=numbers[0], t=numbers[1], found=numbers[2])


WINNER = Integrand("winner", start_winner, compare, always, finish_winner, pause=pause, resume=resume)
PARTS = InParts(image=WINNER, distance=replace(WINNER, finish=finish_distance))
HOW = {
    "colour": False, "background": False, "ends": False, "has_normals": False,
    "search": find_winners, "traverse": to_winner, "image": image_of(Quantity(3, read, look, pull, push)),
    "in_parts": PARTS,
}  # fmt: skip
MAXIMUM = Extremum("maximum", **FOUND, **HOW)
MINIMUM = Extremum("minimum", **FOUND, **HOW, sign=-1.0)
