"""Law of paths through a set's cameras: no frame is in matter where a way around is there, and what is left is told."""

from __future__ import annotations

import numpy as np
import pytest

from raymarch.cli.viewpoints import matter_of
from raymarch.geometry import orbit as orbits
from raymarch.geometry.camera import Camera
from raymarch.geometry.camera_path import tour_order
from raymarch.geometry.clear_path import clear_path
from raymarch.volumes.volume import Volume


def orbit(centre, radius, count, elevation=0):
    return orbits.orbit(centre, radius, count, elevation=elevation, like=Camera.look_at((1, 0, 0)))


def ball(radius, centre=(0, 0, 0)):
    return lambda points: np.linalg.norm(points - np.array(centre), axis=1) < radius


def wall(points):
    """Of x = 0, with a doorway at y = 5."""
    return (np.abs(points[:, 0]) < 0.2) & (np.abs(points[:, 1] - 5) > 1)


def outward(place):
    """A camera that looks away from the origin, as within a room."""
    return Camera.look_at(place, 2 * np.array(place))


ALONG_WALL = [Camera.look_at((x, y, 0), (x, y + 5, 0)) for x in (-3, 3) for y in range(6)]
DOOR = Camera.look_at((0, 5, 0), (0, 9, 0))
CASES = {
    "opposite cameras, others beside": (orbit((0, 0, 0), 4, 12), [0, 6], ball(1.5)),
    "opposite cameras alone": (
        [Camera.look_at((4, 0, 0.1)), Camera.look_at((-4, 0, 0))],
        [0, 1],
        ball(1.0, (0, 1.0, 0)),
    ),
    "outward from a ring": ([outward((4 * np.cos(a), 4 * np.sin(a), 0)) for a in np.arange(12) / 2], [0, 6], ball(2)),
    "around a wall, through its door": ([*ALONG_WALL, DOOR], [0, 6], wall),
    "a ball beside the way": (orbit((0, 0, 0), 4, 5, elevation=10), [0, 1, 2, 3, 4], ball(0.5, (0, 4, 0.7))),
    "near and far": (
        [Camera.look_at((s * 4, y, 0)) for y, s in ((1, 1), (2, -1), (3, 1), (4, -1))],
        [0, 1, 2],
        ball(1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_frame_is_in_matter(case):
    cameras, order, matter = CASES[case]
    path = clear_path(cameras, order, 60, matter)
    places = np.array([camera.position for camera in path.cameras])
    assert len(path.cameras) == 60 and path.left == 0
    assert not matter(places).any()


def test_a_clear_path_stays_as_it_is():
    from raymarch.geometry.camera_path import path_through

    ring = orbit((0, 0, 0), 4, 8)
    path = clear_path(ring, range(8), 24, ball(1))
    assert (path.inside, path.by, path.back) == (0, 0, 0)
    for one, other in zip(path.cameras, path_through(ring, 24), strict=True):
        np.testing.assert_array_equal(one.world_from_camera, other.world_from_camera)


def test_what_is_left_inside_is_told():
    cameras = [Camera.look_at((4, 0, 0)), Camera.look_at((0, 4, 0)), Camera.look_at((-4, 0, 0))]
    path = clear_path(cameras, [0, 1, 2], 20, lambda points: np.ones(len(points), bool))
    assert path.inside == path.left == 20


@pytest.mark.parametrize("boxes", [1, 3])
def test_matter_is_where_the_volume_is_dense(boxes):
    cameras = orbit((0, 0, 0), 4, 8)
    n = 17
    axis = np.linspace(-1, 1, n)
    inner = np.linalg.norm(np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1), axis=-1) < 0.5
    density = np.concatenate([np.where(inner, 30.0, 0.0), *[np.zeros((n, n, n))] * (boxes - 1)]).astype(np.float32)
    place = np.diag([2 / (n - 1)] * 3 + [1.0])
    place[:3, 3] = -1
    features = np.zeros((*density.shape, 3), np.float32)
    matter = matter_of(Volume(density, features, place, boxes=boxes), cameras)
    asked = np.array([[0, 0, 0], [0.3, 0.3, 0], [0.9, 0, 0], [2, 0, 0], [50, 0, 0]], float)
    assert matter(asked).tolist() == [True, True, False, False, False]


def test_a_tour_of_opposite_sides_goes_around():
    cameras = orbit((0, 0, 0), 3, 24, elevation=20)
    path = clear_path(cameras, tour_order(cameras, 2), 40, ball(1.2))
    assert path.left == 0
