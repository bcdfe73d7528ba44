"""What runs in the f32 worker process, and small kernels that run in either; plain functions, arrays in and out."""

import hashlib
from dataclasses import replace

import cases
import drive
import numpy as np

from raymarch import runtime
from raymarch.device.image_store import ImageStore
from raymarch.engine import ti
from raymarch.fitting.fit import fit
from raymarch.fitting.plan.bounds import find_box
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import preset
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.kernels import numeric
from raymarch.kernels.field import activation
from raymarch.kernels.field.activation import COLOUR_FUNCTIONS, DENSITY_FUNCTIONS
from raymarch.kernels.field.gather import cell_of, gather, scatter
from raymarch.kernels.field.harmonics import basis, basis_slope
from raymarch.kernels.field.touched import mark
from raymarch.kernels.fit.choice import shuffle
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.splat import splat_adjoint
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.renderer import render
from raymarch.tape.splatting import Splat, splat
from raymarch.views.views import Views

POINTS = ti.types.ndarray(ndim=2)
NUMBERS = ti.types.ndarray(ndim=1)


def start(arch):
    """The worker's initializer."""
    runtime.start(arch, "f32")


def image(place, degree, density, colour):
    """`drive.image` of a case."""
    v = cases.volume(place, degree, density, colour)
    return drive.image(v, cases.rays(v), 0.5 * v.voxel)


def gradient(place, degree, density, colour):
    """`drive.gradient` of a case, for a cotangent from a seed."""
    v = cases.volume(place, degree, density, colour)
    r = cases.rays(v)
    return drive.gradient(v, r, np.random.default_rng(1).normal(size=(len(r), 4)), 0.5 * v.voxel)


def gradients_of_layouts(degree, blocks):
    """`drive.gradient` of one case in each layout."""
    v = cases.volume(degree=degree)
    r = cases.rays(v)
    d_image = np.random.default_rng(0).normal(size=(len(r), 4))
    return [drive.gradient(v, r, d_image, 0.1, block=block) for block in blocks]


def image_of_camera(volume, camera, march):
    """Colour and transmittance (ray, 4) of a camera."""
    with Linearised(volume, camera, background=cases.BACKGROUND, march=march) as seen:
        return seen.image()


def rendered(volume, camera, march):
    """Picture (height, width, 3) of a camera, on black."""
    return render(volume, camera, march=march, background="black")


def checked(volume, camera, march):
    """(group, dot) rows of the gradient check in the process's precision."""
    with Linearised(volume, camera, background=cases.BACKGROUND, march=march) as seen:
        return [(row.parameter, row.dot) for row in check_rows(seen, pairs=5)]


def adjoint(volume, camera, march):
    """The gradient by each group of parameters, for a cotangent from a seed."""
    d_image = np.random.default_rng(1).normal(size=(camera.width * camera.height, 4))
    with Linearised(volume, camera, background=cases.BACKGROUND, march=march) as seen:
        gradient = seen.adjoint(d_image)
    return {name: getattr(gradient, name) for name in seen.groups}


@ti.kernel
def exp_of(x: NUMBERS, y: NUMBERS):
    for i in range(x.shape[0]):
        y[i] = numeric.exp(x[i])


@ti.kernel
def log1p_unit_of(x: NUMBERS, y: NUMBERS):
    for i in range(x.shape[0]):
        y[i] = numeric.log1p_unit(x[i])


@ti.kernel
def log_of_rest_of(x: NUMBERS, y: NUMBERS):
    for i in range(x.shape[0]):
        y[i] = numeric.log_of_rest(x[i])


@ti.kernel
def density_of(variant: ti.template(), x: NUMBERS, y: NUMBERS):
    for i in range(x.shape[0]):
        y[i] = activation.density(variant, x[i])


@ti.kernel
def density_slope_of(variant: ti.template(), x: NUMBERS, y: NUMBERS):
    for i in range(x.shape[0]):
        y[i] = activation.density_slope(variant, x[i])


@ti.kernel
def harmonics_of(degree: ti.template(), directions: POINTS, y: POINTS):
    for r in range(directions.shape[0]):
        b = basis(degree, ti.Vector([directions[r, 0], directions[r, 1], directions[r, 2]]))
        for k in ti.static(range((degree + 1) ** 2)):
            y[r, k] = b[k]


@ti.kernel
def harmonic_slopes_of(degree: ti.template(), directions: POINTS, y: POINTS):
    for r in range(directions.shape[0]):
        s = basis_slope(degree, ti.Vector([directions[r, 0], directions[r, 1], directions[r, 2]]))
        for k, a in ti.static(ti.ndrange((degree + 1) ** 2, 3)):
            y[r, 3 * k + a] = s[k, a]


def mistyped(harmonic, axis):
    """The slopes of the harmonics, with one constant wrong in the seventh figure."""

    @ti.func
    def slope(degree: ti.template(), d):
        s = basis_slope(degree, d)
        s[harmonic, axis] *= 1.000002
        return s

    return slope


@ti.kernel
def cells_of(grid: ti.template(), points: POINTS, cells: POINTS):
    for r in range(points.shape[0]):
        cell = cell_of(ti.Vector([points[r, 0], points[r, 1], points[r, 2]]), grid.max_index[None])
        for a in ti.static(range(3)):
            cells[r, a] = cell[a]


@ti.kernel
def gather_of(grid: ti.template(), points: POINTS, y: NUMBERS):
    for r in range(points.shape[0]):
        p = ti.Vector([points[r, 0], points[r, 1], points[r, 2]])
        cell = cell_of(p, grid.max_index[None])
        y[r] = gather(grid.density, cell, p - cell)


@ti.kernel
def scatter_of(grid: ti.template(), points: POINTS, w: NUMBERS):
    ti.loop_config(serialize=True)
    for r in range(points.shape[0]):
        p = ti.Vector([points[r, 0], points[r, 1], points[r, 2]])
        cell = cell_of(p, grid.max_index[None])
        scatter(grid.d_density, 0, cell, p - cell, w[r])


@ti.kernel
def mark_of(grid: ti.template(), cell: ti.math.ivec3, cell2: ti.math.ivec3):
    mark(grid, cell, cell2)


def numbers(kernel, x, *before):
    """A kernel's values at `x`, in the process's precision."""
    x = np.ascontiguousarray(x, runtime.dtype())
    y = np.empty_like(x)
    kernel(*before, x, y)
    return y


def exp(x):
    return numbers(exp_of, x)


def log1p_unit(x):
    return numbers(log1p_unit_of, x)


def log_of_rest(x):
    return numbers(log_of_rest_of, x)


def density(name, x):
    return numbers(
        density_of, x, Variant(DENSITY_FUNCTIONS[name], COLOUR_FUNCTIONS["sigmoid"], MODES["emission-absorption"])
    )


def density_slope(name, x):
    return numbers(
        density_slope_of, x, Variant(DENSITY_FUNCTIONS[name], COLOUR_FUNCTIONS["sigmoid"], MODES["emission-absorption"])
    )


@ti.kernel
def order_of(n: int, key: int, out: ti.types.ndarray(dtype=ti.i32, ndim=1)):
    for i in range(n):
        out[i] = shuffle(i, n, key)


def box(cameras, images):
    """`find_box` of RGBA images."""
    views = Views(cameras, images)
    with ImageStore(views) as store:
        return find_box(Survey(views), store)


def splat_and_gather(points, values, volume):
    """(splat of the values, the volume's density gathered at the points): each other's transpose."""
    grid = drive.grid_of(volume.degree)
    grid.upload(volume)
    gathered = np.empty(len(points), runtime.dtype())
    gather_of(grid.fields, np.ascontiguousarray(points, runtime.dtype()), gathered)
    return splat(points, values, volume.density.shape), gathered


def splat_gradient(positions, values, d_target):
    """(d_positions, d_values) of a splat into an image or grid like d_target (*shape, channel)."""
    with Splat(len(positions), d_target.shape[:-1], d_target.shape[-1]) as s:
        s.upload(positions, values)
        s.target.grad.from_numpy(np.ascontiguousarray(d_target, runtime.dtype()))
        splat_adjoint(s.fields)
        return s.positions.grad.to_numpy(), s.values.grad.to_numpy()


def print_splat(threads):
    """Print the hash of a splat and of its gradients, on so many threads; for a process of its own."""
    runtime.start("cpu", "f32", threads)
    rng = np.random.default_rng(0)
    shape, count = (40, 30), 20000
    positions, values = rng.uniform(-1, 40, (count, 2)), rng.normal(size=(count, 2))
    bits = hashlib.sha256(splat(positions, values, shape).tobytes())
    with Splat(count, shape, 2) as s:
        s.upload(positions, values)
        s.deposit()
        s.target.grad.copy_from(s.target)
        splat_adjoint(s.fields)
        for field in (s.target, s.positions.grad, s.values.grad):
            bits.update(field.to_numpy().tobytes())
    print(bits.hexdigest())


def print_fit(images, threads, changes):
    """Print the hash of a fit to images in a file, on so many threads; for a process of its own."""
    runtime.start("cpu", "f32", threads)
    print(hash_of_fit(np.load(images)["arr_0"], changes))


def hash_of_fit(images, changes):
    """The hash of a fit to images, on as many threads as the process has."""
    views = Views(drive.ball_cameras()[: len(images)], images)
    settings = preset(
        "quick", resolution=16, steps=30, rays=512, sh_degree=0, levels=((0, 1),), tv_density=1e-3, exposure=True
    )
    volume = fit(views, replace(settings, **changes), box=drive.BALL_BOX).volume
    return hashlib.sha256(volume.density.tobytes() + volume.features.tobytes()).hexdigest()


def out_of_core_apart(path):
    """Largest difference of an image in parts from that of the whole, in a lit and in an unlit mode."""
    from raymarch.geometry.camera import Camera
    from raymarch.io.volumes.volume_file import load
    from raymarch.rendering import out_of_core
    from raymarch.rendering.march_settings import March
    from raymarch.rendering.renderer import Renderer
    from raymarch.volumes import part_plan

    camera = Camera.look_at((1.5, -3, 0.7), width=20, height=16)
    rooms, least, off = out_of_core._rooms, part_plan.MIN_SIDE, 0.0
    out_of_core._rooms, part_plan.MIN_SIDE = lambda volume, memory, features: (13**3, 2000), 4
    try:
        for march in (None, March()):
            with Renderer(load(path), march) as whole, out_of_core.OutOfCoreRenderer(path, march) as parts:
                seen = parts.render(camera, "black", depth=False).image - whole.render(camera, "black").image
            off = max(off, float(np.abs(seen).max()))
    finally:
        out_of_core._rooms, part_plan.MIN_SIDE = rooms, least
    return off


def score_of_fit(views, held_out, changes):
    """PSNR of a fit on views that it has not seen."""
    settings = preset("quick", resolution=16, steps=40, rays=512, sh_degree=0, slots=1)
    return fit(views, replace(settings, **changes), box=drive.BALL_BOX).evaluate(held_out).psnr
