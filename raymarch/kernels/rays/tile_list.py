"""Sampling list of tiles: those of which a ray that counts meets an occupied cell of the grid.

Most tiles that meet nothing are told by one ray: rays of a tile are never farther apart than where the last of them
leaves the box, so where the one through its middle keeps that far away from all that is occupied, or from the box, none
meets it.
"""

from raymarch.engine import ti
from raymarch.kernels.rays.camera import corner_of, pixel_counts, pixel_ray
from raymarch.kernels.rays.rays import MAX_DISTANCE, PARALLEL_TOLERANCE, clip, empty_steps, place_ray, steps_within

# of how far the corners' rays are apart, for lenses bend; and cells, for the walk's own steps
SAFETY_MARGIN = 1.5, 0.25
STEPS_A_MARCH_STEP = 8  # steps of that walk, at least, a step of the march
TILES_A_RUN = 2048  # tiles whose hits are counted by one thread
RAYS_A_TILE = 5  # rays that tell of a tile: its middle's and its corners'


@ti.func
def ray_of(store: ti.template(), grid: ti.template(), view, u, v):
    """Ray through (u, v) [pixel] of a view, in index space."""
    origin, direction = pixel_ray(store.pose[view], store.lens[view], u, v, store.special)
    return place_ray(grid, origin, direction)


@ti.func
def place_of_ray(store: ti.template(), n):
    """Where ray n goes through its tile [pixel]: the middle, the middles of the corners' pixels, then those of all."""
    place = 0.5 * ti.Vector([store.tile, store.tile])
    if n >= RAYS_A_TILE:
        place = ti.Vector([(n - RAYS_A_TILE) % store.tile + 0.5, (n - RAYS_A_TILE) // store.tile + 0.5])
    elif n > 0:
        place += ti.Vector([(n - 1) % 2 - 0.5, (n - 1) // 2 - 0.5]) * (store.tile - 1)
    return place


@ti.func
def is_clear(grid: ti.template(), o, d, slowest, apart, parting, dt):
    """Whether a ray says that no other meets an occupied cell, which are `apart` [voxel] from it at most along each
    axis and `parting` more with each unit of distance, and in each go as far as `slowest` at least.

    Where another is in the box, it is in the box widened by how far they are apart; there it is walked.
    """
    top, per_index, last = grid.max_index[None], grid.cells_per_index[None], grid.cells[None] - 1
    farthest = ((o - 0.5 * top).norm() + 0.5 * top.norm()) / slowest  # that anything of the box can be
    wider = ti.static(SAFETY_MARGIN[0]) * (apart + farthest * parting).max() + ti.static(SAFETY_MARGIN[1])
    begin, end = clip(o + wider, d, top + 2.0 * wider)
    between = ((apart + end * parting) * per_index).max()
    around = ti.cast(ti.static(SAFETY_MARGIN[0]) * between + ti.static(SAFETY_MARGIN[1]), ti.i32) + 1
    step = ti.min(
        dt / STEPS_A_MARCH_STEP, ti.static(SAFETY_MARGIN[1]) / ti.max(ti.abs(d * per_index).max(), PARALLEL_TOLERANCE)
    )
    clear, k = True, 0
    while clear and begin + k * step < end:
        q = ti.min(ti.max(o + (begin + k * step) * d, 0.0), top) * per_index
        cell = ti.min(ti.cast(q, ti.i32), last)
        away = ti.cast(grid.empty_distance[cell], ti.i32) - around
        clear = away > 0
        k += steps_within(per_index, q, cell, away, d, step)
    return clear


@ti.func
def meets_occupied(grid: ti.template(), o, d, dt):
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


@ti.func
def hit_or_clear(store: ti.template(), grid: ti.template(), t, dt):
    """Whether a ray of tile t that counts meets an occupied cell, and whether the one through its middle told that none
    does: rays are asked until one of both is known."""
    view, row, column = corner_of(store, t)
    hit, clear = False, False
    middle, way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
    apart, parting = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)  # at the origins, and by distance
    slowest = ti.cast(MAX_DISTANCE, float)
    # In NDC rays that lie side by side need not be as far apart at each distance: each is asked.
    for n in range(ti.static(RAYS_A_TILE if grid.ndc else 0), ti.static(RAYS_A_TILE + store.tile**2)):
        if not hit and not clear and (n < RAYS_A_TILE or pixel_counts(store, t, n - RAYS_A_TILE)):
            place = place_of_ray(store, n)
            o, d = ray_of(store, grid, view, column + place[0], row + place[1])  # once, for it is much to compile
            if n < RAYS_A_TILE:
                if n == 0:
                    middle, way = o, d
                apart, parting = ti.max(apart, ti.abs(o - middle)), ti.max(parting, ti.abs(d - way))
                slowest = ti.min(slowest, d.norm())
                if n == RAYS_A_TILE - 1:
                    clear = is_clear(grid, middle, way, slowest, apart, parting, dt)
            else:
                hit = meets_occupied(grid, o, d, dt)
    return hit, clear


@ti.kernel
def list_tiles(
    store: ti.template(),
    grid: ti.template(),
    dt: float,  # StoreFields, Fields (x, y, z), [world unit]
    tiles: int,
) -> int:
    """Sampling list of the tiles with a ray that counts and meets an occupied cell, in order; returns how many."""
    for t in range(tiles):
        hit, _clear = hit_or_clear(store, grid, t, dt)
        store.hit[t] = ti.u8(1) if hit else ti.u8(0)
    runs = (tiles + TILES_A_RUN - 1) // TILES_A_RUN
    for run in range(runs):
        hits = 0
        for t in range(run * TILES_A_RUN, ti.min(run * TILES_A_RUN + TILES_A_RUN, tiles)):
            hits += ti.cast(store.hit[t], ti.i32)
        store.hits_of_run[run] = hits
    for run in range(runs):
        place = 0
        for before in range(run):
            place += store.hits_of_run[before]
        for t in range(run * TILES_A_RUN, ti.min(run * TILES_A_RUN + TILES_A_RUN, tiles)):
            if store.hit[t]:
                store.list[place] = t
                place += 1
    found = 0
    for run in range(runs):
        found += store.hits_of_run[run]
    return found
