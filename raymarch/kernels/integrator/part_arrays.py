"""Copies of rays that wait for parts of a volume, between a device's fields and arrays that go to other processes.

Numbers are copied as they are, so that what is made of them has the same bits. `index` are the rays' places in the
fields, of which an array has some.
"""

from raymarch.engine import ti
from raymarch.kernels.integrator.parts import NOWHERE

RAY_NUMBERS = 10  # origin (3,), direction (3,), jitter (2,), and where the ray goes on (2,)


@ti.kernel
def waiting_out(
    index: ti.types.ndarray(dtype=ti.i32, ndim=1),
    rays: ti.template(),
    part: ti.template(),  # RayFields, PartFields
    numbers: ti.types.ndarray(ndim=2),
    cells: ti.types.ndarray(dtype=ti.i32, ndim=2),  # (ray, RAY_NUMBERS), (ray, 3)
):
    """Rays, and the spots where they go on."""
    for i in range(index.shape[0]):
        r = index[i]
        for a in ti.static(range(3)):
            numbers[i, a], numbers[i, 3 + a] = rays.origin[r][a], rays.direction[r][a]
            cells[i, a] = part.cell[r][a]
        for a in ti.static(range(2)):
            numbers[i, 6 + a], numbers[i, 8 + a] = rays.jitter[r][a], part.spot[r][a]


@ti.kernel
def waiting_in(
    index: ti.types.ndarray(dtype=ti.i32, ndim=1),
    numbers: ti.types.ndarray(ndim=2),
    cells: ti.types.ndarray(dtype=ti.i32, ndim=2),
    rays: ti.template(),
    part: ti.template(),
    here: int,  # part that they wait for
):
    """As `waiting_out` gave them."""
    for i in range(index.shape[0]):
        r = index[i]
        for a in ti.static(range(3)):
            rays.origin[r][a], rays.direction[r][a] = numbers[i, a], numbers[i, 3 + a]
            part.cell[r][a] = cells[i, a]
        for a in ti.static(range(2)):
            rays.jitter[r][a], part.spot[r][a] = numbers[i, 6 + a], numbers[i, 8 + a]
        part.waits[r] = here


@ti.kernel
def then_out(
    index: ti.types.ndarray(dtype=ti.i32, ndim=1),
    part: ti.template(),
    spots: ti.types.ndarray(ndim=2),
    cells: ti.types.ndarray(dtype=ti.i32, ndim=2),  # (ray, 2), (ray, 3)
):
    """Spots behind the part that rays went through."""
    for i in range(index.shape[0]):
        r = index[i]
        for a in ti.static(range(3)):
            cells[i, a] = part.then_cell[r][a]
        for a in ti.static(range(2)):
            spots[i, a] = part.then[r][a]


@ti.kernel
def then_in(
    index: ti.types.ndarray(dtype=ti.i32, ndim=1),
    spots: ti.types.ndarray(ndim=2),
    cells: ti.types.ndarray(dtype=ti.i32, ndim=2),
    part: ti.template(),
):
    """As `then_out` gave them, of rays that wait nowhere until it is found where (`parts.find_waiting`)."""
    for i in range(index.shape[0]):
        r = index[i]
        for a in ti.static(range(3)):
            part.then_cell[r][a] = cells[i, a]
        for a in ti.static(range(2)):
            part.then[r][a] = spots[i, a]
        part.waits[r] = NOWHERE


@ti.kernel
def kept_out(index: ti.types.ndarray(dtype=ti.i32, ndim=1), kept: ti.template(), values: ti.types.ndarray(ndim=2)):
    """Numbers of what rays carry."""
    for i in range(index.shape[0]):
        for c in ti.static(range(kept.n)):
            values[i, c] = kept[index[i]][c]


@ti.kernel
def kept_in(index: ti.types.ndarray(dtype=ti.i32, ndim=1), values: ti.types.ndarray(ndim=2), kept: ti.template()):
    """As `kept_out` gave them."""
    for i in range(index.shape[0]):
        for c in ti.static(range(kept.n)):
            kept[index[i]][c] = values[i, c]
