"""Cells and samples of the grid that rays see: where a sample of a ray has more than a least weight on it."""

import taichi as ti

from raymarch.kernels.field.gather import corner
from raymarch.kernels.march.compositing import composite, is_alive
from raymarch.kernels.march.sample import fetch, located, ray_segment
from raymarch.kernels.march.transfer import classified
from raymarch.kernels.rays.traverse import empty_steps, place_of


@ti.func
def mark_corners(marks: ti.template(), place):
    """Mark = 1 at the eight corners of a cell."""
    for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
        marks[corner(place, marks, a, b, c)] = 1.0


@ti.kernel
def mark_seen(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float, least: float,  # rays, [world unit], 0..1, 0..1
    samples: ti.template(),  # whether samples are marked in place of cells
):  # fmt: skip
    """seen = 1 in cells with a sample of a weight over `least`, or m_density = 1 of what such are interpolated from."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        T = ti.cast(1.0, float)
        for s in range(ti.static(grid.segments)):
            entry, d, length, _, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    place, f = located(grid, p)
                    raw = fetch(grid, place, f)
                    tau, _shade = classified(rays, variant, raw, shift, inverse_scale, width)
                    weight, T = composite(variant, T, tau)
                    if weight > least:
                        if ti.static(samples):
                            mark_corners(grid.m_density, place)
                        else:
                            cell = ti.min(ti.cast(p * per_index, ti.i32), grid.cells[None] - 1)
                            grid.seen[cell] = ti.u8(1)
                    k += 1
