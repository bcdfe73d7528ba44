"""Rays of a step that is dealt to several ranks: which of all rays those of this rank's buffer are.

Runs of neighbouring rays are dealt to `VIRTUAL_SLOTS` slots in turn, however many ranks there are; a rank has some that
lie side by side. So what a slot adds up, and in which order, is the same for any count of ranks.
"""

from raymarch.engine import ti
from raymarch.kernels.numeric import RAYS_PER_CHUNK

VIRTUAL_SLOTS = 8


@ti.func
def rays_per_chunk(rays: ti.template(), variant: ti.template()):
    """Neighbouring rays that one slot takes before the next does: of a dealt step some whole tiles' rays."""
    count = RAYS_PER_CHUNK
    if ti.static(variant.dealt):
        count = rays.deal[None][0]
    return count


@ti.func
def place_among_all(deal, n, chunk):
    """Number among all of number n of this rank's, of which `chunk` are dealt at a time; `deal` as in `RayFields`."""
    at = n // chunk
    return ((at // deal[2]) * VIRTUAL_SLOTS + deal[1] + at % deal[2]) * chunk + n % chunk


@ti.func
def number_of_ray(rays: ti.template(), variant: ti.template(), r):
    """Number of ray r of the buffer among all rays of the step: its own but in a dealt one."""
    number = r
    if ti.static(variant.dealt):
        deal = rays.deal[None]
        number = place_among_all(deal, r, deal[0])
    return number
