"""Adjoint of one sample of a march: its part of the gradient of density and colour."""

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import scatter
from raymarch.kernels.field.tables import add_to_knots, extinction, knot_below, shade_of, slope_of
from raymarch.kernels.field.touched import add_features, mark
from raymarch.kernels.integrator.lookahead import optical_depth_gradient, pass_sample, remaining_again
from raymarch.kernels.integrator.mode import contributes
from raymarch.kernels.integrator.sample import colour_again, colour_at, index_ray, locate
from raymarch.kernels.numeric import UNIFORM_SCALE, hash_u32
from raymarch.kernels.rays.dealt_rays import number_of_ray
from raymarch.kernels.rays.rays import box_of, clip, origin_in_box, scale_of, shell_segment, step_at

# Russian roulette of gradients: samples that hardly matter to a pixel are added by chance, an unbiased estimate.
#
# Most samples of a ray have next to no weight, before a surface and behind it, and yet each would add to eight corners
# of memory of its own. One whose influence is under `variant.roulette` has a chance in proportion, `MIN_CHANCE` of one
# at least; what it adds is divided by that, so that the mean over draws is the gradient (Arvo and Kirk 1990, "Particle
# transport and image synthesis"). The remaining radiance, which all samples have a part in, is carried along whole.

MIN_CHANCE = 0.05


@ti.func
def draw_factor(rays: ti.template(), variant: ti.template(), influence, r, k):
    """What the gradient of sample k of ray r is taken times: 1 / chance where it is drawn, 0 where not; 1 without."""
    share = ti.cast(1.0, float)
    if ti.static(variant.roulette > 0):
        if influence < variant.roulette:
            chance = ti.max(influence * ti.static(1.0 / max(variant.roulette, 1e-30)), MIN_CHANCE)
            u = ti.cast(hash_u32(rays.draw[None], number_of_ray(rays, variant, r), k), float) * UNIFORM_SCALE
            share = ti.select(u < chance, 1.0 / chance, 0.0)
    return share


@ti.func
def adjoint_of_packed(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    ahead: ti.template(),
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
    on,
    share,
):
    """Add what one sample whose colour came along gives the gradient, times `on`, 0 or 1; T and `remaining` after it,
    and weight times raw.

    With gradients scaled near the cameras `share` of it is added; what it means to other samples stays whole.

    Factors of 0 and 1 where a `select` would do: that becomes a branch, and ends what the compiler makes vectors of.
    """
    weight, T_after = variant.mode.composite(T, tau, e)
    d_raw = ti.Vector.zero(float, grid.lanes)
    seen = ti.select(contributes(variant, weight, min_weight), on, 0.0)
    shown = seen * weight
    colour = colour_at(grid, variant, cell, f, Y, raw)
    d_weight = seen * d_colour.dot(colour)
    if ti.static(variant.mode.colour):
        d_raw = (shown * Y[0]) * d_colour * activation.colour_slope(variant, colour)
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    if ti.static(variant.mode.looks_behind):
        remaining, carry = remaining_again(grid, rays, variant, ahead, T_after, min_weight, remaining, carry)
    d_raw[ti.static(grid.lanes - 1)] = (
        on * slope * optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    )
    if ti.static(variant.near_scaled):
        d_raw *= share
    scatter(grid.d_packed, slot, cell, f, d_raw)
    return T_after, remaining, carry, shown * raw


@ti.func
def adjoint_of_sample(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    ahead: ti.template(),
    slot,
    r,
    k,
    kept: ti.template(),
    p,
    Y,
    tau,
    slope,
    e,
    T,
    remaining,
    carry,
    d_colour,
    min_weight,
    share,
):
    """Add what sample k of ray r, at p, gives the gradient where colour is stored apart; T and `remaining` after it.

    `kept` of the samples before it had weight, and are counted on. `share` as in `adjoint_of_packed`, and what of it is
    drawn (`roulette`): where nothing is, no memory of the grid is met.
    """
    weight, T_after = variant.mode.composite(T, tau, e)
    d_weight, d_sum, lit = ti.cast(0.0, float), ti.Vector.zero(float, grid.lanes), False
    if contributes(variant, weight, min_weight):
        colour = colour_again(grid, rays, variant, r, k, kept, p, Y)
        kept += 1
        d_weight = d_colour.dot(colour)
        if ti.static(variant.mode.colour):
            d_sum = weight * d_colour * activation.colour_slope(variant, colour)
            lit = True
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    if ti.static(variant.mode.looks_behind):
        remaining, carry = remaining_again(grid, rays, variant, ahead, T_after, min_weight, remaining, carry)
    d_raw = slope * optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    share *= draw_factor(rays, variant, ti.max(ti.abs(weight), slope * T_after), r, k)
    if share > 0.0:
        cell, f = locate(grid, p)
        if lit:
            d_sum *= share
            d_features = ti.Vector.zero(float, grid.features.n)
            for b in ti.static(range((grid.degree + 1) ** 2)):
                for c in ti.static(range(grid.colours)):
                    d_features[grid.colours * b + c] = Y[b] * d_sum[c]
            add_features(grid, slot, cell, f, d_features)
        scatter(grid.d_density, slot, cell, f, share * d_raw)
        mark(grid, cell, cell)
    return T_after, remaining, carry


# Gradients scaled near the cameras: of a sample by min(1, (distance from its camera / a limit)^2), images as they are.
#
# A voxel is met by the more rays of one image the nearer its camera is, their number goes with the inverse square of
# the distance. So what one camera alone sees grows the fastest, and floats before it. Philip and Deschaintre 2023,
# "Floaters no more: radiance field gradient scaling for improved near-camera training". No gradient of any function.


@ti.func
def segment_from_camera(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s):
    """Where segment s of ray r begins, counted from its camera, and the length of its box's unit [world unit]."""
    begin, unit = ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(variant.near_scaled):
        o, d, _ = index_ray(grid, rays, r)
        if ti.static(grid.boxes == 1):
            begin, _ = clip(o, d, grid.max_index[None])
        else:
            box = box_of(grid, s)
            begin, _, _, _ = shell_segment(grid, origin_in_box(grid, o, box), d, s)
            unit = 1.0 / scale_of(box)
        begin = begin * unit + rays.near[None][0]
    return begin, unit


@ti.func
def gradient_fraction(rays: ti.template(), variant: ti.template(), begin, unit, t):
    """Share of its gradient that a sample keeps, t along its segment in its box's unit; 1 where nothing is scaled."""
    share = ti.cast(1.0, float)
    if ti.static(variant.near_scaled):
        far = (begin + unit * t) / rays.near[None][1]
        share = ti.min(far * far, 1.0)
    return share


@ti.func
def gradient_fraction_of_sample(rays: ti.template(), variant: ti.template(), begin, unit, length, step, phase, k):
    """Share of its gradient that sample k of a segment keeps."""
    share = ti.cast(1.0, float)
    if ti.static(variant.near_scaled):
        first, width = step_at(variant, 0.0, length, step, phase, k)
        share = gradient_fraction(rays, variant, begin, unit, first + 0.5 * width)
    return share


# Adjoint of one sample that a transfer function classified: its part of the gradient of density and table.


@ti.func
def adjoint_of_classified(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    ahead: ti.template(),
    slot,
    cell,
    f,
    x,
    inverse_scale,
    width,
    T,
    remaining,
    carry,
    d_colour,
    min_weight,
    share,
):
    """Add what one sample of raw density with its shift x gives the gradients; T, `remaining`, `carry` after it."""
    value, by_x = activation.density_and_slope(variant, x)
    i, beyond = knot_below(rays.table, value * inverse_scale)
    shade = shade_of(rays.table, i, beyond)
    sigma, by_opacity = extinction(rays.table, shade[3])
    tau = sigma * width
    weight, T_after = variant.mode.composite(T, tau, variant.mode.step_transmittance(tau))
    shown, d_weight = ti.cast(0.0, float), ti.cast(0.0, float)
    if contributes(variant, weight, min_weight):
        shown, d_weight = weight, d_colour.dot(shade)
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    if ti.static(variant.mode.looks_behind):
        remaining, carry = remaining_again(grid, rays, variant, ahead, T_after, min_weight, remaining, carry)
    d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    d_shade = shown * d_colour
    d_shade[3] = d_tau * width * by_opacity
    add_to_knots(rays, slot, i, beyond, d_shade)
    d_x = d_shade.dot(slope_of(rays.table, i, value * inverse_scale)) * inverse_scale * by_x
    if ti.static(variant.near_scaled):
        d_x *= share
    scatter(grid.d_density, slot, cell, f, d_x)
    return T_after, remaining, carry
