"""Rays of cameras: those of a run of pixels, and where the pixels of tiles are."""

from raymarch.engine import ti
from raymarch.kernels.numeric import UNIFORM_SCALE, hash_u32
from raymarch.kernels.rays.lens import (
    KIND,
    LENS_VECTOR,
    is_parallel,
    is_spherical,
    start_parallel,
    unproject,
    unproject_pinhole,
    unproject_sphere,
)

# Supersampling: a pixel as the mean of the rays through the middles of its equal parts, a box filter of its area.
#
# The rays of a pixel lie one behind the other in the buffer, row by row; `side` of them along each edge. Where a
# kernel asks for the pixel, `parts` is their number, side^2.


@ti.func
def place_in_pixel(part, side):
    """Middle of a part, from its pixel's corner (u, v) [pixel]."""
    return (part % side + 0.5) / side, (part // side + 0.5) / side


@ti.func
def pixel_seen(rays: ti.template(), pixel, parts):
    """Colour and transmittance of a pixel: the mean of its rays'."""
    total = ti.Vector.zero(float, rays.image.n)
    for part in range(parts):
        total += rays.image[pixel * parts + part]
    return total / parts


@ti.func
def pixel_ray(pose, lens, u, v, special: ti.template()):
    """Ray of a pixel: origin and unit direction through (u, v) [pixel].

    Only where `special` may the lens be orthographic or a panorama: with a branch more the compiler rounds all rays
    otherwise.
    """
    origin, direction = ti.Vector.zero(float, 3), rotate(pose, unproject_pinhole(lens, u, v))
    if lens[KIND] > 0.5:
        direction = rotate(pose, unproject(lens, u, v))
    for a in ti.static(range(3)):
        origin[a] = pose[a, 3]
    if ti.static(special):
        if is_parallel(lens):
            origin += rotate(pose, start_parallel(lens, u, v))
            direction = rotate(pose, ti.Vector([0.0, 0.0, -1.0]))
        elif is_spherical(lens):
            direction = rotate(pose, unproject_sphere(lens, u, v))
    return origin, direction.normalized()


@ti.func
def rotate(pose, local):
    """Direction in the world of one in camera axes."""
    direction = ti.Vector.zero(float, 3)
    for a in ti.static(range(3)):
        direction[a] = pose[a, 0] * local[0] + pose[a, 1] * local[1] + pose[a, 2] * local[2]
    return direction


@ti.kernel
def rays_of_pixels(
    rays: ti.template(),
    pose: ti.math.mat4,
    lens: LENS_VECTOR,  # RayFields (ray,), world_from_camera, see `lens`
    width: int,
    pixels: ti.types.ndarray(dtype=ti.i32, ndim=1),  # [pixel], numbers (pixel,)
    side: int,
    special: ti.template(),
    first: int,  # rays along a pixel's edge, whether rays are, the first's number
):
    """Rays through the middles of pixels' parts, or centres of pixels, which are numbered row by row."""
    for r in range(pixels.shape[0] * side * side):
        pixel = pixels[r // (side * side)]
        u, v = place_in_pixel(r % (side * side), side)
        origin, direction = pixel_ray(pose, lens, pixel % width + u, pixel // width + v, special)
        rays.origin[first + r], rays.direction[first + r] = origin, direction


@ti.func
def jitter_of_pixel(seed, pixel, phase, stretch):
    """Jitter (phase, stretch) of a pixel's ray: up to `phase` of a step early, steps stretched by up to `stretch`."""
    u = ti.cast(hash_u32(seed, pixel, 0), float) * UNIFORM_SCALE
    v = ti.cast(hash_u32(seed, pixel, 1), float) * UNIFORM_SCALE
    return ti.Vector([ti.min(phase * u, 0.999999), 1.0 + stretch * (2.0 * v - 1.0)])


@ti.kernel
def jitter_pixels(
    rays: ti.template(),
    seed: int,
    pixels: ti.types.ndarray(dtype=ti.i32, ndim=1),  # RayFields, numbers (ray,)
    phase: float,
    stretch: float,  # [step], most
):
    """Jitter for pixels, or other rays by their numbers: the same whatever the batch."""
    for r in range(pixels.shape[0]):
        rays.jitter[r] = jitter_of_pixel(seed, pixels[r], phase, stretch)


@ti.func
def corner_of(store: ti.template(), t):
    """View, row and column of a tile's first pixel; tiles that would stick out are moved inside."""
    view = store.view[t]
    place = store.place[view]
    within, width, height = t - place[1], place[2], place[3]
    columns = (width + store.tile - 1) // store.tile
    row = ti.min((within // columns) * store.tile, height - store.tile)
    column = ti.min((within % columns) * store.tile, width - store.tile)
    return view, row, column


@ti.func
def pixel_of(store: ti.template(), view, row, column):
    """Number of a view's pixel in the run of all."""
    place = store.place[view]
    return place[0] + row * place[2] + column


@ti.func
def pixel_counts(store: ti.template(), t, within):
    """Whether a tile's pixel counts: no mask takes it out."""
    return (ti.cast(store.counting[t], ti.i32) >> within) & 1
