"""Ray marching: compositing along rays; its adjoint is `march_adjoint`, its tangent one of the `loops`.

Letters: sigma extinction [1/world unit], tau = sigma width the optical depth of a step, T transmittance, weight what a
sample adds of its colour (`compositing` has the rules), t distance, dt step; gradients are d_ + name. Quadrature:
midpoints of steps dt from `near`, and one shorter last step, so that the widths add up to far - near. Max 1995,
"Optical models for direct volume rendering".

`image[r]` holds the colour, background included, and the transmittance left behind the volume.
"""

from raymarch.engine import ti
from raymarch.kernels.field.tables import classify
from raymarch.kernels.integrator.mode import background_of, behind_of, composite, contributes, is_alive
from raymarch.kernels.integrator.sample import (
    colour_at,
    densities_of_group,
    depths_of_group,
    fetch,
    group_size,
    keep_colour,
    keep_densities,
    keeps_samples,
    locate,
    march_long_groups,
    place_in_group,
    ray_segment,
    reads_density_alone,
    uses_groups,
    uses_long_groups,
    weighted_colour,
)
from raymarch.kernels.numeric import put_numbers
from raymarch.kernels.rays.rays import place_of, steps_to_skip


def uses_pairs(grid, variant) -> bool:
    """Whether whole steps go in pairs or long groups: where a sample is one read, and all steps are as long."""
    return (grid.packs or reads_density_alone(grid, variant)) and not variant.jittered and not variant.mode.looks_ahead


@ti.func
def march_group(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    place: ti.template(),
    looked,
    Y,
    shift,
    inverse_scale,
    min_transmittance,
    min_weight,
    k: ti.template(),
    kept: ti.template(),
    T: ti.template(),
    light: ti.template(),
):
    """Compositing of a group of samples of ray r, the `looked`-th that it looks at, as long as it goes on.

    Goes on with the number of the next sample, that of colours kept, T and the sum of weight times colour.
    """
    _entry, _d, _length, _step, _phase, first, end = place
    raws = densities_of_group(grid, variant, place)
    taus, passing = depths_of_group(variant, place, raws, shift, inverse_scale)
    if ti.static(keeps_samples(grid, rays, variant)):
        keep_densities(rays, r, first, looked, raws)
    last = ti.min(first + ti.static(group_size()), end)
    while k < last and is_alive(variant, T, min_transmittance):
        weight, T_after = variant.mode.composite(T, taus[k - first], passing[k - first])
        if contributes(variant, weight, min_weight):
            p, _width = place_in_group(variant, place, k - first)
            cell, f = locate(grid, p)
            colour = colour_at(grid, variant, cell, f, Y, ti.Vector.zero(float, grid.lanes))
            light += weight * colour
            if ti.static(keeps_samples(grid, rays, variant)):
                keep_colour(rays, r, k, kept, colour)
                kept += 1
        T = T_after
        k += 1


@ti.func
def march_pairs(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    entry,
    d,
    step,
    end,
    Y,
    shift,
    inverse_scale,
    min_transmittance,
    min_weight,
    k: ti.template(),
    T: ti.template(),
    sum_even: ti.template(),
    sum_odd: ti.template(),
):
    """Compositing of a run's whole steps in pairs, so that neither sample waits for the other's memory.

    Goes on with the number of the next sample, T and the sums of weight times colour.
    """
    T_between, before = T, sum_odd
    while k + 1 < end and is_alive(variant, T, min_transmittance):
        t, t2 = (k + 0.5) * step, (k + 1.5) * step
        cell, f = locate(grid, entry + t * d)
        cell2, f2 = locate(grid, entry + t2 * d)
        raw, raw2 = fetch(grid, cell, f), fetch(grid, cell2, f2)
        tau, raw = classify(rays, variant, raw, shift, inverse_scale, step)
        tau2, raw2 = classify(rays, variant, raw2, shift, inverse_scale, step)
        weight, T_between = composite(variant, T, tau)
        weight2, T_after = composite(variant, T_between, tau2)
        sum_even += weighted_colour(grid, variant, cell, f, Y, raw, weight, min_weight)
        before = sum_odd
        sum_odd += weighted_colour(grid, variant, cell2, f2, Y, raw2, weight2, min_weight)
        T = T_after
        k += 2
    if not is_alive(variant, T_between, min_transmittance):  # the ray ended within the pair
        T, sum_odd = T_between, before


@ti.func
def march_segment(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    s,
    dt,
    min_transmittance,
    min_weight,
    T: ti.template(),
    sum_even: ti.template(),
    sum_odd: ti.template(),
):
    """Compositing along segment s of ray r: goes on with T and the sums of weight times colour."""
    entry, d, length, Y, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    k, looked, kept = 0, 0, 0
    while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
        ahead, _ = place_of(variant, entry, d, length, step, phase, k)
        empty, full = steps_to_skip(grid, per_index, ahead, d, step)
        k += empty
        end = ti.min(k + full, n + 1)
        if ti.static(uses_pairs(grid, variant)):
            march_run = ti.static(march_long_groups if uses_long_groups(grid, variant) else march_pairs)
            march_run(
                grid,
                rays,
                variant,
                entry,
                d,
                step,
                ti.min(end, n),
                Y,
                shift,
                inverse_scale,
                min_transmittance,
                min_weight,
                k,
                T,
                sum_even,
                sum_odd,
            )
        while k < end and is_alive(variant, T, min_transmittance):
            if ti.static(uses_groups(grid, variant)):
                first = k  # a copy, which stays
                place = (entry, d, length, step, phase, first, end)
                march_group(
                    grid,
                    rays,
                    variant,
                    r,
                    place,
                    looked,
                    Y,
                    shift,
                    inverse_scale,
                    min_transmittance,
                    min_weight,
                    k,
                    kept,
                    T,
                    sum_even,
                )
                looked += ti.min(ti.static(group_size()), end - first)
            else:
                p, width = place_of(variant, entry, d, length, step, phase, k)
                cell, f = locate(grid, p)
                tau, raw = classify(rays, variant, fetch(grid, cell, f), shift, inverse_scale, width)
                weight, T_after = composite(variant, T, tau)
                sum_even += weighted_colour(grid, variant, cell, f, Y, raw, weight, min_weight)
                T = T_after
                k += 1


@ti.kernel
def march(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):
    """image = sum_k weight_k colour_k + T background; no colour under min_weight, no sample under min_transmittance."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T = ti.cast(1.0, float)
        sum_even, sum_odd = ti.Vector.zero(float, grid.lanes), ti.Vector.zero(float, grid.lanes)
        if ti.static(grid.boxes == 1):
            march_segment(grid, rays, variant, r, 0, dt, min_transmittance, min_weight, T, sum_even, sum_odd)
        else:
            for s in range(ti.static(grid.segments)):
                march_segment(grid, rays, variant, r, s, dt, min_transmittance, min_weight, T, sum_even, sum_odd)
        put_numbers(rays.sum_even, r, sum_even)
        put_numbers(rays.sum_odd, r, sum_odd)
        rays.image[r][ti.static(rays.colours)] = T
    for r in range(count):
        light, T = rays.sum_even[r] + rays.sum_odd[r], rays.image[r][ti.static(rays.colours)]
        seen = background_of(variant, behind_of(rays, background))
        for c in ti.static(range(rays.colours)):
            rays.image[r][c] = light[c] + T * seen[c]
