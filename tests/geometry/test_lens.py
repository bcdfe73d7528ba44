"""Laws of the lens: projection undoes unprojection, slopes are those of differences, adjoints are transposes.

All of every model, for one list of lenses; what folds over within the image is refused in one line.
"""

from dataclasses import replace

import numpy as np
import pytest
from lenses import CAMERAS, LENSES, ORTHOGRAPHIC

import raymarch as rm
from raymarch.geometry import lens_distortion
from raymarch.geometry.alignment import transform_camera
from raymarch.geometry.lens import MODELS, project, project_slope, ray_starts, unproject
from raymarch.geometry.lens_distortion import distort, undistort
from raymarch.gradients.parameters import Parameters
from raymarch.gradients.projection import Projection, out_of_sight
from raymarch.kernels.rays import lens as kernels

FOCAL, PRINCIPAL = np.array([31.0, 47.0]), np.array([12.5, 9.25])
H = 1e-6
EACH = pytest.mark.parametrize("camera", [*CAMERAS, ORTHOGRAPHIC], ids=lambda camera: camera.lens.model)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_model_has_its_lens_here():
    assert {lens.model for lens in LENSES} == set(MODELS) - {"orthographic"}


@EACH
def test_projection_undoes_unprojection_at_every_depth(camera, rng):
    rays = camera.rays()
    pixels, depth = camera.project(rays.origin + rng.uniform(0.1, 9, (len(rays), 1)) * rays.direction)
    v, u = np.divmod(np.arange(len(rays)), camera.width)
    np.testing.assert_allclose(pixels, np.stack([u, v], 1) + 0.5, rtol=0, atol=1e-9)
    assert (depth > 0).all()


@EACH
def test_the_tangent_of_a_ray_is_the_difference(camera, rng):
    numbers = len(camera.lens.names)
    moves = [Parameters(focal=rng.normal(size=2)), Parameters(principal_point=rng.normal(size=2))]
    if numbers:
        moves.append(Parameters(lens=rng.normal(size=numbers) / 30))
    projection, rays = Projection(camera, np.eye(4), 1.0), camera.rays()
    for move in moves:
        ahead, back = (moved(camera, move, h).rays() for h in (H, -H))
        dot_origin, _, along, _ = projection.tangent(rays, move)
        for dot, name in ((dot_origin, "origin"), (along, "direction")):
            wanted = (getattr(ahead, name) - getattr(back, name)) / (2 * H)
            assert np.abs(dot - wanted).max() < 1e-7 * max(1, np.abs(wanted).max())


def moved(camera, by, h):
    zero = np.zeros(2)
    focal = camera.focal + h * (zero if by.focal is None else by.focal)
    principal = camera.principal + h * (zero if by.principal_point is None else by.principal_point)
    lens = camera.lens
    if by.lens is not None:
        lens = rm.Lens(lens.model, lens.coefficients + h * by.lens)
    return replace(camera, focal=focal, principal=principal, lens=lens)


@EACH
def test_the_adjoint_of_a_projection_is_its_tangents_transpose(camera, rng):
    numbers = len(camera.lens.names)
    dot = Parameters(
        pose=rng.normal(size=6),
        focal=rng.normal(size=2),
        principal_point=rng.normal(size=2),
        step=rng.normal(),
        box=rng.normal(size=(3, 4)),
        lens=rng.normal(size=numbers) if numbers else None,
    )
    projection, rays = Projection(camera, np.diag([0.1, 0.2, 0.3, 1]), 0.1), camera.rays()
    along = projection.tangent(rays, dot)
    d_rays, d_dt = rng.normal(size=(3, len(rays), 3)), rng.normal(size=len(rays))
    back = projection.adjoint(rays, *d_rays, d_dt)
    both = sum((a * b).sum() for a, b in zip(along, d_rays, strict=False)) + along[3] * d_dt.sum()
    scale = sum(np.linalg.norm(a) * np.linalg.norm(b) for a, b in zip(along, d_rays, strict=False))
    assert abs(both - back.dot(dot)) < 1e-12 * scale
    assert (back.lens is None) == (not camera.lens.names)


@EACH
def test_the_slope_of_a_projection_is_its_difference(camera, rng):
    seen = rng.uniform(0, 30, (20, 2)), camera.focal, camera.principal, camera.lens
    local = ray_starts(*seen) + unproject(*seen) * rng.uniform(1, 3, (20, 1))
    move = rng.normal(size=(20, 3))
    ahead, back = (project(local + s * H * move, camera.focal, camera.principal, camera.lens)[0] for s in (1, -1))
    along = np.einsum("pij,pj->pi", project_slope(local, camera.focal, camera.lens), move)
    np.testing.assert_allclose(along, (ahead - back) / (2 * H), rtol=1e-6, atol=1e-6)


@EACH
def test_a_scaled_camera_sees_the_same_directions(camera):
    twice = camera.scaled(2)
    corners = np.array([[3.0, 4.0], [30.0, 20.0]])
    here, there = (unproject(p, c.focal, c.principal, c.lens) for c, p in ((camera, corners), (twice, 2 * corners)))
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-12)
    assert twice.lens == camera.lens


@EACH
def test_what_is_off_to_a_side_is_out_of_sight_and_what_is_before_a_lens_is_not(camera):
    camera = replace(camera, world_from_camera=np.eye(4))
    before = np.array([[0.1, 0, -1], [-0.1, 0.1, -2]])
    assert not out_of_sight(camera, before)
    assert out_of_sight(camera, np.array([[-30.0, 0, -1], [-40, 1, -2]]))


@pytest.mark.parametrize("lens", [each for each in LENSES if each.kind == 1], ids=lambda lens: lens.model)
def test_no_point_beyond_where_a_polynomial_turns_back_is_seen(lens, rng):
    camera = next(each for each in CAMERAS if each.lens == lens)
    away = min(lens.reach, 500.0) * rng.uniform(1.01, 1.9, (50, 1))
    angle = rng.uniform(0, 2 * np.pi, (50, 1))
    points = np.concatenate([away * np.cos(angle), away * np.sin(angle), -np.ones((50, 1))], 1)
    u, v = project(points, camera.focal, camera.principal, lens)[0].T
    assert ((u < 0) | (v < 0) | (u > camera.width) | (v > camera.height)).all()


def test_a_fisheye_sees_behind_its_own_plane_and_nothing_straight_behind():
    camera = rm.Camera(np.eye(4), (20, 20), (40, 40), 80, 80, rm.Lens("fisheye", (0.01, -0.002, 0, 0)))
    edge = camera.rays([40 * 80]).direction[0]
    assert edge[2] > 0.3  # 110 degrees off the axis
    pixels, depth = camera.project(np.array([3 * edge, [0, 0, 1.0]]))
    np.testing.assert_allclose(pixels[0], [0.5, 40.5], atol=1e-9)
    assert depth[0] == pytest.approx(3) and depth[1] < 0
    assert not out_of_sight(camera, np.array([edge, 2 * edge]))


def test_parallel_rays_see_a_length_as_so_many_pixels_at_every_distance():
    camera = rm.Camera.orthographic((1, -4, 2), size=3.0, width=48, height=32)
    right, up, back = camera.world_from_camera[:3, :3].T
    ends = np.array([camera.position - d * back + s * (1.5 * right + up) for d in (0.5, 9.0) for s in (-1, 1)])
    pixels, depth = camera.project(ends)
    np.testing.assert_allclose(pixels, [(0, 32), (48, 0)] * 2, rtol=0, atol=1e-12)
    np.testing.assert_allclose(depth, (0.5, 0.5, 9, 9), rtol=0, atol=1e-12)


def test_a_similarity_scales_parallel_rays_apart():
    camera, scaled = rm.Camera.orthographic((1, -4, 2), size=3.0, width=48, height=32), np.diag([2.0, 2, 2, 1])
    points = np.random.default_rng(0).normal(size=(5, 3))
    here, there = camera.project(points)[0], transform_camera(camera, scaled).project(2 * points)[0]
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-12)


def test_an_orbit_of_parallel_rays_has_the_whole_box_in_sight_at_one_scale():
    box = np.array([(-1, -2, 0), (3, 1, 0.5)])
    cameras = rm.orbit_of_volume(box, 5, size=64, orthographic=True)
    corners = np.stack(np.meshgrid(*box.T), -1).reshape(-1, 3)
    for camera in cameras:
        pixels, depth = camera.project(corners)
        assert (depth > 0).all() and (pixels > 0).all() and (pixels < 64).all()
    assert len({camera.focal for camera in cameras}) == 1


def test_what_lies_behind_has_a_depth_under_zero():
    camera = rm.Camera.look_at((0, -4, 0), width=8, height=8)
    assert (np.sign(camera.project(np.array([[0, 0, 0], [0, -9, 0.0]]))[1]) == [1, -1]).all()


FOLDED = [
    (("simple_radial", (-0.5,)), "it folds over at 0.544"),
    (("opencv", (0.1, -0.6, 0, 0, 0)), "it folds over at"),
    (("opencv", (0, 0, 0, 0.4, 0)), "it folds over at"),
    (("full_opencv", (0, 0, 0, 0, 0, 2, 0, 0)), "it folds over at"),
    (("fisheye", (-0.5, 0, 0, 0)), "it folds over at"),
    (("fov", (2.5,)), "it folds over at"),
    (("opencv", (0, 0, 0, 1e5, 0)), "it folds over at 0;"),
    (("simple_radial", (-1e6,)), "it folds over at 0;"),
]


@pytest.mark.parametrize(("lens", "said"), FOLDED, ids=lambda value: str(value)[:24])
def test_a_lens_that_folds_over_within_the_image_is_refused_with_the_pixel(lens, said):
    with pytest.raises(rm.RaymarchError, match=r"at pixel \(\d+\.0, \d+\.0\), .* focal lengths off the") as error:
        rm.Camera(np.eye(4), (30, 30), (32, 24), 64, 48, rm.Lens(*lens))
    assert said in str(error.value)


@pytest.mark.parametrize("model", [name for name, each in MODELS.items() if each.names])
def test_strong_lenses_are_inverted_nearly_up_to_where_they_fold(model, rng):
    """Fifty lenses with coefficients of 0.2, which no real one has all at once."""
    for _ in range(50):
        scales = np.array([0.005 if name[0] == "p" else 0.2 for name in MODELS[model].names])
        coefficients = rng.uniform(0.1, 2.5, 1) if model == "fov" else scales * rng.normal(size=len(scales))
        lens = rm.Lens(model, coefficients)
        angle = rng.uniform(0, 2 * np.pi, 40)
        a = min(0.9 * lens.reach, 1.5) * np.sqrt(rng.uniform(0, 1, 40)) * np.array([np.cos(angle), np.sin(angle)])
        m = distort(lens.kind, lens.numbers, lens.reach, a.T)
        again, left = undistort(lens.kind, lens.numbers, lens.reach, m)
        assert (left < 1e-11 * (1 + np.abs(m).max(1))).all(), lens
        np.testing.assert_allclose(again, a.T, rtol=0, atol=1e-9, err_msg=str(lens))


def test_kernels_have_the_same_kinds():
    assert (kernels.ANGLES, kernels.FOV, kernels.PARALLEL) == (
        lens_distortion.ANGLES,
        lens_distortion.FOV,
        lens_distortion.PARALLEL,
    )
    assert kernels.LENS_NUMBERS == lens_distortion.LENS_NUMBERS
    assert kernels.TINY_OMEGA == lens_distortion.TINY_OMEGA and lens_distortion.PINHOLE == 0
