"""Copies between NumPy arrays of rays and fields on the device; rays of an array are the front of a field.

What goes together is one kernel: each costs its compiling once a tree.
"""

from raymarch.engine import ti


@ti.kernel
def rays_in(
    origin: ti.types.ndarray(dtype=ti.f64, ndim=2),
    direction: ti.types.ndarray(dtype=ti.f64, ndim=2),  # (ray, 3) twice
    rays: ti.template(),  # RayFields
):
    """The buffer's rays."""
    for r in range(origin.shape[0]):
        for a in ti.static(range(3)):
            rays.origin[r][a] = ti.cast(origin[r, a], float)
            rays.direction[r][a] = ti.cast(direction[r, a], float)


@ti.kernel
def vectors_in(values: ti.types.ndarray(dtype=ti.f64, ndim=2), field: ti.template()):  # (ray, n), (ray,) of n
    """Copy rows of an array to the front of a field of vectors."""
    for r in range(values.shape[0]):
        for c in ti.static(range(field.n)):
            field[r][c] = ti.cast(values[r, c], float)


@ti.kernel
def vectors_out(field: ti.template(), values: ti.types.ndarray(ndim=2)):
    """Copy the front of a field of vectors to the rows of an array."""
    for r in range(values.shape[0]):
        for c in ti.static(range(field.n)):
            values[r, c] = field[r][c]


@ti.kernel
def scalars_out(field: ti.template(), values: ti.types.ndarray(ndim=1)):
    """Copy the front of a field to an array."""
    for r in range(values.shape[0]):
        values[r] = field[r]


@ti.kernel
def tangents_in(
    origin: ti.types.ndarray(ndim=3),
    index_direction: ti.types.ndarray(ndim=3),  # (ray, column, 3) twice
    view_direction: ti.types.ndarray(ndim=3),
    dt: ti.types.ndarray(ndim=1),  # (ray, column, 3), (column,)
    motion: ti.template(),  # MotionFields
):
    """Tangents of rays in index space."""
    for i, c in ti.ndrange(origin.shape[0], origin.shape[1]):
        motion.dot_dt[c] = dt[c]
        for a in ti.static(range(3)):
            motion.dot_origin[i, c][a] = origin[i, c, a]
            motion.dot_index_direction[i, c][a] = index_direction[i, c, a]
            motion.dot_view_direction[i, c][a] = view_direction[i, c, a]


@ti.kernel
def place_tangents_in(
    origin: ti.types.ndarray(ndim=3),
    way: ti.types.ndarray(ndim=3),  # (ray, column, 3) twice
    motion: ti.template(),  # MotionFields
):
    """Tangents of rays where the grid's affine leads to."""
    for i, c in ti.ndrange(origin.shape[0], origin.shape[1]):
        for a in ti.static(range(3)):
            motion.dot_place_origin[i, c][a] = origin[i, c, a]
            motion.dot_place_way[i, c][a] = way[i, c, a]


@ti.kernel
def gradients_out(
    motion: ti.template(),  # MotionFields
    origin: ti.types.ndarray(ndim=2),
    index_direction: ti.types.ndarray(ndim=2),  # (ray, 3) twice
    view_direction: ti.types.ndarray(ndim=2),
    dt: ti.types.ndarray(ndim=1),  # (ray, 3), (ray,)
):
    """Gradients by rays in index space."""
    for r in range(dt.shape[0]):
        dt[r] = motion.d_dt[r]
        for a in ti.static(range(3)):
            origin[r, a] = motion.d_origin[r][a]
            index_direction[r, a] = motion.d_index_direction[r][a]
            view_direction[r, a] = motion.d_view_direction[r][a]


@ti.kernel
def place_gradients_out(
    motion: ti.template(),  # MotionFields
    origin: ti.types.ndarray(ndim=2),
    way: ti.types.ndarray(ndim=2),  # (ray, 3) twice
):
    """Gradients by rays where the grid's affine leads to."""
    for r in range(origin.shape[0]):
        for a in ti.static(range(3)):
            origin[r, a] = motion.d_place_origin[r][a]
            way[r, a] = motion.d_place_way[r][a]


@ti.kernel
def columns_out(field: ti.template(), values: ti.types.ndarray(ndim=3)):  # (ray, column) of n, (ray, column, n)
    """values[i, c, :] = field[i, c]."""
    for i, c in ti.ndrange(values.shape[0], values.shape[1]):
        for a in ti.static(range(field.n)):
            values[i, c, a] = field[i, c][a]
