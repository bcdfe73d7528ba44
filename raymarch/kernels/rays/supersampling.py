"""Supersampling: a pixel as the mean of the rays through the middles of its equal parts, a box filter of its area.

The rays of a pixel lie one behind the other in the buffer, row by row; `side` of them along each edge. Where a kernel
asks for the pixel, `parts` is their number, side^2.
"""

import taichi as ti


@ti.func
def place_in_pixel(part, side):
    """Middle of a part, from its pixel's corner (u, v) [pixel]."""
    return (part % side + 0.5) / side, (part // side + 0.5) / side


@ti.func
def pixel_seen(rays: ti.template(), pixel, parts):
    """Colour and transmittance of a pixel: the mean of its rays'."""
    total = ti.Vector.zero(float, 4)
    for part in range(parts):
        total += rays.image[pixel * parts + part]
    return total / parts
