"""A step of a fit that ranks share: which of the chosen tiles are a rank's own, their jitter and their errors.

All ranks choose the same tiles; whole tiles are dealt (`kernels.rays.dealt_rays`), so that a pixel's rays, and what is
known of a tile, are on one rank.
"""

from raymarch.engine import ti
from raymarch.kernels.fit.choice import error_of_tile, follow_errors
from raymarch.kernels.fit.targets import jitter_of_ray
from raymarch.kernels.rays.camera import pixel_counts
from raymarch.kernels.rays.dealt_rays import place_among_all


@ti.kernel
def deal_tiles(store: ti.template(), tiles: int, own: int, chunk: int, deal: ti.math.ivec3):
    """The first `own` of the chosen tiles = this rank's, `chunk` being dealt at a time; `at_place` keeps all."""
    for tile in range(tiles):
        store.at_place[tile] = store.chosen[tile]
    for tile in range(own):
        store.chosen[tile] = store.at_place[place_among_all(deal, tile, chunk)]


@ti.kernel
def count_dealt_targets(store: ti.template(), tiles: int) -> int:
    """Count of the pixels of all chosen tiles, on whichever rank, that no mask takes out."""
    found = 0
    for tile in range(tiles):
        for within in range(store.tile * store.tile):
            if pixel_counts(store, store.at_place[tile], within) != 0:
                found += 1
    return found


@ti.kernel
def jitter_dealt(rays: ti.template(), seed: int, step: int, count: int, parts: int, phase: float):
    """As `targets.draw_tiles` jitters, of rays that are a part of all."""
    for r in range(count):
        deal = rays.deal[None]
        rays.jitter[r] = jitter_of_ray(seed, step, place_among_all(deal, r, deal[0]), parts, phase)


@ti.kernel
def measure_errors(
    store: ti.template(),
    rays: ti.template(),  # StoreFields, RayFields
    own: int,
    parts: int,
    background: ti.math.vec3,
    errors: ti.types.ndarray(ndim=1),  # tiles
):
    """errors = mean squared error of the colour of each of the rank's own tiles."""
    for tile in range(own):
        errors[tile] = error_of_tile(store, rays, tile, parts, background)


@ti.kernel
def note_dealt_errors(store: ti.template(), tiles: int, errors: ti.types.ndarray(ndim=1)):
    """As `choice.note_errors`, of all tiles of the step, whose errors are known."""
    for tile in range(tiles):
        store.chosen_error[tile] = errors[tile]
    ti.loop_config(serialize=True)
    for _ in range(1):
        follow_errors(store, store.at_place, tiles)
