"""Central differences: gradient of a scalar field at its samples, interpolated between them, and its transpose.

It is continuous where the slope of the trilinear field jumps from cell to cell. Along an axis, f of the way from sample
i to i + 1, it is what the planes of samples i - 1 .. i + 2 add up to, each interpolated in the other two axes, times

    (1 - f) (-1/2, 0, 1/2, 0) + f (0, -1/2, 0, 1/2),    with (0, -1, 1, 0) for a sample on a face of the box

so (F(p + e) - F(p - e)) / 2 of the trilinear field F. With (0, -1, 1, 0) for all samples it is the slope of F itself,
which is what a shading that is not smooth asks for.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import cell_index, is_sparse, sample_index
from raymarch.kernels.field.cell import bilinear
from raymarch.kernels.field.gather import accumulate, gather_slope, lower_corner, steps_of
from raymarch.kernels.field.touched import mark
from raymarch.kernels.light.shading import SMOOTH
from raymarch.kernels.rays.rays import first_of

STENCIL_SAMPLES = 16  # four planes of four samples


@ti.func
def bounds_of(grid: ti.template(), box):
    """First and last sample of a box."""
    first = ti.cast(first_of(grid, box), ti.i32)
    return first, first + ti.cast(grid.max_index[None], ti.i32)


@ti.func
def plane_weights(rays: ti.template(), i, f, first, last):
    """Weight (4,) of each plane of samples in the slope along an axis, and how it changes with f."""
    smooth = rays.shading[None][SMOOTH]
    low, high = ti.Vector([0.0, -1.0, 1.0, 0.0], float), ti.Vector([0.0, -1.0, 1.0, 0.0], float)
    if smooth > 0 and i > first:
        low = ti.Vector([-0.5, 0.0, 0.5, 0.0], float)
    if smooth > 0 and i + 1 < last:
        high = ti.Vector([0.0, -0.5, 0.0, 0.5], float)
    return low + f * (high - low), high - low


@ti.func
def sample_of(cell, f, n, first, last, a: ti.template()):
    """Sample n of the planes along axis a, its plane, its weight there, and slopes of that by f of the next two axes.

    A sample that is not there has a plane that weighs nothing.
    """
    k, b, c = n >> 2, (n >> 1) & 1, n & 1
    g, h = f[ti.static((a + 1) % 3)], f[ti.static((a + 2) % 3)]
    u, v = ti.select(b > 0, g, 1.0 - g), ti.select(c > 0, h, 1.0 - h)
    I = cell
    I[a] = ti.max(first[a], ti.min(last[a], cell[a] - 1 + k))
    I[ti.static((a + 1) % 3)] += b
    I[ti.static((a + 2) % 3)] += c
    return I, k, u * v, (2 * b - 1) * v, (2 * c - 1) * u


@ti.func
def normal_slope(grid: ti.template(), rays: ti.template(), box, cell, f):
    """Slope G (3,) of the raw density in index space, and its derivative K[a, b] of G[a] by place b, not symmetric."""
    first, last = bounds_of(grid, box)
    G, K = ti.Vector.zero(float, 3), ti.Matrix.zero(float, 3, 3)
    for a in ti.static(range(3)):
        b, c = ti.static((a + 1) % 3), ti.static((a + 2) % 3)
        w, by_f = plane_weights(rays, cell[a], f[a], first[a], last[a])
        for n in range(STENCIL_SAMPLES):
            I, k, u, u1, u2 = sample_of(cell, f, n, first, last, a)
            # as weights add up to 0, and level is 0
            value = grid.density[sample_index(grid, I)] - grid.density[sample_index(grid, cell)]
            G[a] += w[k] * u * value
            K[a, a] += by_f[k] * u * value
            K[a, b] += w[k] * u1 * value
            K[a, c] += w[k] * u2 * value
    return G, K


@ti.func
def sample_beside(grid: ti.template(), cell, a: ti.template(), k: ti.template(), b: ti.template(), c: ti.template()):
    """Raw density of the sample k, b and c samples from a cell's lower corner along axis a and the two next ones."""
    I = ti.Vector.zero(ti.i32, 3)
    I[a], I[ti.static((a + 1) % 3)], I[ti.static((a + 2) % 3)] = k, b, c
    value = ti.cast(0.0, float)
    if ti.static(is_sparse(grid.table)):
        value = grid.density[sample_index(grid, cell + I)]
    else:
        x = ti.Vector(ti.static(steps_of(grid.density)[0]))
        y = ti.Vector(ti.static(steps_of(grid.density)[1]))
        z = ti.Vector(ti.static(steps_of(grid.density)[2]))
        value = grid.density[lower_corner(grid.density, cell) + I[0] * x + I[1] * y + I[2] * z]
    return value


@ti.func
def smooth_slope(grid: ti.template(), cell, f):
    """G of a smooth shading, of a cell that lies on no face of the box: each of its 32 samples is read once."""
    G = ti.Vector.zero(float, 3)
    for a in ti.static(range(3)):
        g, h = f[ti.static((a + 1) % 3)], f[ti.static((a + 2) % 3)]
        plane = ti.Vector.zero(float, 4)
        for k in ti.static(range(4)):
            plane[k] = bilinear(
                sample_beside(grid, cell, a, ti.static(k - 1), 0, 0),
                sample_beside(grid, cell, a, ti.static(k - 1), 0, 1),
                sample_beside(grid, cell, a, ti.static(k - 1), 1, 0),
                sample_beside(grid, cell, a, ti.static(k - 1), 1, 1),
                g,
                h,
            )
        G[a] = 0.5 * ((1.0 - f[a]) * (plane[2] - plane[0]) + f[a] * (plane[3] - plane[1]))
    return G


@ti.kernel
def slopes_in(grid: ti.template(), nx: int, ny: int, nz: int, along: int):
    """features = central difference of the raw density at each sample; each box has so many samples along x."""
    for i, j, k in ti.ndrange(nx, ny, nz):
        I, begin = ti.Vector([i, j, k]), i // along * along
        first, last = ti.Vector([begin, 0, 0]), ti.Vector([begin + along - 1, ny - 1, nz - 1])
        G = ti.Vector.zero(float, 3)
        for a in ti.static(range(3)):
            low, high = I, I
            low[a], high[a] = ti.max(I[a] - 1, first[a]), ti.min(I[a] + 1, last[a])
            G[a] = (grid.density[high] - grid.density[low]) / (high[a] - low[a])
        grid.features[I] = G


@ti.func
def seen_slope(grid: ti.template(), rays: ti.template(), box, cell, f):
    """G of `normal_slope` alone, for pictures, whose rounding may differ."""
    G = ti.Vector.zero(float, 3)
    first, last = bounds_of(grid, box)
    if rays.shading[None][SMOOTH] == 0:
        _x, G[0], G[1], G[2] = gather_slope(grid.density, cell_index(grid, cell), f)
    elif (cell > first).all() and (cell + 1 < last).all():
        G = smooth_slope(grid, cell, f)
    else:
        G, _K = normal_slope(grid, rays, box, cell, f)
    return G


@ti.func
def normal_slope_tangent(grid: ti.template(), dot_density: ti.template(), rays: ti.template(), box, cell, f):
    """dot_G (3, column) by columns of tangents (x, y, z, column) of the raw density."""
    first, last = bounds_of(grid, box)
    dot_G = ti.Matrix.zero(float, 3, dot_density.n)
    for a in ti.static(range(3)):
        w, _by_f = plane_weights(rays, cell[a], f[a], first[a], last[a])
        for n in range(STENCIL_SAMPLES):
            I, k, u, _u1, _u2 = sample_of(cell, f, n, first, last, a)
            for e in range(dot_density.n):
                dot_G[a, e] += w[k] * u * dot_density[I][e]
    return dot_G


@ti.func
def scatter_normal_slope(grid: ti.template(), rays: ti.template(), box, slot, cell, f, d_G):
    """Transpose of `normal_slope` by the raw density: add to a slot what d_G gives it, and mark the cells."""
    first, last = bounds_of(grid, box)
    for a in ti.static(range(3)):
        w, _by_f = plane_weights(rays, cell[a], f[a], first[a], last[a])
        for n in range(STENCIL_SAMPLES):
            I, k, u, _u1, _u2 = sample_of(cell, f, n, first, last, a)
            J = sample_index(grid, I)
            accumulate(grid.d_density, ti.Vector([slot, J[0], J[1], J[2]]), d_G[a] * w[k] * u)
        low, high = cell, cell
        low[a], high[a] = ti.max(cell[a] - 1, first[a]), ti.min(cell[a] + 1, last[a] - 1)
        mark(grid, cell_index(grid, low), cell_index(grid, high))
