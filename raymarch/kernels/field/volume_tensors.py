"""Copies between PyTorch tensors of a volume's samples and the grid, each a single one in the process's memory."""

from raymarch.engine import ti
from raymarch.kernels.numeric import is_finite


@ti.kernel
def density_in(density: ti.types.ndarray(ndim=3), grid: ti.template()):  # (x, y, z), Fields
    """Raw density of the level; a number that is not finite marks it broken."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        grid.density[i, j, k] = density[i, j, k]
        if not is_finite(density[i, j, k]):
            grid.nonfinite_step[None] = 1


@ti.kernel
def features_in(features: ti.types.ndarray(ndim=4), grid: ti.template()):  # (x, y, z, channel), Fields
    """Raw features of the level; a number that is not finite marks it broken."""
    for i, j, k in ti.ndrange(features.shape[0], features.shape[1], features.shape[2]):
        total = ti.cast(0.0, float)
        for c in ti.static(range(grid.features.n)):
            grid.features[i, j, k][c] = features[i, j, k, c]
            total += ti.abs(features[i, j, k, c])
        if not is_finite(total):
            grid.nonfinite_step[None] = 1


@ti.kernel
def density_gradient_out(grid: ti.template(), d_density: ti.types.ndarray(ndim=3)):  # Fields, (x, y, z)
    """Transpose of `density_in`."""
    for i, j, k in ti.ndrange(d_density.shape[0], d_density.shape[1], d_density.shape[2]):
        d_density[i, j, k] = grid.density.grad[i, j, k]


@ti.kernel
def features_gradient_out(grid: ti.template(), d_features: ti.types.ndarray(ndim=4)):  # Fields, (x, y, z, channel)
    """Transpose of `features_in`."""
    for i, j, k in ti.ndrange(d_features.shape[0], d_features.shape[1], d_features.shape[2]):
        for c in ti.static(range(grid.features.n)):
            d_features[i, j, k, c] = grid.features.grad[i, j, k][c]
