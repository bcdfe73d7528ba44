"""The march as a function of where the rays run: its adjoint and its tangents, by origin, direction and step length.

Same loop and letters as `march`; the ray is replayed, nothing is kept per sample. Positions move in index space, where
the box stays 0..top, so a moved box is a moved ray. Directions enter twice: as the way of the ray, and as the heading
in which the harmonics are read. Kinks, where a derivative is one-sided: cell faces, the box's edges, T at `stop`, a
weight at `least`, the kinks of relu-like activations; the number of whole steps is held.
"""

import taichi as ti

from raymarch.kernels import activation
from raymarch.kernels.gather import cell_of, gather_slope
from raymarch.kernels.harmonics import basis_slope
from raymarch.kernels.march import in_index_space
from raymarch.kernels.numeric import exp
from raymarch.kernels.traverse import clip_faces, empty_steps


@ti.func
def colour_slopes(grid: ti.template(), reading: ti.template(), cell, f, Y, slope_of_Y):
    """Colour, and its derivative by position in index space and by heading, both (3, 3)."""
    v, vx, vy, vz = gather_slope(grid.features, cell, f)
    total = ti.Vector.zero(float, 3)
    by_position, by_heading = ti.Matrix.zero(float, 3, 3), ti.Matrix.zero(float, 3, 3)
    for k in ti.static(range((grid.degree + 1) ** 2)):
        for c in ti.static(range(3)):
            total[c] += Y[k] * v[3 * k + c]
            by_position[c, 0] += Y[k] * vx[3 * k + c]
            by_position[c, 1] += Y[k] * vy[3 * k + c]
            by_position[c, 2] += Y[k] * vz[3 * k + c]
            for a in ti.static(range(3)):
                by_heading[c, a] += slope_of_Y[k, a] * v[3 * k + c]
    colour = activation.colour(reading, total)
    s = activation.colour_slope(reading, colour)
    for c, a in ti.static(ti.ndrange(3, 3)):
        by_position[c, a] *= s[c]
        by_heading[c, a] *= s[c]
    return colour, by_position, by_heading


@ti.kernel
def geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(), reading: ti.template(), count: int, dt: float,
    stop: float, least: float, background: ti.math.vec3,
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time: index-space origin and way, heading, dt."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        slope_of_Y = basis_slope(grid.degree, rays.direction[r])
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far, enters, leaves = clip_faces(o, d, top)
        T = ti.cast(1.0, float)
        d_image = rays.image.grad[r]
        d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
        rest = rays.image[r].dot(d_image)
        d_o, d_d, d_heading = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        d_near, d_far, d_dt = ti.cast(0.0, float), ti.cast(0.0, float), ti.cast(0.0, float)
        k, n = 0, ti.cast((far - near) / dt, ti.i32)
        while k <= n and far > near and T > stop:
            begin = near + k * dt
            width = ti.min(dt, far - begin)
            t = begin + 0.5 * width
            p = ti.max(o + t * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, dt)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                f = p - cell
                x, x0, x1, x2 = gather_slope(grid.density, cell, f)
                x += shift
                sigma = activation.density(reading, x) * per_scale
                e = exp(-sigma * width)
                weight = T * (1.0 - e)
                T *= e
                owed = ti.cast(0.0, float)
                d_p = ti.Vector.zero(float, 3)
                if weight > least:
                    colour, by_position, by_heading = colour_slopes(grid, reading, cell, f, Y, slope_of_Y)
                    owed = colour.dot(d_colour)
                    d_p += weight * (by_position.transpose() @ d_colour)
                    d_heading += weight * (by_heading.transpose() @ d_colour)
                rest -= weight * owed
                d_tau = T * owed - rest
                d_width = d_tau * sigma
                d_p += d_tau * width * per_scale * activation.density_slope(reading, x) * ti.Vector([x0, x1, x2])
                d_t = d_p.dot(d)
                d_o += d_p
                d_d += t * d_p
                if k < n:
                    d_near += d_t
                    d_dt += (k + 0.5) * d_t + d_width
                else:
                    d_near += 0.5 * d_t - d_width
                    d_far += 0.5 * d_t + d_width
                    d_dt += n * (0.5 * d_t - d_width)
                k += 1
        for a in ti.static(range(3)):
            if a == enters:
                d_o[a] -= d_near / d[a]
                d_d[a] -= d_near * near / d[a]
            if a == leaves:
                d_o[a] -= d_far / d[a]
                d_d[a] -= d_far * far / d[a]
        moved.d_origin[r], moved.d_way[r], moved.d_heading[r], moved.d_dt[r] = d_o, d_d, d_heading, d_dt


@ti.kernel
def geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(), reading: ti.template(), count: int, dt: float,
    stop: float, least: float, background: ti.math.vec3,
):  # fmt: skip
    """moved.dot_image[r, c] = (d image / d geometry) of every column c of tangents, all of them in one pass."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        slope_of_Y = basis_slope(grid.degree, rays.direction[r])
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far, enters, leaves = clip_faces(o, d, top)
        T = ti.cast(1.0, float)
        dot_T = ti.Vector.zero(float, moved.columns)
        dot_near, dot_far = ti.Vector.zero(float, moved.columns), ti.Vector.zero(float, moved.columns)
        dot_colour = ti.Matrix.zero(float, moved.columns, 3)
        for a in ti.static(range(3)):
            for c in ti.static(range(moved.columns)):
                if a == enters:
                    dot_near[c] = -(moved.dot_origin[r, c][a] + near * moved.dot_way[r, c][a]) / d[a]
                if a == leaves:
                    dot_far[c] = -(moved.dot_origin[r, c][a] + far * moved.dot_way[r, c][a]) / d[a]
        k, n = 0, ti.cast((far - near) / dt, ti.i32)
        while k <= n and far > near and T > stop:
            begin = near + k * dt
            width = ti.min(dt, far - begin)
            t = begin + 0.5 * width
            p = ti.max(o + t * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, dt)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                f = p - cell
                x, x0, x1, x2 = gather_slope(grid.density, cell, f)
                x += shift
                sigma = activation.density(reading, x) * per_scale
                by_x = per_scale * activation.density_slope(reading, x)
                e = exp(-sigma * width)
                weight = T * (1.0 - e)
                colour = ti.Vector.zero(float, 3)
                by_position, by_heading = ti.Matrix.zero(float, 3, 3), ti.Matrix.zero(float, 3, 3)
                if weight > least:
                    colour, by_position, by_heading = colour_slopes(grid, reading, cell, f, Y, slope_of_Y)
                for c in ti.static(range(moved.columns)):
                    dot_t = dot_near[c] + (k + 0.5) * moved.dot_dt[c]
                    dot_width = moved.dot_dt[c]
                    if k == n:
                        dot_t = 0.5 * (dot_near[c] + dot_far[c] + n * moved.dot_dt[c])
                        dot_width = dot_far[c] - dot_near[c] - n * moved.dot_dt[c]
                    dot_p = moved.dot_origin[r, c] + dot_t * d + t * moved.dot_way[r, c]
                    dot_sigma = by_x * (x0 * dot_p[0] + x1 * dot_p[1] + x2 * dot_p[2])
                    dot_e = -e * (dot_sigma * width + sigma * dot_width)
                    dot_weight = dot_T[c] * (1.0 - e) - T * dot_e
                    lit = dot_weight * colour + weight * (by_position @ dot_p + by_heading @ moved.dot_heading[r, c])
                    for b in ti.static(range(3)):
                        dot_colour[c, b] += lit[b] * (weight > least)
                    dot_T[c] = dot_T[c] * e + T * dot_e
                T *= e
                k += 1
        for c in ti.static(range(moved.columns)):
            image = ti.Vector([dot_colour[c, 0], dot_colour[c, 1], dot_colour[c, 2], 0.0])
            image += dot_T[c] * ti.Vector([background[0], background[1], background[2], 1.0])
            moved.dot_image[r, c] = image
