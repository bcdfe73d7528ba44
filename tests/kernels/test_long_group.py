"""Law: a flat grid, marched in long groups, has the image and gradient of one in pairs, to the bit; so has a scan."""

from __future__ import annotations

import cases
import flat
import numpy as np
import pytest
import reference

STEPS = {
    "runs of many groups": 0.03,
    "a group and a part": 0.2,
    "less than a group": 0.9,
    "less than a pair": 100.0,
}  # voxels
ENDS = {"goes through": (0.0, 0.0), "ends early": (0.3, 0.02)}  # least transmittance and weight


def images(single, step, ends, mode="emission-absorption", slots=0):
    """The image of a flat grid, and of one in blocks."""
    (in_groups, on_cpu, groups), (not_in_groups, _, pairs) = (
        single(flat.image, block, slots, step, *ends, mode) for block in (1, 4)
    )
    assert in_groups == on_cpu  # elsewhere both go in pairs
    assert not not_in_groups
    return groups, pairs


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_images_are_the_same_bits(step, ends, single):
    groups, pairs = images(single, step, ends)
    assert np.ptp(groups[:, 0]) > 0.1
    np.testing.assert_array_equal(groups, pairs)


@pytest.mark.parametrize("mode", ["x-ray", "additive"])
def test_images_of_other_modes_are_the_same_bits(mode, single):
    groups, pairs = images(single, 0.2, (0.0, 0.0), mode)
    assert np.ptp(groups[:, 0]) > 0.01
    np.testing.assert_array_equal(groups, pairs)


def test_images_of_a_grid_with_gradients_are_the_same_bits(single):
    groups, pairs = images(single, 0.2, (0.3, 0.02), slots=2)
    assert np.ptp(groups[:, 0]) > 0.1
    np.testing.assert_array_equal(groups, pairs)


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_gradients_are_the_same_bits(step, ends, single):
    gradients(single, step, ends, "emission-absorption")


def test_gradients_of_another_mode_are_the_same_bits(single):
    gradients(single, 0.2, (0.0, 0.0), "x-ray")


def gradients(single, step, ends, mode):
    """Compare the gradients of a flat grid with those of one in blocks."""
    ahead, on_cpu, *groups = single(flat.gradient, 1, step, *ends, mode)
    not_ahead, _, *pairs = single(flat.gradient, 4, step, *ends, mode)
    assert (ahead, not_ahead) == (on_cpu, False)
    for got, want in zip(groups, pairs, strict=True):
        np.testing.assert_array_equal(got, want)
    assert np.abs(groups[0]).max() > 0.01


def test_images_are_the_reference(single):
    v = cases.volume("rotated", 0)
    wanted = reference.march(v, cases.rays(v), 0.03 * v.voxel, cases.BACKGROUND)
    groups, _ = images(single, 0.03, (0.0, 0.0))
    np.testing.assert_allclose(groups, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", flat.MARCHES)
def test_a_scan_has_no_room_for_colours_and_the_same_image(name, single, request):
    on_cpu = request.config.getoption("--arch") == "cpu"
    grouped, coloured, image, depth = single(flat.scan, name, 1, True)
    assert grouped == on_cpu and not coloured
    assert np.ptp(image) > 0.1
    for block, seen in ((4, True), (1, False)):
        other_grouped, other_coloured, other_image, other_depth = single(flat.scan, name, block, seen)
        assert (other_grouped, other_coloured) == (on_cpu and block == 1, not seen)
        np.testing.assert_array_equal(other_image, image)
        np.testing.assert_allclose(other_depth, depth, rtol=2e-5)


@pytest.mark.parametrize("block", [1, 4])
def test_slopes_that_were_made_before_light_as_those_found_on_the_way(block, single):
    _, _, image, depth = single(flat.scan, "lit", block, True)
    _, held, other_image, other_depth = single(flat.scan, "lit", block, True, True)
    assert held
    np.testing.assert_allclose(other_image, image, atol=2e-5)
    np.testing.assert_allclose(other_depth, depth, rtol=2e-5)
