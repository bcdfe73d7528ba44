"""Law: modes of whole rays are what loops of NumPy find, their gradients are their slopes, and closed forms hold."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise

import cases
import numpy as np
import pytest
import reference
import single as worker
from depths import Depths
from numpy.polynomial import Polynomial
from whole import whole

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.lens import PINHOLE_LENS, Lens
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.geometry.rays import Rays
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters, require_groups
from raymarch.kernels.integrator.passes import passes_of
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer, render
from raymarch.rendering.shading import Shading
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import Bricks
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

STEP = 0.47
EXACT = March(step=STEP, min_transmittance=0.0, min_weight=0.0, batch=cases.FEW)
LINEAR = Activation("identity")
GLOSSY = Shading(lamp=(1, 2, 0.5), specular=0.7, shininess=3)
LEVEL = 0.3  # of the surfaces: raw, within the values of every case
CLIP = Clip(planes=[((1, 0.2, -0.3), 0.1), ((-0.3, 1, 0.5), 0.2)])  # both through the middle of the volumes
# Each mode with an activation that bends and one that does not, and jitter where there are steps.
SEEN = {
    "maximum": ("rotated", "softplus", {"jitter": 1.0, "step_jitter": 0.4, "seed": 5}),
    "minimum": ("upright", "identity", {}),
    "average": ("rotated", "softplus", {"clip": CLIP}),
    "x-ray-exact": ("upright", "identity", {}),
    "x-ray-joseph": ("rotated", "softplus", {"clip": CLIP}),
    "isosurface": ("rotated", "softplus", {"shading": GLOSSY}),
}


def seen_in(mode):
    """(volume, camera, march) of a case; the camera is off the planes of samples."""
    place, density, how = SEEN[mode]
    volume = cases.volume(place, 0, density, "sigmoid")
    if mode == "isosurface":
        how = {**how, "iso": float(volume.activation.sigma(LEVEL))}
    return volume, cases.cameras(volume)[0], replace(EXACT, mode=mode, **how)


def linearised(mode, **how) -> Linearised:
    volume, camera, march = seen_in(mode)
    march = replace(march, **how)
    return Linearised(volume, camera, background=cases.BACKGROUND, march=march, columns=1)


def crossings(volume, o, d):
    """(near, ..., far): where a ray crosses the planes of samples within the box, or nothing."""
    near, far = reference.clip(o, d, volume)
    if not far > near:
        return []
    inverse = np.linalg.inv(volume.world_from_index)
    start, way = inverse[:3, :3] @ o + inverse[:3, 3], inverse[:3, :3] @ d
    planes = [(i - start[a]) / way[a] for a in range(3) for i in range(volume.shape[a]) if abs(way[a]) > 1e-12]
    return [near, *sorted(t for t in planes if near < t < far), far]


def value_of(volume, o, d, t, raw=False):
    """The value at a distance along a ray, or the raw number."""
    p = (np.linalg.inv(volume.world_from_index) @ [*(o + t * d), 1])[:3].clip(0, np.array(volume.shape) - 1.0)
    x = reference.gather(volume.density, p)
    return x if raw else reference.density(volume.activation, x + volume.activation.shift)[0]


def integral(volume, o, d):
    """Integral of a linear activation's value by Simpson's rule between planes, which is exact for cubics too."""
    ends, total = crossings(volume, o, d), 0.0
    for a, b in pairwise(ends):
        values = [value_of(volume, o, d, t) for t in (a, (a + b) / 2, b)]
        total += (b - a) / 6 * (values[0] + 4 * values[1] + values[2])
    return total


def joseph(volume, o, d, planes):
    """Integral by the trapezoid rule between the planes of samples across the axis of index space that d is most along,
    within what planes of the world leave of the ray."""
    near, far = reference.clip(o, d, volume)
    for normal, offset in planes:
        ahead, toward = np.dot(normal, o) - offset, np.dot(normal, d)
        near, far = (max(near, -ahead / toward), far) if toward > 0 else (near, min(far, -ahead / toward))
    if not far > near:
        return 0.0
    inverse = np.linalg.inv(volume.world_from_index)
    start, way = inverse[:3, :3] @ o + inverse[:3, 3], inverse[:3, :3] @ d
    a = np.abs(way).argmax()
    met = (np.arange(volume.shape[a]) - start[a]) / way[a]
    t = np.sort([near, far, *met[(met > near) & (met < far)]])
    return sum((t2 - t1) * (value_of(volume, o, d, t1) + value_of(volume, o, d, t2)) / 2 for t1, t2 in pairwise(t))


def first_crossing(volume, o, d, level):
    """Distance where the raw field first crosses a level: real roots of each cell's interpolated cubic; or none."""
    ends = crossings(volume, o, d)
    for a, b in pairwise(ends):
        t = np.linspace(a, b, 4)
        cubic = Polynomial.fit(t, [value_of(volume, o, d, each, raw=True) - level for each in t], 3)
        roots = [root.real for root in cubic.roots() if abs(root.imag) < 1e-9 and a <= root.real <= b]
        if roots:
            return min(roots)
    return None


def slope_of(volume, p, smooth=False, h=1e-6):
    """Slope of the raw field in the world by differences along its axes; by central ones at samples, interpolated."""
    inverse = np.linalg.inv(volume.world_from_index)[:3, :3]
    own = np.linalg.inv(volume.world_from_index) @ [*p, 1]
    if smooth:
        return reference.gather(np.stack(np.gradient(volume.density), -1), own[:3]) @ inverse
    ahead, behind = ([reference.gather(volume.density, own[:3] + s * step) for step in inverse.T] for s in (h, -h))
    return np.subtract(ahead, behind) / (2 * h)


def lit(colour, n, e, s):
    """Light of a lamp from afar on a surface, written from the formula."""
    lamp = np.array(s.lamp) / np.linalg.norm(s.lamp) if s.lamp else e
    half = (lamp + e) / np.linalg.norm(lamp + e)
    return colour * (s.ambient + s.diffuse * max(n @ lamp, 0)) + s.specular * max(n @ half, 0) ** s.shininess


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        ("minimum", {}),
        ("x-ray-exact", {}),
        ("x-ray-joseph", {}),
        ("isosurface", {}),
        ("isosurface", {"shading": replace(GLOSSY, smooth=False)}),
    ],
    ids=["minimum", "x-ray-exact", "x-ray-joseph", "isosurface", "isosurface of facets"],
)
def test_image_is_the_reference(mode, how):
    volume, _, march = seen_in(mode)
    march = replace(march, **how)
    with linearised(mode, **how) as seen:
        image, rays = seen.image(), seen.rays
    for r, (o, d) in enumerate(zip(rays.origin, rays.direction, strict=True)):
        if mode == "minimum":
            samples = reference.samples(volume, o, d, STEP * volume.voxel, 0.0, 0.0, "x-ray")[0]
            values = [s.tau / s.width for s in samples]
            wanted = [min(values, default=0.0)] * 3 + [float(not values)]
        elif mode.startswith("x-ray"):
            total = integral(volume, o, d) if mode == "x-ray-exact" else joseph(volume, o, d, CLIP.planes)
            wanted = [total] * 3 + [np.exp(-total)]
        else:
            t = first_crossing(volume, o, d, LEVEL)
            wanted = [*cases.BACKGROUND, 1.0]
            if t is not None:
                slope = slope_of(volume, o + t * d, march.shading.smooth)
                n = slope / np.linalg.norm(slope) * -np.sign(slope @ d)
                own = np.linalg.inv(volume.world_from_index) @ [*(o + t * d), 1]
                features = reference.gather(volume.features, own[:3])
                colour, _ = reference.colour(volume.activation, reference.harmonics(0, d)[0] * features)
                wanted = [*lit(colour, n, -d, march.shading), 0.0]
        np.testing.assert_allclose(image[r], wanted, rtol=0, atol=1e-8 if mode == "isosurface" else 1e-12)
    assert 0 < (image[:, 3] == 1).mean() < 1  # some rays miss


def test_the_gradient_of_an_extremum_is_that_of_its_winner():
    volume, _, _ = seen_in("minimum")
    wanted, w = np.zeros(volume.shape), np.random.default_rng(0).normal(size=(30, 4))
    with linearised("minimum") as seen:
        got = seen.adjoint(w).density
        for (o, d), d_image in zip(zip(seen.rays.origin, seen.rays.direction, strict=True), w, strict=True):
            samples = reference.samples(volume, o, d, STEP * volume.voxel, 0.0, 0.0, "x-ray")[0]
            if samples:
                winner = min(samples, key=lambda s: s.tau / s.width)
                reference.scatter(wanted, winner.p, d_image[:3].sum() * winner.slope)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


def field(function, shape=(9, 8, 7), activation=LINEAR) -> Volume:
    """Samples of a function on the box -1..1."""
    axes = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    place = np.diag([*(2 / (np.array(shape) - 1.0)), 1])
    place[:3, 3] = -1
    return Volume(function(np.stack(axes, -1)), np.zeros((*shape, 3)), place, activation)


def seen_along(volume, rays, mode, **how):
    """Image (ray, 4) in f64, and depth and normals, of a few rays."""
    march = replace(EXACT, mode=mode, **how)
    camera = Camera.look_at((0, -4, 0.3), width=len(rays), height=1)
    with Linearised(volume, camera, march=march, background=(0, 0, 0), columns=1) as seen:
        seen.buffer.upload(rays)
        return seen.image()


RAYS = Rays(
    [[-3, 0.1, 0.2], [0.1, -3, 2], [0.3, 0.2, -4], [-2, -2.1, -1.9], [0.1, 0.2, 0.3]],
    [[1, 0.05, -0.1], [0.1, 1, -0.7], [0, 0, 1], [1, 1.1, 1.02], [0.3, -0.2, 0.5]],
)


@pytest.mark.parametrize("mode", ["x-ray-exact", "x-ray-joseph", "average"])
def test_the_integral_of_a_linear_field_is_its_length_times_the_mean_of_its_ends(mode):
    """1 + 0.3 x - 0.2 y + 0.5 z, which is nowhere negative: by the identity and by relu."""
    way = np.array([0.3, -0.2, 0.5])
    for activation in (LINEAR, Activation("relu")) if mode != "average" else (LINEAR,):
        volume = field(lambda p: 1 + p @ way, activation=activation)
        for (o, d), got in zip(
            zip(RAYS.origin, RAYS.direction, strict=True), seen_along(volume, RAYS, mode), strict=True
        ):
            near, far = reference.clip(o, d, volume)
            mean = 1 + (o + (near + far) / 2 * d) @ way
            wanted = mean if mode == "average" else (far - near) * mean
            np.testing.assert_allclose(got[:3], wanted, rtol=1e-12)


def degenerate_rays(volume):
    """Rays along lines of samples, through corners and edges of cells, two axes of them as far, and from within."""
    top, middle = np.array(volume.shape) - 1.0, np.array([1.0, 2.0, 2.0])
    ends = [(np.where(axis, at, middle), np.where(axis, -at, middle)) for axis in np.eye(3) > 0 for at in (-9.0, 9.0)]
    ends += [(-np.ones(3), top + 1), (-np.ones(3), np.full(3, 6.0)), (np.array([-2.0, 2, 2]), np.array([2.0, -2, -2]))]
    ends += [(np.array([-1.0, 1, 0.5]), np.array([1.0, -1, 0.5]))]
    ends += [(start, end) for start in (middle, middle + 0.3) for end in (np.array([9.0, 2, 2]), np.array([9.0, 8, 1]))]
    origin, end = (
        np.array(one) @ volume.world_from_index[:3, :3].T + volume.world_from_index[:3, 3]
        for one in zip(*ends, strict=True)
    )
    return Rays(origin, (end - origin) / np.linalg.norm(end - origin, axis=1, keepdims=True))


@pytest.mark.parametrize("mode", ["x-ray-exact", "x-ray-joseph"])
@pytest.mark.parametrize("spacing", [(0.3, 0.3, 0.3), (-0.1, 0.4, 0.9)], ids=["even", "mirrored"])
def test_rays_on_planes_of_samples_and_from_within_have_the_reference_s_integral(mode, spacing):
    rng = np.random.default_rng(0)
    place = np.diag([*spacing, 1])
    place[:3, 3] = 0.3, -0.2, 0.1
    volume = Volume(rng.normal(size=(5, 4, 6)), np.zeros((5, 4, 6, 3)), place, LINEAR)
    rays = degenerate_rays(volume)
    wanted = [
        integral(volume, o, d) if mode == "x-ray-exact" else joseph(volume, o, d, ())
        for o, d in zip(rays.origin, rays.direction, strict=True)
    ]
    np.testing.assert_allclose(seen_along(volume, rays, mode)[:, 0], wanted, rtol=0, atol=1e-12)


def test_depth_of_a_mean_is_by_the_size_of_what_is_added_whatever_its_sign():
    """x from -1 to 1 has a mean of 0, and is as large on both sides of the middle."""
    with Renderer(field(lambda p: p[..., 0], activation=LINEAR), March(mode="average", batch=cases.FEW)) as renderer:
        image, depth = renderer.trace(Rays([[-3, 0.1, 0.2]], [[1, 0, 0]]), depth=True)
    np.testing.assert_allclose([image[0, 0], depth[0]], [0, 3], atol=1e-6)


@pytest.mark.parametrize("mode", ["x-ray-exact", "x-ray-joseph"])
def test_an_ellipsoid_phantom_converges_with_order_2(mode):
    """(1 - q^2)^2 within q < 1, q the length in units of its axes: a chord at distance b has 16/15 (1 - b^2)^(5/2)."""
    axes = np.array([0.8, 0.6, 0.7])
    wanted = []
    for o, d in zip(RAYS.origin[:4] / axes, RAYS.direction[:4] / axes, strict=True):
        speed, nearest = np.linalg.norm(d), o - d * (o @ d) / (d @ d)
        wanted.append(16 / 15 * max(1 - nearest @ nearest, 0) ** 2.5 / speed)
    rays, errors = Rays(RAYS.origin[:4], RAYS.direction[:4]), []
    for n in (65, 33, 17):
        phantom = field(lambda p: np.maximum(1 - ((p / axes) ** 2).sum(-1), 0) ** 2, (n, n, n))
        errors.append(np.linalg.norm(seen_along(phantom, rays, mode)[:, 0] - wanted))
    np.testing.assert_allclose(np.log2(np.divide(errors[1:], errors[:-1])), 2, atol=0.3)


def test_the_step_is_no_parameter_of_an_exact_integral():
    volume, camera, _ = seen_in("x-ray-exact")
    images = [render(volume, camera, march=March(mode="x-ray-exact", step=step, batch=cases.FEW)) for step in (0.1, 50)]
    np.testing.assert_array_equal(*images)
    with linearised("x-ray-exact") as seen, pytest.raises(RaymarchError, match="x-ray-exact has no gradient by step"):
        seen.tangent(Parameters(step=np.ones(())))


def test_in_single_precision_the_integral_is_good_to_1e_5(single):
    volume, camera, march = seen_in("x-ray-exact")
    with linearised("x-ray-exact") as seen:
        wanted = seen.image()
    got = single(worker.image_of_camera, volume, camera, march)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_an_extremum_is_invariant_under_reversal_of_the_ray():
    """Where steps divide the ray, its samples are the same from either end; the minimum is less the maximum of -v."""
    volume = field(lambda p: np.random.default_rng(3).normal(size=p.shape[:-1]), (9, 9, 9))
    there = Rays([[-2, y, z] for y in (-0.9, 0.13, 0.77) for z in (-0.3, 0.6)], np.tile([1.0, 0, 0], (6, 1)))
    back = Rays(-there.origin * [1, -1, -1], -there.direction)
    mirrored = replace(volume, density=-volume.density)
    for mode in ("maximum", "minimum"):
        forth = seen_along(volume, there, mode, step=0.5)
        np.testing.assert_allclose(seen_along(volume, back, mode, step=0.5), forth, rtol=0, atol=1e-14)
        other = {"maximum": "minimum", "minimum": "maximum"}[mode]
        np.testing.assert_array_equal(-seen_along(mirrored, there, other, step=0.5)[:, :3], forth[:, :3])


def test_of_equal_samples_the_first_wins():
    flat = field(lambda p: np.ones(p.shape[:-1]))
    with Renderer(flat, March(mode="maximum", step=0.5, batch=cases.FEW)) as renderer:
        _, depth = renderer.trace(Rays([[-3, 0, 0]], [[1, 0, 0]]), depth=True)
    np.testing.assert_allclose(depth, 2 + 0.25 * flat.voxel, rtol=1e-6)


@pytest.mark.parametrize("mode", ["x-ray-exact", whole("isosurface")])
def test_bricks_are_marched_as_the_dense_grid_is(mode):
    """Image and gradient, bit for bit; here all bricks are there."""
    volume, camera, march = seen_in("x-ray-exact")
    march = march if mode == "x-ray-exact" else replace(surface(LEVEL), min_weight=0.0)
    w, found = np.random.default_rng(0).normal(size=(30, 4)), []
    for each in (volume, Volume.of_bricks(bricks_of(volume), volume.shape, volume.world_from_index, LINEAR)):
        each = replace(each, activation=volume.activation)
        with Linearised(each, camera, march=march, columns=1) as seen:
            found.append([seen.image(), seen.adjoint(w).density])
    for dense, sparse in zip(*found, strict=True):
        np.testing.assert_array_equal(sparse, dense)


def bricks_of(volume) -> Bricks:
    return Bricks.of_dense(volume.density, volume.features, volume.activation.empty)


def surface(iso) -> March:
    return March(mode="isosurface", iso=iso, batch=cases.FEW)


def ball(n=24) -> Volume:
    """Distance from the middle: its level surfaces are spheres."""
    return field(lambda p: np.linalg.norm(p, axis=-1), (n, n, n))


CAMERA = Camera.look_at((0.4, -4, 1), width=24, height=20)


def by_ball(painted, normals, matcap):
    """Each pixel that is hit has what lies between four of the matcap's, where its normal is on the ball."""
    rows, columns = matcap.shape[:2]
    for got, normal in zip(painted.image.reshape(-1, 3), normals.reshape(-1, 3), strict=True):
        x, y, _z = CAMERA.world_from_camera[:3, :3].T @ normal
        u, v = np.clip((x + 1) / 2 * columns - 0.5, 0, columns - 1), np.clip((1 - y) / 2 * rows - 0.5, 0, rows - 1)
        hats = [np.maximum(1 - np.abs(np.arange(n) - at), 0) for n, at in ((rows, v), (columns, u))]
        wanted = np.einsum("r,c,rck->k", *hats, matcap) if normal.any() else np.zeros(3)
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_a_balls_isosurface_is_hit_at_its_radius_and_its_normals_point_outward():
    """Within what interpolation makes of the distance: h^2 / 8 of its second derivatives, two along a sphere, 1 / r."""
    radius, h = 0.7, 2 / 23
    shading = Shading(ambient=0.0, diffuse=1.0, specular=0.0, colour=(1.0, 0.5, 0.25))
    with Renderer(ball(), replace(surface(radius), shading=shading)) as renderer:
        seen = renderer.render(CAMERA, "black", normals=True)
        inside = renderer.trace(Rays([[0, 0, 0]], [[0.3, 0.2, 0.9]]), depth=True)[1]
        matcap = np.random.default_rng(0).uniform(size=(3, 5, 3))
        renderer.medium.marches = [replace(renderer.march, shading=Shading(matcap=matcap))]
        painted = renderer.render(CAMERA, "black", normals=True)
        with pytest.raises(RaymarchError, match="shading has a matcap, which is of a camera's picture alone"):
            renderer.trace(Rays([[0, 0, 0]], [[0.3, 0.2, 0.9]]))
    by_ball(painted, seen.normals, matcap)
    rays, hit = CAMERA.rays(), np.isfinite(seen.depth).ravel()
    np.testing.assert_array_equal(seen.opacity.ravel() == 1, hit)
    places = (rays.origin + seen.depth.reshape(-1, 1) * rays.direction)[hit]
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), radius, atol=h**2 / 4 / radius)
    np.testing.assert_allclose(inside, radius, atol=h**2 / 4 / radius)
    normals = seen.normals.reshape(-1, 3)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), hit, atol=1e-6)
    assert ((normals[hit] * places).sum(1) > 0.95 * radius).all()
    facing = -(normals * rays.direction).sum(1)
    np.testing.assert_allclose(seen.image.reshape(-1, 3), facing[:, None] * [1.0, 0.5, 0.25], atol=1e-6)


def test_a_plane_is_hit_where_it_is_and_the_value_moves_it_by_one_over_its_slope():
    """1 + p.g = iso along a ray: t = (iso - 1 - o.g) / (d.g); a lamp at the eye sees a plane evenly."""
    way = np.array([0.3, -0.2, 0.5])
    plane = field(lambda p: 1 + p @ way)
    for iso in (0.9, 1.1):
        with Renderer(plane, surface(iso)) as renderer:
            _, depth = renderer.trace(RAYS, "black", depth=True)
        t = (iso - 1 - RAYS.origin @ way) / (RAYS.direction @ way)
        ends = [reference.clip(o, d, plane) for o, d in zip(RAYS.origin, RAYS.direction, strict=True)]
        hit = np.array([near <= at <= far for at, (near, far) in zip(t, ends, strict=True)])
        assert hit.any()
        np.testing.assert_allclose(depth, np.where(hit, t, np.inf), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-25, 1e20])
def test_the_unit_of_the_values_changes_no_surface(unit):
    """In single precision, where squares of such numbers are 0 or infinite."""
    seen = []
    for volume, iso in ((ball(), 0.7), (replace(ball(), density=unit * ball().density), 0.7 * unit)):
        with Renderer(volume, surface(iso)) as renderer:
            seen.append(renderer.render(CAMERA, normals=True))
    for name in ("depth", "normals", "image"):
        np.testing.assert_allclose(*(getattr(each, name) for each in seen), rtol=1e-4, atol=1e-4)


def test_where_a_ray_only_touches_the_surface_its_hit_stays():
    """-x y behind a plateau: along its diagonal the slope at the plateau's corner is 0, beside it it is not."""
    x, y, _ = np.indices((6, 6, 4), float)
    values = -np.maximum(x - 2, 0) * np.maximum(y - 2, 0)
    corner, march = Volume(values, np.zeros((6, 6, 4, 3)), np.eye(4), LINEAR), surface(0.0)
    with Linearised(corner, CAMERA, march=march, columns=1) as seen:
        seen.buffer.upload(Rays([[-1, -1, 1.5], [-1, -0.5, 1.5]], [[1, 1, 0]] * 2))
        for rays, moves in ((1, False), (2, True)):
            passes, fields = passes_of(march.rule), (seen.grid.fields, seen.buffer.fields)
            call = march.call(seen.grid, rays, (0, 0, 0))[:4]
            passes.depth(*fields, *call)
            seen.buffer.fields.depth.grad.fill(1.0)
            passes.depth_gradients.adjoint(*fields, *call)
            seen.grid.reduce_slots()
            assert seen.grid.download_gradient()[0].any() == moves


def test_a_surface_where_the_activation_is_flat_moves_with_the_camera_and_not_by_its_value():
    """relu's 0: on one side of the level all values are the same."""
    volume = cases.volume("rotated", 0, "relu", "sigmoid")
    volume = replace(volume, activation=replace(volume.activation, shift=0.0))
    camera, march, rng = cases.cameras(volume)[0], surface(0.0), np.random.default_rng(6)
    with Linearised(volume, camera, march=march, columns=1) as seen, ExitStack() as owners:
        gradient, still = seen.adjoint(rng.normal(size=(30, 4))), seen.tangent(Parameters(iso=np.ones(())))
        rows = check_rows(seen, ["density", "pose"])
        depths, (origin, way) = Depths(seen, owners), rng.normal(size=(2, 30, 3))
        hit = np.isfinite(depths.of(volume.density))
        by_rays, (by_origin, by_way) = depths.geometry_tangent(origin, way), depths.geometry_adjoint(np.ones(30))
    assert gradient.iso == 0 and not still.any() and hit.sum() > 5
    for row in rows:
        assert row.verdict == "good" and row.dot < 1e-12 and row.difference < 1e-7, row
    assert by_rays[hit].all()
    np.testing.assert_allclose(by_rays.sum(), np.vdot(origin, by_origin) + np.vdot(way, by_way), rtol=1e-12)


def test_leaps_over_cells_without_the_surface_change_nothing():
    bumps = field(lambda p: np.linalg.norm(p, axis=-1) + 0.1 * np.cos(9 * p).prod(-1), (24, 24, 24))
    with Renderer(bumps, surface(0.4)) as renderer:
        leaping = renderer.render(CAMERA)
        assert 0.05 < renderer.grid.occupied_cells().mean() < 0.9
        renderer.grid.occupy(np.ones(renderer.grid.cells, bool))
        renderer.grid.measure_occupancy()
        walking = renderer.render(CAMERA)
    assert 0.02 < leaping.opacity.mean() < 1
    np.testing.assert_allclose(leaping.image, walking.image, atol=1e-6)
    np.testing.assert_allclose(leaping.depth, walking.depth, rtol=1e-6)


SOFT = Activation("softplus")
RAMP = field(lambda p: p[..., 0], activation=SOFT)
NDC = ndc_of_frustum(np.eye(4), 1.0)
NESTED = Volume(np.zeros((8, 4, 4)), np.zeros((8, 4, 4, 3)), np.eye(4), SOFT, boxes=2)


MATTE = Shading(matcap=np.ones((1, 1, 3)))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: March(mode="isosurface"), "iso is None, want the value of the surface"),
        (lambda: render(ball(5), CAMERA, march=surface(9.0)), "values go from .* choose one between"),
        (lambda: render(RAMP, CAMERA, march=surface(-1)), "no density of activation softplus is"),
        (lambda: render(replace(RAMP, ndc_from_world=NDC), CAMERA, march=surface(1)), "does not march volumes in NDC"),
        (lambda: render(NESTED, CAMERA, march=surface(1)), "does not go through nested boxes"),
        (lambda: March(shading="matte"), "shading is 'matte'"),
        (
            lambda: March(iso=2),
            "iso is given in mode emission-absorption, which shows no surface; say mode='isosurface'",
        ),
        (lambda: March(mode="maximum", shading=Shading()), "shading is given in mode maximum, which lights nothing"),
        (lambda: replace(surface(1), shading=Shading(occlusion=1)), "shading has occlusion in mode isosurface"),
        (lambda: require_groups(["iso"], [replace(surface(1), shading=MATTE).rule], PINHOLE_LENS), "has no gradient"),
        (lambda: Shading(lamp=(0, 0, 0)), "lamp is"),
    ],
)
def test_surfaces_that_are_none_are_refused_in_a_line(ask, said):
    with pytest.raises(RaymarchError, match=said) as error:
        ask()
    assert "\n" not in str(error.value)


PEAKS = TransferFunction([0, 20, 22, 24], [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)], [0, 0, 0.9, 0.1])


@pytest.mark.parametrize(
    ("march", "angle", "order"),
    [
        pytest.param(March(mode="isosurface", iso=22.0), 0.7, (1, 2, 0), id="isosurface"),
        whole(March(mode="transfer", transfer=PEAKS, preintegrated=True), 1.3, (0, 1, 2), id="pre-integrated"),
    ],
)
def test_rays_along_rows_of_samples_see_what_those_beside_them_see(march, angle, order, single):
    """In single precision, where such a ray of a turned volume has a way of 1e-7 across the faces that it runs along,
    and a rounding says on which side of them it is."""
    n = np.array((30, 26, 40))
    i = np.stack(np.meshgrid(*[np.arange(m) for m in n], indexing="ij"), -1)
    values = sum(100 * np.exp(-((i - at) ** 2).sum(-1) / 7) for at in ((14, 13, 27.2), (12, 10, 11.2), (20, 18, 20)))
    world = cases.motion((1, 2, 3), angle)
    world[:3, 3] = (0.3, -0.2, 0.1) - world[:3, :3] @ ((n - 1) / 2)
    right, up, back = (world[:3, axis] for axis in order)
    width, height, depth = (int(n[axis]) for axis in order)
    pose, seen = np.eye(4), []
    pose[:3, :3] = np.stack([right, up, back], 1)
    for aside in (0, 1e-3):
        pose[:3, 3] = (0.3, -0.2, 0.1) + (0.5 * depth + 30) * back + aside * (right + up)
        camera = Camera(pose.copy(), (1, 1), (width / 2, height / 2), width, height, Lens("orthographic"))
        seen.append(single(worker.rendered, ScalarVolume(values, world), camera, march))
    assert 20 < (seen[0] > 0.1).any(-1).sum() < 600
    np.testing.assert_allclose(*seen, rtol=0, atol=0.05)
