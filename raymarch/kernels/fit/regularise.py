"""Regularisers on random blocks of 4^3 voxels, value and gradient in one: total variation, sparsity and the like.

Blocks are shifted by one random offset a step and never overlap, and only edges within a block count, so that the
gradient needs no atomics and every edge has the same chance: the caller scales the weight by one over it.
A penalty comes as two functions that are compiled in, its value and its slope, and the name of the number it is of.
"""

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import block_at, gradient_index, is_present, is_sparse, sample_index
from raymarch.kernels.field.gather import accumulate
from raymarch.kernels.field.touched import ALL_BITS, word_of
from raymarch.kernels.fit.reduce import block_of
from raymarch.kernels.numeric import hash_u32, is_finite

TILE_EDGE = 4
EPS_DENSITY = 0.1
EPS_FEATURES = 0.02
DENSITY_DIFFERENCE = "density difference"  # of raw densities, neighbours along each axis
COLOUR_DIFFERENCE = "colour difference"  # the same of raw colour coefficients, each on its own
OPTICAL_DEPTH = "optical depth"  # over one finest voxel
QUANTITIES = (DENSITY_DIFFERENCE, COLOUR_DIFFERENCE, OPTICAL_DEPTH)


@ti.func
def variation_of_density(x):
    """Total variation of density: sqrt(x^2 + eps^2) - eps (Charbonnier et al. 1994)."""
    return ti.sqrt(x * x + EPS_DENSITY**2) - EPS_DENSITY


@ti.func
def variation_of_density_slope(x):
    return x / ti.sqrt(x * x + EPS_DENSITY**2)


@ti.func
def variation_of_colour(x):
    """Total variation of colour: the same with an eps of its own."""
    return ti.sqrt(x * x + EPS_FEATURES**2) - EPS_FEATURES


@ti.func
def variation_of_colour_slope(x):
    return x / ti.sqrt(x * x + EPS_FEATURES**2)


@ti.func
def sparsity(x):
    """Sparsity penalty: ln(1 + 2 x^2) (Cauchy, as in Barron 2019)."""
    return ti.log(1.0 + 2.0 * x * x)


@ti.func
def sparsity_slope(x):
    return 4.0 * x / (1.0 + 2.0 * x * x)


@ti.func
def is_drawn(grid: ti.template(), B, b, shift, shape, seed, step, chance):
    """Random draw: whether the block is taken this step and lies on an occupied block of the layout."""
    middle = ti.min(ti.max(B * TILE_EDGE - shift + TILE_EDGE // 2, 0), shape - 1) // grid.block
    return hash_u32(seed, step, b) < chance and grid.block_occupied[block_at(grid, middle)] != 0


@ti.func
def has_neighbour(grid: ti.template(), local, I, shape, a: ti.template()):
    """Whether the next voxel up along axis `a` is in the same block, in the level, and in the same box."""
    found = local[a] + 1 < TILE_EDGE and I[a] + 1 < shape[a]
    if ti.static(grid.boxes > 1 and a == 0):
        found = found and (I[a] + 1) % (shape[a] // grid.boxes) != 0
    if ti.static(is_sparse(grid.table)):
        if found:
            found = is_present(grid, I + ti.Vector.unit(3, a, ti.i32))
    return found


@ti.func
def is_in(grid: ti.template(), I, shape):
    """Whether the level has sample I, and its brick is there."""
    found = all(I >= 0) and all(I < shape)
    if ti.static(is_sparse(grid.table)):
        if found:
            found = is_present(grid, I)
    return found


@ti.func
def note_not_finite(grid: ti.template(), d):
    """Note a gradient that is not finite, as `reduce_slots` does of the blocks that rays met: others are moved too."""
    if grid.nonfinite_step[None] == 0 and not is_finite(d):
        grid.nonfinite_step[None] = 1


@ti.kernel
def regularise(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    of: ti.template(),
    value: ti.template(),
    slope: ti.template(),  # which quantity, the penalty of it, and its slope
    blocks: ti.math.ivec3,
    shape: ti.math.ivec3,
    shift: ti.math.ivec3,
    seed: int,
    step: int,
    chance: ti.u32,
    weight: ti.f64,
):
    """loss += weight sum value(the quantity `of`) over the blocks that are drawn, and its gradient by their samples.

    Both come of one look at each edge: its slope is added to its upper sample, and taken from its lower one. Samples
    and blocks of the layout are marked; what is not finite is noted, as in `reduce_slots`.
    """
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        if is_drawn(grid, B, b, shift, shape, seed, step, chance):
            owed, total = ti.cast(weight, float), ti.cast(0.0, ti.f64)
            for i, j, k in ti.ndrange(TILE_EDGE, TILE_EDGE, TILE_EDGE):
                local = ti.Vector([i, j, k])
                I = B * TILE_EDGE - shift + local
                if is_in(grid, I, shape):
                    if ti.static(of == OPTICAL_DEPTH):
                        raw = grid.density[sample_index(grid, I)] + grid.shift[None]
                        x = activation.density(variant, raw)
                        total += weight * value(x)
                        d = owed * slope(x) * activation.density_slope(variant, raw)
                        accumulate(grid.g_density, gradient_index(grid, sample_index(grid, I)), d)
                        note_not_finite(grid, d)
                    elif ti.static(of == DENSITY_DIFFERENCE):
                        d = ti.cast(0.0, float)
                        for a in ti.static(range(3)):
                            if has_neighbour(grid, local, I, shape, a):
                                N = I + ti.Vector.unit(3, a, ti.i32)
                                x = grid.density[sample_index(grid, N)] - grid.density[sample_index(grid, I)]
                                total += weight * value(x)
                                upper = owed * slope(x)
                                d -= upper
                                accumulate(grid.g_density, gradient_index(grid, sample_index(grid, N)), upper)
                        accumulate(grid.g_density, gradient_index(grid, sample_index(grid, I)), d)
                        note_not_finite(grid, d)
                    else:
                        d_features = ti.Vector.zero(float, grid.features.n)
                        for a in ti.static(range(3)):
                            if has_neighbour(grid, local, I, shape, a):
                                N = I + ti.Vector.unit(3, a, ti.i32)
                                x, part = (
                                    grid.features[sample_index(grid, N)] - grid.features[sample_index(grid, I)],
                                    0.0,
                                )
                                upper = x
                                for c in ti.static(range(grid.features.n)):
                                    part += value(x[c])
                                    upper[c] = owed * slope(x[c])
                                total += weight * part
                                d_features -= upper
                                accumulate(grid.g_features, gradient_index(grid, sample_index(grid, N)), upper)
                        accumulate(grid.g_features, gradient_index(grid, sample_index(grid, I)), d_features)
                        note_not_finite(grid, d_features.sum())
                        if ti.static(grid.parted):
                            # others write to the word too
                            grid.feature_samples[word_of(grid, sample_index(grid, I))] = ALL_BITS
                    grid.block_has_gradient[block_at(grid, I // grid.block)] = ti.u8(1)
            rays.loss[None] += total
