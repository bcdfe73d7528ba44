"""Ambient occlusion: the share of ambient light that reaches a sample through what is around it.

Local: along eight ways, to the corners of a cube in the world, over a short reach, each at four midpoints; the mean of
what passes. Hernell, Ljung and Ynnerman 2010, "Local ambient occlusion in direct volume rendering".
"""

import taichi as ti

from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather
from raymarch.kernels.march.central_difference import bounds_of
from raymarch.kernels.march.transfer import optics
from raymarch.kernels.numeric import exp
from raymarch.kernels.rays.nested import scale_of

WAYS, POINTS = 8, 4


@ti.func
def way_of(grid: ti.template(), k):
    """Way k in index space, of unit length in the world."""
    side = ti.Vector([2.0 * (k & 1) - 1.0, 1.0 * (k & 2) - 1.0, 0.5 * (k & 4) - 1.0]) / ti.sqrt(3.0)
    m, way = grid.index_from_world[None], ti.Vector.zero(float, 3)
    for i, j in ti.static(ti.ndrange(3, 3)):
        way[i] += m[i, j] * side[j]
    return way


@ti.func
def openness(grid: ti.template(), rays: ti.template(), variant: ti.template(), box, p, reach):
    """Mean transmittance over `reach` [world unit] around a point, p among all samples; beyond its box all is clear."""
    first, last = bounds_of(grid, box)
    width, total = reach * scale_of(box) / POINTS, ti.cast(0.0, float)
    for k in range(WAYS):
        way, tau = way_of(grid, k), ti.cast(0.0, float)
        for q in range(POINTS):
            place, inside = p + (q + 0.5) * width * way, True
            for a in ti.static(range(3)):
                inside = inside and place[a] >= first[a] and place[a] <= last[a]
            if inside:
                cell = cell_of(place, ti.cast(last, float))
                x = gather(grid.density, where(grid, cell), place - cell) + grid.shift[None]
                sigma, _by_x, _shade, _slope = optics(rays, variant, x, grid.inverse_scale[None])
                tau += sigma * width
        total += exp(-tau)
    return total / WAYS
