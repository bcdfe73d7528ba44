"""Law: of a clipped volume rays see what lies within box and planes, cut where they cross; gradients know the cuts."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
import reference
from whole import whole

import raymarch as rm
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.rendering.renderer import Renderer

STEP = 0.47
JITTER = {"jitter": 1.0, "step_jitter": 0.4, "seed": 5}  # samples go one by one, which compiles in half the time
CLIPS = {
    "box": rm.Clip(box=[(-0.31, -0.52, -0.4), (0.44, 0.37, 0.29)]),
    "planes": rm.Clip(planes=[((1, 2, -1), -0.4), ((-0.3, 0.1, 1), -0.3)]),
    "both": rm.Clip(box=[(-0.4, -0.5, -0.4), (0.5, 0.4, 0.5)], planes=[((1, 2, -1), -0.4)]),
}
POSE = cases.motion((1, 2, -1), 0.7, (0.3, -0.2, 0.5))


def placed(kind):
    """Random volume about the origin, nested boxes or NDC, and a clip that cuts it."""
    rng = np.random.default_rng(0)
    how = replace(cases.volume().activation, scale=0.5)
    if kind == "nested":
        affine = cases.motion((1, 2, 3), 0.4) @ np.diag([0.11, 0.13, 0.12, 1])
        affine[:3, 3] = affine[:3, :3] @ (-2.5, -2.0, -1.5)
        density, features = rng.normal(size=(18, 5, 4)), rng.normal(size=(18, 5, 4, 3))
        return rm.Volume(density, features, affine, how, boxes=3), CLIPS["both"]
    ndc = rm.ndc_of_frustum(np.eye(4), 0.8, 1.9)
    affine = cases.motion(shift=(-1.6, -1.2, -1)) @ np.diag([3.2 / 6, 2.4 / 5, 2 / 4, 1])
    v = rm.Volume(rng.normal(size=(7, 6, 5)), rng.normal(size=(7, 6, 5, 3)), affine, how, ndc_from_world=ndc)
    return v, rm.Clip(box=[(-0.3, -0.5, -3.5), (0.5, 0.6, -1.2)], planes=[((0.2, 0.3, 1), -2.9)])


def camera_of(kind):
    if kind == "ndc":
        return rm.Camera.from_fov(cases.motion((0.1, 1, 0.05), 0.1, (0.1, 0.05, 0.3)), 0.5, 4, 3)
    return rm.Camera.look_at((0.5, -2.4, 0.9), (0.05, 0, 0), fov=0.5, width=4, height=3)


def kept(clip, points):
    """Whether points (point, 3) are kept, by the words of the docstring."""
    out = np.ones(len(points), bool)
    if clip.box is not None:
        out &= ((points >= clip.box[0]) & (points <= clip.box[1])).all(1)
    for normal, offset in clip.planes:
        out &= points @ normal >= offset
    return out


def stretch(inside, near, far):
    """The part of near..far where `inside` (t,) holds, its ends by bisection."""
    t = np.linspace(near, far, 4001)
    on = np.flatnonzero(inside(t))
    if not len(on):
        return 0.0, -1.0
    ends = []
    for first, beyond in ((on[0], on[0] - 1), (on[-1], on[-1] + 1)):
        good = t[first]
        if 0 <= beyond < len(t):
            bad = t[beyond]
            for _ in range(60):
                middle = (good + bad) / 2
                good, bad = (middle, bad) if inside(np.array([middle]))[0] else (good, middle)
        ends.append(good)
    return ends[0], ends[1]


@pytest.fixture
def clipped_reference(monkeypatch):
    """`clipped_reference(clip)`: the slow twin with its segments cut by asking of many points whether they are kept."""
    uncut = reference.segments

    def segments(clip, volume, origin, direction):
        world_from_ndc = None if volume.ndc_from_world is None else np.linalg.inv(volume.ndc_from_world)

        def inside(t):
            points = origin + t[:, None] * direction
            if world_from_ndc is not None:
                points = np.concatenate([points, np.ones((len(t), 1))], 1) @ world_from_ndc.T
                points = points[:, :3] / np.maximum(points[:, 3:], 1e-12)
            return kept(clip, points)

        return [(n, *stretch(inside, near, far)) for n, near, far in uncut(volume, origin, direction) if far > near]

    return lambda clip: monkeypatch.setattr(reference, "segments", lambda *ray: segments(clip, *ray))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        pytest.param("nested", "x-ray", id="nested"),  # the mode that compiles fastest: what is kept is that of any
        whole("nested", "emission-absorption", id="nested, with colours"),
        whole("ndc", "emission-absorption", id="ndc"),
    ],
)
def test_image_and_gradients_are_those_of_what_is_kept(kind, mode, clipped_reference):
    (v, clip), camera = placed(kind), camera_of(kind)
    march = rm.March(mode=mode, step=STEP, min_transmittance=0, min_weight=0, clip=clip, **JITTER)
    clipped_reference(clip)
    rays, step = camera.rays(), STEP * v.voxel
    d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
    with Linearised(v, camera, background=cases.BACKGROUND, march=march) as seen:
        own = seen.buffer.fields.jitter.to_numpy()[: len(rays)]
        how = {"mode": mode, "jitter": own}
        wanted = reference.march(v, rays, step, cases.BACKGROUND, **how)
        d_density, d_features = reference.march_gradient(v, rays, step, cases.BACKGROUND, d_image, **how)
        assert (wanted[:, 3] < 0.9).sum() >= 6
        np.testing.assert_allclose(seen.image(), wanted, rtol=0, atol=1e-9)
        gradient = seen.adjoint(d_image)
        np.testing.assert_allclose(gradient.density, d_density, rtol=0, atol=1e-9)
        if mode != "x-ray":
            np.testing.assert_allclose(gradient.colour, d_features, rtol=0, atol=1e-9)
        rows = check_rows(seen, ["pose", "box"], pairs=2)
    for row in rows:
        assert row.dot < 1e-12, row
        assert row.difference < 1e-7, row


def test_a_cut_is_where_it_is_and_not_at_a_sample():
    """A line integral of 1 is the length of what is kept, to the last bits, wherever planes lie within cells."""
    v = rm.Volume(np.ones((5, 4, 3)), np.zeros((5, 4, 3, 3)), np.diag([0.5, 0.5, 0.5, 1]), rm.Activation("identity"))
    rays = rm.Rays([(0.3 + 0.1 * i, -1, 0.4) for i in range(9)], [(0.1, 1.0, 0.05)] * 9)
    clip = rm.Clip(planes=[((0, 1, 0), 0.123456789), ((1, -3, 0.5), -2.7), ((0, 0, 1), -9)])
    march = rm.March(mode="x-ray", step=0.37, min_transmittance=0, min_weight=0, clip=clip, batch=cases.FEW)
    with Renderer(v, march) as renderer:
        image, depth = renderer.trace(rays, depth=True)
    near, far = clip.cut(rays)
    begin = np.max([near, 1 / rays.direction[:, 1]], axis=0)
    np.testing.assert_allclose(image[:, 0], far - begin, rtol=1e-6)
    np.testing.assert_allclose(depth, (begin + far) / 2, rtol=1e-6)
    beside = rm.Clip(box=[(8, 8, 8), (9, 9, 9)])
    with Renderer(v, replace(march, clip=beside)) as renderer:
        image, _ = renderer.trace(rays)
    np.testing.assert_array_equal(image, [[0, 0, 0, 1]] * 9)


@pytest.mark.parametrize("name", CLIPS)
def test_what_is_kept_of_a_ray_is_what_is_kept_of_its_points(name):
    clip, rng = CLIPS[name], np.random.default_rng(0)
    origin = rng.normal(size=(60, 3))
    rays = rm.Rays(origin, 0.3 * rng.normal(size=(60, 3)) - origin)
    near, far = clip.cut(rays)
    assert (far > near).sum() > 5 and (far < near).sum() > 5
    for t in rng.uniform(0, 4, 50):
        points = rays.origin + t * rays.direction
        np.testing.assert_array_equal(kept(clip, points), (near <= t) & (t <= far))
        np.testing.assert_array_equal(clip.keeps(points), kept(clip, points))


def test_rays_along_a_plane_are_kept_or_not():
    clip = rm.Clip(box=[(0, 0, 0), (1, 1, 1)])
    rays = rm.Rays([(0.5, 0.5, -1), (1.5, 0.5, -1), (0.5, -0.5, -1)], [(0, 0, 1)] * 3)
    near, far = clip.cut(rays)
    np.testing.assert_array_equal(far > near, [True, False, False])
    np.testing.assert_array_equal((near[0], far[0]), (1, 2))


def test_planes_go_to_planes_in_ndc():
    v, clip = placed("ndc")
    points = np.random.default_rng(0).uniform((-1, -1, -6), (1, 1, -0.9), (300, 3))
    flat = np.concatenate([points, np.ones((300, 1))], 1) @ v.ndc_from_world.T
    there = flat[:, :3] / flat[:, 3:]
    planes = clip.planes_in(v.ndc_from_world)
    np.testing.assert_array_equal((there @ planes[:, :3].T >= planes[:, 3]).all(1), kept(clip, points))
    assert 10 < kept(clip, points).sum() < 290


def test_a_clip_that_keeps_all_compiles_nothing_of_its_own():
    assert rm.March(clip=CLIPS["box"]).clipped and not rm.March(clip=rm.Clip()).clipped and not rm.March().clipped
