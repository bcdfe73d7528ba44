"""Laws of what notebooks look at: the garden's photographs are their cameras', the lighthouse is in its box."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import raymarch as rm

SCENES = Path(__file__).resolve().parents[2] / "scenes"
sys.path.insert(0, str(SCENES))

import lighthouse  # noqa: E402
import make_garden  # noqa: E402


def test_the_set_is_read_with_its_lens_and_the_same_twice(tmp_path):
    for name in ("a", "b"):
        make_garden.write(tmp_path / name, count=2, samples=1)
    views, again = (rm.load_views(tmp_path / name, split="all") for name in ("a", "b"))
    assert np.array_equal(views.images, again.images) and not views.has_alpha
    assert (views.cameras[0].width, views.cameras[0].height) == (make_garden.WIDTH, make_garden.HEIGHT)
    assert np.ptp(views.images.astype(int), axis=(1, 2)).min() > 100
    np.testing.assert_allclose(views.cameras[1].world_from_camera, make_garden.poses(2)[1], atol=1e-12)


def test_its_rays_are_those_of_the_cameras(tmp_path):
    camera = rm.load_views(make_garden.write(tmp_path, count=1, samples=1), split="all").cameras[0]
    some = np.random.default_rng(0).choice(camera.width * camera.height, 200, replace=False)
    v, u = np.divmod(some, camera.width)
    wanted = make_garden.directions_of(camera.world_from_camera, u + 0.5, v + 0.5)
    np.testing.assert_allclose(camera.rays(some).direction, wanted, atol=1e-9)
    middle = camera.world_from_camera[:3, :3] @ [0, 0, -1]
    pinhole = np.stack([(u + 0.5 - camera.width / 2), -(v + 0.5 - camera.height / 2), np.full(200, -165.0)], 1)
    pinhole = pinhole / np.linalg.norm(pinhole, axis=1, keepdims=True) @ camera.world_from_camera[:3, :3].T
    assert np.abs(wanted - pinhole).max() > 0.005 and (wanted @ middle).min() > 0.8  # the lens bends, and not too much


def test_exposures_differ_by_up_to_a_stop():
    stops = np.log2(make_garden.exposures(200))
    assert 0.9 < np.ptp(stops.mean(1)) < 1.2 and 0.02 < (stops - stops.mean(1, keepdims=True)).std() < 0.1


def test_the_lighthouse_lies_within_its_box_and_is_what_its_parts_are():
    axes = [np.linspace(*ends, 40) for ends in lighthouse.BOX.T]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    sigma, colour = lighthouse.density(points), lighthouse.colour(points)
    edge = sigma.copy()
    edge[1:-1, 1:-1, 1:-1] = 0
    assert edge.max() < 1e-3 * lighthouse.SIGMA < sigma.max() and 0 < colour.min() <= colour.max() < 1
    lamp = np.array([[0, 0, 0.47]])
    assert lighthouse.density(lamp)[0] > 0.99 * lighthouse.SIGMA and lighthouse.colour(lamp)[0, 2] < 0.5
