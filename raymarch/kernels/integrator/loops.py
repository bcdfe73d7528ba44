"""Loops along rays, written once for every mode: a traversal visits samples, and each task says what a visit does.

A sample lies between two ends, at t = t_first + share (t_last - t_first) in a cell, or at a step counted from where the
segment begins: so its place moves with the ray, and with its ends and the length of a step, as `by` says. An integrand
gives the gradients by raw density, width, distance, place and heading (pull), or takes their tangents (push); what they
mean for samples, ends and rays stands here.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field.bricks import cell_index, is_sparse
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear, trilinear_slope, weights
from raymarch.kernels.field.gather import gather, gather_in_plane, gather_slope, scatter, scatter_in_plane
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.mode import behind_of
from raymarch.kernels.integrator.sample import (
    LONG_GROUP_SAMPLES,
    NO_PLACE,
    find_steps,
    has_lanes,
    read_densities,
    read_samples,
)
from raymarch.kernels.integrator.scene import PULL, PUSH, VALUE, carried, ray_of, segment_of
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.cells import cell_at, exit_of, is_inside, next_cell
from raymarch.kernels.rays.rays import step_at, steps_of, steps_to_skip, widths_of
from raymarch.kernels.rays.segment_ends import meet_adjoint, meet_tangent

GAUSS_OFFSET = 0.28867513459481287  # of a cell's length, from its middle to each of two points: 1 / (2 sqrt 3)


# Visits: what each task does at a sample.


@ti.func
def visit(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    at: ti.template(),
    by: ti.template(),
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Sample of a ray, by the scene's task; a pull leaves d_x, the gradient by the raw density, in `at.x`."""
    if ti.static(scene.task == PULL):
        pull(scene, ray, seg, at, by, state, back, total)
    elif ti.static(scene.task == PUSH):
        dot_x = ti.Vector.zero(float, scene.columns)
        if ti.static(scene.dots_move):
            dot_x = gather(scene.dots.density, at.cell, at.f)
        scene.integrand.push(scene, ray, seg, at, by, dot_x, state, back, total)
    else:
        scene.integrand.value(scene, ray, at, state)


@ti.func
def pull(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    at: ti.template(),
    by: ti.template(),
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Adjoint of a sample: what the image gains by it goes to the place it is read at, the ends and the step."""
    zero, none = ti.cast(0.0, float), ti.Vector.zero(float, 3)
    d = ti.Struct(
        x=zero, width=zero, t=zero, p=none, view=none, frame=ti.Matrix.zero(float, 3, 3), shade=ti.Vector.zero(float, 4)
    )
    scene.integrand.pull(scene, ray, at, state, back, total.slot, d)
    at.x = d.x
    if ti.static(scene.sloped):
        d_p = d.x * at.slope + d.p
        d_t = d_p.dot(ray.d) + d.t
        total.own += d_p
        total.d += at.t * d_p
        total.view += d.view
        total.frame += d.frame
        total.first += by.first * d_t + by.first_width * d.width
        total.last += by.last * d_t + by.last_width * d.width
        total.dt += by.step * d_t + by.step_width * d.width


@ti.func
def move_of(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    at: ti.template(),
    by: ti.template(),
    dot_x,
    total: ti.template(),
    e,
):
    """Tangents of a sample in column e: raw density, width, distance, place and heading; of a push by the volume
    places move with levels alone."""
    dot_t, dot_width = by.first * total.first[e] + by.last * total.last[e], ti.cast(0.0, float)
    dot_width = by.first_width * total.first[e] + by.last_width * total.last[e]
    p, view, x = dot_t * ray.d, ti.Vector.zero(float, 3), ti.cast(dot_x[e], float)
    if ti.static(scene.by_rays):
        dot_t += by.step * scene.moved.dot_dt[e]
        dot_width += by.step_width * scene.moved.dot_dt[e]
        p = seg.scale * scene.moved.dot_origin[ray.r, e] + at.t * scene.moved.dot_index_direction[ray.r, e]
        p += dot_t * ray.d
        view = scene.moved.dot_view_direction[ray.r, e]
    if ti.static(scene.sloped):
        x += at.slope.dot(p)
    return ti.Struct(x=x, width=dot_width, t=dot_t, p=p, view=view)


# Ends between which samples lie: faces of cells and boxes, planes that cut, where the ray begins.


@ti.func
def open_ends(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    first,
    first_face,
    last,
    last_face,
    total: ti.template(),
):
    """Begin of what lies between two ends, at distances `first` and `last` and of these faces."""
    if ti.static(scene.task == PULL):
        total.first, total.last = ti.cast(0.0, float), ti.cast(0.0, float)
    if ti.static(scene.task == PUSH and scene.by_rays):
        for e in range(scene.columns):
            total.first[e] = end_tangent(scene, ray, seg, first, first_face, e)
            total.last[e] = end_tangent(scene, ray, seg, last, last_face, e)


@ti.func
def end_tangent(scene: ti.template(), ray: ti.template(), seg: ti.template(), t, face, e):
    """Tangent of where an end is met."""
    return meet_tangent(scene.grid, scene.rays, scene.moved, scene.variant, ray.r, e, ray.d, seg.scale, t, face)


@ti.func
def close_ends(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    first,
    first_face,
    last,
    last_face,
    total: ti.template(),
):
    """End of it: what the ends gained goes to the ray."""
    if ti.static(scene.task == PULL and scene.by_rays):
        end_adjoint(scene, ray, seg, first, first_face, total.first, total)
        end_adjoint(scene, ray, seg, last, last_face, total.last, total)


@ti.func
def end_adjoint(scene: ti.template(), ray: ti.template(), seg: ti.template(), t, face, d_t, total: ti.template()):
    """Adjoint of where an end is met."""
    meet_adjoint(
        scene.grid,
        scene.rays,
        scene.variant,
        ray.r,
        ray.d,
        seg.scale,
        t,
        face,
        d_t,
        total.own,
        total.d,
        total.place,
        total.way,
    )


@ti.func
def leave_segment(scene: ti.template(), seg: ti.template(), total: ti.template()):
    """What samples of a segment gave its own origin goes to the ray's."""
    if ti.static(scene.task == PULL and scene.by_rays):
        total.o += seg.scale * total.own
        total.own = ti.Vector.zero(float, 3)


# Traversal by steps: midpoints of steps from where the ray enters, the last one shorter.


@ti.func
def along_steps(
    scene: ti.template(), ray: ti.template(), s0, k0, state: ti.template(), back: ti.template(), total: ti.template()
):
    """All samples from step k0 of segment s0 on, empty space left out."""
    k = k0
    for s in range(s0, ti.static(scene.grid.segments)):
        seg = segment_of(scene, ray, s)
        n = steps_of(seg.length, ray.step, ray.phase)
        open_ends(scene, ray, seg, seg.near, seg.enters, seg.far, seg.leaves, total)
        while k <= n and seg.length > 0 and scene.integrand.goes_on(scene, ray, state):
            p, _width, _begin = place_in_segment(scene, ray, seg, k)
            empty, full = steps_to_skip(scene.grid, ray.per_index, p, seg.way, ray.step)
            k += empty
            end = ti.min(k + full, n + 1)
            while k < end and scene.integrand.goes_on(scene, ray, state):
                if ti.static(goes_in_groups(scene)):
                    at_group(scene, ray, seg, k, end, state)
                else:
                    at_step(scene, ray, seg, k, n, state, back, total)
                    k += 1
        close_ends(scene, ray, seg, seg.near, seg.enters, seg.far, seg.leaves, total)
        leave_segment(scene, seg, total)
        k = 0


@ti.func
def place_in_segment(scene: ti.template(), ray: ti.template(), seg: ti.template(), k):
    """Position among all samples of step k, its width, and where it begins."""
    begin, width = step_at(scene.variant, 0.0, seg.length, ray.step, ray.phase, k)
    return seg.entry + (begin + 0.5 * width) * seg.way + seg.first, width, begin


def goes_in_groups(scene) -> bool:
    """Whether values are read in the long groups of `sample`."""
    return scene.task == VALUE and not scene.sloped and has_lanes(scene.grid, scene.grid.density)


def values_read(grid):
    """Field that values are read from: with their slopes, where it holds them."""
    return grid.packed if grid.holds_slopes else grid.density


@ti.func
def at_group(scene: ti.template(), ray: ti.template(), seg: ti.template(), k: ti.template(), end, state: ti.template()):
    """Samples of the next steps, up to step `end`, as long as the ray goes on; their values are read before."""
    first, last = k, ti.min(k + LONG_GROUP_SAMPLES, end)  # copies, which stay
    places, f = ti.Vector([NO_PLACE] * (LONG_GROUP_SAMPLES + 1)), ti.Matrix.zero(float, 3, LONG_GROUP_SAMPLES)
    raws, slopes = ti.Vector.zero(float, LONG_GROUP_SAMPLES), ti.Matrix.zero(float, LONG_GROUP_SAMPLES, 4)
    find_steps(
        ti.static(values_read(scene.grid)),
        scene.variant,
        seg.entry + seg.first,
        seg.way,
        seg.length,
        ray.step,
        ray.phase,
        first,
        last,
        places,
        f,
    )
    if ti.static(scene.grid.holds_slopes):
        read_samples(scene.grid, places, f, slopes, raws)
    else:
        read_densities(scene.grid, places, f, raws)
    while k < last and scene.integrand.goes_on(scene, ray, state):
        p, width, begin = place_in_segment(scene, ray, seg, k)
        cell = ti.cast(p, ti.i32)
        j, slope = k - first, ti.Vector.zero(float, 3)
        if ti.static(scene.grid.holds_slopes):
            slope = ti.Vector([slopes[j, 0], slopes[j, 1], slopes[j, 2]])
        at = sample_at(seg, cell, p - cell, begin + 0.5 * width, width, raws[j] + ray.shift, slope)
        at.k = k
        scene.integrand.value(scene, ray, at, state)
        k += 1


@ti.func
def at_step(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    k,
    n,
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Sample of step k, of which the n-th is the last."""
    p, width, begin = place_in_segment(scene, ray, seg, k)
    cell = ti.cast(p, ti.i32)
    f, place = p - cell, cell_index(scene.grid, cell)
    x, slope = ti.cast(0.0, float), ti.Vector.zero(float, 3)
    if ti.static(scene.sloped):
        x, slope[0], slope[1], slope[2] = gather_slope(scene.grid.density, place, f)
    elif ti.static(scene.grid.holds_slopes):
        slope[0], slope[1], slope[2], x = gather(scene.grid.packed, place, f)
    else:
        x = gather(scene.grid.density, place, f)
    at = ti.Struct(
        s=seg.s,
        k=k,
        box=seg.box,
        scale=seg.scale,
        cell=cell,
        f=f,
        t=seg.near + begin + 0.5 * width,
        width=width,
        x=x + ray.shift,
        slope=slope,
    )
    by = ends_of_step(scene, ray, k, n)
    visit(scene, ray, seg, at, by, state, back, total)
    if ti.static(scene.by_volume):
        scatter(scene.grid.d_density, total.slot, place, f, at.x)
        mark(scene.grid, place, place)


@ti.func
def ends_of_step(scene: ti.template(), ray: ti.template(), k, n):
    """How a step's middle and width move with both ends of its segment and with dt; the count of steps is held."""
    begins, wide = widths_of(scene.variant, ray.phase, k)
    by = ti.Struct(
        first=ti.cast(1.0, float),
        last=ti.cast(0.0, float),
        step=ray.stretch * (begins + 0.5 * wide),
        first_width=ti.cast(0.0, float),
        last_width=ti.cast(0.0, float),
        step_width=ray.stretch * wide,
    )
    if k >= n:
        by.first, by.last, by.step = 0.5, 0.5, 0.5 * ray.stretch * begins
        by.first_width, by.last_width, by.step_width = -1.0, 1.0, -ray.stretch * begins
    return by


# Traversal by cells: two Gauss-Legendre points between the faces by which a ray enters a cell and leaves it.


@ti.func
def along_cells(
    scene: ti.template(), ray: ti.template(), state: ti.template(), back: ti.template(), total: ti.template()
):
    """All cells of a ray."""
    for s in range(ti.static(scene.grid.segments)):
        seg = segment_of(scene, ray, s)
        cell, t, on, face = cell_at(seg.entry, ray.top), ti.cast(0.0, float), seg.length > 0, seg.enters
        while on:
            out, axis = exit_of(seg.entry, seg.way, cell, seg.length)
            out = ti.max(out, t)
            face2 = ti.select(axis < 0, seg.leaves, axis)
            open_ends(scene, ray, seg, seg.near + t, face, seg.near + out, face2, total)
            whole_cell(scene, ray, seg, cell, t, out, state, back, total)
            close_ends(scene, ray, seg, seg.near + t, face, seg.near + out, face2, total)
            t, cell, face = out, next_cell(cell, seg.way, axis), axis
            on = axis >= 0 and t < seg.length and is_inside(cell, ray.top)
        leave_segment(scene, seg, total)


@ti.func
def whole_cell(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    own,
    t0,
    t1,
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Both points of a cell of the segment's box, from t0 to t1 behind where the ray enters that."""
    cell = own + seg.first
    place = cell_index(scene.grid, cell)
    v, d_v = corners_of_cell(scene.grid.density, place), ti.Vector.zero(float, 8)
    middle, apart = seg.entry + 0.5 * (t0 + t1) * seg.way - own, GAUSS_OFFSET * (t1 - t0) * seg.way
    for q in ti.static(range(2)):
        share = ti.static(0.5 + (2 * q - 1) * GAUSS_OFFSET)
        f = middle + ti.static(2 * q - 1) * apart
        at = ti.Struct(
            s=seg.s,
            k=0,
            box=seg.box,
            scale=seg.scale,
            cell=cell,
            f=f,
            t=seg.near + t0 + share * (t1 - t0),
            width=0.5 * (t1 - t0),
            x=trilinear(v, f) + ray.shift,
            slope=trilinear_slope(v, f),
        )
        by = ti.Struct(
            first=1.0 - share,
            last=share,
            step=ti.cast(0.0, float),
            first_width=ti.cast(-0.5, float),
            last_width=ti.cast(0.5, float),
            step_width=ti.cast(0.0, float),
        )
        visit(scene, ray, seg, at, by, state, back, total)
        if ti.static(scene.by_volume):
            d_v += at.x * weights(f)
    if ti.static(scene.by_volume):
        scatter_corners(scene.grid.d_density, total.slot, place, d_v)
        mark(scene.grid, place, place)


# Traversal by planes: the trapezoid rule between the planes of samples that a ray meets across its main axis.


@ti.func
def along_planes(
    scene: ti.template(), ray: ti.template(), state: ti.template(), back: ti.template(), total: ti.template()
):
    """All planes across the axis that a ray mostly goes along, and where it enters and leaves each box."""
    for s in range(ti.static(scene.grid.segments)):
        seg = segment_of(scene, ray, s)
        if seg.length > 0:
            if ti.static(scene.by_rays):
                by_slabs(scene, ray, seg, state, back, total)
            else:
                by_planes(scene, ray, seg, state, back, total)
        leave_segment(scene, seg, total)


@ti.func
def first_plane(seg: ti.template()):
    """Axis by which a ray goes farthest, the first plane across it within the box, which way planes go on, how far the
    first is from where the ray enters, and from one to the next."""
    axis, entry, way = 0, seg.entry[0], seg.way[0]
    for a in ti.static(range(1, 3)):
        if ti.abs(seg.way[a]) > ti.abs(way):
            axis, entry, way = a, seg.entry[a], seg.way[a]
    toward = ti.select(way > 0, 1, -1)
    plane = ti.select(way > 0, ti.floor(entry) + 1.0, ti.ceil(entry) - 1.0)
    return axis, ti.cast(plane, ti.i32), toward, (plane - entry) / way, 1.0 / ti.abs(way)


@ti.func
def by_slabs(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Both ends of each slab between two planes, which move with the ray."""
    axis, _plane, _toward, begin, apart = first_plane(seg)
    t, face, k = ti.cast(0.0, float), seg.enters, 0
    while t < seg.length:
        out, face2 = begin + k * apart, axis
        if out >= seg.length:
            out, face2 = seg.length, seg.leaves
        open_ends(scene, ray, seg, seg.near + t, face, seg.near + out, face2, total)
        at_point(scene, ray, seg, t, 0.5 * (out - t), 0.0, state, back, total)
        at_point(scene, ray, seg, out, 0.5 * (out - t), 1.0, state, back, total)
        close_ends(scene, ray, seg, seg.near + t, face, seg.near + out, face2, total)
        t, face, k = out, face2, k + 1


@ti.func
def by_planes(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """One point a plane, wide as half of both slabs beside it."""
    axis, plane, toward, begin, apart = first_plane(seg)
    before, t, k = ti.cast(0.0, float), ti.min(begin, seg.length), 0
    at_point(scene, ray, seg, before, 0.5 * t, 0.0, state, back, total)
    if ti.static(scene.task == PUSH or is_sparse(scene.grid.table)):
        while t < seg.length:
            k += 1
            after = ti.min(begin + k * apart, seg.length)
            at_point(scene, ray, seg, t, 0.5 * (after - before), 0.0, state, back, total)
            before, t, plane = t, after, plane + toward
    else:
        for a in ti.static(range(3)):  # a loop of its own each, so that addresses are one and constants beside it
            if axis == a:
                while t < seg.length:
                    k += 1
                    after = ti.min(begin + k * apart, seg.length)
                    in_plane(scene, ray, seg, a, plane, t, 0.5 * (after - before), state, back, total)
                    before, t, plane = t, after, plane + toward
    at_point(scene, ray, seg, t, 0.5 * (t - before), 1.0, state, back, total)


@ti.func
def at_point(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    t,
    width,
    share,
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Point t behind where a ray enters its box; `share` is 0 at the first end of a slab, 1 at its last."""
    p = seg.entry + t * seg.way
    own = cell_at(p, ray.top)
    f, cell = p - own, own + seg.first
    place = cell_index(scene.grid, cell)
    x, slope = ti.cast(0.0, float), ti.Vector.zero(float, 3)
    if ti.static(scene.sloped):
        x, slope[0], slope[1], slope[2] = gather_slope(scene.grid.density, place, f)
    else:
        x = gather(scene.grid.density, place, f)
    at = sample_at(seg, cell, f, t, width, x + ray.shift, slope)
    by = ti.Struct(
        first=ti.cast(1.0 - share, float),
        last=ti.cast(share, float),
        step=ti.cast(0.0, float),
        first_width=ti.cast(-0.5, float),
        last_width=ti.cast(0.5, float),
        step_width=ti.cast(0.0, float),
    )
    visit(scene, ray, seg, at, by, state, back, total)
    if ti.static(scene.by_volume):
        scatter(scene.grid.d_density, total.slot, place, f, at.x)
        mark(scene.grid, place, place)


@ti.func
def in_plane(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    axis: ti.template(),
    plane,
    t,
    width,
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """Point t behind where a ray enters its box, on a plane of samples of a dense grid: four of them are read."""
    p = seg.entry + t * seg.way
    own = cell_at(p, ray.top)
    own[axis] = plane
    f, cell = p - own, own + seg.first
    x = gather_in_plane(scene.grid.density, cell, f, axis) + ray.shift
    at = sample_at(seg, cell, f, t, width, x, ti.Vector.zero(float, 3))
    visit(scene, ray, seg, at, ti.Struct(none=0), state, back, total)
    if ti.static(scene.by_volume):
        scatter_in_plane(scene.grid.d_density, total.slot, cell, f, axis, at.x)
        mark(scene.grid, cell, cell)


@ti.func
def sample_at(seg: ti.template(), cell, f, t, width, x, slope):
    """Sample of a segment, without a step."""
    return ti.Struct(
        s=seg.s, k=0, box=seg.box, scale=seg.scale, cell=cell, f=f, t=seg.near + t, width=width, x=x, slope=slope
    )


# One ray, start to end.


@ti.func
def by_steps(scene: ti.template(), ray: ti.template(), state: ti.template(), back: ti.template(), total: ti.template()):
    """Traversal by steps of a whole ray."""
    along_steps(scene, ray, 0, 0, state, back, total)


@ti.func
def beside_state(scene: ti.template(), ray: ti.template()):
    """What an integrand carries beside its state: of a pull, of a push, or nothing."""
    if ti.static(scene.task == PULL):
        return scene.integrand.start_pull(scene, ray)
    elif ti.static(scene.task == PUSH):
        return scene.integrand.start_push(scene, ray)
    else:
        return ti.Struct(none=0)


@ti.func
def go_along(scene: ti.template(), r, slot, dt, min_transmittance, min_weight, background):
    """Ray r by the scene's task."""
    ray = ray_of(scene, r, dt, min_transmittance, min_weight, behind_of(scene.rays, background))
    state, back, total = scene.integrand.start(scene, ray), beside_state(scene, ray), carried(scene)
    if ti.static(scene.task == PULL):
        total.slot = slot
    scene.traverse(scene, ray, state, back, total)
    if ti.static(scene.task == VALUE):
        scene.integrand.finish(scene, ray, state)
    if ti.static(scene.task == PUSH):
        scene.integrand.finish_push(scene, ray, state, back)
    if ti.static(scene.task == PULL and scene.by_rays):
        write_gradients(scene, r, total)


@ti.func
def write_gradients(scene: ti.template(), r, total: ti.template()):
    """Gradients by the geometry of ray r."""
    scene.moved.d_origin[r], scene.moved.d_index_direction[r] = total.o, total.d
    scene.moved.d_view_direction[r], scene.moved.d_dt[r] = total.view, total.dt
    if ti.static(scene.variant.clipped):
        scene.moved.d_place_origin[r], scene.moved.d_place_way[r] = total.place, total.way
    if ti.static(scene.variant.mode.shaded):
        scene.moved.d_iso[r], scene.moved.d_frame[r] = total.iso, total.frame


@ti.kernel
def integrate(
    scene: ti.template(),
    count: int,  # Scene, rays
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):
    """What the scene's integrand makes of each ray."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        scene.go(scene, r, 0, dt, min_transmittance, min_weight, background)


@ti.kernel
def integrate_pull(
    scene: ti.template(),
    count: int,  # Scene, rays
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):
    """Its adjoint: gradients of samples and table, by slots, and those of the rays."""
    if ti.static(scene.by_volume and runtime.runs_on_cpu()):
        for i in range(TASK_STRIDE * scene.grid.slots):
            if i % TASK_STRIDE == 0:
                slot, run_length = i // TASK_STRIDE, RAYS_PER_CHUNK * scene.grid.slots
                for run in range((count + run_length - 1) // run_length):
                    first = (run * scene.grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        scene.go(scene, r, slot, dt, min_transmittance, min_weight, background)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            scene.go(scene, r, r % ti.static(max(scene.grid.slots, 1)), dt, min_transmittance, min_weight, background)


@ti.kernel
def integrate_push(
    scene: ti.template(),
    count: int,  # Scene, rays
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):
    """Its tangent, all columns in one pass."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        scene.go(scene, r, 0, dt, min_transmittance, min_weight, background)
