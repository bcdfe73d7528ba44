"""Russian roulette of gradients: samples that hardly matter to a pixel are added by chance, an unbiased estimate.

Most samples of a ray have next to no weight, before a surface and behind it, and yet each would add to eight corners of
memory of its own. One whose influence is under `variant.roulette` has a chance in proportion, `LEAST` of one at least;
what it adds is divided by that, so that the mean over draws is the gradient (Arvo and Kirk 1990, "Particle transport
and image synthesis"). The remaining radiance, which all samples have a part in, is carried along whole.
"""

import taichi as ti

from raymarch.kernels.numeric import UNIFORM, hash_u32

LEAST = 0.05


@ti.func
def share_of_draw(rays: ti.template(), variant: ti.template(), influence, r, k):
    """What the gradient of sample k of ray r is taken times: 1 / chance where it is drawn, 0 where not; 1 without."""
    share = ti.cast(1.0, float)
    if ti.static(variant.roulette > 0):
        if influence < variant.roulette:
            chance = ti.max(influence * ti.static(1.0 / max(variant.roulette, 1e-30)), LEAST)
            u = ti.cast(hash_u32(rays.draw[None], r, k), float) * UNIFORM
            share = ti.select(u < chance, 1.0 / chance, 0.0)
    return share
