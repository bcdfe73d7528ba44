"""Copies between templates that are PyTorch tensors and the grid, each a single one in the process's memory.

A template is an array (channel, i, j, k) of red, green, blue and density; index space has its axes in that order, so
that both sides are walked in the order of memory. The grid holds colour as the coefficient of the first harmonic.
"""

from raymarch.engine import ti
from raymarch.kernels.numeric import is_finite
from raymarch.volumes.harmonics import Y00


@ti.kernel
def template_in(template: ti.types.ndarray(ndim=4), grid: ti.template()):  # (4, D, H, W), Fields
    """density = channel 3, features = channels 0 to 2 over Y00; a number that is not finite marks it broken."""
    for i, j, k in ti.ndrange(template.shape[1], template.shape[2], template.shape[3]):
        good = is_finite(template[3, i, j, k])
        grid.density[i, j, k] = template[3, i, j, k]
        for c in ti.static(range(3)):
            good = good and is_finite(template[c, i, j, k])
            grid.features[i, j, k][c] = template[c, i, j, k] / Y00
        if not good:
            grid.nonfinite_step[None] = 1


@ti.kernel
def template_gradient_out(grid: ti.template(), d_template: ti.types.ndarray(ndim=4)):  # Fields, (4, D, H, W)
    """Transpose of `template_in`: d_template from the grid's gradient, which becomes 0."""
    for i, j, k in ti.ndrange(d_template.shape[1], d_template.shape[2], d_template.shape[3]):
        d_template[3, i, j, k] = grid.density.grad[i, j, k]
        grid.density.grad[i, j, k] = 0
        for c in ti.static(range(3)):
            d_template[c, i, j, k] = grid.features.grad[i, j, k][c] / Y00
            grid.features.grad[i, j, k][c] = 0
