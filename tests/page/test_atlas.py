"""Law: an atlas of bricks, sampled as the shader samples it, is the volume's trilinear field but for its steps."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest
from atlas_twin import sampled, trilinear

import raymarch as rm
from raymarch.viewer.page.atlas import COARSE, DIM, FAINT, least_raw, opacity_beside, pack_atlas
from raymarch.viewer.page.record import packed_text, volume_record

RNG = np.random.default_rng(56)


def smooth(*shape):
    """Smooth noise."""
    noise = RNG.normal(size=shape)
    for axis in range(3):
        noise = noise + np.roll(noise, 1, axis) + np.roll(noise, 2, axis)
    return noise / noise.std()


def scan():
    return rm.ScalarVolume(np.rint(400 * smooth(19, 24, 9)), np.diag([2.0, 1.0, 3.0, 1.0])).as_volume()


def fog(degree=1):
    features = np.stack([smooth(21, 17, 30) for _ in range(3 * (degree + 1) ** 2)], -1)
    return rm.Volume(4 * smooth(21, 17, 30) - 3, features, np.eye(4), rm.Activation("softplus", -1.0, 2.0))


def ball():
    return rm.Volume.from_function(
        lambda p: 30.0 * (np.linalg.norm(p, axis=-1) < 0.4), lambda p: 0.5 + 0.5 * p, shape=(40, 41, 42)
    )


def nested():
    return rm.Volume(smooth(36, 12, 11), np.stack([smooth(36, 12, 11)] * 3, -1), np.eye(4), boxes=3)


VOLUMES = {"scan": scan, "fog": fog, "ball": ball, "bricks": lambda: ball().sparse(), "degree 0": lambda: fog(0)}


def places(volume, count=60):
    return RNG.uniform(0, np.array(volume.box_shape) - 1, (count, 3))


@pytest.mark.parametrize("name", VOLUMES)
def test_density_is_the_trilinear_field_to_half_a_step(name):
    volume = VOLUMES[name]()
    atlas, met = pack_atlas(volume), 0
    least = least_raw(volume)
    for place in places(volume, 300):
        cell = np.minimum(place.astype(int), np.array(volume.shape) - 2)
        true = trilinear(volume.density, place)
        found = sampled(atlas, place, 0)
        corners = volume.density[tuple(slice(n, n + 2) for n in cell)]
        if found is None or corners.max() <= least:
            assert corners.max() <= least  # only what shows nothing is left out
            continue
        brick = atlas.ranges[int(atlas.table[(0, *(cell // 8)[::-1])]) - 1, 0]
        assert abs(found - true) <= brick[1] / 255 * 0.501 + 1e-5 * abs(true)
        met += 1
    assert met > 5


@pytest.mark.parametrize("name", ["fog", "ball", "degree 0"])
def test_colour_is_the_trilinear_field_where_it_is_seen(name):
    volume = VOLUMES[name]()
    atlas, met = pack_atlas(volume), 0
    opacity = 1 - np.exp(-volume.sigma() * volume.voxel)
    for place in places(volume, 300):
        cell = np.minimum(place.astype(int), np.array(volume.shape) - 2)
        most = opacity[tuple(slice(n, n + 2) for n in cell)].max()
        if most < FAINT:
            continue
        entry = int(atlas.table[(0, *np.minimum(cell // 8, np.array(atlas.table.shape[:0:-1]) - 1)[::-1])]) - 1
        for channel in range(1, len(atlas.planes)):
            true = trilinear(volume.features[..., channel - 1], place)
            step = atlas.ranges[entry, channel, 1] / 255 * (0.501 if most >= DIM else COARSE)
            assert abs(sampled(atlas, place, channel) - true) <= step + 1e-5
        met += 1
    assert met > 5


def test_no_brick_that_shows_something_is_left_out():
    volume = ball()
    atlas = pack_atlas(volume)
    for place in np.argwhere(volume.sigma() > 0):
        brick = np.minimum(place // 8, np.array(atlas.table.shape[:0:-1]) - 1)
        assert atlas.table[(0, *brick[::-1])] > 0
    assert (atlas.table == 0).any()


def test_nested_boxes_are_packed_each_and_what_another_hides_is_not():
    volume = nested()
    atlas = pack_atlas(volume)
    assert atlas.table.shape == (3, 2, 2, 2)
    for box in range(3):
        for place in places(volume, 20):
            found = sampled(atlas, place, 0, box)
            true = trilinear(volume.density[12 * box : 12 * box + 12], place)
            assert found is None or abs(found - true) < 0.03


def test_uniform_bricks_have_no_bytes():
    values = np.full((40, 40, 40), 7.0)
    values[20, 20, 20] = 9
    atlas = pack_atlas(rm.ScalarVolume(values).as_volume())
    assert atlas.count == 1 and len(atlas.ranges) == 125
    assert sampled(atlas, np.array([1.5, 2.5, 3.5]), 0) == 7


def test_harmonics_above_degree_1_are_cut():
    assert pack_atlas(fog(2)).planes.shape[0] == 13


@pytest.mark.parametrize("steps", [(1, 3, 5), (3, 5, 51)])
def test_coarser_steps_pack_better_and_err_by_no_more_than_they_say(steps):
    volume = fog()
    fine, coarse = pack_atlas(volume), pack_atlas(volume, steps)
    assert len(packed_text(coarse)) < len(packed_text(fine))
    seen = opacity_beside(volume, volume.density[None])[0] >= DIM
    assert seen.any()
    for channel, step in ((0, steps[0]), (1, steps[1]), (4, steps[2])):
        assert np.abs(coarse.planes[channel].astype(int) - fine.planes[channel]).max() <= max(step, COARSE)
        assert set(np.unique(coarse.planes[channel])) <= set(range(0, 256, step)) | set(range(0, 256, COARSE))


def test_what_is_packed_comes_back():
    volume = fog()
    atlas, record = pack_atlas(volume), volume_record(volume, pack_atlas(volume))
    text = zlib.decompress(base64.b64decode(packed_text(atlas)))
    table, ranges = 4 * atlas.table.size, 4 * atlas.ranges.size
    assert np.array_equal(np.frombuffer(text[:table], "<u4"), atlas.table.ravel())
    assert np.array_equal(np.frombuffer(text[table : table + ranges], "<f4"), atlas.ranges.ravel())
    planes = np.frombuffer(text[table + ranges :], np.uint8).reshape(*atlas.planes.shape[:2], -1)
    assert np.array_equal(np.cumsum(planes, axis=-1, dtype=np.uint8), atlas.planes.reshape(planes.shape))
    assert record["channels"] == len(atlas.planes) and record["entries"] == len(atlas.ranges)
