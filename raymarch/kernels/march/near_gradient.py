"""Gradients scaled near the cameras: of a sample by min(1, (distance from its camera / a limit)^2), images as they are.

A voxel is met by the more rays of one image the nearer its camera is, their number goes with the inverse square of the
distance. So what one camera alone sees grows the fastest, and floats before it. Philip and Deschaintre 2023,
"Floaters no more: radiance field gradient scaling for improved near-camera training". No gradient of any function.
"""

import taichi as ti

from raymarch.kernels.integrator.sample import in_index_space
from raymarch.kernels.rays.nested import box_of, scale_of, seen_from, shell_segment
from raymarch.kernels.rays.rays import clip, step_at


@ti.func
def camera_ahead(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s):
    """Where segment s of ray r begins, counted from its camera, and the length of its box's unit [world unit]."""
    begin, unit = ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(variant.near_scaled):
        o, d, _ = in_index_space(grid, rays, r)
        if ti.static(grid.boxes == 1):
            begin, _ = clip(o, d, grid.max_index[None])
        else:
            box = box_of(grid, s)
            begin, _, _, _ = shell_segment(grid, seen_from(grid, o, box), d, s)
            unit = 1.0 / scale_of(box)
        begin = begin * unit + rays.near[None][0]
    return begin, unit


@ti.func
def share_of_gradient(rays: ti.template(), variant: ti.template(), begin, unit, t):
    """Share of its gradient that a sample keeps, t along its segment in its box's unit; 1 where nothing is scaled."""
    share = ti.cast(1.0, float)
    if ti.static(variant.near_scaled):
        far = (begin + unit * t) / rays.near[None][1]
        share = ti.min(far * far, 1.0)
    return share


@ti.func
def share_at(rays: ti.template(), variant: ti.template(), begin, unit, length, step, phase, k):
    """Share of its gradient that sample k of a segment keeps."""
    share = ti.cast(1.0, float)
    if ti.static(variant.near_scaled):
        first, width = step_at(variant, 0.0, length, step, phase, k)
        share = share_of_gradient(rays, variant, begin, unit, first + 0.5 * width)
    return share
