"""Depth images of a sphere, anti-aliased by area coverage, and their Jacobian by its radius and centre.

A pinhole camera at the origin looks along +z; the ray of an image point is m = (x, y, 1), with x = (u - W/2) / focus
and y = (v - H/2) / focus, pixel (i, j) spanning u in i..i+1 and v in j..j+1. For a sphere of radius r about c write
k = |c|^2 - r^2 and Q(x, y) = (c.m)^2 - k |m|^2. The ray meets the sphere where Q > 0, at the distance

    D = (c.m - sqrt Q) / |m|,                                         and D = sqrt k all along the silhouette Q = 0.

A pixel's value is the integral of D over the part of its area that the sphere covers. By Leibniz its derivative is

    integral of dD/dp over the covered part  +  sqrt k * d(covered area)/dp:

the second is the silhouette's, and is what differentiating the ray at the pixel's centre leaves out. Both integrals are
taken in angles: y = middle - height cos(omega) runs through the silhouette's rows, x = mid - half cos(phi) through one
row, and sqrt Q is a constant times sin(omega) sin(phi). So the root, whose slope is infinite at the silhouette, leaves
nothing there that is not smooth, and Gauss-Legendre nodes serve pixels at the silhouette as they do those within.

A pixel's derivative has a kink, its second derivative infinite on one side, where the silhouette is tangent to a side
of the pixel: at radius 10 and centre (10, 10, 100) it is, to x = 0 and y = 0.
"""

from dataclasses import dataclass

import numpy as np

import raymarch as rm
from raymarch.device.pool import Owner
from raymarch.errors import RaymarchError

import taichi as ti  # isort: skip  (after raymarch, which keeps Taichi's banner off stdout)


@dataclass(frozen=True, eq=False)
class SphereFields:
    """Images are [W, H]; tangents have a component for each of (radius, x, y, z)."""

    focus: float  # pixels
    order: int  # nodes of the quadrature along a panel of rows, and along a row
    shape: ti.Field  # radius, x, y, z
    node: ti.Field  # [order], 0..1 and their weights: along a row; then along rows, dense at both ends
    image: ti.Field  # depth times pixel area
    cover: ti.Field  # area covered, 0..1
    inside: ti.Field  # d image / d shape with the covered part held
    edge: ti.Field  # d cover / d shape
    apparent: ti.Field  # log radius, x / z, y / z, log z: what the Tape's gradient is taken by
    target: ti.Field
    loss: ti.Field
    samples: ti.Field  # [0 .. used]: x, y, and the area they stand for in pixels
    pixel: ti.Field  # of a sample
    used: ti.Field


class Sphere(Owner[SphereFields]):
    """The renderer and its memory.

    Args:
        width, height, focus: of the camera, in pixels.
        order: nodes of the quadrature, along rows and across them; 12 leaves 1e-11 of the largest value.
        samples: room for the Tape's samples; 0 if no gradient is taken by the Tape.
    """

    name = "this sphere"

    def __init__(self, width: int = 640, height: int = 480, focus: float = 400.0, order: int = 12, samples: int = 0):
        rm.start("cpu", "f64")
        size = (width, height, focus, order, samples)
        self._own(size, lambda room: self._build(*size), lambda room: 8 * (12 * width * height + 4 * samples))
        t, w = np.polynomial.legendre.leggauss(order)
        t, w = (t + 1) / 2, w / 2
        # t -> sin^2(pi t / 2) takes the square roots off both ends of a panel of rows.
        dense, by_t = np.sin(np.pi * t / 2) ** 2, np.pi / 2 * np.sin(np.pi * t)
        self.fields.node.from_numpy(np.stack([t, w, dense, w * by_t], 1))

    @staticmethod
    def _build(width: int, height: int, focus: float, order: int, samples: int):
        scalar, vector = (lambda: ti.field(float)), (lambda n: ti.Vector.field(n, float))
        with_gradient = {name: ti.field(float, needs_grad=True) for name in ("image", "cover", "shape", "apparent")}
        f = SphereFields(
            **with_gradient,
            loss=ti.field(float, needs_grad=True),
            focus=focus,
            order=order,
            node=vector(4),
            inside=vector(4),
            edge=vector(4),
            target=scalar(),
            samples=vector(3),
            pixel=ti.Vector.field(2, ti.i32),
            used=ti.field(ti.i32),
        )
        tree = ti.FieldsBuilder()
        for each in (f.image, f.cover, f.inside, f.edge, f.target):
            tree.dense(ti.ij, (width, height)).place(each)
        for each, count in ((f.shape, 4), (f.apparent, 4), (f.node, order), (f.samples, samples), (f.pixel, samples)):
            tree.dense(ti.i, max(count, 1)).place(each)
        tree.place(f.loss, f.used)
        tree.lazy_grad()
        return tree, f

    def _place(self, shape: np.ndarray) -> None:
        r, x, y, z = (float(each) for each in shape)
        if not (0 < r < z and np.isfinite([x, y, z]).all()):
            raise RaymarchError(f"radius {r}, centre ({x}, {y}, {z}): want 0 < radius < z, all before the camera")
        self.fields.shape.from_numpy(np.array([r, x, y, z]))

    def render(self, shape: np.ndarray) -> np.ndarray:
        """The depth image [W, H], anti-aliased by area coverage."""
        self._place(shape)
        render(self.fields, 0, 0, False)
        return self.fields.image.to_numpy()

    def jacobian(self, shape: np.ndarray) -> np.ndarray:
        """d image / d shape, [W, H, 4]: all four columns in one launch."""
        inside, silhouette = self.parts(shape)
        return inside + silhouette

    def parts(self, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Jacobian's two terms, [W, H, 4] each: that of the depth, and that of the silhouette's motion."""
        f = self.fields
        self._place(shape)
        render(f, 0, 4, False)
        return f.inside.to_numpy(), np.sqrt(np.sum(np.square(shape[1:])) - shape[0] ** 2) * f.edge.to_numpy()

    def supersampled(self, shape: np.ndarray, n: int = 64) -> np.ndarray:
        """The image as the mean of n x n rays a pixel: data that this renderer did not make."""
        self._place(shape)
        supersample(self.fields, n)
        return self.fields.image.to_numpy()


@ti.func
def load(f: ti.template()):
    return f.shape[0], ti.Vector([f.shape[1], f.shape[2], f.shape[3]])


@ti.func
def ray_depth(r, c, x, y):
    """D, and Q: below zero where the ray misses, and D is 0 there."""
    m = ti.Vector([x, y, 1.0])
    Q = r * r * m.dot(m) - c.cross(m).norm_sqr()  # the same without a difference of large numbers
    D = 0.0
    if Q > 0:
        D = (c.dot(m) - ti.sqrt(Q)) / m.norm()
    return D, Q


@ti.func
def slopes(r, c, m):
    """d (c.m) and half of dQ, by (radius, x, y, z), at a fixed ray."""
    toward = ti.Vector([0.0, m[0], m[1], m[2]])
    return toward, c.dot(m) * toward - m.dot(m) * ti.Vector([-r, c[0], c[1], c[2]])


@ti.func
def chord(a, b, c, k, t):
    """Middle and half length of what the silhouette cuts off the line on which the coordinate that goes with b is t."""
    A, e = k - a * a, b * t + c
    return a * e / A, ti.sqrt(ti.max(k * (e * e - A * (1 + t * t)), 0.0)) / A


@ti.func
def is_near(r, c, corner, size):
    """Whether a pixel may meet the silhouette's bounding box."""
    near, B = True, c[2] ** 2 - r * r
    for a in ti.static(range(2)):
        near &= ti.abs(corner[a] - c[a] * c[2] / B) <= r * ti.sqrt(c[a] ** 2 + B) / B + size
    return near


@ti.func
def angle(cosine):
    return ti.acos(ti.min(ti.max(cosine, -1.0), 1.0))


@ti.kernel
def render(f: ti.template(), first: ti.template(), count: ti.template(), keep: ti.template()):
    """image and cover; columns first .. first + count of inside and edge; with `keep`, samples for the Tape too."""
    if ti.static(keep):
        f.used[None] = 0
    ti.loop_config(block_dim=64)  # most pixels are empty: small parts share the others out evenly
    for i, j in f.image:
        r, c = load(f)
        k = c.dot(c) - r * r
        A, B = k - c[0] ** 2, c[2] ** 2 - r * r  # both positive for a sphere in front of the camera: an ellipse
        middle, height = c[1] * c[2] / B, r * ti.sqrt(A) / B
        width = height * ti.sqrt(k * B) / A
        x0, y0 = (i - f.image.shape[0] / 2) / f.focus, (j - f.image.shape[1] / 2) / f.focus
        x1, y1 = x0 + 1 / f.focus, y0 + 1 / f.focus
        cover, volume = 0.0, 0.0
        inside, edge = ti.Vector.zero(float, 4), ti.Vector.zero(float, 4)
        f.cover[i, j], f.image[i, j] = 0.0, 0.0
        for n in ti.static(range(first, first + count)):
            f.inside[i, j][n], f.edge[i, j][n] = 0.0, 0.0
        if not is_near(r, c, ti.Vector([x0, y0]), 1 / f.focus):
            continue
        # Rows low .. high in omega, in panels that end where the silhouette crosses the pixel's left and right side.
        low, high = angle((middle - y0) / height), angle((middle - y1) / height)
        p, p_half = chord(c[1], c[0], c[2], k, x0)
        q, q_half = chord(c[1], c[0], c[2], k, x1)
        p0, p1 = angle((middle - p + p_half) / height), angle((middle - p - p_half) / height)
        q0, q1 = angle((middle - q + q_half) / height), angle((middle - q - q_half) / height)
        b, d = ti.max(p0, q0), ti.min(p1, q1)
        cut = ti.Vector([low, ti.min(p0, q0), ti.min(b, d), ti.max(b, d), ti.max(p1, q1), high])
        for panel in range(5):
            begin = ti.min(ti.max(cut[panel], low), high)
            span = ti.min(ti.max(cut[panel + 1], low), high) - begin
            for row in range(ti.select(span > 0, f.order, 0)):
                omega = begin + span * f.node[row][2]
                y, half = middle - height * ti.cos(omega), width * ti.sin(omega)
                mid = c[0] * (c[1] * y + c[2]) / A
                dy = span * f.node[row][3] * height * ti.sin(omega)
                for side in ti.static((-1, 1)):
                    x = mid + side * half
                    if x0 < x <= x1:
                        _, half_dQ = slopes(r, c, ti.Vector([x, y, 1.0]))
                        for n in ti.static(range(first, first + count)):
                            edge[n] += half_dQ[n] / (A * half) * dy
                start, end = angle((mid - x0) / half), angle((mid - x1) / half)
                for along in range(ti.select(end > start, f.order, 0)):
                    phi = start + (end - start) * f.node[along][0]
                    m = ti.Vector([mid - half * ti.cos(phi), y, 1.0])
                    root = ti.sqrt(A) * half * ti.sin(phi)  # sqrt Q
                    area = (end - start) * f.node[along][1] * half * ti.sin(phi) * dy
                    cover += area
                    volume += area * (c.dot(m) - root) / m.norm()
                    toward, half_dQ = slopes(r, c, m)
                    for n in ti.static(range(first, first + count)):
                        inside[n] += area * (toward[n] - half_dQ[n] / root) / m.norm()
                    if ti.static(keep):
                        at = ti.atomic_add(f.used[None], 1)
                        if at < f.samples.shape[0]:
                            f.samples[at] = ti.Vector([m[0], m[1], area * f.focus**2])
                            f.pixel[at] = ti.Vector([i, j])
        f.cover[i, j], f.image[i, j] = cover * f.focus**2, volume * f.focus**2
        for n in ti.static(range(first, first + count)):
            f.inside[i, j][n], f.edge[i, j][n] = inside[n] * f.focus**2, edge[n] * f.focus**2


@ti.kernel
def supersample(f: ti.template(), n: int):
    for i, j in f.image:
        r, c = load(f)
        at = ti.Vector([i - f.image.shape[0] / 2, j - f.image.shape[1] / 2])
        total = 0.0
        if is_near(r, c, at / f.focus, 1 / f.focus):
            for a, b in ti.ndrange(n, n):
                u, v = at[0] + (a + 0.5) / n, at[1] + (b + 0.5) / n
                total += ray_depth(r, c, u / f.focus, v / f.focus)[0]
        f.image[i, j] = total / (n * n)
