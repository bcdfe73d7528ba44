"""One link of a chain of derivatives by hand, the others by Taichi: the second wish of taichi#6196.

    python examples/sphere_tape.py

The squared error of a depth image of `sphere_renderer.py` is a chain: apparent -> shape -> cover -> image -> loss.
Taichi differentiates all of it but how the area that the sphere covers of a pixel depends on the shape: that derivative
lives on the silhouette, and the one that Taichi finds for a branch is zero. The result is the gradient J' r of the
Jacobian; what Taichi makes of one ray a pixel is printed beside it.
"""

import numpy as np
from sphere import START, TRUE
from sphere_renderer import Sphere, load, ray_depth, render

from raymarch.errors import RaymarchError

import taichi as ti  # isort: skip  (after raymarch, which keeps Taichi's banner off stdout)


@ti.kernel
def place(f: ti.template()):
    """The first link, Taichi's: what is seen (log radius, bearing, log distance along z) to radius and centre."""
    z = ti.exp(f.apparent[3])
    f.shape[0] = ti.exp(f.apparent[0])
    f.shape[1], f.shape[2], f.shape[3] = f.apparent[1] * z, f.apparent[2] * z, z


@ti.ad.grad_replaced
def cover(f):
    """The second, by hand: the covered area of each pixel, and the samples that lie in it."""
    render(f, 0, 4, True)


@ti.ad.grad_for(cover)
def _(f):
    cover_adjoint(f)


@ti.kernel
def cover_adjoint(f: ti.template()):
    for i, j in f.cover:
        for n in ti.static(range(4)):
            f.shape.grad[n] += f.cover.grad[i, j] * f.edge[i, j][n]


@ti.kernel
def shade(f: ti.template()):
    """The third, Taichi's: D = sqrt k + (D - sqrt k) over the covered area; the second is 0 where that area ends."""
    for i, j in f.image:
        r, c = load(f)
        f.image[i, j] = ti.sqrt(c.dot(c) - r * r) * f.cover[i, j]
    for s in f.samples:
        if s < f.used[None]:
            r, c = load(f)
            D, _ = ray_depth(r, c, f.samples[s][0], f.samples[s][1])
            f.image[f.pixel[s]] += f.samples[s][2] * (D - ti.sqrt(c.dot(c) - r * r))


@ti.kernel
def shade_centres(f: ti.template()):
    """The renderer of taichi#6196: one ray a pixel. Its derivative knows nothing of the silhouette."""
    for i, j in f.image:
        r, c = load(f)
        x, y = (i + 0.5 - f.image.shape[0] / 2) / f.focus, (j + 0.5 - f.image.shape[1] / 2) / f.focus
        f.image[i, j], _ = ray_depth(r, c, x, y)


@ti.kernel
def squared_error(f: ti.template()):
    for i, j in f.image:
        f.loss[None] += 0.5 * (f.image[i, j] - f.target[i, j]) ** 2


def tape_gradient(sphere: Sphere, shape: np.ndarray, data: np.ndarray, hard: bool = False) -> np.ndarray:
    """Gradient of 0.5 |image - data|^2 by log radius, x / z, y / z and log z, from one Tape; `sphere` needs samples.

    With `hard` Taichi differentiates one ray through each pixel's centre, all by itself.
    """
    f, (r, x, y, z) = sphere.fields, shape
    f.apparent.from_numpy(np.array([np.log(r), x / z, y / z, np.log(z)]))
    f.target.from_numpy(data)
    for each in (f.apparent, f.shape, f.cover, f.image):
        each.grad.fill(0)
    with ti.ad.Tape(f.loss, clear_gradients=False):
        place(f)
        if hard:
            shade_centres(f)
        else:
            cover(f)
            shade(f)
        squared_error(f)
    if f.used[None] > f.samples.shape[0]:
        raise RaymarchError(f"{f.used[None]} samples, room for {f.samples.shape[0]}; make a Sphere with more")
    return f.apparent.grad.to_numpy()


def by_jacobian(sphere: Sphere, data: np.ndarray) -> np.ndarray:
    """The same gradient as J' r, at the shape last rendered."""
    shape = sphere.fields.shape.to_numpy()
    by_shape = np.tensordot(sphere.jacobian(shape), sphere.fields.image.to_numpy() - data, ((0, 1), (0, 1)))
    r, x, y, z = shape
    return np.array([[r, 0, 0, 0], [0, z, 0, 0], [0, 0, z, 0], [0, x, y, z]]) @ by_shape


def main() -> None:
    with Sphere(samples=1_500_000) as sphere:
        data = sphere.render(TRUE)
        tape = tape_gradient(sphere, START, data)
        jacobian = by_jacobian(sphere, data)
        hard = tape_gradient(sphere, START, data, hard=True)
    print("gradient of the squared error by   log radius        x / z        y / z        log z")
    for name, row in (("J' r", jacobian), ("Tape, silhouette by hand", tape), ("Taichi alone, one ray a pixel", hard)):
        print(f"  {name:<30}" + "".join(f"{each:13.5e}" for each in row))
    print(f"  largest difference of the first two, relative: {np.abs(tape / jacobian - 1).max():.1e}")
    print("  Taichi alone over J' r:       " + "".join(f"{each:13.3f}" for each in hard / jacobian))


if __name__ == "__main__":
    main()
