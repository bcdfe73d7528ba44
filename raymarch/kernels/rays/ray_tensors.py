"""Copies between PyTorch tensors of rays and a ray buffer, each a single one in the process's memory.

Rows of a tensor are rays; a batch of them is a slice, which begins at the front of the buffer.
"""

from raymarch.engine import ti


@ti.kernel
def rays_in(
    origin: ti.types.ndarray(ndim=2),
    direction: ti.types.ndarray(ndim=2),  # (ray, 3), (ray, 3) unit vectors
    rays: ti.template(),  # RayFields
):
    """The buffer's rays."""
    for r in range(origin.shape[0]):
        for a in ti.static(range(3)):
            rays.origin[r][a] = origin[r, a]
            rays.direction[r][a] = direction[r, a]


@ti.kernel
def image_out(rays: ti.template(), image: ti.types.ndarray(ndim=2)):  # RayFields, (ray, 4)
    """Colour and transmittance."""
    for r in range(image.shape[0]):
        for c in ti.static(range(rays.image.n)):
            image[r, c] = rays.image[r][c]


@ti.kernel
def image_in(
    image: ti.types.ndarray(ndim=2),
    d_image: ti.types.ndarray(ndim=2),
    rays: ti.template(),  # (ray, 4) twice
):
    """What `image_out` gave, and its gradient."""
    for r in range(image.shape[0]):
        for c in ti.static(range(rays.image.n)):
            rays.image[r][c] = image[r, c]
            rays.image.grad[r][c] = d_image[r, c]


@ti.kernel
def depth_out(rays: ti.template(), depth: ti.types.ndarray(ndim=1), weights: ti.types.ndarray(ndim=1)):  # (ray,)
    """Depth, and the sum of weights that it is the mean by."""
    for r in range(depth.shape[0]):
        depth[r], weights[r] = rays.depth[r], rays.weights[r]


@ti.kernel
def depth_in(
    depth: ti.types.ndarray(ndim=1),
    weights: ti.types.ndarray(ndim=1),
    d_depth: ti.types.ndarray(ndim=1),  # (ray,)
    rays: ti.template(),
):
    """What `depth_out` gave, and the gradient of depth."""
    for r in range(depth.shape[0]):
        rays.depth[r], rays.weights[r], rays.depth.grad[r] = depth[r], weights[r], d_depth[r]


@ti.kernel
def add_rays_gradient(
    moved: ti.template(),
    grid: ti.template(),  # gradients (ray,) in index space, Fields
    d_origin: ti.types.ndarray(ndim=2),
    d_direction: ti.types.ndarray(ndim=2),  # (ray, 3), (ray, 3)
):
    """Add the gradients by origin and direction in the world, where a grid is placed by its affine alone."""
    for r in range(d_origin.shape[0]):
        m = grid.index_from_world[None]
        for a in ti.static(range(3)):
            column = ti.Vector([m[0, a], m[1, a], m[2, a]])
            d_origin[r, a] += column.dot(moved.d_origin[r])
            d_direction[r, a] += column.dot(moved.d_index_direction[r]) + moved.d_view_direction[r][a]
