"""Nested boxes for unbounded scenes: each twice as large as the last about one centre, all of as many samples.

A ray through `boxes` of them is 2 boxes - 1 straight segments: inward through the shells, through the innermost box,
and out again. In a unit of length twice as long a box, each is like the one within it: a ray has the same direction
and the same steps there, and only its origin is nearer to the centre. So a shell is marched as any box is, and a raw
density means as much opacity over one of its own voxels in each. Samples of the boxes lie one behind the other along x,
the innermost first. Cascades as in Mueller et al. 2022, "Instant neural graphics primitives".
"""

import taichi as ti

from raymarch.kernels.rays.rays import clip_faces, clip_to_box, within_box


@ti.func
def box_of(grid: ti.template(), s):
    """Number of the box that segment s of a ray lies in: 0 the innermost."""
    return ti.abs(s - ti.static(grid.boxes - 1))


@ti.func
def scale_of(box):
    """Length of an innermost voxel, in those of a box: 2^-box."""
    return 1.0 / ti.cast(1 << box, float)


@ti.func
def seen_from(grid: ti.template(), o, box):
    """A ray's origin in a box's own index space, which spans 0..top as the innermost one's does."""
    own = o
    if ti.static(grid.boxes > 1):
        middle = 0.5 * grid.max_index[None]
        own = middle + (o - middle) * scale_of(box)
    return own


@ti.func
def first_of(grid: ti.template(), box):
    """Index of a box's first sample."""
    return ti.Vector([box * (grid.max_index[None][0] + 1.0), 0.0, 0.0])


@ti.func
def shell_segment(grid: ti.template(), o, d, s):
    """near, far and the axes of their faces of segment s, o in its box's own index space; far < near is none.

    What a ray that misses the box within has of a shell is all inward.
    """
    top = grid.max_index[None]
    near, far, enters, leaves = clip_faces(o, d, ti.Vector.zero(float, 3), top)
    if ti.static(grid.boxes > 1):
        inward, outward = s < ti.static(grid.boxes - 1), s > ti.static(grid.boxes - 1)
        if inward or outward:
            inner, outer, first, last = clip_faces(o, d, 0.25 * top, 0.75 * top)
            if outer >= inner and inward:
                far, leaves = inner, first
            elif outer >= inner:
                near, enters = outer, last
            elif outward:
                far = ti.cast(-1.0, float)
    return near, far, enters, leaves


@ti.func
def clip_to_boxes(grid: ti.template(), o, d, s):
    """Segment s of a ray: where it enters among all samples, direction and length, as `clip_to_box` gives them."""
    top = grid.max_index[None]
    entry, direction, length = clip_to_box(o, d, top)
    if ti.static(grid.boxes > 1):
        box = box_of(grid, s)
        own = seen_from(grid, o, box)
        near, far, _, _ = shell_segment(grid, own, d, s)
        entry, direction, length = within_box(own, d, near, far, top)
        entry += first_of(grid, box)
    return entry, direction, length
