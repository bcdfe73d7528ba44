"""Pinhole lens of kernels: pixels to directions in camera axes and back; `lens` is (focal u, focal v, centre u, v)."""

import taichi as ti


@ti.func
def unproject(lens, u, v):
    """Direction in camera axes, its z at -1, of (u, v) [pixel]."""
    return ti.Vector([(u - lens[2]) / lens[0], (lens[3] - v) / lens[1], -1.0])


@ti.func
def project(lens, local):
    """(u, v) [pixel] and depth of a point in camera axes, before the camera."""
    depth = -local[2]
    return lens[2] + lens[0] * local[0] / depth, lens[3] - lens[1] * local[1] / depth, depth
