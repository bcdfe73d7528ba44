"""Adjoint of ray marching: the loop of `march` again, with its letters; gradients are d_ + name.

Each ray adds to its slot's own buffer what its samples give the gradient of density and features.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field.bricks import is_sparse
from raymarch.kernels.field.gather import is_flat
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.lookahead import remaining_again, remaining_at_first
from raymarch.kernels.integrator.march import uses_pairs
from raymarch.kernels.integrator.mode import behind_of, is_alive
from raymarch.kernels.integrator.sample import (
    LONG_GROUP_SAMPLES,
    NO_PLACE,
    densities_again,
    fetch,
    group_size,
    locate,
    optics_of,
    optics_of_group,
    place_in_group,
    ray_segment,
    uses_groups,
)
from raymarch.kernels.integrator.sample_adjoint import (
    adjoint_of_classified,
    adjoint_of_packed,
    adjoint_of_sample,
    gradient_fraction,
    gradient_fraction_of_sample,
    segment_from_camera,
)
from raymarch.kernels.numeric import TASK_STRIDE, put_numbers
from raymarch.kernels.rays.dealt_rays import rays_per_chunk
from raymarch.kernels.rays.rays import place_of, steps_to_skip


@ti.func
def adjoint_of_pairs(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    ray: ti.template(),
    slot,
    line: ti.template(),
    end,
    Y,
    shift,
    inverse_scale,
    d_colour,
    min_weight,
    k: ti.template(),
    T: ti.template(),
    remaining: ti.template(),
    carry: ti.template(),
    sum_even: ti.template(),
    sum_odd: ti.template(),
):
    """Adjoint of a run's whole steps in pairs, as `march.march_pairs`, and the marks of the blocks they are in.

    `ray`: (r, s, dt, min_transmittance, background); `line`: (entry, d, step, and what `segment_from_camera` gives).
    Goes on with the number of the next sample and what adds up along the ray.
    """
    r, s, dt, min_transmittance, background = ray
    entry, d, step, begin, unit = line
    T_between = T
    while k + 1 < end and is_alive(variant, T, min_transmittance):
        t, t2 = (k + 0.5) * step, (k + 1.5) * step
        cell, f = locate(grid, entry + t * d)
        cell2, f2 = locate(grid, entry + t2 * d)
        raw, raw2 = fetch(grid, cell, f), fetch(grid, cell2, f2)
        tau, slope, e = optics_of(variant, raw[ti.static(grid.lanes - 1)], shift, inverse_scale, step)
        tau2, slope2, e2 = optics_of(variant, raw2[ti.static(grid.lanes - 1)], shift, inverse_scale, step)
        T_between, remaining, carry, more = adjoint_of_packed(
            grid,
            rays,
            variant,
            (r, s, k + 1, dt, min_transmittance, background),
            slot,
            cell,
            f,
            raw,
            Y,
            tau,
            slope,
            e,
            T,
            remaining,
            carry,
            d_colour,
            min_weight,
            1.0,
            gradient_fraction(rays, variant, begin, unit, t),
        )
        sum_even += more
        on = ti.select(is_alive(variant, T_between, min_transmittance), ti.cast(1.0, float), 0.0)
        T, remaining, carry, more = adjoint_of_packed(
            grid,
            rays,
            variant,
            (r, s, k + 2, dt, min_transmittance, background),
            slot,
            cell2,
            f2,
            raw2,
            Y,
            tau2,
            slope2,
            e2,
            T_between,
            remaining,
            carry,
            d_colour,
            min_weight,
            on,
            gradient_fraction(rays, variant, begin, unit, t2),
        )
        sum_odd += more
        mark(grid, cell, cell2)
        k += 2
    if not is_alive(variant, T_between, min_transmittance):  # the ray ended within the pair
        T = T_between


def reads_ahead(grid) -> bool:
    """Whether an adjoint reads a long group before it adds to memory: on a CPU, where the grid lies flat. In blocks
    addresses would be found twice, which takes what reading ahead gains."""
    return runtime.runs_on_cpu() and grid.packs and is_flat(grid.packed) and not is_sparse(grid.table)


@ti.func
def adjoint_of_long_groups(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    ray: ti.template(),
    slot,
    line: ti.template(),
    end,
    Y,
    shift,
    inverse_scale,
    d_colour,
    min_weight,
    k: ti.template(),
    T: ti.template(),
    remaining: ti.template(),
    carry: ti.template(),
    sum_even: ti.template(),
    sum_odd: ti.template(),
):
    """As `adjoint_of_pairs`, whose bits it has: cells, values and optical depths of a long group are found first.

    What one sample adds to memory waits for its exponential. A processor that has to hold all of a sample until then
    has no room to read the next; of samples that are read before there is less to hold.
    """
    r, s, dt, min_transmittance, background = ray
    entry, d, step, begin, unit = line
    stop = k + ((end - k) & -2)
    while k < stop and is_alive(variant, T, min_transmittance):
        first, last = k, ti.min(k + LONG_GROUP_SAMPLES, stop)  # copies, which stay
        cells, f = ti.Matrix.zero(ti.i32, 3, LONG_GROUP_SAMPLES + 1), ti.Matrix.zero(float, 3, LONG_GROUP_SAMPLES)
        raws, densities = ti.Matrix.zero(float, LONG_GROUP_SAMPLES, 4), ti.Vector.zero(float, LONG_GROUP_SAMPLES)
        taus, passing = ti.Vector.zero(float, LONG_GROUP_SAMPLES), ti.Vector.zero(float, LONG_GROUP_SAMPLES)
        slopes = ti.Vector.zero(float, LONG_GROUP_SAMPLES)
        for j in range(LONG_GROUP_SAMPLES):
            p = entry + ((first + j + 0.5) * step) * d
            cell = ti.cast(p, ti.i32)
            for a in ti.static(range(3)):
                f[a, j] = p[a] - cell[a]
                cells[a, j] = cell[a]
            cells[0, j] = ti.select(first + j < last, cell[0], NO_PLACE)
        cells[0, LONG_GROUP_SAMPLES] = NO_PLACE
        i = 0
        while cells[0, i] != NO_PLACE:
            raw = fetch(grid, column(cells, i), column(f, i))
            for c in ti.static(range(4)):
                raws[i, c] = raw[c]
            densities[i] = raw[3]
            i += 1
        for j in range(LONG_GROUP_SAMPLES):
            taus[j], slopes[j], passing[j] = optics_of(variant, densities[j], shift, inverse_scale, step)
        while k < last and is_alive(variant, T, min_transmittance):
            j = k - first
            cell = column(cells, j)
            T, remaining, carry, more = adjoint_of_packed(
                grid,
                rays,
                variant,
                (r, s, k + 1, dt, min_transmittance, background),
                slot,
                cell,
                column(f, j),
                ti.Vector([raws[j, 0], raws[j, 1], raws[j, 2], raws[j, 3]]),
                Y,
                taus[j],
                slopes[j],
                passing[j],
                T,
                remaining,
                carry,
                d_colour,
                min_weight,
                1.0,
                gradient_fraction(rays, variant, begin, unit, (k + 0.5) * step),
            )
            if j & 1:
                sum_odd += more
            else:
                sum_even += more
            mark(grid, cell, cell)
            k += 1


@ti.func
def column(numbers: ti.template(), j):
    """Column j of an array of three rows."""
    return ti.Vector([numbers[0, j], numbers[1, j], numbers[2, j]])


@ti.func
def adjoint_of_segment(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    s,
    slot,
    segment: ti.template(),
    dt,
    min_transmittance,
    min_weight,
    background,
    d_colour,
    T: ti.template(),
    remaining: ti.template(),
    carry: ti.template(),
    sum_even: ti.template(),
    sum_odd: ti.template(),
):
    """Adjoint of segment s of ray r, `march_segment`'s loop again; its last arguments are those behind it, then."""
    entry, d, length, Y, step, phase, n = segment
    begin, unit = segment_from_camera(grid, rays, variant, r, s)
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    k, looked, kept = 0, 0, 0
    while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
        ahead, _ = place_of(variant, entry, d, length, step, phase, k)
        empty, full = steps_to_skip(grid, per_index, ahead, d, step)
        k += empty
        end = ti.min(k + full, n + 1)
        if ti.static(uses_pairs(grid, variant) and not variant.mode.classifies):
            adjoint_of_run = ti.static(adjoint_of_long_groups if reads_ahead(grid) else adjoint_of_pairs)
            adjoint_of_run(
                grid,
                rays,
                variant,
                (r, s, dt, min_transmittance, background),
                slot,
                (entry, d, step, begin, unit),
                ti.min(end, n),
                Y,
                shift,
                inverse_scale,
                d_colour,
                min_weight,
                k,
                T,
                remaining,
                carry,
                sum_even,
                sum_odd,
            )
        while k < end and is_alive(variant, T, min_transmittance):
            if ti.static(uses_groups(grid, variant)):
                first, last = k, ti.min(k + ti.static(group_size()), end)  # copies, which stay
                place = (entry, d, length, step, phase, first, end)
                raws = densities_again(grid, rays, variant, r, looked, place)
                taus, slopes, passing = optics_of_group(variant, place, raws, shift, inverse_scale)
                looked += last - first
                while k < last and is_alive(variant, T, min_transmittance):
                    if ti.static(variant.mode.looks_before):
                        remaining, carry = remaining_again(
                            grid,
                            rays,
                            variant,
                            (r, s, k, dt, min_transmittance, background),
                            T,
                            min_weight,
                            remaining,
                            carry,
                        )
                    p, _width = place_in_group(variant, place, k - first)
                    share = gradient_fraction_of_sample(rays, variant, begin, unit, length, step, phase, k)
                    T, remaining, carry = adjoint_of_sample(
                        grid,
                        rays,
                        variant,
                        (r, s, k + 1, dt, min_transmittance, background),
                        slot,
                        r,
                        k,
                        kept,
                        p,
                        Y,
                        taus[k - first],
                        slopes[k - first],
                        passing[k - first],
                        T,
                        remaining,
                        carry,
                        d_colour,
                        min_weight,
                        share,
                    )
                    k += 1
            else:
                if ti.static(variant.mode.looks_before):
                    remaining, carry = remaining_again(
                        grid,
                        rays,
                        variant,
                        (r, s, k, dt, min_transmittance, background),
                        T,
                        min_weight,
                        remaining,
                        carry,
                    )
                p, width = place_of(variant, entry, d, length, step, phase, k)
                share = gradient_fraction_of_sample(rays, variant, begin, unit, length, step, phase, k)
                cell, f = locate(grid, p)
                raw = fetch(grid, cell, f)
                if ti.static(variant.mode.classifies):
                    T, remaining, carry = adjoint_of_classified(
                        grid,
                        rays,
                        variant,
                        (r, s, k + 1, dt, min_transmittance, background),
                        slot,
                        cell,
                        f,
                        raw[3] + shift,
                        inverse_scale,
                        width,
                        T,
                        remaining,
                        carry,
                        d_colour,
                        min_weight,
                        share,
                    )
                else:
                    tau, slope, e = optics_of(variant, raw[ti.static(grid.lanes - 1)], shift, inverse_scale, width)
                    T, remaining, carry, more = adjoint_of_packed(
                        grid,
                        rays,
                        variant,
                        (r, s, k + 1, dt, min_transmittance, background),
                        slot,
                        cell,
                        f,
                        raw,
                        Y,
                        tau,
                        slope,
                        e,
                        T,
                        remaining,
                        carry,
                        d_colour,
                        min_weight,
                        1.0,
                        share,
                    )
                    sum_even += more
                mark(grid, cell, cell)
                k += 1


@ti.func
def adjoint_of_ray(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    slot,
    dt,
    min_transmittance,
    min_weight,
    background,
):
    """Adjoint of one ray; `remaining`: radiance still to come, with background, times d_image."""
    entry, d, length, Y, step, phase, n = ray_segment(grid, rays, variant, r, 0, dt)
    first = (entry, d, length, Y, step, phase, n)
    T = ti.cast(1.0, float)
    sum_even, sum_odd = ti.Vector.zero(float, grid.lanes), ti.Vector.zero(float, grid.lanes)
    d_image = rays.image.grad[r]
    d_colour = d_image
    d_colour[ti.static(rays.colours)] = 0.0
    remaining, carry = remaining_at_first(rays, variant, r, background)
    if ti.static(grid.boxes == 1):
        adjoint_of_segment(
            grid,
            rays,
            variant,
            r,
            0,
            slot,
            first,
            dt,
            min_transmittance,
            min_weight,
            background,
            d_colour,
            T,
            remaining,
            carry,
            sum_even,
            sum_odd,
        )
    else:
        for s in range(ti.static(grid.segments)):
            adjoint_of_segment(
                grid,
                rays,
                variant,
                r,
                s,
                slot,
                ray_segment(grid, rays, variant, r, s, dt),
                dt,
                min_transmittance,
                min_weight,
                background,
                d_colour,
                T,
                remaining,
                carry,
                sum_even,
                sum_odd,
            )
    put_numbers(rays.sum_even, r, sum_even)
    put_numbers(rays.sum_odd, r, sum_odd)


@ti.kernel
def march_adjoint(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):
    """d_density, d_features += (d image / d them)' d_image, every so many rays to the next slot's own buffer."""
    if ti.static(runtime.runs_on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot, behind, chunk = i // TASK_STRIDE, behind_of(rays, background), rays_per_chunk(rays, variant)
                for run in range((count + chunk * grid.slots - 1) // (chunk * grid.slots)):
                    first = (run * grid.slots + slot) * chunk
                    for r in range(first, ti.min(first + chunk, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot, dt, min_transmittance, min_weight, behind)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            behind = behind_of(rays, background)
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots, dt, min_transmittance, min_weight, behind)
