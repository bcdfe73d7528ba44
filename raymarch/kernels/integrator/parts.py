"""March of a volume that is on the device a part at a time: rays wait where the next part is not there yet.

The cells of the whole volume are cut into parts, boxes of cells. A ray goes through the part that is there as far as
that reaches, keeps its state in a few numbers, and waits for the part that its next sample lies in; so whatever the
order of parts, each ray meets its samples front to back, ends where it has seen enough, and no part is asked for that
no ray waits for. Samples lie where the march of the whole has them: places are worked out in the whole's index space,
and each belongs to the one part that its cell is of, by whole numbers, so none is lost or counted twice at a face.

A spot is where a ray goes on: its cell, of whose first number a march by steps makes the step; the distance t behind
where the ray enters the volume; and the side of a level that it is on. A first number of -1 ends a ray. Letters as in
`march`; `first` is the whole's index of the part's first sample, `low` and `high` are its cells, from one to before the
other: samples beside them are there too, as many as slopes of the value ask for.
"""

from collections.abc import Callable
from typing import Any

from raymarch.engine import ti
from raymarch.engine.record import record, replace
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.gather import gather, gather_slope
from raymarch.kernels.integrator.scene import Scene, ray_of, segment_of
from raymarch.kernels.rays.cells import cell_at, exit_of, is_inside, next_cell
from raymarch.kernels.rays.rays import PARALLEL_TOLERANCE, step_at, steps_of, steps_to_skip

FINISHED = -1  # of a spot's first number: the ray is through
NOWHERE = -1  # number of no part


@record()
class PartScene(Scene):
    """Scene of a march in parts: `grid` is the part that is there, `part` where it lies and where rays wait.

    Attributes:
        part: `PartFields`: the whole's place, its parts, and each ray's spot.
        kept: (ray,) numbers of what the integrand carries.
        at_cell: what is done in a cell, (scene, ray, seg, spot, t, out, state), t to `out` the ray's way through it;
            None where the march goes by steps.
    """

    part: Any = None
    kept: Any = None
    at_cell: Callable | None = None

    @property
    def whole(self) -> "PartScene":
        """Scene of the whole volume, of which nothing but the place is known."""
        return replace(self, grid=self.part)

    @property
    def by_steps(self) -> bool:
        """Whether the march goes by steps, not by cells."""
        return self.at_cell is None


# Places: of samples among the cells of the whole, and of cells among the parts.


@ti.func
def part_of(scene: ti.template(), cell):
    """Number of the part that a cell belongs to."""
    number = 0
    for a in ti.static(range(3)):
        along = (cell[a] + scene.part.offset[None][a]) // scene.part.side[None][a]
        number = number * scene.part.counts[None][a] + along
    return number


@ti.func
def cells_of_part(scene: ti.template(), number, top):
    """Cells of a part, from the first to before the last."""
    rest, low, high = number, ti.Vector.zero(ti.i32, 3), ti.Vector.zero(ti.i32, 3)
    for b in ti.static(range(3)):
        a = ti.static(2 - b)
        along = rest % scene.part.counts[None][a]
        rest //= scene.part.counts[None][a]
        begin = along * scene.part.side[None][a] - scene.part.offset[None][a]
        low[a] = ti.max(begin, 0)
        high[a] = ti.min(begin + scene.part.side[None][a], ti.cast(top[a], ti.i32))
    return low, high


@ti.func
def is_between(cell, low, high):
    """Whether a cell is one of a box of cells."""
    on = True
    for a in ti.static(range(3)):
        on = on and cell[a] >= low[a] and cell[a] < high[a]
    return on


@ti.func
def leave_box(entry, way, low, high, length):
    """Where a ray leaves a box of cells, by its distance from the entry, and by which axis; -1 where it ends before."""
    out, axis = length, -1
    for a in ti.static(range(3)):
        if ti.abs(way[a]) > PARALLEL_TOLERANCE:
            t = (ti.select(way[a] > 0, high[a], low[a]) - entry[a]) / way[a]
            if t < out:
                out, axis = t, a
    return out, axis


@ti.func
def step_in(scene: ti.template(), ray: ti.template(), seg: ti.template(), k):
    """Step k: its place in the whole's index space, its cell there, where it begins and its width."""
    begin, width = step_at(scene.variant, 0.0, seg.length, ray.step, ray.phase, k)
    p = seg.entry + (begin + 0.5 * width) * seg.way
    return p, cell_at(p, ray.top), begin, width


@ti.func
def last_step_in(ray: ti.template(), seg: ti.template(), low, high):
    """A step that surely lies in a box of cells, if the one before does: two before where the ray leaves it."""
    out, _axis = leave_box(seg.entry, seg.way, low, high, seg.length)
    return ti.cast(out / ray.step + ray.phase, ti.i32) - 2


# Spots: where rays begin, which cell they look at next, and where they go on behind a part that shows nothing.


@ti.func
def first_spot(scene: ti.template(), ray: ti.template(), seg: ti.template()):
    """Spot where a ray begins."""
    cell = ti.Vector([0, 0, 0])
    if ti.static(not scene.by_steps):
        cell = cell_at(seg.entry, ray.top)
    if seg.length <= 0:
        cell[0] = FINISHED
    return ti.Struct(cell=cell, t=ti.cast(0.0, float), side=ti.cast(0.0, float))


@ti.func
def cell_of_spot(scene: ti.template(), ray: ti.template(), seg: ti.template(), spot: ti.template()):
    """Cell of the next sample."""
    cell = spot.cell
    if ti.static(scene.by_steps):
        _p, cell, _begin, _width = step_in(scene, ray, seg, spot.cell[0])
    return cell


@ti.func
def pass_part(scene: ti.template(), ray: ti.template(), seg: ti.template(), low, high, spot: ti.template()):
    """Spot behind a part of which nothing is seen."""
    if ti.static(scene.by_steps):
        k, n = ti.max(spot.cell[0] + 1, last_step_in(ray, seg, low, high)), steps_of(seg.length, ray.step, ray.phase)
        on = k <= n
        while on:
            _p, cell, _begin, _width = step_in(scene, ray, seg, k)
            on = is_between(cell, low, high)
            k += ti.select(on, 1, 0)
            on = on and k <= n
        spot.cell[0] = ti.select(k <= n, k, FINISHED)
    else:
        out, axis = leave_box(seg.entry, seg.way, low, high, seg.length)
        out = ti.max(out, spot.t)
        cell = cell_at(seg.entry + out * seg.way, ray.top)
        for a in ti.static(range(3)):
            if a == axis:
                cell[a] = ti.select(seg.way[a] > 0, high[a], low[a] - 1)
            else:  # rounding hides on which side of a face a ray along it is
                cell[a] = ti.max(ti.min(cell[a], high[a] - 1), low[a])
        spot.t = out
        if axis < 0 or out >= seg.length or not is_inside(cell, ray.top):
            cell[0] = FINISHED
        spot.cell = cell


# Through the part that is there.


@ti.func
def segment_in_part(scene: ti.template(), ray: ti.template()):
    """The ray's segment of the whole; its `first` takes cells of the whole to those of the part."""
    seg = segment_of(scene.whole, ray, 0)
    seg.first = -scene.part.first[None]
    return seg


@ti.func
def sample_of_step(scene: ti.template(), ray: ti.template(), seg: ti.template(), p, cell, k, begin, width):
    """Sample of a step, read from the part."""
    f, own = p - cell, cell + seg.first
    place = cell_index(scene.grid, own)
    x, slope = ti.cast(0.0, float), ti.Vector.zero(float, 3)
    if ti.static(scene.sloped):
        x, slope[0], slope[1], slope[2] = gather_slope(scene.grid.density, place, f)
    elif ti.static(scene.grid.holds_slopes):
        slope[0], slope[1], slope[2], x = gather(scene.grid.packed, place, f)
    else:
        x = gather(scene.grid.density, place, f)
    return ti.Struct(
        s=seg.s,
        k=k,
        box=seg.box,
        scale=seg.scale,
        cell=own,
        f=f,
        t=seg.near + begin + 0.5 * width,
        width=width,
        x=x + ray.shift,
        slope=slope,
    )


@ti.func
def go_by_steps(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), low, high, spot: ti.template(), state: ti.template()
):
    """Steps of the part from the spot on, what is marked as empty left out."""
    k, n = spot.cell[0], steps_of(seg.length, ray.step, ray.phase)
    last, per_index, on = last_step_in(ray, seg, low, high), scene.grid.cells_per_index[None], True
    while on:
        p, cell, begin, width = step_in(scene, ray, seg, k)
        empty, full = steps_to_skip(scene.grid, per_index, p + seg.first, seg.way, ray.step)
        if empty > 0:
            k = ti.max(k + 1, ti.min(k + empty, last))
        else:
            end = ti.min(k + full, n + 1)
            while on and k < end:
                p, cell, begin, width = step_in(scene, ray, seg, k)
                on = is_between(cell, low, high)
                if on:
                    at = sample_of_step(scene, ray, seg, p, cell, k, begin, width)
                    scene.integrand.value(scene, ray, at, state)
                    if scene.integrand.goes_on(scene, ray, state):
                        k += 1
                    else:
                        k = n + 1
        if on and k <= n:
            _p, cell, _begin, _width = step_in(scene, ray, seg, k)
            on = is_between(cell, low, high)
        on = on and k <= n
    spot.cell[0] = ti.select(k <= n, k, FINISHED)


@ti.func
def go_by_cells(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), low, high, spot: ti.template(), state: ti.template()
):
    """Cells of the part from the spot's on."""
    on = True
    while on and is_between(spot.cell, low, high):
        out, axis = exit_of(seg.entry, seg.way, spot.cell, seg.length)
        out = ti.max(out, spot.t)
        scene.at_cell(scene, ray, seg, spot, spot.t, out, state)
        spot.t, spot.cell = out, next_cell(spot.cell, seg.way, axis)
        on = axis >= 0 and out < seg.length and is_inside(spot.cell, ray.top)
        on = on and scene.integrand.goes_on(scene, ray, state)
    if not on:
        spot.cell[0] = FINISHED


# Kernels. Each goes over all rays; `then` is the spot behind the part that is there, of rays that went through it.


@ti.func
def spot_at(cell, numbers):
    """Spot of what is kept of it."""
    return ti.Struct(cell=cell, t=numbers[0], side=numbers[1])


@ti.kernel
def begin_rays(scene: ti.template(), count: int, dt: float):
    """Spots of rays where they begin; each waits nowhere yet."""
    for r in range(count):
        ray = ray_of(scene.whole, r, dt, 0.0, 0.0, ti.Vector.zero(float, 3))
        seg = segment_of(scene.whole, ray, 0)
        spot = first_spot(scene, ray, seg)
        scene.part.then_cell[r], scene.part.then[r] = spot.cell, ti.Vector([spot.t, spot.side])
        scene.part.waits[r] = NOWHERE


@ti.kernel
def begin_states(scene: ti.template(), count: int, dt: float):
    """States of an integrand before the first sample."""
    for r in range(count):
        ray = ray_of(scene.whole, r, dt, 0.0, 0.0, ti.Vector.zero(float, 3))
        state = scene.integrand.start(scene, ray)
        scene.kept[r] = scene.integrand.pause(scene, state)


@ti.kernel
def find_waiting(scene: ti.template(), count: int, parts: int, dt: float, here: int):
    """Where rays that waited for part `here`, or for one that shows nothing, wait now; and how many wait for each."""
    for i in range(parts):
        scene.part.waiting[i] = 0
    for r in range(count):
        number = scene.part.waits[r]
        moved = number == here
        if number >= 0:
            moved = moved or scene.part.clear[number] > 0
        if moved:
            ray = ray_of(scene.whole, r, dt, 0.0, 0.0, ti.Vector.zero(float, 3))
            seg = segment_of(scene.whole, ray, 0)
            spot = spot_at(scene.part.cell[r], scene.part.spot[r])
            if number == here:
                spot = spot_at(scene.part.then_cell[r], scene.part.then[r])
            number = NOWHERE
            while number == NOWHERE and spot.cell[0] != FINISHED:
                number = part_of(scene, cell_of_spot(scene, ray, seg, spot))
                if scene.part.clear[number] > 0:
                    low, high = cells_of_part(scene, number, ray.top)
                    pass_part(scene, ray, seg, low, high, spot)
                    number = NOWHERE
            scene.part.cell[r], scene.part.spot[r] = spot.cell, ti.Vector([spot.t, spot.side])
            scene.part.waits[r] = ti.select(number == NOWHERE, ti.i32(-2), number)
        if scene.part.waits[r] >= 0:
            scene.part.waiting[scene.part.waits[r]] += 1


@ti.kernel
def find_met(scene: ti.template(), count: int, parts: int, dt: float):
    """`waiting` of each part: how many rays meet it, whatever lies before it."""
    for i in range(parts):
        scene.part.waiting[i] = 0
    for r in range(count):
        ray = ray_of(scene.whole, r, dt, 0.0, 0.0, ti.Vector.zero(float, 3))
        seg = segment_of(scene.whole, ray, 0)
        spot = first_spot(scene, ray, seg)
        while spot.cell[0] != FINISHED:
            number = part_of(scene, cell_of_spot(scene, ray, seg, spot))
            scene.part.waiting[number] += 1
            low, high = cells_of_part(scene, number, ray.top)
            pass_part(scene, ray, seg, low, high, spot)


@ti.kernel
def go_through_part(
    scene: ti.template(),
    count: int,  # PartScene, rays
    dt: float,
    min_transmittance: float,
    min_weight: float,
    here: int,  # [world unit], 0..1, 0..1, number of the part
):
    """What an integrand makes of the part that is there, of all rays that wait for it."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        if scene.part.waits[r] == here:
            ray = ray_of(scene.whole, r, dt, min_transmittance, min_weight, ti.Vector.zero(float, 3))
            seg = segment_in_part(scene, ray)
            low, high = cells_of_part(scene, here, ray.top)
            spot = spot_at(scene.part.cell[r], scene.part.spot[r])
            state = scene.integrand.resume(scene, scene.kept[r])
            if ti.static(scene.by_steps):
                go_by_steps(scene, ray, seg, low, high, spot, state)
            else:
                go_by_cells(scene, ray, seg, low, high, spot, state)
            scene.kept[r] = scene.integrand.pause(scene, state)
            scene.part.then_cell[r], scene.part.then[r] = spot.cell, ti.Vector([spot.t, spot.side])


@ti.kernel
def finish_states(
    scene: ti.template(),
    count: int,  # PartScene, rays
    dt: float,
    background: ti.math.vec3,  # [world unit], (3,)
):
    """What an integrand leaves in the rays' fields."""
    for r in range(count):
        ray = ray_of(scene.whole, r, dt, 0.0, 0.0, background)
        state = scene.integrand.resume(scene, scene.kept[r])
        scene.integrand.finish(scene.whole, ray, state)
