"""Copies between PyTorch tensors and the grid, its rays and their image, each a single one in the process's memory.

A template is an array (channel, i, j, k) of red, green, blue and density; index space has its axes in that order, so
that both sides are walked in the order of memory. The grid holds colour as the coefficient of the first harmonic.
"""

import taichi as ti

from raymarch.data.plain import Y00
from raymarch.kernels.numeric import finite


@ti.kernel
def template_in(template: ti.types.ndarray(ndim=4), grid: ti.template()):  # (4, D, H, W), Fields
    """density = channel 3, features = channels 0 to 2 over Y00; a number that is not finite marks it broken."""
    for i, j, k in ti.ndrange(template.shape[1], template.shape[2], template.shape[3]):
        good = finite(template[3, i, j, k])
        grid.density[i, j, k] = template[3, i, j, k]
        for c in ti.static(range(3)):
            good = good and finite(template[c, i, j, k])
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


@ti.kernel
def rays_in(
    origin: ti.types.ndarray(ndim=1), direction: ti.types.ndarray(ndim=2),  # (3,), (ray, 3)
    rays: ti.template(), first: int, count: int,  # RayFields, of the directions
):  # fmt: skip
    """The buffer's `count` rays: one origin (3,), and rows of unit directions (ray, 3) from the `first`."""
    for r in range(count):
        for a in ti.static(range(3)):
            rays.origin[r][a] = origin[a]
            rays.direction[r][a] = direction[first + r, a]


@ti.kernel
def rays_gradient_out(
    moved: ti.template(), grid: ti.template(),  # gradients (ray,), Fields
    d_origin: ti.types.ndarray(ndim=2), d_direction: ti.types.ndarray(ndim=2),  # (ray, 3), (ray, 3)
    first: int, count: int,
):  # fmt: skip
    """Rows of d_origin and d_direction (ray, 3) in the world from those in index space; no harmonics see a heading."""
    for r in range(count):
        m = grid.index_from_world[None]
        for a in ti.static(range(3)):
            column = ti.Vector([m[0, a], m[1, a], m[2, a]])
            d_origin[first + r, a] = column.dot(moved.d_origin[r])
            d_direction[first + r, a] = column.dot(moved.d_index_direction[r])


@ti.kernel
def image_out(rays: ti.template(), image: ti.types.ndarray(ndim=2), first: int, count: int):  # image (4, ray)
    """Columns of an image (channel, ray) of red, green, blue and alpha = 1 - T."""
    for r in range(count):
        for c in ti.static(range(3)):
            image[c, first + r] = rays.image[r][c]
        image[3, first + r] = 1.0 - rays.image[r][3]


@ti.kernel
def image_gradient_in(d_image: ti.types.ndarray(ndim=2), rays: ti.template(), first: int, count: int):  # (4, ray)
    """Transpose of `image_out`."""
    for r in range(count):
        for c in ti.static(range(3)):
            rays.image.grad[r][c] = d_image[c, first + r]
        rays.image.grad[r][3] = -d_image[3, first + r]
