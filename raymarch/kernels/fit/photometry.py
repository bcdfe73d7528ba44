"""Sums over a step's pixels that tell exposures and background; in fixed order, the same on any number of threads."""

from raymarch.engine import ti
from raymarch.kernels.fit.losses import has_target, target_colour
from raymarch.kernels.rays.camera import corner_of, pixel_seen
from raymarch.views.exposure import MAX_UNCLIPPED, MIN_OPAQUE_ALPHA, MIN_UNCLIPPED, MOMENTS

NUMBERS_A_VIEW = 3 * MOMENTS  # of each moment those of the channels, side by side
BACKGROUND_NUMBERS = 6  # weight T (image - truth) and weight T^2 in each channel
NUMBERS = NUMBERS_A_VIEW + BACKGROUND_NUMBERS


@ti.kernel
def add_photometry(
    rays: ti.template(),
    store: ti.template(),
    sums: ti.template(),  # RayFields, StoreFields, PhotometryFields
    views: int,
    tiles: int,
    parts: int,  # rays of a pixel
    background: ti.math.vec3,
    robust: float,  # [display value]
):
    """sums.moments += those of what was rendered (x) and seen (y) by each view; sums.behind += those of all pixels.

    Weights are Huber's of the residual; a channel that is clipped in the image tells no exposure.
    """
    for tile in range(tiles):
        area = store.tile * store.tile
        view = corner_of(store, store.chosen[tile])[0]
        sums.view_of_tile[tile] = view
        total = ti.Vector.zero(ti.f64, NUMBERS)
        for p in range(tile * area, tile * area + area):
            seen, alpha = pixel_seen(rays, p, parts), rays.target[p][3]
            T = seen[3]
            for c in ti.static(range(3)):
                gain, offset = store.exposure[view][c], store.exposure[view][3 + c]
                x, y = seen[c], gain * rays.target[p][c] + offset
                if alpha > MIN_OPAQUE_ALPHA and MIN_UNCLIPPED < y < MAX_UNCLIPPED:
                    w = 1.0 / ti.max(ti.abs(gain * x + offset - y) / robust, 1.0)
                    of_pixel = ti.Vector([w, w * x, w * y, w * x * x, w * x * y])
                    for k in ti.static(range(MOMENTS)):
                        total[3 * k + c] += ti.cast(of_pixel[k], ti.f64)
                if has_target(rays, p):
                    d = x - target_colour(rays, p, background)[c]
                    w = 1.0 / ti.max(ti.abs(d) / robust, 1.0)
                    total[NUMBERS_A_VIEW + c] += ti.cast(w * T * d, ti.f64)
                    total[NUMBERS_A_VIEW + 3 + c] += ti.cast(w * T * T, ti.f64)
        for k in ti.static(range(NUMBERS)):
            sums.of_tile[tile, k] = total[k]
    for view in range(views):
        for tile in range(tiles):
            if sums.view_of_tile[tile] == view:
                for k in range(NUMBERS_A_VIEW):
                    sums.moments[view, k] += sums.of_tile[tile, k]
    for k in range(BACKGROUND_NUMBERS):
        total = sums.behind[k]
        for tile in range(tiles):
            total += sums.of_tile[tile, NUMBERS_A_VIEW + k]
        sums.behind[k] = total
