"""Adam by a thread a sample: the step of `adam`, bit by bit; neighbouring threads move neighbours in memory.

For GPUs, if it proves faster there (`kernels/gpu_switches`): on a CPU a block's loop is.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import first_block, sample_of_block
from raymarch.kernels.field.touched import bit_of, word_of, word_of_block, words_of
from raymarch.kernels.fit.adam import step_cubes, step_density, step_features
from raymarch.kernels.fit.reduce import block_of


@ti.kernel
def adam_by_sample(
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
    """As `adam`: first cubes are moved, for which their samples' gradients are still there, then samples."""
    for _ in range(1):
        if grid.nonfinite_step[None] == 1:
            grid.nonfinite_step[None] = step + 2
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        if grid.block_has_gradient[B] != 0 and grid.nonfinite_step[None] == 0 and coarse > 0.0:
            c1 = 1.0 / (1.0 - beta1 ** ti.cast(age + 1, float))
            c2 = 1.0 / (1.0 - beta2 ** ti.cast(age + 1, float))
            step_cubes(grid, B, coarse * lr_density, coarse * lr_features, beta1, beta2, eps, c1, c2)
    for n in range(first_block(grid) * grid.block**3, blocks[0] * blocks[1] * blocks[2] * grid.block**3):
        B = block_of(n // ti.static(grid.block**3), blocks)
        if grid.block_has_gradient[B] != 0:
            c1 = 1.0 / (1.0 - beta1 ** ti.cast(age + 1, float))
            c2 = 1.0 / (1.0 - beta2 ** ti.cast(age + 1, float))
            sound = grid.nonfinite_step[None] == 0
            m, side = n % ti.static(grid.block**3), ti.static(grid.block)
            I = sample_of_block(grid, B, m // (side * side), (m // side) % side, m % side)
            step_density(grid, I, lr_density, beta1, beta2, eps, c1, c2, thinning, sound)
            touched = True
            if ti.static(grid.parted):
                touched = (grid.feature_samples[word_of(grid, I)] >> bit_of(grid, I)) & 1 != 0
            if touched:
                step_features(grid, I, lr_features, lr_harmonics, beta1, beta2, eps, c1, c2, decay, sound)
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        if grid.block_has_gradient[B] != 0:
            grid.block_has_gradient[B] = 0
            if ti.static(grid.parted):
                for w in range(ti.static(words_of(grid))):
                    grid.feature_samples[word_of_block(grid, B, w)] = 0
