"""Choice of a step's tiles: each of the list once before any comes again, those that are rendered well less often.

What is drawn by its error is not weighted back: the fit minimises more of what it does badly (Loshchilov and Hutter
2015, "Online batch selection").
"""

from raymarch.engine import ti
from raymarch.kernels.fit.losses import has_target, residual
from raymarch.kernels.integrator.mode import behind_of
from raymarch.kernels.numeric import UNIFORM_SCALE, clamp_low, hash_u32
from raymarch.kernels.rays.camera import pixel_seen

ERROR_DECAY = 0.95  # of the mean error, over a step
UNDRAWN_ERROR = 1e9  # error of a tile that was never drawn
NO_TILE = -1  # in place of a tile that is passed over
PLACES_A_TILE = 3  # places that are looked at together, for each tile of a step


@ti.func
def shuffle(i, n, key):
    """Random permutation, the i-th of 0..n-1 by `key`: a Feistel network on the next even number of bits, walked until
    it lands below n (Black and Rogaway 2002)."""
    half = 1
    while (1 << (2 * half)) < n:
        half += 1
    mask = (1 << half) - 1
    x = i
    inside = False
    while not inside:
        left, right = x >> half, x & mask
        for k in ti.static(range(4)):
            mixed = ti.cast(hash_u32(right, key, k) & ti.cast(mask, ti.u32), ti.i32)
            left, right = right, left ^ mixed
        x = (left << half) | right
        inside = x < n
    return x


@ti.func
def tile_at(store: ti.template(), place, listed, seed, least):
    """Tile at a place of the shuffled epochs, or `NO_TILE` where it is passed over by chance."""
    epoch, within = ti.cast(place // listed, ti.i32), ti.cast(place % listed, ti.i32)
    t = store.list[shuffle(within, listed, ti.cast(hash_u32(seed, epoch, 0), ti.i32))]
    chance = clamp_low(store.error[t] / store.mean_error[None], least)  # NaN would be drawn for ever
    drawn = chance >= 1.0 or ti.cast(hash_u32(seed, epoch, t + 1), float) * UNIFORM_SCALE < chance
    return ti.select(drawn, t, NO_TILE)


@ti.func
def place_of(store: ti.template(), start):
    """Place that a choice begins at: `start`, or `next` where that is under 0."""
    low, high = ti.cast(store.next[None][0], ti.u32), store.next[None][1]
    return ti.select(start < 0, (ti.cast(high, ti.i64) << 32) | ti.cast(low, ti.i64), start)


@ti.kernel
def choose_tiles(
    store: ti.template(),
    listed: int,
    tiles: int,
    looked: int,
    start: ti.i64,
    seed: int,
    least: float,  # StoreFields
):
    """chosen = the next `tiles` of the `listed` from place `start` of the shuffled epochs on; with none, under 0, from
    `next` on, which then is the place after.

    That place stays on the device: a number returned would have a step wait until all before it has ended.

    A tile is passed over by chance, whose error was under the mean when it was last drawn: it stays with the share that
    its error is of the mean, and with `least` at least, also where its error is not finite. One that was never drawn
    stays. The first `looked` places are looked at together, the others one by one.
    """
    for n in range(looked):
        store.at_place[n] = tile_at(store, place_of(store, start) + n, listed, seed, least)
    ti.loop_config(serialize=True)
    for _ in range(1):
        first, found = place_of(store, start), 0
        place = first
        while found < tiles:
            t = NO_TILE
            if place < first + looked:
                t = store.at_place[ti.cast(place - first, ti.i32)]
            else:
                t = tile_at(store, place, listed, seed, least)
            if t != NO_TILE:
                store.chosen[found] = t
                found += 1
            place += 1
        if start < 0:
            store.next[None] = ti.Vector([ti.cast(place, ti.i32), ti.cast(place >> 32, ti.i32)])


@ti.func
def error_of_tile(store: ti.template(), rays: ti.template(), tile, parts, background):
    """Mean squared error of the colour of a tile of the buffer."""
    area = store.tile * store.tile
    total = 0.0
    for p in range(tile * area, tile * area + area):
        if has_target(rays, p):
            seen, behind = pixel_seen(rays, p, parts), behind_of(rays, background)
            for c in ti.static(range(rays.colours)):
                total += residual(rays, seen, p, behind, c) ** 2 / (ti.static(float(rays.colours)) * area)
    return total


@ti.func
def follow_errors(store: ti.template(), chosen: ti.template(), tiles):
    """error = `chosen_error` of each chosen tile; mean_error follows that of all."""
    for tile in range(tiles):
        store.error[chosen[tile]] = store.chosen_error[tile]
    mean = 0.0
    for tile in range(tiles):
        mean += store.error[chosen[tile]] / tiles
    before = ti.select(store.mean_error[None] < UNDRAWN_ERROR, store.mean_error[None], mean)
    store.mean_error[None] = clamp_low(ERROR_DECAY * before + (1.0 - ERROR_DECAY) * mean, 1e-30)


@ti.kernel
def note_errors(store: ti.template(), rays: ti.template(), tiles: int, parts: int, background: ti.math.vec3):
    """error = mean squared error of each chosen tile's colour; mean_error follows that of all that were chosen.

    A tile may be drawn twice in a step, jittered otherwise: the error of its last draw counts, whichever thread is
    first.
    """
    for tile in range(tiles):
        store.chosen_error[tile] = error_of_tile(store, rays, tile, parts, background)
    ti.loop_config(serialize=True)
    for _ in range(1):
        follow_errors(store, store.chosen, tiles)
