"""Normals of what is composited: mean slope of the value by the march's weights, as a unit vector of the world."""

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.integrator.composited import Quantity, composited
from raymarch.kernels.integrator.distance import MIN_OPACITY
from raymarch.kernels.light.shading import normal_of, world_slope
from raymarch.kernels.numeric import put_numbers


@ti.func
def read(scene: ti.template(), ray: ti.template(), at: ti.template(), shade):
    """Slope (3,) of the value in index space, in the unit of the innermost box."""
    steep = at.scale * activation.density_slope(scene.variant, at.x)
    if ti.static(scene.grid.boxes > 1):
        steep *= at.scale  # in the world the value, too, is half as much in a box twice as large
    return steep * at.slope


@ti.func
def write_normal(scene: ti.template(), ray: ti.template(), slope, T):
    """sum_even = unit normal across a slope of the world, facing the eye; 0 where an opacity under `MIN_OPACITY` is
    met.
    """
    normal = ti.Vector.zero(float, 3)
    if 1.0 - T >= MIN_OPACITY:
        normal, _ = normal_of(slope, -ray.heading)
    put_numbers(scene.rays.sum_even, ray.r, ti.Vector([normal[0], normal[1], normal[2], 0.0]))


@ti.func
def finish(scene: ti.template(), ray: ti.template(), state: ti.template()):
    write_normal(scene, ray, world_slope(scene.grid, state.sum), state.T)


NORMAL = composited("normals", Quantity(3, read), finish, sloped=True)
