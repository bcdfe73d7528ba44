"""Laws of the lens: projection undoes unprojection, slopes are those of differences, adjoints are transposes."""

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import project, project_slope, unproject, unproject_adjoint, unproject_tangent

RNG = np.random.default_rng(0)
FOCAL, PRINCIPAL = np.array([31.0, 47.0]), np.array([12.5, 9.25])
PIXELS = RNG.uniform(0, 30, (20, 2))
H = 1e-6


def test_projection_undoes_unprojection_at_every_depth():
    depth = RNG.uniform(0.1, 9, 20)
    pixels, deep = project(unproject(PIXELS, FOCAL, PRINCIPAL) * depth[:, None], FOCAL, PRINCIPAL)
    np.testing.assert_allclose(pixels, PIXELS, rtol=0, atol=1e-12)
    np.testing.assert_allclose(deep, depth, rtol=1e-14)


def test_what_lies_behind_has_a_depth_under_zero():
    camera = Camera.look_at((0, -4, 0), width=8, height=8)
    assert (np.sign(camera.project(np.array([[0, 0, 0], [0, -9, 0.0]]))[1]) == [1, -1]).all()


def test_a_camera_sees_a_point_of_a_ray_at_the_rays_pixel():
    camera = Camera.look_at((1, -4, 2), width=9, height=7)
    rays = camera.rays()
    pixels, _ = camera.project(rays.origin + 2.5 * rays.direction)
    v, u = np.divmod(np.arange(63), 9)
    np.testing.assert_allclose(pixels, np.stack([u, v], 1) + 0.5, rtol=0, atol=1e-12)


def test_the_tangent_is_the_difference_and_the_adjoint_its_transpose():
    dot_focal, dot_principal, d_plane = RNG.normal(size=2), RNG.normal(size=2), RNG.normal(size=(20, 2))
    ahead, back = (
        unproject(PIXELS, FOCAL + s * H * dot_focal, PRINCIPAL + s * H * dot_principal)[:, :2] for s in (1, -1)
    )
    plane = unproject(PIXELS, FOCAL, PRINCIPAL)[:, :2]
    dot_plane = unproject_tangent(plane, FOCAL, dot_focal, dot_principal)
    np.testing.assert_allclose(dot_plane, (ahead - back) / (2 * H), rtol=0, atol=1e-9)
    d_focal, d_principal = unproject_adjoint(plane, FOCAL, d_plane)
    assert abs((dot_plane * d_plane).sum() - d_focal @ dot_focal - d_principal @ dot_principal) < 1e-12


def test_the_slope_of_a_projection_is_its_difference():
    local = unproject(PIXELS, FOCAL, PRINCIPAL) * RNG.uniform(1, 3, (20, 1))
    move = RNG.normal(size=(20, 3))
    ahead, back = (project(local + s * H * move, FOCAL, PRINCIPAL)[0] for s in (1, -1))
    along = np.einsum("pij,pj->pi", project_slope(local, FOCAL), move)
    np.testing.assert_allclose(along, (ahead - back) / (2 * H), rtol=1e-6, atol=1e-7)
