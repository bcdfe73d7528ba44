"""Sampling list of tiles: those of which a ray that counts meets an occupied cell of the grid.

Most tiles that meet nothing are told by one ray: rays of a tile are never farther apart than at the ends of what they
have in the box, so where the one through its middle keeps that far away from all that is occupied, none meets it.
"""

import taichi as ti

from raymarch.kernels.rays.camera import corner_of, pixel_counts, pixel_ray
from raymarch.kernels.rays.placed import placed
from raymarch.kernels.rays.traverse import FAR, clip, empty_steps, steps_within

SAFETY = 1.5, 0.25  # of how far the corners' rays are apart, for lenses bend; and cells, for the walk's own steps
PARTS = 8  # steps of that walk, a step of the march


@ti.func
def ray_of(store: ti.template(), grid: ti.template(), view, u, v):
    """Ray through (u, v) [pixel] of a view, in index space."""
    origin, direction = pixel_ray(store.pose[view], store.lens[view], u, v, store.parallel)
    return placed(grid, origin, direction)


@ti.func
def is_clear(store: ti.template(), grid: ti.template(), view, row, column, dt):
    """Whether the ray through a tile's middle says that no ray of it meets an occupied cell."""
    top, per_index, last = grid.max_index[None], grid.cells_per_index[None], grid.cells[None] - 1
    origins, ways = ti.Matrix.zero(float, 5, 3), ti.Matrix.zero(float, 5, 3)
    begin, end, apart = ti.cast(FAR, float), ti.cast(-1.0, float), ti.cast(0.0, float)
    for n in range(5):  # a loop, for a ray is much to compile: the corners', and the middle's
        across = 0.5 * store.tile + ti.Vector([n % 2 - 0.5, n // 2 - 0.5]) * (store.tile - 1)
        if n == 4:
            across = ti.Vector([0.5, 0.5]) * store.tile
        o, d = ray_of(store, grid, view, column + across[0], row + across[1])
        near, far = clip(o, d, top)
        if far >= near:
            begin, end = ti.min(begin, near), ti.max(end, far)
        for a in ti.static(range(3)):
            origins[n, a], ways[n, a] = o[a], d[a]
    o, d = ti.Vector([origins[4, 0], origins[4, 1], origins[4, 2]]), ti.Vector([ways[4, 0], ways[4, 1], ways[4, 2]])
    for n in range(4):
        for a in ti.static(range(3)):
            for t in ti.static((begin, end)):
                apart = ti.max(apart, ti.abs((origins[n, a] - o[a] + t * (ways[n, a] - d[a])) * per_index[a]))
    around = ti.cast(ti.static(SAFETY[0]) * apart + ti.static(SAFETY[1]), ti.i32) + 1
    clear, t = end >= begin, begin
    while clear and t < end:
        q = ti.min(ti.max(o + t * d, 0.0), top) * per_index
        cell = ti.min(ti.cast(q, ti.i32), last)
        away = ti.cast(grid.empty_distance[cell], ti.i32) - around
        clear = away > 0
        t += steps_within(per_index, q, cell, away, d, dt / PARTS) * (dt / PARTS)
    return clear


@ti.func
def meets(grid: ti.template(), o, d, dt):
    """Whether a sample of a ray's march lies in an occupied cell."""
    near, far = clip(o, d, grid.max_index[None])
    found, k, n = False, 0, ti.cast((far - near) / dt, ti.i32)
    while k <= n and far > near and not found:
        begin = near + k * dt
        p = ti.max(o + (begin + 0.5 * ti.min(dt, far - begin)) * d, 0.0)
        skip = empty_steps(grid, grid.cells_per_index[None], p, d, dt)
        found = skip == 0
        k += skip
    return found


@ti.kernel
def list_tiles(
    store: ti.template(), grid: ti.template(), dt: float,  # StoreFields, Fields (x, y, z), [world unit]
    tiles: int,
) -> int:  # fmt: skip
    """Sampling list of the tiles with a ray that counts and meets an occupied cell; returns how many."""
    for t in range(tiles):
        view, row, column = corner_of(store, t)
        hit, clear = False, False
        if ti.static(not grid.ndc):  # where rays that lie side by side need not be as far apart at each t
            clear = is_clear(store, grid, view, row, column, dt)
        if not clear:
            for within in range(store.tile * store.tile):
                if not hit and pixel_counts(store, t, within):
                    u, v = column + within % store.tile + 0.5, row + within // store.tile + 0.5
                    o, d = ray_of(store, grid, view, u, v)
                    hit = meets(grid, o, d, dt)
        store.hit[t] = ti.u8(1) if hit else ti.u8(0)
    found = 0
    ti.loop_config(serialize=True)
    for t in range(tiles):
        if store.hit[t]:
            store.list[found] = t
            found += 1
    return found
