"""Line integral of the value along a ray, and its mean, by two Gauss-Legendre points a cell.

Along a ray a trilinear field is a cubic in each cell, for which two points are exact: with an activation that is the
identity, or relu where no number is negative, there is no step and no error of one. Of any other activation's value it
is the Gauss-Legendre rule of fourth order in the size of cells, and gradients are those of the rule.

Letters: t0, t1 where a ray enters and leaves a cell, h = t1 - t0, I the integral, L the length in the box. The integral
is I in each channel, T = e^-I; the mean is I / L, with T 0 where the ray meets the box, else 1.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear, weights
from raymarch.kernels.field.gather import gather
from raymarch.kernels.integrator.mode import MOST, sloping
from raymarch.kernels.integrator.sample_adjoint import mark
from raymarch.kernels.numeric import at_most, exp
from raymarch.kernels.parallel import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.cells import cell_at, exit_of, first_sample, is_inside, next_cell, segment_of
from raymarch.kernels.rays.nested import box_of, scale_of

GAUSS = 0.28867513459481287  # of h, from the middle of a cell to each point: 1 / (2 sqrt 3)


@ti.func
def length_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r):
    """L [world unit]."""
    total = ti.cast(0.0, float)
    for s in range(ti.static(grid.segments)):
        _entry, _way, length = segment_of(grid, rays, variant, r, s)
        total += ti.max(length, 0.0) / scale_of(box_of(grid, s))
    return total


@ti.func
def points_of(entry, way, cell, t0, t1):
    """Both points' positions in the cell, and half of h."""
    middle, apart = entry + 0.5 * (t0 + t1) * way - cell, GAUSS * (t1 - t0) * way
    return middle - apart, middle + apart, 0.5 * (t1 - t0)


@ti.func
def image_of(variant: ti.template(), total, length):
    """Image (4,) of an integral and the length it is over."""
    value, T = total, at_most(exp(-total), MOST)
    if ti.static(variant.mode.mean):
        value, T = ti.cast(0.0, float), ti.cast(1.0, float)
        if length > 0:
            value, T = total / length, ti.cast(0.0, float)
    return ti.Vector([value, value, value, T])


@ti.kernel
def line_integral(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """image = the integral or the mean three times, and T."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top, total = grid.shift[None], grid.max_index[None], ti.cast(0.0, float)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                both = activation.density(variant, trilinear(v, f0) + shift)
                both += activation.density(variant, trilinear(v, f1) + shift)
                total += half * both
                t, cell = out, next_cell(cell, way, axis)
                on = axis >= 0 and t < length and is_inside(cell, top)
        rays.image[r] = image_of(variant, total * grid.inverse_scale[None], length_of(grid, rays, variant, r))


@ti.func
def gain_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r):
    """d_I of ray r from d_image, by the image as it was marched."""
    d_image = rays.image.grad[r]
    gain = d_image[0] + d_image[1] + d_image[2]
    if ti.static(variant.mode.mean):
        gain /= ti.max(length_of(grid, rays, variant, r), 1e-30)
    else:
        gain -= sloping(rays.image[r][3]) * d_image[3]
    return gain


@ti.func
def adjoint_of_ray(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot):
    """What one ray gives the gradient of density, `line_integral`'s loop again."""
    shift, top = grid.shift[None], grid.max_index[None]
    gain = gain_of(grid, rays, variant, r) * grid.inverse_scale[None]
    for s in range(ti.static(grid.segments)):
        entry, way, length = segment_of(grid, rays, variant, r, s)
        first = first_sample(grid, s)
        cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
        while on:
            out, axis = exit_of(entry, way, cell, length)
            out = ti.max(out, t)
            f0, f1, half = points_of(entry, way, cell, t, out)
            place = where(grid, cell + first)
            v = corners_of_cell(grid.density, place)
            d_point = gain * half
            d0 = d_point * activation.density_slope(variant, trilinear(v, f0) + shift)
            d1 = d_point * activation.density_slope(variant, trilinear(v, f1) + shift)
            scatter_corners(grid.d_density, slot, place, d0 * weights(f0) + d1 * weights(f1))
            mark(grid, place, place)
            t, cell = out, next_cell(cell, way, axis)
            on = axis >= 0 and t < length and is_inside(cell, top)


@ti.kernel
def line_integral_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """d_density += (d image / d density)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots)


@ti.kernel
def line_integral_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """dot_image[r, e] = (d image / d density) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top, total = grid.shift[None], grid.max_index[None], ti.cast(0.0, float)
        dot_total = ti.Vector.zero(float, dot_grid.columns)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                x0, x1 = trilinear(v, f0) + shift, trilinear(v, f1) + shift
                total += half * (activation.density(variant, x0) + activation.density(variant, x1))
                by0 = half * activation.density_slope(variant, x0)
                by1 = half * activation.density_slope(variant, x1)
                dot0, dot1 = gather(dot_grid.density, cell + first, f0), gather(dot_grid.density, cell + first, f1)
                for e in range(dot_grid.columns):
                    dot_total[e] += by0 * dot0[e] + by1 * dot1[e]
                t, cell = out, next_cell(cell, way, axis)
                on = axis >= 0 and t < length and is_inside(cell, top)
        length = length_of(grid, rays, variant, r)
        T = image_of(variant, total * grid.inverse_scale[None], length)[3]
        for e in range(dot_grid.columns):
            dot = dot_total[e] * grid.inverse_scale[None]
            dot_image[r, e] = dot_of(variant, dot, ti.cast(0.0, float), ti.cast(0.0, float), T, length)


@ti.func
def dot_of(variant: ti.template(), dot_total, dot_length, total, T, length):
    """Tangent (4,) of `image_of`."""
    dot, dot_T = dot_total, -sloping(T) * dot_total
    if ti.static(variant.mode.mean):
        dot, dot_T = ti.cast(0.0, float), ti.cast(0.0, float)
        if length > 0:
            dot = (dot_total - total / length * dot_length) / length
    return ti.Vector([dot, dot, dot, dot_T])
