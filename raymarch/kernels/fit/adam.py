"""Adam on touched voxels, block by block in memory order (Kingma and Ba 2015; eps outside the root).

All harmonics of a colour share its second moment, the mean of their squares, as parameters of one kind may (Zhang et
al. 2025, "Adam-mini"), and those above degree 0 have no first: so moments are as large at any degree.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import first_block, gradient_index, is_sparse, sample_of_block
from raymarch.kernels.field.touched import WORD_BITS, sample_of_word, word_of_block, word_of_cube, words_of
from raymarch.kernels.fit.reduce import block_of

# Coarse correction: cubes of 4^3 samples that Adam moves as one, by the sum of their gradients.
#
# A two-level preconditioner (Briggs, Henson and McCormick 2000, of linear systems): what neighbours agree on goes at
# the rate of the cube, at once and for samples that no ray of the step met, and each sample has its own step besides.

CUBE_SIDE = 4  # samples a side


@ti.func
def cube_of(grid: ti.template(), B, i, j, k):
    """Index in the cubes' fields of a block's own cube (i, j, k)."""
    C = B * ti.static(grid.block // CUBE_SIDE) + ti.Vector([i, j, k])
    if ti.static(is_sparse(grid.table)):
        C = B  # whose blocks are cubes
    return C


@ti.func
def gradient_of_cube(grid: ti.template(), B, i, j, k):
    """Sum of the gradients of a cube's samples: features, and density the last."""
    total = ti.Vector.zero(float, grid.features.n + 1)
    for a in range(CUBE_SIDE * i, CUBE_SIDE * i + CUBE_SIDE):
        for b in range(CUBE_SIDE * j, CUBE_SIDE * j + CUBE_SIDE):
            for c in range(CUBE_SIDE * k, CUBE_SIDE * k + CUBE_SIDE):
                G = gradient_index(grid, sample_of_block(grid, B, a, b, c))
                total[ti.static(grid.features.n)] += grid.g_density[G]
                if ti.static(grid.packs):
                    for n in ti.static(range(grid.features.n)):
                        total[n] += grid.g_features[G][n]
    if ti.static(grid.parted):
        for half in range(2):
            W = word_of_cube(grid, cube_of(grid, B, i, j, k), half)
            word = grid.feature_samples[W]
            if word != 0:
                for n in range(WORD_BITS):
                    if (word >> n) & 1:
                        d_features = grid.g_features[gradient_index(grid, sample_of_word(grid, W, n))]
                        for c in ti.static(range(grid.features.n)):
                            total[c] += d_features[c]
    return total


@ti.func
def move_cube(grid: ti.template(), B, i, j, k, step):
    """Samples of a cube less `step`, (channel,) with density the last."""
    for a in range(CUBE_SIDE * i, CUBE_SIDE * i + CUBE_SIDE):
        for b in range(CUBE_SIDE * j, CUBE_SIDE * j + CUBE_SIDE):
            for c in range(CUBE_SIDE * k, CUBE_SIDE * k + CUBE_SIDE):
                I = sample_of_block(grid, B, a, b, c)
                features = grid.features[I]
                for n in ti.static(range(grid.features.n)):
                    features[n] -= step[n]
                grid.features[I] = features
                grid.density[I] -= step[ti.static(grid.features.n)]


@ti.func
def step_cubes(grid: ti.template(), B, lr_density, lr_features, beta1, beta2, eps, c1, c2):
    """Adam's step of a block's cubes, whose samples keep gradients and moments of their own as they were.

    A cube without a gradient stays where it is, as a sample does.
    """
    for i, j, k in ti.static(ti.ndrange(*[grid.block // CUBE_SIDE] * 3)):
        C, g = cube_of(grid, B, i, j, k), gradient_of_cube(grid, B, i, j, k)
        if g.norm_sqr() != 0.0:
            m = beta1 * grid.m_cube[C] + (1.0 - beta1) * g
            v = beta2 * grid.v_cube[C] + (1.0 - beta2) * g * g
            grid.m_cube[C], grid.v_cube[C] = m, v
            rates = ti.Vector([lr_features] * grid.features.n + [lr_density])
            move_cube(grid, B, i, j, k, rates * m * c1 / (ti.sqrt(v * c2) + eps))


@ti.func
def mean_square(grid: ti.template(), h):
    """Mean over the harmonics of the squares of a gradient by features, (channel,) a colour each."""
    total = ti.Vector.zero(float, grid.colours)
    for n in ti.static(range(grid.features.n)):
        total[ti.static(n % grid.colours)] += h[n] * h[n]
    return total * ti.static(grid.colours / grid.features.n)


@ti.func
def step_density(grid: ti.template(), I, lr_density, beta1, beta2, eps, c1, c2, thinning, sound):
    """Step the density of one sample, if its gradient is not zero, and clear that."""
    G = gradient_index(grid, I)
    g = grid.g_density[G]
    if g != 0.0:
        grid.g_density[G] = 0.0
        m = beta1 * grid.m_density[I] + (1.0 - beta1) * g
        v = beta2 * grid.v_density[I] + (1.0 - beta2) * g * g
        if sound:
            grid.m_density[I], grid.v_density[I] = m, v
            x = grid.density[I]
            let_through = 1.0 / (1.0 + ti.exp(x + grid.shift[None]))  # by a voxel of softplus
            grid.density[I] = x - lr_density * (m * c1 / (ti.sqrt(v * c2) + eps) + thinning * let_through)


@ti.func
def step_features(grid: ti.template(), I, lr_features, lr_harmonics, beta1, beta2, eps, c1, c2, decay, sound):
    """Step the features of one sample, if their gradient is not zero, and clear that."""
    G = gradient_index(grid, I)
    h = grid.g_features[G]
    if h.norm_sqr() != 0.0:
        grid.g_features[G] = ti.Vector.zero(float, grid.features.n)
        m = beta1 * grid.m_features[I] + (1.0 - beta1) * ti.Vector([h[c] for c in ti.static(range(grid.colours))])
        v = beta2 * grid.v_features[I] + (1.0 - beta2) * mean_square(grid, h)
        if sound:
            grid.m_features[I], grid.v_features[I] = m, v
            x, size = grid.features[I], ti.sqrt(v * c2) + eps
            for c in ti.static(range(grid.colours)):
                x[c] -= lr_features * m[c] * c1 / size[c]
            for n in ti.static(range(grid.colours, grid.features.n)):
                x[n] -= lr_harmonics * h[n] / size[ti.static(n % grid.colours)] + lr_features * decay * x[n]
            grid.features[I] = x


@ti.func
def step_touched(grid: ti.template(), B, lr_features, lr_harmonics, beta1, beta2, eps, c1, c2, decay, sound):
    """Step the features of a block's touched samples, which then are so no more."""
    for w in range(ti.static(words_of(grid))):
        W = word_of_block(grid, B, w)
        word = grid.feature_samples[W]
        if word != 0:
            grid.feature_samples[W] = 0
            for n in range(WORD_BITS):
                if (word >> n) & 1:
                    I = sample_of_word(grid, W, n)
                    step_features(grid, I, lr_features, lr_harmonics, beta1, beta2, eps, c1, c2, decay, sound)


@ti.kernel
def adam(
    grid: ti.template(),
    blocks: ti.math.ivec3,
    age: int,
    step: int,
    lr_density: float,
    lr_features: float,
    lr_harmonics: float,
    beta1: float,
    beta2: float,
    eps: float,
    coarse: float,
    decay: float,
    thinning: float,
):
    """Step the voxels whose gradient is not zero, then clear it. Does nothing once a gradient was not finite.

    Harmonics above degree 0 go at a rate of their own, and lose `decay` times the features' of what they are
    (Loshchilov and Hutter 2019). Density falls by `thinning` of its rate besides, times what a voxel lets through: what
    is opaque stays. Cubes of samples are moved as one by `coarse` times the rates besides.

    `age` counts the steps since the moments began; `step` is noted as step + 2 if it is the first that is not finite.
    """
    for _ in range(1):
        if grid.nonfinite_step[None] == 1:
            grid.nonfinite_step[None] = step + 2
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        if grid.block_has_gradient[B] != 0:
            grid.block_has_gradient[B] = 0
            c1 = 1.0 / (1.0 - beta1 ** ti.cast(age + 1, float))
            c2 = 1.0 / (1.0 - beta2 ** ti.cast(age + 1, float))
            sound = grid.nonfinite_step[None] == 0
            if sound and coarse > 0.0:
                step_cubes(grid, B, coarse * lr_density, coarse * lr_features, beta1, beta2, eps, c1, c2)
            colour = lr_features, lr_harmonics, beta1, beta2, eps, c1, c2, decay, sound
            for i in range(grid.block):
                for j in range(grid.block):
                    for k in range(grid.block):
                        I = sample_of_block(grid, B, i, j, k)
                        step_density(grid, I, lr_density, beta1, beta2, eps, c1, c2, thinning, sound)
                        if ti.static(grid.packs):
                            step_features(grid, I, *colour)
            if ti.static(grid.parted):
                step_touched(grid, B, *colour)
