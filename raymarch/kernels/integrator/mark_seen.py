"""Cells that rays see: those in which a sample has more than a least weight on its ray."""

from raymarch.engine import ti
from raymarch.kernels.field.tables import classify
from raymarch.kernels.integrator.mode import composite, is_alive
from raymarch.kernels.integrator.sample import fetch, locate, ray_segment
from raymarch.kernels.rays.rays import empty_steps, place_of


@ti.kernel
def mark_seen(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,
    dt: float,
    min_transmittance: float,
    least: float,  # rays, [world unit], 0..1, 0..1
):
    """seen = 1 in cells with a sample of a weight over `least`."""
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
                    place, f = locate(grid, p)
                    raw = fetch(grid, place, f)
                    tau, _shade = classify(rays, variant, raw, shift, inverse_scale, width)
                    weight, T = composite(variant, T, tau)
                    if weight > least:
                        grid.seen[ti.min(ti.cast(p * per_index, ti.i32), grid.cells[None] - 1)] = ti.u8(1)
                    k += 1
