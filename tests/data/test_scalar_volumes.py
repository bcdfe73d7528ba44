"""Laws of scalar volumes: the value is slope times what is stored, and a place in the world stays where it is."""

from __future__ import annotations

import numpy as np
import pytest

import raymarch as rm
from raymarch.volumes.selection import Selection
from raymarch.volumes.world_axes import sides_of

RNG = np.random.default_rng(5)
AFFINE = np.eye(4)
AFFINE[:3, :3] = RNG.normal(size=(3, 3)) * (0.5, 1, 2)
AFFINE[:3, 3] = (10, -20, 3)
HEAD = rm.ScalarVolume(RNG.integers(0, 3000, (5, 6, 7)).astype(np.uint16), AFFINE, 0.5, -1024, "HU", "mm", "LPS", "ct")


def test_it_is_the_volume_of_its_numbers():
    volume = HEAD.as_volume()
    np.testing.assert_array_equal(volume.density, HEAD.values * np.float64(0.5) - 1024)
    np.testing.assert_array_equal(volume.sigma(), HEAD.numbers())
    np.testing.assert_array_equal(volume.world_from_index, AFFINE)
    assert (volume.degree, volume.density.dtype, HEAD.numbers().dtype) == (0, np.float32, np.float32)
    assert volume.features.strides == (0, 0, 0, 0)  # colours that take no memory


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", ">i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", ">f8"])
def test_any_type_of_number_stays_as_it_is(kind):
    volume = rm.ScalarVolume(np.arange(24).reshape(2, 3, 4).astype(kind))
    assert volume.values.dtype == np.dtype(kind) and not volume.values.flags.writeable
    np.testing.assert_array_equal(volume.numbers(), np.arange(24).reshape(2, 3, 4))
    assert volume.range == (0, 23)


def test_spacing_origin_and_directions_are_the_affine():
    again = np.eye(4)
    again[:3, :3], again[:3, 3] = HEAD.directions * HEAD.spacing, HEAD.origin
    np.testing.assert_allclose(again, AFFINE, rtol=0, atol=1e-15)
    np.testing.assert_allclose(HEAD.box, [HEAD.corners.min(0), HEAD.corners.max(0)])


@pytest.mark.parametrize("world", ["RAS", "LPS", "LAS"])
def test_another_world_turns_axes_and_leaves_the_place_in_the_body(world):
    moved = HEAD.in_world(world)
    signs = [1 if a == b else -1 for a, b in zip("LPS", world, strict=True)]
    np.testing.assert_array_equal(moved.world_from_index[:3], np.diag(signs) @ AFFINE[:3])
    assert moved.sides == HEAD.sides
    np.testing.assert_array_equal(moved.in_world("LPS").world_from_index, AFFINE)


def test_a_world_that_nobody_names_stays():
    bare = rm.ScalarVolume(HEAD.values, AFFINE)
    np.testing.assert_array_equal(bare.in_world("RAS").world_from_index, AFFINE)
    assert bare.sides == ""


@pytest.mark.parametrize(("order", "sides"), [((0, 1, 2), "RAS"), ((2, 0, 1), "SRA"), ((1, 2, 0), "ASR")])
@pytest.mark.parametrize("flip", [1, -1])
def test_sides_are_those_of_the_nearest_axes(order, sides, flip):
    edges = np.eye(3)[:, list(order)] + 0.3 * RNG.uniform(-1, 1, (3, 3))
    affine = np.eye(4)
    affine[:3, :3] = flip * edges * (1, 2, 5)
    assert sides_of(affine, "RAS") == (sides if flip == 1 else sides.translate(str.maketrans("RAS", "LPI")))


def test_a_part_stays_where_it_is():
    part = HEAD.part(Selection(crop=((1, 5), (0, 6), (2, 7)), stride=(1, 2, 3)))
    np.testing.assert_array_equal(part.values, HEAD.values[1:5, ::2, 2:7:3])
    for index in np.ndindex(part.shape):
        there = AFFINE @ [index[0] + 1, 2 * index[1], 3 * index[2] + 2, 1]
        np.testing.assert_allclose(part.world_from_index @ [*index, 1], there, atol=1e-12)


def test_what_it_says_of_itself():
    said = repr(HEAD)
    assert "'ct', 5 x 6 x 7 uint16" in said and "HU" in said and "mm" in said and f"sides {HEAD.sides} in LPS" in said


def test_whatever_takes_a_volume_takes_it():
    """By the rule of their arguments, which all share."""
    from raymarch.volumes.volume import VOLUME

    assert isinstance(VOLUME("volume", HEAD), rm.Volume)
    for function in (rm.render, rm.jacobian, rm.check_gradients, rm.evaluate, rm.forecast_rendering):
        assert isinstance(function.rules["volume"]("volume", HEAD), rm.Volume)


def test_an_image_of_it_is_that_of_its_volume():
    ball = rm.ScalarVolume(np.full((4, 5, 6), 3, np.uint8), np.diag([0.5, 0.4, 0.3, 1]), slope=0.25)
    camera = rm.Camera.look_at((1, -4, 1), (0.75, 0.8, 0.75), width=8, height=6)
    image = rm.render(ball, camera)
    np.testing.assert_array_equal(image, rm.render(ball.as_volume(), camera))
    assert image.min() < 0.9
