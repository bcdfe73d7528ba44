"""What a step of a fit draws: the rays of random tiles of many views, and the colours that they should have.

A view's exposure is undone on its photograph, so that what is rendered is compared without it. Channels are taken as
they are stored.
"""

from raymarch.engine import ti
from raymarch.kernels.numeric import UNIFORM_SCALE, hash_u32
from raymarch.kernels.rays.camera import corner_of, pixel_counts, pixel_of, pixel_ray, place_in_pixel


@ti.func
def number_of_draw(seed, step):
    """Number of a step's draws, 31 bits: seeds lie 2^32 over the golden ratio apart."""
    number = ti.cast(seed, ti.u32) * ti.u32(2654435761) + ti.cast(step, ti.u32)
    return ti.cast(number & ti.u32(0x7FFFFFFF), ti.i32)


@ti.func
def jitter_of_ray(seed, step, r, parts, phase):
    """Jitter (phase, stretch) of number r of a step's rays.

    Rays begin up to `phase` of a step early, those of a pixel at equal distances.
    """
    u = ti.cast(hash_u32(seed, step, r // parts), float) * UNIFORM_SCALE + (r % parts) / ti.cast(parts, float)
    return ti.Vector([ti.min(phase * (u - ti.floor(u)), 0.999999), 1.0])


@ti.kernel
def draw_tiles(
    rays: ti.template(),
    store: ti.template(),  # RayFields (tile * pixel * part,), StoreFields
    tiles: int,
    side: int,
    near: float,  # rays along a pixel's edge, near plane [world unit]
    seed: int,
    step: int,
    phase: float,
):
    """Rays of the tiles that were chosen: fill the buffer with their pixels, a target for each pixel.

    The target's alpha is -1 where a mask takes the pixel out. Their image's gradient begins at 0, the roulette's draws
    are numbered by seed and step, and a `phase` above 0 jitters the rays by both: all that begins a fit's step, in one
    launch.
    """
    for r in range(tiles * store.tile * store.tile * side * side):
        area, pixel, part = store.tile * store.tile, r // (side * side), r % (side * side)
        if r == 0:
            rays.draw[None] = number_of_draw(seed, step)
        if phase > 0.0:
            rays.jitter[r] = jitter_of_ray(seed, step, r, side * side, phase)
        rays.image.grad[r] = ti.Vector.zero(float, rays.image.n)
        tile, within = pixel // area, pixel % area
        chosen = store.chosen[tile]
        view, row, column = corner_of(store, chosen)
        row += within // store.tile
        column += within % store.tile
        u, v = place_in_pixel(part, side)
        origin, direction = pixel_ray(store.pose[view], store.lens[view], column + u, row + v, store.special)
        rays.origin[r], rays.direction[r] = origin + near * direction, direction
        if part == 0:
            target = ti.cast(store.pixels[pixel_of(store, view, row, column)], float)
            if ti.static(not store.of_channels):
                target /= 255.0
                for c in ti.static(range(3)):
                    target[c] = (target[c] - store.exposure[view][3 + c]) / store.exposure[view][c]
            if pixel_counts(store, chosen, within) == 0:
                target[ti.static(target.n - 1)] = -1.0
            rays.target[pixel] = target
