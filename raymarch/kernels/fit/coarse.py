"""Coarse correction: cubes of 4^3 samples that Adam moves as one, by the sum of their gradients.

A two-level preconditioner (Briggs, Henson and McCormick 2000, of linear systems): what neighbours agree on goes at the
rate of the cube, at once and for samples that no ray of the step met, and each sample has its own step besides.
"""

import taichi as ti

from raymarch.kernels.field.bricks import is_sparse, sample_of_block, summed
from raymarch.kernels.field.touched import BITS, sample_of_word, word_of_cube

CUBE = 4  # samples a side


@ti.func
def cube_of(grid: ti.template(), B, i, j, k):
    """Index in the cubes' fields of a block's own cube (i, j, k)."""
    C = B * ti.static(grid.block // CUBE) + ti.Vector([i, j, k])
    if ti.static(is_sparse(grid.table)):
        C = B  # whose blocks are cubes
    return C


@ti.func
def gradient_of_cube(grid: ti.template(), B, i, j, k):
    """Sum of the gradients of a cube's samples: features, and density the last."""
    total = ti.Vector.zero(float, grid.features.n + 1)
    for a in range(CUBE * i, CUBE * i + CUBE):
        for b in range(CUBE * j, CUBE * j + CUBE):
            for c in range(CUBE * k, CUBE * k + CUBE):
                G = summed(grid, sample_of_block(grid, B, a, b, c))
                total[ti.static(grid.features.n)] += grid.g_density[G]
                if ti.static(grid.degree == 0):
                    for n in ti.static(range(grid.features.n)):
                        total[n] += grid.g_features[G][n]
    if ti.static(grid.degree > 0):
        for half in range(2):
            W = word_of_cube(grid, cube_of(grid, B, i, j, k), half)
            word = grid.feature_samples[W]
            if word != 0:
                for n in range(BITS):
                    if (word >> n) & 1:
                        d_features = grid.g_features[summed(grid, sample_of_word(grid, W, n))]
                        for c in ti.static(range(grid.features.n)):
                            total[c] += d_features[c]
    return total


@ti.func
def move_cube(grid: ti.template(), B, i, j, k, step):
    """Samples of a cube less `step`, (channel,) with density the last."""
    for a in range(CUBE * i, CUBE * i + CUBE):
        for b in range(CUBE * j, CUBE * j + CUBE):
            for c in range(CUBE * k, CUBE * k + CUBE):
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
    for i, j, k in ti.static(ti.ndrange(*[grid.block // CUBE] * 3)):
        C, g = cube_of(grid, B, i, j, k), gradient_of_cube(grid, B, i, j, k)
        if g.norm_sqr() != 0.0:
            m = beta1 * grid.m_cube[C] + (1.0 - beta1) * g
            v = beta2 * grid.v_cube[C] + (1.0 - beta2) * g * g
            grid.m_cube[C], grid.v_cube[C] = m, v
            rates = ti.Vector([lr_features] * grid.features.n + [lr_density])
            move_cube(grid, B, i, j, k, rates * m * c1 / (ti.sqrt(v * c2) + eps))
