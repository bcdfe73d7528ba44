"""Lenses of kernels: pixels to directions in camera axes and back; `geometry/lens` and `geometry/lens_distortion`
beside.

`lens` is one vector for every model: focal u and v, centre u and v [pixel], kind, reach, the most that a pixel moves
by a change of a direction's tangents, and the nine numbers of `geometry/lens_distortion`.
"""

from raymarch import runtime
from raymarch.engine import ti

ANGLES, FOV, PARALLEL, SPHERE = 2, 3, 4, 5  # kinds, as in `geometry/lens_distortion`; 0 is the pinhole
KIND, FOLD_RADIUS, FOLD_SLOPE, NUMBERS = 4, 5, 6, 7  # where they are in the vector
LENS_NUMBERS = 9  # of the numbers
TINY_OMEGA = 1e-3
LENS_VECTOR = ti.types.vector(NUMBERS + LENS_NUMBERS, ti.math.vec4.dtype)  # which follows the precision that runs
MAX_NEWTON_STEPS = 40
MAX_START_STEPS, START_TOLERANCE = 20, 0.01


@ti.func
def distort(lens, a):
    """Distorted plane point of an undistorted one within the reach, and its slopes, xx, xy and yy."""
    s = a.norm_sqr()
    scale, slope = ti.cast(1.0, float), ti.cast(0.0, float)  # radial factor, and its slope by s
    pull = ti.Vector.zero(float, 2)
    if lens[KIND] > FOV - 0.5:
        omega = lens[NUMBERS]
        if omega < TINY_OMEGA:
            scale, slope = 1.0 + omega * omega * (1.0 / 12.0 - s / 3.0), -omega * omega / 3.0
        else:
            t = 2.0 * ti.tan(0.5 * omega)
            x = t * ti.sqrt(s)
            ratio, bend = 1.0 - x * x * (1.0 / 3.0 - 0.2 * x * x), -1.0 / 3.0 + 0.4 * x * x
            if x > 0.01:
                ratio = ti.atan2(x, 1.0) / x
                bend = (1.0 / (1.0 + x * x) - ratio) / (2.0 * x * x)
            scale, slope = t / omega * ratio, t * t * t / omega * bend
    else:
        k = ti.Vector([lens[NUMBERS + i] for i in range(LENS_NUMBERS)])
        below = 1.0 + s * (k[5] + s * (k[6] + s * k[7]))
        scale = (1.0 + s * (k[0] + s * (k[1] + s * (k[2] + s * k[8])))) / below
        slope = k[0] + s * (2.0 * k[1] + s * (3.0 * k[2] + s * 4.0 * k[8]))
        slope = (slope - scale * (k[5] + s * (2.0 * k[6] + s * 3.0 * k[7]))) / below
        pull = ti.Vector([k[4], k[3]])
    even = scale + 2.0 * pull.dot(a)
    return a * even + s * pull, ti.Vector([
        even + 2.0 * slope * a[0] * a[0] + 4.0 * pull[0] * a[0],
        2.0 * slope * a[0] * a[1] + 2.0 * (pull[0] * a[1] + pull[1] * a[0]),
        even + 2.0 * slope * a[1] * a[1] + 4.0 * pull[1] * a[1],
    ])  # fmt: skip


@ti.func
def undistort(lens, m):
    """Undistorted plane point of a distorted one: Newton's method, its steps halved until they help."""
    a, left, turn = ti.Vector.zero(float, 2), ti.cast(1e30, float), 0
    size = m.norm()
    way, low, high, r = m / ti.max(size, 1e-30), ti.cast(0.0, float), lens[FOLD_RADIUS], ti.min(size, lens[FOLD_RADIUS])
    while turn < MAX_START_STEPS:  # about as far off first, on the same way
        value, slope = distort(lens, r * way)
        gap = value.dot(way) - size
        if gap < 0:
            low = r
        else:
            high = r
        turn = MAX_START_STEPS if ti.abs(gap) <= START_TOLERANCE * size else turn + 1
        if turn < MAX_START_STEPS:
            r -= gap / (slope[0] * way[0] ** 2 + 2.0 * slope[1] * way[0] * way[1] + slope[2] * way[1] ** 2)
            if not (low < r < high):
                r = 0.5 * (low + high)
    step = r * way
    turn = 0
    while turn < MAX_NEWTON_STEPS:
        tried = a + step
        tried *= ti.min(1.0, lens[FOLD_RADIUS] / ti.max(tried.norm(), 1e-30))
        value, slope = distort(lens, tried)
        gap = m - value
        if gap.norm_sqr() < left:
            a, left = tried, gap.norm_sqr()
            step = ti.Vector([slope[2] * gap[0] - slope[1] * gap[1], slope[0] * gap[1] - slope[1] * gap[0]])
            step /= slope[0] * slope[2] - slope[1] * slope[1]
        else:
            step *= 0.5
        turn += 1
        if not step.norm_sqr() > ti.static(1e-13 if runtime.single_precision() else 1e-30) * (1.0 + a.norm_sqr()):
            turn = MAX_NEWTON_STEPS
    return a


@ti.func
def unproject(lens, u, v):
    """Direction in camera axes of (u, v) [pixel], of any length, through a lens that is not a pinhole."""
    a = undistort(lens, ti.Vector([(u - lens[2]) / lens[0], (v - lens[3]) / lens[1]]))
    local = ti.Vector([a[0], -a[1], -1.0])
    if ti.abs(lens[KIND] - ANGLES) < 0.5:
        angle = a.norm()
        across = ti.sin(angle) / angle if angle > 1e-4 else 1.0 - angle * angle / 6.0
        local = ti.Vector([across * a[0], -across * a[1], -ti.cos(angle)])
    return local


@ti.func
def unproject_pinhole(lens, u, v):
    """Direction in camera axes, its z at -1, of (u, v) [pixel]."""
    return ti.Vector([(u - lens[2]) / lens[0], (lens[3] - v) / lens[1], -1.0])


@ti.func
def start_parallel(lens, u, v):
    """Origin in camera axes of (u, v) [pixel], of parallel rays."""
    return ti.Vector([(u - lens[2]) / lens[0], (lens[3] - v) / lens[1], 0.0])


@ti.func
def is_parallel(lens):
    """Whether rays are parallel: an orthographic projection, of which a focal length is in pixels per world unit."""
    return ti.abs(lens[KIND] - PARALLEL) < 0.5


@ti.func
def is_spherical(lens):
    """Whether pixels are longitude and latitude, of which a focal length is in pixels per radian."""
    return lens[KIND] > SPHERE - 0.5


@ti.func
def unproject_sphere(lens, u, v):
    """Unit direction in camera axes of (u, v) [pixel] of an equirectangular image."""
    longitude, latitude = (u - lens[2]) / lens[0], (v - lens[3]) / lens[1]
    level = ti.cos(latitude)
    return ti.Vector([level * ti.sin(longitude), -ti.sin(latitude), -level * ti.cos(longitude)])


@ti.func
def project(lens, local):
    """(u, v) [pixel] and depth of a point in camera axes, before the camera; of a fisheye, and of an equirectangular
    image, the distance for depth."""
    depth = -local[2]
    u, v = lens[2] + lens[0] * local[0] / depth, lens[3] - lens[1] * local[1] / depth
    if is_parallel(lens):
        u, v = lens[2] + lens[0] * local[0], lens[3] - lens[1] * local[1]
    elif is_spherical(lens):
        u = lens[2] + lens[0] * ti.atan2(local[0], depth)
        v = lens[3] - lens[1] * ti.atan2(local[1], ti.sqrt(local[0] * local[0] + depth * depth))
        depth = local.norm()
    elif lens[KIND] > 0.5:
        a = ti.Vector([local[0], -local[1]])
        if ti.abs(lens[KIND] - ANGLES) < 0.5:
            across = a.norm()
            a *= ti.atan2(across, depth) / ti.max(across, 1e-30) if across > 1e-6 * depth else 1.0 / depth
            depth = local.norm()
        else:
            a /= depth
        inside = ti.min(1.0, lens[FOLD_RADIUS] / ti.max(a.norm(), 1e-30))
        m, _ = distort(lens, a * inside)
        u, v = lens[2] + lens[0] * m[0] / inside, lens[3] + lens[1] * m[1] / inside
    return u, v, depth


@ti.func
def footprint(lens, local, depth, radius):
    """Radius [pixel] that holds the image of a ball around a point, or under 0 where the camera is in the ball."""
    slant = ti.sqrt(1.0 + (local[0] ** 2 + local[1] ** 2) / (depth * depth))
    if ti.abs(lens[KIND] - ANGLES) < 0.5:
        slant = 1.0
    reach = ti.cast(-1.0, float)
    if is_parallel(lens):
        reach = radius * lens[FOLD_SLOPE] + 1.0 if depth > 2.0 * radius else -1.0
    elif is_spherical(lens):
        level = ti.sqrt(local[0] ** 2 + local[2] ** 2)  # distance from the poles' axis, near which it is all around
        if depth > 2.0 * radius:
            around = ti.asin(radius / level) if level > 1.1 * radius else 2.0 * ti.math.pi
            reach = around * lens[FOLD_SLOPE] + 1.0
    elif depth > 2.0 * radius * slant:
        reach = radius * slant / (depth - radius * slant) * lens[FOLD_SLOPE] * slant + 1.0
    return reach
