"""Laws of the sphere example: its image is the integral over each pixel, its Jacobian the derivative of that with the
silhouette, a Tape with one link by hand agrees, and Gauss-Newton finds the sphere from where taichi#6196 starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from whole import whole

from raymarch.errors import RaymarchError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import sphere  # noqa: E402
import sphere_tape  # noqa: E402
from sphere_renderer import Sphere, render  # noqa: E402

SHAPE = np.array([10.03, 0.96, -1.07, 100.2])  # in the middle of SMALL, its silhouette tangent to no pixel's side
SMALL = (96, 90)
SHAPES = {
    "centre": SHAPE,
    "aside": np.array([10.03, 12.3, -9.1, 100.2]),  # partly outside the image
    "near": np.array([7.1, 3.2, 5.3, 20.3]),  # an ellipse far from a circle, larger than the image
    "small": np.array([0.13, 0.21, 0.33, 100.2]),  # within one pixel
}


@pytest.fixture(scope="module")
def small():
    with Sphere(*SMALL, samples=800_000) as renderer:  # as the Tape's shape takes; "near" takes more
        yield renderer


@pytest.fixture(scope="module")
def full():
    with Sphere() as renderer:
        yield renderer


@pytest.fixture(scope="module")
def data(full):
    """Images of the true sphere, by how they were made."""
    return {"operator": full.render(sphere.TRUE), "rays": full.supersampled(sphere.TRUE)}


def twin(shape, i, j, nodes=60):
    """What a pixel's value means: rows of D between the real roots of Q, summed up over the pixel's height.

    Rows are taken in panels between the heights at which the silhouette enters or leaves the pixel or turns; the nodes
    are dense at the ends of what they integrate over, where there may be a square root.
    """
    r, c = shape[0], shape[1:]
    k = c @ c - r * r
    t, w = np.polynomial.legendre.leggauss(nodes)
    t, w = 0.5 + 0.5 * np.sin(np.pi / 2 * t), np.pi / 4 * np.cos(np.pi / 2 * t) * w
    (x0, x1), (y0, y1) = ((np.array([at, at + 1]) - n / 2) / 400 for at, n in zip((i, j), SMALL, strict=True))

    def along_column(x):
        return np.poly1d([c[1], c[0] * x + c[2]]) ** 2 - np.poly1d([1, 0, 1 + x * x]) * k

    a, b = c[0] ** 2 - k, np.poly1d([c[1], c[2]]) * (2 * c[0])  # of Q = a x^2 + b(y) x + Q(0, y)
    ends = [np.roots(p) for p in (along_column(x0), along_column(x1), b**2 - along_column(0.0) * (4 * a))]
    ends = [y0, y1, *(root.real for root in np.concatenate(ends) if np.isreal(root) and y0 < root.real < y1)]
    total = 0.0
    for below, above in zip(np.sort(ends)[:-1], np.sort(ends)[1:], strict=True):
        for y, dy in zip(below + (above - below) * t, (above - below) * w, strict=True):
            roots = np.roots([a, b(y), along_column(0.0)(y)])
            if np.isreal(roots).all():
                left, right = np.clip(np.sort(roots.real), x0, x1)
                m = np.stack(np.broadcast_arrays(left + (right - left) * t, y, 1.0), 1)
                Q = np.maximum((m @ c) ** 2 - k * (m * m).sum(1), 0)
                total += dy * (right - left) * w @ ((m @ c - np.sqrt(Q)) / np.linalg.norm(m, axis=1))
    return 400**2 * total


def test_a_sphere_on_the_axis_covers_the_area_of_its_disc(small):
    r, z = 10.0, 100.0
    small.jacobian([r, 0, 0, z])
    area = np.pi * 400**2 * r**2 / (z**2 - r**2)
    np.testing.assert_allclose(small.fields.cover.to_numpy().sum(), area, rtol=1e-12)
    by_radius, by_x, by_y, by_z = small.fields.edge.to_numpy().sum((0, 1))
    np.testing.assert_allclose(by_radius, 2 * area * z**2 / (r * (z**2 - r**2)), rtol=1e-12)
    np.testing.assert_allclose(by_z, -2 * area * z / (z**2 - r**2), rtol=1e-12)
    assert max(abs(by_x), abs(by_y)) < 1e-9


@pytest.mark.parametrize("name", SHAPES)
def test_a_pixel_is_the_integral_of_the_depth_over_its_covered_area(small, name):
    image, cover = small.render(SHAPES[name]), small.fields.cover.to_numpy()
    cut = np.argwhere((cover > 0) & (cover < 1 - 1e-9))
    picked = [*cut[np.linspace(0, len(cut) - 1, 5).astype(int)], *np.argwhere(cover >= 1 - 1e-9)[:1]]
    for i, j in {(int(i), int(j)) for i, j in picked}:
        assert abs(image[i, j] - twin(SHAPES[name], i, j)) < 1e-8


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("column", range(4), ids=sphere.NAMES)
def test_the_jacobian_is_the_derivative_of_the_image(small, name, column):
    shape, step = SHAPES[name], 1e-6 * np.eye(4)[column]
    J = small.jacobian(shape)[..., column]
    difference = (small.render(shape + step) - small.render(shape - step)) / 2e-6
    assert np.abs(J - difference).max() < 1e-7 * np.abs(J).max()


def test_one_launch_of_four_columns_is_four_launches_of_one(small):
    inside, _silhouette = small.parts(SHAPE)
    f = small.fields
    edge = f.edge.to_numpy()
    f.inside.fill(0)
    f.edge.fill(0)
    for column in range(4):
        render(f, column, 1, False)
    np.testing.assert_allclose(f.inside.to_numpy(), inside, rtol=1e-13, atol=1e-11)
    np.testing.assert_allclose(f.edge.to_numpy(), edge, rtol=1e-13, atol=1e-11)


def test_depth_along_the_silhouette_is_the_length_of_a_tangent(small):
    _, silhouette = small.parts(SHAPE)
    length = np.sqrt(SHAPE[1:] @ SHAPE[1:] - SHAPE[0] ** 2)
    np.testing.assert_allclose(silhouette, length * small.fields.edge.to_numpy(), rtol=1e-13)
    cover = small.fields.cover.to_numpy()
    assert not silhouette[(cover > 1 - 1e-12) | (cover == 0)].any()


def test_the_image_is_what_many_rays_a_pixel_tend_to(small):
    image = small.render(SHAPE)
    aside = SHAPES["near"]
    assert np.sqrt(np.mean((small.supersampled(aside) - small.render(aside)) ** 2)) < 0.02
    off = [np.sqrt(np.mean((small.supersampled(SHAPE, n) - image) ** 2)) for n in (4, 16, 64)]
    assert off[0] > 4 * off[1] > 16 * off[2]
    assert off[2] < 0.02


@pytest.mark.parametrize("column", [0, 1, whole(2), whole(3)], ids=sphere.NAMES)
def test_the_boundary_derivative_is_that_of_64_by_64_rays_a_pixel(small, column):
    whole, inside, difference = sphere.check_silhouette(small, SHAPE, column, step=0.2)
    size = np.linalg.norm(difference)
    assert np.linalg.norm(whole - difference) < 5e-3 * size
    assert np.linalg.norm(inside - difference) > 0.95 * size
    assert abs((whole - difference).sum()) < 2e-3 * np.abs(difference).sum()


FOUND = [("operator", 1e-6, 0.1), ("rays", 1e-3, 0.2), ("rays", 1e-3, -0.2)]
FOUND += [whole("operator", 1e-6, 0.2), whole("operator", 1e-6, -0.2), whole("rays", 1e-3, 0.1)]


@pytest.mark.parametrize(("kind", "largest", "off"), FOUND)
def test_gauss_newton_finds_the_sphere_in_six_steps(full, data, kind, largest, off):
    found = sphere.find(full, data[kind], sphere.TRUE + off, steps=6)
    assert np.abs(found.x - sphere.TRUE).max() < largest
    assert found.steps <= 6


def test_the_tape_with_the_silhouette_by_hand_has_the_gradient_of_the_jacobian(small):
    data = small.render(SHAPE - 0.1)
    tape = sphere_tape.tape_gradient(small, SHAPE, data)
    np.testing.assert_allclose(tape, sphere_tape.by_jacobian(small, data), rtol=1e-10)


def test_taichi_alone_is_wrong_at_the_silhouette(small):
    data = small.render(SHAPE - 0.1)
    right = sphere_tape.tape_gradient(small, SHAPE, data)
    hard = sphere_tape.tape_gradient(small, SHAPE, data, hard=True)
    assert hard[0] * right[0] < 0
    assert np.abs(hard).max() < 0.2 * np.abs(right).max()


def test_too_little_room_for_samples_is_said(small):
    with pytest.raises(RaymarchError, match="876672 samples, room for 800000; make"):
        sphere_tape.tape_gradient(small, SHAPES["near"], np.zeros(SMALL))


@pytest.mark.parametrize("shape", [(10, 0, 0, 9), (-1, 0, 0, 9), (1, np.nan, 0, 9)])
def test_a_sphere_that_is_not_before_the_camera_is_refused(small, shape):
    with pytest.raises(RaymarchError, match="radius"):
        small.render(shape)


RUNNER = """
import runpy, sys
scripts, sys.argv[1:] = sys.argv[3:], sys.argv[1:3]
for script in scripts:
    runpy.run_path(script, run_name="__main__")
"""


@pytest.mark.whole
def test_the_scripts_run(tmp_path):
    """One behind the other in one process, which compiles what they share once."""
    picture, scripts = tmp_path / "sphere.png", [str(EXAMPLES / name) for name in ("sphere.py", "sphere_tape.py")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), str(EXAMPLES.parent)])}
    command = [sys.executable, "-c", RUNNER, "--out", str(picture), *scripts]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "Taichi]" not in done.stdout, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
