"""Laws of camera paths: they pass through their keys, move at constant speed, turn smoothly and keep all in sight."""

from __future__ import annotations

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.camera_path import (
    align_quaternions,
    catmull_rom,
    lerp,
    path_through,
    quaternions_of,
    reframe,
    rotations_of,
    short_route,
    slerp,
    tour_order,
)
from raymarch.geometry.orbit import orbit, orbit_of_volume, spiral_of_volume
from raymarch.geometry.pose import exp_rigid

RNG = np.random.default_rng(3)
LIKE = Camera.look_at((4, 0, 0), width=48, height=32, fov=0.7)
BOX = [(-1, -2, 0.5), (1, 3, 1.5)]


def at(place, target=(0, 0, 0), fov=0.7):
    return Camera.look_at(place, target, fov=fov, width=48, height=32)


def turned(axis, angle, place=(0, 0, 0)):
    pose = exp_rigid([0, 0, 0, *(angle * np.asarray(axis, float))])
    pose[:3, 3] = place
    return Camera.from_fov(pose, 0.7, 48, 32)


WAYS = {
    "around an object": [at((4, 0, 1)), at((1, 3.5, 2)), at((-4, 1, 0.5)), at((0, -5, 3))],
    "to and fro": [at((4, 0, 1)), at((0, 4, 1)), at((4, 0.5, 1))],
    "two sides": [at((4, 0, 1)), at((-4, 0.3, 1))],
    "past a wall": [at((x, -5, z), (x, 0, z)) for x, z in ((0, 0), (1, 0.1), (2.5, 0.4), (3, 0.4))],
    "a zoom": [at((4, 0, 0), fov=1.2), at((4, 0, 0), fov=0.2)],
    "a pan": [turned((0, 1, 0), angle) for angle in (0, 0.4, 1.5)],
    "each its own": [at((4, 0, 0), (0, 1, 0)), at((4, 2, 0), (-3, 3, 1)), at((5, 5, 1), (5, -5, 0), 0.5)],
    "a pause": [at((4, 0, 1)), at((4, 0, 1)), at((0, 4, 1))],
    "orthographic": [Camera.orthographic(p, size=s, width=48, height=32) for p, s in (((3, 0, 0), 1), ((0, 3, 1), 4))],
}


def poses(cameras):
    return np.array([camera.world_from_camera for camera in cameras])


def turns(cameras):
    """Angles [radian] from each camera to the next."""
    r = poses(cameras)[:, :3, :3]
    half = np.linalg.norm(r[1:] - r[:-1], axis=(1, 2)) / np.sqrt(8)
    return 2 * np.arcsin(np.minimum(half, 1))


def moves(cameras):
    return np.linalg.norm(np.diff(poses(cameras)[:, :3, 3], axis=0), axis=1)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_a_path_passes_through_its_keys_in_their_order(name, closed):
    keys, path = WAYS[name], path_through(WAYS[name], 500, closed=closed)
    assert len(path) == 500
    before = 0
    for key in keys:
        away = np.abs(poses(path) - key.world_from_camera).max(axis=(1, 2))
        zoom = np.abs(np.log([camera.focal[0] / key.focal[0] for camera in path]))
        away = np.maximum(away, zoom)[before:]
        assert away.min() < 0.045, name
        before += int(np.argmax(away < 0.06))
    if not closed:
        for end, key in ((path[0], keys[0]), (path[-1], keys[-1])):
            np.testing.assert_allclose(end.world_from_camera, key.world_from_camera, atol=1e-9)
            np.testing.assert_allclose((*end.focal, *end.principal), (*key.focal, *key.principal), rtol=1e-9)
    assert {(camera.width, camera.height) for camera in path} == {(48, 32)}


@pytest.mark.parametrize("name", sorted(set(WAYS) - {"to and fro"}))
def test_a_path_neither_jumps_nor_kinks(name):
    """Frames that are twice as dense move half as far, and so do the changes of their moves but at keys."""
    coarse, fine = path_through(WAYS[name], 151), path_through(WAYS[name], 601)
    for of in (moves, turns, lambda path: np.abs(np.diff(np.log([camera.focal[0] for camera in path])))):
        if of(coarse).max() > 1e-9:
            assert of(fine).max() < 0.3 * of(coarse).max()
    heading = np.diff(poses(fine)[:, :3, :4], axis=0)
    bend = np.abs(np.diff(heading, axis=0)).max()
    assert bend < 0.15 * np.abs(heading).max() + 1e-12, name


@pytest.mark.parametrize("seed", range(6))
def test_a_path_through_keys_far_apart_jumps_nowhere(seed):
    """Anywhere around an object: what turns by more than half a turn within the curve's construction keeps its side."""
    places = np.random.default_rng(seed).normal(size=(5, 3))
    keys = [at(place) for place in 4 * places / np.linalg.norm(places, axis=1, keepdims=True)]
    for closed in (False, True):
        path = path_through(keys, 801, closed=closed)
        assert turns(path).max() < 8 * np.median(turns(path)) and moves(path).max() < 2 * np.median(moves(path))


@pytest.mark.parametrize(
    ("name", "closed"),
    [("around an object", False), ("around an object", True), ("past a wall", False), ("orthographic", False)]
    + [("two sides", False)],
)
def test_a_path_that_moves_does_so_at_constant_speed(name, closed):
    steps = moves(path_through(WAYS[name], 240, closed=closed))
    assert steps.max() < 1.03 * steps.min()


def test_a_pan_turns_at_constant_speed():
    steps = turns(path_through(WAYS["a pan"], 100))
    assert steps.max() < 1.01 * steps.min()


def test_a_path_between_two_sides_goes_around_and_keeps_what_it_looks_at():
    path = path_through(WAYS["two sides"], 50)
    away = np.linalg.norm(poses(path)[:, :3, 3], axis=1)
    assert away.min() > 0.95 * 4
    pixels, depth = zip(*(camera.project([(0, 0, 0)]) for camera in path), strict=True)
    np.testing.assert_allclose(np.concatenate(pixels), [[24, 16]] * 50, atol=0.2)
    assert np.min(depth) > 0


def test_a_path_through_an_orbit_is_that_orbit():
    keys = orbit((1, 2, 0), 4.0, 12, like=LIKE)
    path, ring = path_through(keys, 60, closed=True), orbit((1, 2, 0), 4.0, 60, like=LIKE)
    np.testing.assert_allclose(poses(path), poses(ring), atol=0.01)


def test_a_path_turns_with_the_world():
    move = exp_rigid([1, -2, 3, 0.4, 0.9, -0.2])
    here, there = (path_through([camera.moved(m) for camera in WAYS["each its own"]], 40) for m in (np.eye(4), move))
    np.testing.assert_allclose(poses(there), move @ poses(here), atol=1e-7)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: path_through([LIKE], 9), "have 1, want two or more"),
        (lambda: path_through([LIKE, LIKE, LIKE], 9), "3 of one pose"),
        (lambda: path_through([LIKE, WAYS["orthographic"][0]], 9), "want one kind"),
        (lambda: path_through([LIKE, 3], 9), "cameras have 3|cameras has 3"),
        (lambda: path_through(WAYS["a pan"], 9, about=np.zeros((2, 3))), "2 points for 3 cameras"),
    ],
)
def test_what_is_no_path_is_told(call, match):
    with pytest.raises(RaymarchError, match=match):
        call()


@pytest.mark.parametrize("orthographic", [False, True])
def test_a_spiral_has_all_in_sight_and_constant_speed(orthographic):
    how = {"turns": 2.5, "elevations": (-20, 70), "size": 64, "orthographic": orthographic}
    path = spiral_of_volume(BOX, 90, **how)
    corners = np.stack(np.meshgrid(*zip(*BOX, strict=True), indexing="ij"), -1).reshape(-1, 3)
    for camera in path:
        pixels, depth = camera.project(corners)
        assert (depth > 0).all() and (pixels >= 0).all() and (pixels <= 64).all()
    steps = moves(path)
    assert steps.max() < 1.01 * steps.min()
    centre = np.mean(BOX, axis=0)
    off = poses(path)[:, :3, 3] - centre
    up = np.rad2deg(np.arcsin(off[:, 2] / np.linalg.norm(off, axis=1)))
    np.testing.assert_allclose((up[0], up[-1]), (-20, 70), atol=1e-6)
    around = np.unwrap(np.arctan2(off[:, 1], off[:, 0]))
    assert around[-1] - around[0] == pytest.approx(2.5 * 2 * np.pi)


@pytest.mark.parametrize("size", [(192, 108), (90, 160), (64, 64)])
def test_a_framed_camera_sees_all_that_it_saw(size):
    camera = orbit_of_volume(BOX, 5, size=64)[1]
    corners = camera.rays(np.array([0, 63, 64 * 64 - 64, 64 * 64 - 1])).direction + camera.position
    seen = reframe(camera, *size).project(corners)[0]
    assert (seen >= 0).all() and (seen <= size).all()
    np.testing.assert_allclose(seen.mean(0), np.divide(size, 2))
    assert np.ptp(seen, axis=0).max() == pytest.approx(min(size) * 63 / 64)


def test_quaternions_are_rotations():
    twists = [*RNG.uniform(-1, 1, (40, 3)) * RNG.uniform(0, np.pi, (40, 1)), (np.pi, 0, 0), (0, 0, np.pi), (0, 0, 0)]
    rotations = np.array([exp_rigid([0, 0, 0, *twist])[:3, :3] for twist in twists])
    np.testing.assert_allclose(rotations_of(quaternions_of(rotations)), rotations, atol=1e-12)


def test_great_arcs_are_the_exponential_of_a_share():
    twist = np.array([0.3, -1.1, 0.7])
    ends = quaternions_of(np.array([np.eye(3), exp_rigid([0, 0, 0, *twist])[:3, :3]]))
    for share in (-0.5, 0.0, 0.25, 1.0, 1.5):
        wanted = exp_rigid([0, 0, 0, *(share * twist)])[:3, :3]
        for end in (ends[1:], -ends[1:]):  # of one rotation
            a, b = align_quaternions(np.concatenate([ends[:1], end]))[:, None]
            found = rotations_of(slerp(a, b, np.array([share])))[0]
            np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_curve_through_points_of_a_line_is_that_line():
    knots = np.array([0.0, 1.0, 1.5, 4.0])
    line = knots[:, None] * [2.0, -1.0]
    t = np.linspace(0, 4, 33)
    np.testing.assert_allclose(catmull_rom(line, knots, t, lerp, False), t[:, None] * [2.0, -1.0], atol=1e-12)


def test_photographs_in_order_keep_it_and_others_get_a_short_way():
    walk = [at((np.cos(a) * 4, np.sin(a) * 4, 1)) for a in np.linspace(0, 4, 40)]
    assert tour_order(walk, 5) == [0, 10, 20, 29, 39]
    mixed = RNG.permutation(40)
    found = mixed[tour_order([walk[i] for i in mixed], 100)]
    assert found.tolist() in (list(range(40)), list(range(39, -1, -1)))
    spread = mixed[tour_order([walk[i] for i in mixed], 6)]
    assert len(set(spread.tolist())) == 6 and spread.tolist() in (sorted(spread), sorted(spread)[::-1])


def test_a_short_way_is_a_permutation_and_never_longer_than_the_nearest_neighbours():
    places = RNG.uniform(-1, 1, (30, 3))
    way = short_route(places)
    assert sorted(way.tolist()) == list(range(30))
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    greedy = [int(np.linalg.norm(places - places.mean(0), axis=1).argmax())]
    while len(greedy) < 30:
        rest = [i for i in range(30) if i not in greedy]
        greedy.append(rest[int(apart[greedy[-1], rest].argmin())])
    assert apart[way[1:], way[:-1]].sum() <= apart[greedy[1:], greedy[:-1]].sum() + 1e-12


@pytest.mark.parametrize("up", [(0, 0, 1), (0, 0, -2), (-1, 0, 0), (0.3, -2, 0.4), (0, 1e-9, -1)], ids=str)
@pytest.mark.parametrize("made", ["orbit", "of a box", "spiral"])
def test_an_orbit_about_another_up_is_that_about_z_turned(made, up):
    """About the box's middle; what was up in the images is the direction that was asked for."""
    up = np.array(up) / np.linalg.norm(up)
    box, like = [(-1, -1, -1), (1, 1, 1)], Camera.look_at((4, 0, 0), width=8, height=8)
    ways = {
        "orbit": lambda **how: orbit((0, 0, 0), 4.0, 7, elevation=20, like=like, **how),
        "of a box": lambda **how: orbit_of_volume(box, 7, size=8, **how),
        "spiral": lambda **how: spiral_of_volume(box, 7, size=8, **how),
    }
    level, turned = ways[made](), ways[made](up=up)
    for a, b in zip(level, turned, strict=True):
        towards, high = b.position / np.linalg.norm(b.position), a.position[2] / np.linalg.norm(a.position)
        assert towards @ up == pytest.approx(high, abs=1e-12)
        assert b.world_from_camera[:3, 1] @ up == pytest.approx(a.world_from_camera[2, 1], abs=1e-12)
        assert b.world_from_camera[:3, 0] @ up == pytest.approx(0, abs=1e-12)
        assert b.world_from_camera[:3, 2] @ towards == pytest.approx(1, abs=1e-12)
    steps = [
        np.linalg.norm(np.diff([c.position / np.linalg.norm(c.position) for c in some], axis=0), axis=1)
        for some in (level, turned)
    ]
    np.testing.assert_allclose(*steps, atol=1e-9)


@pytest.mark.parametrize("up", [(0, 0, 0), (0, 1), "z", (np.nan, 0, 1)])
def test_what_is_no_direction_is_no_up(up):
    with pytest.raises(RaymarchError, match="up (is|has)"):
        orbit_of_volume([(-1, -1, -1), (1, 1, 1)], 3, up=up)
