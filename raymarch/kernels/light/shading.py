"""Shading of a surface: ambient, diffuse and specular light of one distant lamp, and its tangent and adjoint.

Letters: n unit normal that faces the eye, e unit vector towards the eye, l towards the lamp, h halfway between both.
lit = colour (ambient + diffuse max(n l, 0)) + specular max(n h, 0)^shininess. Blinn 1977, "Models of light reflection
for computer synthesized pictures". A headlight has l = e. The numbers lie in `rays.shading`, by the indices below;
derivatives at n l = 0 and n h = 0 are those of the dark side.
"""

from raymarch.engine import ti

LAMP, HEADLIGHT, AMBIENT, DIFFUSE, SPECULAR, SHININESS, SURFACE_COLOUR, PAINTED, SMOOTH, OCCLUSION_REACH = (
    0,
    3,
    4,
    5,
    6,
    7,
    8,
    11,
    12,
    13,
)
MATERIAL_NUMBERS = 14
MIN_LENGTH = 1e-30


@ti.func
def lamp_of(m, e):
    """l and h."""
    light, half = e, e
    if m[HEADLIGHT] == 0:
        light = ti.Vector([m[LAMP], m[LAMP + 1], m[LAMP + 2]])
        half = (light + e) / ti.max((light + e).norm(), MIN_LENGTH)
    return light, half


@ti.func
def surface_colour(rays: ti.template(), colour):
    """Colour of the surface: the shading's own where it has one; and 1 where the volume's is seen, else 0."""
    m = rays.shading[None]
    seen = 1.0 - m[PAINTED]
    return seen * colour + m[PAINTED] * ti.Vector(
        [m[SURFACE_COLOUR], m[SURFACE_COLOUR + 1], m[SURFACE_COLOUR + 2]]
    ), seen


@ti.func
def shade(rays: ti.template(), colour, n, e):
    """lit (3,)."""
    m = rays.shading[None]
    light, half = lamp_of(m, e)
    gloss = m[SPECULAR] * ti.pow(ti.max(n.dot(half), 0.0), m[SHININESS])
    return colour * (m[AMBIENT] + m[DIFFUSE] * ti.max(n.dot(light), 0.0)) + gloss


@ti.func
def slopes(m, colour, n, light, half):
    """Factor of the colour, and derivative (3,) of lit by n l, and of each channel by n h."""
    facing, glossy = n.dot(light), n.dot(half)
    by_light, by_half = ti.Vector.zero(float, 3), ti.cast(0.0, float)
    if facing > 0:
        by_light = m[DIFFUSE] * colour
    if glossy > 0:
        by_half = m[SPECULAR] * m[SHININESS] * ti.pow(glossy, m[SHININESS] - 1.0)
    return m[AMBIENT] + m[DIFFUSE] * ti.max(facing, 0.0), by_light, by_half


@ti.func
def shade_tangent(rays: ti.template(), colour, n, e, dot_colour, dot_n, dot_e):
    """dot_lit (3,)."""
    m = rays.shading[None]
    light, half = lamp_of(m, e)
    by_colour, by_light, by_half = slopes(m, colour, n, light, half)
    dot_light, dot_half = dot_e, dot_e
    if m[HEADLIGHT] == 0:
        dot_light = ti.Vector.zero(float, 3)
        dot_half = (dot_e - half * half.dot(dot_e)) / ti.max((light + e).norm(), MIN_LENGTH)
    dot_facing = dot_n.dot(light) + n.dot(dot_light)
    dot_glossy = dot_n.dot(half) + n.dot(dot_half)
    return by_colour * dot_colour + by_light * dot_facing + by_half * dot_glossy


@ti.func
def shade_adjoint(rays: ti.template(), colour, n, e, d_lit):
    """d_colour, d_n, d_e from d_lit."""
    m = rays.shading[None]
    light, half = lamp_of(m, e)
    by_colour, by_light, by_half = slopes(m, colour, n, light, half)
    d_facing, d_glossy = by_light.dot(d_lit), by_half * d_lit.sum()
    d_half, d_e = d_glossy * n, ti.Vector.zero(float, 3)
    if m[HEADLIGHT] == 0:
        d_e = (d_half - half * half.dot(d_half)) / ti.max((light + e).norm(), MIN_LENGTH)
    else:
        d_e = d_facing * n + d_half
    return by_colour * d_lit, d_facing * light + d_glossy * half, d_e


@ti.func
def normal_of(gradient, e):
    """Unit normal of a level surface that faces the eye, and how many gradients it is; 0 where there is none."""
    most, scale = ti.abs(gradient).max(), ti.cast(0.0, float)
    if most > MIN_LENGTH:
        scale = 1.0 / (most * (gradient / most).norm())  # squares of small or large numbers would be 0, or infinite
    if gradient.dot(e) < 0:
        scale = -scale
    return scale * gradient, scale


@ti.func
def along_sphere(n, scale, dot_gradient):
    """Tangent of `normal_of`, its own transpose: what of a change of the gradient turns the normal."""
    return scale * (dot_gradient - n * n.dot(dot_gradient))


@ti.func
def world_slope(grid: ti.template(), slope):
    """Slope (3,) in the world of one in index space: the transpose of the frame times it."""
    m, total = grid.index_from_world[None], ti.Vector.zero(float, 3)
    for i, j in ti.static(ti.ndrange(3, 3)):
        total[j] += m[i, j] * slope[i]
    return total


@ti.func
def index_slope(grid: ti.template(), d_slope):
    """Transpose of `world_slope`."""
    m, total = grid.index_from_world[None], ti.Vector.zero(float, 3)
    for i, j in ti.static(ti.ndrange(3, 3)):
        total[i] += m[i, j] * d_slope[j]
    return total
