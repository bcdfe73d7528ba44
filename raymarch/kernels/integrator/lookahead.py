"""Remaining-radiance term of the adjoint: what the image still gains by the light that is left behind a sample.

`remaining` and `carry` go along a ray together: remaining / carry is what the image gains by a unit of T. A mode with a
`power` has it all from the image it made: carry is T, and `remaining` starts as all that depends on it. Any other mode
looks ahead wherever less than `LOOKAHEAD_FRACTION` of a change of T would come through a sample; one that saturates,
reach the next.
"""

from raymarch.engine import ti
from raymarch.kernels.field.tables import classify
from raymarch.kernels.integrator.mode import background_of, composite, contributes, is_alive, unclamped
from raymarch.kernels.integrator.sample import colour_at, fetch, locate, ray_segment
from raymarch.kernels.rays.rays import empty_steps, place_of

LOOKAHEAD_FRACTION = 0.1  # of the accuracy is lost as its inverse


@ti.func
def remaining_at_first(rays: ti.template(), variant: ti.template(), r, background):
    """`remaining` before the first sample, and `carry`: 0 where it must be looked for."""
    d_image = rays.image.grad[r]
    remaining, carry = rays.image[r].dot(d_image), ti.cast(1.0, float)
    if ti.static(variant.mode.power == 0):
        remaining = unclamped(rays.image[r][ti.static(rays.colours)]) * background_gain(variant, d_image, background)
    elif ti.static(variant.mode.looks_ahead):
        carry = ti.cast(0.0, float)
    return remaining, carry


@ti.func
def background_gain(variant: ti.template(), d_image, background):
    """Gain of the image by a unit of the T behind the box."""
    seen = background_of(variant, background)
    light = d_image[0] * seen[0]
    for c in ti.static(range(1, seen.n)):
        light += d_image[c] * seen[c]
    return d_image[ti.static(seen.n)] + light


@ti.func
def lookahead_gain(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    s,
    k,
    T,
    dt,
    min_transmittance,
    min_weight,
    background,
):
    """Gain of the image by a unit of T before sample k of segment s: the march's tangent in T alone, until it fades."""
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    d_image = rays.image.grad[r]
    d_colour = d_image
    d_colour[ti.static(rays.colours)] = 0.0
    gain, dot_T = ti.cast(0.0, float), ti.cast(1.0, float)
    for segment in range(s, ti.static(grid.segments)):
        entry, d, length, Y, step, phase, n = ray_segment(grid, rays, variant, r, segment, dt)
        while k <= n and length > 0 and dot_T != 0 and is_alive(variant, T, min_transmittance):
            p, width = place_of(variant, entry, d, length, step, phase, k)
            skip = empty_steps(grid, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell, f = locate(grid, p)
                raw = fetch(grid, cell, f)
                tau, raw = classify(rays, variant, raw, shift, inverse_scale, width)
                weight, T_after = composite(variant, T, tau)
                dot_weight, dot_T_after = variant.mode.tangent(T, tau, dot_T, ti.cast(0.0, float))
                if dot_weight != 0 and contributes(variant, weight, min_weight):
                    gain += dot_weight * d_colour.dot(colour_at(grid, variant, cell, f, Y, raw))
                T, dot_T = T_after, dot_T_after
                k += 1
        k = 0
    return gain + dot_T * background_gain(variant, d_image, background)


@ti.func
def remaining_again(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    ahead: ti.template(),
    T,
    min_weight,
    remaining,
    carry,
):
    """`remaining` and `carry` of a mode that looks ahead, where T is left: as they are, or found anew if faded.

    Where that is says `ahead`: (r, s, number of the next sample, dt, min_transmittance, background).
    """
    if ti.abs(carry) < LOOKAHEAD_FRACTION:
        r, s, k, dt, min_transmittance, background = ahead
        remaining = lookahead_gain(grid, rays, variant, r, s, k, T, dt, min_transmittance, min_weight, background)
        carry = ti.cast(1.0, float)
    return remaining, carry


@ti.func
def pass_sample(variant: ti.template(), T, tau, weight, d_weight, remaining, carry):
    """`remaining` and `carry` behind a sample."""
    if ti.static(variant.mode.power == 1):
        remaining -= weight * d_weight
    elif ti.static(variant.mode.looks_ahead):
        dot_weight, dot_T_after = variant.mode.tangent(T, tau, carry, ti.cast(0.0, float))
        remaining -= dot_weight * d_weight
        carry = dot_T_after
    return remaining, carry


@ti.func
def optical_depth_gradient(variant: ti.template(), T, tau, T_after, d_weight, remaining, carry):
    """Gradient by optical depth, d_tau of a sample, `remaining` and `carry` being those behind it."""
    gain = remaining
    if ti.static(variant.mode.looks_ahead):
        gain = ti.select(carry != 0, remaining / ti.select(carry != 0, carry, 1.0), 0.0)
    return variant.mode.adjoint(T, tau, T_after, d_weight, gain)
