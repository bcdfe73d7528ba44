"""Visual hull (Laurentini 1994): the cells of a box that could hold anything, by the images' alpha.

Conservative but for the faintest pixels: alpha up to 2 of 255 counts as empty.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import first_block, sample_of_block
from raymarch.kernels.fit.reduce import block_of
from raymarch.kernels.rays.camera import pixel_of
from raymarch.kernels.rays.lens import footprint, project

MAX_EMPTY_ALPHA = 2  # of 255: a pixel above it shows something


def most_empty(store) -> float:
    """Alpha as it is stored, up to which a pixel is empty: of 255, or of 1 beside channels."""
    return MAX_EMPTY_ALPHA / 255 if store.of_channels else MAX_EMPTY_ALPHA


@ti.func
def shows(store: ti.template(), view, u0, u1, v0, v1):
    """Whether any pixel of the rectangle, bounds included, has alpha."""
    found = False
    v = v0
    while v <= v1 and not found:
        row = pixel_of(store, view, v, 0)
        for u in range(u0, u1 + 1):
            found = found or store.pixels[row + u][ti.static(store.pixels.n - 1)] > ti.static(most_empty(store))
        v += 1
    return found


@ti.kernel
def visual_hull(
    store: ti.template(),
    views: int,  # StoreFields
    lower: ti.math.vec3,
    cell: ti.math.vec3,  # corner, edges [world unit]
    seen: ti.types.ndarray(dtype=ti.i32, ndim=3),  # (x, y, z) of cells
):
    """seen = how many views see the cell wholly, or -1 where one of them sees only empty pixels there, or none looks.

    A cell is taken as the ball around it.
    """
    for i, j, k in ti.ndrange(seen.shape[0], seen.shape[1], seen.shape[2]):
        centre = lower + (ti.Vector([i, j, k]) + 0.5) * cell
        radius = 0.5 * cell.norm()
        count, partly, carved = 0, False, False
        view = 0
        while view < views and not carved:
            pose, lens = store.pose[view], store.lens[view]
            width, height = store.place[view][2], store.place[view][3]
            w = centre - ti.Vector([pose[0, 3], pose[1, 3], pose[2, 3]])
            local = ti.Vector.zero(float, 3)
            for a in ti.static(range(3)):
                local[a] = pose[0, a] * w[0] + pose[1, a] * w[1] + pose[2, a] * w[2]
            u, v, depth = project(lens, local)
            reach = footprint(lens, local, depth, radius)
            if reach > 0:
                u0, u1 = ti.floor(u - reach, ti.i32), ti.floor(u + reach, ti.i32)
                v0, v1 = ti.floor(v - reach, ti.i32), ti.floor(v + reach, ti.i32)
                partly = partly or (u1 >= 0 and v1 >= 0 and u0 < width and v0 < height)
                if u0 >= 0 and v0 >= 0 and u1 < width and v1 < height:
                    count += 1
                    carved = not shows(store, view, u0, u1, v0, v1)
            view += 1
        seen[i, j, k] = -1 if carved or not partly else count


# Upper bound on the raw densities of a grid's samples.


@ti.kernel
def bound_density(grid: ti.template(), blocks: ti.math.ivec3, most: float):  # Fields (x, y, z), raw density
    """density = min(density, most)."""
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        for i, j, k in ti.ndrange(grid.block, grid.block, grid.block):
            I = sample_of_block(grid, B, i, j, k)
            grid.density[I] = ti.min(grid.density[I], most)
